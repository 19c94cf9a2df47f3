//! The inventory against a simulated Compute Engine and TPU API.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use gpuwatch_collector_core::{Collector, Dataset, Fleet, Reason};
use gpuwatch_collector_gcp::GcpOptions;
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_gcp::{InstanceSpec, Provisioning, ReservationSpec, Status, World};
use gpuwatch_inventory::{BillingMode, Instance, State};
use gpuwatch_test_kit::{assert_account_names, assert_commitments, assert_instances, gpus, reason};
use support::{CENTRAL, PATIENT, PROJECT, Rig, WEST, scope, small_world, zone};

fn by_name(instances: &[Instance]) -> BTreeMap<&str, &Instance> {
    instances.iter().map(|instance| (&*instance.name, instance)).collect()
}

fn owned(fleet: &Fleet) -> Vec<Instance> {
    fleet.instances.iter().map(|instance| (**instance).clone()).collect()
}

// P24, P28, P36, P53
#[tokio::test]
async fn a_whole_fleet_is_reported_as_it_is() {
    let world = World::demo(7, 300);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let fleet = rig.fleet().await;
    assert_instances(&world.truth(), &owned(&fleet));
    assert_account_names(&world.truth(), &owned(&fleet));
    let modes: BTreeSet<&str> = fleet.instances.iter().map(|i| i.billing.mode.as_str()).collect();
    assert!(
        modes.is_superset(&BTreeSet::from(["on_demand", "reserved", "spot"])),
        "{modes:?}"
    );
    assert_commitments(&world.commitments(), &fleet.commitments);
}

// P53
#[tokio::test]
async fn every_page_of_a_large_fleet_is_read() {
    let world = World::fleet(7, 2345);
    world.limit_pages(100);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let fleet = rig.fleet().await;
    assert_eq!(fleet.instances.len(), 2345);
    assert_instances(&world.truth(), &owned(&fleet));
    assert!(rig.calls_of("instances.aggregatedList") > 20);
}

// P53
#[tokio::test]
async fn a_zone_with_more_machines_than_a_page_and_an_empty_page_are_read_to_the_end() {
    let world = small_world();
    world.add_instances(PROJECT, &zone(CENTRAL, "a"), 501, &InstanceSpec::of("g2-standard-4"));
    world.add_instances(PROJECT, &zone(CENTRAL, "b"), 7, &InstanceSpec::of("e2-standard-4"));
    let rig = Rig::new(world, |_| {}).await;
    rig.fault(FaultKind::EmptyPage, "instances.aggregatedList");
    assert_eq!(rig.machines(CENTRAL).await.len(), 501);
}

#[tokio::test]
async fn all_regions_of_a_project_share_one_listing() {
    let world = small_world();
    for region in [CENTRAL, WEST] {
        world.add_instance(
            PROJECT,
            &zone(region, "a"),
            InstanceSpec::of("g2-standard-4").named(region),
        );
    }
    let rig = Rig::new(world, |_| {}).await;
    let found = join_all([CENTRAL, WEST, CENTRAL, WEST].map(|region| rig.machines(region))).await;
    assert!(
        found
            .iter()
            .zip([CENTRAL, WEST, CENTRAL, WEST])
            .all(|(machines, region)| {
                machines.len() == 1 && &*machines[0].name == region && &*machines[0].region == region
            })
    );
    assert_eq!(rig.calls_of("instances.aggregatedList"), 1);
}

