//! Whose an instance is: tags, and the cluster it is a node of.

use gpuwatch_collector_core::{Interner, Ownership, TagRules, Tags, tag_value};
use gpuwatch_inventory::Text;
use serde::Deserialize;

use crate::loose;

/// Set by Auto Scaling, also under TKE's node pools.
const SCALING_GROUP: &str = "tencentcloud:autoscaling:auto-scaling-group-id";

/// A tag of a record.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tag {
    #[serde(rename = "Key", default, deserialize_with = "loose::text")]
    pub key: Option<String>,
    #[serde(rename = "Value", default, deserialize_with = "loose::text")]
    pub value: Option<String>,
}

/// The cluster that an instance is a node of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The cluster's name, or its id where the name is blank or not unique.
    pub cluster: Text,
    /// Id of the node pool; empty without one.
    pub pool: Text,
}

/// Reads a record's tags; `cluster` is what the record itself says about a
/// cluster, and a Kubernetes cluster comes before it.
pub(crate) fn read(
    rules: &TagRules,
    tags: &[Tag],
    membership: Option<&Membership>,
    cluster: Option<&str>,
    interner: &mut Interner,
) -> Ownership {
    let tags: Vec<(&str, &str)> = tags
        .iter()
        .filter_map(|tag| Some((tag.key.as_deref()?, tag.value.as_deref().unwrap_or_default())))
        .collect();
    let tags: &Tags<'_> = &tags;
    let pool = membership
        .map(|member| member.pool.clone())
        .filter(|pool| !pool.is_empty());
    Ownership {
        owner: interner.text(rules.owner(tags)),
        cluster: match membership {
            Some(member) => member.cluster.clone(),
            None => interner.text(cluster.unwrap_or_default()),
        },
        pool: pool.unwrap_or_else(|| interner.text(tag_value(tags, SCALING_GROUP).unwrap_or_default())),
        kept: rules.kept(tags, interner, |key| key == SCALING_GROUP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(key: &str, value: &str) -> Tag {
        Tag {
            key: Some(key.to_owned()),
            value: Some(value.to_owned()),
        }
    }

    #[test]
    fn owners_come_from_tags_and_clusters_from_the_cluster_before_anything_else() {
        let rules = TagRules {
            owner: vec!["团队".into()],
            keep: vec![],
        };
        let tags = [tag("团队", "推荐"), tag(SCALING_GROUP, "asg-1"), tag("other", "x")];
        let member = Membership {
            cluster: "train".into(),
            pool: "np-1".into(),
        };
        let read = |member| super::read(&rules, &tags, member, Some("hpc-1"), &mut Interner::default());
        let node = read(Some(&member));
        assert_eq!((&*node.owner, &*node.cluster, &*node.pool), ("推荐", "train", "np-1"));
        let machine = read(None);
        assert_eq!(
            (&*machine.cluster, &*machine.pool, machine.kept.len()),
            ("hpc-1", "asg-1", 2)
        );
    }
}
