//! Puts a round together, and remembers what the next one needs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use gpuwatch_inventory::{Bucket, GpuUsage, HostUsage, Hour, Instance, InstanceUsage, Measure, Text};
use jiff::Timestamp;

use crate::{
    answer::Series,
    card::Card,
    errors::{CardErrors, Kind},
    family::Quantity,
    gather::{CardId, Gathering},
    join::{JoinTable, Refusal},
    round::{Folded, InstanceKey, Round},
};

/// A card that has been silent this much longer than its machine's newest one
/// was taken out or replaced.
const REPLACED_MILLIS: i64 = 2 * 60 * 1000;
/// What is remembered of a card that is gone.
const FORGET_MILLIS: i64 = 24 * 3600 * 1000;

/// What is remembered of cards and machines between rounds.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    cards: HashMap<(InstanceKey, String), CardMemory>,
    hosts: HashMap<InstanceKey, i64>,
}

#[derive(Debug, Default)]
pub(crate) struct CardMemory {
    /// Samples up to this time are in the history.
    pub(crate) folded: i64,
    errors: CardErrors,
    /// Whether it was read before.
    known: bool,
}

impl Memory {
    /// What is remembered of a card of this round.
    pub(crate) fn card(&self, table: &JoinTable, (index, card): &CardId) -> Option<&CardMemory> {
        let instance = table.instance(*index)?;
        self.cards.get(&(key(instance), card.clone()))
    }

    /// Puts the round together and remembers what the next one needs.
    pub(crate) fn finish(&mut self, gathering: Gathering, now: Timestamp) -> Round {
        let Gathering {
            table,
            cards,
            methods,
            mut unjoined,
            mut hosts,
            mut whole,
            start,
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
            let mut gpus = self.readings(instance, cards, (start, now), &mut round);
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
        self.cards.retain(|_, card| card.folded > oldest);
        self.hosts.retain(|_, folded| *folded > oldest);
        round
    }

    /// The readings of an instance's cards, in their order.
    fn readings(
        &mut self,
        instance: &Arc<Instance>,
        mut cards: Vec<(String, Card)>,
        (start, now): (i64, Timestamp),
        round: &mut Round,
    ) -> Vec<GpuUsage> {
        cards.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)));
        let indexes: BTreeSet<&str> = cards.iter().map(|(_, card)| card.index.as_str()).collect();
        let by_index = indexes.len() == cards.len() && !indexes.contains("");
        let memory = memory_of_card(instance);
        let mut gpus = Vec::with_capacity(cards.len());
        for (id, mut card) in cards {
            let gpu: Text = if by_index {
                card.index.as_str().into()
            } else {
                id.as_str().into()
            };
            let remembered = self.cards.entry((key(instance), id)).or_default();
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
        let remembered = self.cards.entry((key(instance), usage.gpu.to_string())).or_default();
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
        let before = self.hosts.entry(key(instance)).or_insert(i64::MIN);
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
