//! Machine types and accelerator types: what each zone offers.

use serde_json::{Value, json};

use super::{Item, Listing, id_of, link, set};
use crate::types::{ACCELERATOR_TYPES, MACHINE_TYPES, MachineType};
use crate::world::{Inner, ProjectData};

pub(super) fn machine_types<'a>(inner: &Inner, project: &'a ProjectData) -> Listing<'a> {
    let mut known: Vec<&MachineType> = MACHINE_TYPES.iter().collect();
    known.sort_by_key(|machine| machine.name);
    let mut items = Vec::new();
    for zone in sorted_zones(inner) {
        items.extend(known.iter().map(|machine| {
            let (zone, machine) = (zone.clone(), *machine);
            let scope = format!("zones/{zone}");
            Item::new(scope, machine.name, move || machine_type(project, &zone, machine))
        }));
    }
    Listing {
        field: "machineTypes",
        kind: "compute#machineType",
        items,
        words: &["architecture"],
    }
}

fn machine_type(project: &ProjectData, zone: &str, machine: &MachineType) -> Value {
    let name = machine.name;
    let mut row = json!({
        "kind": "compute#machineType",
        "id": id_of(name),
        "creationTimestamp": "1969-12-31T16:00:00.000-08:00",
        "name": name,
        "description": format!("{} vCPUs", machine.cpus),
        "guestCpus": machine.cpus,
        "memoryMb": machine.memory_mb,
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "zone": zone,
        "selfLink": link(&project.id, &format!("zones/{zone}/machineTypes/{name}")),
        "isSharedCpu": name.starts_with("e2-micro"),
        "architecture": if name.starts_with("c4a-") { "ARM64" } else { "X86_64" },
    });
    let accelerators = machine.accelerator.map(|(accelerator, count)| {
        // A name here, not a link.
        json!([{ "guestAcceleratorType": accelerator, "guestAcceleratorCount": count }])
    });
    set(&mut row, "accelerators", accelerators);
    let disks =
        (machine.local_ssds > 0).then(|| json!({ "defaultInterface": "NVME", "partitionCount": machine.local_ssds }));
    set(&mut row, "bundledLocalSsds", disks);
    row
}

pub(super) fn accelerator_types<'a>(inner: &Inner, project: &'a ProjectData) -> Listing<'a> {
    let mut known = ACCELERATOR_TYPES.to_vec();
    known.sort_by_key(|(name, ..)| *name);
    let mut items = Vec::new();
    for zone in sorted_zones(inner) {
        items.extend(known.iter().map(|facts| {
            let (zone, facts) = (zone.clone(), *facts);
            let scope = format!("zones/{zone}");
            Item::new(scope, facts.0, move || accelerator_type(project, &zone, facts))
        }));
    }
    Listing {
        field: "acceleratorTypes",
        kind: "compute#acceleratorType",
        items,
        words: &[],
    }
}

fn accelerator_type(project: &ProjectData, zone: &str, (name, description, most): (&str, &str, u32)) -> Value {
    json!({
        "kind": "compute#acceleratorType",
        "id": id_of(name),
        "creationTimestamp": "1969-12-31T16:00:00.000-08:00",
        "name": name,
        "description": description,
        "maximumCardsPerInstance": most,
        "zone": link(&project.id, &format!("zones/{zone}")),
        "selfLink": link(&project.id, &format!("zones/{zone}/acceleratorTypes/{name}")),
    })
}

fn sorted_zones(inner: &Inner) -> Vec<String> {
    let mut zones: Vec<String> = inner.zones().collect();
    zones.sort();
    zones
}
