//! Machines.

use serde_json::{Map, Value, json};

use super::{Item, Listing, link, set, time};
use crate::types;
use crate::world::{Inner, Instance, ProjectData, Status, region_of};

pub(super) fn listing<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = project.instances.values().map(|machine| {
        let scope = format!("zones/{}", machine.zone);
        Item::new(scope, &machine.name, move || row(inner, project, machine))
    });
    Listing {
        field: "instances",
        kind: "compute#instance",
        items: items.collect(),
        words: &["status", "scheduling.provisioningModel"],
    }
}

fn row(inner: &Inner, project: &ProjectData, machine: &Instance) -> Value {
    let spec = &machine.spec;
    let zone = &machine.zone;
    let in_zone = |rest: &str| link(&project.id, &format!("zones/{zone}/{rest}"));
    let mut row = json!({
        "kind": "compute#instance",
        "creationTimestamp": time(machine.created),
        "name": machine.name,
        "description": "",
        "tags": { "fingerprint": "42WmSpB8rSM=" },
        "machineType": in_zone(&format!("machineTypes/{}", spec.machine_type)),
        "status": spec.status.as_str(),
        "zone": link(&project.id, &format!("zones/{zone}")),
        "canIpForward": false,
        "networkInterfaces": [network(project, machine)],
        "disks": [disk(project, machine)],
        "metadata": metadata(project, machine),
        "selfLink": in_zone(&format!("instances/{}", machine.name)),
        "scheduling": scheduling(machine),
        "cpuPlatform": "Intel Sapphire Rapids",
        "labelFingerprint": "42WmSpB8rSM=",
        "startRestricted": false,
        "deletionProtection": false,
        "fingerprint": "Hk3Jm9s0rWc=",
        "lastStartTimestamp": machine.started().map(time),
    });
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    set(&mut row, "id", (!spec.without_id).then(|| machine.id.clone()));
    let labels: Map<String, Value> = spec
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect();
    set(&mut row, "labels", (!labels.is_empty()).then_some(labels));
    let accelerators = accelerators(project, machine);
    set(
        &mut row,
        "guestAccelerators",
        (!accelerators.is_empty()).then_some(accelerators),
    );
    let stopped = spec.stopped.map(time);
    let field = if spec.status == Status::Suspended {
        "lastSuspendedTimestamp"
    } else {
        "lastStopTimestamp"
    };
    set(&mut row, field, stopped);
    let reservation = spec.reservation.as_deref().and_then(|id| inner.reservation(id));
    if let Some(reservation) = reservation {
        let name = format!(
            "projects/{}/zones/{}/reservations/{}",
            reservation.project, reservation.zone, reservation.name
        );
        let affinity = if reservation.spec.specific {
            json!({
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": [reservation.name],
            })
        } else {
            json!({ "consumeReservationType": "ANY_RESERVATION" })
        };
        set(&mut row, "reservationAffinity", Some(affinity));
        if spec.status.holds_capacity() {
            let status = json!({ "reservationConsumptionInfo": { "consumedReservation": name } });
            set(&mut row, "resourceStatus", Some(status));
        }
    }
    row
}

/// What the API shows: the attached ones, or those of the machine type.
fn accelerators(project: &ProjectData, machine: &Instance) -> Vec<Value> {
    let of_type = types::machine_type(&machine.spec.machine_type).and_then(|known| known.accelerator);
    let list: Vec<(String, u32)> = match &machine.spec.accelerators {
        Some(list) => list.clone(),
        None => of_type
            .map(|(name, count)| (name.to_owned(), count))
            .into_iter()
            .collect(),
    };
    let zone = &machine.zone;
    list.iter()
        .map(|(name, count)| {
            json!({
                "acceleratorType": link(&project.id, &format!("zones/{zone}/acceleratorTypes/{name}")),
                "acceleratorCount": count,
            })
        })
        .collect()
}

fn scheduling(machine: &Instance) -> Value {
    let spec = &machine.spec;
    let preemptible = spec.provisioning.is_preemptible();
    let mut scheduling = json!({
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": !preemptible,
        "preemptible": preemptible,
    });
    set(&mut scheduling, "provisioningModel", spec.provisioning.model());
    if let Some(seconds) = spec.max_run_seconds {
        // 64 bits are written as text.
        let duration = json!({ "seconds": seconds.to_string() });
        set(&mut scheduling, "maxRunDuration", Some(duration));
        set(&mut scheduling, "instanceTerminationAction", Some("DELETE"));
    }
    if let Some(group) = &spec.node_group {
        let affinity = json!([{
            "key": "compute.googleapis.com/node-group-name",
            "operator": "IN",
            "values": [group],
        }]);
        set(&mut scheduling, "nodeAffinities", Some(affinity));
    }
    scheduling
}

fn network(project: &ProjectData, machine: &Instance) -> Value {
    let region = region_of(&machine.zone);
    let mut nic = json!({
        "kind": "compute#networkInterface",
        "name": "nic0",
        "network": link(&project.id, "global/networks/default"),
        "subnetwork": link(&project.id, &format!("regions/{region}/subnetworks/default")),
        "networkIP": machine.private_ip,
        "stackType": "IPV4_ONLY",
        "fingerprint": "kXZ8Nl3pYqE=",
    });
    if let Some(address) = &machine.spec.public_ip {
        let config = json!([{
            "kind": "compute#accessConfig",
            "type": "ONE_TO_ONE_NAT",
            "name": "External NAT",
            "natIP": address,
        }]);
        set(&mut nic, "accessConfigs", Some(config));
    }
    nic
}

fn disk(project: &ProjectData, machine: &Instance) -> Value {
    let source = format!("zones/{}/disks/{}", machine.zone, machine.name);
    let (image_project, image) = if machine.spec.windows {
        ("windows-cloud", "windows-server-2022-dc")
    } else {
        ("debian-cloud", "debian-12-bookworm")
    };
    json!({
        "kind": "compute#attachedDisk",
        "type": "PERSISTENT",
        "mode": "READ_WRITE",
        "source": link(&project.id, &source),
        "deviceName": "boot",
        "index": 0,
        "boot": true,
        "autoDelete": true,
        "diskSizeGb": "200",
        "licenses": [format!("{}/projects/{image_project}/global/licenses/{image}", super::BASE)],
    })
}

/// Metadata, with what nobody but the machine should read.
fn metadata(project: &ProjectData, machine: &Instance) -> Value {
    let mut items = vec![
        json!({ "key": "ssh-keys", "value": "somebody:ssh-ed25519 AAAA-secret-of-metadata" }),
        json!({ "key": "startup-script", "value": "#!/bin/sh\nexport TOKEN=secret-of-metadata\n" }),
    ];
    let own = machine.spec.metadata.iter();
    items.extend(own.map(|(key, value)| json!({ "key": key, "value": value })));
    if let Some(group) = &machine.spec.instance_group {
        let (number, zone) = (&project.number, &machine.zone);
        let value = format!("projects/{number}/zones/{zone}/instanceGroupManagers/{group}");
        items.push(json!({ "key": "created-by", "value": value }));
    }
    json!({
        "kind": "compute#metadata",
        "fingerprint": "9cNFuGkFnSg=",
        "items": items,
    })
}
