//! What a correct observer must report, worked out from the world itself.
//!
//! Written without any code of gpuwatch, so that the two can disagree.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};

use super::account::{AccountData, RegionData};
use super::commitment::{Pool, ReservedInstance};
use super::instance::{Charge, Instance, Status, StoppedMode};
use super::region::zone_id;
use super::{Inner, World};
use crate::types;

impl World {
    /// Every accelerator instance, by account, region and id.
    #[must_use]
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in inner.accounts.values() {
            for (name, region) in &data.regions {
                let covered = allocate(name, region).covered;
                let listed = region.instances.values().filter(|instance| is_listed(instance));
                truth.extend(listed.map(|instance| instance_truth(data, instance, covered.contains_key(&instance.id))));
            }
        }
        truth.sort_by(|a, b| (&a.account, &a.region, &a.id).cmp(&(&b.account, &b.region, &b.id)));
        truth
    }

    /// Every active commitment for accelerators, each once, in the account
    /// that owns it. Plans are included whatever they cover.
    #[must_use]
    pub fn commitments(&self) -> Vec<CommitmentTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in inner.accounts.values() {
            for (name, region) in &data.regions {
                truth.extend(region_commitments(&data.account.uid, name, region));
            }
            let active = data.savings_plans.iter().filter(|plan| plan.spec.status == "NORMAL");
            truth.extend(active.map(|plan| {
                let region = if plan.spec.region.is_empty() {
                    "global"
                } else {
                    plan.spec.region.as_str()
                };
                CommitmentTruth {
                    account: data.account.uid.clone(),
                    region: region.to_owned(),
                    id: plan.id.clone(),
                    kind: "savings_plan",
                    // The family, which is all that such a plan names.
                    instance_type: plan.spec.instance_family.trim_start_matches("ecs.").to_owned(),
                    units: None,
                    used: None,
                }
            }));
        }
        truth
    }
}

/// An instance, and what of it was paid for by commitments: `None` for what
/// the kind can never pay for.
pub(crate) struct Covered<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) by_reserved_instances: Option<f64>,
    pub(crate) by_savings_plans: Option<f64>,
}

impl Inner {
    /// What the bill of an account says about its instances.
    pub(crate) fn covered(&self, uid: &str) -> Vec<Covered<'_>> {
        let mut found = Vec::new();
        let Some(data) = self.accounts.get(uid) else {
            return found;
        };
        for (name, region) in &data.regions {
            let allocated = allocate(name, region).covered;
            for instance in region.instances.values() {
                let is_eligible = instance.spec.charge == Charge::PostPaid && instance.spec.status == Status::Running;
                let share = if allocated.contains_key(&instance.id) { 1.0 } else { 0.0 };
                let stated = data.paid_by_reserved.get(&instance.id).copied();
                let eligible = is_eligible.then_some(());
                found.push(Covered {
                    instance,
                    by_reserved_instances: eligible.map(|()| stated.unwrap_or(share)),
                    by_savings_plans: eligible.map(|()| data.paid_by_plans.get(&instance.id).copied().unwrap_or(0.0)),
                });
            }
        }
        found
    }
}

fn is_listed(instance: &Instance) -> bool {
    types::is_accelerated(&instance.spec.instance_type) || instance.spec.stated_gpus.is_some()
}

fn instance_truth(data: &AccountData, instance: &Instance, covered: bool) -> InstanceTruth {
    let spec = &instance.spec;
    let (billing_mode, billing_detail) = match spec.charge {
        Charge::PrePaid => ("reserved", "subscription"),
        Charge::SpotWithPriceLimit | Charge::SpotAsPriceGo => ("spot", ""),
        Charge::PostPaid if covered => ("reserved", "reserved_instance"),
        Charge::PostPaid if is_paid_by_plan(data, instance) => ("reserved", "savings_plan"),
        // What it costs is the host.
        Charge::PostPaid if spec.dedicated_host.is_some() => ("on_demand", "dedicated_host"),
        Charge::PostPaid => ("on_demand", ""),
    };
    let stated = spec.stated_gpus.as_ref().filter(|_| !spec.hide_gpus);
    InstanceTruth {
        account: instance.account.clone(),
        account_name: data.account.name.clone(),
        region: instance.region.clone(),
        zone: instance.zone(),
        id: instance.id.clone(),
        name: spec.name.clone(),
        instance_type: spec.instance_type.clone(),
        state: match spec.status {
            Status::Pending | Status::Starting => "starting",
            Status::Running => "running",
            Status::Stopping => "stopping",
            // A subscription is paid for to its end, whatever the machine does.
            Status::Stopped if spec.charge != Charge::PrePaid && spec.stopped_mode == StoppedMode::StopCharging => {
                "stopped"
            }
            Status::Stopped => "stopped_billed",
        },
        billing_mode,
        billing_detail,
        gpus: types::true_count(&spec.instance_type).or_else(|| stated.map(|(amount, _)| f64::from(*amount))),
        launched: instance.created,
    }
}

