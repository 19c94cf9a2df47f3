//! Every call × every kind of fault: the error is counted under the right
//! reason, nothing panics, and what does not depend on the call goes on.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::{sync::Arc, time::Duration};

use gpuwatch_collector_core::{Collector, Covers, Dataset, Reason, Scope};
use gpuwatch_fakecloud::{
    FaultKind,
    aws::{
        AccountSpec, CapacityReservationSpec, InstanceSpec, ReservedInstancesSpec, SavingsPlanRate, SavingsPlanSpec,
        World,
    },
};
use gpuwatch_test_kit::{for_each_kind, inventory_targets};
use support::{ACCOUNT, EAST, PATIENT, Rig, SECOND, WEST, role, scope, small_world};

/// How long a run may take: a hang lasts until the end, everything else comes
/// to an end by itself, however slow the machine.
fn limit(kind: FaultKind) -> Duration {
    if kind == FaultKind::Hang {
        Duration::from_secs(8)
    } else {
        PATIENT
    }
}

fn world() -> World {
    let world = small_world();
    world.add_account(SECOND, AccountSpec::default());
    for account in [ACCOUNT, SECOND] {
        for region in [EAST, WEST] {
            world.add_instances(account, region, 3, &InstanceSpec::of("g6.xlarge"));
            world.add_reserved_instances(account, region, ReservedInstancesSpec::default());
            world.add_capacity_reservation(account, region, CapacityReservationSpec::default());
        }
        let rate = SavingsPlanRate {
            region: EAST.into(),
            instance_type: "g6.xlarge".into(),
            product_description: "Linux/UNIX".into(),
            rate: "0.5".into(),
        };
        world.add_savings_plan(
            account,
            SavingsPlanSpec {
                rates: vec![rate],
                ..SavingsPlanSpec::default()
            },
        );
    }
    world
}

/// What a fault must be counted as, with `keys` for what refused keys mean at
/// that place.
fn expected(kind: FaultKind, pages: bool, keys: Reason) -> Option<Reason> {
    match kind {
        FaultKind::AuthFailure => Some(keys),
        _ => gpuwatch_test_kit::expected(kind, pages),
    }
}

/// A regional operation of a dataset, spoilt in one region.
async fn regional(operation: &'static str, dataset: Dataset, pages: bool) {
    for_each_kind(move |kind| async move {
        let rig = Rig::discovered(world(), |_| {}).await;
        rig.fault(kind, operation, Some(WEST));
        let (results, cx) = rig.collect(&scope(ACCOUNT, WEST), dataset, limit(kind)).await;
        let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        match expected(kind, pages, Reason::NotEnabled) {
            Some(reason) => {
                let [error] = errors.as_slice() else {
                    panic!("{operation} {kind}: {errors:?}")
                };
                assert_eq!(error.reason, reason, "{operation} {kind}: {error}");
            }
            None => assert!(errors.is_empty(), "{operation} {kind}: {errors:?}"),
        }
        if let Some(reason) = expected(kind, false, Reason::NotEnabled) {
            assert!(cx.errors(reason) > 0, "{operation} {kind}: not counted");
        }
        let (others, _) = rig.collect(&scope(ACCOUNT, EAST), dataset, PATIENT).await;
        assert!(others.iter().all(Result::is_ok), "{operation} {kind}: {others:?}");
    })
    .await;
}

async fn describe_instances() {
    regional("DescribeInstances", Dataset::Inventory, true).await;
}

async fn describe_reserved_instances() {
    regional("DescribeReservedInstances", Dataset::Commitments, false).await;
}

async fn describe_capacity_reservations() {
    // The other part of the dataset has shown before that the region accepts
    // the credentials; renewed ones have not, so the end is the same.
    regional("DescribeCapacityReservations", Dataset::Commitments, true).await;
}

async fn describe_instance_types() {
    for_each_kind(|kind| async move {
        let rig = Rig::discovered(world(), |_| {}).await;
        rig.fault(kind, "DescribeInstanceTypes", Some(WEST));
        let (instances, cx) = rig.instances_within(ACCOUNT, WEST, limit(kind)).await;
        let instances = instances.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(instances.len(), 3, "{kind}");
        assert!(
            instances.iter().all(|i| i.accelerators.count.is_some()),
            "{kind}: the catalogue answers"
        );
        let is_spoilt = expected(kind, true, Reason::Credentials).is_some();
        assert_eq!(cx.is_degraded(), is_spoilt, "{kind}");
        assert_eq!(
            rig.instances_in(ACCOUNT, EAST).await.0.map(|i| i.len()).ok(),
            Some(3),
            "{kind}"
        );
    })
    .await;
}

