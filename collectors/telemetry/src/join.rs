//! Ties telemetry to instances. A join that could be wrong is refused.

use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use gpuwatch_inventory::{Instance, Provider, State};

use crate::device::Target;

/// How a target was joined, as documents and metrics say it; strongest first.
pub const METHODS: [&str; 5] = ["provider_id", "instance_id", "node_address", "address", "hostname"];

/// Why a target was not joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// What it says fits no running instance.
    NoInstance,
    /// What it says fits more than one.
    Ambiguous,
    /// More cards than the instance has.
    TooManyCards,
}

impl Refusal {
    /// The `reason` label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoInstance => "no_instance",
            Self::Ambiguous => "ambiguous",
            Self::TooManyCards => "too_many_cards",
        }
    }
}

/// A Kubernetes node as kube-state-metrics shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// Its name, in lower case.
    pub name: String,
    /// The cloud's id of the machine; empty when it has none.
    pub provider_id: String,
    /// Its address; empty when it has none.
    pub address: String,
    /// The cluster, where a label says it.
    pub cluster: String,
}

/// Everything that targets are looked up in.
#[derive(Debug, Default)]
pub struct JoinTable {
    instances: Vec<Arc<Instance>>,
    by_id: HashMap<String, Vec<usize>>,
    by_address: HashMap<String, Vec<usize>>,
    by_host: HashMap<String, Vec<usize>>,
    /// GCP: project, zone, name.
    by_place: HashMap<(String, String, String), Vec<usize>>,
    nodes: HashMap<String, BTreeSet<Node>>,
}

impl JoinTable {
    /// A table of the running instances and of the nodes.
    #[must_use]
    pub fn new(instances: &[Arc<Instance>], nodes: Vec<Node>) -> Self {
        let mut table = Self::default();
        let running = instances.iter().filter(|instance| instance.state == State::Running);
        for (index, instance) in running.enumerate() {
            table.instances.push(Arc::clone(instance));
            add(&mut table.by_id, &instance.id.to_lowercase(), index);
            add(&mut table.by_address, &instance.private_address.to_lowercase(), index);
            let host = instance.private_host.to_lowercase();
            add(&mut table.by_host, first_label(&host), index);
            if first_label(&host) != host {
                add(&mut table.by_host, &host, index);
            }
            // A name tag of AWS is free text; these are the machines' names.
            let is_host_name = matches!(instance.provider, Provider::Gcp | Provider::Azure);
            let name = instance.name.to_lowercase();
            if is_host_name && name != first_label(&host) {
                add(&mut table.by_host, &name, index);
            }
            if instance.provider == Provider::Gcp {
                let place = (instance.account.to_string(), instance.zone.to_string(), name);
                table.by_place.entry(place).or_default().push(index);
            }
        }
        for node in nodes {
            table.nodes.entry(node.name.clone()).or_default().insert(node);
        }
        table
    }

    /// An instance that a join gave.
    #[must_use]
    pub fn instance(&self, index: usize) -> Option<&Arc<Instance>> {
        self.instances.get(index)
    }

    /// The instance of a target and the method that found it.
    ///
    /// # Errors
    /// When it is none, or could be several.
    pub fn join(&self, target: &Target) -> Result<(usize, &'static str), Refusal> {
        let nodes = self.nodes_of(target);
        if nodes.iter().any(|node| !node.provider_id.is_empty()) {
            let found = nodes
                .iter()
                .flat_map(|node| self.of_provider_id(&node.provider_id))
                .collect();
            // The cluster knows the machine: a weaker hint must not find another.
            return one(&found).map(|index| (index, "provider_id"));
        }
        for id in &target.ids {
            let mut found: BTreeSet<usize> = look_up(&self.by_id, &id.to_lowercase()).collect();
            found.extend(self.of_provider_id(id));
            if !target.account.is_empty() {
                let is_of_account = |index: &usize| {
                    self.instances
                        .get(*index)
                        .is_some_and(|instance| *instance.account == *target.account)
                };
                found.retain(is_of_account);
            }
            if !found.is_empty() {
                return one(&found).map(|index| (index, "instance_id"));
            }
        }
        let found: BTreeSet<usize> = nodes
            .iter()
            .flat_map(|node| look_up(&self.by_address, &node.address))
            .collect();
        if !found.is_empty() {
            return one(&found).map(|index| (index, "node_address"));
        }
        let mut ambiguous = false;
        if !target.in_pod {
            let found: BTreeSet<usize> = look_up(&self.by_address, &target.address).collect();
            if found.len() == 1 {
                return one(&found).map(|index| (index, "address"));
            }
            ambiguous = !found.is_empty();
        }
        // An address that two machines have is no reason to believe a name that
        // one of them has.
        if ambiguous {
            return Err(Refusal::Ambiguous);
        }
        let by_name: BTreeSet<usize> = names_of(target).flat_map(|host| self.of_host(host)).collect();
        one(&by_name).map(|index| (index, "hostname"))
    }

