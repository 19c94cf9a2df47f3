//! What a correct observer must report, worked out from the world itself.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
use jiff::Timestamp;

use crate::compute::{FUTURE_SIZE, member_id};
use crate::world::{Inner, ReservationSpec, World, machine_id, set_id};

/// Accelerators of the sizes that the worlds use, by lower-case size.
const GPUS: [(&str, f64); 9] = [
    ("standard_nd96isr_h100_v5", 8.0),
    ("standard_nc24ads_a100_v4", 1.0),
    ("standard_nc48ads_a100_v4", 2.0),
    ("standard_nc4as_t4_v3", 1.0),
    ("standard_nc64as_t4_v3", 4.0),
    ("standard_nv6ads_a10_v5", 1.0 / 6.0),
    ("standard_nv18ads_a10_v5", 0.5),
    ("standard_nd96isr_mi300x_v5", 8.0),
    ("standard_nd96isr_h200_v5", 8.0),
];

/// Accelerators of a size; `None` for a machine without.
fn gpus(size: &str) -> Option<f64> {
    let size = size.to_lowercase();
    if size == FUTURE_SIZE.0.to_lowercase() {
        return Some(f64::from(FUTURE_SIZE.1));
    }
    GPUS.iter().find(|(known, _)| *known == size).map(|(_, gpus)| *gpus)
}

fn state(power: &str) -> &'static str {
    match power {
        "running" => "running",
        "starting" | "creating" => "starting",
        "stopping" | "deallocating" => "stopping",
        "stopped" => "stopped_billed",
        "deallocated" => "stopped",
        _ => "unknown",
    }
}

/// Mode and detail. The words of priorities nobody knows are known here.
fn billing(priority: &str, on_host: bool) -> (&'static str, &'static str) {
    match priority {
        "Spot" | "Low" => ("spot", ""),
        "SpotPlus" => ("spot", "spot_plus"),
        "" | "Regular" if on_host => ("on_demand", "dedicated_host"),
        "" | "Regular" => ("on_demand", ""),
        _ => ("unknown", "Barter"),
    }
}

impl World {
    /// Every accelerator machine, by account, region and id.
    #[must_use]
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = machines(&inner);
        for (id, _) in allocate(&inner, &truth).0 {
            if let Some(row) = truth.iter_mut().find(|row| row.id == id) {
                (row.billing_mode, row.billing_detail) = ("reserved", "reservation");
            }
        }
        truth.sort_by(|a, b| (&a.account, &a.region, &a.id).cmp(&(&b.account, &b.region, &b.id)));
        truth
    }

    /// Every active commitment for accelerators. Plans are included whatever
    /// they cover.
    #[must_use]
    pub fn commitments(&self) -> Vec<CommitmentTruth> {
        let inner = self.read();
        let used = allocate(&inner, &machines(&inner)).1;
        let active = inner.reservations.iter().filter(|(_, spec)| is_active(spec));
        let mut truth: Vec<CommitmentTruth> = active
            .zip(used)
            .map(|((id, spec), used)| CommitmentTruth {
                account: spec.billed_to.to_lowercase(),
                region: spec.location.clone(),
                id: id.to_lowercase(),
                kind: "reservation",
                instance_type: spec.size.clone(),
                units: Some(spec.quantity),
                used: Some(used),
            })
            .collect();
        truth.extend(inner.plans.iter().map(|(id, spec)| CommitmentTruth {
            account: spec.billed_to.to_lowercase(),
            region: "global".to_owned(),
            id: id.to_lowercase(),
            kind: "savings_plan",
            instance_type: String::new(),
            units: None,
            used: None,
        }));
        for subscription in inner.subscriptions.values().filter(|s| s.state == "Enabled") {
            let held = subscription
                .capacity
                .iter()
                .filter(|capacity| gpus(&capacity.size).is_some());
            truth.extend(held.map(|capacity| CommitmentTruth {
                account: subscription.id.to_lowercase(),
                region: capacity.location.clone(),
                id: member_id(subscription, capacity).to_lowercase(),
                kind: "capacity_reservation",
                instance_type: capacity.size.clone(),
                units: Some(capacity.capacity),
                used: Some(capacity.allocated),
            }));
        }
        truth
    }
}

