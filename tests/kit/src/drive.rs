//! Running a collector as the scheduler does, without its timers.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use gpuwatch_collector_core::{CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Reason, Scope};
use gpuwatch_inventory::{Commitment, Instance, InstanceUsage};

/// What each part of a dataset gave.
pub type Parts = Vec<(&'static str, Result<Collected, CollectError>)>;

/// Collects every part of a dataset, each cut off at the limit as the
/// scheduler does it.
pub async fn collect(collector: &dyn Collector, scope: &Scope, dataset: Dataset, limit: Duration) -> (Parts, Context) {
    let cx = Context::detached(scope.clone(), limit);
    (collect_in(collector, &cx, dataset).await, cx)
}

/// The same in a context that is there already.
pub async fn collect_in(collector: &dyn Collector, cx: &Context, dataset: Dataset) -> Parts {
    let scope = cx.scope();
    let limit = cx.remaining();
    let runs = collector.parts(scope, dataset).into_iter().map(|part| async move {
        let run = collector.collect(scope, dataset, part, cx);
        let cut = || Err(CollectError::new(Reason::Timeout, "cut off"));
        (part, cx.timeout(limit, run).await.unwrap_or_else(cut))
    });
    join_all(runs).await
}

/// What the cloud's own monitoring says about these instances, the inventory
/// of the scope.
pub async fn usage(
    collector: &dyn Collector,
    scope: &Scope,
    inventory: Vec<Instance>,
    limit: Duration,
) -> (Result<Vec<InstanceUsage>, CollectError>, Context) {
    let cx = Context::detached(scope.clone(), limit).with_inventory(inventory);
    let mut usage = Vec::new();
    for (_, result) in collect_in(collector, &cx, Dataset::Usage).await {
        match result {
            Ok(Collected::Usage(found)) => usage.extend(found),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return (Err(error), cx),
        }
    }
    (Ok(usage), cx)
}

/// Everything of every target of a discovery, merged and allocated. Fails when
/// anything of it failed or is degraded.
pub async fn everything(collector: &dyn Collector, discovery: &Discovery, limit: Duration) -> Fleet {
    assert!(discovery.failures.is_empty(), "{:?}", discovery.failures);
    let mut fleet = Fleet::default();
    for target in &discovery.targets {
        for dataset in &target.datasets {
            let (results, cx) = collect(collector, &target.scope, *dataset, limit).await;
            for (part, result) in results {
                match result.unwrap_or_else(|error| panic!("{:?} {part}: {error}", target.scope)) {
                    Collected::Instances(found) => fleet.instances.extend(found.into_iter().map(Arc::new)),
                    Collected::Commitments(found) => fleet.commitments.extend(found),
                    Collected::Usage(_) => {}
                }
            }
            assert!(!cx.is_degraded(), "{:?} {dataset:?}", target.scope);
        }
    }
    collector.allocate(&mut fleet);
    fleet
}

/// The instances of all parts, or the first error.
///
/// # Errors
/// That of the first part that failed.
pub fn instances(parts: Parts) -> Result<Vec<Instance>, CollectError> {
    let mut instances = Vec::new();
    for (_, result) in parts {
        match result? {
            Collected::Instances(found) => instances.extend(found),
            other => panic!("{other:?}"),
        }
    }
    Ok(instances)
}

/// The commitments of all parts, or the first error.
///
/// # Errors
/// That of the first part that failed.
pub fn commitments(parts: Parts) -> Result<Vec<Commitment>, CollectError> {
    let mut commitments = Vec::new();
    for (_, result) in parts {
        match result? {
            Collected::Commitments(found) => commitments.extend(found),
            other => panic!("{other:?}"),
        }
    }
    Ok(commitments)
}

/// Why something failed.
pub fn reason(result: &Result<impl Sized, CollectError>) -> Option<Reason> {
    result.as_ref().err().map(|error| error.reason)
}

/// Accounts and regions that have an inventory, in order.
#[must_use]
pub fn inventory_targets(discovery: &Discovery) -> Vec<(String, String)> {
    let targets = discovery
        .targets
        .iter()
        .filter(|target| target.datasets.contains(&Dataset::Inventory));
    let mut found: Vec<_> = targets
        .map(|target| (target.scope.account.id.to_string(), target.scope.region.to_string()))
        .collect();
    found.sort();
    found
}

/// As [`inventory_targets`] gives them.
#[must_use]
pub fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}
