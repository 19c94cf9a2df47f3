//! What an instance's tags say: owner, cluster, pool.
//!
//! Keys are those that EKS, Karpenter, Auto Scaling, Batch, `ParallelCluster`,
//! PCS, EMR and Ray set themselves; keys that begin with `aws:` cannot be set
//! by users.

use gpuwatch_collector_core::{Interner, Ownership, TagRules, Tags, first_tag, tag_value};
use gpuwatch_inventory::Text;

/// Keys whose value names the cluster, strongest first.
const CLUSTER_KEYS: &[&str] = &[
    "eks:cluster-name",
    "aws:eks:cluster-name",
    "eks:eks-cluster-name",
    "alpha.eksctl.io/cluster-name",
    "parallelcluster:cluster-name",
    "aws:pcs:cluster-id",
    "aws:elasticmapreduce:job-flow-id",
    "ray-cluster-name",
];

/// Prefix of the key whose rest names a Kubernetes cluster.
const KUBERNETES_CLUSTER: &str = "kubernetes.io/cluster/";

/// Keys whose value names the node pool, group or queue, strongest first: an
/// EKS node group also has a scaling group, whose name says less.
const POOL_KEYS: &[&str] = &[
    "eks:nodegroup-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/provisioner-name",
    "parallelcluster:queue-name",
    "aws:pcs:compute-node-group-id",
    "aws:elasticmapreduce:instance-group-role",
    "aws:autoscaling:groupName",
    "aws:ec2:fleet-id",
];

/// Set by AWS Batch on the instances of its compute environments.
const BATCH_KEY: &str = "AWSBatchServiceTag";

/// What the tags of one instance say; all empty when nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct TagFacts {
    pub name: Text,
    pub ownership: Ownership,
}

/// Reads tags given as key and value.
pub(crate) fn read(rules: &TagRules, tags: &Tags<'_>, interner: &mut Interner) -> TagFacts {
    let cluster = first_tag(tags, CLUSTER_KEYS)
        .or_else(|| kubernetes_cluster(tags))
        .unwrap_or_default();
    let pool = first_tag(tags, POOL_KEYS)
        .or_else(|| tags.iter().any(|(key, _)| *key == BATCH_KEY).then_some("batch"))
        .unwrap_or_default();
    TagFacts {
        name: interner.text(tag_value(tags, "Name").unwrap_or_default()),
        ownership: Ownership {
            owner: interner.text(rules.owner(tags)),
            cluster: interner.text(cluster),
            pool: interner.text(pool),
            kept: rules.kept(tags, interner, is_well_known),
        },
    }
}

fn is_well_known(key: &str) -> bool {
    CLUSTER_KEYS.contains(&key) || POOL_KEYS.contains(&key) || key == BATCH_KEY || key.starts_with(KUBERNETES_CLUSTER)
}

/// The cluster of `kubernetes.io/cluster/<name>`; `owned` before `shared`, and
/// the first by name where several share an instance.
fn kubernetes_cluster<'a>(tags: &[(&'a str, &'a str)]) -> Option<&'a str> {
    tags.iter()
        .filter_map(|(key, value)| Some((*value != "owned", key.strip_prefix(KUBERNETES_CLUSTER)?)))
        .filter(|(_, name)| !name.is_empty())
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tags: &Tags<'_>) -> Ownership {
        super::read(&TagRules::default(), tags, &mut Interner::default()).ownership
    }

    #[test]
    fn clusters_and_pools_are_found_whoever_made_them() {
        let eks = read(&[
            ("aws:autoscaling:groupName", "eks-a-123"),
            ("eks:cluster-name", "train"),
            ("eks:nodegroup-name", "h100"),
        ]);
        assert_eq!((&*eks.cluster, &*eks.pool), ("train", "h100"));
        let karpenter = read(&[
            ("karpenter.sh/nodepool", "gpu"),
            ("kubernetes.io/cluster/infer", "owned"),
        ]);
        assert_eq!((&*karpenter.cluster, &*karpenter.pool), ("infer", "gpu"));
        let auto_mode = read(&[("eks:eks-cluster-name", "auto")]);
        assert_eq!(&*auto_mode.cluster, "auto");
        let hpc = read(&[
            ("parallelcluster:cluster-name", "hpc"),
            ("parallelcluster:queue-name", "q1"),
        ]);
        assert_eq!((&*hpc.cluster, &*hpc.pool), ("hpc", "q1"));
        assert_eq!(&*read(&[("AWSBatchServiceTag", "x")]).pool, "batch");
        let two = read(&[
            ("kubernetes.io/cluster/b", "shared"),
            ("kubernetes.io/cluster/z", "owned"),
        ]);
        assert_eq!(&*two.cluster, "z");
    }

    #[test]
    fn the_name_tag_names_the_instance_and_is_not_kept() {
        let facts = super::read(&TagRules::default(), &[("Name", "n1")], &mut Interner::default());
        assert_eq!((&*facts.name, facts.ownership.kept.len()), ("n1", 0));
    }
}
