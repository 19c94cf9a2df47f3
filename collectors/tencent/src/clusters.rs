//! Nodes of TKE clusters: which instances are nodes of which cluster, and the
//! native nodes that are no CVM instances.

use std::collections::{HashMap, HashSet};

use gpuwatch_collector_core::{Call, CollectError, Context, Interner, Scope, TagRules};
use gpuwatch_inventory::{GpuCount, Instance, Kind, Provider, State, Text};
use serde::Deserialize;

use crate::{
    Site,
    access::AccountAccess,
    api::Action,
    billing,
    facts::Decider,
    loose,
    ownership::{self, Membership, Tag},
    pages::{self, PAGE_SIZE, Query, page},
    record::Stated,
    time,
};

const DESCRIBE_CLUSTERS: Action = Action::new(
    Call::new("tke", "DescribeClusters", "tke:DescribeClusters"),
    "2018-05-25",
);
const DESCRIBE_CLUSTER_INSTANCES: Action = Action::new(
    Call::new("tke", "DescribeClusterInstances", "tke:DescribeClusterInstances"),
    "2022-05-01",
);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Cluster {
    #[serde(default, deserialize_with = "loose::text")]
    cluster_id: Option<String>,
    #[serde(default, deserialize_with = "loose::text")]
    cluster_name: Option<String>,
}

page!(ClustersPage, "Clusters": Cluster, "TotalCount", cluster_id);

/// A node as its cluster knows it.
#[allow(clippy::struct_field_names, reason = "named as in the answer")]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Node {
    #[serde(deserialize_with = "loose::text")]
    instance_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    instance_state: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    node_pool_id: Option<String>,
    #[serde(rename = "LanIP", deserialize_with = "loose::text")]
    lan_ip: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    created_time: Option<String>,
    #[serde(deserialize_with = "loose::part")]
    native: Option<NativeNode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NativeNode {
    #[serde(deserialize_with = "loose::text")]
    machine_name: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    display_name: Option<String>,
    /// `NativeCVM` for nodes that are CVM instances too.
    #[serde(deserialize_with = "loose::text")]
    machine_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    instance_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    instance_type: Option<String>,
    #[serde(rename = "GPU", deserialize_with = "loose::number")]
    gpu: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    instance_charge_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pay_mode: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    renew_flag: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    expired_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    created_at: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    zone: Option<String>,
    #[serde(deserialize_with = "loose::list")]
    tags: Vec<Tag>,
}

page!(NodesPage, "InstanceSet": Node, "TotalCount", instance_id);

/// The nodes of a region's clusters.
#[derive(Debug, Default)]
pub(crate) struct ClusterNodes {
    members: HashMap<String, Membership>,
    machines: Vec<Machine>,
}

/// A native node that is no CVM instance.
#[derive(Debug)]
struct Machine {
    id: String,
    node: Node,
    native: NativeNode,
    membership: Membership,
}

impl ClusterNodes {
    /// The cluster of an instance.
    pub(crate) fn membership(&self, instance_id: &str) -> Option<&Membership> {
        self.members.get(instance_id)
    }

    /// The types of the machines that no CVM listing has.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&str, Stated<'_>)> {
        self.machines
            .iter()
            .map(|machine| (machine.instance_type(), machine.stated()))
    }

    /// The machines with accelerators that no CVM listing has.
    pub(crate) fn instances(&self, scope: &Scope, rules: &TagRules, decider: &Decider) -> Vec<Instance> {
        let mut interner = Interner::default();
        self.machines
            .iter()
            .filter_map(|machine| machine.instance(scope, rules, decider, &mut interner))
            .collect()
    }
}

/// Lists the nodes of all clusters of a region; none where TKE is not offered.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn list(cx: &Context, access: &AccountAccess, region: &Text) -> Result<ClusterNodes, CollectError> {
    let query = Query {
        access,
        action: DESCRIBE_CLUSTERS,
        region,
        limit: PAGE_SIZE,
        parameters: &[],
    };
    let ask = pages::list::<ClustersPage>(cx, query);
    let clusters: Vec<Cluster> = access.if_present(cx, DESCRIBE_CLUSTERS, region, ask).await?;
    let names = names(&clusters);
    let mut nodes = ClusterNodes::default();
    for (id, name) in names {
        let mut parameters = vec![("ClusterId", id.into())];
        // Tags come only when asked for. The parameter is known of the China
        // site's call alone, and an unknown one could cost the whole listing.
        if access.site() == Site::China {
            parameters.push(("NeedTags", true.into()));
        }
        let query = Query {
            action: DESCRIBE_CLUSTER_INSTANCES,
            parameters: &parameters,
            ..query
        };
        for node in pages::list::<NodesPage>(cx, query).await? {
            nodes.add(node, &name);
        }
    }
    Ok(nodes)
}

/// The name to show for each cluster: its id where the name is blank or not
/// its own.
fn names(clusters: &[Cluster]) -> Vec<(&str, Text)> {
    let mut seen = HashSet::new();
    let named = || clusters.iter().filter_map(|cluster| cluster.cluster_name.as_deref());
    let repeated: HashSet<&str> = named().filter(|name| !seen.insert(*name)).collect();
    clusters
        .iter()
        .filter_map(|cluster| {
            let id = cluster.cluster_id.as_deref()?;
            let name = cluster.cluster_name.as_deref().filter(|name| !repeated.contains(name));
            Some((id, name.unwrap_or(id).into()))
        })
        .collect()
}

