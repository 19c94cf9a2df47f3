//! What is missing costs itself, and says so.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::time::Duration;

use futures::future::join_all;
use gpuwatch_collector_core::{Dataset, Reason};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_fakecloud_gcp::{InstanceSpec, ProjectSpec};
use gpuwatch_test_kit::{gpus, reason};
use support::{CENTRAL, PATIENT, PROJECT, Rig, SECOND, WEST, scope, small_world, zone};

#[tokio::test]
async fn without_machine_types_the_catalogue_answers() {
    let world = small_world();
    let silent = InstanceSpec {
        accelerators: Some(Vec::new()),
        ..InstanceSpec::of("a2-highgpu-4g")
    };
    world.add_instance(PROJECT, &zone(CENTRAL, "a"), silent);
    world.add_instance(PROJECT, &zone(WEST, "a"), InstanceSpec::of("g2-standard-4"));
    world.deny(PROJECT, "compute.machineTypes.list");
    let rig = Rig::new(world, |_| {}).await;
    let (machines, cx) = rig.instances("instances", CENTRAL, PATIENT).await;
    assert_eq!(gpus(&machines.unwrap()[0]), Some(4.0));
    assert!(cx.is_degraded() && cx.errors(Reason::Permission) > 0);
    let (machines, cx) = rig.instances("instances", WEST, PATIENT).await;
    assert_eq!(machines.unwrap().len(), 1);
    assert!(!cx.is_degraded(), "nothing had to be looked up there");
}

#[tokio::test]
async fn a_zone_out_of_reach_costs_its_own_region() {
    let world = small_world();
    for region in [CENTRAL, WEST] {
        world.add_instances(PROJECT, &zone(region, "a"), 3, &InstanceSpec::of("g2-standard-4"));
    }
    world.zone_down(&zone(WEST, "b"));
    let rig = Rig::new(world, |_| {}).await;
    let (result, _) = rig.instances("instances", WEST, PATIENT).await;
    let error = result.unwrap_err();
    assert!(error.to_string().contains("europe-west4-b"), "{error}");
    assert_eq!(rig.machines(CENTRAL).await.len(), 3);
}

// P46, P47
#[tokio::test]
async fn when_the_whole_project_cannot_be_listed_its_zones_are() {
    let world = small_world();
    for region in [CENTRAL, WEST] {
        for letter in ["a", "b"] {
            world.add_instances(PROJECT, &zone(region, letter), 2, &InstanceSpec::of("g2-standard-4"));
        }
    }
    let outage = |kind: FaultKind| {
        let world = world.clone();
        async move {
            let rig = Rig::new(world, |_| {}).await;
            rig.fault(kind, "instances.aggregatedList");
            rig.fake
                .faults()
                .add(FaultRule::new(FaultKind::Hang).operation("instances.list").region(WEST));
            let limit = Duration::from_secs(12);
            let ((west, west_cx), (central, cx)) = tokio::join!(
                rig.instances("instances", WEST, limit),
                rig.instances("instances", CENTRAL, limit)
            );
            assert_eq!(reason(&west), Some(Reason::Timeout), "{kind}: {west:?}");
            assert_eq!(central.unwrap().len(), 4, "{kind}");
            assert!(!cx.is_degraded());
            assert!(west_cx.errors(Reason::Timeout) > 0, "{kind}");
        }
    };
    join_all([FaultKind::InternalError, FaultKind::HtmlError, FaultKind::Hang].map(outage)).await;
}

// P48
#[tokio::test]
async fn a_record_without_an_id_costs_itself() {
    let world = small_world();
    world.add_instances(PROJECT, &zone(CENTRAL, "a"), 99, &InstanceSpec::of("g2-standard-4"));
    let broken = InstanceSpec {
        without_id: true,
        ..InstanceSpec::of("g2-standard-4")
    };
    world.add_instance(PROJECT, &zone(CENTRAL, "a"), broken);
    let rig = Rig::new(world, |_| {}).await;
    let (machines, cx) = rig.instances("instances", CENTRAL, PATIENT).await;
    assert_eq!(machines.unwrap().len(), 99);
    assert_eq!(cx.skipped("no_id"), 1);
}

#[tokio::test]
async fn a_call_that_is_refused_for_a_moment_is_made_again() {
    let world = small_world();
    world.add_instances(PROJECT, &zone(CENTRAL, "a"), 3, &InstanceSpec::of("g2-standard-4"));
    let cases = [
        // Without a canonical code, and with one.
        (FaultKind::Throttled { retry_after: None }, Reason::Throttled),
        (FaultKind::Throttled { retry_after: Some(1) }, Reason::Throttled),
        (FaultKind::InternalError, Reason::Other),
        (FaultKind::HtmlError, Reason::Other),
        (FaultKind::DropConnection, Reason::Network),
    ];
    let case = |(kind, reason): (FaultKind, Reason)| {
        let world = world.clone();
        async move {
            let rig = Rig::new(world, |_| {}).await;
            let rule = FaultRule::new(kind).operation("instances.aggregatedList").times(1);
            rig.fake.faults().add(rule);
            let (machines, cx) = rig.instances("instances", CENTRAL, PATIENT).await;
            assert_eq!(machines.unwrap().len(), 3, "{kind}");
            assert!(!cx.is_degraded() && cx.errors(reason) > 0, "{kind}: not counted");
        }
    };
    join_all(cases.map(case)).await;
}

#[tokio::test]
async fn a_missing_permission_is_told_apart_from_an_empty_project() {
    let world = small_world();
    world.add_project(SECOND, ProjectSpec::default());
    world.deny(PROJECT, "compute.instances.list");
    let rig = Rig::new(world, |_| {}).await;
    let (result, _) = rig.instances("instances", CENTRAL, PATIENT).await;
    let error = result.unwrap_err();
    assert_eq!(error.reason, Reason::Permission);
    assert!(error.to_string().contains("compute.instances.list"), "{error}");
    let (empty, _) = rig
        .part(&scope(SECOND, CENTRAL), Dataset::Inventory, "instances", PATIENT)
        .await;
    assert!(support::instances(empty.unwrap()).is_empty());
}

#[tokio::test]
async fn an_outage_that_fails_the_whole_listing_costs_the_region_of_the_zone() {
    let world = small_world();
    for region in [CENTRAL, WEST] {
        world.add_instances(PROJECT, &zone(region, "a"), 3, &InstanceSpec::of("g2-standard-4"));
    }
    world.zone_down(&zone(WEST, "b"));
    world.outages_fail_lists(true);
    let rig = Rig::new(world, |_| {}).await;
    let (result, cx) = rig.instances("instances", WEST, PATIENT).await;
    assert_eq!(reason(&result), Some(Reason::Other), "{result:?}");
    assert!(cx.errors(Reason::Other) > 0);
    assert_eq!(rig.machines(CENTRAL).await.len(), 3);
}
