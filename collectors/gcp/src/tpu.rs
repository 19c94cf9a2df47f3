//! Nodes of the Cloud TPU API: TPU machines that Compute Engine does not list.

use std::{collections::HashMap, sync::Mutex};

use gpuwatch_collector_core::{Coalesced, CollectError, Context, Interner, Progress, Reason, Scope, TagRules, lock};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{
    Accelerators, GpuCount, Instance, Kind, Provider, State, Text,
    catalog::{self, AcceleratorFacts},
};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::{
    api::{Api, Page, Resource, Service, project},
    billing::{self, TpuScheduling},
    calls::{PROJECT, TPU_NODES},
    errors,
    labels::{self, Labels},
    listing::{ByRegion, Taken},
    place::{Place, last},
    value::{Time, Whole},
};

/// How long a project whose TPU API is off is not asked again: without the API
/// there are no nodes.
const ASK_AGAIN: SignedDuration = SignedDuration::from_hours(6);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodesPage {
    #[serde(default)]
    nodes: Rows<Node>,
    next_page_token: Option<String>,
    unreachable: Option<Vec<String>>,
}

impl Page for NodesPage {
    fn take_next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Node {
    name: Option<String>,
    id: Whole,
    accelerator_type: Option<String>,
    accelerator_config: Option<AcceleratorConfig>,
    state: Option<String>,
    scheduling_config: Option<TpuScheduling>,
    create_time: Time,
    labels: Option<Labels>,
    network_endpoints: Option<Vec<NetworkEndpoint>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AcceleratorConfig {
    #[serde(rename = "type")]
    generation: Option<String>,
    topology: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NetworkEndpoint {
    ip_address: Option<String>,
}

/// Lists TPU nodes.
#[derive(Debug)]
pub(crate) struct TpuLister {
    rules: TagRules,
    listings: Coalesced<ByRegion<Instance>>,
    /// Numbers of projects, where they had to be asked for.
    numbers: Coalesced<Option<String>>,
    /// Projects whose TPU API was off, and when.
    off: Mutex<HashMap<Text, Timestamp>>,
}

impl TpuLister {
    pub(crate) fn new(rules: TagRules) -> Self {
        Self {
            rules,
            listings: Coalesced::default(),
            numbers: Coalesced::default(),
            off: Mutex::default(),
        }
    }

    /// The nodes of a scope; none where the API is off in the project.
    ///
    /// # Errors
    /// When a zone of the region could not be reached. That the API is off
    /// elsewhere, in the quota project of a login say, is an error too: it says
    /// nothing about the project's nodes.
    pub(crate) async fn list(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<Vec<Instance>, CollectError> {
        let account = &scope.account.id;
        let then = lock(&self.off).get(account).copied();
        if then.is_some_and(|then| cx.now().duration_since(then) < ASK_AGAIN) {
            return Ok(Vec::new());
        }
        let listed = self
            .listings
            .get(account, cx, || self.whole_project(cx, api, scope))
            .await;
        match listed {
            Ok(listing) => {
                lock(&self.off).remove(account);
                Ok(listing.of(cx, &scope.region)?.to_vec())
            }
            Err(error) if self.is_off(cx, api, account, &error).await => {
                // Tasks of other regions that come by later find it here.
                if lock(&self.off).insert(account.clone(), cx.now()).is_none() {
                    tracing::info!(account = &**account, "the TPU API is off, so there are no TPU nodes");
                }
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.listings.retain(&keep);
        self.numbers.retain(&keep);
        lock(&self.off).retain(|account, _| keep(account));
    }

    /// Whether there are no nodes because the API is off in the project itself.
    async fn is_off(&self, cx: &Context, api: &Api, account: &Text, error: &CollectError) -> bool {
        if error.reason != Reason::NotEnabled || errors::is_off_in(error, account) {
            return error.reason == Reason::NotEnabled;
        }
        // Refusals name the number of a project.
        let number = self.numbers.get(account, cx, || number_of(cx, api, account)).await;
        number.is_ok_and(|number| number.as_deref().is_some_and(|number| errors::is_off_in(error, number)))
    }

    async fn whole_project(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<ByRegion<Instance>, CollectError> {
        let project = project(&scope.account.id)?;
        let path = format!("/v2/projects/{project}/locations/-/nodes");
        let resource = Resource {
            service: Service::Tpu,
            call: TPU_NODES,
            path: &path,
            query: &[("pageSize", "500")],
            about: None,
        };
        let mut interner = Interner::default();
        api.pages(
            cx,
            resource,
            || ByRegion::new(TPU_NODES),
            |listing, page: NodesPage| {
                for place in page.unreachable.unwrap_or_default() {
                    listing.missing().note(&place, "unreachable");
                }
                let mut progress = Progress {
                    records: page.nodes.total(),
                    new: 0,
                };
                // What has no zone belongs to no region's task: counted here.
                cx.skip("malformed", page.nodes.bad);
                for node in page.nodes.good {
                    let name = node.name.clone().unwrap_or_default();
                    let Some(place) = Place::parse(&name) else {
                        cx.skip("no_id", 1);
                        continue;
                    };
                    let rows = Rows {
                        good: vec![node],
                        bad: 0,
                    };
                    let added = listing.take(place, rows, |place, node| {
                        read(scope, &self.rules, &mut interner, place, &node)
                    });
                    progress.new += added.new;
                }
                progress
            },
        )
        .await
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    default_service_account: Option<String>,
}

impl Project {
    /// Its number, with which the address of its default account begins.
    fn number(&self) -> Option<&str> {
        let (number, _) = self.default_service_account.as_deref()?.split_once('-')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(number)
    }
}

/// The number of a project; `None` when it does not show.
async fn number_of(cx: &Context, api: &Api, account: &str) -> Result<Option<String>, CollectError> {
    let path = format!("/compute/v1/projects/{}", project(account)?);
    let resource = Resource {
        service: Service::Compute,
        call: PROJECT,
        path: &path,
        query: &[],
        about: None,
    };
    let found: Project = api.one(cx, resource).await?;
    Ok(found.number().map(str::to_owned))
}

fn read(scope: &Scope, rules: &TagRules, interner: &mut Interner, place: Place<'_>, node: &Node) -> Taken<Instance> {
    let name = last(node.name.as_deref().unwrap_or_default());
    let (false, Some(id)) = (name.is_empty() || place.region.is_empty(), node.id.0) else {
        return Taken::Bad("no_id");
    };
    let id = Text::from(id.to_string());
    let no_labels = Labels::new();
    let ownership = labels::read(rules, node.labels.as_ref().unwrap_or(&no_labels), "", interner);
    let state = state(node.state.as_deref().unwrap_or_default());
    let generation = node.generation();
    let kind = node.accelerator_type.as_deref().unwrap_or_default();
    let address = node
        .network_endpoints
        .iter()
        .flatten()
        .find_map(|endpoint| endpoint.ip_address.as_deref());
    let instance = Instance {
        provider: Provider::Gcp,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: interner.text(place.region),
        id: id.clone(),
        name: Text::from(name),
        zone: interner.text(place.zone),
        instance_type: interner.text(if kind.is_empty() { &generation } else { kind }),
        kind: Kind::Vm,
        state,
        billing: billing::of_node(node.scheduling_config.as_ref().unwrap_or(&TpuScheduling::default())),
        accelerators: accelerators(kind, &generation, node.chips()),
        launched: node.create_time.0,
        expires: None,
        auto_renew: None,
        stopped: None,
        owner: ownership.owner,
        cluster: ownership.cluster,
        pool: ownership.pool,
        platform: Text::default(),
        tenancy: Text::default(),
        reservation_id: Text::default(),
        private_address: Text::from(address.unwrap_or_default()),
        private_host: Text::default(),
        tags: ownership.kept,
    };
    Taken::Row(id, instance)
}

fn state(word: &str) -> State {
    match word {
        "CREATING" | "STARTING" | "RESTARTING" | "REIMAGING" => State::Starting,
        "READY" => State::Running,
        // Of no use while it is repaired, and charged.
        "REPAIRING" => State::StoppedBilled,
        "STOPPING" | "DELETING" => State::Stopping,
        "STOPPED" | "PREEMPTED" | "TERMINATED" => State::Stopped,
        _ => State::Unknown,
    }
}

impl Node {
    /// The generation as accelerator types spell it (`v5litepod`).
    fn generation(&self) -> String {
        let kind = self.accelerator_type.as_deref().unwrap_or_default();
        if let Some((generation, _)) = kind.split_once('-') {
            return generation.to_owned();
        }
        let stated = self
            .accelerator_config
            .as_ref()
            .and_then(|config| config.generation.as_deref());
        match stated.unwrap_or_default() {
            "" => kind.to_owned(),
            "V5LITE_POD" => "v5litepod".to_owned(),
            other => other.to_ascii_lowercase(),
        }
    }

    /// Chips of the whole node: the product of its topology, or else what its
    /// type says, in which older generations count cores, two to a chip.
    fn chips(&self) -> Option<GpuCount> {
        let topology = self
            .accelerator_config
            .as_ref()
            .and_then(|config| config.topology.as_deref());
        if let Some(chips) = topology.and_then(product) {
            return Some(GpuCount::from(chips));
        }
        let (generation, size) = self.accelerator_type.as_deref()?.split_once('-')?;
        let size = f64::from(size.parse::<u32>().ok()?);
        match generation {
            "v2" | "v3" | "v4" | "v5p" => GpuCount::new(size / 2.0),
            "v5litepod" | "v6e" => GpuCount::new(size),
            _ => None,
        }
    }
}

/// `2x2x4` → 16.
fn product(topology: &str) -> Option<u32> {
    let chips = topology
        .split('x')
        .try_fold(1u32, |chips, side| chips.checked_mul(side.trim().parse().ok()?))?;
    (chips > 0).then_some(chips)
}

fn accelerators(kind: &str, generation: &str, chips: Option<GpuCount>) -> Accelerators {
    catalog::builtin().accelerators(&AcceleratorFacts {
        provider: Provider::Gcp,
        instance_type: kind,
        vendor: Some("google"),
        model: generation,
        count: chips,
        memory_mib: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Node {
        serde_json::from_str(json).unwrap()
    }

    fn chips(kind: &str) -> Option<f64> {
        node(&format!(r#"{{"acceleratorType": "{kind}"}}"#))
            .chips()
            .map(GpuCount::get)
    }

    #[test]
    fn types_count_cores_or_chips_by_generation() {
        for (kind, count) in [
            ("v2-8", Some(4.0)),
            ("v3-32", Some(16.0)),
            ("v4-8", Some(4.0)),
            ("v5p-8", Some(4.0)),
            ("v5litepod-8", Some(8.0)),
            ("v6e-256", Some(256.0)),
            ("v9x-8", None),
            ("v4", None),
            ("v4-x", None),
            ("", None),
        ] {
            assert_eq!(chips(kind), count, "{kind}");
        }
    }

    #[test]
    fn a_topology_comes_before_the_type() {
        let shaped = |topology: &str| {
            let json = format!(
                r#"{{"acceleratorType": "v9x-8", "acceleratorConfig": {{"type": "V5P", "topology": "{topology}"}}}}"#
            );
            node(&json).chips().map(GpuCount::get)
        };
        assert_eq!(shaped("2x2x4"), Some(16.0));
        assert_eq!(shaped("2x4"), Some(8.0));
        for bad in ["", "x", "2x", "0x4", "99999x99999x99999"] {
            assert_eq!(shaped(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_generation_has_its_model() {
        for (json, model) in [
            (r#"{"acceleratorType": "v2-8"}"#, "TPU v2"),
            (r#"{"acceleratorType": "v4-8"}"#, "TPU v4"),
            (r#"{"acceleratorType": "v5litepod-8"}"#, "TPU v5e"),
            (
                r#"{"acceleratorConfig": {"type": "V5LITE_POD", "topology": "2x4"}}"#,
                "TPU v5e",
            ),
            (
                r#"{"acceleratorConfig": {"type": "V5P", "topology": "2x2x1"}}"#,
                "TPU v5p",
            ),
            (r#"{"acceleratorType": "v6e-4"}"#, "TPU v6e"),
            (r#"{"acceleratorType": "v9x-4"}"#, "v9x"),
        ] {
            let node = node(json);
            let found = accelerators(
                node.accelerator_type.as_deref().unwrap_or_default(),
                &node.generation(),
                node.chips(),
            );
            assert_eq!(&*found.model, model, "{json}");
        }
    }

    #[test]
    fn the_number_of_a_project_is_that_of_its_default_account() {
        let number = |account: &str| {
            let json = serde_json::json!({"id": "7", "defaultServiceAccount": account});
            let found: Project = serde_json::from_value(json).unwrap();
            found.number().map(str::to_owned)
        };
        let usual = number("123456-compute@developer.gserviceaccount.com");
        assert_eq!(usual.as_deref(), Some("123456"));
        for other in ["", "-x", "own@p.iam.gserviceaccount.com", "12ab-compute@x"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_page_is_read_or_refused(page in crate::samples::any_json()) {
            if let Ok(page) = serde_json::from_value::<NodesPage>(page) {
                let scope = Scope {
                    provider: Provider::Gcp,
                    account: gpuwatch_collector_core::Account { id: "p".into(), name: "P".into() },
                    region: "r".into(),
                };
                let place = Place { region: "us-central1", zone: "us-central1-a" };
                for node in page.nodes.good {
                    let _ = read(&scope, &TagRules::default(), &mut Interner::default(), place, &node);
                }
            }
        }

        #[test]
        fn any_type_and_topology_can_be_counted(kind in ".{0,20}", topology in "[0-9x ]{0,20}") {
            let node = Node {
                accelerator_type: Some(kind),
                accelerator_config: Some(AcceleratorConfig { generation: None, topology: Some(topology) }),
                ..Node::default()
            };
            let _ = (node.chips(), node.generation());
        }
    }
}
