//! What an instance's labels say: owner, cluster, pool.
//!
//! Keys are those that GKE, Dataproc, Dataflow, Batch, the cluster toolkit and
//! Ray set themselves. Label keys of Google Cloud are lower-case letters,
//! digits, `-` and `_`, so a configured owner key with other characters never
//! matches here.

use std::collections::BTreeMap;

use gpuwatch_collector_core::{Interner, Ownership, TagRules, first_tag};

/// Keys whose value names the cluster, strongest first.
const CLUSTER_KEYS: &[&str] = &[
    "goog-k8s-cluster-name",
    "goog-dataproc-cluster-name",
    "slurm_cluster_name",
    "ghpc_deployment",
    "ray-cluster-name",
];

/// Keys whose value names the node pool, job or group, strongest first.
const POOL_KEYS: &[&str] = &[
    "goog-k8s-node-pool-name",
    "slurm_instance_role",
    "goog-dataflow-job-name",
    "goog-dataflow-job-id",
    "batch-job-id",
    "goog-batch-job-id",
    "ray-node-name",
];

/// Set on the instances of Vertex AI Workbench.
const WORKBENCH_KEY: &str = "notebooks-product";

/// Labels as an answer has them; a value may be missing.
pub(crate) type Labels = BTreeMap<String, Option<String>>;

/// Reads labels. `group` is the managed instance group that the machine
/// belongs to, which says less than what runs on top of it.
pub(crate) fn read(rules: &TagRules, labels: &Labels, group: &str, interner: &mut Interner) -> Ownership {
    let tags: Vec<(&str, &str)> = labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_deref().unwrap_or_default()))
        .collect();
    let pool = first_tag(&tags, POOL_KEYS).unwrap_or(group);
    let is_workbench = labels.contains_key(WORKBENCH_KEY);
    Ownership {
        owner: interner.text(rules.owner(&tags)),
        cluster: interner.text(first_tag(&tags, CLUSTER_KEYS).unwrap_or_default()),
        pool: interner.text(if pool.is_empty() && is_workbench {
            "workbench"
        } else {
            pool
        }),
        kept: rules.kept(&tags, interner, |key| {
            CLUSTER_KEYS.contains(&key) || POOL_KEYS.contains(&key) || key == WORKBENCH_KEY
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ownership(labels: &[(&str, &str)], group: &str) -> Ownership {
        let rules = TagRules {
            owner: vec!["team".into()],
            keep: Vec::new(),
        };
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())))
            .collect();
        read(&rules, &labels, group, &mut Interner::default())
    }

    #[test]
    fn clusters_and_pools_are_found_whoever_made_them() {
        let gke = ownership(
            &[
                ("goog-k8s-cluster-name", "train"),
                ("goog-k8s-node-pool-name", "h100"),
                ("team", "视觉组"),
            ],
            "gke-train-h100-grp",
        );
        assert_eq!((&*gke.cluster, &*gke.pool, &*gke.owner), ("train", "h100", "视觉组"));
        assert_eq!(&*ownership(&[], "workers").pool, "workers", "a managed instance group");
        assert_eq!(
            &*ownership(&[("notebooks-product", "workbench-instances")], "").pool,
            "workbench"
        );
        assert_eq!(&*ownership(&[("slurm_cluster_name", "hpc")], "").cluster, "hpc");
        for (key, pool) in [
            ("goog-dataflow-job-id", "2026-11-30_1"),
            ("goog-dataflow-job-name", "sort"),
            ("batch-job-id", "sweep"),
            ("goog-batch-job-id", "sweep"),
        ] {
            assert_eq!(&*ownership(&[(key, pool)], "made-by").pool, pool, "{key}");
        }
        for key in ["goog-dataproc-cluster-name", "ghpc_deployment", "ray-cluster-name"] {
            assert_eq!(&*ownership(&[(key, "c")], "").cluster, "c", "{key}");
        }
        let none = ownership(&[("other", "x")], "");
        assert_eq!(none, Ownership::default());
    }

    #[test]
    fn a_label_without_a_value_is_no_owner() {
        let labels = Labels::from([("team".to_owned(), None)]);
        let rules = TagRules {
            owner: vec!["team".into()],
            keep: Vec::new(),
        };
        assert_eq!(&*read(&rules, &labels, "", &mut Interner::default()).owner, "");
    }

    proptest::proptest! {
        #[test]
        fn any_labels_can_be_asked_for_their_owner(
            labels in proptest::collection::btree_map(".{0,12}", proptest::option::of(".{0,12}"), 0..6),
            group in ".{0,12}",
        ) {
            let rules = TagRules {
                owner: labels.keys().cloned().collect(),
                keep: labels.keys().cloned().collect(),
            };
            let owner = read(&rules, &labels, &group, &mut Interner::default()).owner;
            proptest::prop_assert!(owner.is_empty() || labels.values().flatten().any(|value| **value == *owner));
        }
    }
}
