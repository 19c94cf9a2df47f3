//! The trait a cloud implements, and what passes through it.

use std::sync::Arc;

use async_trait::async_trait;
use gpuwatch_inventory::{Commitment, Instance, InstanceUsage, Provider, Text};

use crate::{CollectError, Context, CoverageEstimate, Dataset};

/// An account as the metrics name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The `account` label.
    pub id: Text,
    /// The `account_name` label.
    pub name: Text,
}

/// Where a task works: one account in one region.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The cloud.
    pub provider: Provider,
    /// The account.
    pub account: Account,
    /// The provider's region name, or [`Scope::GLOBAL`].
    pub region: Text,
}

impl Scope {
    /// The region of datasets that belong to no region (savings plans).
    pub const GLOBAL: &'static str = "global";
}

/// A scope and the datasets to poll there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Account and region.
    pub scope: Scope,
    /// Datasets this collector serves there.
    pub datasets: Vec<Dataset>,
}

/// How far a discovery failure reaches: whose earlier targets stay polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// The failing account's targets.
    Account,
    /// Every target of this collector, e.g. when listing accounts failed.
    Everything,
}

/// One account (or the whole section) that could not be discovered.
#[derive(Debug, Clone)]
pub struct DiscoveryFailure {
    /// The account, as well as it is known: the id if it can be told from the
    /// configuration (a role ARN), else the configured name as the id.
    pub account: Account,
    /// What it reaches.
    pub covers: Covers,
    /// Why.
    pub error: CollectError,
}

/// What there is to poll.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Complete for every account without a failure.
    pub targets: Vec<Target>,
    /// What could not be discovered; its earlier targets stay.
    pub failures: Vec<DiscoveryFailure>,
}

/// A named piece of a dataset that is fetched, fails and ages on its own,
/// e.g. `reserved_instances` within `commitments`.
pub type Part = &'static str;

/// What one part of a dataset delivered: a complete listing of its scope.
#[derive(Debug, Clone)]
pub enum Collected {
    /// Instances of the scope.
    Instances(Vec<Instance>),
    /// Active commitments of the scope.
    Commitments(Vec<Commitment>),
    /// Readings of instances of the scope: of those that
    /// [`Context::unmeasured`] names, as far as the cloud has any.
    Usage(Vec<InstanceUsage>),
}

/// All live records of one provider while a snapshot is built.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Instances; change one through `Arc::make_mut`.
    pub instances: Vec<Arc<Instance>>,
    /// Commitments; `used_units` is to be filled where the cloud does not.
    pub commitments: Vec<Commitment>,
    /// Account-level estimates, to be filled.
    pub coverage: Vec<CoverageEstimate>,
}

/// One configured section of one cloud.
///
/// Implementations make every cloud call through [`Context::call`], which
/// limits, counts, times and retries it. They must not retry, sleep or read
/// the time on their own.
#[async_trait]
pub trait Collector: Send + Sync {
    /// The cloud.
    fn provider(&self) -> Provider;

    /// The configured section's name.
    fn name(&self) -> &str;

    /// Finds accounts and regions. One account's failure must not hide the
    /// others: it goes into [`Discovery::failures`].
    async fn discover(&self, cx: &Context) -> Discovery;

    /// The parts of a dataset in a scope; they run concurrently.
    fn parts(&self, scope: &Scope, dataset: Dataset) -> Vec<Part>;

    /// Fetches one part. The answer must be a complete listing: a failed page
    /// is an error, never a shorter list. A bad record is skipped and counted
    /// with [`Context::skip`].
    ///
    /// # Errors
    /// When the listing is not complete.
    async fn collect(
        &self,
        scope: &Scope,
        dataset: Dataset,
        part: Part,
        cx: &Context,
    ) -> Result<Collected, CollectError>;

    /// Decides what can only be decided over the whole fleet of the provider
    /// (which instances a reserved instance pays for, what is unused). Called
    /// once per snapshot, on the first collector of the provider; must be
    /// cheap, deterministic and independent of the order of its input.
    fn allocate(&self, _fleet: &mut Fleet) {}
}
