//! Reservations and commitments.

use serde_json::{Map, Value, json};

use super::{Item, Listing, link, set, time};
use crate::types;
use crate::world::{Commitment, FutureReservation, Inner, ProjectData, Reservation};

/// Reservations of the owner; those that others share with a project are not
/// in its list.
pub(super) fn reservations<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = project.reservations.values().map(|reservation| {
        let scope = format!("zones/{}", reservation.zone);
        let render = move || reservation_row(inner, project, reservation);
        Item::new(scope, &reservation.name, render)
    });
    Listing {
        field: "reservations",
        kind: "compute#reservation",
        items: items.collect(),
        words: &["shareSettings.shareType", "reservationSharingPolicy.serviceShareType"],
    }
}

fn reservation_row(inner: &Inner, project: &ProjectData, reservation: &Reservation) -> Value {
    let (spec, zone) = (&reservation.spec, &reservation.zone);
    let in_zone = |rest: &str| link(&project.id, &format!("zones/{zone}/{rest}"));
    let mut properties = json!({ "machineType": spec.machine_type });
    let attached: Vec<Value> = spec
        .accelerators
        .iter()
        .map(|(name, count)| json!({ "acceleratorType": name, "acceleratorCount": count }))
        .collect();
    set(
        &mut properties,
        "guestAccelerators",
        (!attached.is_empty()).then_some(attached),
    );
    let disks = types::machine_type(&spec.machine_type).map_or(0, |known| known.local_ssds);
    let disks: Vec<Value> = (0..disks)
        .map(|_| json!({ "diskSizeGb": "375", "interface": "NVME" }))
        .collect();
    set(&mut properties, "localSsds", (!disks.is_empty()).then_some(disks));
    let share = if spec.shared_with.is_empty() {
        json!({ "shareType": "LOCAL" })
    } else {
        let map: Map<String, Value> = spec
            .shared_with
            .iter()
            .map(|id| (id.clone(), json!({ "projectId": id })))
            .collect();
        json!({ "shareType": "SPECIFIC_PROJECTS", "projectMap": map })
    };
    let mut row = json!({
        "kind": "compute#reservation",
        "id": reservation.id,
        "creationTimestamp": time(reservation.created),
        "name": reservation.name,
        "zone": link(&project.id, &format!("zones/{zone}")),
        "selfLink": in_zone(&format!("reservations/{}", reservation.name)),
        "status": spec.status,
        "specificReservationRequired": spec.specific,
        "specificReservation": {
            // 64 bits are written as text.
            "count": spec.count.to_string(),
            "inUseCount": inner.in_use(reservation).to_string(),
            "assuredCount": spec.assured.unwrap_or(spec.count).to_string(),
            "instanceProperties": properties,
        },
        "shareSettings": share,
        "reservationSharingPolicy": { "serviceShareType": "DISALLOW_ALL" },
        "resourceStatus": {},
    });
    let commitment = spec.commitment.as_deref().and_then(|id| inner.commitment(id));
    let commitment = commitment.map(|commitment| {
        let rest = format!("regions/{}/commitments/{}", commitment.region, commitment.name);
        link(&commitment.project, &rest)
    });
    set(&mut row, "linkedCommitments", commitment.clone().map(|name| vec![name]));
    set(&mut row, "commitment", commitment);
    set(&mut row, "deleteAtTime", spec.delete_at.map(time));
    row
}

pub(super) fn future_reservations<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = project.future_reservations.values().map(|row| {
        let scope = format!("zones/{}", row.zone);
        let render = move || future_reservation_row(inner, project, row);
        Item::new(scope, &row.name, render)
    });
    Listing {
        field: "futureReservations",
        kind: "compute#futureReservation",
        items: items.collect(),
        words: &["planningStatus", "status.procurementStatus"],
    }
}

fn future_reservation_row(inner: &Inner, project: &ProjectData, row: &FutureReservation) -> Value {
    let (spec, zone) = (&row.spec, &row.zone);
    let in_zone = |rest: &str| link(&project.id, &format!("zones/{zone}/{rest}"));
    let made: Vec<String> = spec
        .reservations
        .iter()
        .filter_map(|id| inner.reservation(id))
        .map(|reservation| in_zone(&format!("reservations/{}", reservation.name)))
        .collect();
    let fulfilled = if made.is_empty() { 0 } else { spec.count };
    let mut status = json!({
        "procurementStatus": spec.status,
        // 64 bits are written as text.
        "fulfilledCount": fulfilled.to_string(),
        "lockTime": time(row.starts),
    });
    set(
        &mut status,
        "autoCreatedReservations",
        (!made.is_empty()).then_some(made),
    );
    json!({
        "kind": "compute#futureReservation",
        "id": row.id,
        "creationTimestamp": time(row.starts),
        "name": row.name,
        "zone": link(&project.id, &format!("zones/{zone}")),
        "selfLink": in_zone(&format!("futureReservations/{}", row.name)),
        "planningStatus": "SUBMITTED",
        "reservationMode": spec.mode,
        "deploymentType": "DENSE",
        "specificReservationRequired": true,
        "timeWindow": { "startTime": time(row.starts), "endTime": time(row.ends) },
        "specificSkuProperties": {
            "totalCount": spec.count.to_string(),
            "instanceProperties": { "machineType": spec.machine_type },
        },
        "status": status,
    })
}

pub(super) fn commitments<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = project.commitments.values().map(|commitment| {
        let scope = format!("regions/{}", commitment.region);
        let render = move || commitment_row(inner, project, commitment);
        Item::new(scope, &commitment.name, render)
    });
    Listing {
        field: "commitments",
        kind: "compute#commitment",
        items: items.collect(),
        words: &["plan", "type"],
    }
}

fn commitment_row(inner: &Inner, project: &ProjectData, commitment: &Commitment) -> Value {
    let spec = &commitment.spec;
    let region = &commitment.region;
    let resources: Vec<Value> = spec
        .resources
        .iter()
        .map(|resource| {
            let mut row = json!({ "type": resource.kind, "amount": resource.amount.to_string() });
            set(&mut row, "acceleratorType", resource.accelerator_type.clone());
            row
        })
        .collect();
    let attached: Vec<Value> = inner
        .attached_to(commitment)
        .map(|reservation| reservation_row(inner, project, reservation))
        .collect();
    let mut row = json!({
        "kind": "compute#commitment",
        "id": commitment.id,
        "creationTimestamp": time(commitment.starts),
        "name": commitment.name,
        "description": "",
        "region": link(&project.id, &format!("regions/{region}")),
        "selfLink": link(&project.id, &format!("regions/{region}/commitments/{}", commitment.name)),
        "status": spec.status,
        "statusMessage": "The commitment is in its term.",
        "plan": spec.plan,
        "category": spec.category,
        "type": spec.commitment_type,
        "startTimestamp": time(commitment.starts),
        "endTimestamp": time(commitment.ends),
        "autoRenew": spec.auto_renew,
    });
    set(&mut row, "resources", (!resources.is_empty()).then_some(resources));
    set(&mut row, "reservations", (!attached.is_empty()).then_some(attached));
    row
}
