//! Runs discovery and the poll tasks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gpuwatch_inventory::Text;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Account, Accounting, Budgets, Clock, CollectError, Collector, Context, Covers, Dataset, DatasetOptions, Discovery,
    DiscoveryFailure, Limits, Options, Reason, Scope, Snapshot, Target, Telemetry,
    context::Shared,
    publish,
    store::{CallStatus, Store, TaskKey},
    task::{AbortOnDrop, Task},
};

/// Runs at once; what waits does not use up its deadline.
const MAX_RUNS: usize = 256;
/// A discovery is cut off after this time; announced targets stay.
const DISCOVERY_DEADLINE: Duration = Duration::from_mins(1);
/// First wait after a failed discovery; doubles up to the normal interval.
const DISCOVERY_RETRY: Duration = Duration::from_secs(1);
/// How long a stop waits for running polls.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Everything needed to poll, not yet started.
pub struct Scheduler {
    collectors: Arc<[Arc<dyn Collector>]>,
    options: Arc<Options>,
    shared: Arc<Shared>,
}

/// Polling that goes on in the background.
#[derive(Debug)]
pub struct Polling {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    shared: Arc<Shared>,
    board: Arc<Board>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

/// Which tasks exist and who runs them.
#[derive(Debug, Default)]
struct Board {
    tasks: Mutex<BTreeMap<TaskKey, Owned>>,
    /// Per collector: whether its first discovery has ended.
    discovered: Mutex<BTreeMap<usize, bool>>,
}

#[derive(Debug)]
struct Owned {
    collector: usize,
    account: Text,
    cancel: CancellationToken,
}

impl Scheduler {
    /// Polls these collectors by these options.
    #[must_use]
    pub fn new(collectors: Vec<Arc<dyn Collector>>, options: Options, clock: Clock, accounting: Accounting) -> Self {
        let shared = Shared {
            clock,
            accounting,
            limits: Limits::new(&options),
            budgets: Budgets::new(options.budgets.clone()),
            store: Store::default(),
            telemetry: watch::channel(Arc::new(Telemetry::none())).1,
            usage_time_to_live: options
                .datasets
                .get(&Dataset::Usage)
                .map_or(DatasetOptions::every(Duration::ZERO).time_to_live, |timing| {
                    timing.time_to_live
                }),
        };
        Self {
            collectors: collectors.into(),
            options: Arc::new(options),
            shared: Arc::new(shared),
        }
    }

    /// Merges these readings into the snapshots. Clouds are not asked about
    /// what they measure.
    #[must_use]
    pub fn with_telemetry(mut self, telemetry: watch::Receiver<Arc<Telemetry>>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.telemetry = telemetry;
        }
        self
    }

    /// Goes on from an earlier polling by another configuration: its last good
    /// answers are shown until their time to live, its counts and the use of
    /// its budgets carry on.
    #[must_use]
    pub fn resume(self, earlier: &Polling) -> Self {
        self.shared.budgets.adopt(&earlier.shared.budgets);
        self.shared.store.inherit(&earlier.shared.store);
        self
    }

    /// Starts polling on the current tokio runtime.
    #[must_use]
    pub fn start(self) -> Polling {
        let stop = CancellationToken::new();
        let tracker = TaskTracker::new();
        let (sender, snapshots) = watch::channel(Arc::new(Snapshot::empty(self.shared.clock.now())));
        tracker.spawn(publish::run(
            Arc::clone(&self.shared),
            Arc::clone(&self.collectors),
            sender,
            stop.clone(),
        ));
        let board = Arc::new(Board::default());
        let runs = Arc::new(Semaphore::new(MAX_RUNS));
        for (index, collector) in self.collectors.iter().enumerate() {
            board.set_discovered(index, false);
            let section = Section {
                index,
                collector: Arc::clone(collector),
                options: Arc::clone(&self.options),
                shared: Arc::clone(&self.shared),
                board: Arc::clone(&board),
                runs: Arc::clone(&runs),
                tracker: tracker.clone(),
                stop: stop.clone(),
            };
            tracker.spawn(async move {
                tokio::select! {
                    () = section.stop.cancelled() => {}
                    () = section.discover_for_ever() => {}
                }
            });
        }
        Polling {
            snapshots,
            shared: self.shared,
            board,
            stop,
            tracker,
        }
    }
}

