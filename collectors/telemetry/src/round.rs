//! One round: asks a server for the newest samples of everything it has, and
//! joins them to instances.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use gpuwatch_collector_core::{Clock, CollectError};
use gpuwatch_inventory::{Bucket, GpuUsage, HostUsage, Hour, Instance, InstanceUsage, Measure, Text};
use jiff::Timestamp;

use crate::{
    answer::Series,
    card::{Card, Readings},
    client::{Client, QueryAnswer, QueryError},
    device::{Device, Slice, Target},
    errors::{CardErrors, Kind},
    family::{FAMILIES, Family, Metric, Quantity},
    host,
    join::{JoinTable, Node, Refusal},
    neuron,
    options::TelemetryOptions,
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
/// A card that has been silent this much longer than its machine's newest one
/// was taken out or replaced.
const REPLACED_MILLIS: i64 = 2 * 60 * 1000;
/// What is remembered of a card that is gone.
const FORGET_MILLIS: i64 = 24 * 3600 * 1000;

/// Identity of an instance in maps.
pub type InstanceKey = (gpuwatch_inventory::Provider, Text, Text, Text);

/// Usage of one card, or of a machine (`gpu` is empty), in one hour, to be
/// added to the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The instance.
    pub instance: Arc<Instance>,
    /// The card, as in [`GpuUsage::gpu`].
    pub gpu: Text,
    /// What was measured.
    pub measure: Measure,
    /// When.
    pub hour: Hour,
    /// How much: readings that were in no earlier round.
    pub bucket: Bucket,
}

/// What a round found.
#[derive(Debug, Default)]
pub struct Round {
    /// One per joined instance.
    pub usage: Vec<InstanceUsage>,
    /// For the history.
    pub folded: Vec<Folded>,
    /// What failed; the rest is there all the same.
    pub failures: Vec<CollectError>,
    /// Cards joined, by method.
    pub joined: BTreeMap<&'static str, u64>,
    /// Cards not joined, by reason.
    pub unjoined: BTreeMap<Refusal, u64>,
    /// Instances whose telemetry cannot be theirs.
    pub refused: Vec<InstanceKey>,
    /// Which machines the cards without an instance are on.
    pub examples: BTreeSet<String>,
    /// Exporters found.
    pub families: Vec<&'static str>,
    /// Readings that were out of range.
    pub bad_values: u64,
}

/// What is remembered between rounds.
#[derive(Debug, Default)]
struct Memory {
    rounds: u32,
    /// Present metrics and how many series each has.
    present: BTreeMap<String, usize>,
    /// By metric: a number of series that is too many for one query, whatever
    /// their real number is.
    refused: HashMap<String, usize>,
    cards: HashMap<(InstanceKey, String), CardMemory>,
    hosts: HashMap<InstanceKey, i64>,
}

#[derive(Debug, Default)]
struct CardMemory {
    /// Samples up to this time are in the history.
    folded: i64,
    errors: CardErrors,
    /// Where only its id is in the series: the index that the exporter's
    /// information gives.
    known: bool,
}

/// Reads one server.
#[derive(Debug)]
pub struct Reader {
    options: TelemetryOptions,
    client: Client,
    clock: Clock,
    memory: Memory,
}

/// A card within a round: the instance in the join table, and the card's id.
type CardId = (usize, String);

