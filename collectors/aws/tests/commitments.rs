//! Commitments and what is allocated from them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::sync::Arc;

use gpuwatch_collector_core::{Collector, Dataset, Fleet, Reason, Scope};
use gpuwatch_fakecloud::{
    FaultKind,
    aws::{
        AccountSpec, CapacityBlockSpec, CapacityReservationSpec, InstanceSpec, Lifecycle, ReservationScope,
        ReservedInstancesSpec, SavingsPlanRate, SavingsPlanSpec, World,
    },
};
use gpuwatch_inventory::{BillingMode, Commitment, CommitmentKind, Currency, Money};
use gpuwatch_test_kit::{inventory_targets, reason};
use support::{ACCOUNT, EAST, PATIENT, Rig, SECOND, WEST, role, scope, small_world};

type Row = (String, String, String, &'static str, Option<u32>, Option<u32>);

fn rows(commitments: &[Commitment]) -> Vec<Row> {
    let row = |c: &Commitment| {
        (
            c.account.to_string(),
            c.region.to_string(),
            c.id.to_string(),
            c.kind.as_str(),
            c.units,
            c.used_units,
        )
    };
    let mut rows: Vec<Row> = commitments.iter().map(row).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn commitments_of_a_whole_fleet_are_reported_as_they_are() {
    let world = World::demo(3, 200);
    let others: Vec<String> = world
        .accounts()
        .iter()
        .filter(|a| a.id != world.base_account() && a.state.as_str() == "ACTIVE")
        .map(|a| role(&a.id))
        .collect();
    let rig = Rig::new(world.clone(), |options| {
        options.assume_roles = std::iter::once("self".to_owned()).chain(others).collect();
    })
    .await;
    let found = rig.discover().await;
    let mut fleet = Fleet::default();
    for (account, region) in inventory_targets(&found) {
        let (instances, _) = rig.instances_in(&account, &region).await;
        fleet
            .instances
            .extend(instances.expect("listing").into_iter().map(Arc::new));
        fleet
            .commitments
            .extend(rig.commitments_in(&account, &region).await.expect("commitments"));
    }
    for target in found
        .targets
        .iter()
        .filter(|target| &*target.scope.region == Scope::GLOBAL)
    {
        fleet.commitments.extend(
            rig.commitments_in(&target.scope.account.id, Scope::GLOBAL)
                .await
                .expect("plans"),
        );
    }
    rig.collector.allocate(&mut fleet);
    let mut truth: Vec<Row> = world
        .commitments()
        .into_iter()
        .map(|t| (t.account, t.region, t.id, t.kind, t.units, t.used))
        .collect();
    truth.sort();
    assert_eq!(rows(&fleet.commitments), truth);
    assert!(
        fleet
            .commitments
            .iter()
            .all(|c| c.kind == CommitmentKind::SavingsPlan || c.gpus().is_some())
    );
}

#[tokio::test]
async fn reserved_instances_pay_and_what_is_left_is_unused() {
    let world = small_world();
    world.add_instances(ACCOUNT, EAST, 2, &InstanceSpec::of("g6.xlarge"));
    world.add_instance(
        ACCOUNT,
        EAST,
        InstanceSpec {
            lifecycle: Lifecycle::Spot,
            ..InstanceSpec::of("g6.xlarge")
        },
    );
    let bought = |count, state: &str| ReservedInstancesSpec {
        instance_type: "g6.xlarge".into(),
        count,
        scope: ReservationScope::Region,
        hourly: "0.5".into(),
        state: state.into(),
        ..ReservedInstancesSpec::default()
    };
    let id = world
        .add_reserved_instances(ACCOUNT, EAST, bought(5, "active"))
        .expect("id");
    world.add_reserved_instances(ACCOUNT, EAST, bought(7, "retired"));
    let rig = Rig::discovered(world, |_| {}).await;
    let instances = rig.instances_in(ACCOUNT, EAST).await.0.expect("listing");
    let commitments = rig.commitments_in(ACCOUNT, EAST).await.expect("commitments");
    let mut fleet = Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments,
        coverage: Vec::new(),
    };
    rig.collector.allocate(&mut fleet);
    assert_eq!(
        rows(&fleet.commitments),
        [(ACCOUNT.into(), EAST.into(), id, "reserved_instance", Some(5), Some(2))]
    );
    let reserved = fleet
        .instances
        .iter()
        .filter(|i| i.billing.mode == BillingMode::Reserved);
    assert!(
        reserved
            .clone()
            .all(|i| i.expires.is_some() && &*i.billing.detail == "reserved_instance")
    );
    assert_eq!(reserved.count(), 2);
    assert_eq!(fleet.commitments[0].hourly, Money::parse("2.5", Currency::usd()).ok());
}

#[tokio::test]
async fn a_shared_reservation_is_counted_where_it_is_owned() {
    let world = small_world();
    world.add_account(SECOND, AccountSpec::default());
    let spec = CapacityReservationSpec {
        instance_type: "g6.xlarge".into(),
        total: 4,
        shared_with: vec![SECOND.into()],
        ..CapacityReservationSpec::default()
    };
    let id = world.add_capacity_reservation(ACCOUNT, EAST, spec).expect("id");
    let user = InstanceSpec {
        capacity_reservation: Some(id.clone()),
        ..InstanceSpec::of("g6.xlarge")
    };
    world.add_instance(SECOND, EAST, user);
    let rig = Rig::discovered(world, |options| {
        options.assume_roles = vec!["self".into(), role(SECOND)];
    })
    .await;
    let owner = rig.commitments_in(ACCOUNT, EAST).await.expect("commitments");
    assert_eq!(
        rows(&owner),
        [(
            ACCOUNT.into(),
            EAST.into(),
            id,
            "capacity_reservation",
            Some(4),
            Some(1)
        )]
    );
    assert_eq!(owner[0].gpus().map(gpuwatch_inventory::GpuCount::get), Some(4.0));
    assert!(rig.commitments_in(SECOND, EAST).await.expect("commitments").is_empty());
    // A place is not a price.
    let user = rig.instances_in(SECOND, EAST).await.0.expect("listing");
    assert_eq!(user[0].billing.mode, BillingMode::OnDemand);
}

#[tokio::test]
async fn instances_end_with_their_capacity_block() {
    let world = small_world();
    let block = CapacityBlockSpec {
        total: 3,
        ..CapacityBlockSpec::default()
    };
    let (block, reservation) = world.add_capacity_block(ACCOUNT, EAST, block).expect("ids");
    let spec = InstanceSpec {
        lifecycle: Lifecycle::CapacityBlock,
        capacity_reservation: Some(reservation),
        capacity_block: Some(block.clone()),
        ..InstanceSpec::of("p5.48xlarge")
    };
    world.add_instances(ACCOUNT, EAST, 2, &spec);
    let rig = Rig::discovered(world, |_| {}).await;
    let instances = rig.instances_in(ACCOUNT, EAST).await.0.expect("listing");
    let commitments = rig.commitments_in(ACCOUNT, EAST).await.expect("commitments");
    let mut fleet = Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments,
        coverage: Vec::new(),
    };
    rig.collector.allocate(&mut fleet);
    assert_eq!(
        rows(&fleet.commitments),
        [(ACCOUNT.into(), EAST.into(), block, "capacity_block", Some(3), Some(2))]
    );
    assert_eq!(fleet.instances.len(), 2);
    assert!(
        fleet
            .instances
            .iter()
            .all(|i| i.expires.is_some() && i.expires == fleet.commitments[0].expires)
    );
}