    fn nodes_of(&self, target: &Target) -> Vec<&Node> {
        let found: Vec<&Node> = target
            .hosts
            .iter()
            .filter_map(|host| self.nodes.get(host))
            .flatten()
            .collect();
        let in_cluster = |node: &&&Node| !target.cluster.is_empty() && node.cluster == target.cluster;
        if found.iter().any(|node| in_cluster(&node)) {
            return found.into_iter().filter(|node| in_cluster(&node)).collect();
        }
        found
    }

    fn of_host<'a>(&'a self, host: &str) -> impl Iterator<Item = usize> + use<'a> {
        let mut found: BTreeSet<usize> = look_up(&self.by_host, host).collect();
        let short = first_label(host);
        if found.is_empty() && host.parse::<IpAddr>().is_err() {
            found.extend(look_up(&self.by_host, short));
        }
        if let Some(address) = address_in(host) {
            found.extend(look_up(&self.by_address, &address));
        }
        // Alibaba Cloud's own host names: iZ<id without i->Z.
        if let Some(body) = short.strip_prefix("iz").and_then(|rest| rest.strip_suffix('z')) {
            found.extend(look_up(&self.by_id, &format!("i-{body}")));
        }
        found.extend(look_up(&self.by_id, short));
        found.into_iter()
    }

    /// Instances that a node's `spec.providerID` names.
    fn of_provider_id(&self, provider_id: &str) -> Vec<usize> {
        let lower = provider_id.to_lowercase();
        let Some((scheme, rest)) = lower.split_once("://") else {
            // Alibaba Cloud: region, dot, id.
            let id = lower.split_once('.').map_or("", |(_, id)| id);
            return self.with_id(Provider::Aliyun, id);
        };
        let last = rest.rsplit('/').next().unwrap_or_default();
        match scheme {
            "aws" if !last.starts_with("fargate-") => self.with_id(Provider::Aws, last),
            "gce" => {
                let mut parts = rest.split('/');
                let place = (parts.next(), parts.next(), parts.next());
                let (Some(project), Some(zone), Some(name)) = place else {
                    return Vec::new();
                };
                let place = (project.to_owned(), zone.to_owned(), name.to_owned());
                self.by_place.get(&place).cloned().unwrap_or_default()
            }
            "azure" => self.with_id(Provider::Azure, rest),
            "alicloud" => {
                let id = last.split_once('.').map_or(last, |(_, id)| id);
                self.with_id(Provider::Aliyun, id)
            }
            "qcloud" | "tencentcloud" => self.with_id(Provider::Tencent, last),
            _ => Vec::new(),
        }
    }

    fn with_id(&self, provider: Provider, id: &str) -> Vec<usize> {
        let is_of = |index: &usize| {
            self.instances
                .get(*index)
                .is_some_and(|instance| instance.provider == provider)
        };
        look_up(&self.by_id, id).filter(is_of).collect()
    }
}

/// Host names, and the scrape address where it is a name.
fn names_of(target: &Target) -> impl Iterator<Item = &str> {
    let is_name = !target.in_pod && target.address.parse::<IpAddr>().is_err();
    let address = is_name.then_some(target.address.as_str());
    target
        .hosts
        .iter()
        .map(String::as_str)
        .chain(address)
        .filter(|name| !name.is_empty())
}

fn add(index: &mut HashMap<String, Vec<usize>>, key: &str, value: usize) {
    if !key.is_empty() {
        index.entry(key.to_owned()).or_default().push(value);
    }
}

fn look_up<'a>(index: &'a HashMap<String, Vec<usize>>, key: &str) -> impl Iterator<Item = usize> + use<'a> {
    index.get(key).into_iter().flatten().copied()
}

