//! Runs the rounds of every server and publishes what they find.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt as _;
use gpuwatch_collector_core::{Clock, CollectError, Dataset, Reason, Snapshot, Telemetry, TelemetryStatus, lock};
use gpuwatch_inventory::{InstanceUsage, Text};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    join::Refusal,
    reader::Reader,
    round::{Folded, InstanceKey, Round},
};

/// The first round waits so long for the first listing of instances.
const FIRST_LISTING: Duration = Duration::from_mins(1);
/// A round is cut off after this time, or two intervals where that is longer.
const SHORTEST_DEADLINE: Duration = Duration::from_mins(1);
/// New instances bring the next round forward, but not to less than this after
/// the one before.
const SHORTEST_PAUSE: Duration = Duration::from_secs(10);
/// Readings of instances that are silent are kept this long for the snapshot,
/// which decides how long they are fresh.
const KEPT: Duration = Duration::from_hours(24);

/// Where the rounds of all servers come together.
#[derive(Debug)]
pub struct Board {
    servers: Mutex<Vec<ServerState>>,
    published: watch::Sender<Arc<Telemetry>>,
}

#[derive(Debug, Clone, Default)]
struct ServerState {
    status: TelemetryStatus,
    usage: BTreeMap<InstanceKey, Arc<InstanceUsage>>,
}

impl Board {
    /// A board for servers of these names, in this order.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = Text>) -> Arc<Self> {
        let servers: Vec<ServerState> = names
            .into_iter()
            .map(|name| ServerState {
                status: TelemetryStatus {
                    name,
                    ..TelemetryStatus::default()
                },
                usage: BTreeMap::new(),
            })
            .collect();
        let first = compose(&servers);
        Arc::new(Self {
            servers: Mutex::new(servers),
            published: watch::channel(Arc::new(first)).0,
        })
    }

    /// Goes on with what an earlier board knows of the servers of the same
    /// names: a change of the configuration is no reason to forget readings.
    pub fn resume(&self, earlier: &Self) {
        let known = lock(&earlier.servers);
        let mut servers = lock(&self.servers);
        for server in servers.iter_mut() {
            if let Some(before) = known.iter().find(|before| before.status.name == server.status.name) {
                server.clone_from(before);
            }
        }
        self.published.send_replace(Arc::new(compose(&servers)));
    }

    /// Everything that is known, and a wake-up for each change.
    #[must_use]
    pub fn telemetry(&self) -> watch::Receiver<Arc<Telemetry>> {
        self.published.subscribe()
    }

    /// Starts to read the servers, in the order of their names, until stopped.
    /// What is to go into the history is sent to `folded`.
    pub fn start(
        self: &Arc<Self>,
        readers: Vec<Reader>,
        clock: &Clock,
        snapshots: &watch::Receiver<Arc<Snapshot>>,
        folded: Option<&mpsc::Sender<Vec<Folded>>>,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) {
        for (index, reader) in readers.into_iter().enumerate() {
            let poll = Poll {
                board: Arc::clone(self),
                index,
                reader: reader.with_clock(clock.clone()),
                clock: clock.clone(),
                snapshots: snapshots.clone(),
                folded: folded.cloned(),
            };
            let stop = stop.clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = poll.run_for_ever() => {}
                }
            });
        }
    }

    fn publish(&self, index: usize, change: impl FnOnce(&mut ServerState)) {
        let telemetry = {
            let mut servers = lock(&self.servers);
            if let Some(server) = servers.get_mut(index) {
                change(server);
            }
            compose(&servers)
        };
        self.published.send_replace(Arc::new(telemetry));
    }
}

fn compose(servers: &[ServerState]) -> Telemetry {
    Telemetry {
        usage: servers
            .iter()
            .flat_map(|server| server.usage.values().cloned())
            .collect(),
        servers: servers.iter().map(|server| server.status.clone()).collect(),
        settled: servers.iter().all(|server| server.status.up.is_some()),
    }
}

struct Poll {
    board: Arc<Board>,
    index: usize,
    reader: Reader,
    clock: Clock,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    folded: Option<mpsc::Sender<Vec<Folded>>>,
}

impl Poll {
    async fn run_for_ever(mut self) {
        self.wait_for_listing().await;
        loop {
            let started = self.clock.monotonic();
            let at = self.clock.now();
            let instances = self.snapshots.borrow_and_update().instances.clone();
            let count = instances.len();
            let interval = self.reader.options().interval;
            let deadline = (interval * 2).max(SHORTEST_DEADLINE);
            let round = AssertUnwindSafe(self.reader.round(&instances)).catch_unwind();
            let round = match self.clock.timeout(deadline, round).await {
                Some(Ok(round)) => round,
                Some(Err(_)) => failed(CollectError::new(
                    Reason::Other,
                    "reading the server failed unexpectedly",
                )),
                None => {
                    let message = format!("a round took longer than {} s", deadline.as_secs());
                    failed(CollectError::new(Reason::Timeout, message))
                }
            };
            let spent = self.clock.monotonic().saturating_sub(started);
            let lacks_instances = round.unjoined.contains_key(&Refusal::NoInstance);
            self.take(round, at, spent).await;
            let pause = interval.saturating_sub(spent);
            let early = if lacks_instances {
                pause.min(SHORTEST_PAUSE)
            } else {
                pause
            };
            self.clock.sleep(early).await;
            if early < pause {
                self.wait_for_change(count, pause.saturating_sub(early)).await;
            }
        }
    }

