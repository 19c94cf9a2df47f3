//! Reserved instances, private pools and savings plans.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests; a simulated cloud lives by the wall clock"
)]

mod support;

use gpuwatch_collector_core::{Collected, Collector as _, Dataset, Reason, Scope};
use gpuwatch_fakecloud_aliyun::{
    AccountSpec, Charge, InstanceSpec, PoolKind, PoolSpec, ReservedInstanceSpec, SavingsPlanSpec, Site, StoppedMode,
    World,
};
use gpuwatch_inventory::{BillingMode, Certainty, Commitment, CommitmentKind, CommitmentScope, GpuCount, Instance};
use gpuwatch_test_kit::assert_commitments;
use support::{HANGZHOU, PATIENT, Rig, SINGAPORE, TYPE, UID, add, every_account, scope, world};

const EIGHT: &str = "ecs.gn8v-8x.48xlarge";

#[track_caller]
fn by_id<'a>(commitments: &'a [Commitment], id: &str) -> &'a Commitment {
    commitments.iter().find(|c| &*c.id == id).expect("listed")
}

/// Commitments of a region with the instances that they pay for.
async fn allocated(world: &World) -> (Vec<Instance>, Vec<Commitment>) {
    Rig::new(world, |_| {}).await.everything().await
}

fn reserved(instance_type: &str, amount: u32, zone: Option<char>) -> ReservedInstanceSpec {
    ReservedInstanceSpec {
        instance_type: instance_type.to_owned(),
        amount,
        zone,
        ..ReservedInstanceSpec::default()
    }
}

fn gpus(commitment: &Commitment) -> (Option<f64>, Option<f64>) {
    (
        commitment.gpus().map(GpuCount::get),
        commitment.used_gpus().map(GpuCount::get),
    )
}

#[tokio::test]
async fn the_commitments_of_the_demo_are_seen_as_they_are() {
    let world = World::demo(7, 300);
    let (_, commitments) = Rig::new(&world, every_account(&world)).await.everything().await;
    assert_commitments(&world.commitments(), &commitments);
}

#[tokio::test]
async fn reserved_instances_pay_for_running_instances_as_an_estimate() {
    let world = world();
    let run = |zone, charge| {
        let spec = InstanceSpec {
            zone,
            charge,
            ..InstanceSpec::of(EIGHT)
        };
        add(&world, HANGZHOU, spec)
    };
    let covered = run('h', Charge::PostPaid);
    let elsewhere = run('i', Charge::PostPaid);
    let spot = run('h', Charge::SpotAsPriceGo);
    let prepaid = run('h', Charge::PrePaid);
    let zonal = world
        .add_reserved_instance(UID, HANGZHOU, reserved(EIGHT, 3, Some('h')))
        .unwrap();
    let idle = world
        .add_reserved_instance(UID, SINGAPORE, reserved(EIGHT, 2, None))
        .unwrap();
    world.add_reserved_instance(UID, HANGZHOU, reserved("ecs.g7.8xlarge", 2, None));
    let expired = ReservedInstanceSpec {
        status: "Expired".to_owned(),
        ..reserved(EIGHT, 9, None)
    };
    world.add_reserved_instance(UID, HANGZHOU, expired);
    let (instances, commitments) = allocated(&world).await;

    assert_eq!(commitments.len(), 2, "neither CPU machines nor what is over");
    let zonal = by_id(&commitments, &zonal);
    assert_eq!(zonal.kind, CommitmentKind::ReservedInstance);
    assert_eq!(zonal.scope, CommitmentScope::Zone("cn-hangzhou-h".into()));
    assert_eq!((zonal.units, zonal.used_units), (Some(3), Some(1)));
    assert_eq!(gpus(zonal), (Some(24.0), Some(8.0)));
    assert!(zonal.starts < zonal.expires && &*zonal.detail == "All Upfront");
    let idle = by_id(&commitments, &idle);
    assert_eq!(
        (idle.scope.clone(), gpus(idle)),
        (CommitmentScope::Region, (Some(16.0), Some(0.0)))
    );

    for (id, mode, detail, certainty) in [
        (
            &covered,
            BillingMode::Reserved,
            "reserved_instance",
            Certainty::Estimated,
        ),
        (&elsewhere, BillingMode::OnDemand, "", Certainty::Estimated),
        (&spot, BillingMode::Spot, "", Certainty::Exact),
        (&prepaid, BillingMode::Reserved, "subscription", Certainty::Exact),
    ] {
        let instance = instances.iter().find(|i| *i.id == **id).expect("listed");
        let billing = &instance.billing;
        assert_eq!(
            (billing.mode, &*billing.detail, billing.certainty),
            (mode, detail, certainty)
        );
    }
}

