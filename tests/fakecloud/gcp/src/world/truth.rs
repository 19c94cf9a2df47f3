//! What a correct observer must report, worked out from the world itself.
//!
//! Written without any code of gpuwatch, so that the two can disagree.

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};

use super::capacity::Reservation;
use super::hierarchy::{ProjectData, ProjectState};
use super::instance::{Instance, Provisioning, Status};
use super::tpu::TpuNode;
use super::{Inner, World, region_of};
use crate::types;

impl World {
    /// Every accelerator machine and TPU node of the projects in use, by
    /// project, region and id.
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in active(&inner) {
            let machines = data.instances.values().filter(|machine| is_listed(machine));
            truth.extend(machines.map(|machine| machine_truth(&inner, data, machine)));
            let nodes = data.nodes.values();
            let own = nodes.filter(|node| node.spec.machines.is_empty() && !node.spec.without_name);
            truth.extend(own.map(|node| node_truth(data, node)));
        }
        truth.sort_by(|a, b| (&a.account, &a.region, &a.id).cmp(&(&b.account, &b.region, &b.id)));
        truth
    }

    /// Every active commitment and reservation of accelerators, each once, in
    /// the project that owns it.
    pub fn commitments(&self) -> Vec<CommitmentTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in active(&inner) {
            truth.extend(reservations(&inner, data));
            truth.extend(committed_use(&inner, data));
        }
        truth
    }
}

fn active(inner: &Inner) -> impl Iterator<Item = &ProjectData> {
    inner
        .projects
        .values()
        .filter(|data| data.spec.state == ProjectState::Active)
}

fn is_listed(machine: &Instance) -> bool {
    let attached = machine.spec.accelerators.as_ref().is_some_and(|list| !list.is_empty());
    !machine.spec.without_id && (attached || types::is_accelerated(&machine.spec.machine_type))
}

fn machine_truth(inner: &Inner, data: &ProjectData, machine: &Instance) -> InstanceTruth {
    let (billing_mode, billing_detail) = billing(inner, machine);
    InstanceTruth {
        account: data.id.clone(),
        account_name: data.display_name().to_owned(),
        region: region_of(&machine.zone).to_owned(),
        zone: machine.zone.clone(),
        id: machine.id.clone(),
        name: machine.name.clone(),
        instance_type: machine.spec.machine_type.clone(),
        state: state(&machine.spec.status),
        billing_mode,
        billing_detail,
        gpus: accelerators(machine),
        launched: machine.started().unwrap_or(machine.created),
    }
}

fn billing(inner: &Inner, machine: &Instance) -> (&'static str, &'static str) {
    let reservation = machine.spec.reservation.as_deref().and_then(|id| inner.reservation(id));
    match &machine.spec.provisioning {
        Provisioning::Spot | Provisioning::LegacyPreemptible => ("spot", ""),
        Provisioning::FlexStart => ("on_demand", "flex_start"),
        // In a reservation of fixed dates, as long as it holds a place there.
        Provisioning::ReservationBound => {
            let holds = reservation.filter(|_| machine.spec.status.holds_capacity());
            let is_calendar = holds.is_some_and(|reservation| inner.is_calendar(reservation));
            ("reserved", if is_calendar { "calendar" } else { "reservation_bound" })
        }
        Provisioning::Other(word) => ("unknown", word),
        Provisioning::Standard | Provisioning::Unset => match reservation {
            Some(reservation) if reservation.spec.commitment.is_some() => ("reserved", "committed_use"),
            // A place that is kept free, at the on-demand price.
            Some(_) | None => ("on_demand", ""),
        },
    }
}

fn state(status: &Status) -> &'static str {
    match status {
        Status::Pending | Status::Provisioning | Status::Staging => "starting",
        Status::Running => "running",
        Status::PendingStop | Status::Stopping | Status::Deprovisioning | Status::Suspending => "stopping",
        Status::Stopped | Status::Terminated | Status::Suspended => "stopped",
        Status::Repairing => "stopped_billed",
        Status::Other(_) => "unknown",
    }
}