/// Everything that one round collects before it is put together.
struct Gathering {
    table: JoinTable,
    targets: HashMap<Target, Result<(usize, &'static str), Refusal>>,
    cards: HashMap<CardId, Card>,
    methods: HashMap<usize, &'static str>,
    unjoined: HashMap<Refusal, BTreeSet<(Target, Device)>>,
    hosts: HashMap<usize, HostUsage>,
    whole: HashMap<usize, GpuUsage>,
    /// Of a card seen for the first time, samples up to this time may have
    /// been counted before a restart.
    start: i64,
    round: Round,
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
        if (self.memory.rounds.is_multiple_of(DISCOVER_EVERY) || self.memory.present.is_empty())
            && let Err(error) = self.discover(now).await
        {
            // Of an unreachable server nothing else can be learnt.
            round.failures.push(error.into_failure());
            return round;
        }
        self.memory.rounds = self.memory.rounds.wrapping_add(1);
        let nodes = match self.nodes(now).await {
            Ok(nodes) => nodes,
            Err(error) => {
                // Without the nodes a weaker join could be a wrong one.
                round.failures.push(error.into_failure());
                return round;
            }
        };
        let mut gathering = Gathering {
            table: JoinTable::new(instances, nodes),
            targets: HashMap::new(),
            cards: HashMap::new(),
            methods: HashMap::new(),
            unjoined: HashMap::new(),
            hosts: HashMap::new(),
            whole: HashMap::new(),
            start: self.start_of_folding(now),
            round,
        };
        for family in FAMILIES {
            for (name, series) in self.read_family(family, now, &mut gathering).await {
                let known = self.memory.refused.entry(name).or_default();
                *known = series.max(*known);
            }
        }
        self.read_neuron(now, &mut gathering).await;
        self.read_hosts(now, &mut gathering).await;
        self.finish(gathering, now)
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
        self.memory.present = present;
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
        self.memory.present.contains_key(name)
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
            .memory
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
            let known = self.memory.present.get(name).copied().unwrap_or(0);
            // What was refused before is not asked for again.
            let refused = self.memory.refused.get(name).copied().unwrap_or(0);
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
                        self.take(family, metric, answer.series, gathering);
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

    /// Takes the series of one metric.
    fn take(&self, family: &'static Family, metric: &Metric, series: Vec<Series>, gathering: &mut Gathering) {
        let mut readings: HashMap<CardId, Readings> = HashMap::new();
        for series in series {
            let Some(device) = Device::of(&series.labels, family) else {
                continue;
            };
            let Some(index) = gathering.join(&series, &device, &self.options.instance_id_labels) else {
                continue;
            };
            let id = if device.uuid.is_empty() {
                device.index.clone()
            } else {
                device.uuid.clone()
            };
            let id: CardId = (index, id);
            let card = gathering.cards.entry(id.clone()).or_default();
            card.uuid.clone_from(&device.uuid);
            if card.index.is_empty() {
                card.index.clone_from(&device.index);
            }
            match metric.quantity {
                Quantity::Info => {}
                Quantity::SliceMode => {
                    if series.samples().last().is_some_and(|sample| sample.value >= 1.0) {
                        card.set_sliced();
                    }
                }
                // Read once all cards are known.
                Quantity::LastError | Quantity::RecentErrors | Quantity::TotalErrors => {
                    card.errors.push((metric.quantity, series));
                }
                _ => {
                    card.held_by(&series.labels);
                    add(readings.entry(id).or_default(), device.slice, &series, metric.scale);
                }
            }
        }
        for (id, readings) in readings {
            let folded = self
                .card_memory(gathering, &id)
                .map_or(gathering.start, |memory| memory.folded);
            if let Some(card) = gathering.cards.get_mut(&id) {
                gathering.round.bad_values += card.take(metric.quantity, readings, folded);
            }
        }
    }

    fn card_memory(&self, gathering: &Gathering, (index, card): &CardId) -> Option<&CardMemory> {
        let instance = gathering.table.instance(*index)?;
        self.memory.cards.get(&(key(instance), card.clone()))
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

    /// Puts the round together and remembers what the next one needs.
    fn finish(&mut self, gathering: Gathering, now: Timestamp) -> Round {
        let Gathering {
            table,
            cards,
            methods,
            mut unjoined,
            mut hosts,
            mut whole,
            mut round,
            ..
        } = gathering;
        let mut of_instance: BTreeMap<usize, Vec<(String, Card)>> = BTreeMap::new();
        for ((index, id), card) in cards {
            of_instance.entry(index).or_default().push((id, card));
        }
        let all: BTreeSet<usize> = of_instance
            .keys()
            .chain(hosts.keys())
            .chain(whole.keys())
            .copied()
            .collect();
        for index in all {
            let Some(instance) = table.instance(index) else {
                continue;
            };
            let mut cards = of_instance.remove(&index).unwrap_or_default();
            drop_replaced(&mut cards);
            if !fits(instance, cards.len()) {
                let count = u64::try_from(cards.len()).unwrap_or(u64::MAX);
                *round.unjoined.entry(Refusal::TooManyCards).or_default() += count;
                round.examples.insert(instance.id.to_string());
                round.refused.push(key(instance));
                cards.clear();
            }
            let mut gpus = self.readings(instance, cards, now, &mut round);
            if let Some(usage) = whole.remove(&index) {
                self.fold_whole(instance, &usage, &mut round);
                gpus.push(usage);
            }
            if let Some(method) = methods.get(&index) {
                *round.joined.entry(method).or_default() += u64::try_from(gpus.len()).unwrap_or(u64::MAX);
            }
            let host = hosts.remove(&index).unwrap_or_default();
            self.fold_host(instance, &host, &mut round);
            if !gpus.is_empty() || host.at.is_some() {
                round.usage.push(InstanceUsage {
                    provider: instance.provider,
                    account: instance.account.clone(),
                    region: instance.region.clone(),
                    id: instance.id.clone(),
                    gpus,
                    host,
                    lag: Duration::ZERO,
                });
            }
        }
        for (refusal, devices) in &mut unjoined {
            *round.unjoined.entry(*refusal).or_default() += u64::try_from(devices.len()).unwrap_or(u64::MAX);
            round.examples.extend(devices.iter().map(|(target, _)| target.title()));
        }
        let oldest = now.as_millisecond().saturating_sub(FORGET_MILLIS);
        self.memory.cards.retain(|_, card| card.folded > oldest);
        self.memory.hosts.retain(|_, folded| *folded > oldest);
        round
    }

    /// The readings of an instance's cards, in their order.
    fn readings(
        &mut self,
        instance: &Arc<Instance>,
        mut cards: Vec<(String, Card)>,
        now: Timestamp,
        round: &mut Round,
    ) -> Vec<GpuUsage> {
        cards.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)));
        let indexes: BTreeSet<&str> = cards.iter().map(|(_, card)| card.index.as_str()).collect();
        let by_index = indexes.len() == cards.len() && !indexes.contains("");
        let memory = memory_of_card(instance);
        let start = self.start_of_folding(now);
        let mut gpus = Vec::with_capacity(cards.len());
        for (id, mut card) in cards {
            let gpu: Text = if by_index {
                card.index.as_str().into()
            } else {
                id.as_str().into()
            };
            let remembered = self.memory.cards.entry((key(instance), id)).or_default();
            read_errors(&mut remembered.errors, &mut card.errors, remembered.known);
            let folded = if remembered.known { remembered.folded } else { start };
            let Some(mut usage) = card.reading(&gpu, memory, folded) else {
                continue;
            };
            usage.errors = remembered.errors.at(now.as_millisecond());
            remembered.folded = folded.max(usage.at.as_millisecond());
            remembered.known = true;
            gpus.push(usage);
            let folded = card.into_buckets().into_iter().map(|((measure, hour), bucket)| Folded {
                instance: Arc::clone(instance),
                gpu: gpu.clone(),
                measure,
                hour,
                bucket,
            });
            round.folded.extend(folded);
        }
        gpus
    }

    /// An average over all cards has one value a round.
    fn fold_whole(&mut self, instance: &Arc<Instance>, usage: &GpuUsage, round: &mut Round) {
        let remembered = self
            .memory
            .cards
            .entry((key(instance), usage.gpu.to_string()))
            .or_default();
        let at = usage.at.as_millisecond();
        if remembered.known && at <= remembered.folded {
            return;
        }
        (remembered.known, remembered.folded) = (true, at);
        let measures = gpuwatch_inventory::measures_of(usage);
        round.folded.extend(folded(instance, &usage.gpu, usage.at, measures));
    }

    fn fold_host(&mut self, instance: &Arc<Instance>, host: &HostUsage, round: &mut Round) {
        let Some(at) = host.at else { return };
        let before = self.memory.hosts.entry(key(instance)).or_insert(i64::MIN);
        if at.as_millisecond() <= *before {
            return;
        }
        *before = at.as_millisecond();
        let measures = gpuwatch_inventory::measures_of_host(host);
        round.folded.extend(folded(instance, &Text::default(), at, measures));
    }
}

