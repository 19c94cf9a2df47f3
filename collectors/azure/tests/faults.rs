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

use std::time::Duration;

use gpuwatch_collector_core::{Collected, Dataset, Reason, Scope};
use gpuwatch_fakecloud_azure::{CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, World};
use gpuwatch_fakecloud_core::FaultKind;
use support::{EAST, FIRST, PATIENT, Rig, scope};

/// Enough of everything for two pages of every listing.
fn world() -> World {
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
        world.add_reservation(ReservationSpec {
            location: EAST.into(),
            size: "Standard_NC4as_T4_v3".into(),
            quantity: 1,
            applies_to: String::new(),
            billed_to: FIRST.into(),
            state: "Succeeded".into(),
            expires: "2027-01-01T00:00:00Z".parse().unwrap(),
        });
        world.add_savings_plan(SavingsPlanSpec {
            hourly: "1.5".into(),
            billed_to: FIRST.into(),
            expires: "2027-01-01T00:00:00Z".parse().unwrap(),
        });
    }
    world.add_capacity(
        FIRST,
        CapacitySpec {
            name: "crg".into(),
            group: "rg-ml".into(),
            location: EAST.into(),
            size: "Standard_NC4as_T4_v3".into(),
            capacity: 2,
            allocated: 1,
        },
    );
    world
}

/// What a fault must be counted as; `None` when a correct client is not
/// troubled by it.
fn expected(kind: FaultKind, pages: bool) -> Option<Reason> {
    match kind {
        FaultKind::Throttled { .. } => Some(Reason::Throttled),
        FaultKind::InternalError | FaultKind::HtmlError => Some(Reason::Other),
        FaultKind::HtmlSuccess | FaultKind::TruncatedBody | FaultKind::CutOffDocument => Some(Reason::Decode),
        FaultKind::Hang => Some(Reason::Timeout),
        FaultKind::DropConnection => Some(Reason::Network),
        FaultKind::ExpiredToken | FaultKind::AuthFailure => Some(Reason::Credentials),
        FaultKind::AccessDenied => Some(Reason::Permission),
        FaultKind::OptInRequired => Some(Reason::NotEnabled),
        FaultKind::EndlessToken | FaultKind::RepeatedToken => pages.then_some(Reason::Decode),
        FaultKind::UnknownEnum
        | FaultKind::EmptyPage
        | FaultKind::ReorderedRows
        | FaultKind::DuplicateRows
        | FaultKind::MalformedRecord
        | FaultKind::PartialResult => None,
    }
}

fn limit(kind: FaultKind) -> Duration {
    match kind {
        FaultKind::Hang => Duration::from_secs(2),
        // It takes two hundred empty pages to call a listing endless.
        FaultKind::EndlessToken => Duration::from_mins(5),
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
    match expected(kind, pages) {
        Some(reason) => {
            assert_eq!(errors.len(), 1, "{operation} {kind}: {errors:?}");
            assert_eq!(errors[0].reason, reason, "{operation} {kind}: {}", errors[0]);
            assert!(cx.errors(reason) > 0 || pages, "{operation} {kind} is counted");
            let text = errors[0].to_string();
            assert!(!text.contains("fakecloud-access-token"), "{text}");
        }
        None => {
            assert!(errors.is_empty(), "{operation} {kind}: {errors:?}");
            let count: usize = results
                .iter()
                .map(|result| match result.as_ref().unwrap() {
                    Collected::Instances(found) => found.len(),
                    Collected::Commitments(found) => found.len(),
                })
                .sum();
            let whole = match (dataset, region) {
                (Dataset::Inventory, _) => 250,
                (_, Scope::GLOBAL) => 500,
                _ => 1,
            };
            let unknown_state = kind == FaultKind::UnknownEnum && region == Scope::GLOBAL;
            // A state that nobody knows is not an active one.
            assert!(
                count == whole || unknown_state && count + 4 >= whole,
                "{operation} {kind}: {count} of {whole}"
            );
        }
    }
}

async fn matrix(operation: &'static str, region: &'static str, dataset: Dataset, pages: bool) {
    let cases: Vec<_> = FaultKind::ALL
        .iter()
        .map(|kind| (kind, tokio::spawn(spoil(*kind, operation, region, dataset, pages))))
        .collect();
    for (kind, case) in cases {
        case.await.unwrap_or_else(|error| panic!("{operation} {kind}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_by_the_compute_api() {
    matrix("virtualMachines.listAll", EAST, Dataset::Inventory, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capacity_reservations() {
    matrix("capacityReservationGroups.list", EAST, Dataset::Commitments, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_of_the_tenant() {
    matrix("reservations.list", Scope::GLOBAL, Dataset::Commitments, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn savings_plans_of_the_tenant() {
    matrix("savingsPlans.list", Scope::GLOBAL, Dataset::Commitments, true).await;
}

/// Whatever happens to Resource Graph, the machines are all there: the
/// Compute API is asked, except where that could not help.
#[tokio::test(flavor = "multi_thread")]
async fn machines_by_resource_graph() {
    for kind in FaultKind::ALL.iter().copied().filter(|kind| *kind != FaultKind::Hang) {
        let rig = Rig::new(world(), |_| {}).await;
        rig.fault(kind, "resources");
        let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
        match kind {
            FaultKind::Throttled { .. } | FaultKind::ExpiredToken | FaultKind::AuthFailure => {
                assert!(found.is_err(), "{kind}");
            }
            _ => {
                assert_eq!(found.unwrap().len(), 250, "{kind}");
                let fell_back = rig.calls_of("virtualMachines.listAll") > 0;
                assert_eq!(cx.is_degraded(), fell_back, "{kind}: that it fell back is shown");
            }
        }
    }
}
