//! What a correct observer must report, worked out from the world itself.

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
use jiff::Timestamp;

use crate::world::{Account, Inner, MachineSpec, NodeSpec, PlanSpec, ReservedSpec, Site, World, gpus_of};

fn state(machine: &MachineSpec) -> &'static str {
    match (machine.state.as_str(), machine.stop_mode.as_str()) {
        ("RUNNING" | "REBOOTING" | "RESCUE_MODE", _) => "running",
        ("PENDING" | "STARTING", _) => "starting",
        ("STOPPING" | "SHUTDOWN" | "TERMINATING", _) => "stopping",
        ("STOPPED", "STOP_CHARGING") => "stopped",
        ("STOPPED", _) => "stopped_billed",
        _ => "unknown",
    }
}

/// Mode and detail. The words that nobody knows are known here.
fn billing(charge_type: &str) -> (&'static str, &'static str) {
    match charge_type {
        "POSTPAID_BY_HOUR" => ("on_demand", ""),
        "SPOTPAID" => ("spot", ""),
        "PREPAID" => ("reserved", "subscription"),
        "UNDERWRITE" => ("reserved", "underwrite"),
        "CDHPAID" => ("reserved", "dedicated_host"),
        "CDCPAID" => ("reserved", "dedicated_cluster"),
        "" => ("unknown", ""),
        _ => ("unknown", "BARTER"),
    }
}

impl World {
    /// Every accelerator machine, by account, region and id. A machine that
    /// could not be launched is none.
    #[must_use]
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = machines(&inner);
        for (row, _) in allocate(&inner, &truth) {
            if let Some(row) = truth.get_mut(row) {
                (row.billing_mode, row.billing_detail) = ("reserved", "reserved_instance");
            }
        }
        truth.sort_by(|a, b| (&a.account, &a.region, &a.id).cmp(&(&b.account, &b.region, &b.id)));
        truth
    }

    /// Every active commitment. Savings plans are included whatever they
    /// cover.
    #[must_use]
    pub fn commitments(&self) -> Vec<CommitmentTruth> {
        let inner = self.read();
        let used = allocate(&inner, &machines(&inner));
        let mut truth = Vec::new();
        for (owner, account) in &inner.accounts {
            let active = account.reserved.iter().filter(|reserved| is_active(&inner, reserved));
            truth.extend(active.map(|reserved| {
                let count = used.iter().filter(|(_, id)| *id == reserved.id).count();
                CommitmentTruth {
                    account: owner.clone(),
                    region: reserved.region.clone(),
                    id: reserved.id.clone(),
                    kind: "reserved_instance",
                    instance_type: reserved.instance_type.clone(),
                    units: Some(reserved.count),
                    used: u32::try_from(count).ok(),
                }
            }));
            let hosts = account.hosts.iter().filter(|host| host.state == "RUNNING");
            truth.extend(hosts.map(|host| CommitmentTruth {
                account: owner.clone(),
                region: host.region.clone(),
                id: host.id.clone(),
                kind: "reservation",
                instance_type: host.host_type.clone(),
                units: Some(host.gpus),
                used: Some(host.gpus - host.free),
            }));
            let coupons = account.coupons.iter().filter(|coupon| coupon.status == "Active");
            truth.extend(coupons.map(|coupon| CommitmentTruth {
                account: owner.clone(),
                region: coupon.region.clone(),
                id: coupon.id.clone(),
                kind: "reserved_instance",
                instance_type: coupon.resource_type.clone(),
                units: Some(1),
                used: Some(u32::from(coupon.is_used)),
            }));
            if inner.site == Site::China {
                truth.extend(active_plans(account).map(|plan| CommitmentTruth {
                    account: owner.clone(),
                    region: "global".to_owned(),
                    id: plan.id.clone(),
                    kind: "savings_plan",
                    instance_type: String::new(),
                    units: None,
                    used: None,
                }));
            }
        }
        truth
    }
}