// P24
#[tokio::test]
async fn every_way_to_buy_a_machine_has_its_mode() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let reservation = world
        .add_reservation(PROJECT, &at, ReservationSpec::of("g2-standard-4", 2))
        .unwrap();
    for (name, provisioning) in [
        ("standard", Provisioning::Standard),
        ("unset", Provisioning::Unset),
        ("spot", Provisioning::Spot),
        ("preemptible", Provisioning::LegacyPreemptible),
        ("flex", Provisioning::FlexStart),
        ("bound", Provisioning::ReservationBound),
        ("new", Provisioning::Other("BRAND_NEW")),
    ] {
        let spec = InstanceSpec::of("g2-standard-4").named(name).bought(provisioning);
        world.add_instance(PROJECT, &at, spec);
    }
    let placed = InstanceSpec {
        reservation: Some(reservation),
        ..InstanceSpec::of("g2-standard-4").named("placed")
    };
    world.add_instance(PROJECT, &at, placed);
    let rig = Rig::new(world, |_| {}).await;
    let machines = rig.machines(CENTRAL).await;
    let machines = by_name(&machines);
    for (name, mode, detail) in [
        ("standard", BillingMode::OnDemand, ""),
        ("unset", BillingMode::OnDemand, ""),
        ("spot", BillingMode::Spot, ""),
        ("preemptible", BillingMode::Spot, ""),
        ("flex", BillingMode::OnDemand, "flex_start"),
        ("bound", BillingMode::Reserved, "reservation_bound"),
        ("new", BillingMode::Unknown, "BRAND_NEW"),
        ("placed", BillingMode::OnDemand, ""),
    ] {
        let billing = &machines[name].billing;
        assert_eq!((billing.mode, &*billing.detail), (mode, detail), "{name}");
    }
    assert!(
        machines["placed"]
            .reservation_id
            .ends_with("/reservations/reservation-1")
    );
}

// P25
#[tokio::test]
async fn a_fleet_that_churns_has_a_mode_for_every_machine_in_every_cycle() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let mut ids: Vec<String> = Vec::new();
    let rig = Rig::new(world.clone(), |_| {}).await;
    for cycle in 0..3 {
        for id in ids.drain(..) {
            world.remove(&id);
        }
        let spec = InstanceSpec::of("g2-standard-4").bought(Provisioning::Spot);
        ids = world.add_instances(PROJECT, &at, 500, &spec);
        // A collector of its own each time: listings are shared for a while.
        let mut options = GcpOptions::named("ml");
        (options.anonymous, options.endpoint_url) = (true, Some(rig.fake.url()));
        let again = Rig {
            collector: gpuwatch_collector_gcp::GcpCollector::new(options),
            ..Rig::new(world.clone(), |_| {}).await
        };
        let machines = again.machines(CENTRAL).await;
        assert_eq!(machines.len(), 500, "{cycle}");
        assert!(machines.iter().all(|machine| machine.billing.mode == BillingMode::Spot));
    }
}

// P36
#[tokio::test]
async fn parts_of_a_card_and_attached_cards_are_counted_as_they_are() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    for (name, spec) in [
        ("eighth", InstanceSpec::of("g4-standard-6")),
        ("half", InstanceSpec::of("g4-standard-24")),
        ("whole", InstanceSpec::of("g4-standard-48")),
        (
            "attached",
            InstanceSpec::of("n1-custom-8-30720").attached("nvidia-tesla-t4", 2),
        ),
        (
            "workstation",
            InstanceSpec::of("n1-standard-8").attached("nvidia-tesla-t4-vws", 1),
        ),
        ("node", InstanceSpec::of("a3-highgpu-8g")),
        ("plain", InstanceSpec::of("n1-standard-8")),
        ("small", InstanceSpec::of("g1-small")),
    ] {
        world.add_instance(PROJECT, &at, spec.named(name));
    }
    // Listed without the accelerators of its type.
    let silent = InstanceSpec {
        accelerators: Some(Vec::new()),
        ..InstanceSpec::of("a2-highgpu-4g").named("silent")
    };
    world.add_instance(PROJECT, &at, silent);
    let rig = Rig::new(world, |_| {}).await;
    let machines = rig.machines(CENTRAL).await;
    let counts: BTreeMap<&str, Option<f64>> = machines.iter().map(|m| (&*m.name, gpus(m))).collect();
    assert_eq!(
        counts,
        BTreeMap::from([
            ("eighth", Some(0.125)),
            ("half", Some(0.5)),
            ("whole", Some(1.0)),
            ("attached", Some(2.0)),
            ("workstation", Some(1.0)),
            ("node", Some(8.0)),
            ("silent", Some(4.0)),
        ])
    );
    let machines = by_name(&machines);
    assert_eq!(machines["eighth"].accelerators.memory_mib, Some(12 * 1024));
    assert_eq!(&*machines["workstation"].accelerators.model, "T4");
}