fn one(found: &BTreeSet<usize>) -> Result<usize, Refusal> {
    match found.len() {
        0 => Err(Refusal::NoInstance),
        1 => found.first().copied().ok_or(Refusal::NoInstance),
        _ => Err(Refusal::Ambiguous),
    }
}

fn first_label(host: &str) -> &str {
    host.split_once('.').map_or(host, |(first, _)| first)
}

/// The address in a host name that is made of one: `ip-10-0-1-23.…`,
/// `cn-hangzhou.10.0.0.1`, `10.0.0.1`.
fn address_in(host: &str) -> Option<String> {
    if let Some(rest) = first_label(host).strip_prefix("ip-") {
        let address = rest.replace('-', ".");
        return address
            .parse::<std::net::Ipv4Addr>()
            .ok()
            .map(|address| address.to_string());
    }
    let candidate = host
        .split_once('.')
        .filter(|(region, _)| region.contains('-'))
        .map_or(host, |(_, rest)| rest);
    candidate.parse::<IpAddr>().ok().map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(provider: Provider, id: &str, address: &str, host: &str) -> Instance {
        Instance {
            zone: "z-a".into(),
            private_address: address.into(),
            private_host: host.into(),
            ..Instance::bare(provider, "p1", "r", id)
        }
    }

    fn node(name: &str, provider_id: &str, address: &str) -> Node {
        Node {
            name: name.to_owned(),
            provider_id: provider_id.to_owned(),
            address: address.to_owned(),
            cluster: String::new(),
        }
    }

    fn host(name: &str) -> Target {
        Target {
            hosts: vec![name.to_owned()],
            ..Target::default()
        }
    }

    fn address(address: &str) -> Target {
        Target {
            address: address.to_owned(),
            ..Target::default()
        }
    }

    fn table(instances: Vec<Instance>, nodes: Vec<Node>) -> JoinTable {
        let instances: Vec<_> = instances.into_iter().map(Arc::new).collect();
        JoinTable::new(&instances, nodes)
    }

    fn joined<'a>(table: &'a JoinTable, target: &Target) -> Result<(&'a str, &'static str), Refusal> {
        let (index, method) = table.join(target)?;
        Ok((&*table.instance(index).expect("there").id, method))
    }

    #[test]
    fn provider_ids_of_every_cloud_are_read() {
        let subscription = "/subscriptions/s/resourcegroups/rg/providers/microsoft.compute";
        let azure = format!("{subscription}/virtualmachinescalesets/ss/virtualmachines/0");
        let gcp = Instance {
            name: "vm-1".into(),
            ..instance(Provider::Gcp, "4242", "", "")
        };
        let instances = vec![
            instance(Provider::Aws, "i-02bc", "", ""),
            gcp,
            instance(Provider::Azure, &azure, "", ""),
            instance(Provider::Aliyun, "i-bp1x", "", ""),
            instance(Provider::Tencent, "ins-abc", "", ""),
        ];
        let cased = "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/SS/virtualMachines/0";
        for (provider_id, id) in [
            ("aws:///us-west-2c/i-02bc", "i-02bc"),
            ("gce://p1/z-a/vm-1", "4242"),
            (cased, azure.as_str()),
            ("cn-hangzhou.i-bp1x", "i-bp1x"),
            ("alicloud://cn-hangzhou.i-bp1x", "i-bp1x"),
            ("qcloud:///100003/ins-abc", "ins-abc"),
        ] {
            let table = table(instances.clone(), vec![node("n1", provider_id, "")]);
            assert_eq!(joined(&table, &host("n1")), Ok((id, "provider_id")), "{provider_id}");
        }
        for none in [
            "aws:///az/fargate-10.0.0.1",
            "gce://p1/z-b/vm-1",
            "kind://docker/kind/n1",
            "gce://",
            "ack-hybrid://x",
        ] {
            let table = table(instances.clone(), vec![node("n1", none, "10.0.0.1")]);
            assert_eq!(joined(&table, &host("n1")), Err(Refusal::NoInstance), "{none}");
        }
    }

    #[test]
    fn an_address_of_two_machines_joins_to_neither_and_not_to_a_name_either() {
        let table = table(
            vec![
                instance(Provider::Aws, "i-1", "10.0.0.1", "a"),
                instance(Provider::Gcp, "2", "10.0.0.1", "b"),
                instance(Provider::Aws, "i-3", "10.0.0.3", "c"),
            ],
            Vec::new(),
        );
        assert_eq!(joined(&table, &address("10.0.0.3")), Ok(("i-3", "address")));
        let both = Target {
            hosts: vec!["c".to_owned()],
            ..address("10.0.0.1")
        };
        assert_eq!(joined(&table, &both), Err(Refusal::Ambiguous));
        assert_eq!(joined(&table, &host("10.0.0.1")), Err(Refusal::Ambiguous));
    }

    #[test]
    fn the_address_of_a_pod_is_no_machines() {
        let table = table(vec![instance(Provider::Aws, "i-1", "10.0.0.1", "")], Vec::new());
        let pod = Target {
            in_pod: true,
            ..address("10.0.0.1")
        };
        assert_eq!(joined(&table, &pod), Err(Refusal::NoInstance));
    }

    #[test]
    fn ids_go_before_addresses_and_have_to_exist() {
        let table = table(
            vec![
                instance(Provider::Aws, "i-1", "10.0.0.1", ""),
                instance(Provider::Tencent, "ins-2", "10.0.0.2", ""),
            ],
            Vec::new(),
        );
        let says = |ids: &[&str], at: &str| Target {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..address(at)
        };
        assert_eq!(
            joined(&table, &says(&["ins-2"], "10.0.0.1")),
            Ok(("ins-2", "instance_id"))
        );
        assert_eq!(
            joined(&table, &says(&["vm-of-somebody"], "10.0.0.1")),
            Ok(("i-1", "address"))
        );
        let elsewhere = Target {
            account: "p9".to_owned(),
            ..says(&["i-1"], "")
        };
        assert_eq!(joined(&table, &elsewhere), Err(Refusal::NoInstance));
    }

    #[test]
    fn host_names_are_read_as_the_clouds_make_them() {
        let table = table(
            vec![
                instance(
                    Provider::Aws,
                    "i-1",
                    "10.0.1.23",
                    "ip-10-0-1-23.us-west-2.compute.internal",
                ),
                instance(Provider::Aliyun, "i-bp1abc", "10.1.0.1", ""),
                instance(Provider::Azure, "/x/vm", "", "aks-gpu-1-vmss000001"),
                instance(Provider::Tencent, "ins-1", "10.2.0.5", ""),
            ],
            Vec::new(),
        );
        for (name, id) in [
            ("ip-10-0-1-23.us-west-2.compute.internal", "i-1"),
            ("ip-10-0-1-23", "i-1"),
            ("izbp1abcz", "i-bp1abc"),
            ("cn-hangzhou.10.1.0.1", "i-bp1abc"),
            ("aks-gpu-1-vmss000001", "/x/vm"),
            ("10.2.0.5", "ins-1"),
        ] {
            assert_eq!(joined(&table, &host(name)), Ok((id, "hostname")), "{name}");
        }
    }

    #[test]
    fn a_node_of_two_clusters_is_told_by_the_cluster() {
        let of = |cluster: &str, id: &str| Node {
            cluster: cluster.to_owned(),
            ..node("gpu-1", id, "")
        };
        let table = table(
            vec![
                instance(Provider::Aws, "i-1", "", ""),
                instance(Provider::Aws, "i-2", "", ""),
            ],
            vec![of("a", "aws:///z/i-1"), of("b", "aws:///z/i-2")],
        );
        assert_eq!(joined(&table, &host("gpu-1")), Err(Refusal::Ambiguous));
        let in_b = Target {
            cluster: "b".to_owned(),
            ..host("gpu-1")
        };
        assert_eq!(joined(&table, &in_b), Ok(("i-2", "provider_id")));
    }

    #[test]
    fn stopped_machines_hold_no_address() {
        let stopped = Instance {
            state: State::Stopped,
            ..instance(Provider::Aws, "i-1", "10.0.0.1", "")
        };
        let table = table(
            vec![stopped, instance(Provider::Aws, "i-2", "10.0.0.1", "")],
            Vec::new(),
        );
        assert_eq!(joined(&table, &address("10.0.0.1")), Ok(("i-2", "address")));
    }
}
