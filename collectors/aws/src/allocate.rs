//! Which instances reserved instances pay for, and what is unused.
//!
//! AWS decides this per hour and shows it only in the bill. This allocation
//! follows its published rules as far as they can be known now, and errs to
//! the low side: exact type and size only (the families with accelerators
//! either exclude size flexibility or have few sizes), and only within the
//! owning account, although an organization may share reservations.

use std::{collections::HashMap, sync::Arc};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Certainty, Commitment, CommitmentKind, CommitmentScope, Instance, Provider, State, Text,
};
use jiff::Timestamp;

use crate::{
    billing::{CAPACITY_BLOCK, RESERVED_INSTANCE},
    coverage, platform,
};

/// Allocates over the whole fleet. The result does not depend on the order of
/// its records.
pub(crate) fn allocate(fleet: &mut Fleet) {
    allocate_reserved_instances(fleet);
    join_capacity_blocks(fleet);
    // After reserved instances: they come before savings plans in the bill.
    fleet
        .coverage
        .extend(coverage::estimate(&fleet.instances, &fleet.commitments));
}

/// What must be equal between an instance and a reserved instance.
#[derive(PartialEq, Eq, Hash)]
struct Pool<'a> {
    account: &'a str,
    region: &'a str,
    instance_type: &'a str,
    platform: &'a str,
    tenancy: &'a str,
}

fn pool_of_commitment(commitment: &Commitment) -> Pool<'_> {
    Pool {
        account: &commitment.account,
        region: &commitment.region,
        instance_type: &commitment.instance_type,
        platform: platform::billed_as(&commitment.platform),
        tenancy: platform::tenancy(&commitment.tenancy),
    }
}

fn pool_of_instance(instance: &Instance) -> Pool<'_> {
    Pool {
        account: &instance.account,
        region: &instance.region,
        instance_type: &instance.instance_type,
        platform: platform::of_instance(&instance.platform),
        tenancy: platform::tenancy(&instance.tenancy),
    }
}

/// Whether a reserved instance can pay for an instance at all: never for spot,
/// prepaid or unknown capacity, and only while it runs.
pub(crate) fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Aws
        && instance.state == State::Running
        && instance.billing.mode == BillingMode::OnDemand
}

/// What a match changes.
struct Match {
    instance: usize,
    expires: Option<Timestamp>,
}

fn allocate_reserved_instances(fleet: &mut Fleet) {
    let mut used: HashMap<usize, u32> = HashMap::new();
    let mut matches = Vec::new();
    {
        let mut pools: HashMap<Pool<'_>, Vec<usize>> = HashMap::new();
        let reserved = fleet
            .commitments
            .iter()
            .enumerate()
            .filter(|(_, c)| is_reserved_instance(c));
        for (at, commitment) in reserved {
            pools.entry(pool_of_commitment(commitment)).or_default().push(at);
        }
        let mut candidates: HashMap<Pool<'_>, Vec<usize>> = HashMap::new();
        for (at, instance) in fleet.instances.iter().enumerate().filter(|(_, i)| is_payable(i)) {
            let pool = pool_of_instance(instance);
            if pools.contains_key(&pool) {
                candidates.entry(pool).or_default().push(at);
            }
        }
        for (pool, mut commitments) in pools {
            commitments.sort_by_key(|at| commitment_order(fleet.commitments.get(*at)));
            let mut instances = candidates.remove(&pool).unwrap_or_default();
            instances.sort_by_key(|at| fleet.instances.get(*at).map(|i| (i.launched, i.id.clone())));
            let mut free: Vec<Option<usize>> = instances.into_iter().map(Some).collect();
            for at in commitments {
                let Some(commitment) = fleet.commitments.get(at) else {
                    continue;
                };
                let taken = take(commitment, &mut free, &fleet.instances);
                if commitment.units.is_some() {
                    used.insert(at, u32::try_from(taken.len()).unwrap_or(u32::MAX));
                }
                matches.extend(taken.into_iter().map(|instance| Match {
                    instance,
                    expires: commitment.expires,
                }));
            }
        }
    }
    for (at, units) in used {
        if let Some(commitment) = fleet.commitments.get_mut(at) {
            commitment.used_units = Some(units);
        }
    }
    let detail: Text = RESERVED_INSTANCE.into();
    for matched in matches {
        if let Some(instance) = fleet.instances.get_mut(matched.instance) {
            let instance = Arc::make_mut(instance);
            instance.billing = Billing {
                mode: BillingMode::Reserved,
                detail: detail.clone(),
                certainty: Certainty::Estimated,
            };
            instance.expires = matched.expires;
        }
    }
}

