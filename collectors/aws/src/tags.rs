//! What an instance's tags say: owner, cluster, pool.
//!
//! Keys are those that EKS, Karpenter, Auto Scaling, Batch, `ParallelCluster`,
//! PCS, EMR and Ray set themselves; keys that begin with `aws:` cannot be set
//! by users.

use gpuwatch_inventory::{Tag, Text};

use crate::text::Interner;

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

/// Which tags to read, from the configuration.
#[derive(Debug, Clone)]
pub(crate) struct TagRules {
    /// Keys that name the owner, strongest first.
    pub owner: Vec<String>,
    /// Further keys to keep.
    pub keep: Vec<String>,
}

/// What the tags of one instance say; all empty when nothing.
#[derive(Debug, PartialEq)]
pub(crate) struct TagFacts {
    pub name: Text,
    pub owner: Text,
    pub cluster: Text,
    pub pool: Text,
    pub kept: Vec<Tag>,
}

impl TagRules {
    /// Reads tags given as key and value.
    pub(crate) fn read(&self, tags: &[(&str, &str)], interner: &mut Interner) -> TagFacts {
        let value_of = |key: &str| {
            tags.iter()
                .find(|(k, v)| *k == key && !v.trim().is_empty())
                .map(|(_, v)| *v)
        };
        let first_of = |keys: &[&str]| keys.iter().find_map(|key| value_of(key));
        let owner = self.owner.iter().find_map(|key| value_of(key)).unwrap_or_default();
        let cluster = first_of(CLUSTER_KEYS)
            .or_else(|| kubernetes_cluster(tags))
            .unwrap_or_default();
        let pool = first_of(POOL_KEYS)
            .or_else(|| tags.iter().any(|(key, _)| *key == BATCH_KEY).then_some("batch"))
            .unwrap_or_default();
        let mut kept: Vec<Tag> = tags
            .iter()
            .filter(|(key, _)| self.keeps(key))
            .map(|(key, value)| Tag {
                key: interner.text(key),
                value: interner.text(value),
            })
            .collect();
        kept.sort_by(|a, b| a.key.cmp(&b.key));
        TagFacts {
            name: interner.text(value_of("Name").unwrap_or_default()),
            owner: interner.text(owner),
            cluster: interner.text(cluster),
            pool: interner.text(pool),
            kept,
        }
    }

    fn keeps(&self, key: &str) -> bool {
        let configured = |keys: &[String]| keys.iter().any(|k| k == key);
        configured(&self.owner)
            || configured(&self.keep)
            || CLUSTER_KEYS.contains(&key)
            || POOL_KEYS.contains(&key)
            || key == BATCH_KEY
            || key.starts_with(KUBERNETES_CLUSTER)
    }
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

    fn read(tags: &[(&str, &str)]) -> TagFacts {
        let rules = TagRules {
            owner: vec!["owner".into(), "team".into()],
            keep: vec!["gpuwatch-ignore".into()],
        };
        rules.read(tags, &mut Interner::default())
    }

    #[test]
    fn the_owner_is_the_first_configured_key_with_a_value() {
        assert_eq!(&*read(&[("team", "视觉组"), ("owner", " ")]).owner, "视觉组");
        assert_eq!(&*read(&[("team", "b"), ("owner", "a")]).owner, "a");
        assert_eq!(&*read(&[("Owner", "a")]).owner, "", "keys are case-sensitive");
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
    fn only_known_and_configured_tags_are_kept() {
        let facts = read(&[("secret", "x"), ("gpuwatch-ignore", ""), ("team", "a"), ("Name", "n1")]);
        let keys: Vec<&str> = facts.kept.iter().map(|tag| &*tag.key).collect();
        assert_eq!(keys, ["gpuwatch-ignore", "team"]);
        assert_eq!(&*facts.name, "n1");
    }
}
