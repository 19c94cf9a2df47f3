//! Every call × every kind of fault: the error is counted under the right
//! reason, nothing panics, and what does not depend on the call goes on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests; a simulated cloud lives by the wall clock"
)]

mod support;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use gpuwatch_collector_core::{CollectError, Collected, Collector as _, Covers, Dataset, Fleet, Reason, Scope};
use gpuwatch_fakecloud_aliyun::{
    ACCESS_KEY_SECRET, Charge, InstanceSpec, PoolKind, PoolSpec, Renewal, ReservedInstanceSpec, SavingsPlanSpec, World,
};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_inventory::{BillingMode, Instance, State};
use gpuwatch_test_kit::{expected, for_each_kind, inventory_targets};
use support::{HANGZHOU, PATIENT, Rig, SECOND, SINGAPORE, TYPE, UID, add, both, no_keys, role, scope, two_accounts};

/// Known to the type API only.
const UNKNOWN_TYPE: &str = "ecs.gn10x-c32g4.32xlarge";

/// How long a run may take: a hang lasts until the end, everything else comes
/// to an end by itself, however slow the machine.
fn limit(kind: FaultKind) -> Duration {
    if kind == FaultKind::Hang {
        Duration::from_secs(6)
    } else {
        PATIENT
    }
}

/// Two accounts with the same things in two regions.
fn world() -> World {
    let world = two_accounts();
    for account in [UID, SECOND] {
        for region in [HANGZHOU, SINGAPORE] {
            world.add_instances(account, region, 3, &InstanceSpec::of(TYPE));
            for _ in 0..2 {
                world.add_reserved_instance(account, region, ReservedInstanceSpec::default());
                for kind in [PoolKind::ElasticityAssurance, PoolKind::CapacityReservation] {
                    let spec = PoolSpec {
                        kind,
                        ..PoolSpec::default()
                    };
                    world.add_pool(account, region, spec);
                }
            }
        }
        for _ in 0..2 {
            world.add_savings_plan(account, SavingsPlanSpec::default());
        }
    }
    world
}

fn ids(collected: &Collected) -> BTreeSet<String> {
    match collected {
        Collected::Instances(found) => found.iter().map(|i| i.id.to_string()).collect(),
        Collected::Commitments(found) => found.iter().map(|c| c.id.to_string()).collect(),
        Collected::Usage(found) => found.iter().map(|u| u.id.to_string()).collect(),
    }
}

fn count(collected: &Collected) -> usize {
    match collected {
        Collected::Instances(found) => found.len(),
        Collected::Commitments(found) => found.len(),
        Collected::Usage(found) => found.len(),
    }
}

