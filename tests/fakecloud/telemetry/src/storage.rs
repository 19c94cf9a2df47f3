//! What a Prometheus that scrapes every target would have stored: samples every
//! thirty seconds, worked out when they are asked for.

use std::sync::Arc;

use gpuwatch_fakecloud_core::{random::fnv1a, workload::Observer};
use jiff::Timestamp;
use promql_parser::label::{METRIC_NAME, Matcher};

use crate::{
    exporters,
    host::{Host, Tie},
    source::{Labels, Source, labels},
};

/// Milliseconds between scrapes.
pub const SCRAPE_MILLIS: i64 = 30_000;

/// A scrape target.
pub struct Target {
    /// Labels that the scrape configuration gives.
    pub labels: Labels,
    /// Path of its page on the exporters' server.
    pub path: String,
    /// The series, as the exporter shows them, each with its machine.
    pub series: Vec<(Arc<Host>, Source)>,
    /// Whether its samples end when its machine's agent has died.
    dies: bool,
    /// When in the thirty seconds it is scraped.
    phase: i64,
}

impl Target {
    fn new(job: &str, instance: &str, path: &str, more: Labels, series: Vec<(Arc<Host>, Source)>, dies: bool) -> Self {
        let mut labels = labels([("job", job), ("instance", instance)]);
        // A label without a value is none.
        labels.extend(more.into_iter().filter(|(_, value)| !value.is_empty()));
        let phase = i64::try_from(fnv1a(path.as_bytes()) % 30_000).unwrap_or(0);
        Self {
            labels,
            path: path.to_owned(),
            series,
            dies,
            phase,
        }
    }

    /// Whether it answers a scrape at a time; `now` is the present.
    #[must_use]
    pub fn answers(&self, at: Timestamp, now: Timestamp) -> bool {
        !self.dies
            || self
                .series
                .first()
                .is_none_or(|(host, _)| host.workload.is_observed(at, now))
    }

    /// Labels of a series as they are stored: where target and exporter have
    /// the same label, the exporter's is renamed.
    fn stored(&self, source: &Source) -> Labels {
        let mut stored = self.labels.clone();
        for (name, value) in source.labels.iter().filter(|(_, value)| !value.is_empty()) {
            let name = if self.labels.contains_key(name) {
                format!("exported_{name}")
            } else {
                name.clone()
            };
            stored.insert(name, value.clone());
        }
        stored.insert(METRIC_NAME.to_owned(), source.name.to_owned());
        stored
    }
}

/// A stored series and its samples: milliseconds and values.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Labels, the name among them.
    pub labels: Labels,
    /// In the order of time.
    pub samples: Vec<(i64, f64)>,
}

/// All targets.
pub struct Storage {
    targets: Vec<Target>,
    names: Vec<&'static str>,
}

impl Storage {
    /// The targets of these machines: those that an exporter observes.
    #[must_use]
    pub fn new(hosts: Vec<Host>) -> Self {
        let hosts: Vec<Arc<Host>> = hosts.into_iter().map(Arc::new).collect();
        let mut targets = Vec::new();
        for host in hosts.iter().filter(|host| host.workload.observer == Observer::Exporter) {
            targets.extend(targets_of(host));
        }
        let nodes: Vec<(Arc<Host>, Source)> = hosts
            .iter()
            .flat_map(|host| {
                exporters::nodes([&**host])
                    .into_iter()
                    .map(|source| (Arc::clone(host), source))
            })
            .collect();
        if !nodes.is_empty() {
            let more = labels([("namespace", "kube-system"), ("pod", "kube-state-metrics-0")]);
            targets.push(Target::new(
                "kube-state-metrics",
                "100.64.0.9:8080",
                "kube-state-metrics",
                more,
                nodes,
                false,
            ));
        }
        let mut names: Vec<&'static str> = targets
            .iter()
            .flat_map(|target| target.series.iter().map(|(_, source)| source.name))
            .collect();
        names.sort_unstable();
        names.dedup();
        Self { targets, names }
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Series that match, with their samples in `[from, to]`; those without a
    /// sample are left out.
    #[must_use]
    pub fn select(&self, matchers: &[Matcher], from: i64, to: i64, now: Timestamp) -> Vec<Stored> {
        let on_name = |matcher: &&Matcher| matcher.name == METRIC_NAME;
        let names: Vec<&str> = self
            .names
            .iter()
            .copied()
            .filter(|name| matchers.iter().filter(on_name).all(|matcher| matcher.is_match(name)))
            .collect();
        let mut found = Vec::new();
        if names.is_empty() {
            return found;
        }
        for target in &self.targets {
            // Target labels are never renamed: a target that does not fit has
            // no series that does.
            let fits = |matcher: &Matcher| {
                target
                    .labels
                    .get(&matcher.name)
                    .is_none_or(|value| matcher.is_match(value))
            };
            if !matchers.iter().all(fits) {
                continue;
            }
            for (host, source) in target.series.iter().filter(|(_, source)| names.contains(&source.name)) {
                let labels = target.stored(source);
                let all_match =
                    |matcher: &Matcher| matcher.is_match(labels.get(&matcher.name).map_or("", String::as_str));
                if !matchers.iter().all(all_match) {
                    continue;
                }
                let mut samples = Vec::new();
                let mut at = from + (target.phase - from).rem_euclid(SCRAPE_MILLIS);
                while at <= to.min(now.as_millisecond()) {
                    if let Ok(time) = Timestamp::from_millisecond(at)
                        && target.answers(time, now)
                        && let Some(value) = source.value(host, time)
                    {
                        samples.push((at, value));
                    }
                    at += SCRAPE_MILLIS;
                }
                if !samples.is_empty() {
                    found.push(Stored { labels, samples });
                }
            }
        }
        found
    }
}

fn targets_of(host: &Arc<Host>) -> [Target; 2] {
    let (job, port) = exporters::job(host.exporter);
    let mut more = match host.tie {
        Tie::Node => labels([
            ("namespace", "gpu-operator"),
            ("pod", &format!("{job}-{}", host.uuid(0).get(..5).unwrap_or_default())),
            ("container", "exporter"),
        ]),
        Tie::Address => Labels::new(),
        Tie::Labels => labels([
            ("cloud_instance_id", &host.id),
            ("cloud_account", &host.account),
            ("cloud_provider", &host.provider),
            ("cloud_region", &host.region),
        ]),
    };
    let own = |series: Vec<Source>| series.into_iter().map(|source| (Arc::clone(host), source)).collect();
    let address = host.scraped_at();
    let mut gpu_labels = more.clone();
    if host.tie == Tie::Node && !exporters::names_its_host(host.exporter) {
        // What everybody adds who runs such an exporter in a cluster.
        gpu_labels.insert("node".to_owned(), host.node());
    }
    let gpu = Target::new(
        job,
        &format!("{address}:{port}"),
        &format!("{}/gpu", path_of(host)),
        gpu_labels,
        own(exporters::gpu(host)),
        true,
    );
    if host.tie == Tie::Node {
        // It runs on the network of its node.
        more.insert("pod".to_owned(), "node-exporter-1".to_owned());
        more.insert("node".to_owned(), host.node());
    }
    let machine = own(exporters::machine(host));
    let machine = Target::new(
        "node-exporter",
        &format!("{address}:9100"),
        &format!("{}/machine", path_of(host)),
        more,
        machine,
        false,
    );
    [gpu, machine]
}

/// A path for any id.
fn path_of(host: &Host) -> String {
    format!("{}-{:016x}", host.provider, fnv1a(host.id.as_bytes()))
}