    /// Without instances there is nothing to join to.
    async fn wait_for_listing(&mut self) {
        let is_listed = |snapshot: &Arc<Snapshot>| {
            snapshot
                .tasks
                .iter()
                .any(|task| task.dataset == Dataset::Inventory && task.last_success.is_some())
        };
        let mut snapshots = self.snapshots.clone();
        let listed = async { snapshots.wait_for(is_listed).await.is_ok() };
        self.clock.timeout(FIRST_LISTING, listed).await;
    }

    /// Waits until there are more or fewer instances, or the time is up.
    async fn wait_for_change(&mut self, count: usize, limit: Duration) {
        let mut snapshots = self.snapshots.clone();
        let changed = async {
            snapshots
                .wait_for(|snapshot| snapshot.instances.len() != count)
                .await
                .is_ok()
        };
        if self.clock.timeout(limit, changed).await == Some(false) {
            // No more snapshots will come.
            self.clock.sleep(limit).await;
        }
    }

    async fn take(&self, round: Round, at: Timestamp, spent: Duration) {
        let name = &self.reader.options().name;
        for failure in &round.failures {
            tracing::warn!(telemetry = %name, reason = %failure.reason, error = %failure, "telemetry is incomplete");
        }
        for (refusal, cards) in &round.unjoined {
            tracing::debug!(telemetry = %name, reason = refusal.as_str(), cards, "cards without an instance");
        }
        let folded = round.folded;
        self.board.publish(self.index, |server| {
            let status = &mut server.status;
            let complete = round.failures.is_empty();
            status.up = Some(complete);
            status.last_duration = Some(spent);
            for failure in &round.failures {
                *status.errors.entry(failure.reason).or_default() += 1;
            }
            status.last_error = round.failures.last().map(ToString::to_string);
            if complete {
                status.last_success = Some(at);
            }
            if complete || !round.usage.is_empty() {
                status.joined = round.joined;
                let unjoined = round.unjoined.iter();
                status.unjoined = unjoined.map(|(refusal, count)| (refusal.as_str(), *count)).collect();
                status.unjoined_examples = round.examples.into_iter().take(TelemetryStatus::EXAMPLES).collect();
                status.families = round.families;
            }
            status.bad_values = status.bad_values.saturating_add(round.bad_values);
            // A card that this round could not tell is not shown as it was.
            for key in round.refused {
                server.usage.remove(&key);
            }
            for usage in round.usage {
                let key = (
                    usage.provider,
                    usage.account.clone(),
                    usage.region.clone(),
                    usage.id.clone(),
                );
                server.usage.insert(key, Arc::new(usage));
            }
            server
                .usage
                .retain(|_, usage| newest(usage).is_some_and(|newest| at.duration_since(newest).unsigned_abs() < KEPT));
        });
        if let Some(sender) = &self.folded
            && !folded.is_empty()
        {
            // The history is stopping; it has said so.
            let _ = sender.send(folded).await;
        }
    }
}

fn newest(usage: &InstanceUsage) -> Option<Timestamp> {
    usage.gpus.iter().map(|gpu| gpu.at).chain(usage.host.at).max()
}

fn failed(error: CollectError) -> Round {
    Round {
        failures: vec![error],
        ..Round::default()
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_inventory::{HostUsage, Provider};

    use super::*;

    fn usage(id: &str) -> (InstanceKey, Arc<InstanceUsage>) {
        let key: InstanceKey = (Provider::Aws, "1".into(), "r".into(), id.into());
        let usage = InstanceUsage {
            provider: Provider::Aws,
            account: "1".into(),
            region: "r".into(),
            id: id.into(),
            gpus: Vec::new(),
            host: HostUsage::default(),
            lag: Duration::ZERO,
        };
        (key, Arc::new(usage))
    }

    #[test]
    fn readings_outlive_a_change_of_the_configuration() {
        let before = Board::new(["a".into(), "gone".into()]);
        for index in [0, 1] {
            before.publish(index, |server| {
                server.status.up = Some(true);
                server.usage.extend([usage(&format!("i-{index}"))]);
            });
        }
        let after = Board::new(["new".into(), "a".into()]);
        after.resume(&before);
        let telemetry = after.telemetry().borrow().clone();
        let ids: Vec<_> = telemetry.usage.iter().map(|usage| &*usage.id).collect();
        assert_eq!(ids, ["i-0"]);
        assert!(!telemetry.settled, "the new server has not been read");
        assert_eq!(
            telemetry.servers.iter().map(|server| server.up).collect::<Vec<_>>(),
            [None, Some(true)]
        );
    }

    #[test]
    fn without_servers_there_is_nothing_to_wait_for() {
        assert!(Board::new([]).telemetry().borrow().settled);
    }
}
