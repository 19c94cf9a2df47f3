//! Reservations and committed use discounts, and who they pay for.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::collections::BTreeMap;

use gpuwatch_collector_core::{Dataset, Reason};
use gpuwatch_fakecloud_gcp::{
    CommitmentResource, CommitmentSpec, FutureReservationSpec, InstanceSpec, Provisioning, ReservationSpec, Status,
};
use gpuwatch_inventory::{BillingMode, Certainty, Commitment, CommitmentKind, GpuCount, Instance};
use gpuwatch_test_kit::reason;
use support::{CENTRAL, PATIENT, PROJECT, Rig, SECOND, WEST, commitments, scope, small_world, zone};

async fn part(rig: &Rig, region: &str, part: &'static str) -> Vec<Commitment> {
    let (result, _) = rig
        .part(&scope(PROJECT, region), Dataset::Commitments, part, PATIENT)
        .await;
    commitments(result.unwrap())
}

#[tokio::test]
async fn reservations_of_accelerators_are_listed_with_what_is_unused() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let held = world
        .add_reservation(
            PROJECT,
            &at,
            ReservationSpec {
                used_elsewhere: 1,
                ..ReservationSpec::of("a3-highgpu-8g", 4)
            },
        )
        .unwrap();
    let attached = ReservationSpec {
        accelerators: vec![("nvidia-tesla-t4".into(), 2)],
        ..ReservationSpec::of("n1-standard-8", 3)
    };
    let attached = world.add_reservation(PROJECT, &at, attached).unwrap();
    world.add_reservation(PROJECT, &at, ReservationSpec::of("n2-standard-8", 9));
    let deleting = ReservationSpec {
        status: "DELETING".into(),
        ..ReservationSpec::of("a3-highgpu-8g", 1)
    };
    world.add_reservation(PROJECT, &at, deleting);
    world.add_reservation(PROJECT, &zone(WEST, "a"), ReservationSpec::of("g2-standard-4", 1));
    world.add_instance(
        PROJECT,
        &at,
        InstanceSpec {
            reservation: Some(held.clone()),
            ..InstanceSpec::of("a3-highgpu-8g")
        },
    );
    let rig = Rig::new(world, |_| {}).await;
    let found = part(&rig, CENTRAL, "reservations").await;
    let found: BTreeMap<&str, &Commitment> = found.iter().map(|row| (&*row.id, row)).collect();
    assert_eq!(found.len(), 2);
    let row = found[held.as_str()];
    assert_eq!(
        (row.kind, &*row.instance_type),
        (CommitmentKind::Reservation, "a3-highgpu-8g")
    );
    assert_eq!((row.units, row.used_units), (Some(4), Some(2)));
    assert_eq!(row.gpus().map(GpuCount::get), Some(32.0));
    let row = found[attached.as_str()];
    assert_eq!((row.gpus().map(GpuCount::get), row.used_units), (Some(6.0), Some(0)));
    assert_eq!(part(&rig, WEST, "reservations").await.len(), 1);
}

#[tokio::test]
async fn active_commitments_of_accelerators_are_listed() {
    let world = small_world();
    let id = world
        .add_commitment(PROJECT, CENTRAL, CommitmentSpec::default())
        .unwrap();
    for spec in [
        CommitmentSpec {
            status: "EXPIRED".into(),
            ..CommitmentSpec::default()
        },
        CommitmentSpec {
            resources: vec![CommitmentResource::of("VCPU", 64)],
            ..CommitmentSpec::default()
        },
    ] {
        world.add_commitment(PROJECT, CENTRAL, spec);
    }
    let rig = Rig::new(world, |_| {}).await;
    let found = part(&rig, CENTRAL, "commitments").await;
    let [row] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&*row.id, row.kind), (id.as_str(), CommitmentKind::CommittedUse));
    assert_eq!((&*row.instance_type, row.units), ("nvidia-h100-80gb", Some(8)));
    assert!(row.expires.is_some());
    assert!(part(&rig, WEST, "commitments").await.is_empty());
}