#[tokio::test]
async fn private_pools_show_what_is_unused_and_are_no_price() {
    for (kind, detail) in [
        (PoolKind::ElasticityAssurance, "elasticity_assurance"),
        (PoolKind::CapacityReservation, "open"),
    ] {
        let world = world();
        let spec = PoolSpec {
            kind,
            instance_type: EIGHT.to_owned(),
            total: 4,
            ..PoolSpec::default()
        };
        let pool = world.add_pool(UID, HANGZHOU, spec.clone()).unwrap();
        for status in ["Preparing", "Released"] {
            let other = PoolSpec {
                status: status.to_owned(),
                ..spec.clone()
            };
            world.add_pool(UID, HANGZHOU, other);
        }
        let member = InstanceSpec {
            private_pool: Some(pool.clone()),
            ..InstanceSpec::of(EIGHT)
        };
        add(&world, HANGZHOU, member.clone());
        // In the economical mode a machine gives its place back.
        let given_back = add(&world, HANGZHOU, member.stopped(StoppedMode::StopCharging));
        let (instances, commitments) = allocated(&world).await;
        assert_eq!(commitments.len(), 1, "only what is in force");
        let found = by_id(&commitments, &pool);
        assert_eq!(
            (found.kind, &*found.detail),
            (CommitmentKind::CapacityReservation, detail)
        );
        assert_eq!(gpus(found), (Some(32.0), Some(8.0)));
        assert_eq!(found.scope, CommitmentScope::Zone("cn-hangzhou-h".into()));
        assert!(instances.iter().all(|i| i.billing.mode == BillingMode::OnDemand));
        assert!(instances.iter().all(|i| *i.reservation_id == *pool));
        world.start(&given_back);
        let (_, commitments) = allocated(&world).await;
        assert_eq!(gpus(by_id(&commitments, &pool)), (Some(32.0), Some(16.0)));
    }
}

#[tokio::test]
async fn savings_plans_are_money_in_the_currency_of_the_site() {
    for (site, currency) in [(Site::China, "CNY"), (Site::International, "USD")] {
        let world = World::empty();
        let spec = AccountSpec {
            site,
            ..AccountSpec::default()
        };
        world.add_account(UID, spec);
        let family = SavingsPlanSpec {
            savings_type: "ecs".into(),
            instance_family: "ecs.gn7i".into(),
            region: HANGZHOU.into(),
            pool_value: "88.5".into(),
            ..SavingsPlanSpec::default()
        };
        let over = SavingsPlanSpec {
            status: "RELEASE".into(),
            ..family.clone()
        };
        let family = world.add_savings_plan(UID, family).unwrap();
        let any = world.add_savings_plan(UID, SavingsPlanSpec::default()).unwrap();
        world.add_savings_plan(UID, over);
        let rig = Rig::discovered(&world, |_| {}).await;
        let plans = rig.commitments_in(UID, Scope::GLOBAL).await.expect("plans");
        assert_eq!(plans.len(), 2);
        let family = by_id(&plans, &family);
        assert_eq!((&*family.region, &*family.instance_type), (HANGZHOU, "gn7i"));
        assert_eq!(
            (family.kind, family.units, family.used_units),
            (CommitmentKind::SavingsPlan, None, None)
        );
        let hourly = family.hourly.as_ref().expect("money");
        assert_eq!(
            (hourly.amount.to_string().as_str(), hourly.currency.to_string().as_str()),
            ("88.5", currency)
        );
        let any = by_id(&plans, &any);
        assert_eq!((&*any.region, &any.scope), (Scope::GLOBAL, &CommitmentScope::Global));
    }
}

