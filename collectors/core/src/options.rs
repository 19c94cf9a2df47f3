//! Intervals, deadlines, times to live.

use std::{collections::BTreeMap, time::Duration};

use crate::Dataset;

/// Timing of one dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Time from start to start of runs.
    pub interval: Duration,
    /// A run is cut off after this time.
    pub deadline: Duration,
    /// How long the last good answer is shown after it was obtained.
    pub time_to_live: Duration,
}

impl DatasetOptions {
    /// The defaults that follow from an interval: deadline of two intervals
    /// within one to two minutes (a page of a thousand instances can take
    /// seconds however short the interval is), time to live of three
    /// intervals, at least 15 min.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self {
            interval,
            deadline: (interval * 2).clamp(Duration::from_mins(1), Duration::from_mins(2)),
            time_to_live: (interval * 3).max(Duration::from_mins(15)),
        }
    }
}

/// Everything the scheduler can be told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Timing per dataset.
    pub datasets: BTreeMap<Dataset, DatasetOptions>,
    /// Time between looks for new accounts and regions.
    pub discovery_interval: Duration,
    /// Calls in flight at once, per provider.
    pub max_in_flight: usize,
    /// Calls started per second, per provider, account, region and service,
    /// once the burst is used up. The customer's own automation shares the
    /// cloud's allowance, so this stays well below it.
    pub calls_per_second: u32,
    /// Calls that may start at once after a pause.
    pub call_burst: u32,
    /// Budgets by provider word and budget name (`cost_explorer_calls_per_day`).
    pub budgets: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Default for Options {
    fn default() -> Self {
        let minutes = |m: u64| DatasetOptions::every(Duration::from_secs(m * 60));
        Self {
            datasets: BTreeMap::from([
                (Dataset::Inventory, minutes(5)),
                (Dataset::Usage, minutes(5)),
                (Dataset::Commitments, minutes(60)),
                (Dataset::Prices, minutes(12 * 60)),
                (Dataset::Spend, minutes(6 * 60)),
                (Dataset::Managed, minutes(10)),
            ]),
            discovery_interval: Duration::from_hours(1),
            max_in_flight: 64,
            calls_per_second: 5,
            call_burst: 20,
            budgets: BTreeMap::new(),
        }
    }
}
