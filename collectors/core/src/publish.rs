//! Merges the store into snapshots.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use gpuwatch_inventory::{Commitment, Instance, Provider};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, Collector, Fleet, Snapshot,
    context::Shared,
    store::{Stored, View},
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
    loop {
        let idle = next_expiry.map_or(IDLE, |at| at.saturating_sub(shared.clock.monotonic()).min(IDLE));
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.store.changed.notified() => {}
            () = shared.clock.sleep(idle) => {}
        }
        // Real time on purpose: this only paces the work of this machine.
        tokio::time::sleep(GATHER).await;
        let view = shared.store.view(shared.clock.monotonic());
        next_expiry = view.next_expiry;
        let generation = snapshots.borrow().generation + 1;
        let at = shared.clock.now();
        let collectors = Arc::clone(&collectors);
        // The time spent waiting for a thread is not the snapshot's cost.
        let timed = move || {
            let started = Clock::System.monotonic();
            let snapshot = build(view, &collectors, generation, at);
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

fn build(view: View, collectors: &[Arc<dyn Collector>], generation: u64, at: jiff::Timestamp) -> Snapshot {
    let mut snapshot = Snapshot {
        generation,
        tasks: view.tasks,
        skipped: view.skipped,
        ..Snapshot::empty(at)
    };
    for provider in Provider::ALL {
        let pieces = view
            .live
            .iter()
            .filter(|(of, _)| of == provider)
            .map(|(_, stored)| stored);
        let (instances, commitments) = merge(pieces);
        let fleet = allocate(*provider, collectors, instances, commitments);
        snapshot.instances.extend(fleet.instances);
        snapshot.commitments.extend(fleet.commitments.into_iter().map(Arc::new));
        snapshot.coverage.extend(fleet.coverage);
    }
    snapshot
}

/// Puts the pieces together in the order of identities; an identity that two
/// pieces carry counts once.
fn merge<'a>(pieces: impl Iterator<Item = &'a Stored>) -> (Vec<Arc<Instance>>, Vec<Commitment>) {
    let mut instances: Vec<Arc<Instance>> = Vec::new();
    let mut commitments: Vec<Commitment> = Vec::new();
    for piece in pieces {
        match piece {
            Stored::Instances(part) => instances.extend(part.iter().cloned()),
            Stored::Commitments(part) => commitments.extend(part.iter().map(|c| (**c).clone())),
        }
    }
    instances.sort_by(|a, b| a.key().cmp(&b.key()));
    instances.dedup_by(|b, a| a.key() == b.key());
    let key = |c: &Commitment| (c.account.clone(), c.region.clone(), c.id.clone());
    commitments.sort_by_cached_key(key);
    commitments.dedup_by(|b, a| key(a) == key(b));
    (instances, commitments)
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