#[tokio::test]
async fn instances_that_the_bill_shows_as_paid_for_are_labelled() {
    let world = world();
    let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(96);
    let run = |instance_type: &str, charge| {
        let spec = InstanceSpec {
            charge,
            created: Some(yesterday),
            ..InstanceSpec::of(instance_type)
        };
        add(&world, HANGZHOU, spec)
    };
    let by_plan = run(TYPE, Charge::PostPaid);
    let hardly = run(TYPE, Charge::PostPaid);
    let by_other_size = run("ecs.gn7i-c16g1.4xlarge", Charge::PostPaid);
    let spot = run(TYPE, Charge::SpotAsPriceGo);
    world.set_paid_by_savings_plans(UID, &by_plan, 0.5);
    world.set_paid_by_savings_plans(UID, &hardly, 0.49);
    world.set_paid_by_savings_plans(UID, &spot, 1.0);
    world.set_paid_by_reserved_instances(UID, &by_other_size, 1.0);
    let labels = |instances: &[Instance]| -> Vec<(BillingMode, String, Certainty)> {
        [&by_plan, &hardly, &by_other_size, &spot]
            .iter()
            .map(|id| {
                let instance = instances.iter().find(|i| *i.id == ***id).expect("listed");
                let billing = &instance.billing;
                (billing.mode, billing.detail.to_string(), billing.certainty)
            })
            .collect()
    };
    let on_demand = || (BillingMode::OnDemand, String::new(), Certainty::Estimated);
    let spot_label = || (BillingMode::Spot, String::new(), Certainty::Exact);
    // Nothing was bought: the bill is not asked.
    let rig = Rig::new(&world, |_| {}).await;
    let (instances, _) = rig.everything().await;
    assert_eq!(
        labels(&instances),
        [on_demand(), on_demand(), on_demand(), spot_label()]
    );
    for operation in ["DescribeSavingsPlansCoverageDetail", "DescribeResourceCoverageDetail"] {
        assert_eq!(rig.calls_of(operation), 0, "{operation}");
    }
    world.add_savings_plan(UID, SavingsPlanSpec::default());
    world.add_reserved_instance(UID, HANGZHOU, reserved("ecs.gn7i-c32g1.8xlarge", 1, None));
    world.add_reserved_instance(UID, SINGAPORE, reserved(EIGHT, 1, None));
    let rig = Rig::new(&world, |_| {}).await;
    for _ in 0..2 {
        let (instances, _) = rig.everything().await;
        let reserved = |detail: &str| (BillingMode::Reserved, detail.to_owned(), Certainty::Estimated);
        assert_eq!(
            labels(&instances),
            [
                reserved("savings_plan"),
                on_demand(),
                reserved("reserved_instance"),
                spot_label()
            ]
        );
    }
    // Of the whole account, and once in six hours.
    for operation in ["DescribeSavingsPlansCoverageDetail", "DescribeResourceCoverageDetail"] {
        assert_eq!(rig.calls_of(operation), 1, "{operation}");
    }
}

// P53
#[tokio::test]
async fn the_bill_of_many_instances_is_read_to_its_end() {
    let world = world();
    let old = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(96);
    let spec = InstanceSpec {
        created: Some(old),
        ..InstanceSpec::of(TYPE)
    };
    for id in world.add_instances(UID, HANGZHOU, 650, &spec) {
        world.set_paid_by_savings_plans(UID, &id, 1.0);
    }
    world.add_savings_plan(UID, SavingsPlanSpec::default());
    // Lists are plain in some answers and in an object in others.
    for wrapped in [false, true] {
        world.wrap_bill_items(wrapped);
        let rig = Rig::new(&world, |_| {}).await;
        let (instances, plans) = rig.everything().await;
        let covered = instances.iter().filter(|i| &*i.billing.detail == "savings_plan");
        assert_eq!((covered.count(), plans.len()), (650, 1));
        assert_eq!(rig.calls_of("DescribeSavingsPlansCoverageDetail"), 3);
    }
}

#[tokio::test]
async fn without_permission_for_the_bill_labels_are_estimated_from_types() {
    let world = world();
    world.add_savings_plan(UID, SavingsPlanSpec::default());
    let covered = add(&world, HANGZHOU, InstanceSpec::of(EIGHT));
    world.add_reserved_instance(UID, HANGZHOU, reserved(EIGHT, 2, None));
    world.deny(UID, "bssapi:DescribeResourceCoverageDetail");
    world.deny(UID, "bssapi:DescribeSavingsPlansCoverageDetail");
    let rig = Rig::discovered(&world, |_| {}).await;
    let mut fleet = gpuwatch_collector_core::Fleet::default();
    for region in [HANGZHOU, Scope::GLOBAL] {
        let (results, cx) = rig.collect(&scope(UID, region), Dataset::Commitments, PATIENT).await;
        assert!(cx.is_degraded() && cx.errors(Reason::Permission) == 1, "{region}");
        for (_, result) in results {
            match result.expect("commitments are whole") {
                Collected::Commitments(found) => fleet.commitments.extend(found),
                other => panic!("{other:?}"),
            }
        }
    }
    let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
    assert!(!cx.is_degraded());
    fleet.instances = instances
        .expect("listing")
        .into_iter()
        .map(std::sync::Arc::new)
        .collect();
    rig.collector.allocate(&mut fleet);
    assert_eq!(
        (fleet.commitments.len(), &*fleet.instances[0].id),
        (2, covered.as_str())
    );
    assert_eq!(&*fleet.instances[0].billing.detail, "reserved_instance");
    // Not asked again with every poll.
    rig.commitments_in(UID, HANGZHOU).await.expect("commitments");
    assert_eq!(rig.calls_of("DescribeResourceCoverageDetail"), 1);
}

