//! Turns snapshots into pages, in the background.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use gpuwatch_collector_core::{Clock, Dataset, Snapshot};
use tokio::{
    sync::watch,
    task::JoinError,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use crate::{
    encode::fleet,
    metrics::OwnMetrics,
    page::{CompressError, FleetPart, Page},
};

/// How often the program's own part is refreshed while the fleet's stands.
const OWN_REFRESH: Duration = Duration::from_secs(10);

/// Encoding pauses for this many times as long as it last took, so that it
/// uses at most some five per cent of one core however often snapshots come.
const PAUSE: u32 = 20;

/// The longest such pause, so that a busy machine or a huge fleet delays what
/// is shown by no more than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// At most this many failing inventories are named by [`Published::readiness`].
const NAMED_FAILURES: usize = 5;

/// Where snapshots come from: one generation of the configuration.
#[derive(Debug, Clone)]
pub struct Source {
    /// The scheduler's snapshots.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// How many sections of how many clouds it polls.
    pub sections: usize,
}

/// What the HTTP server shows: a page and the snapshot it was made from.
#[derive(Debug)]
pub struct Published {
    /// The metrics page.
    pub page: Page,
    /// What the page shows.
    pub snapshot: Arc<Snapshot>,
    /// See [`Source::sections`].
    pub sections: usize,
}

impl Published {
    /// Ready once any inventory has data that have not expired. With nothing
    /// to poll there is nothing to wait for.
    ///
    /// # Errors
    /// Why it is not ready, for people.
    pub fn readiness(&self) -> Result<(), String> {
        if self.sections == 0 {
            return Ok(());
        }
        let inventories = || {
            self.snapshot
                .tasks
                .iter()
                .filter(|task| task.dataset == Dataset::Inventory)
        };
        if inventories().any(|task| task.last_success.is_some() && !task.expired) {
            return Ok(());
        }
        if inventories().next().is_none() {
            return Err("no account has been discovered yet".to_owned());
        }
        let mut reason = format!("none of {} inventories has fresh data", inventories().count());
        for task in inventories().take(NAMED_FAILURES) {
            let error = task.last_error.as_deref().unwrap_or("no answer yet");
            // Writing into a `String` cannot fail.
            let _ = write!(reason, "\n{} {} {}: {error}", task.provider, task.account, task.region);
        }
        Err(reason)
    }
}

/// A page could not be made; the one before stays.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The compressor failed.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The program's own metrics could not be written.
    #[error("writing the program's own metrics failed: {0}")]
    Own(#[from] prometheus::Error),
    /// The encoding task died.
    #[error("encoding was cut off: {0}")]
    Task(#[from] JoinError),
}

/// Keeps the published page up to date.
#[derive(Debug)]
pub struct Publisher {
    published: Arc<ArcSwap<Published>>,
    metrics: OwnMetrics,
    sources: watch::Receiver<Source>,
}

impl Publisher {
    /// Publishes the newest snapshot of the current source at once, so that
    /// there is a page before the first request.
    ///
    /// # Errors
    /// When that page cannot be made.
    pub fn new(metrics: OwnMetrics, sources: watch::Receiver<Source>) -> Result<Self, PublishError> {
        let source = sources.borrow().clone();
        let snapshot = source.snapshots.borrow().clone();
        let part = encode(&snapshot, None)?;
        let page = Page::new(Arc::new(part), metrics.text()?)?;
        let published = Published {
            page,
            snapshot,
            sections: source.sections,
        };
        Ok(Self {
            published: Arc::new(ArcSwap::from_pointee(published)),
            metrics,
            sources,
        })
    }

    /// Where the newest page is found.
    #[must_use]
    pub fn published(&self) -> Arc<ArcSwap<Published>> {
        Arc::clone(&self.published)
    }

    /// Publishes until stopped. Snapshots that come faster than they may be
    /// encoded are skipped; the newest one is always published in the end.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut source = self.sources.borrow_and_update().clone();
        let mut source_ended = false;
        let mut earliest = Instant::now();
        let mut waiting = true;
        let mut refresh = tokio::time::interval_at(Instant::now() + OWN_REFRESH, OWN_REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Ok(()) = self.sources.changed() => {
                    source = self.sources.borrow_and_update().clone();
                    source_ended = false;
                    waiting = true;
                }
                changed = source.snapshots.changed(), if !source_ended => {
                    // A stopped scheduler's last snapshot stays until its
                    // successor has something to show.
                    source_ended = changed.is_err();
                    waiting |= changed.is_ok();
                }
                () = tokio::time::sleep_until(earliest), if waiting => {
                    waiting = false;
                    let started = Clock::System.monotonic();
                    if let Err(error) = self.publish(&mut source).await {
                        tracing::error!(%error, "the new page could not be made; the one before stays");
                    }
                    let cost = Clock::System.monotonic().saturating_sub(started);
                    earliest = Instant::now() + (cost * PAUSE).min(LONGEST_PAUSE);
                    refresh.reset();
                }
                _ = refresh.tick() => {
                    if let Err(error) = self.refresh_own().await {
                        tracing::error!(%error, "the program's own metrics could not be refreshed");
                    }
                }
            }
        }
    }

    async fn publish(&self, source: &mut Source) -> Result<(), PublishError> {
        let snapshot = source.snapshots.borrow_and_update().clone();
        let sections = source.sections;
        let before = self.published.load_full();
        let metrics = self.metrics.clone();
        let published = tokio::task::spawn_blocking(move || -> Result<Published, PublishError> {
            let started = Clock::System.monotonic();
            let part = encode(&snapshot, Some(before.page.fleet()))?;
            metrics.page_encoded(&part, Clock::System.monotonic().saturating_sub(started).as_secs_f64());
            let page = Page::new(Arc::new(part), metrics.text()?)?;
            Ok(Published {
                page,
                snapshot,
                sections,
            })
        })
        .await??;
        self.published.store(Arc::new(published));
        Ok(())
    }

    async fn refresh_own(&self) -> Result<(), PublishError> {
        let before = self.published.load_full();
        let metrics = self.metrics.clone();
        let published = tokio::task::spawn_blocking(move || -> Result<Published, PublishError> {
            let page = Page::new(Arc::clone(before.page.fleet()), metrics.text()?)?;
            Ok(Published {
                page,
                snapshot: Arc::clone(&before.snapshot),
                sections: before.sections,
            })
        })
        .await??;
        self.published.store(Arc::new(published));
        Ok(())
    }
}

/// Encodes the fleet's part into memory sized by the part before, because a
/// buffer that doubles as it grows would hold the page twice.
fn encode(snapshot: &Snapshot, before: Option<&Arc<FleetPart>>) -> Result<FleetPart, CompressError> {
    let with_reserve = |bytes: usize| bytes + bytes / 16;
    let expected = before
        .map_or(0, |part| with_reserve(part.plain_len()))
        .max(fleet::estimate(snapshot));
    let mut text = Vec::with_capacity(expected);
    fleet::encode(snapshot, &mut text);
    text.shrink_to_fit();
    let expected = before
        .map_or(0, |part| with_reserve(part.compressed_len()))
        .max(text.len() / 8);
    FleetPart::new(snapshot.generation, text, expected)
}