fn world_with_plan() -> World {
    let world = small_world();
    world.add_instances(ACCOUNT, EAST, 4, &InstanceSpec::of("g6.xlarge"));
    let rate = |instance_type: &str, rate: &str| SavingsPlanRate {
        region: EAST.into(),
        instance_type: instance_type.into(),
        product_description: "Linux/UNIX".into(),
        rate: rate.into(),
    };
    let rates = vec![
        rate("g6.xlarge", "0.50"),
        rate("m5.large", "0.05"),
        rate("p5.48xlarge", "40"),
    ];
    world.add_savings_plan(
        ACCOUNT,
        SavingsPlanSpec {
            commitment: "1.00".into(),
            rates,
            ..SavingsPlanSpec::default()
        },
    );
    world.add_savings_plan(
        ACCOUNT,
        SavingsPlanSpec {
            state: "retired".into(),
            ..SavingsPlanSpec::default()
        },
    );
    world
}

#[tokio::test]
async fn a_savings_plan_brings_the_rates_of_what_runs_and_an_estimate() {
    let rig = Rig::discovered(world_with_plan(), |_| {}).await;
    for region in [EAST, WEST] {
        rig.instances_in(ACCOUNT, region).await.0.expect("listing");
    }
    let instances = rig.instances_in(ACCOUNT, EAST).await.0.expect("listing");
    let plans = rig.commitments_in(ACCOUNT, Scope::GLOBAL).await.expect("plans");
    let [plan] = plans.as_slice() else { panic!("{plans:?}") };
    assert_eq!(
        (plan.kind, &*plan.region, plan.gpus()),
        (CommitmentKind::SavingsPlan, "global", None)
    );
    let types: Vec<&str> = plan.rates.iter().map(|rate| &*rate.instance_type).collect();
    assert_eq!(types, ["g6.xlarge"]);
    let mut fleet = Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments: plans,
        coverage: Vec::new(),
    };
    rig.collector.allocate(&mut fleet);
    let ratios: Vec<f64> = fleet.coverage.iter().map(|estimate| estimate.ratio).collect();
    assert_eq!(ratios, [0.5]);
    assert!(fleet.instances.iter().all(|i| i.billing.mode == BillingMode::OnDemand));
}

