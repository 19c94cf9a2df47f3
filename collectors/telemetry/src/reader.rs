//! Asks a server for the newest samples of everything it has.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use gpuwatch_collector_core::{Clock, CollectError};
use gpuwatch_inventory::{GpuUsage, Instance};
use jiff::Timestamp;

use crate::{
    assemble::Memory,
    client::{Client, QueryAnswer, QueryError},
    device::{Device, Target},
    family::{FAMILIES, Family, Metric, Quantity},
    gather::Gathering,
    host,
    join::{JoinTable, Node},
    neuron,
    options::TelemetryOptions,
    round::Round,
    select::{self, Shard},
};

/// Queries in flight at once.
const CONCURRENCY: usize = 4;
/// Queries started together.
const BATCH: usize = 16;
/// Which exporters there are is looked up again after so many rounds.
const DISCOVER_EVERY: u32 = 12;
/// Waits between attempts of a query.
const DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// A server's hint to come back later is followed up to this.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Reads one server.
#[derive(Debug)]
pub struct Reader {
    options: TelemetryOptions,
    client: Client,
    clock: Clock,
    rounds: u32,
    /// Present metrics and how many series each has.
    present: BTreeMap<String, usize>,
    /// By metric: a number of series that is too many for one query, whatever
    /// their real number is.
    refused: HashMap<String, usize>,
    memory: Memory,
}