impl ClusterNodes {
    fn add(&mut self, mut node: Node, cluster: &Text) {
        let membership = Membership {
            cluster: cluster.clone(),
            pool: node.node_pool_id.as_deref().unwrap_or_default().into(),
        };
        let native = node.native.take();
        let id = native
            .as_ref()
            .and_then(|native| native.instance_id.clone())
            .or_else(|| node.instance_id.clone());
        let Some(id) = id else { return };
        match native {
            Some(native) if native.is_no_cvm(&id) => self.machines.push(Machine {
                id,
                node,
                native,
                membership,
            }),
            _ => {
                self.members.insert(id, membership);
            }
        }
    }
}

impl NativeNode {
    /// By the kind of machine, or by the id where that is not stated.
    fn is_no_cvm(&self, id: &str) -> bool {
        match self.machine_type.as_deref() {
            Some("NativeCVM") => false,
            Some("Native") => true,
            _ => !id.starts_with("ins-"),
        }
    }
}

impl Machine {
    fn instance_type(&self) -> &str {
        self.native.instance_type.as_deref().unwrap_or_default()
    }

    fn stated(&self) -> Stated<'_> {
        Stated {
            count: GpuCount::new(self.native.gpu.unwrap_or(0.0)).filter(|count| *count > GpuCount::ZERO),
            model: "",
        }
    }

    fn instance(
        &self,
        scope: &Scope,
        rules: &TagRules,
        decider: &Decider,
        interner: &mut Interner,
    ) -> Option<Instance> {
        let accelerators = decider.accelerators(self.instance_type(), self.stated())?;
        let native = &self.native;
        let ownership = ownership::read(rules, &native.tags, Some(&self.membership), None, interner);
        let charge_type = native.instance_charge_type.as_deref().or(native.pay_mode.as_deref());
        let created = native.created_at.as_deref().or(self.node.created_time.as_deref());
        let name = native.display_name.as_deref().or(native.machine_name.as_deref());
        let mut text = |text: Option<&str>| interner.text(text.unwrap_or_default());
        Some(Instance {
            provider: Provider::Tencent,
            account: scope.account.id.clone(),
            account_name: scope.account.name.clone(),
            region: scope.region.clone(),
            id: self.id.as_str().into(),
            name: text(name),
            zone: text(native.zone.as_deref()),
            instance_type: text(native.instance_type.as_deref()),
            kind: Kind::Vm,
            state: state(self.node.instance_state.as_deref()),
            accelerators,
            launched: created.and_then(time::parse),
            expires: native
                .expired_time
                .as_deref()
                .filter(|_| billing::has_term(charge_type))
                .and_then(time::parse),
            auto_renew: billing::renews(native.renew_flag.as_deref(), charge_type),
            stopped: None,
            owner: ownership.owner,
            cluster: ownership.cluster,
            pool: ownership.pool,
            platform: text(Some("Linux")),
            tenancy: text(None),
            reservation_id: text(None),
            private_address: text(self.node.lan_ip.as_deref()),
            private_host: text(None),
            tags: ownership.kept,
            billing: billing::from_charge_type(charge_type, interner),
        })
    }
}

/// A failed node says nothing about what it costs.
fn state(word: Option<&str>) -> State {
    match word {
        Some("running") => State::Running,
        Some("initializing") => State::Starting,
        _ => State::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> ClusterNodes {
        let mut nodes = ClusterNodes::default();
        for node in serde_json::from_str::<Vec<Node>>(text).unwrap() {
            nodes.add(node, &"train".into());
        }
        nodes
    }

    #[test]
    fn only_nodes_that_no_cvm_listing_has_are_machines_of_their_own() {
        let nodes = nodes(
            r#"[{"InstanceId":"ins-1","NodePoolId":"np-1","NodeType":"Regular"},
                {"InstanceId":"np-a","NodePoolId":"np-2","Native":{"MachineType":"NativeCVM","InstanceId":"ins-2"}},
                {"InstanceId":"np-b","Native":{"MachineType":"Native","InstanceId":"eks-3","InstanceType":"PNV4.1","GPU":1}},
                {"Native":null}]"#,
        );
        assert_eq!(nodes.membership("ins-1").map(|m| &*m.pool), Some("np-1"));
        assert_eq!(nodes.membership("ins-2").map(|m| &*m.pool), Some("np-2"));
        let machines: Vec<_> = nodes.machines.iter().map(|machine| machine.id.as_str()).collect();
        assert_eq!(machines, ["eks-3"]);
        assert_eq!(
            nodes.types().next().and_then(|(_, stated)| stated.count),
            Some(GpuCount::from(1))
        );
    }

    #[test]
    fn a_name_that_two_clusters_share_names_neither() {
        let cluster = |id: &str, name: Option<&str>| Cluster {
            cluster_id: Some(id.to_owned()),
            cluster_name: name.map(str::to_owned),
        };
        let clusters = [
            cluster("cls-1", Some("gpu")),
            cluster("cls-2", Some("gpu")),
            cluster("cls-3", Some("训练")),
            cluster("cls-4", None),
        ];
        let shown: Vec<String> = names(&clusters).into_iter().map(|(_, name)| name.to_string()).collect();
        assert_eq!(shown, ["cls-1", "cls-2", "训练", "cls-4"]);
    }
}