async fn describe_savings_plans() {
    for_each_kind(|kind| async move {
        let rig = Rig::discovered(world(), |_| {}).await;
        for region in [EAST, WEST] {
            rig.instances_in(ACCOUNT, region).await.0.expect("listing");
        }
        rig.fault(kind, "DescribeSavingsPlans", None);
        let (results, _) = rig
            .collect(&scope(ACCOUNT, Scope::GLOBAL), Dataset::Commitments, limit(kind))
            .await;
        let reason = results
            .first()
            .and_then(|result| result.as_ref().err())
            .map(|error| error.reason);
        assert_eq!(reason, expected(kind, true, Reason::Credentials), "{kind}: {results:?}");
    })
    .await;
}

async fn describe_savings_plan_rates() {
    for_each_kind(|kind| async move {
        let rig = Rig::discovered(world(), |_| {}).await;
        for region in [EAST, WEST] {
            rig.instances_in(ACCOUNT, region).await.0.expect("listing");
        }
        rig.fault(kind, "DescribeSavingsPlanRates", None);
        let (results, cx) = rig
            .collect(&scope(ACCOUNT, Scope::GLOBAL), Dataset::Commitments, limit(kind))
            .await;
        assert!(results.iter().all(Result::is_ok), "{kind}: {results:?}");
        let expected = expected(kind, true, Reason::Credentials);
        assert_eq!(cx.is_degraded(), expected.is_some(), "{kind}");
        if let Some(reason) = expected {
            assert!(cx.errors(reason) > 0, "{kind}: not counted as {reason}");
        }
    })
    .await;
}

/// An operation of discovery, spoilt for one of two accounts.
async fn discovery(operation: &'static str, fault_account: &'static str, covers: Covers) {
    for_each_kind(move |kind| async move {
        let rig = Arc::new(
            Rig::new(world(), |options| {
                options.assume_roles = vec!["self".into(), role(SECOND)];
                options.organization = operation == "ListAccounts";
            })
            .await,
        );
        let rule = gpuwatch_fakecloud::FaultRule::new(kind)
            .operation(operation)
            .account(fault_account);
        rig.fake.faults().add(rule);
        let (found, _) = rig.discover_within(limit(kind)).await;
        let pages = operation == "ListAccounts";
        let keys = if operation == "DescribeRegions" {
            Reason::NotEnabled
        } else {
            Reason::Credentials
        };
        let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
        match expected(kind, pages, keys) {
            Some(reason) => assert_eq!(failures, [(covers, reason)], "{operation} {kind}: {:?}", found.failures),
            None => assert!(failures.is_empty(), "{operation} {kind}: {:?}", found.failures),
        }
        let accounts: std::collections::BTreeSet<_> = inventory_targets(&found).into_iter().map(|(a, _)| a).collect();
        let is_spoilt = |account: &str| !failures.is_empty() && covers == Covers::Account && account == SECOND;
        if operation != "GetCallerIdentity" {
            for account in [ACCOUNT, SECOND] {
                assert_eq!(
                    accounts.contains(account),
                    !is_spoilt(account),
                    "{operation} {kind}: {account}"
                );
            }
        }
    })
    .await;
}

async fn get_caller_identity() {
    discovery("GetCallerIdentity", ACCOUNT, Covers::Everything).await;
}

async fn list_accounts() {
    discovery("ListAccounts", ACCOUNT, Covers::Everything).await;
}

async fn describe_regions() {
    discovery("DescribeRegions", SECOND, Covers::Account).await;
}

async fn assume_role() {
    // Called as the base account, for the second one.
    discovery("AssumeRole", ACCOUNT, Covers::Account).await;
}

/// All at once: nearly all of the time is spent waiting for retries.
#[tokio::test]
async fn every_fault_of_every_call_is_counted_and_contained() {
    tokio::join!(
        describe_instances(),
        describe_reserved_instances(),
        describe_capacity_reservations(),
        describe_instance_types(),
        describe_savings_plans(),
        describe_savings_plan_rates(),
        get_caller_identity(),
        list_accounts(),
        describe_regions(),
        assume_role(),
    );
}

#[tokio::test]
async fn the_collector_can_be_shared_between_tasks() {
    let rig = Rig::discovered(world(), |_| {}).await;
    let collector: Arc<dyn Collector> = Arc::new(rig.collector);
    assert_eq!(collector.parts(&scope(ACCOUNT, EAST), Dataset::Inventory).len(), 1);
    assert!(collector.parts(&scope(ACCOUNT, EAST), Dataset::Usage).is_empty());
}
