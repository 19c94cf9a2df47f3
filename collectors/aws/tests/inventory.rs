//! The inventory against a simulated EC2.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::{collections::BTreeMap, time::Duration};

use gpuwatch_collector_aws::TypeFilter;
use gpuwatch_collector_core::{Collector, Fleet, Reason};
use gpuwatch_fakecloud::{
    FaultKind, FaultRule,
    aws::{InstanceSpec, InstanceState, Lifecycle, World},
};
use gpuwatch_inventory::{BillingMode, Instance, State};
use gpuwatch_test_kit::{gpus, inventory_targets, reason};
use support::{ACCOUNT, EAST, PATIENT, Rig, WEST, role, small_world};

fn by_id(instances: &[Instance]) -> BTreeMap<&str, &Instance> {
    instances.iter().map(|instance| (&*instance.id, instance)).collect()
}

// P28, P32, P34, P37, P38, P53
#[tokio::test]
async fn a_whole_fleet_is_reported_as_it_is() {
    let world = World::demo(7, 300);
    let others: Vec<String> = world
        .accounts()
        .iter()
        .filter(|a| a.id != world.base_account() && a.state.as_str() == "ACTIVE")
        .map(|a| role(&a.id))
        .collect();
    let rig = Rig::new(world.clone(), |options| {
        options.assume_roles = std::iter::once("self".to_owned()).chain(others).collect();
        options.owner_tags = vec!["owner".into(), "team".into()];
    })
    .await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    let mut fleet = Fleet::default();
    for (account, region) in inventory_targets(&found) {
        let (instances, cx) = rig.instances_in(&account, &region).await;
        fleet
            .instances
            .extend(instances.expect("listing").into_iter().map(std::sync::Arc::new));
        assert!(!cx.is_degraded());
        fleet
            .commitments
            .extend(rig.commitments_in(&account, &region).await.expect("commitments"));
    }
    rig.collector.allocate(&mut fleet);

    let mut seen: Vec<_> = fleet
        .instances
        .iter()
        .map(|i| {
            (
                (
                    i.account.to_string(),
                    i.region.to_string(),
                    i.zone.to_string(),
                    i.id.to_string(),
                    i.name.to_string(),
                ),
                (
                    i.instance_type.to_string(),
                    i.state.as_str(),
                    i.billing.mode.as_str(),
                    i.billing.detail.to_string(),
                ),
                (gpus(i), i.launched.map(jiff::Timestamp::as_second)),
            )
        })
        .collect();
    let mut truth: Vec<_> = world
        .truth()
        .into_iter()
        .map(|t| {
            (
                (t.account, t.region, t.zone, t.id, t.name),
                (t.instance_type, t.state, t.billing_mode, t.billing_detail.to_owned()),
                (t.gpus, Some(t.launched.as_second())),
            )
        })
        .collect();
    let order = |a: &(String, String, String, String, String), b: &(String, String, String, String, String)| a.cmp(b);
    seen.sort_by(|a, b| order(&a.0, &b.0));
    truth.sort_by(|a, b| order(&a.0, &b.0));
    assert_eq!(seen.len(), truth.len());
    for (seen, truth) in seen.iter().zip(&truth) {
        assert_eq!(seen, truth);
    }
    let l4 = fleet
        .instances
        .iter()
        .find(|i| &*i.instance_type == "g6.xlarge")
        .expect("in the fleet");
    assert_eq!(l4.accelerators.memory_mib, Some(24 * 1024));
}

// P53
#[tokio::test]
async fn every_page_of_a_large_region_is_read() {
    let world = small_world();
    world.add_instances(ACCOUNT, EAST, 2345, &InstanceSpec::of("g5.xlarge"));
    let rig = Rig::discovered(world, |_| {}).await;
    let (instances, _) = rig.instances_in(ACCOUNT, EAST).await;
    assert_eq!(by_id(&instances.expect("listing")).len(), 2345);
    assert_eq!(rig.calls_of("DescribeInstances"), 3);
}