type Outcome = (&'static str, Result<Collected, CollectError>);

/// The ids of every part, all of which must be complete.
#[track_caller]
fn complete(results: &[Outcome], title: &str) -> Vec<(&'static str, BTreeSet<String>)> {
    let parts = results.iter().map(|(part, result)| {
        let collected = result
            .as_ref()
            .unwrap_or_else(|error| panic!("{title}, {part}: {error}"));
        let ids = ids(collected);
        assert_eq!(ids.len(), count(collected), "{title}, {part}: something is there twice");
        assert!(!ids.is_empty(), "{title}, {part}: the case would show nothing");
        (*part, ids)
    });
    parts.collect()
}

/// An operation of one part of a dataset, spoilt in one place: the part is an
/// error or complete, never shorter; the other parts and `elsewhere` are fresh.
async fn part(
    operation: &'static str,
    dataset: Dataset,
    name: &'static str,
    place: (&'static str, &'static str),
    elsewhere: (&'static str, &'static str),
) {
    for_each_kind(move |kind| async move {
        let title = format!("{operation} {kind}");
        let rig = Rig::discovered(&world(), both).await;
        let (here, there) = (scope(place.0, place.1), scope(elsewhere.0, elsewhere.1));
        let whole = complete(&rig.collect(&here, dataset, PATIENT).await.0, &title);
        let whole_there = complete(&rig.collect(&there, dataset, PATIENT).await.0, &title);

        let rule = FaultRule::new(kind).operation(operation).account(place.0);
        rig.server.faults().add(if place.1 == Scope::GLOBAL {
            rule
        } else {
            rule.region(place.1)
        });
        let (results, cx) = rig.collect(&here, dataset, limit(kind)).await;
        for ((part, result), (_, whole)) in results.iter().zip(&whole) {
            match (expected(kind, true).filter(|_| *part == name), result) {
                (Some(reason), Err(error)) => {
                    assert_eq!(error.reason, reason, "{title}, {part}: {error}");
                    assert!(!error.to_string().contains(ACCESS_KEY_SECRET), "{error}");
                }
                (None, Ok(found)) => {
                    assert_eq!(ids(found), *whole, "{title}, {part}");
                    assert_eq!(count(found), whole.len(), "{title}, {part}: something is there twice");
                }
                (wanted, found) => panic!("{title}, {part}: {wanted:?}, {found:?}"),
            }
        }
        // What only the end of the pages shows is counted by the scheduler.
        if let Some(reason) = expected(kind, true).filter(|_| !kind.alters_answer()) {
            assert!(cx.errors(reason) > 0, "{title}: not counted");
        }
        if kind == FaultKind::MalformedRecord {
            assert_eq!(cx.skipped("malformed"), 1, "{title}");
        }
        let (others, cx) = rig.collect(&there, dataset, PATIENT).await;
        assert_eq!(complete(&others, &title), whole_there, "{title}");
        assert!(!cx.is_degraded(), "{title}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_instances() {
    let (place, elsewhere) = ((UID, HANGZHOU), (UID, SINGAPORE));
    part("DescribeInstances", Dataset::Inventory, "instances", place, elsewhere).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_commitments_of_a_region() {
    let (place, elsewhere) = ((UID, HANGZHOU), (UID, SINGAPORE));
    let spoil = |operation, name| part(operation, Dataset::Commitments, name, place, elsewhere);
    tokio::join!(
        spoil("DescribeReservedInstances", "reserved_instances"),
        spoil("DescribeElasticityAssurances", "elasticity_assurances"),
        spoil("DescribeCapacityReservations", "capacity_reservations"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_savings_plans() {
    let (place, elsewhere) = ((UID, Scope::GLOBAL), (SECOND, Scope::GLOBAL));
    let name = "savings_plans";
    part(
        "QuerySavingsPlansInstance",
        Dataset::Commitments,
        name,
        place,
        elsewhere,
    )
    .await;
}

/// What the bill says is a detail of commitments, spoilt for one of two
/// accounts: the listing is whole.
async fn bill(operation: &'static str, region: &'static str, payer: &'static str) {
    for_each_kind(move |kind| async move {
        let title = format!("{operation} {kind}");
        let world = world();
        let old = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(96);
        let covered: Vec<String> = [UID, SECOND]
            .iter()
            .map(|account| {
                let spec = InstanceSpec {
                    created: Some(old),
                    ..InstanceSpec::of("ecs.gn6i-c4g1.xlarge")
                };
                let id = world.add_instance(account, HANGZHOU, spec).expect("account");
                world.set_paid_by_savings_plans(account, &id, 1.0);
                world.set_paid_by_reserved_instances(account, &id, 1.0);
                id
            })
            .collect();
        let rig = Rig::discovered(&world, both).await;
        rig.server
            .faults()
            .add(FaultRule::new(kind).operation(operation).account(UID));
        for (account, id) in [UID, SECOND].into_iter().zip(&covered) {
            let (results, cx) = rig
                .collect(&scope(account, region), Dataset::Commitments, limit(kind))
                .await;
            complete(&results, &title);
            let expected = expected(kind, true).filter(|_| account == UID);
            // The wrong site is the failure of another listing.
            let is_told = expected.is_some_and(|reason| reason != Reason::NotEnabled);
            assert_eq!(cx.is_degraded(), is_told, "{title}");
            if let Some(reason) = expected {
                assert!(cx.errors(reason) > 0 || !is_told, "{title}: not counted");
            }
            let mut fleet = Fleet::default();
            for (_, result) in results {
                if let Ok(Collected::Commitments(found)) = result {
                    fleet.commitments.extend(found);
                }
            }
            let (instances, _) = rig.instances_in(account, HANGZHOU).await;
            fleet.instances = instances.expect("listing").into_iter().map(Arc::new).collect();
            rig.collector.allocate(&mut fleet);
            let instance = fleet.instances.iter().find(|i| *i.id == **id).expect("listed");
            let label = if expected.is_none() { payer } else { "" };
            assert_eq!(&*instance.billing.detail, label, "{title}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_reading_the_bill_costs_labels_only() {
    tokio::join!(
        bill("DescribeResourceCoverageDetail", HANGZHOU, "reserved_instance"),
        bill("DescribeSavingsPlansCoverageDetail", Scope::GLOBAL, "savings_plan"),
    );
}

/// An operation of discovery, spoilt for one of two accounts.
async fn discovery(operation: &'static str, account: &'static str, covers: Covers) {
    for_each_kind(move |kind| async move {
        let title = format!("{operation} {kind}");
        let rig = Rig::new(&world(), both).await;
        rig.server
            .faults()
            .add(FaultRule::new(kind).operation(operation).account(account));
        let (found, _) = rig.discover_within(limit(kind)).await;
        let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
        match expected(kind, false) {
            Some(reason) => assert_eq!(failures, [(covers, reason)], "{title}: {:?}", found.failures),
            None => assert!(failures.is_empty(), "{title}: {:?}", found.failures),
        }
        for failure in &found.failures {
            assert!(!failure.error.to_string().contains(ACCESS_KEY_SECRET), "{title}");
        }
        let spoilt = if covers == Covers::Account { SECOND } else { UID };
        let other = if covers == Covers::Account { UID } else { SECOND };
        let targets = inventory_targets(&found);
        let regions = |uid: &str| targets.iter().filter(|(account, _)| account == uid).count();
        assert_eq!(regions(other), 2, "{title}");
        assert_eq!(regions(spoilt), if failures.is_empty() { 2 } else { 0 }, "{title}");
        // What was found can be polled.
        let (listed, _) = rig.instances_in(other, HANGZHOU).await;
        assert_eq!(listed.expect("listing").len(), 3, "{title}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_asking_whose_the_keys_are() {
    discovery("GetCallerIdentity", UID, Covers::Everything).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_assuming_a_role() {
    discovery("AssumeRole", UID, Covers::Account).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_regions() {
    discovery("DescribeRegions", SECOND, Covers::Account).await;
}

/// Keys that come from the machine or the cluster: without them nothing is
/// found, and with the next discovery everything.
async fn keys(operation: &'static str, is_cluster: bool) {
    for_each_kind(move |kind| async move {
        let title = format!("{operation} {kind}");
        let world = world();
        world.set_metadata_role(UID, "gpuwatch");
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, world.oidc_token(jiff::SignedDuration::from_hours(1))).unwrap();
        let (arn, provider) = (role(UID), format!("acs:ram::{UID}:oidc-provider/ack"));
        let cluster = [
            ("ALIBABA_CLOUD_ROLE_ARN", arn.as_str()),
            ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", &provider),
            ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", token.to_str().unwrap()),
        ];
        let variables: &[(&str, &str)] = if is_cluster { &cluster } else { &[] };
        let rig = Rig::with_variables(&world, no_keys, variables).await;
        rig.fault(kind, operation, None);
        let (found, cx) = rig.discover_within(limit(kind)).await;
        let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
        match expected(kind, false) {
            Some(reason) => {
                // What the metadata service does not give, nobody has.
                let reason = if is_cluster { reason } else { Reason::Credentials };
                assert_eq!(
                    failures,
                    [(Covers::Everything, reason)],
                    "{title}: {:?}",
                    found.failures
                );
                assert!(
                    cx.calls().iter().any(|status| status.error.is_some()),
                    "{title}: not counted"
                );
            }
            None => assert!(failures.is_empty(), "{title}: {:?}", found.failures),
        }
        rig.server.faults().clear();
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{title}: {:?}", found.failures);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_the_places_that_give_keys() {
    tokio::join!(keys("AssumeRoleWithOIDC", true), keys("security-credentials", false));
}

/// A call whose answer is a detail of the inventory, spoilt in one region: the
/// inventory is whole, the task is not up, and what is missing is unknown.
async fn detail(operation: &'static str, fill: fn(&World, &str), is_known: fn(&[Instance]) -> bool) {
    for_each_kind(move |kind| async move {
        let title = format!("{operation} {kind}");
        let world = world();
        for region in [HANGZHOU, SINGAPORE] {
            fill(&world, region);
        }
        let rig = Rig::discovered(&world, |_| {}).await;
        rig.fault(kind, operation, Some(HANGZHOU));
        let whole = world
            .truth()
            .iter()
            .filter(|t| t.account == UID && t.region == HANGZHOU)
            .count();
        let (instances, cx) = rig.instances_within(UID, HANGZHOU, limit(kind)).await;
        let instances = instances.unwrap_or_else(|error| panic!("{title}: {error}"));
        assert_eq!(instances.len(), whole, "{title}");
        let expected = expected(kind, true);
        assert_eq!(cx.is_degraded(), expected.is_some(), "{title}");
        if let Some(reason) = expected {
            assert!(cx.errors(reason) > 0, "{title}: not counted");
            assert!(!is_known(&instances), "{title}: made up");
        } else if kind != FaultKind::UnknownEnum {
            assert!(is_known(&instances), "{title}");
        }
        let (others, cx) = rig.instances_in(UID, SINGAPORE).await;
        assert!(is_known(&others.expect("listing")) && !cx.is_degraded(), "{title}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_asking_for_type_facts_costs_detail_only() {
    detail(
        "DescribeInstanceTypes",
        |world, region| {
            let spec = InstanceSpec {
                hide_gpus: true,
                ..InstanceSpec::of(UNKNOWN_TYPE)
            };
            add(world, region, spec);
        },
        |instances| {
            let untold = instances.iter().find(|i| &*i.instance_type == UNKNOWN_TYPE);
            untold.expect("listed").accelerators.count.is_some()
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_asking_for_renewals_costs_detail_only() {
    detail(
        "DescribeInstanceAutoRenewAttribute",
        |world, region| {
            let spec = InstanceSpec {
                charge: Charge::PrePaid,
                renewal: Renewal::AutoRenewal,
                ..InstanceSpec::of(TYPE)
            };
            add(world, region, spec);
        },
        |instances| instances.iter().any(|i| i.auto_renew == Some(true)),
    )
    .await;
}

#[tokio::test]
async fn words_that_nobody_knows_are_unknown_and_never_on_demand() {
    let rig = Rig::discovered(&world(), |_| {}).await;
    rig.fault(FaultKind::UnknownEnum, "DescribeInstances", Some(HANGZHOU));
    let (instances, _) = rig.instances_in(UID, HANGZHOU).await;
    let instances = instances.expect("listing");
    let states = instances.iter().filter(|i| i.state == State::Unknown).count();
    let modes: Vec<_> = instances
        .iter()
        .filter(|i| i.billing.mode == BillingMode::Unknown)
        .map(|i| &*i.billing.detail)
        .collect();
    assert_eq!((states, modes), (1, vec!["Foo"]));
}

#[tokio::test]
async fn throttling_that_ends_is_waited_out() {
    for retry_after in [None, Some(1)] {
        let rig = Rig::discovered(&world(), |_| {}).await;
        let throttled = FaultKind::Throttled { retry_after };
        rig.server
            .faults()
            .add(FaultRule::new(throttled).operation("DescribeInstances").times(2));
        let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
        assert_eq!(instances.expect("listing").len(), 3);
        assert_eq!(cx.errors(Reason::Throttled), 2);
        assert_eq!(rig.calls_of("DescribeInstances"), 3);
    }
}

#[tokio::test]
async fn discovery_recovers_after_a_bad_start() {
    let rig = Rig::new(&world(), |options| options.assume_roles = vec![role(SECOND)]).await;
    let down = rig.server.faults().add(FaultRule::new(FaultKind::DropConnection));
    let (found, _) = rig.discover_within(Duration::from_millis(500)).await;
    let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
    assert_eq!(failures, [(Covers::Account, Reason::Network)]);
    rig.server.faults().remove(down);
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(inventory_targets(&found).len(), 2);
}