#[tokio::test]
async fn types_that_no_catalogue_knows_are_found_by_the_api_or_listed_as_unknown() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    for name in ["a9-futuregpu-8g", "a7-newgpu-8g", "g9-standard-4"] {
        let spec = InstanceSpec {
            accelerators: Some(Vec::new()),
            ..InstanceSpec::of(name).named(name)
        };
        world.add_instance(PROJECT, &at, spec);
    }
    let rig = Rig::new(world, |_| {}).await;
    let machines = rig.machines(CENTRAL).await;
    let machines = by_name(&machines);
    assert_eq!(gpus(machines["a9-futuregpu-8g"]), Some(8.0));
    assert_eq!(&*machines["a9-futuregpu-8g"].accelerators.model, "nvidia-future-512gb");
    assert_eq!(gpus(machines["a7-newgpu-8g"]), None);
    assert_eq!(gpus(machines["g9-standard-4"]), None);
    assert!(!machines["a7-newgpu-8g"].accelerators.in_catalog);
}

#[tokio::test]
async fn states_owners_and_places_of_machines_are_reported() {
    let world = small_world();
    let at = zone(CENTRAL, "b");
    let stopped: jiff::Timestamp = "2026-11-20T10:00:00Z".parse().unwrap();
    let id = world
        .add_instance(
            PROJECT,
            &at,
            InstanceSpec {
                instance_group: Some("workers".into()),
                node_group: Some("n1-nodes".into()),
                id: Some(u64::MAX - 1),
                private_ip: Some("10.1.2.3".into()),
                ..InstanceSpec::of("n1-standard-8").attached("nvidia-tesla-v100", 1)
            }
            .label("team", "vision"),
        )
        .unwrap();
    world.stop(&id, stopped);
    let node = InstanceSpec::of("a3-highgpu-8g")
        .named("gke-train-h100-1")
        .label("goog-k8s-cluster-name", "train")
        .label("goog-k8s-node-pool-name", "h100");
    world.add_instance(PROJECT, &at, node);
    let repairing = InstanceSpec::of("a3-highgpu-8g")
        .named("repairing")
        .in_state(Status::Repairing);
    world.add_instance(PROJECT, &at, repairing);
    let rig = Rig::new(world, |options| {
        options.owner_tags = vec!["owner".into(), "team".into()];
    })
    .await;
    let machines = rig.machines(CENTRAL).await;
    let old = machines
        .iter()
        .find(|machine| *machine.id == *(u64::MAX - 1).to_string())
        .unwrap();
    assert_eq!((old.state, old.stopped), (State::Stopped, Some(stopped)));
    assert_eq!(
        (&*old.owner, &*old.pool, &*old.tenancy),
        ("vision", "workers", "sole_tenant")
    );
    assert_eq!((&*old.zone, &*old.private_address), (&*at, "10.1.2.3"));
    let machines = by_name(&machines);
    let node = machines["gke-train-h100-1"];
    assert_eq!((&*node.cluster, &*node.pool), ("train", "h100"));
    assert_eq!(machines["repairing"].state, State::StoppedBilled);
}

#[tokio::test]
async fn parts_are_those_of_inventory_and_commitments() {
    let rig = Rig::new(small_world(), |_| {}).await;
    let scope = scope(PROJECT, CENTRAL);
    assert_eq!(
        rig.collector.parts(&scope, Dataset::Inventory),
        ["instances", "tpu_nodes"]
    );
    assert_eq!(
        rig.collector.parts(&scope, Dataset::Commitments),
        ["reservations", "commitments"]
    );
    assert!(rig.collector.parts(&scope, Dataset::Usage).is_empty());
    let (result, _) = rig.part(&scope, Dataset::Usage, "instances", PATIENT).await;
    assert_eq!(reason(&result), Some(Reason::Other));
}
