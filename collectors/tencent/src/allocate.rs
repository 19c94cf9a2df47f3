//! Which instances reserved instances pay for, and what is unused.
//!
//! The cloud shows this only in the bill. Reserved instances apply to running
//! pay-as-you-go instances of their own type and zone; the oldest instances
//! are taken first, so that labels are stable.

use std::{collections::HashMap, sync::Arc};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Certainty, Commitment, CommitmentKind, CommitmentScope, Instance, Provider, State, Text,
};

use crate::billing::RESERVED_INSTANCE;

/// What must be equal between an instance and a reserved instance; no zone for
/// one that applies to the whole region.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    account: Text,
    region: Text,
    zone: Option<Text>,
    instance_type: Text,
}

/// Allocates over the whole fleet. The result does not depend on the order of
/// its records.
pub(crate) fn allocate(fleet: &mut Fleet) {
    let mut reserved: Vec<usize> = positions(&fleet.commitments, is_reserved_instance);
    if reserved.is_empty() {
        return;
    }
    let mut free: HashMap<Place, Vec<usize>> = HashMap::new();
    let mut payable = positions(&fleet.instances, |instance| is_payable(instance));
    // Taken from the end: the newest lie at the bottom.
    payable.sort_by_key(|at| {
        fleet
            .instances
            .get(*at)
            .map(|i| std::cmp::Reverse((i.launched, i.id.clone())))
    });
    for at in payable {
        for place in fleet.instances.get(at).into_iter().flat_map(|i| places(i)) {
            free.entry(place).or_default().push(at);
        }
    }
    // Zonal before regional, then the one that ends first.
    reserved.sort_by_key(|at| {
        fleet.commitments.get(*at).map(|c| {
            let is_regional = !matches!(c.scope, CommitmentScope::Zone(_));
            (is_regional, c.expires, c.account.clone(), c.id.clone())
        })
    });
    let detail: Text = RESERVED_INSTANCE.into();
    for at in reserved {
        let Some(commitment) = fleet.commitments.get_mut(at) else {
            continue;
        };
        let Some(units) = commitment.units else { continue };
        let instances = free.entry(place(commitment)).or_default();
        let mut used = 0;
        while used < units {
            let Some(next) = instances.pop() else { break };
            // One that another reserved instance has taken is no longer free.
            let Some(instance) = fleet.instances.get_mut(next).filter(|instance| is_payable(instance)) else {
                continue;
            };
            let instance = Arc::make_mut(instance);
            instance.billing = Billing {
                mode: BillingMode::Reserved,
                detail: detail.clone(),
                certainty: Certainty::Estimated,
            };
            instance.expires = commitment.expires;
            used += 1;
        }
        commitment.used_units = Some(used);
    }
}

fn positions<T>(records: &[T], keep: impl Fn(&T) -> bool) -> Vec<usize> {
    let kept = records.iter().enumerate().filter(|(_, record)| keep(record));
    kept.map(|(at, _)| at).collect()
}

/// Not those of super nodes, whose use the cloud states.
fn is_reserved_instance(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Tencent
        && commitment.kind == CommitmentKind::ReservedInstance
        && commitment.used_units.is_none()
        && &*commitment.detail != "super_node"
}

fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Tencent
        && instance.state == State::Running
        && instance.billing.mode == BillingMode::OnDemand
}

fn place(commitment: &Commitment) -> Place {
    Place {
        account: commitment.account.clone(),
        region: commitment.region.clone(),
        zone: match &commitment.scope {
            CommitmentScope::Zone(zone) => Some(zone.clone()),
            CommitmentScope::Region | CommitmentScope::Global => None,
        },
        instance_type: commitment.instance_type.clone(),
    }
}

/// The instance's zone, and its region as a whole.
fn places(instance: &Instance) -> [Place; 2] {
    [Some(instance.zone.clone()), None].map(|zone| Place {
        account: instance.account.clone(),
        region: instance.region.clone(),
        zone,
        instance_type: instance.instance_type.clone(),
    })
}

#[cfg(test)]
mod tests;
