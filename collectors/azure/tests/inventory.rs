//! Machines: by Resource Graph, by the Compute API, and what may be missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeMap, time::Duration};

use gpuwatch_collector_core::Reason;
use gpuwatch_fakecloud_azure::{MachineSpec, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_inventory::BillingMode;
use gpuwatch_test_kit::{assert_account_names, assert_commitments, assert_instances, reason};
use support::{EAST, FIRST, PATIENT, Rig, SECOND, WEST, small_world};

// P24, P28, P32, P36
#[tokio::test]
async fn the_demo_fleet_is_seen_as_it_is() {
    let world = World::demo(7, 300);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let (instances, commitments) = rig.everything().await;
    assert_instances(&world.truth(), &instances);
    assert_account_names(&world.truth(), &instances);
    assert_commitments(&world.commitments(), &commitments);
    for mode in [
        BillingMode::OnDemand,
        BillingMode::Reserved,
        BillingMode::Spot,
        BillingMode::Unknown,
    ] {
        assert!(instances.iter().any(|i| i.billing.mode == mode), "{mode}");
    }
    assert!(instances.iter().any(|i| &*i.cluster == "train" && &*i.pool == "gpu"));
}

// P53
#[tokio::test]
async fn a_fleet_of_many_pages_is_complete_either_way() {
    let world = World::fleet(7, 2_345);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let (instances, commitments) = rig.everything().await;
    assert_instances(&world.truth(), &instances);
    assert_commitments(&world.commitments(), &commitments);
    assert!(rig.calls_of("resources") >= 6, "pages of 1,000");
    assert_eq!(rig.calls_of("virtualMachines.listAll"), 0);

    world.set_graph(false);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let (discovery, _) = rig.discover().await;
    let mut instances = Vec::new();
    for target in discovery.targets.iter().filter(|t| &*t.scope.region != "global") {
        let account = &target.scope.account.id;
        let (found, _) = rig.instances_in(account, &target.scope.region, PATIENT).await;
        instances.extend(found.unwrap());
    }
    let mut fleet = gpuwatch_collector_core::Fleet {
        instances: instances.into_iter().map(std::sync::Arc::new).collect(),
        commitments: rig.everything_bought().await,
        coverage: Vec::new(),
    };
    gpuwatch_collector_core::Collector::allocate(&rig.collector, &mut fleet);
    let instances: Vec<_> = fleet.instances.iter().map(|i| (**i).clone()).collect();
    assert_instances(&world.truth(), &instances);
    assert!(rig.calls_of("virtualMachines.listAll") >= 12, "pages of 200, twice");
}

#[tokio::test]
async fn one_listing_serves_every_region_of_a_subscription() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.discover().await;
    for region in [EAST, WEST, "southeastasia"] {
        let (found, _) = rig.instances_in(FIRST, region, PATIENT).await;
        assert_eq!(found.unwrap().len(), usize::from(region != "southeastasia"));
    }
    assert_eq!(rig.calls_of("resources"), 2, "machines and scale sets, once");
}

// P46, P47
#[tokio::test]
async fn a_hanging_subscription_leaves_the_other_alone() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.discover().await;
    rig.server.faults().add(FaultRule::new(FaultKind::Hang).account(FIRST));
    let short = Duration::from_secs(2);
    let (slow, fast) = tokio::join!(
        rig.instances_in(FIRST, EAST, short),
        rig.instances_in(SECOND, EAST, short)
    );
    assert_eq!(reason(&slow.0), Some(Reason::Timeout));
    assert_eq!(fast.0.unwrap().len(), 1);
    assert!(slow.1.errors(Reason::Timeout) > 0, "counted");
    assert_eq!(fast.1.errors(Reason::Timeout), 0);
}

#[tokio::test]
async fn a_set_whose_members_cannot_be_listed_spoils_its_own_region_only() {
    let world = World::demo(7, 60);
    world.set_graph(false);
    let product = world
        .truth()
        .into_iter()
        .find(|row| row.id.contains("virtualmachinescalesets"))
        .unwrap()
        .account;
    let rig = Rig::new(world, |_| {}).await;
    rig.fault(FaultKind::AccessDenied, "virtualMachineScaleSetVMs.list");
    let (spoilt, _) = rig.instances_in(&product, WEST, PATIENT).await;
    assert_eq!(reason(&spoilt), Some(Reason::Permission));
    let (fine, _) = rig.instances_in(&product, EAST, PATIENT).await;
    assert!(!fine.unwrap().is_empty());
}

// P48
#[tokio::test]
async fn a_malformed_record_is_skipped_and_counted() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.discover().await;
    rig.fault(FaultKind::MalformedRecord, "resources");
    let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_eq!(found.unwrap().len(), 1);
    assert!(cx.skipped("malformed") > 0);
}

// P25
#[tokio::test]
async fn machines_that_come_and_go_always_have_a_mode() {
    let world = small_world();
    for cycle in 0..3 {
        for number in 0..500 {
            let spot = number % 3 == 0;
            world.add_machine(
                FIRST,
                MachineSpec {
                    name: format!("churn-{cycle}-{number}"),
                    priority: if spot { "Spot" } else { "Regular" }.to_owned(),
                    tags: BTreeMap::new(),
                    ..MachineSpec::default()
                },
            );
        }
        let rig = Rig::new(world.clone(), |_| {}).await;
        let (instances, _) = rig.everything().await;
        assert_instances(&world.truth(), &instances);
        for number in 0..500 {
            world.remove_machine(FIRST, &format!("churn-{cycle}-{number}"));
        }
    }
}

#[tokio::test]
async fn owners_are_found_whatever_the_case_of_their_key() {
    let world = small_world();
    world.add_machine(
        FIRST,
        MachineSpec {
            name: "tagged".into(),
            tags: BTreeMap::from([("TEAM".to_owned(), "推荐算法".to_owned())]),
            ..MachineSpec::default()
        },
    );
    let rig = Rig::new(world, |options| options.owner_tags = vec!["team".into()]).await;
    let (found, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert!(found.unwrap().iter().any(|i| &*i.owner == "推荐算法"));
}
