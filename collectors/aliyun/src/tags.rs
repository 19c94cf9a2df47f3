//! What an instance's tags say: cluster, node pool, owner.

use gpuwatch_collector_core::{Interner, Ownership, TagRules, Tags, first_tag};

/// Set by Container Service for Kubernetes (ACK) on its nodes.
const CLUSTER_KEYS: &[&str] = &[
    "ack.aliyun.com",
    "k8s.aliyun.com/cluster-id",
    "acs:e-mapreduce:clusterId",
];

/// Keys whose value names the node pool or scaling group, strongest first.
const POOL_KEYS: &[&str] = &[
    "ack.alibabacloud.com/nodepool-id",
    "alibabacloud.com/nodepool-id",
    "k8s.aliyun.com/nodepool-id",
    "acs:autoscaling:scalingGroupId",
];

/// Reads tags given as key and value.
pub(crate) fn read(rules: &TagRules, tags: &Tags<'_>, interner: &mut Interner) -> Ownership {
    Ownership {
        owner: interner.text(rules.owner(tags)),
        cluster: interner.text(first_tag(tags, CLUSTER_KEYS).unwrap_or_default()),
        pool: interner.text(first_tag(tags, POOL_KEYS).unwrap_or_default()),
        kept: rules.kept(tags, interner, |key| {
            CLUSTER_KEYS.contains(&key) || POOL_KEYS.contains(&key)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_name_their_cluster_and_pool() {
        let rules = TagRules {
            owner: vec!["负责人".into()],
            keep: Vec::new(),
        };
        let tags = [
            ("ack.aliyun.com", "c1"),
            ("acs:autoscaling:scalingGroupId", "asg-1"),
            ("负责人", "王小明"),
            ("secret", "x"),
        ];
        let read = read(&rules, &tags, &mut Interner::default());
        assert_eq!((&*read.cluster, &*read.pool, &*read.owner), ("c1", "asg-1", "王小明"));
        assert_eq!(read.kept.len(), 3, "only what was asked for");
    }
}