fn is_reserved_instance(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Aws && commitment.kind == CommitmentKind::ReservedInstance
}

/// Zonal before regional, then the one that ends first, then by id.
fn commitment_order(commitment: Option<&Commitment>) -> (bool, Option<Timestamp>, Option<Text>) {
    let is_regional = commitment.is_none_or(|c| !matches!(c.scope, CommitmentScope::Zone(_)));
    (
        is_regional,
        commitment.and_then(|c| c.expires),
        commitment.map(|c| c.id.clone()),
    )
}

/// Takes as many free instances as the commitment has units, in their order.
fn take(commitment: &Commitment, free: &mut [Option<usize>], instances: &[Arc<Instance>]) -> Vec<usize> {
    let in_scope = |at: usize| match &commitment.scope {
        CommitmentScope::Zone(zone) => instances.get(at).is_some_and(|instance| instance.zone == *zone),
        CommitmentScope::Region | CommitmentScope::Global => true,
    };
    let units = usize::try_from(commitment.units.unwrap_or(0)).unwrap_or(usize::MAX);
    free.iter_mut()
        .filter(|slot| slot.is_some_and(in_scope))
        .take(units)
        .filter_map(Option::take)
        .collect()
}

/// Gives instances in capacity blocks the end of their block, and blocks whose
/// use the cloud did not state the number of their instances.
fn join_capacity_blocks(fleet: &mut Fleet) {
    // Instances name the block, or else one of its reservations.
    let mut blocks: HashMap<(Text, Text), usize> = HashMap::new();
    for (at, block) in fleet.commitments.iter().enumerate().filter(|(_, c)| is_block(c)) {
        for name in std::iter::once(&*block.id).chain(block.detail.split_whitespace()) {
            // The smallest identity wins, so that the order does not matter.
            let entry = blocks.entry((block.region.clone(), name.into())).or_insert(at);
            let before = |c: &Commitment| (c.account.clone(), c.id.clone());
            if fleet
                .commitments
                .get(*entry)
                .is_some_and(|other| before(block) < before(other))
            {
                *entry = at;
            }
        }
    }
    if blocks.is_empty() {
        return;
    }
    let mut instances_in: HashMap<usize, u32> = HashMap::new();
    for instance in fleet.instances.iter_mut().filter(|instance| is_in_block(instance)) {
        let name = (instance.region.clone(), instance.reservation_id.clone());
        let Some(at) = blocks.get(&name).copied() else { continue };
        if matches!(instance.state, State::Running | State::Starting) {
            let count = instances_in.entry(at).or_default();
            *count = count.saturating_add(1);
        }
        let end = fleet.commitments.get(at).and_then(|block| block.expires);
        if end.is_some() && instance.expires != end {
            Arc::make_mut(instance).expires = end;
        }
    }
    for (at, block) in fleet.commitments.iter_mut().enumerate().filter(|(_, c)| is_block(c)) {
        if block.used_units.is_none() {
            let instances = instances_in.get(&at).copied().unwrap_or(0);
            block.used_units = block.units.map(|units| instances.min(units));
        }
    }
}

fn is_block(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Aws && commitment.kind == CommitmentKind::CapacityBlock
}

fn is_in_block(instance: &Instance) -> bool {
    instance.provider == Provider::Aws
        && !instance.reservation_id.is_empty()
        && instance.billing.mode == BillingMode::Reserved
        && &*instance.billing.detail == CAPACITY_BLOCK
}

#[cfg(test)]
mod tests;