// P28
#[tokio::test]
async fn machines_bound_to_a_reservation_of_fixed_dates_are_in_calendar_mode_until_it_ends() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let mut made = Vec::new();
    for (name, mode) in [("calendar", "CALENDAR"), ("default", "DEFAULT")] {
        let reservation = ReservationSpec {
            specific: true,
            ..ReservationSpec::of("a3-highgpu-8g", 2)
        };
        let reservation = world.add_reservation(PROJECT, &at, reservation).unwrap();
        let future = FutureReservationSpec {
            mode: mode.into(),
            reservations: vec![reservation.clone()],
            ..FutureReservationSpec::default()
        };
        world.add_future_reservation(PROJECT, &at, future);
        let bound = InstanceSpec {
            reservation: Some(reservation.clone()),
            ..InstanceSpec::of("a3-highgpu-8g").named(name)
        };
        world.add_instance(PROJECT, &at, bound.bought(Provisioning::ReservationBound));
        made.push(reservation);
    }
    // Not yet its time: no capacity of its own.
    let coming = FutureReservationSpec {
        status: "APPROVED".into(),
        ..FutureReservationSpec::default()
    };
    world.add_future_reservation(PROJECT, &at, coming);
    let stopped = InstanceSpec {
        reservation: Some(made[0].clone()),
        ..InstanceSpec::of("a3-highgpu-8g").named("stopped")
    };
    let stopped = stopped.bought(Provisioning::ReservationBound);
    world.add_instance(PROJECT, &at, stopped.in_state(Status::Terminated));
    let rig = Rig::new(world, |_| {}).await;
    let fleet = rig.fleet().await;
    let exact = |detail| (BillingMode::Reserved, detail, Certainty::Exact);
    assert_eq!(
        modes(&fleet.instances),
        BTreeMap::from([
            ("calendar", exact("calendar")),
            ("default", exact("reservation_bound")),
            ("stopped", exact("reservation_bound")),
        ])
    );
    let end = |name: &str| fleet.instances.iter().find(|i| &*i.name == name).unwrap().expires;
    let rows: BTreeMap<&str, &Commitment> = fleet.commitments.iter().map(|row| (&*row.id, row)).collect();
    assert_eq!(rows.len(), 2, "a future reservation is no row of its own");
    assert!(end("calendar").is_some() && end("calendar") == rows[made[0].as_str()].expires);
    assert_eq!((end("default"), rows[made[1].as_str()].expires), (None, None));
    assert_eq!(rows[made[0].as_str()].kind, CommitmentKind::Reservation);
}

#[tokio::test]
async fn without_future_reservations_the_reservations_are_listed_all_the_same() {
    let world = small_world();
    world.add_reservation(PROJECT, &zone(CENTRAL, "a"), ReservationSpec::of("a3-highgpu-8g", 2));
    world.deny(PROJECT, "compute.futureReservations.list");
    let rig = Rig::new(world, |_| {}).await;
    let (result, cx) = rig
        .part(&scope(PROJECT, CENTRAL), Dataset::Commitments, "reservations", PATIENT)
        .await;
    assert_eq!(commitments(result.unwrap()).len(), 1);
    assert!(cx.is_degraded() && cx.errors(Reason::Permission) > 0);
    // Nothing to be told there, so nothing is asked.
    let (result, cx) = rig
        .part(&scope(PROJECT, WEST), Dataset::Commitments, "reservations", PATIENT)
        .await;
    assert!(result.is_ok() && !cx.is_degraded());
    assert_eq!(rig.calls_of("futureReservations.aggregatedList"), 1);
}

fn modes(instances: &[std::sync::Arc<Instance>]) -> BTreeMap<&str, (BillingMode, &str, Certainty)> {
    instances
        .iter()
        .map(|i| (&*i.name, (i.billing.mode, &*i.billing.detail, i.billing.certainty)))
        .collect()
}

