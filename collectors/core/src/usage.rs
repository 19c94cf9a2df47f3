//! Merges what several sources say about the use of the same accelerators.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_inventory::{GpuUsage, HostUsage, InstanceUsage, Provider, Text};
use jiff::Timestamp;

use crate::Reason;

/// What a telemetry server's counters say, joined to instances. Published by
/// the telemetry reader and merged into snapshots.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    /// Joined readings of all servers, in any order.
    pub usage: Vec<Arc<InstanceUsage>>,
    /// One per configured server, in their order.
    pub servers: Vec<TelemetryStatus>,
    /// Whether every server has been asked at least once, so that what is not
    /// here is not covered by telemetry.
    pub settled: bool,
}

impl Telemetry {
    /// No servers, nothing to wait for.
    #[must_use]
    pub fn none() -> Self {
        Self {
            settled: true,
            ..Self::default()
        }
    }
}

/// State of one telemetry server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TelemetryStatus {
    /// The configured section's name.
    pub name: Text,
    /// Whether the last round had no error at all; `None` before the first.
    pub up: Option<bool>,
    /// When a round was last complete.
    pub last_success: Option<Timestamp>,
    /// Duration of the last round.
    pub last_duration: Option<Duration>,
    /// Failed requests since start.
    pub errors: BTreeMap<Reason, u64>,
    /// Text of the last error, until a round without one.
    pub last_error: Option<String>,
    /// Cards joined to an instance in the last round, by method.
    pub joined: BTreeMap<&'static str, u64>,
    /// Cards whose instance could not be told in the last round, by reason
    /// (`ambiguous`, `too_many_cards`, `no_instance`).
    pub unjoined: BTreeMap<&'static str, u64>,
    /// What people need to find those cards: host or scrape address, at most
    /// [`TelemetryStatus::EXAMPLES`].
    pub unjoined_examples: Vec<String>,
    /// Readings that were out of range since start, and so are none.
    pub bad_values: u64,
    /// Exporters found on the server (`dcgm`, `nvidia_smi`, ...).
    pub families: Vec<&'static str>,
}

impl TelemetryStatus {
    /// Examples of unmatched cards that are kept.
    pub const EXAMPLES: usize = 20;
}

/// The readings that are fresh, one [`InstanceUsage`] per instance with one
/// [`GpuUsage`] per card, sorted by instance.
///
/// A card's readings come from one source: its telemetry while that is fresh,
/// else the cloud's own metrics. A reading is fresh for `time_to_live` beyond
/// its source's usual lag, counted from the time of the data.
pub(crate) fn merge(
    telemetry: &[Arc<InstanceUsage>],
    clouds: &[Arc<InstanceUsage>],
    now: Timestamp,
    time_to_live: Duration,
) -> Vec<Arc<InstanceUsage>> {
    let mut sources: Vec<(bool, &Arc<InstanceUsage>)> = Vec::with_capacity(telemetry.len() + clouds.len());
    sources.extend(telemetry.iter().map(|usage| (false, usage)));
    sources.extend(clouds.iter().map(|usage| (true, usage)));
    sources.sort_by(|(of_cloud, a), (of_other, b)| a.key().cmp(&b.key()).then(of_cloud.cmp(of_other)));
    let mut merged = Vec::new();
    for of_instance in sources.chunk_by(|(_, a), (_, b)| a.key() == b.key()) {
        if let Some(usage) = merge_instance(of_instance, now, time_to_live) {
            merged.push(usage);
        }
    }
    merged
}

