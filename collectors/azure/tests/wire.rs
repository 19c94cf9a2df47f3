//! Pages, versions of the API, quotas: what the wire can do to a listing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;

use gpuwatch_collector_core::{Dataset, Reason, Scope};
use gpuwatch_fakecloud_azure::{MachineSpec, ScaleSetSpec, ScaleSetVariety, World};
use gpuwatch_inventory::BillingMode;
use gpuwatch_test_kit::{assert_instances, reason};
use jiff::SignedDuration;
use support::{EAST, FIRST, PATIENT, Rig, scope, small_world};

/// More machines than a page of the Compute API has.
fn two_pages() -> World {
    let world = World::empty();
    world.add_subscription(FIRST, "corp");
    for number in 0..250 {
        world.add_machine(
            FIRST,
            MachineSpec {
                name: format!("vm-{number:03}"),
                ..MachineSpec::default()
            },
        );
    }
    world
}

// P40, P44
#[tokio::test]
async fn a_link_to_another_host_gets_no_token_and_no_half_listing() {
    let world = two_pages();
    world.set_graph(false);
    world.set_foreign_links(true);
    let rig = Rig::new(world, |_| {}).await;
    let (found, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
    let error = found.unwrap_err();
    assert!(!error.retryable, "{error}");
    assert_eq!(rig.calls_of("virtualMachines.listAll"), 1, "{error}");
}

#[tokio::test]
async fn a_cloud_that_lags_behind_is_asked_for_older_versions() {
    let world = two_pages();
    world.set_graph(false);
    world.set_api_versions("virtualMachines.listAll", &["2022-11-01"]);
    let rig = Rig::new(world.clone(), |_| {}).await;
    let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_instances(&world.truth(), &found.unwrap());
    // The refused version is asked for once: two listings of two pages each.
    assert_eq!(cx.errors(Reason::Other), 1);
    assert_eq!(rig.calls_of("virtualMachines.listAll"), 1 + 4);
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_an_error_and_not_an_empty_list() {
    let world = two_pages();
    world.set_graph(false);
    world.set_api_versions("virtualMachines.listAll", &["2015-01-01"]);
    let rig = Rig::new(world, |_| {}).await;
    let (found, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_eq!(reason(&found), Some(Reason::Other));
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_waited_for_before_calls_fail() {
    let world = small_world();
    world.set_graph_quota(1, SignedDuration::from_secs(1));
    let rig = Rig::new(world, |_| {}).await;
    let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_eq!(found.unwrap().len(), 1);
    assert_eq!(cx.errors(Reason::Throttled), 0);
}

#[tokio::test]
async fn without_the_right_to_ask_the_graph_compute_is_asked() {
    let world = two_pages();
    world.deny_graph();
    let rig = Rig::new(world.clone(), |_| {}).await;
    let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_instances(&world.truth(), &found.unwrap());
    assert!(cx.is_degraded(), "that it fell back is shown");
}

#[tokio::test]
async fn refused_commitments_name_the_role_to_add() {
    for (status, refused) in [(403, true), (401, true), (200, false)] {
        let world = small_world();
        world.deny_tenant("Microsoft.Capacity/reservationOrders/reservations/read", status);
        world.deny_tenant("Microsoft.BillingBenefits/savingsPlans/read", status);
        let rig = Rig::new(world, |_| {}).await;
        let (results, cx) = rig
            .collect(&scope(FIRST, Scope::GLOBAL), Dataset::Commitments, PATIENT)
            .await;
        for result in &results {
            assert_eq!(result.is_err(), refused, "{status}: {result:?}");
            if let Err(error) = result {
                assert_eq!(error.reason, Reason::Permission, "{status}");
                assert!(error.to_string().contains("Microsoft."), "{status}: {error}");
            }
        }
        let unclear = cx.calls().iter().filter(|call| call.unclear.is_some()).count();
        assert_eq!(unclear, if refused { 0 } else { 2 }, "{status}");
    }
}

#[tokio::test]
async fn members_of_mixed_sets_have_sizes_and_zones_of_their_own() {
    let created = "2026-01-01T00:00:00Z".parse().unwrap();
    for by_graph in [true, false] {
        let world = World::empty();
        world.add_subscription(FIRST, "corp");
        world.add_varied_scale_set(
            FIRST,
            ScaleSetSpec {
                name: "mixed".into(),
                size: "Mix".into(),
                priority: "Spot".into(),
                tags: BTreeMap::from([("team".to_owned(), "speech".to_owned())]),
                members: vec![("running".to_owned(), created); 4],
                ..ScaleSetSpec::default()
            },
            ScaleSetVariety {
                zones: vec!["1".into(), "2".into()],
                mixed_sizes: vec!["Standard_NC4as_T4_v3".into(), "Standard_D4s_v5".into()],
                priority_mix: None,
            },
        );
        world.set_graph(by_graph);
        let rig = Rig::new(world.clone(), |options| options.owner_tags = vec!["team".into()]).await;
        let (found, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
        let found = found.unwrap();
        assert_instances(&world.truth(), &found);
        assert_eq!(found.len(), 2, "those without a GPU are left out");
        assert!(
            found
                .iter()
                .all(|i| i.billing.mode == BillingMode::Spot && &*i.owner == "speech")
        );
    }
}