// P53
#[tokio::test]
async fn commitments_come_in_full_pages() {
    let world = world();
    for _ in 0..250 {
        world.add_reserved_instance(UID, HANGZHOU, ReservedInstanceSpec::default());
        world.add_savings_plan(UID, SavingsPlanSpec::default());
        for kind in [PoolKind::ElasticityAssurance, PoolKind::CapacityReservation] {
            let spec = PoolSpec {
                kind,
                ..PoolSpec::default()
            };
            world.add_pool(UID, HANGZHOU, spec);
        }
    }
    let rig = Rig::discovered(&world, |_| {}).await;
    assert_eq!(rig.commitments_in(UID, HANGZHOU).await.expect("commitments").len(), 750);
    assert_eq!(rig.commitments_in(UID, Scope::GLOBAL).await.expect("plans").len(), 250);
    for operation in [
        "DescribeReservedInstances",
        "DescribeElasticityAssurances",
        "DescribeCapacityReservations",
        "QuerySavingsPlansInstance",
    ] {
        assert_eq!(rig.calls_of(operation), 3, "{operation}");
    }
}

#[tokio::test]
async fn an_endless_listing_of_pools_is_given_up_soon() {
    let world = world();
    world.add_pool(UID, HANGZHOU, PoolSpec::default());
    let rig = Rig::discovered(&world, |_| {}).await;
    let operation = "DescribeElasticityAssurances";
    rig.fault(gpuwatch_fakecloud_core::FaultKind::EndlessToken, operation, None);
    assert!(rig.commitments_in(UID, HANGZHOU).await.is_err());
    assert!(rig.calls_of(operation) <= 201, "{}", rig.calls_of(operation));
}

// P40
#[tokio::test]
async fn the_billing_host_of_the_wrong_site_is_not_asked_again() {
    let world = world();
    add(&world, HANGZHOU, InstanceSpec::of(TYPE));
    world.add_reserved_instance(UID, HANGZHOU, ReservedInstanceSpec::default());
    world.set_wrong_site(UID, true);
    let rig = Rig::discovered(&world, |_| {}).await;
    for _ in 0..3 {
        let (results, cx) = rig
            .collect(&scope(UID, Scope::GLOBAL), Dataset::Commitments, PATIENT)
            .await;
        let error = results[0].1.as_ref().expect_err("not an account of this site");
        assert_eq!(error.reason, Reason::NotEnabled);
        assert!(error.to_string().contains("`site`"), "{error}");
        assert!(cx.errors(Reason::NotEnabled) <= 1);
    }
    // An account that goes on asking is blocked by the vendor.
    assert_eq!(rig.calls_of("QuerySavingsPlansInstance"), 1);
    assert_eq!(rig.commitments_in(UID, HANGZHOU).await.expect("regional ones").len(), 1);
    assert_eq!(rig.instances_in(UID, HANGZHOU).await.0.expect("listing").len(), 1);
}

#[tokio::test]
async fn refusals_of_the_billing_product_come_with_a_status_of_success() {
    for (code, reason) in [
        ("NotAuthorized", Reason::Permission),
        ("Throttling", Reason::Throttled),
        ("InternalError", Reason::Other),
    ] {
        let world = world();
        world.add_savings_plan(UID, SavingsPlanSpec::default());
        world.set_billing_refusal(UID, Some(code));
        let rig = Rig::discovered(&world, |_| {}).await;
        let limit = std::time::Duration::from_secs(3);
        let (results, cx) = rig
            .collect(&scope(UID, Scope::GLOBAL), Dataset::Commitments, limit)
            .await;
        let error = results[0].1.as_ref().expect_err("refused");
        assert_eq!(error.reason, reason, "{code}: {error}");
        assert!(cx.errors(reason) > 0, "{code}");
        if reason == Reason::Permission {
            assert!(
                error.to_string().contains("add bssapi:QuerySavingsPlansInstance"),
                "{error}"
            );
        }
        world.set_billing_refusal(UID, None);
        assert_eq!(rig.commitments_in(UID, Scope::GLOBAL).await.expect("plans").len(), 1);
    }
}

#[tokio::test]
async fn a_missing_permission_for_one_listing_costs_no_other() {
    let world = world();
    world.add_reserved_instance(UID, HANGZHOU, ReservedInstanceSpec::default());
    world.add_pool(UID, HANGZHOU, PoolSpec::default());
    world.deny(UID, "ecs:DescribeReservedInstances");
    let rig = Rig::discovered(&world, |_| {}).await;
    let (results, _) = rig.collect(&scope(UID, HANGZHOU), Dataset::Commitments, PATIENT).await;
    let outcomes: Vec<_> = results.iter().map(|(part, result)| (*part, result.is_ok())).collect();
    assert_eq!(
        outcomes,
        [
            ("reserved_instances", false),
            ("elasticity_assurances", true),
            ("capacity_reservations", true)
        ]
    );
    let error = results[0].1.as_ref().expect_err("refused").to_string();
    assert!(error.contains("add ecs:DescribeReservedInstances"), "{error}");
}