// P48, P52, P53
#[tokio::test]
async fn odd_pages_cost_no_good_record() {
    for kind in [
        FaultKind::EmptyPage,
        FaultKind::ReorderedRows,
        FaultKind::DuplicateRows,
        FaultKind::MalformedRecord,
        FaultKind::UnknownEnum,
    ] {
        let world = small_world();
        world.add_instances(ACCOUNT, EAST, 100, &InstanceSpec::of("g5.xlarge"));
        let rig = Rig::discovered(world, |_| {}).await;
        rig.fault(kind, "DescribeInstances", None);
        let (instances, cx) = rig.instances_in(ACCOUNT, EAST).await;
        let instances = instances.expect("listing");
        assert_eq!((instances.len(), by_id(&instances).len()), (100, 100), "{kind}");
        assert_eq!(
            cx.skipped("duplicate"),
            if kind == FaultKind::DuplicateRows { 100 } else { 0 },
            "{kind}"
        );
        assert_eq!(
            cx.skipped("no_id"),
            u64::from(kind == FaultKind::MalformedRecord),
            "{kind}"
        );
        if kind == FaultKind::UnknownEnum {
            assert_eq!(
                instances
                    .iter()
                    .filter(|i| i.billing.mode == BillingMode::Unknown)
                    .count(),
                1
            );
            assert_eq!(instances.iter().filter(|i| i.state == State::Unknown).count(), 1);
        }
    }
}

// P53
#[tokio::test]
async fn tokens_without_an_end_are_an_error_and_not_a_fleet() {
    for kind in [FaultKind::EndlessToken, FaultKind::RepeatedToken] {
        let world = small_world();
        world.add_instances(ACCOUNT, EAST, 10, &InstanceSpec::of("g5.xlarge"));
        let rig = Rig::discovered(world, |_| {}).await;
        rig.fault(kind, "DescribeInstances", None);
        let (instances, _) = rig.instances_in(ACCOUNT, EAST).await;
        assert_eq!(reason(&instances), Some(Reason::Decode), "{kind}");
    }
}

// P01
#[tokio::test]
async fn throttling_is_waited_out_and_counted() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g5.xlarge"));
    let rig = Rig::discovered(world, |_| {}).await;
    rig.fake.faults().add(
        FaultRule::new(FaultKind::Throttled { retry_after: None })
            .operation("DescribeInstances")
            .times(3),
    );
    let (instances, cx) = rig.instances_in(ACCOUNT, EAST).await;
    assert_eq!(instances.expect("listing").len(), 1);
    assert_eq!(cx.errors(Reason::Throttled), 3);
}

// P18
#[tokio::test]
async fn a_failure_now_and_then_is_counted_and_repaired() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g5.xlarge"));
    let rig = Rig::discovered(world, |_| {}).await;
    rig.fake.faults().add(
        FaultRule::new(FaultKind::HtmlError)
            .operation("DescribeInstances")
            .times(1),
    );
    let (instances, cx) = rig.instances_in(ACCOUNT, EAST).await;
    assert_eq!((instances.expect("listing").len(), cx.errors(Reason::Other)), (1, 1));
}

// P46
#[tokio::test]
async fn a_region_that_hangs_does_not_hold_up_the_others() {
    let world = small_world();
    for region in [EAST, WEST] {
        world.add_instance(ACCOUNT, region, InstanceSpec::of("g5.xlarge"));
    }
    let rig = Rig::discovered(world, |_| {}).await;
    rig.fault(FaultKind::Hang, "DescribeInstances", Some(WEST));
    let ((hanging, cx), (fine, _)) = tokio::join!(
        rig.instances_within(ACCOUNT, WEST, Duration::from_secs(3)),
        rig.instances_in(ACCOUNT, EAST)
    );
    assert_eq!(reason(&hanging), Some(Reason::Timeout));
    assert!(cx.errors(Reason::Timeout) > 0);
    assert_eq!(fine.expect("listing").len(), 1);
}

// P47
#[tokio::test]
async fn a_refusal_in_one_region_is_counted_there_and_says_what_is_missing() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g5.xlarge"));
    let rig = Rig::discovered(world, |_| {}).await;
    rig.fault(FaultKind::AccessDenied, "DescribeInstances", Some(WEST));
    let (refused, cx) = rig.instances_in(ACCOUNT, WEST).await;
    let error = refused.expect_err("refused");
    assert_eq!((error.reason, cx.errors(Reason::Permission)), (Reason::Permission, 1));
    assert!(error.message.contains("add ec2:DescribeInstances"), "{error}");
    assert!(!error.to_string().contains("Encoded"), "{error}");
    assert_eq!(rig.instances_in(ACCOUNT, EAST).await.0.expect("listing").len(), 1);
}