fn machines(inner: &Inner) -> Vec<InstanceTruth> {
    let mut truth = Vec::new();
    for (owner, account) in &inner.accounts {
        let has_plans = inner.site == Site::China && active_plans(account).next().is_some();
        let machines = account
            .machines
            .iter()
            .filter(|machine| machine.state != "LAUNCH_FAILED");
        truth.extend(machines.filter_map(|machine| cvm(owner, machine, has_plans)));
        truth.extend(account.nodes.iter().filter_map(|node| native(owner, node)));
        let pods = account.containers.iter().filter(|pod| pod.gpus > 0.0);
        truth.extend(pods.filter_map(|pod| {
            let state = match pod.status.as_str() {
                "Running" => "running",
                "Pending" => "starting",
                _ => return None,
            };
            Some(InstanceTruth {
                region: pod.region.clone(),
                name: pod.name.clone(),
                state,
                gpus: Some(pod.gpus),
                launched: seconds(pod.created),
                ..empty(owner, &pod.id)
            })
        }));
    }
    truth
}

/// What is the same for all, and nothing else.
fn empty(owner: &str, id: &str) -> InstanceTruth {
    InstanceTruth {
        account: owner.to_owned(),
        account_name: String::new(),
        region: String::new(),
        zone: String::new(),
        id: id.to_owned(),
        name: String::new(),
        instance_type: String::new(),
        state: "unknown",
        billing_mode: "unknown",
        billing_detail: "",
        gpus: None,
        launched: Timestamp::UNIX_EPOCH,
    }
}

fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// `None` for a machine without accelerators.
fn cvm(owner: &str, machine: &MachineSpec, has_plans: bool) -> Option<InstanceTruth> {
    let (gpus, _) = gpus_of(&machine.instance_type);
    if gpus <= 0.0 {
        return None;
    }
    let state = state(machine);
    let (mut billing_mode, mut billing_detail) = billing(&machine.charge_type);
    let is_covered = has_plans && machine.plan_coverage.is_some_and(|percent| percent >= 50.0);
    if is_covered && (state, billing_mode) == ("running", "on_demand") {
        (billing_mode, billing_detail) = ("reserved", "savings_plan");
    }
    Some(InstanceTruth {
        region: machine.region.clone(),
        zone: machine.zone.clone(),
        name: machine.name.clone(),
        instance_type: machine.instance_type.clone(),
        state,
        billing_mode,
        billing_detail,
        gpus: Some(gpus),
        launched: seconds(machine.created),
        ..empty(owner, &machine.id)
    })
}

/// `None` for a node without accelerators.
fn native(owner: &str, node: &NodeSpec) -> Option<InstanceTruth> {
    let (gpus, _) = gpus_of(&node.instance_type);
    let (billing_mode, billing_detail) = billing(&node.charge_type);
    let state = match node.state.as_str() {
        "running" => "running",
        "initializing" => "starting",
        _ => "unknown",
    };
    (gpus > 0.0).then(|| InstanceTruth {
        region: node.region.clone(),
        zone: node.zone.clone(),
        name: node.name.clone(),
        instance_type: node.instance_type.clone(),
        state,
        billing_mode,
        billing_detail,
        gpus: Some(gpus),
        launched: seconds(node.created),
        ..empty(owner, &node.id)
    })
}

fn active_plans(account: &Account) -> impl Iterator<Item = &PlanSpec> {
    account.plans.iter().filter(|plan| plan.status == 1)
}

fn is_active(inner: &Inner, reserved: &ReservedSpec) -> bool {
    inner.site == Site::International && reserved.state == "active"
}

/// Position of each machine that a reserved instance pays for, with the id of
/// the latter: same account, type and zone, running and pay-as-you-go, the
/// oldest first.
fn allocate(inner: &Inner, truth: &[InstanceTruth]) -> Vec<(usize, String)> {
    let mut order: Vec<usize> = (0..truth.len()).collect();
    order.sort_by_key(|at| truth.get(*at).map(|row| (row.launched, row.id.clone())));
    let mut taken: Vec<(usize, String)> = Vec::new();
    for (owner, account) in &inner.accounts {
        let mut reserved: Vec<&ReservedSpec> = account.reserved.iter().filter(|r| is_active(inner, r)).collect();
        reserved.sort_by(|a, b| a.id.cmp(&b.id));
        for commitment in reserved {
            let mut left = commitment.count;
            for at in &order {
                let fits = truth.get(*at).is_some_and(|row| {
                    row.account == *owner
                        && row.instance_type == commitment.instance_type
                        && row.zone == commitment.zone
                        && (row.state, row.billing_mode) == ("running", "on_demand")
                });
                if left > 0 && fits && !taken.iter().any(|(other, _)| other == at) {
                    left -= 1;
                    taken.push((*at, commitment.id.clone()));
                }
            }
        }
    }
    taken
}
