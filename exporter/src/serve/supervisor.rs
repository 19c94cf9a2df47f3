//! Reloads the configuration while the program runs.

use std::{fmt, time::Duration};

use gpuwatch_collector_core::{Accounting, Clock};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Collecting, Load, Plan};
use crate::{metrics::OwnMetrics, publisher::Source};

/// How long the fleet polled by the old configuration is shown at most while
/// the first round of polls by the new one is not complete.
const HANDOVER_LIMIT: Duration = Duration::from_mins(2);

/// Why a configuration was refused: every problem, one a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    problems: Vec<String>,
}

impl Refused {
    /// Refused for these problems.
    #[must_use]
    pub fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// The problems, for people; none holds a secret.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

/// Asks the supervisor to reload. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reloader {
    requests: mpsc::Sender<oneshot::Sender<Result<(), Refused>>>,
}

impl Reloader {
    pub(super) fn new(requests: mpsc::Sender<oneshot::Sender<Result<(), Refused>>>) -> Self {
        Self { requests }
    }

    /// A handle without a supervisor behind it: every reload is refused.
    #[must_use]
    pub fn refusing() -> Self {
        Self::new(mpsc::channel(1).0)
    }

    /// Reads the configuration again and polls by it.
    ///
    /// # Errors
    /// When it is refused; the one before stays in use.
    pub async fn reload(&self) -> Result<(), Refused> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .try_send(reply)
            .map_err(|_| Refused::new(vec!["too many reloads are waiting, or gpuwatch is stopping".to_owned()]))?;
        answer
            .await
            .unwrap_or_else(|_| Err(Refused::new(vec!["gpuwatch is stopping".to_owned()])))
    }
}

/// Owns the polling.
pub(super) struct Supervisor {
    pub(super) load: Load,
    /// The configured address, to tell when a reload changes it.
    pub(super) listen: String,
    /// The command line named the address.
    pub(super) listen_fixed: bool,
    pub(super) clock: Clock,
    pub(super) accounting: Accounting,
    pub(super) metrics: OwnMetrics,
    pub(super) sources: watch::Sender<Source>,
}

impl Supervisor {
    /// Answers reload requests until stopped, then stops polling.
    pub(super) async fn run(
        self,
        mut collecting: Collecting,
        mut requests: mpsc::Receiver<oneshot::Sender<Result<(), Refused>>>,
        stop: CancellationToken,
    ) {
        let stopping = TaskTracker::new();
        // Sections of a polling whose first round is not complete yet.
        let mut handover: Option<usize> = None;
        let mut handover_ends = tokio::time::Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(reply) = requests.recv() => {
                    let outcome = (self.load)().await;
                    let outcome = outcome.map(|plan| {
                        let sections = plan.collectors.len();
                        let new = self.start(plan, &collecting);
                        let old = std::mem::replace(&mut collecting, new);
                        stopping.spawn(old.stop());
                        handover = Some(sections);
                        handover_ends = tokio::time::Instant::now() + HANDOVER_LIMIT;
                    });
                    self.record(&outcome);
                    // Whoever asked may have gone away; the reload stands.
                    let _ = reply.send(outcome);
                }
                _ = tokio::time::timeout_at(handover_ends, collecting.polling().first_round()), if handover.is_some() => {
                    if let Some(sections) = handover.take() {
                        self.sources.send_replace(Source { snapshots: collecting.polling().snapshots(), sections });
                    }
                }
            }
        }
        collecting.stop().await;
        stopping.close();
        stopping.wait().await;
    }

    /// Polls by a new configuration, with the last good answers of the old
    /// polling. Until its first round is complete, the page keeps showing the
    /// last fleet of the old one: accounts have to be discovered first.
    fn start(&self, plan: Plan, earlier: &Collecting) -> Collecting {
        if !self.listen_fixed && plan.listen != self.listen {
            tracing::warn!(configured = %plan.listen, "a new listen address takes effect only after a restart");
        }
        Collecting::start(
            plan.collectors,
            plan.telemetry,
            plan.options,
            &self.clock,
            self.accounting.clone(),
            Some(earlier),
        )
    }

    fn record(&self, outcome: &Result<(), Refused>) {
        match outcome {
            Ok(()) => {
                self.metrics.configuration_loaded(self.clock.now());
                tracing::info!("configuration reloaded");
            }
            Err(refused) => {
                self.metrics.configuration_refused();
                for problem in refused.problems() {
                    tracing::error!(problem, "configuration refused, the one before stays in use");
                }
            }
        }
    }
}
