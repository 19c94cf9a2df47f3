//! What is gathered during a round, before it is put together.

use std::collections::{BTreeSet, HashMap};

use gpuwatch_collector_core::{CollectError, Reason, one_line};
use gpuwatch_inventory::{GpuUsage, HostUsage};

use crate::{
    answer::Series,
    assemble::Memory,
    card::{Card, Readings},
    device::{Device, Target},
    family::{Family, Metric, Quantity},
    join::{JoinTable, Refusal},
    round::Round,
};

/// A card within a round: the instance in the join table, and the card's id.
pub(crate) type CardId = (usize, String);

/// Everything that one round collects before it is put together.
pub(crate) struct Gathering {
    pub(crate) table: JoinTable,
    pub(crate) targets: HashMap<Target, Result<(usize, &'static str), Refusal>>,
    pub(crate) cards: HashMap<CardId, Card>,
    pub(crate) methods: HashMap<usize, &'static str>,
    pub(crate) unjoined: HashMap<Refusal, BTreeSet<(Target, Device)>>,
    pub(crate) hosts: HashMap<usize, HostUsage>,
    pub(crate) whole: HashMap<usize, GpuUsage>,
    /// Of a card seen for the first time, samples up to this time may have
    /// been counted before a restart.
    pub(crate) start: i64,
    pub(crate) round: Round,
}

impl Gathering {
    pub(crate) fn new(table: JoinTable, start: i64, round: Round) -> Self {
        Self {
            table,
            targets: HashMap::new(),
            cards: HashMap::new(),
            methods: HashMap::new(),
            unjoined: HashMap::new(),
            hosts: HashMap::new(),
            whole: HashMap::new(),
            start,
            round,
        }
    }

    /// Takes the series of one metric.
    pub(crate) fn take(
        &mut self,
        family: &'static Family,
        metric: &Metric,
        series: Vec<Series>,
        id_labels: &[String],
        memory: &Memory,
    ) {
        let mut readings: HashMap<CardId, Readings> = HashMap::new();
        for series in series {
            let Some(device) = Device::of(&series.labels, family) else {
                continue;
            };
            let Some(index) = self.join(&series, &device, id_labels) else {
                continue;
            };
            let id = if device.uuid.is_empty() {
                device.index.clone()
            } else {
                device.uuid.clone()
            };
            let id: CardId = (index, id);
            let card = self.cards.entry(id.clone()).or_default();
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
                    readings
                        .entry(id)
                        .or_default()
                        .add(device.slice, series.samples(), metric.scale);
                }
            }
        }
        for (id, readings) in readings {
            let folded = memory.card(&self.table, &id).map_or(self.start, |memory| memory.folded);
            if let Some(card) = self.cards.get_mut(&id) {
                self.round.bad_values += card.take(metric.quantity, readings, folded);
            }
        }
    }

    /// The instance of a card's series; one that cannot be told is counted.
    pub(crate) fn join(&mut self, series: &Series, device: &Device, id_labels: &[String]) -> Option<usize> {
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

    pub(crate) fn target(&mut self, target: Target) -> Result<(usize, &'static str), Refusal> {
        if let Some(known) = self.targets.get(&target) {
            return *known;
        }
        let joined = self.table.join(&target);
        self.targets.insert(target, joined);
        joined
    }

    /// A server that warns has not looked everywhere: what is missing is
    /// unknown.
    pub(crate) fn warnings(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            let message = format!("the answer may be incomplete: {}", one_line(&warning, 200));
            let known = self.round.failures.iter().any(|failure| failure.message == message);
            if !known {
                self.round.failures.push(CollectError::new(Reason::Other, message));
            }
        }
    }
}
