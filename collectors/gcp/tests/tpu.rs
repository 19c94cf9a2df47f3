//! TPU nodes against a simulated TPU API.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use gpuwatch_collector_core::Reason;
use gpuwatch_fakecloud_gcp::{InstanceSpec, TpuSpec};
use gpuwatch_inventory::{BillingMode, Instance, State};
use gpuwatch_test_kit::{gpus, reason};
use support::{CENTRAL, PATIENT, PROJECT, Rig, WEST, small_world, zone};

fn by_name(instances: &[Instance]) -> BTreeMap<&str, &Instance> {
    instances.iter().map(|instance| (&*instance.name, instance)).collect()
}

#[tokio::test]
async fn tpu_nodes_are_listed_with_their_chips_and_not_twice() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    world.add_tpu(PROJECT, &at, TpuSpec::of("v5litepod-8").named("lite"));
    world.add_tpu(PROJECT, &at, TpuSpec::of("v4-16").named("cores"));
    world.add_tpu(
        PROJECT,
        &at,
        TpuSpec::of("v5p-32").shaped("V5P", "2x2x4").named("shaped"),
    );
    world.add_tpu(
        PROJECT,
        &at,
        TpuSpec {
            spot: true,
            hosts: 4,
            ..TpuSpec::of("v6e-16").named("spot")
        },
    );
    let host = world
        .add_instance(PROJECT, &at, InstanceSpec::of("ct5lp-hightpu-4t").named("host"))
        .unwrap();
    world.add_tpu(
        PROJECT,
        &at,
        TpuSpec {
            machines: vec![host],
            ..TpuSpec::of("v5litepod-4").named("same")
        },
    );
    let rig = Rig::new(world, |_| {}).await;
    let nodes = rig.nodes(CENTRAL).await;
    let nodes = by_name(&nodes);
    for (name, chips, model, mode) in [
        ("lite", 8.0, "TPU v5e", BillingMode::OnDemand),
        ("cores", 8.0, "TPU v4", BillingMode::OnDemand),
        ("shaped", 16.0, "TPU v5p", BillingMode::OnDemand),
        ("spot", 16.0, "TPU v6e", BillingMode::Spot),
    ] {
        let node = nodes[name];
        assert_eq!(gpus(node), Some(chips), "{name}");
        assert_eq!((&*node.accelerators.model, node.billing.mode), (model, mode), "{name}");
    }
    assert!(rig.nodes(WEST).await.is_empty());
    let fleet = rig.fleet().await;
    let names: BTreeSet<&str> = fleet.instances.iter().map(|instance| &*instance.name).collect();
    assert_eq!(names, BTreeSet::from(["cores", "host", "lite", "shaped", "spot"]));
}

#[tokio::test]
async fn without_the_tpu_api_there_are_no_nodes_and_no_further_calls() {
    let world = small_world();
    world.disable_api(PROJECT, "tpu.googleapis.com");
    let rig = Rig::new(world, |_| {}).await;
    for region in [CENTRAL, WEST, CENTRAL] {
        let (nodes, cx) = rig.instances("tpu_nodes", region, PATIENT).await;
        assert!(nodes.unwrap().is_empty() && !cx.is_degraded());
    }
    assert_eq!(rig.calls_of("nodes.list"), 1);
    rig.world.deny(PROJECT, "tpu.nodes.list");
    rig.world.enable_api(PROJECT, "tpu.googleapis.com");
    let other = Rig::new(rig.world.clone(), |_| {}).await;
    let (denied, _) = other.instances("tpu_nodes", CENTRAL, PATIENT).await;
    assert_eq!(reason(&denied), Some(Reason::Permission));
}

#[tokio::test]
async fn a_slice_of_many_hosts_is_one_node_and_none_where_its_hosts_are_machines() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let hosts: Vec<String> = (0..4)
        .map(|n| InstanceSpec::of("ct5p-hightpu-4t").named(&format!("host-{n}")))
        .filter_map(|host| world.add_instance(PROJECT, &at, host))
        .collect();
    let slice = |name: &str| TpuSpec::of("v5p-32").shaped("V5P", "2x2x4").named(name);
    world.add_tpu(
        PROJECT,
        &at,
        TpuSpec {
            hosts: 4,
            ..slice("own")
        },
    );
    let on_machines = TpuSpec {
        machines: hosts,
        ..slice("on-machines")
    };
    world.add_tpu(PROJECT, &at, on_machines);
    let rig = Rig::new(world, |_| {}).await;
    let fleet = rig.fleet().await;
    let found: BTreeMap<&str, Option<f64>> = fleet.instances.iter().map(|i| (&*i.name, gpus(i))).collect();
    let mut expected = BTreeMap::from([("own", Some(16.0))]);
    expected.extend(["host-0", "host-1", "host-2", "host-3"].map(|host| (host, Some(4.0))));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn every_purchase_option_and_state_of_a_node_is_told() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    for (name, state, change) in [
        (
            "reserved",
            "READY",
            (|spec: &mut TpuSpec| spec.reserved = true) as fn(&mut TpuSpec),
        ),
        ("preemptible", "PREEMPTED", |spec| spec.preemptible = true),
        ("repairing", "REPAIRING", |_| {}),
        ("creating", "CREATING", |_| {}),
        ("hidden", "HIDDEN", |_| {}),
    ] {
        let mut spec = TpuSpec {
            state: state.into(),
            ..TpuSpec::of("v4-8").named(name).label("team", "vision")
        };
        change(&mut spec);
        world.add_tpu(PROJECT, &at, spec);
    }
    let nameless = TpuSpec {
        without_name: true,
        ..TpuSpec::of("v4-8")
    };
    world.add_tpu(PROJECT, &at, nameless);
    let rig = Rig::new(world, |options| options.owner_tags = vec!["team".into()]).await;
    let (nodes, cx) = rig.instances("tpu_nodes", CENTRAL, PATIENT).await;
    let nodes = nodes.unwrap();
    assert_eq!((nodes.len(), cx.skipped("no_id")), (5, 1));
    let nodes = by_name(&nodes);
    for (name, state, mode) in [
        ("reserved", State::Running, BillingMode::Reserved),
        ("preemptible", State::Stopped, BillingMode::Spot),
        ("repairing", State::StoppedBilled, BillingMode::OnDemand),
        ("creating", State::Starting, BillingMode::OnDemand),
        ("hidden", State::Unknown, BillingMode::OnDemand),
    ] {
        let node = nodes[name];
        assert_eq!(
            (node.state, node.billing.mode, &*node.owner),
            (state, mode, "vision"),
            "{name}"
        );
    }
}