/// Attached accelerators where the API shows any, else those of the machine
/// type. Both describe the same cards.
fn accelerators(machine: &Instance) -> Option<f64> {
    let known = types::machine_type(&machine.spec.machine_type);
    let bundled = known.and_then(|known| known.accelerator.map(|(_, count)| f64::from(count) * known.share));
    let attached = machine.spec.accelerators.iter().flatten();
    let attached: u32 = attached.map(|(_, count)| count).sum();
    if bundled.is_some() || attached == 0 {
        return bundled;
    }
    Some(f64::from(attached))
}

fn node_truth(data: &ProjectData, node: &TpuNode) -> InstanceTruth {
    let spec = &node.spec;
    let topology = spec.config.as_ref().map(|(_, topology)| topology.as_str());
    let (billing_mode, billing_detail) = if spec.spot || spec.preemptible {
        ("spot", "")
    } else if spec.reserved {
        ("reserved", "reservation")
    } else {
        ("on_demand", "")
    };
    InstanceTruth {
        account: data.id.clone(),
        account_name: data.display_name().to_owned(),
        region: region_of(&node.zone).to_owned(),
        zone: node.zone.clone(),
        id: node.id.clone(),
        name: node.name.clone(),
        instance_type: spec.accelerator_type.clone(),
        state: node_state(&spec.state),
        billing_mode,
        billing_detail,
        gpus: types::tpu_chips(&spec.accelerator_type, topology),
        launched: node.created,
    }
}

fn node_state(word: &str) -> &'static str {
    match word {
        "CREATING" | "STARTING" | "RESTARTING" | "REIMAGING" => "starting",
        "READY" => "running",
        "REPAIRING" => "stopped_billed",
        "STOPPING" | "DELETING" => "stopping",
        "STOPPED" | "PREEMPTED" | "TERMINATED" => "stopped",
        _ => "unknown",
    }
}

fn reservations(inner: &Inner, data: &ProjectData) -> Vec<CommitmentTruth> {
    let ready = data
        .reservations
        .values()
        .filter(|reservation| reservation.spec.status == "READY");
    let accelerated =
        ready.filter(|row| !row.spec.accelerators.is_empty() || types::is_accelerated(&row.spec.machine_type));
    accelerated
        .map(|row| CommitmentTruth {
            account: data.id.clone(),
            region: region_of(&row.zone).to_owned(),
            id: row.id.clone(),
            kind: "reservation",
            instance_type: row.spec.machine_type.clone(),
            units: Some(row.spec.count),
            used: Some(inner.in_use(row)),
        })
        .collect()
}

/// Units are accelerators, of each type for itself; those in use are the ones
/// of machines in the reservations attached to the commitment.
fn committed_use(inner: &Inner, data: &ProjectData) -> Vec<CommitmentTruth> {
    let active = data.commitments.values().filter(|row| row.spec.status == "ACTIVE");
    let mut truth = Vec::new();
    for row in active {
        let parts = row.spec.resources.iter().filter(|part| part.kind == "ACCELERATOR");
        for part in parts {
            let wanted = part.accelerator_type.as_deref().unwrap_or_default();
            let used = inner
                .attached_to(row)
                .map(|reservation| inner.in_use(reservation) * count_of(reservation, wanted))
                .sum::<u32>();
            let units = u32::try_from(part.amount).unwrap_or_default();
            truth.push(CommitmentTruth {
                account: data.id.clone(),
                region: row.region.clone(),
                id: row.id.clone(),
                kind: "committed_use",
                instance_type: wanted.to_owned(),
                units: Some(units),
                used: Some(used.min(units)),
            });
        }
    }
    truth
}

/// Accelerators of this type in one machine of a reservation.
fn count_of(reservation: &Reservation, accelerator_type: &str) -> u32 {
    let of_type = types::machine_type(&reservation.spec.machine_type).and_then(|known| known.accelerator);
    let attached = reservation.spec.accelerators.iter();
    let attached = attached.filter(|(name, _)| name == accelerator_type);
    of_type
        .filter(|(name, _)| *name == accelerator_type)
        .map_or_else(|| attached.map(|(_, count)| count).sum(), |(_, count)| count)
}