impl Polling {
    /// The newest snapshot, and a wake-up for each new one.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Waits until every collector has been discovered once and every task
    /// has run once, and the snapshot shows it. For one-shot use; failures
    /// count as runs.
    pub async fn first_round(&self) -> Arc<Snapshot> {
        let mut snapshots = self.snapshots();
        loop {
            let done = self.board.all_discovered() && {
                let tasks = self.board.lock();
                self.shared.store.all_have_run(tasks.keys())
            };
            if done {
                break;
            }
            // Every finished run and every discovery publishes a snapshot.
            if snapshots.changed().await.is_err() {
                break;
            }
        }
        // The snapshot that showed the last run may already be there; one more
        // is asked for so that the answer is complete either way.
        self.shared.store.changed.notify_one();
        let _ = snapshots.changed().await;
        snapshots.borrow().clone()
    }

    /// How the newest call of every operation ended, per scope and dataset.
    #[must_use]
    pub fn calls(&self) -> Vec<CallStatus> {
        self.shared.store.calls()
    }

    /// Stops polling: calls in flight are dropped. Returns after at most a few
    /// seconds.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(STOP_LIMIT, self.tracker.wait()).await.is_err() {
            tracing::warn!("some polls did not stop in time");
        }
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Board {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TaskKey, Owned>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_discovered(&self, collector: usize, done: bool) {
        self.discovered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(collector, done);
    }

    fn all_discovered(&self) -> bool {
        self.discovered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .all(|done| *done)
    }
}