impl Reader {
    /// A reader of this server.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(options: TelemetryOptions) -> Result<Self, CollectError> {
        Ok(Self {
            client: Client::new(&options)?,
            options,
            clock: Clock::System,
            rounds: 0,
            present: BTreeMap::new(),
            refused: HashMap::new(),
            memory: Memory::default(),
        })
    }

    /// Reads the time from this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How the server is asked.
    #[must_use]
    pub fn options(&self) -> &TelemetryOptions {
        &self.options
    }

    /// The client, for other questions.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads everything once and joins it to these instances.
    pub async fn round(&mut self, instances: &[Arc<Instance>]) -> Round {
        let now = self.clock.now();
        let mut round = Round::default();
        if (self.rounds.is_multiple_of(DISCOVER_EVERY) || self.present.is_empty())
            && let Err(error) = self.discover(now).await
        {
            // Of an unreachable server nothing else can be learnt.
            round.failures.push(error.into_failure());
            return round;
        }
        self.rounds = self.rounds.wrapping_add(1);
        let nodes = match self.nodes(now).await {
            Ok(nodes) => nodes,
            Err(error) => {
                // Without the nodes a weaker join could be a wrong one.
                round.failures.push(error.into_failure());
                return round;
            }
        };
        let table = JoinTable::new(instances, nodes);
        let mut gathering = Gathering::new(table, self.start_of_folding(now), round);
        for family in FAMILIES {
            for (name, series) in self.read_family(family, now, &mut gathering).await {
                let known = self.refused.entry(name).or_default();
                *known = series.max(*known);
            }
        }
        self.read_neuron(now, &mut gathering).await;
        self.read_hosts(now, &mut gathering).await;
        self.memory.finish(gathering, now)
    }

    fn start_of_folding(&self, now: Timestamp) -> i64 {
        let interval = i64::try_from(self.options.interval.as_millis()).unwrap_or(i64::MAX);
        now.as_millisecond().saturating_sub(interval)
    }

    /// Finds out which metrics the server has, one family after the other: all
    /// of them at once can be more series than a server takes.
    async fn discover(&mut self, now: Timestamp) -> Result<(), QueryError> {
        let others: Vec<&str> = neuron::NAMES
            .iter()
            .copied()
            .chain([host::PROBE, "kube_node_info"])
            .collect();
        let mut present = self.count(&others.join("|"), "", now).await?;
        for family in FAMILIES {
            match self.count(&family.names(), family.matcher, now).await {
                Ok(counted) => present.extend(counted),
                // So many that they cannot even be counted.
                Err(QueryError::TooLarge(_)) => {
                    present.extend(family.metrics.iter().map(|metric| (metric.name.to_owned(), usize::MAX)));
                }
                Err(error) => return Err(error),
            }
        }
        self.present = present;
        Ok(())
    }

    /// Series by name, of names that fit a regular expression.
    async fn count(&self, names: &str, matcher: &str, now: Timestamp) -> Result<BTreeMap<String, usize>, QueryError> {
        let by_name = format!("__name__=~\"{names}\"");
        let selector = self.selector("", &[&by_name, matcher]);
        let answer = self.ask(&format!("count by (__name__) ({selector})"), now).await?;
        let counted = answer.series.iter().filter_map(|series| {
            let count = series.samples().last()?.value;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked by the filter"
            )]
            let count = Some(count).filter(|count| (0.0..1e12).contains(count))? as usize;
            Some((series.labels.get("__name__").to_owned(), count))
        });
        Ok(counted.collect())
    }

    fn matchers(&self) -> impl Iterator<Item = &str> {
        self.options.matchers.iter().map(String::as_str)
    }

    fn selector(&self, name: &str, more: &[&str]) -> String {
        select::selector(name, self.matchers().chain(more.iter().copied()))
    }

    fn has(&self, name: &str) -> bool {
        self.present.contains_key(name)
    }

    /// A query, again when that may help.
    async fn ask(&self, query: &str, now: Timestamp) -> Result<QueryAnswer, QueryError> {
        let mut delays = DELAYS.into_iter();
        loop {
            let error = match self.client.query(query, now).await {
                Ok(answer) => return Ok(answer),
                Err(QueryError::Failed(error)) if error.retryable => error,
                Err(error) => return Err(error),
            };
            let Some(delay) = delays.next() else {
                return Err(error.into());
            };
            let delay = error.retry_after.map_or(delay, |hint| hint.max(delay));
            if delay > LONGEST_DELAY {
                return Err(error.into());
            }
            self.clock.sleep(delay).await;
        }
    }

    async fn nodes(&self, now: Timestamp) -> Result<Vec<Node>, QueryError> {
        if !self.has("kube_node_info") {
            return Ok(Vec::new());
        }
        let answer = self.ask(&self.selector("kube_node_info", &[]), now).await?;
        let nodes = answer.series.iter().map(|series| Node {
            name: series.labels.first(&["node", "exported_node"]).to_lowercase(),
            provider_id: series.labels.get("provider_id").to_owned(),
            address: series.labels.get("internal_ip").to_lowercase(),
            cluster: series.labels.first(&["cluster", "cluster_name"]).to_owned(),
        });
        Ok(nodes.filter(|node| !node.name.is_empty()).collect())
    }

    /// Reads a family; gives the metrics that had to be divided further, with a
    /// number of series that says how far.
    async fn read_family(
        &self,
        family: &'static Family,
        now: Timestamp,
        gathering: &mut Gathering,
    ) -> BTreeMap<String, usize> {
        let present: Vec<(String, &'static Metric)> = self
            .present
            .keys()
            .filter_map(|name| Some((name.clone(), family.metric(name)?)))
            .collect();
        let mut refused = BTreeMap::new();
        if present.is_empty() {
            return refused;
        }
        gathering.round.families.push(family.word);
        let window = select::window(self.options.interval).as_secs();
        let mut waiting: Vec<(&str, &'static Metric, Shard)> = Vec::new();
        for (name, metric) in &present {
            let known = self.present.get(name).copied().unwrap_or(0);
            // What was refused before is not asked for again.
            let refused = self.refused.get(name).copied().unwrap_or(0);
            let shards = Shard::for_series(known.max(refused), self.options.series_per_query);
            waiting.extend(shards.into_iter().map(|shard| (name.as_str(), *metric, shard)));
        }
        while !waiting.is_empty() {
            let batch = waiting.split_off(waiting.len().saturating_sub(BATCH));
            let mut queries: Vec<BoxFuture<'_, _>> = Vec::with_capacity(batch.len());
            for (name, metric, shard) in batch {
                let selector = self.selector(name, &[family.matcher, &shard.matcher(family)]);
                // What stays the same is asked for as it is now.
                let is_constant = matches!(metric.quantity, Quantity::Info | Quantity::SliceMode);
                let query = if is_constant {
                    selector
                } else {
                    format!("{selector}[{window}s]")
                };
                queries.push(async move { (name, metric, shard, self.ask(&query, now).await) }.boxed());
            }
            let mut answers = futures::stream::iter(queries).buffered(CONCURRENCY);
            while let Some((name, metric, shard, answer)) = answers.next().await {
                match answer {
                    Ok(answer) => {
                        gathering.warnings(answer.warnings);
                        let id_labels = &self.options.instance_id_labels;
                        gathering.take(family, metric, answer.series, id_labels, &self.memory);
                    }
                    Err(error @ QueryError::TooLarge(_)) => {
                        let parts = shard.parts();
                        if parts.is_empty() {
                            gathering.round.failures.push(error.into_failure());
                        }
                        refused.insert(name.to_owned(), shard.series_beyond(self.options.series_per_query));
                        waiting.extend(parts.into_iter().map(|part| (name, metric, part)));
                    }
                    Err(error) => gathering.round.failures.push(error.into_failure()),
                }
            }
        }
        refused
    }

    async fn read_neuron(&self, now: Timestamp, gathering: &mut Gathering) {
        if !neuron::NAMES.iter().any(|name| self.has(name)) {
            return;
        }
        gathering.round.families.push(neuron::WORD);
        let window = select::window(self.options.interval).as_secs();
        let mut found = neuron::Found::default();
        for name in neuron::NAMES {
            let query = format!("{}[{window}s]", self.selector(name, neuron::matchers(name)));
            match self.ask(&query, now).await {
                Ok(answer) => {
                    gathering.warnings(answer.warnings);
                    for series in &answer.series {
                        let device = Device {
                            uuid: String::new(),
                            index: GpuUsage::ALL_CARDS.to_owned(),
                            slice: None,
                        };
                        if let Some(index) = gathering.join(series, &device, &self.options.instance_id_labels) {
                            found.add(index, name, series);
                        }
                    }
                }
                Err(error) => {
                    // Without all of them, absence would be taken for idleness.
                    gathering.round.failures.push(error.into_failure());
                    return;
                }
            }
        }
        gathering.whole.extend(found.usage());
    }

    async fn read_hosts(&self, now: Timestamp, gathering: &mut Gathering) {
        if !self.has(host::PROBE) {
            return;
        }
        let matchers: Vec<&str> = self.matchers().collect();
        for (weak, query) in host::queries(&matchers) {
            match self.ask(&query, now).await {
                Ok(answer) => {
                    gathering.warnings(answer.warnings);
                    for series in &answer.series {
                        let target = Target::of(&series.labels, &self.options.instance_id_labels);
                        let Ok((index, _)) = gathering.target(target) else {
                            continue;
                        };
                        let Some(sample) = series.samples().last() else {
                            continue;
                        };
                        weak.set(gathering.hosts.entry(index).or_default(), sample);
                    }
                }
                // Weak signals of all machines there are, most of them without
                // a GPU: a round is good without them.
                Err(QueryError::TooLarge(message)) => {
                    tracing::debug!(telemetry = %self.options.name, ?weak, message, "too many machines for a weak signal");
                }
                Err(error) => gathering.round.failures.push(error.into_failure()),
            }
        }
    }
}
