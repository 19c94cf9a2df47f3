//! What an instance's tags and place say: owner, cluster, pool.

use gpuwatch_collector_core::{Interner, Ownership, TagRules};

/// Where a machine is, which tells who made it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// ARM id.
    pub id: &'a str,
    /// Name of its scale set; empty when none.
    pub set: &'a str,
}

/// Keys whose value names the cluster, strongest first.
const CLUSTER_KEYS: &[&str] = &["aks-managed-cluster-name", "ClusterName", "CycleCloudCluster"];

/// Keys whose value names the node pool.
const POOL_KEYS: &[&str] = &["aks-managed-poolName", "kubernetes.azure.com_agentpool"];

/// Reads tags given as key and value. Keys of Azure's tags are compared
/// without regard to case.
pub(crate) fn read(rules: &TagRules, tags: &[(&str, &str)], place: &Place<'_>, interner: &mut Interner) -> Ownership {
    let value_of = |key: &str| {
        tags.iter()
            .find(|(k, v)| k.eq_ignore_ascii_case(key) && !v.trim().is_empty())
            .map(|(_, v)| *v)
    };
    let first_of = |keys: &[&str]| keys.iter().find_map(|key| value_of(key));
    let owner = rules.owner.iter().find_map(|key| value_of(key)).unwrap_or_default();
    let cluster = first_of(CLUSTER_KEYS)
        .or_else(|| cluster_of_group(place.id))
        .unwrap_or_default();
    let pool = first_of(POOL_KEYS).unwrap_or(place.set);
    // Under the spelling that was asked for, whatever the tag's own.
    let spelled: Vec<(&str, &str)> = tags.iter().map(|(key, value)| (spelling(rules, key), *value)).collect();
    let well_known = |key: &str| {
        CLUSTER_KEYS
            .iter()
            .chain(POOL_KEYS)
            .any(|known| known.eq_ignore_ascii_case(key))
    };
    Ownership {
        owner: interner.text(owner),
        cluster: interner.text(cluster),
        pool: interner.text(pool),
        kept: rules.kept(&spelled, interner, well_known),
    }
}

fn spelling<'a>(rules: &'a TagRules, key: &'a str) -> &'a str {
    let mut configured = rules.owner.iter().chain(&rules.keep);
    configured
        .find(|known| known.eq_ignore_ascii_case(key))
        .map_or(key, String::as_str)
}

/// The cluster of a node resource group of AKS, `MC_<group>_<cluster>_<region>`.
fn cluster_of_group(id: &str) -> Option<&str> {
    let mut parts = id.split('/');
    parts.find(|part| part.eq_ignore_ascii_case("resourceGroups"))?;
    let group = parts.next()?;
    let rest = group
        .get(..3)
        .filter(|start| start.eq_ignore_ascii_case("MC_"))
        .and_then(|_| group.get(3..))?;
    let (rest, _region) = rest.rsplit_once('_')?;
    rest.rsplit_once('_').map(|(_, cluster)| cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "/subscriptions/s/resourceGroups/MC_ml_train_eastus/providers/Microsoft.Compute/x";

    fn of(tags: &[(&str, &str)], id: &str, set: &str) -> Ownership {
        let rules = TagRules {
            owner: vec!["Owner".into(), "team".into()],
            keep: vec!["gpuwatch-ignore".into()],
        };
        read(&rules, tags, &Place { id, set }, &mut Interner::default())
    }

    #[test]
    fn keys_are_compared_without_regard_to_case() {
        let found = of(
            &[("OWNER", "王小明"), ("GPUWATCH-Ignore", "x"), ("secret", "y")],
            "/x",
            "",
        );
        assert_eq!(&*found.owner, "王小明");
        let kept: Vec<&str> = found.kept.iter().map(|tag| &*tag.key).collect();
        assert_eq!(kept, ["Owner", "gpuwatch-ignore"]);
    }

    #[test]
    fn nodes_name_their_cluster_and_pool() {
        let tagged = of(
            &[("aks-managed-cluster-name", "c1"), ("aks-managed-poolName", "gpu")],
            NODE,
            "set",
        );
        assert_eq!((&*tagged.cluster, &*tagged.pool), ("c1", "gpu"));
        let by_group = of(&[], NODE, "aks-gpu-1-vmss");
        assert_eq!((&*by_group.cluster, &*by_group.pool), ("train", "aks-gpu-1-vmss"));
        assert_eq!(&*of(&[], "/subscriptions/s/resourceGroups/MC_x/y", "").cluster, "");
    }
}
