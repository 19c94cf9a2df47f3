//! What a collector is given for one run: the way to make calls.

use std::{
    collections::HashSet,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gpuwatch_inventory::{Instance, State};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use crate::{
    Account, Accounting, Budgets, Clock, CollectError, Collected, Dataset, Limits, Options, Reason, Scope, Target,
    Telemetry, retry,
    store::{CallStatus, Store, TaskKey},
    usage,
};

/// Names a cloud call for accounting, limits and people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// Service in lower case (`ec2`, `sts`).
    pub service: &'static str,
    /// Operation as the cloud spells it (`DescribeInstances`).
    pub operation: &'static str,
    /// The permission it needs, as the cloud's policies spell it
    /// (`ec2:DescribeInstances`); empty when it needs none.
    pub permission: &'static str,
}

impl Call {
    /// A call of this service and operation, needing this permission.
    #[must_use]
    pub const fn new(service: &'static str, operation: &'static str, permission: &'static str) -> Self {
        Self {
            service,
            operation,
            permission,
        }
    }

    /// Service and operation, for messages.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.service, self.operation)
    }
}

/// What all runs share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub clock: Clock,
    pub accounting: Accounting,
    pub limits: Limits,
    pub budgets: Budgets,
    pub store: Store,
    pub telemetry: watch::Receiver<Arc<Telemetry>>,
    /// How long a reading is fresh.
    pub usage_time_to_live: Duration,
}