#[tokio::test]
async fn machines_in_a_reservation_under_a_commitment_are_reserved_exactly() {
    let world = small_world();
    world.add_project(SECOND, gpuwatch_fakecloud_gcp::ProjectSpec::default());
    let at = zone(CENTRAL, "a");
    let commitment = world
        .add_commitment(PROJECT, CENTRAL, CommitmentSpec::default())
        .unwrap();
    let committed = ReservationSpec {
        commitment: Some(commitment.clone()),
        shared_with: vec![SECOND.into()],
        ..ReservationSpec::of("a3-highgpu-8g", 1)
    };
    let committed = world.add_reservation(PROJECT, &at, committed).unwrap();
    let plain = world
        .add_reservation(PROJECT, &at, ReservationSpec::of("a3-highgpu-8g", 1))
        .unwrap();
    for (name, reservation) in [("committed", Some(committed)), ("plain", Some(plain)), ("free", None)] {
        let spec = InstanceSpec {
            reservation,
            ..InstanceSpec::of("a3-highgpu-8g").named(name)
        };
        // A shared reservation serves another project's machine too.
        let project = if name == "committed" { SECOND } else { PROJECT };
        world.add_instance(project, &at, spec);
    }
    let rig = Rig::new(world, |_| {}).await;
    let fleet = rig.fleet().await;
    assert_eq!(
        modes(&fleet.instances),
        BTreeMap::from([
            ("committed", (BillingMode::Reserved, "committed_use", Certainty::Exact)),
            ("plain", (BillingMode::OnDemand, "", Certainty::Estimated)),
            ("free", (BillingMode::OnDemand, "", Certainty::Estimated)),
        ])
    );
    let expires = fleet
        .instances
        .iter()
        .find(|i| &*i.name == "committed")
        .unwrap()
        .expires;
    assert!(expires.is_some(), "the end of the commitment");
    let row = fleet.commitments.iter().find(|row| *row.id == *commitment).unwrap();
    assert_eq!((row.units, row.used_units), (Some(8), Some(8)));
}

#[tokio::test]
async fn what_is_left_of_a_commitment_covers_on_demand_machines_as_an_estimate() {
    let world = small_world();
    let at = zone(CENTRAL, "a");
    let spec = CommitmentSpec {
        resources: vec![CommitmentResource::accelerators("nvidia-h100-80gb", 20)],
        ..CommitmentSpec::default()
    };
    let id = world.add_commitment(PROJECT, CENTRAL, spec).unwrap();
    for (n, name) in ["oldest", "middle", "newest"].into_iter().enumerate() {
        let started = jiff::Timestamp::from_second(1_790_000_000 + i64::try_from(n).unwrap() * 86_400).unwrap();
        let spec = InstanceSpec {
            created: Some(started),
            ..InstanceSpec::of("a3-highgpu-8g").named(name)
        };
        world.add_instance(PROJECT, &at, spec);
    }
    world.add_instance(
        PROJECT,
        &zone(WEST, "a"),
        InstanceSpec::of("a3-highgpu-8g").named("elsewhere"),
    );
    world.add_instance(PROJECT, &at, InstanceSpec::of("g2-standard-4").named("other-model"));
    let rig = Rig::new(world, |_| {}).await;
    let fleet = rig.fleet().await;
    let modes = modes(&fleet.instances);
    for name in ["oldest", "middle"] {
        assert_eq!(
            modes[name],
            (BillingMode::Reserved, "committed_use", Certainty::Estimated),
            "{name}"
        );
    }
    for name in ["newest", "elsewhere", "other-model"] {
        assert_eq!(modes[name].0, BillingMode::OnDemand, "{name}");
    }
    let row = fleet.commitments.iter().find(|row| *row.id == *id).unwrap();
    assert_eq!(row.used_units, Some(20), "four accelerators of the third machine too");
}

#[tokio::test]
async fn the_parts_fail_alone() {
    let world = small_world();
    world.add_commitment(PROJECT, CENTRAL, CommitmentSpec::default());
    world.deny(PROJECT, "compute.reservations.list");
    let rig = Rig::new(world, |_| {}).await;
    let (result, _) = rig
        .part(&scope(PROJECT, CENTRAL), Dataset::Commitments, "reservations", PATIENT)
        .await;
    assert_eq!(reason(&result), Some(Reason::Permission));
    let message = result.unwrap_err().to_string();
    assert!(message.contains("compute.reservations.list"), "{message}");
    assert_eq!(part(&rig, CENTRAL, "commitments").await.len(), 1);
}