#[tokio::test]
async fn type_facts_that_hang_cost_detail_and_not_the_listing() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g6.12xlarge"));
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("p9.96xlarge"));
    for kind in [FaultKind::Hang, FaultKind::AccessDenied] {
        let rig = Rig::discovered(world.clone(), |_| {}).await;
        rig.fault(kind, "DescribeInstanceTypes", None);
        let (instances, cx) = rig.instances_within(ACCOUNT, EAST, Duration::from_secs(6)).await;
        let instances = instances.expect("listing");
        assert!(cx.is_degraded(), "{kind}");
        let counts: Vec<_> = by_id(&instances)
            .values()
            .map(|i| (i.instance_type.to_string(), gpus(i)))
            .collect();
        assert!(
            counts.contains(&("g6.12xlarge".into(), Some(4.0))),
            "the catalogue answers: {counts:?}"
        );
        assert!(
            counts.contains(&("p9.96xlarge".into(), None)),
            "nobody knows, but it is there: {counts:?}"
        );
    }
}

#[tokio::test]
async fn type_facts_are_asked_for_once() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g6.xlarge"));
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("p9.96xlarge"));
    let rig = Rig::discovered(world, |_| {}).await;
    rig.instances_in(ACCOUNT, WEST).await.0.expect("listing");
    assert_eq!(rig.calls_of("DescribeInstanceTypes"), 0, "nothing runs there");
    rig.instances_in(ACCOUNT, EAST).await.0.expect("listing");
    let asked = rig.calls_of("DescribeInstanceTypes");
    assert!((1..=4).contains(&asked), "{asked}");
    rig.instances_in(ACCOUNT, EAST).await.0.expect("listing");
    assert_eq!(
        rig.calls_of("DescribeInstanceTypes"),
        asked,
        "also for a type nobody knows"
    );
}

#[tokio::test]
async fn an_exact_filter_finds_the_types_of_the_catalogue() {
    let world = small_world();
    for name in ["g6.xlarge", "p5.48xlarge", "g6f.large", "m5.large"] {
        world.add_instance(ACCOUNT, EAST, InstanceSpec::of(name));
    }
    let rig = Rig::discovered(world, |options| options.type_filter = TypeFilter::Exact).await;
    let (instances, cx) = rig.instances_in(ACCOUNT, EAST).await;
    let instances = instances.expect("listing");
    let mut found: Vec<_> = instances.iter().map(|i| (&*i.instance_type, gpus(i))).collect();
    found.sort_by(|a, b| a.0.cmp(b.0));
    assert_eq!(
        found,
        [
            ("g6.xlarge", Some(1.0)),
            ("g6f.large", Some(0.125)),
            ("p5.48xlarge", Some(8.0))
        ]
    );
    assert!(!cx.is_degraded());
}

#[tokio::test]
async fn managed_and_stopped_instances_are_listed_and_terminated_ones_are_not() {
    let world = small_world();
    let managed = InstanceSpec {
        managed_by: Some("eks.amazonaws.com".into()),
        ..InstanceSpec::of("g6.xlarge")
    };
    let managed = world.add_instance(ACCOUNT, EAST, managed).expect("id");
    let stopped = world
        .add_instance(ACCOUNT, EAST, InstanceSpec::of("g6.xlarge"))
        .expect("id");
    let now: jiff::Timestamp = "2026-11-30T19:42:36Z".parse().expect("time");
    world.stop(&stopped, now);
    world.add_instance(
        ACCOUNT,
        EAST,
        InstanceSpec {
            state: InstanceState::Terminated,
            ..InstanceSpec::of("g6.xlarge")
        },
    );
    let block = InstanceSpec {
        lifecycle: Lifecycle::CapacityBlock,
        ..InstanceSpec::of("p5.48xlarge")
    };
    let block = world.add_instance(ACCOUNT, EAST, block).expect("id");
    let rig = Rig::discovered(world, |_| {}).await;
    let (instances, _) = rig.instances_within(ACCOUNT, EAST, PATIENT).await;
    let instances = instances.expect("listing");
    let found = by_id(&instances);
    assert_eq!(found.len(), 3);
    assert!(found.contains_key(managed.as_str()));
    assert_eq!(found[stopped.as_str()].state, State::Stopped);
    assert_eq!(found[stopped.as_str()].stopped, Some(now));
    assert_eq!(found[block.as_str()].billing.mode, BillingMode::Reserved);
}