/// One run's handle: whom it works for and until when. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    shared: Arc<Shared>,
    scope: Scope,
    dataset: Dataset,
    /// Monotonic time at which the run is cut off.
    deadline: Duration,
    /// Longest time one attempt may take.
    attempt_limit: Duration,
    /// Time between runs like this one.
    interval: Duration,
    degraded: Arc<AtomicBool>,
    announce: Option<mpsc::UnboundedSender<Vec<Target>>>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, scope: Scope, dataset: Dataset, limit: Duration) -> Self {
        let deadline = shared.clock.monotonic().saturating_add(limit);
        // Three attempts must fit into the deadline, so that one lost packet
        // does not cost a run.
        let attempt_limit = (limit / 3).min(Duration::from_secs(30));
        Self {
            shared,
            scope,
            dataset,
            deadline,
            attempt_limit,
            interval: limit,
            degraded: Arc::default(),
            announce: None,
        }
    }

    /// Names the time between runs, when it is not the deadline.
    pub(crate) fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    pub(crate) fn announcing(mut self, to: mpsc::UnboundedSender<Vec<Target>>) -> Self {
        self.announce = Some(to);
        self
    }

    /// The scope this run works in. During discovery the account is the
    /// configured section's name.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The same run on behalf of another account: its limits and its counts.
    #[must_use]
    pub fn for_account(&self, account: Account) -> Self {
        let mut other = self.clone();
        other.scope.account = account;
        other
    }

    /// Makes one cloud call: waits for the rate limit, bounds each attempt in
    /// time, counts it, and retries what is retryable with backoff (or the
    /// cloud's own hint) while the deadline allows. `attempt` is called anew
    /// for each attempt.
    ///
    /// # Errors
    /// The last attempt's error.
    pub async fn call<T, F, Fut>(&self, call: Call, mut attempt: F) -> Result<T, CollectError>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<T, CollectError>> + Send,
        T: Send,
    {
        let mut delays = retry::delays();
        loop {
            let permit = self.shared.limits.turn(&self.scope, call.service).await;
            let limit = self.attempt_limit.min(self.remaining());
            let result = self.shared.clock.timeout(limit, attempt()).await.unwrap_or_else(|| {
                let message = format!("{} did not answer within {:.1} s", call.operation, limit.as_secs_f64());
                Err(CollectError::new(Reason::Timeout, message))
            });
            drop(permit);
            let mut error = match result {
                Ok(answer) => {
                    self.shared.accounting.request(self.scope.provider, call, None);
                    self.shared.store.note_call(&self.scope, self.dataset, call, None);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.shared
                .accounting
                .request(self.scope.provider, call, Some(error.reason));
            self.shared
                .store
                .note_call(&self.scope, self.dataset, call, Some(&error));
            self.count(&mut error);
            let delay = delays.next().filter(|_| error.retryable);
            let Some(delay) = delay.map(|d| error.retry_after.map_or(d, |hint| hint.max(d))) else {
                return Err(error);
            };
            // Waiting past the deadline would only turn this error into a
            // timeout and hide its reason.
            if delay >= self.remaining() {
                return Err(error);
            }
            tracing::debug!(
                provider = %self.scope.provider, account = %self.scope.account.id, region = %self.scope.region,
                dataset = %self.dataset, operation = call.operation, reason = %error.reason,
                delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), "retrying"
            );
            self.shared.clock.sleep(delay).await;
        }
    }

    /// Counts calls that the cloud charges for, in its billable units, against
    /// the budget of that name (`cost_explorer_calls_per_day`), before the call.
    ///
    /// # Errors
    /// [`Reason::Throttled`] when the budget is used up.
    pub fn spend(&self, call: Call, budget: &'static str, units: u64) -> Result<(), CollectError> {
        let granted = self
            .shared
            .budgets
            .take(self.scope.provider, budget, units, self.shared.clock.monotonic());
        let refused = (!granted).then_some(Reason::Throttled);
        self.shared.accounting.units(self.scope.provider, call, refused, units);
        if granted {
            return Ok(());
        }
        let message = format!(
            "budget {budget} is used up; raise it under budgets.{} if this data is worth it",
            self.scope.provider
        );
        Err(CollectError::new(Reason::Throttled, message).retryable(false))
    }

    /// Whether this run may use so many units of a budget now, so that the
    /// budget lasts for its whole window at even intervals. When not, the run
    /// leaves the work for a later one; what it knows stays. Nothing is
    /// counted: [`Context::spend`] does that per call.
    #[must_use]
    pub fn can_afford(&self, budget: &'static str, units: u64) -> bool {
        let shared = &self.shared;
        let now = shared.clock.monotonic();
        shared
            .budgets
            .paced(self.scope.provider, budget, units, self.interval, now)
    }

    /// The running instances of this scope whose accelerators no telemetry
    /// measures now: those to ask the cloud's own monitoring about. All regions
    /// of the account in a global scope. Sorted by id.
    #[must_use]
    pub fn unmeasured(&self) -> Vec<Arc<Instance>> {
        let mut instances = self.shared.store.instances(&self.scope).unwrap_or_default();
        let telemetry = self.shared.telemetry.borrow().clone();
        let measured: HashSet<_> = usage::measured(&telemetry, self.now(), self.shared.usage_time_to_live).collect();
        instances.retain(|instance| instance.state == State::Running && !measured.contains(&instance.key()));
        instances.sort_by(|a, b| a.key().cmp(&b.key()));
        instances.dedup_by(|b, a| a.key() == b.key());
        instances
    }

    /// Counts records that could not be used, by a fixed word.
    pub fn skip(&self, reason: &'static str, count: u64) {
        if count > 0 {
            self.shared.store.skip(&self.scope, reason, count);
        }
    }

    /// Reports an error that costs detail but not the listing (instance-type
    /// facts missing, say): counted and logged, the task is not up, its data
    /// are fresh all the same. Errors from [`Context::call`] are counted once.
    pub fn degraded(&self, error: &CollectError) {
        let mut error = error.clone();
        self.count(&mut error);
        self.degraded.store(true, Ordering::Relaxed);
        self.shared.store.note_error(&self.key(), &error.to_string());
        tracing::warn!(
            provider = %self.scope.provider, account = %self.scope.account.id, region = %self.scope.region,
            dataset = %self.dataset, reason = %error.reason, error = %error, "incomplete facts"
        );
    }

    /// Notes that a call which was answered did not tell what it should (an
    /// empty list in place of a refusal): `gpuwatch check` shows it as failed.
    pub fn call_failed(&self, call: Call, error: &CollectError) {
        self.shared
            .store
            .note_call(&self.scope, self.dataset, call, Some(error));
    }

    /// Notes that the newest answer of a call can mean two things (nothing was
    /// bought, or nothing may be seen) and the cloud does not say which:
    /// `gpuwatch check` says so, and counts it as no failure.
    pub fn unclear(&self, call: Call, what: &'static str) {
        self.shared.store.note_unclear(&self.scope, self.dataset, call, what);
        tracing::debug!(
            provider = %self.scope.provider, account = %self.scope.account.id, region = %self.scope.region,
            dataset = %self.dataset, operation = call.operation, permission = call.permission, what, "unclear answer"
        );
    }

    /// How the calls of this scope ended so far, for tests.
    #[must_use]
    pub fn calls(&self) -> Vec<CallStatus> {
        let mut calls = self.shared.store.calls();
        calls.retain(|status| status.scope == self.scope);
        calls
    }

    /// Starts polling targets at once, before discovery of the rest is done:
    /// one slow account must not hold up the others.
    pub fn announce(&self, targets: Vec<Target>) {
        if let Some(announce) = &self.announce {
            // The receiver is gone only when the scheduler has stopped.
            let _ = announce.send(targets);
        }
    }

    /// Now, by the scheduler's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Time between runs of this dataset.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Time since some fixed moment, by the scheduler's clock; never goes back.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// Time left until the deadline of this run.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_sub(self.shared.clock.monotonic())
    }

    /// Runs a future for at most `limit` by the scheduler's clock; `None` when
    /// the time is up.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        self.shared.clock.timeout(limit, future).await
    }

    /// Waits, by the scheduler's clock, but not past the deadline: for clouds
    /// that announce with an answer that the next call would be refused.
    pub async fn pause(&self, delay: Duration) {
        let delay = delay.min(self.remaining());
        if !delay.is_zero() {
            self.shared.clock.sleep(delay).await;
        }
    }

    /// A context outside a scheduler, for tests: real clock, no rate limits.
    ///
    /// # Panics
    /// Never: the names of its counters are constants.
    #[must_use]
    #[allow(clippy::expect_used, reason = "constant metric names")]
    pub fn detached(scope: Scope, deadline: Duration) -> Self {
        let options = Options {
            calls_per_second: u32::MAX,
            call_burst: u32::MAX,
            ..Options::default()
        };
        let shared = Shared {
            clock: Clock::System,
            accounting: Accounting::detached().expect("constant names"),
            limits: Limits::new(&options),
            budgets: Budgets::default(),
            store: Store::default(),
            telemetry: watch::channel(Arc::new(Telemetry::none())).1,
            usage_time_to_live: Duration::from_mins(15),
        };
        Self::new(Arc::new(shared), scope, Dataset::Inventory, deadline)
    }

    /// The same with these instances as the scope's inventory, for tests.
    #[must_use]
    pub fn with_inventory(self, instances: Vec<Instance>) -> Self {
        let key = TaskKey::new(&self.scope, Dataset::Inventory);
        self.shared.store.register(&key, Duration::MAX);
        let now = self.monotonic();
        self.shared
            .store
            .put(&key, "instances", Collected::Instances(instances), now);
        self
    }

    /// Records skipped so far in this scope for a reason.
    #[must_use]
    pub fn skipped(&self, reason: &str) -> u64 {
        self.shared.store.skipped(&self.scope, reason)
    }

    /// Failed attempts and degradations counted so far for this scope and
    /// dataset.
    #[must_use]
    pub fn errors(&self, reason: Reason) -> u64 {
        self.shared.store.errors(&self.key(), reason)
    }

    /// Whether [`Context::degraded`] was called in this run.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded.load(Ordering::Relaxed)
    }

    pub(crate) fn key(&self) -> TaskKey {
        TaskKey::new(&self.scope, self.dataset)
    }

    /// Counts an error once, however often it is passed on.
    pub(crate) fn count(&self, error: &mut CollectError) {
        if !error.counted {
            error.counted = true;
            self.shared.store.count_error(&self.key(), error.reason);
        }
    }
}