#[tokio::test]
async fn plans_wait_for_the_first_inventory() {
    let rig = Rig::discovered(world_with_plan(), |_| {}).await;
    let (plans, ..) = tokio::join!(
        rig.commitments_in(ACCOUNT, Scope::GLOBAL),
        rig.instances_in(ACCOUNT, EAST),
        rig.instances_in(ACCOUNT, WEST),
    );
    assert_eq!(plans.expect("plans")[0].rates.len(), 1);
}

#[tokio::test]
async fn plans_are_known_also_without_their_rates() {
    let rig = Rig::discovered(world_with_plan(), |_| {}).await;
    for region in [EAST, WEST] {
        rig.instances_in(ACCOUNT, region).await.0.expect("listing");
    }
    rig.fault(FaultKind::AccessDenied, "DescribeSavingsPlanRates", None);
    let (results, cx) = rig
        .collect(&scope(ACCOUNT, Scope::GLOBAL), Dataset::Commitments, PATIENT)
        .await;
    assert!(results.iter().all(Result::is_ok));
    assert!(cx.is_degraded());
    assert_eq!(cx.errors(Reason::Permission), 1);
}

#[tokio::test]
async fn one_kind_of_commitment_fails_alone() {
    let world = small_world();
    world.add_capacity_reservation(ACCOUNT, EAST, CapacityReservationSpec::default());
    let rig = Rig::discovered(world, |_| {}).await;
    rig.fault(FaultKind::AccessDenied, "DescribeReservedInstances", None);
    let (results, _) = rig.collect(&scope(ACCOUNT, EAST), Dataset::Commitments, PATIENT).await;
    let reasons: Vec<_> = results.iter().map(reason).collect();
    assert_eq!(reasons, [Some(Reason::Permission), None]);
}