fn folded(
    instance: &Arc<Instance>,
    gpu: &Text,
    at: Timestamp,
    measures: impl Iterator<Item = (Measure, f64)>,
) -> Vec<Folded> {
    let all = measures.filter_map(|(measure, value)| {
        Some(Folded {
            instance: Arc::clone(instance),
            gpu: gpu.clone(),
            measure,
            hour: Hour::of(at),
            bucket: Bucket::of(measure, at, value)?,
        })
    });
    all.collect()
}

impl Gathering {
    /// The instance of a card's series; one that cannot be told is counted.
    fn join(&mut self, series: &Series, device: &Device, id_labels: &[String]) -> Option<usize> {
        let target = Target::of(&series.labels, id_labels);
        match self.target(target.clone()) {
            Ok((index, method)) => {
                self.methods.insert(index, method);
                Some(index)
            }
            Err(refusal) => {
                let device = Device {
                    slice: None,
                    ..device.clone()
                };
                self.unjoined.entry(refusal).or_default().insert((target, device));
                None
            }
        }
    }

    fn target(&mut self, target: Target) -> Result<(usize, &'static str), Refusal> {
        if let Some(known) = self.targets.get(&target) {
            return *known;
        }
        let joined = self.table.join(&target);
        self.targets.insert(target, joined);
        joined
    }

