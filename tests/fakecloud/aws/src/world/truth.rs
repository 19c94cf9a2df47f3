//! What a correct observer must report, worked out from the world itself.
//!
//! Written without any code of gpuwatch, so that the two can disagree.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};

use super::account::{AccountData, RegionData};
use super::commitment::{ReservationScope, ReservedInstances};
use super::instance::{Instance, InstanceState, Lifecycle};
use super::{Inner, World};
use crate::types;

impl World {
    /// Every accelerator instance that is not terminated, managed ones
    /// included, by account, region and id.
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in inner.accounts.values() {
            for region in data.regions.values() {
                let covered = allocate(region).covered;
                let listed = region.instances.values().filter(|instance| is_listed(instance));
                truth.extend(listed.map(|instance| instance_truth(data, instance, covered.contains_key(&instance.id))));
            }
        }
        truth.sort_by(|a, b| (&a.account, &a.region, &a.id).cmp(&(&b.account, &b.region, &b.id)));
        truth
    }

    /// Every active commitment for accelerators, each once, in the account
    /// that owns it. Plans are included whatever they cover.
    pub fn commitments(&self) -> Vec<CommitmentTruth> {
        let inner = self.read();
        let mut truth = Vec::new();
        for data in inner.accounts.values() {
            let account = &data.account.id;
            for (name, region) in &data.regions {
                truth.extend(region_commitments(&inner, account, name, region));
            }
            let active = data.savings_plans.iter().filter(|plan| plan.spec.state == "active");
            truth.extend(active.map(|plan| {
                CommitmentTruth {
                    account: account.clone(),
                    region: plan
                        .spec
                        .family
                        .as_ref()
                        .map_or("global", |(region, _)| region)
                        .to_owned(),
                    id: plan.id.clone(),
                    kind: "savings_plan",
                    instance_type: String::new(),
                    units: None,
                    used: None,
                }
            }));
        }
        truth
    }
}

fn is_listed(instance: &Instance) -> bool {
    instance.spec.state != InstanceState::Terminated && types::is_accelerated(&instance.spec.instance_type)
}

fn instance_truth(data: &AccountData, instance: &Instance, covered: bool) -> InstanceTruth {
    let spec = &instance.spec;
    let (billing_mode, billing_detail) = match spec.lifecycle {
        Lifecycle::Spot => ("spot", ""),
        Lifecycle::CapacityBlock => ("reserved", "capacity_block"),
        // Whether it is cheaper than on-demand is not published.
        Lifecycle::InterruptibleCapacityReservation => ("unknown", "interruptible_capacity_reservation"),
        Lifecycle::Scheduled => ("reserved", "scheduled"),
        Lifecycle::Normal if covered => ("reserved", "reserved_instance"),
        Lifecycle::Normal => ("on_demand", ""),
    };
    InstanceTruth {
        account: instance.account.clone(),
        account_name: data.account.name.clone(),
        region: instance.region.clone(),
        zone: instance.zone(),
        id: instance.id.clone(),
        name: instance.tag("Name").unwrap_or_default().to_owned(),
        instance_type: spec.instance_type.clone(),
        state: match spec.state {
            InstanceState::Pending => "starting",
            InstanceState::Running => "running",
            InstanceState::ShuttingDown | InstanceState::Stopping | InstanceState::Terminated => "stopping",
            InstanceState::Stopped => "stopped",
        },
        billing_mode,
        billing_detail,
        gpus: types::true_count(&spec.instance_type),
        launched: instance.launched,
    }
}

/// Which instance each reserved instance pays for.
#[derive(Default)]
struct Allocation {
    /// Instance id → reservation id.
    covered: BTreeMap<String, String>,
    /// Reservation id → instances.
    used: BTreeMap<String, u32>,
}

/// Zonal reservations before regional ones, oldest instances first.
fn allocate(region: &RegionData) -> Allocation {
    let mut allocation = Allocation::default();
    let mut instances: Vec<&Instance> = region
        .instances
        .values()
        .filter(|instance| can_be_covered(instance))
        .collect();
    instances.sort_by(|a, b| (a.launched, &a.id).cmp(&(b.launched, &b.id)));
    let mut reserved: Vec<&ReservedInstances> = region
        .reserved
        .iter()
        .filter(|reserved| reserved.spec.state == "active")
        .collect();
    reserved.sort_by_key(|reserved| (reserved.spec.scope == ReservationScope::Region, reserved.id.clone()));
    for reservation in reserved {
        let spec = &reservation.spec;
        let mut left = spec.count;
        for instance in &instances {
            let zone_fits = match spec.scope {
                ReservationScope::Region => true,
                ReservationScope::Zone(zone) => instance.spec.zone == zone,
            };
            let fits = instance.spec.instance_type == spec.instance_type
                && instance.spec.platform == spec.platform
                && instance.spec.tenancy == spec.tenancy
                && zone_fits;
            if left > 0 && fits && !allocation.covered.contains_key(&instance.id) {
                allocation.covered.insert(instance.id.clone(), reservation.id.clone());
                left -= 1;
            }
        }
        allocation.used.insert(reservation.id.clone(), spec.count - left);
    }
    allocation
}

fn can_be_covered(instance: &Instance) -> bool {
    instance.spec.lifecycle == Lifecycle::Normal && instance.spec.state == InstanceState::Running
}

fn region_commitments(inner: &Inner, account: &str, name: &str, region: &RegionData) -> Vec<CommitmentTruth> {
    let row = |id: &str, kind, instance_type: &str, units, used| CommitmentTruth {
        account: account.to_owned(),
        region: name.to_owned(),
        id: id.to_owned(),
        kind,
        instance_type: instance_type.to_owned(),
        units: Some(units),
        used: Some(used),
    };
    let used = allocate(region).used;
    let mut rows = Vec::new();
    for reserved in region
        .reserved
        .iter()
        .filter(|reserved| reserved.spec.state == "active")
    {
        let used = used.get(&reserved.id).copied().unwrap_or_default();
        rows.push(row(
            &reserved.id,
            "reserved_instance",
            &reserved.spec.instance_type,
            reserved.spec.count,
            used,
        ));
    }
    for reservation in region
        .capacity
        .iter()
        .filter(|reservation| reservation.spec.state == "active")
    {
        let spec = &reservation.spec;
        let used = inner.used_slots(reservation);
        match &spec.capacity_block {
            Some(block) => rows.push(row(block, "capacity_block", &spec.instance_type, spec.total, used)),
            None => rows.push(row(
                &reservation.id,
                "capacity_reservation",
                &spec.instance_type,
                spec.total,
                used,
            )),
        }
    }
    rows.retain(|row| types::is_accelerated(&row.instance_type));
    rows
}