/// One configured section at work.
#[derive(Clone)]
struct Section {
    index: usize,
    collector: Arc<dyn Collector>,
    options: Arc<Options>,
    shared: Arc<Shared>,
    board: Arc<Board>,
    runs: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Section {
    async fn discover_for_ever(&self) {
        let mut retry = DISCOVERY_RETRY;
        let mut failing = BTreeSet::new();
        loop {
            let failures = self.discover_once().await;
            let now_failing: BTreeSet<TaskKey> = failures.iter().map(|f| self.failure_key(&f.account)).collect();
            for key in &now_failing {
                self.shared.store.set_up(key, Some(false));
            }
            for recovered in failing.difference(&now_failing) {
                self.shared.store.set_up(recovered, None);
            }
            self.board.set_discovered(self.index, true);
            if self.board.all_discovered() {
                self.shared.store.forget_inherited();
            }
            self.shared.store.changed.notify_one();
            self.shared.limits.tidy();
            let pause = if now_failing.is_empty() {
                retry = DISCOVERY_RETRY;
                self.options.discovery_interval
            } else {
                let pause = retry.min(self.options.discovery_interval);
                retry = retry.saturating_mul(2);
                pause
            };
            failing = now_failing;
            self.shared.clock.sleep(pause).await;
        }
    }

    /// One look for accounts and regions. Targets start as soon as they are
    /// known; those that a complete look no longer finds are stopped.
    async fn discover_once(&self) -> Vec<DiscoveryFailure> {
        let provider = self.collector.provider();
        let scope = Scope {
            provider,
            account: self.section_account(),
            region: Scope::GLOBAL.into(),
        };
        let (announce, mut announced) = mpsc::unbounded_channel();
        let cx = Context::new(Arc::clone(&self.shared), scope, Dataset::Inventory, DISCOVERY_DEADLINE)
            .every(self.options.discovery_interval)
            .announcing(announce);
        let collector = Arc::clone(&self.collector);
        let mut running = AbortOnDrop(tokio::spawn(async move {
            let limit = cx.remaining();
            cx.timeout(limit, collector.discover(&cx)).await
        }));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(targets) = announced.recv() => self.start_targets(&targets),
                outcome = &mut running.0 => break outcome,
            }
        };
        while let Ok(targets) = announced.try_recv() {
            self.start_targets(&targets);
        }
        let mut discovery = match outcome {
            Ok(Some(discovery)) => discovery,
            Ok(None) => self.failed_discovery(CollectError::new(
                Reason::Timeout,
                format!(
                    "looking for accounts and regions took longer than {} s",
                    DISCOVERY_DEADLINE.as_secs()
                ),
            )),
            Err(error) => self.failed_discovery(CollectError::new(Reason::Other, format!("discovery failed: {error}"))),
        };
        self.start_targets(&discovery.targets);
        self.stop_targets_that_are_gone(&discovery);
        for failure in &mut discovery.failures {
            let key = self.failure_key(&failure.account);
            if !failure.error.counted {
                self.shared.store.count_error(&key, failure.error.reason);
            }
            self.shared.store.note_error(&key, &failure.error.to_string());
            tracing::warn!(
                %provider, section = self.collector.name(), account = %failure.account.id,
                reason = %failure.error.reason, error = %failure.error, "discovery failed"
            );
        }
        discovery.failures
    }

    fn section_account(&self) -> Account {
        Account {
            id: self.collector.name().into(),
            name: self.collector.name().into(),
        }
    }

    fn failed_discovery(&self, error: CollectError) -> Discovery {
        let failure = DiscoveryFailure {
            account: self.section_account(),
            covers: Covers::Everything,
            error,
        };
        Discovery {
            targets: Vec::new(),
            failures: vec![failure],
        }
    }

    fn failure_key(&self, account: &Account) -> TaskKey {
        TaskKey {
            provider: self.collector.provider(),
            account: account.id.clone(),
            region: Scope::GLOBAL.into(),
            dataset: Dataset::Inventory,
        }
    }

    fn start_targets(&self, targets: &[Target]) {
        for target in targets {
            for dataset in &target.datasets {
                self.start_task(&target.scope, *dataset);
            }
        }
    }

    fn start_task(&self, scope: &Scope, dataset: Dataset) {
        let Some(timing) = self.options.datasets.get(&dataset).copied() else {
            return;
        };
        let key = TaskKey::new(scope, dataset);
        let mut tasks = self.board.lock();
        if let Some(existing) = tasks.get(&key) {
            if existing.collector != self.index {
                tracing::debug!(
                    provider = %scope.provider, account = %scope.account.id, region = %scope.region, %dataset,
                    section = self.collector.name(), "already polled for another section; not polled twice"
                );
            }
            return;
        }
        let cancel = self.stop.child_token();
        let owned = Owned {
            collector: self.index,
            account: scope.account.id.clone(),
            cancel: cancel.clone(),
        };
        tasks.insert(key.clone(), owned);
        self.shared.store.register(&key, timing.time_to_live);
        drop(tasks);
        let task = Task {
            collector: Arc::clone(&self.collector),
            shared: Arc::clone(&self.shared),
            runs: Arc::clone(&self.runs),
            scope: scope.clone(),
            dataset,
            timing,
            key,
        };
        self.tracker.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = task.run_for_ever() => {}
            }
        });
    }

    fn stop_targets_that_are_gone(&self, discovery: &Discovery) {
        let blind = discovery
            .failures
            .iter()
            .any(|failure| failure.covers == Covers::Everything);
        if blind {
            return;
        }
        let unclear: BTreeSet<&Text> = discovery.failures.iter().map(|failure| &failure.account.id).collect();
        let found: BTreeSet<TaskKey> = discovery
            .targets
            .iter()
            .flat_map(|target| {
                target
                    .datasets
                    .iter()
                    .map(|dataset| TaskKey::new(&target.scope, *dataset))
            })
            .collect();
        let mut tasks = self.board.lock();
        let gone: Vec<TaskKey> = tasks
            .iter()
            .filter(|(key, owned)| {
                owned.collector == self.index && !unclear.contains(&owned.account) && !found.contains(key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(owned) = tasks.remove(&key) {
                owned.cancel.cancel();
                self.shared.store.remove(&key);
                tracing::info!(
                    provider = %key.provider, account = %key.account, region = %key.region, dataset = %key.dataset,
                    "no longer there; polling stopped"
                );
            }
        }
    }
}