/// The sources of one instance, telemetry before the cloud.
fn merge_instance(
    sources: &[(bool, &Arc<InstanceUsage>)],
    now: Timestamp,
    time_to_live: Duration,
) -> Option<Arc<InstanceUsage>> {
    let fresh = |at: Timestamp, lag: Duration| {
        let age = now.duration_since(at);
        age.is_negative() || age.unsigned_abs() < time_to_live.saturating_add(lag)
    };
    let [(_, only)] = sources else {
        let (_, first) = sources.first()?;
        let live = |(_, usage): &&(bool, &Arc<InstanceUsage>)| usage.gpus.iter().any(|gpu| fresh(gpu.at, usage.lag));
        let measured_by_telemetry = sources
            .iter()
            .filter(|(of_cloud, _)| !of_cloud)
            .any(|source| live(&source));
        let mut gpus = Vec::new();
        let mut host = HostUsage::default();
        for (of_cloud, usage) in sources {
            if !(*of_cloud && measured_by_telemetry) {
                gpus.extend(usage.gpus.iter().filter(|gpu| fresh(gpu.at, usage.lag)).cloned());
            }
            let is_fresh = usage.host.at.is_some_and(|at| fresh(at, usage.lag));
            if is_fresh && host.at.is_none() {
                host = usage.host;
            }
        }
        return together(first, newest_of_each(gpus), host);
    };
    let all_fresh = only.gpus.iter().all(|gpu| fresh(gpu.at, only.lag));
    let host_is_fresh = only.host.at.is_none_or(|at| fresh(at, only.lag));
    if all_fresh && host_is_fresh && is_one_each(&only.gpus) {
        return (!only.gpus.is_empty() || only.host.at.is_some()).then(|| Arc::clone(only));
    }
    let gpus = only
        .gpus
        .iter()
        .filter(|gpu| fresh(gpu.at, only.lag))
        .cloned()
        .collect();
    let host = if host_is_fresh { only.host } else { HostUsage::default() };
    together(only, newest_of_each(gpus), host)
}

fn together(of: &InstanceUsage, gpus: Vec<GpuUsage>, host: HostUsage) -> Option<Arc<InstanceUsage>> {
    (!gpus.is_empty() || host.at.is_some()).then(|| {
        Arc::new(InstanceUsage {
            provider: of.provider,
            account: of.account.clone(),
            region: of.region.clone(),
            id: of.id.clone(),
            gpus,
            host,
            lag: of.lag,
        })
    })
}

fn is_one_each(gpus: &[GpuUsage]) -> bool {
    gpus.windows(2).all(|pair| matches!(pair, [a, b] if a.gpu < b.gpu))
}

/// The newest reading of each card; of equally new ones that with the stronger
/// signal.
fn newest_of_each(mut gpus: Vec<GpuUsage>) -> Vec<GpuUsage> {
    let strength = |gpu: &GpuUsage| {
        gpu.activity
            .strongest()
            .map_or(usize::MAX, |(signal, _)| signal as usize)
    };
    gpus.sort_by(|a, b| {
        let by_age = Reverse(a.at).cmp(&Reverse(b.at));
        a.gpu
            .cmp(&b.gpu)
            .then(by_age)
            .then_with(|| strength(a).cmp(&strength(b)))
    });
    gpus.dedup_by(|b, a| a.gpu == b.gpu);
    gpus
}

/// Instances that have a fresh GPU reading from telemetry.
pub(crate) fn measured(
    telemetry: &Telemetry,
    now: Timestamp,
    time_to_live: Duration,
) -> impl Iterator<Item = (Provider, &str, &str, &str)> {
    telemetry.usage.iter().filter_map(move |usage| {
        let limit = time_to_live.saturating_add(usage.lag);
        let newest = usage.gpus.iter().map(|gpu| gpu.at).max()?;
        (now.duration_since(newest).unsigned_abs() < limit).then(|| usage.key())
    })
}

#[cfg(test)]
mod tests {
    use gpuwatch_inventory::{Activity, Signal};

    use super::*;