/// At least half of it, which the bill shows two days later.
fn is_paid_by_plan(data: &AccountData, instance: &Instance) -> bool {
    instance.spec.status == Status::Running
        && instance.spec.dedicated_host.is_none()
        && data.savings_plans.iter().any(|plan| plan.spec.status == "NORMAL")
        && data.paid_by_plans.get(&instance.id).is_some_and(|share| *share >= 0.5)
}

/// Which instance each reserved instance pays for.
#[derive(Default)]
struct Allocation {
    /// Instance id → reserved instance id.
    covered: BTreeMap<String, String>,
    /// Reserved instance id → instances.
    used: BTreeMap<String, u32>,
}

/// Same type; zonal before regional; the oldest instances first.
fn allocate(name: &str, region: &RegionData) -> Allocation {
    let mut allocation = Allocation::default();
    let can_be_covered = |instance: &&Instance| {
        instance.spec.charge == Charge::PostPaid
            && instance.spec.status == Status::Running
            && instance.spec.dedicated_host.is_none()
    };
    let mut instances: Vec<&Instance> = region.instances.values().filter(can_be_covered).collect();
    instances.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    let mut reserved: Vec<&ReservedInstance> = active(region).collect();
    reserved.sort_by_key(|reserved| (reserved.spec.zone.is_none(), reserved.id.clone()));
    for reservation in reserved {
        let zone = reservation.spec.zone.map(|zone| zone_id(name, zone));
        let mut left = reservation.spec.amount;
        for instance in &instances {
            let fits = instance.spec.instance_type == reservation.spec.instance_type
                && zone.as_ref().is_none_or(|zone| *zone == instance.zone());
            if left > 0 && fits && !allocation.covered.contains_key(&instance.id) {
                allocation.covered.insert(instance.id.clone(), reservation.id.clone());
                left -= 1;
            }
        }
        allocation
            .used
            .insert(reservation.id.clone(), reservation.spec.amount - left);
    }
    allocation
}

fn active(region: &RegionData) -> impl Iterator<Item = &ReservedInstance> {
    region
        .reserved
        .iter()
        .filter(|reserved| reserved.spec.status == "Active")
}

impl RegionData {
    /// Instances that hold machines of a pool: those in economical mode have
    /// given theirs back.
    pub(crate) fn pool_users(&self, pool: &Pool) -> u32 {
        let users = self.instances.values().filter(|instance| {
            let spec = &instance.spec;
            let given_back = spec.status == Status::Stopped && spec.stopped_mode == StoppedMode::StopCharging;
            spec.private_pool.as_deref() == Some(pool.id.as_str()) && !given_back
        });
        u32::try_from(users.count()).unwrap_or(u32::MAX)
    }
}

fn region_commitments(account: &str, name: &str, region: &RegionData) -> Vec<CommitmentTruth> {
    let row = |id: &str, kind, instance_type: &str, units, used| CommitmentTruth {
        account: account.to_owned(),
        region: name.to_owned(),
        id: id.to_owned(),
        kind,
        instance_type: instance_type.to_owned(),
        units: Some(units),
        used: Some(used),
    };
    let used = allocate(name, region).used;
    let mut rows: Vec<CommitmentTruth> = active(region)
        .map(|reserved| {
            let used = used.get(&reserved.id).copied().unwrap_or_default();
            let spec = &reserved.spec;
            row(
                &reserved.id,
                "reserved_instance",
                &spec.instance_type,
                spec.amount,
                used,
            )
        })
        .collect();
    for pool in region.pools.iter().filter(|pool| pool.spec.status == "Active") {
        let spec = &pool.spec;
        let used = region.pool_users(pool);
        rows.push(row(
            &pool.id,
            "capacity_reservation",
            &spec.instance_type,
            spec.total,
            used,
        ));
    }
    rows.retain(|row| types::is_accelerated(&row.instance_type));
    rows
}
