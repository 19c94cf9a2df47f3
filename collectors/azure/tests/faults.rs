//! Every fault at every operation: counted under its class, data complete or
//! an error, never a shorter fleet.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeMap, time::Duration};

use gpuwatch_collector_core::{Collected, Covers, Dataset, Discovery, Reason, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_azure::{
    CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, ScaleSetSpec, TENANT, World,
};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_test_kit::expected;
use support::{EAST, FIRST, PATIENT, Rig, scope};

const PER_LISTING: usize = 210;

const SIZE: &str = "Standard_NC4as_T4_v3";

/// Enough of everything for two pages of every listing.
fn world() -> World {
    let world = World::empty();
    world.add_subscription(FIRST, "corp");
    for number in 0..PER_LISTING {
        world.add_machine(
            FIRST,
            MachineSpec {
                name: format!("vm-{number:03}"),
                // Of a size that is in no catalogue: it is looked up.
                size: if number == 0 { "Standard_NX1_v9" } else { SIZE }.into(),
                ..MachineSpec::default()
            },
        );
        world.add_reservation(ReservationSpec {
            location: EAST.into(),
            size: SIZE.into(),
            quantity: 1,
            applies_to: String::new(),
            billed_to: FIRST.into(),
            state: "Succeeded".into(),
            expires: "2037-01-01T00:00:00Z".parse().unwrap(),
        });
        world.add_savings_plan(SavingsPlanSpec {
            hourly: "1.5".into(),
            billed_to: FIRST.into(),
            expires: "2037-01-01T00:00:00Z".parse().unwrap(),
        });
    }
    let created = "2026-01-01T00:00:00Z".parse().unwrap();
    world.add_scale_set(
        FIRST,
        ScaleSetSpec {
            name: "pool".into(),
            group: "rg-ml".into(),
            location: EAST.into(),
            size: SIZE.into(),
            priority: "Spot".into(),
            tags: BTreeMap::new(),
            flexible: false,
            members: vec![("running".to_owned(), created); PER_LISTING],
        },
    );
    for group in ["crg-a", "crg-b"] {
        world.add_capacity(
            FIRST,
            CapacitySpec {
                name: group.into(),
                group: "rg-ml".into(),
                location: EAST.into(),
                size: SIZE.into(),
                capacity: 2,
                allocated: 1,
            },
        );
    }
    world
}

fn limit(kind: FaultKind) -> Duration {
    match kind {
        // Long enough for the other calls of the same run on a busy machine.
        FaultKind::Hang => Duration::from_secs(10),
        _ => PATIENT,
    }
}

/// Spoils one operation with one kind, and looks at what a dataset gives.
async fn spoil(kind: FaultKind, operation: &'static str, region: &'static str, dataset: Dataset, pages: bool) {
    let world = world();
    if operation.starts_with("virtualMachine") {
        world.set_graph(false);
    }
    let rig = Rig::new(world, |_| {}).await;
    rig.fault(kind, operation);
    let (results, cx) = rig.collect(&scope(FIRST, region), dataset, limit(kind)).await;
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    if let Some(reason) = expected(kind, pages) {
        assert_eq!(errors.len(), 1, "{operation} {kind}: {errors:?}");
        assert_eq!(errors[0].reason, reason, "{operation} {kind}: {}", errors[0]);
        assert!(cx.errors(reason) > 0 || pages, "{operation} {kind} is counted");
        let text = errors[0].to_string();
        assert!(!text.contains("fakecloud-access-token"), "{text}");
    } else {
        assert!(errors.is_empty(), "{operation} {kind}: {errors:?}");
        let count: usize = results
            .iter()
            .map(|result| match result.as_ref().unwrap() {
                Collected::Instances(found) => found.len(),
                Collected::Commitments(found) => found.len(),
                Collected::Usage(found) => found.len(),
            })
            .sum();
        let whole = match (dataset, region) {
            (Dataset::Inventory, _) | (_, Scope::GLOBAL) => 2 * PER_LISTING,
            _ => 2,
        };
        let unknown_state = kind == FaultKind::UnknownEnum && region == Scope::GLOBAL;
        // A state that nobody knows is not an active one.
        assert!(
            count == whole || unknown_state && count + 4 >= whole,
            "{operation} {kind}: {count} of {whole}"
        );
    }
}

/// Runs a case for every kind, all at the same time.
async fn every_kind<F: Future<Output = ()> + Send + 'static>(what: &str, case: impl Fn(FaultKind) -> F) {
    let cases: Vec<_> = FaultKind::ALL
        .iter()
        .map(|kind| (kind, tokio::spawn(case(*kind))))
        .collect();
    for (kind, case) in cases {
        case.await.unwrap_or_else(|error| panic!("{what} {kind}: {error}"));
    }
}

