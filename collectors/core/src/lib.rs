//! What every cloud's collector stands on: the [`Collector`] trait, the poll
//! scheduler, rate limits, retry, deadlines, the last-good store and the
//! accounting of every call.
//!
//! Life of a poll: [`Scheduler`] discovers targets (account × region), runs
//! one task per target and [`Dataset`], each split into named parts that fail
//! alone. A part's answer replaces its last good one in the store; a failed
//! part leaves it in place until its time to live has passed. Whenever
//! something changed, the store is merged into an immutable [`Snapshot`].

mod accounting;
mod budget;
mod clock;
mod coalesce;
mod collector;
mod context;
mod dataset;
mod error;
mod limit;
mod options;
mod pages;
mod publish;
mod retry;
mod scheduler;
mod snapshot;
mod store;
mod tags;
mod task;
mod text;
mod usage;

pub use accounting::Accounting;
pub use budget::Budgets;
pub use clock::{Clock, ManualClock};
pub use coalesce::Coalesced;
pub use collector::{Account, Collected, Collector, Covers, Discovery, DiscoveryFailure, Fleet, Part, Scope, Target};
pub use context::{Call, Context};
pub use dataset::Dataset;
pub use error::{CollectError, Reason};
pub use limit::Limits;
pub use options::{DatasetOptions, Options};
pub use pages::{Progress, read_all, read_rows};
pub use scheduler::{Polling, Scheduler};
pub use snapshot::{CoverageEstimate, SkippedCount, Snapshot, TaskStatus};
pub use store::CallStatus;
pub use tags::{Ownership, TagRules, Tags, first_tag, tag_value};
pub use text::{Interner, lock, one_line};
pub use usage::{Telemetry, TelemetryStatus};