fn machines(inner: &Inner) -> Vec<InstanceTruth> {
    let mut truth = Vec::new();
    for subscription in inner.subscriptions.values().filter(|s| s.state == "Enabled") {
        let row = |id: String, name: &str, location: &str, zone: &str, size: &str, power: &str, created: Timestamp| {
            gpus(size).map(|gpus| InstanceTruth {
                account: subscription.id.to_lowercase(),
                account_name: subscription.name.clone(),
                region: location.to_owned(),
                zone: zone.to_owned(),
                id: id.to_lowercase(),
                name: name.to_owned(),
                instance_type: size.to_owned(),
                state: state(power),
                billing_mode: "",
                billing_detail: "",
                gpus: Some(gpus),
                launched: created,
            })
        };
        for machine in &subscription.machines {
            let id = machine_id(&subscription.id, machine);
            let (mode, detail) = billing(&machine.priority, machine.on_host);
            let m = machine;
            truth.extend(
                row(id, &m.name, &m.location, &m.zone, &m.size, &m.power, m.created).map(|row| InstanceTruth {
                    billing_mode: mode,
                    billing_detail: detail,
                    ..row
                }),
            );
        }
        for set in subscription.sets.iter().filter(|set| !set.flexible) {
            let (mode, detail) = billing(&set.priority, false);
            let base = set_id(&subscription.id, &set.group, &set.name);
            for (number, (power, created)) in set.members.iter().enumerate() {
                let id = format!("{base}/virtualMachines/{number}");
                let name = format!("{}_{number}", set.name);
                let found = row(id, &name, &set.location, "", &set.size, power, *created);
                truth.extend(found.map(|row| InstanceTruth {
                    billing_mode: mode,
                    billing_detail: detail,
                    ..row
                }));
            }
        }
    }
    truth
}

fn is_active(spec: &ReservationSpec) -> bool {
    spec.state == "Succeeded" && gpus(&spec.size).is_some()
}

/// Which machines reservations pay for, and how many units of each (active)
/// reservation are used: the narrowest scope first, then by id; machines from
/// the oldest on.
fn allocate(inner: &Inner, truth: &[InstanceTruth]) -> (Vec<(String, usize)>, Vec<u32>) {
    let active: Vec<&(String, ReservationSpec)> =
        inner.reservations.iter().filter(|(_, spec)| is_active(spec)).collect();
    let mut order: Vec<usize> = (0..active.len()).collect();
    order.sort_by_key(|at| {
        active
            .get(*at)
            .map(|(id, spec)| (Reverse(spec.applies_to.len()), id.to_lowercase()))
    });
    let mut machines: Vec<&InstanceTruth> = truth
        .iter()
        .filter(|row| (row.state, row.billing_mode, row.billing_detail) == ("running", "on_demand", ""))
        .collect();
    machines.sort_by(|a, b| (a.launched, &a.id).cmp(&(b.launched, &b.id)));
    let mut taken = BTreeSet::new();
    let (mut covered, mut used) = (Vec::new(), vec![0; active.len()]);
    for at in order {
        let (Some((_, spec)), Some(count)) = (active.get(at), used.get_mut(at)) else {
            continue;
        };
        let scope = spec.applies_to.to_lowercase();
        for row in &machines {
            let fits = row.region == spec.location
                && row.instance_type.eq_ignore_ascii_case(&spec.size)
                && (scope.is_empty() || row.id.starts_with(&format!("{scope}/")));
            if *count < spec.quantity && fits && taken.insert(row.id.clone()) {
                *count += 1;
                covered.push((row.id.clone(), at));
            }
        }
    }
    (covered, used)
}