    /// A server that warns has not looked everywhere: what is missing is
    /// unknown.
    fn warnings(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            let message = format!(
                "the answer may be incomplete: {}",
                gpuwatch_collector_core::one_line(&warning, 200)
            );
            let known = self.round.failures.iter().any(|failure| failure.message == message);
            if !known {
                self.round
                    .failures
                    .push(CollectError::new(gpuwatch_collector_core::Reason::Other, message));
            }
        }
    }
}

fn add(readings: &mut Readings, slice: Option<Slice>, series: &Series, scale: f64) {
    readings.add(slice, series.samples(), scale);
}

fn key(instance: &Instance) -> InstanceKey {
    (
        instance.provider,
        instance.account.clone(),
        instance.region.clone(),
        instance.id.clone(),
    )
}

/// By index where it is a number, so that card 10 comes after card 9.
fn order(card: &Card) -> (u32, &str, &str) {
    (card.index.parse().unwrap_or(u32::MAX), &card.index, &card.uuid)
}

/// Memory of one card by the catalogue, in bytes.
fn memory_of_card(instance: &Instance) -> Option<f64> {
    let count = instance.accelerators.count?.get();
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bytes = instance.accelerators.memory_mib?.checked_mul(1 << 20)? as f64;
    (count > 0.0).then(|| bytes / count.max(1.0))
}

/// Cards that fell silent while others of the machine did not.
fn drop_replaced(cards: &mut Vec<(String, Card)>) {
    let newest = cards.iter().filter_map(|(_, card)| card.newest()).max();
    if let Some(newest) = newest {
        cards.retain(|(_, card)| card.newest().is_some_and(|at| at >= newest - REPLACED_MILLIS));
    }
}

/// Whether an instance can have so many cards.
fn fits(instance: &Instance, cards: usize) -> bool {
    let Some(count) = instance.accelerators.count else {
        return true;
    };
    u32::try_from(cards).is_ok_and(|cards| f64::from(cards) <= count.get().ceil().max(1.0))
}

/// Reads the series about errors; a moving window says most, then a total.
fn read_errors(errors: &mut CardErrors, series: &mut Vec<(Quantity, Series)>, card_is_known: bool) {
    let has = |quantity: Quantity| series.iter().any(|(of, _)| *of == quantity);
    let (best, kind) = if has(Quantity::RecentErrors) {
        (Quantity::RecentErrors, Kind::Window)
    } else if has(Quantity::TotalErrors) {
        (Quantity::TotalErrors, Kind::Total)
    } else {
        (Quantity::LastError, Kind::Last)
    };
    for (_, series) in series.drain(..).filter(|(quantity, _)| *quantity == best) {
        let code = if kind == Kind::Last {
            Ok(0)
        } else {
            series.labels.get("xid").parse()
        };
        let Ok(code) = code else { continue };
        for sample in series.samples() {
            errors.read(kind, code, sample.at, sample.value, card_is_known);
        }
    }
}
