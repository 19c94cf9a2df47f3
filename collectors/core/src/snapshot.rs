//! The merged, immutable view of everything that is known now.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_inventory::{Commitment, Instance, InstanceUsage, Provider, Text};
use jiff::Timestamp;

use crate::{Dataset, Reason, TelemetryStatus};

/// Everything known at one moment. Never changed after it is published.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Counts up by one per snapshot.
    pub generation: u64,
    /// When it was built.
    pub at: Timestamp,
    /// Live instances, sorted by provider, account, region, id; no duplicates.
    pub instances: Vec<Arc<Instance>>,
    /// Live commitments, sorted by provider, account, region, id; no duplicates.
    pub commitments: Vec<Arc<Commitment>>,
    /// Account-level coverage estimates.
    pub coverage: Vec<CoverageEstimate>,
    /// Fresh readings of live instances, sorted as the instances are; one card
    /// is there once.
    pub usage: Vec<Arc<InstanceUsage>>,
    /// State of the telemetry servers, in the order of the configuration.
    pub telemetry: Vec<TelemetryStatus>,
    /// One per poll task (and one per failing discovery), sorted.
    pub tasks: Vec<TaskStatus>,
    /// Records skipped since start, sorted.
    pub skipped: Vec<SkippedCount>,
}

impl Snapshot {
    /// Nothing known yet.
    #[must_use]
    pub fn empty(at: Timestamp) -> Self {
        Self {
            generation: 0,
            at,
            instances: Vec::new(),
            commitments: Vec::new(),
            coverage: Vec::new(),
            usage: Vec::new(),
            telemetry: Vec::new(),
            tasks: Vec::new(),
            skipped: Vec::new(),
        }
    }
}

/// How much of an account's eligible on-demand usage its savings plans can
/// cover at most, by the plans' own rates for the instance types in use.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageEstimate {
    /// The cloud.
    pub provider: Provider,
    /// Owning account.
    pub account: Text,
    /// 0 to 1.
    pub ratio: f64,
}

/// State of one poll task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// The cloud.
    pub provider: Provider,
    /// The account.
    pub account: Text,
    /// The region, or `global`.
    pub region: Text,
    /// What it polls.
    pub dataset: Dataset,
    /// Whether the last run had no error at all; `None` before the first run.
    pub up: Option<bool>,
    /// When every part of it last delivered a complete listing.
    pub last_success: Option<Timestamp>,
    /// Duration of the last run.
    pub last_duration: Option<Duration>,
    /// Failed attempts and failed runs since start.
    pub errors: BTreeMap<Reason, u64>,
    /// Text of the last error, until a run without one.
    pub last_error: Option<String>,
    /// Whether the last good data have outlived their time and left.
    pub expired: bool,
}

/// Records that were skipped because they could not be used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedCount {
    /// The cloud.
    pub provider: Provider,
    /// The account.
    pub account: Text,
    /// The region.
    pub region: Text,
    /// Why, e.g. `no_id`, `duplicate`.
    pub reason: &'static str,
    /// How many since start.
    pub count: u64,
}