async fn matrix(operation: &'static str, region: &'static str, dataset: Dataset, pages: bool) {
    every_kind(operation, |kind| spoil(kind, operation, region, dataset, pages)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_by_the_compute_api() {
    matrix("virtualMachines.listAll", EAST, Dataset::Inventory, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_sets_by_the_compute_api() {
    matrix("virtualMachineScaleSets.listAll", EAST, Dataset::Inventory, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_by_the_compute_api() {
    matrix("virtualMachineScaleSetVMs.list", EAST, Dataset::Inventory, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capacity_groups() {
    matrix("capacityReservationGroups.list", EAST, Dataset::Commitments, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capacity_reservations() {
    matrix("capacityReservations.list", EAST, Dataset::Commitments, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_use_of_capacity_reservations() {
    matrix("capacityReservationGroups.get", EAST, Dataset::Commitments, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_of_the_tenant() {
    matrix("reservations.list", Scope::GLOBAL, Dataset::Commitments, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn savings_plans_of_the_tenant() {
    matrix("savingsPlans.list", Scope::GLOBAL, Dataset::Commitments, true).await;
}

/// What costs detail only: the machines are all there, and it is shown.
#[tokio::test(flavor = "multi_thread")]
async fn facts_about_sizes() {
    every_kind("skus.list", |kind| async move {
        let rig = Rig::new(world(), |_| {}).await;
        rig.fault(kind, "skus.list");
        let (found, cx) = rig.instances_in(FIRST, EAST, limit(kind)).await;
        if kind == FaultKind::Hang {
            // The listing is there before the facts are asked for, but a
            // run that is cut off delivers nothing.
            assert!(found.is_err() || cx.is_degraded());
            return;
        }
        assert_eq!(found.unwrap().len(), 2 * PER_LISTING, "{kind}");
        assert_eq!(cx.is_degraded(), expected(kind, true).is_some(), "{kind}");
    })
    .await;
}

/// Without the list of subscriptions nothing is known; everything stays as it
/// was.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions() {
    every_kind("subscriptions.list", |kind| async move {
        if kind == FaultKind::Hang {
            return;
        }
        let rig = Rig::new(world(), |_| {}).await;
        rig.fault(kind, "list");
        let (found, _) = rig.discover().await;
        if let Some(reason) = expected(kind, true) {
            assert_eq!(found.failures[0].error.reason, reason, "{kind}");
            assert_eq!(found.failures[0].covers, Covers::Everything, "{kind}");
            assert!(found.targets.is_empty(), "{kind}");
        } else {
            assert!(found.failures.is_empty(), "{kind}: {:?}", found.failures);
            assert!(polls_east(&found), "{kind}");
        }
    })
    .await;
}

/// Without the list of locations, those with machines are polled.
#[tokio::test(flavor = "multi_thread")]
async fn locations() {
    every_kind("locations.list", |kind| async move {
        if kind == FaultKind::Hang {
            return;
        }
        let rig = Rig::new(world(), |_| {}).await;
        rig.fault(kind, "locations.list");
        let (found, _) = rig.discover().await;
        assert!(found.failures.is_empty(), "{kind}: {:?}", found.failures);
        assert!(polls_east(&found), "{kind}");
    })
    .await;
}

fn polls_east(found: &Discovery) -> bool {
    let mut polled = found
        .targets
        .iter()
        .filter(|t| t.datasets.contains(&Dataset::Inventory));
    polled.any(|target| &*target.scope.region == EAST)
}

/// Signing in: what is not a refusal is tried again and told apart from one.
#[tokio::test(flavor = "multi_thread")]
async fn tokens() {
    every_kind("token", |kind| async move {
        if kind == FaultKind::Hang {
            return;
        }
        let world = world();
        world.add_client("11111111-1111-4111-8111-111111111111", "secret");
        let rig = Rig::new(world, |options| {
            options.access_token = None;
            options.tenant_id = Some(TENANT.into());
            options.client_id = Some("11111111-1111-4111-8111-111111111111".into());
            options.client_secret = Some(SecretSource::value("secret"));
        })
        .await;
        rig.server
            .faults()
            .add(FaultRule::new(kind).operation("token").times(1));
        let (found, cx) = rig.discover().await;
        let refused = matches!(
            kind,
            FaultKind::ExpiredToken | FaultKind::AuthFailure | FaultKind::AccessDenied | FaultKind::OptInRequired
        );
        assert_eq!(found.failures.is_empty(), !refused, "{kind}: {:?}", found.failures);
        if refused {
            assert_eq!(found.failures[0].error.reason, Reason::Credentials, "{kind}");
            assert_eq!(rig.calls_of("token"), 1, "{kind} is not tried again");
        } else if let Some(reason) = expected(kind, false) {
            assert_eq!(cx.errors(reason), 1, "{kind} is counted");
        }
    })
    .await;
}

/// Whatever happens to Resource Graph, the machines are all there: the
/// Compute API is asked, except where that could not help.
#[tokio::test(flavor = "multi_thread")]
async fn machines_by_resource_graph() {
    every_kind("resources", |kind| async move {
        if kind == FaultKind::Hang {
            return;
        }
        let rig = Rig::new(world(), |_| {}).await;
        rig.fault(kind, "resources");
        let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
        match kind {
            FaultKind::Throttled { .. } | FaultKind::ExpiredToken | FaultKind::AuthFailure => {
                assert!(found.is_err(), "{kind}");
            }
            _ => {
                assert_eq!(found.unwrap().len(), 2 * PER_LISTING, "{kind}");
                let fell_back = rig.calls_of("virtualMachines.listAll") > 0;
                assert_eq!(cx.is_degraded(), fell_back, "{kind}: that it fell back is shown");
            }
        }
    })
    .await;
}
