//! Runs one poll task: one dataset of one account in one region.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;

use crate::{
    CollectError, Collected, Collector, Context, Dataset, DatasetOptions, Part, Reason, Scope,
    context::Shared,
    store::{Run, TaskKey},
};

/// One account × region × dataset.
pub(crate) struct Task {
    pub collector: Arc<dyn Collector>,
    pub shared: Arc<Shared>,
    /// Runs at once; what waits does not use up its deadline.
    pub runs: Arc<Semaphore>,
    pub scope: Scope,
    pub dataset: Dataset,
    pub timing: DatasetOptions,
    pub key: TaskKey,
}

impl Task {
    pub async fn run_for_ever(&self) {
        let clock = &self.shared.clock;
        if self.dataset == Dataset::Usage {
            self.wait_for_inventory().await;
        }
        loop {
            let permit = self.runs.acquire().await;
            let started = clock.monotonic();
            self.run().await;
            drop(permit);
            let spent = clock.monotonic().saturating_sub(started);
            clock.sleep(self.period().saturating_sub(spent)).await;
        }
    }

    /// Without a listing and the first round of telemetry nobody knows what to
    /// ask for; a cloud charges for asking about the rest. Waits for one
    /// interval at most.
    async fn wait_for_inventory(&self) {
        const STEP: Duration = Duration::from_millis(200);
        let clock = &self.shared.clock;
        let until = clock.monotonic().saturating_add(self.timing.interval);
        while clock.monotonic() < until {
            let listed = self.shared.store.instances(&self.scope).is_some();
            if listed && self.shared.telemetry.borrow().settled {
                return;
            }
            clock.sleep(STEP).await;
        }
    }

    /// The interval, shortened by up to a tenth that depends on the task, so
    /// that thousands of tasks drift apart and none ever runs late.
    fn period(&self) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        let thousandths = u32::try_from(hasher.finish() % 100).unwrap_or_default();
        self.timing
            .interval
            .saturating_sub(self.timing.interval / 1000 * thousandths)
    }

    async fn run(&self) {
        let shared = &self.shared;
        let started = shared.clock.monotonic();
        let cx = Context::new(
            Arc::clone(shared),
            self.scope.clone(),
            self.dataset,
            self.timing.deadline,
        )
        .every(self.timing.interval);
        let parts = self.collector.parts(&self.scope, self.dataset);
        let failed = Arc::new(AtomicBool::new(false));
        futures::future::join_all(parts.into_iter().map(|part| self.run_part(part, &cx, &failed))).await;
        let complete = !failed.load(Ordering::Relaxed);
        let run = Run {
            up: complete && !cx.is_degraded(),
            complete,
            duration: shared.clock.monotonic().saturating_sub(started),
            at: shared.clock.now(),
        };
        shared.store.finish(&self.key, &run);
    }

    async fn run_part(&self, part: Part, cx: &Context, failed: &AtomicBool) {
        match self.fetch(part, cx).await {
            Ok(collected) => {
                let shared = &self.shared;
                shared.store.put(&self.key, part, collected, shared.clock.monotonic());
                // Other parts may take long or hang: this one is shown now.
                shared.store.changed.notify_one();
            }
            Err(mut error) => {
                failed.store(true, Ordering::Relaxed);
                cx.count(&mut error);
                self.shared.store.note_error(&self.key, &error.to_string());
                tracing::warn!(
                    provider = %self.scope.provider, account = %self.scope.account.id, region = %self.scope.region,
                    dataset = %self.dataset, part, reason = %error.reason, error = %error,
                    "poll failed; the last good answer stays until its time to live"
                );
            }
        }
    }

    /// One part in a task of its own, so that a panic or a hang ends there.
    async fn fetch(&self, part: Part, cx: &Context) -> Result<Collected, CollectError> {
        let (collector, scope, dataset) = (Arc::clone(&self.collector), self.scope.clone(), self.dataset);
        let cx = cx.clone();
        let mut running = AbortOnDrop(tokio::spawn(async move {
            let limit = cx.remaining();
            cx.timeout(limit, collector.collect(&scope, dataset, part, &cx)).await
        }));
        match (&mut running.0).await {
            Ok(Some(result)) => result,
            Ok(None) => {
                let message = format!("{part} took longer than {} s", self.timing.deadline.as_secs());
                Err(CollectError::new(Reason::Timeout, message))
            }
            Err(error) => Err(CollectError::new(Reason::Other, format!("{part} failed: {error}"))),
        }
    }
}

/// A spawned task that ends with its owner.
pub(crate) struct AbortOnDrop<T>(pub tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
