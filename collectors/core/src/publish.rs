//! Merges the store into snapshots.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use gpuwatch_inventory::{Commitment, Instance, InstanceUsage, Provider, State};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Collector, Fleet, Snapshot, Telemetry,
    context::Shared,
    store::{Stored, View},
    usage,
};

/// Changes within this time are published together.
const GATHER: Duration = Duration::from_millis(20);
/// After a snapshot, this many times what it cost is waited: while everything
/// changes at once, snapshots take at most a fifth of one core.
const PAUSE: u32 = 4;
/// Published at least this often while nothing happens.
const IDLE: Duration = Duration::from_mins(1);

/// Publishes until cancelled.
pub(crate) async fn run(
    shared: Arc<Shared>,
    collectors: Arc<[Arc<dyn Collector>]>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    stop: CancellationToken,
) {
    let mut next_expiry: Option<Duration> = None;
    let mut telemetry = shared.telemetry.clone();
    let mut telemetry_ended = false;
    loop {
        let idle = next_expiry.map_or(IDLE, |at| at.saturating_sub(shared.clock.monotonic()).min(IDLE));
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.store.changed.notified() => {}
            changed = telemetry.changed(), if !telemetry_ended => telemetry_ended = changed.is_err(),
            () = shared.clock.sleep(idle) => {}
        }
        // Real time on purpose: this only paces the work of this machine.
        tokio::time::sleep(GATHER).await;
        let view = shared.store.view(shared.clock.monotonic());
        next_expiry = view.next_expiry;
        let generation = snapshots.borrow().generation + 1;
        let at = shared.clock.now();
        let collectors = Arc::clone(&collectors);
        let measured = Arc::clone(&telemetry.borrow_and_update());
        let time_to_live = shared.usage_time_to_live;
        // The time spent waiting for a thread is not the snapshot's cost.
        let timed = move || {
            let started = Clock::System.monotonic();
            let snapshot = build(view, &collectors, generation, at, &measured, time_to_live);
            (snapshot, Clock::System.monotonic().saturating_sub(started))
        };
        let cost = match tokio::task::spawn_blocking(timed).await {
            Ok((snapshot, cost)) => {
                snapshots.send_replace(Arc::new(snapshot));
                cost
            }
            Err(error) => {
                tracing::error!(%error, "building a snapshot failed; the previous one stays");
                IDLE / PAUSE
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(cost * PAUSE) => {}
        }
    }
}

fn build(
    view: View,
    collectors: &[Arc<dyn Collector>],
    generation: u64,
    at: jiff::Timestamp,
    telemetry: &Telemetry,
    time_to_live: Duration,
) -> Snapshot {
    let mut snapshot = Snapshot {
        generation,
        tasks: view.tasks,
        skipped: view.skipped,
        telemetry: telemetry.servers.clone(),
        ..Snapshot::empty(at)
    };
    let mut clouds = Vec::new();
    for provider in Provider::ALL {
        let pieces = view
            .live
            .iter()
            .filter(|(of, _)| of == provider)
            .map(|(_, stored)| stored);
        let (instances, commitments, usage) = merge(pieces);
        clouds.extend(usage);
        let fleet = allocate(*provider, collectors, instances, commitments);
        snapshot.instances.extend(fleet.instances);
        snapshot.commitments.extend(fleet.commitments.into_iter().map(Arc::new));
        snapshot.coverage.extend(fleet.coverage);
    }
    snapshot.usage = usage::merge(&telemetry.usage, &clouds, at, time_to_live);
    keep_live(&mut snapshot.usage, &snapshot.instances);
    snapshot
}

/// Readings of instances that are gone, or that do not run, say nothing. Both
/// lists are sorted.
fn keep_live(usage: &mut Vec<Arc<InstanceUsage>>, instances: &[Arc<Instance>]) {
    let mut instances = instances.iter().peekable();
    usage.retain(|usage| {
        while instances.next_if(|instance| instance.key() < usage.key()).is_some() {}
        instances
            .peek()
            .is_some_and(|instance| instance.key() == usage.key() && instance.state == State::Running)
    });
}

type Pieces = (Vec<Arc<Instance>>, Vec<Commitment>, Vec<Arc<InstanceUsage>>);

/// Puts the pieces together in the order of identities; an identity that two
/// pieces carry counts once.
fn merge<'a>(pieces: impl Iterator<Item = &'a Stored>) -> Pieces {
    let mut instances: Vec<Arc<Instance>> = Vec::new();
    let mut commitments: Vec<Commitment> = Vec::new();
    let mut usage = Vec::new();
    for piece in pieces {
        match piece {
            Stored::Instances(part) => instances.extend(part.iter().cloned()),
            Stored::Commitments(part) => commitments.extend(part.iter().map(|c| (**c).clone())),
            Stored::Usage(part) => usage.extend(part.iter().cloned()),
        }
    }
    instances.sort_by(|a, b| a.key().cmp(&b.key()));
    instances.dedup_by(|b, a| a.key() == b.key());
    let key = |c: &Commitment| (c.account.clone(), c.region.clone(), c.id.clone());
    commitments.sort_by_cached_key(key);
    commitments.dedup_by(|b, a| key(a) == key(b));
    (instances, commitments, usage)
}

fn allocate(
    provider: Provider,
    collectors: &[Arc<dyn Collector>],
    instances: Vec<Arc<Instance>>,
    commitments: Vec<Commitment>,
) -> Fleet {
    let mut fleet = Fleet {
        instances,
        commitments,
        coverage: Vec::new(),
    };
    let Some(collector) = collectors.iter().find(|collector| collector.provider() == provider) else {
        return fleet;
    };
    let before = (fleet.instances.clone(), fleet.commitments.clone());
    // A defect in one cloud's allocation must not cost the others their page.
    let outcome = catch_unwind(AssertUnwindSafe(|| collector.allocate(&mut fleet)));
    if outcome.is_err() {
        tracing::error!(%provider, "allocation of commitments panicked; instances keep the mode their cloud states");
        return Fleet {
            instances: before.0,
            commitments: before.1,
            coverage: Vec::new(),
        };
    }
    fleet
}