    const TTL: Duration = Duration::from_mins(15);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_780_000_000 + second).expect("in range")
    }

    fn reading(gpu: &str, second: i64, signal: Signal, ratio: f64) -> GpuUsage {
        GpuUsage {
            activity: Activity::of(signal, ratio),
            ..GpuUsage::new(gpu.into(), at(second))
        }
    }

    fn of(id: &str, gpus: Vec<GpuUsage>) -> Arc<InstanceUsage> {
        Arc::new(InstanceUsage {
            provider: Provider::Aws,
            account: "1".into(),
            region: "r".into(),
            id: id.into(),
            gpus,
            host: HostUsage::default(),
            lag: Duration::ZERO,
        })
    }

    fn shown(usage: &[Arc<InstanceUsage>]) -> Vec<(&str, &str, Signal, f64)> {
        let cards = usage
            .iter()
            .flat_map(|usage| usage.gpus.iter().map(|gpu| (&*usage.id, gpu)));
        cards
            .filter_map(|(id, gpu)| {
                gpu.activity
                    .strongest()
                    .map(|(signal, ratio)| (id, &*gpu.gpu, signal, ratio))
            })
            .collect()
    }

    #[test]
    fn telemetry_goes_before_the_cloud_and_the_cloud_before_nothing() {
        let cloud = [
            of("a", vec![reading("0", 90, Signal::Provider, 0.9)]),
            of("b", vec![reading("0", 90, Signal::Provider, 0.8)]),
        ];
        let telemetry = [of("a", vec![reading("0", 60, Signal::SmActive, 0.1)])];
        let merged = merge(&telemetry, &cloud, at(100), TTL);
        let expected = [("a", "0", Signal::SmActive, 0.1), ("b", "0", Signal::Provider, 0.8)];
        assert_eq!(shown(&merged), expected);
        // Its telemetry fell silent: the cloud's value is what there is.
        let merged = merge(&telemetry, &cloud, at(60 + 15 * 60), TTL);
        let expected = [("a", "0", Signal::Provider, 0.9), ("b", "0", Signal::Provider, 0.8)];
        assert_eq!(shown(&merged), expected);
    }

    #[test]
    fn silence_becomes_absence_and_not_a_value() {
        let telemetry = [of(
            "a",
            vec![
                reading("0", 0, Signal::GpuUtil, 0.0),
                reading("1", 600, Signal::GpuUtil, 0.0),
            ],
        )];
        assert_eq!(shown(&merge(&telemetry, &[], at(899), TTL)).len(), 2);
        assert_eq!(
            shown(&merge(&telemetry, &[], at(900), TTL)),
            [("a", "1", Signal::GpuUtil, 0.0)]
        );
        assert!(merge(&telemetry, &[], at(1500), TTL).is_empty());
    }

    // P14, P17
    #[test]
    fn a_source_that_is_always_late_is_fresh_for_longer() {
        let mut late = (*of("a", vec![reading("0", 0, Signal::Provider, 0.5)])).clone();
        late.lag = Duration::from_mins(7);
        let late = [Arc::new(late)];
        assert_eq!(merge(&[], &late, at(21 * 60), TTL).len(), 1);
        assert!(merge(&[], &late, at(22 * 60), TTL).is_empty());
    }

    #[test]
    fn of_many_readings_of_a_card_the_newest_is_shown() {
        let cloud = [of(
            "a",
            vec![
                reading("0", 0, Signal::Provider, 0.1),
                reading("0", 60, Signal::Provider, 0.2),
                reading("1", 30, Signal::Provider, 0.3),
            ],
        )];
        let merged = merge(&[], &cloud, at(100), TTL);
        assert_eq!(
            shown(&merged),
            [("a", "0", Signal::Provider, 0.2), ("a", "1", Signal::Provider, 0.3)]
        );
    }

    #[test]
    fn two_exporters_of_one_machine_make_one_card_with_the_stronger_signal() {
        let telemetry = [
            of("a", vec![reading("0", 50, Signal::GpuUtil, 1.0)]),
            of("a", vec![reading("0", 50, Signal::SmActive, 0.3)]),
        ];
        assert_eq!(
            shown(&merge(&telemetry, &[], at(60), TTL)),
            [("a", "0", Signal::SmActive, 0.3)]
        );
    }
}
