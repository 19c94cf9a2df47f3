//! How much of each commitment is used, and which on-demand machines it covers.
//!
//! Google decides this per hour over the usage of a region and shows it in the
//! bill only. This allocation errs to the low side: commitments are taken as
//! their own project's, although they can be shared over the billing account,
//! which no API called here shows.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Certainty, Commitment, CommitmentKind, GpuCount, Instance, State, Text,
};

use crate::{
    accelerators,
    allocate::{is_ours, is_payable, paths},
    billing::COMMITTED_USE,
};

/// What must be equal between a machine and a commitment.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pool {
    account: Text,
    region: Text,
    model: Text,
}

/// Positions of the commitments of one pool, and of the machines they may cover.
#[derive(Default)]
struct Members {
    commitments: Vec<usize>,
    machines: Vec<usize>,
}

/// Fills in what is used of each commitment, and marks as covered the
/// on-demand machines that what is left of it has room for.
///
/// Accelerators of attached reservations are paid for by their commitment,
/// used or not, so only the rest is left for other machines. Within a pool, the
/// commitment that ends first comes first, and so do the oldest machines.
pub(crate) fn cover(fleet: &mut Fleet) {
    let attached = attached(&fleet.commitments);
    for mut members in pools(fleet).into_values() {
        let Fleet {
            instances, commitments, ..
        } = &mut *fleet;
        members
            .commitments
            .sort_by_key(|at| commitments.get(*at).map(|c| (c.expires, c.id.clone())));
        members
            .machines
            .sort_by_key(|at| instances.get(*at).map(|i| (i.launched, i.id.clone())));
        let mut machines = members.machines.into_iter();
        for at in members.commitments {
            let held = attached.get(&at).copied().unwrap_or_default();
            if let Some(commitment) = commitments.get_mut(at) {
                spend(commitment, held, &mut machines, instances);
            }
        }
    }
}

fn pools(fleet: &Fleet) -> BTreeMap<Pool, Members> {
    let mut pools: BTreeMap<Pool, Members> = BTreeMap::new();
    for (at, commitment) in fleet.commitments.iter().enumerate() {
        if is_ours(commitment, CommitmentKind::CommittedUse) {
            let pool = Pool {
                account: commitment.account.clone(),
                region: commitment.region.clone(),
                model: model_of(&commitment.instance_type),
            };
            pools.entry(pool).or_default().commitments.push(at);
        }
    }
    if pools.is_empty() {
        return pools;
    }
    // Only what runs is charged.
    let running = |instance: &Instance| is_payable(instance) && instance.state == State::Running;
    for (at, instance) in fleet.instances.iter().enumerate().filter(|(_, i)| running(i)) {
        let pool = Pool {
            account: instance.account.clone(),
            region: instance.region.clone(),
            model: instance.accelerators.model.clone(),
        };
        if let Some(members) = pools.get_mut(&pool) {
            members.machines.push(at);
        }
    }
    pools
}

/// The model that an accelerator type means.
fn model_of(accelerator_type: &str) -> Text {
    accelerators::of_type("", accelerator_type, None).model
}

/// Accelerators of a commitment that are in attached reservations.
#[derive(Debug, Default, Clone, Copy)]
struct Held {
    reserved: f64,
    in_use: f64,
}

/// Gives what is left of a commitment to machines, the next ones first.
fn spend(
    commitment: &mut Commitment,
    held: Held,
    machines: &mut (impl Iterator<Item = usize> + Clone),
    instances: &mut [Arc<Instance>],
) {
    let Some(units) = commitment.units.map(f64::from) else {
        return;
    };
    let mut left = (units - held.reserved).max(0.0);
    let mut used = held.in_use;
    loop {
        let mut ahead = machines.clone();
        let Some(instance) = ahead.next().and_then(|at| instances.get_mut(at)) else {
            break;
        };
        let count = instance.accelerators.count.map_or(0.0, GpuCount::get);
        if count > left {
            // Discounts go by accelerator: the rest is used by a part of this
            // machine, which stays on-demand as a whole.
            used += left;
            break;
        }
        *machines = ahead;
        if count > 0.0 {
            left -= count;
            used += count;
            let instance = Arc::make_mut(instance);
            instance.billing = Billing {
                mode: BillingMode::Reserved,
                detail: COMMITTED_USE.into(),
                certainty: Certainty::Estimated,
            };
            instance.expires = commitment.expires;
        }
    }
    commitment.used_units = Some(whole(used.min(units)));
}

/// What attached reservations hold of each commitment, by its position. A
/// reservation under several commitments fills them in their order.
fn attached(commitments: &[Commitment]) -> HashMap<usize, Held> {
    let mut by_path: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut reservations: Vec<&Commitment> = Vec::new();
    for (at, commitment) in commitments.iter().enumerate() {
        if is_ours(commitment, CommitmentKind::CommittedUse) {
            by_path.entry(paths(commitment).0).or_default().push(at);
        } else if is_ours(commitment, CommitmentKind::Reservation) {
            reservations.push(commitment);
        }
    }
    reservations.sort_by_key(|reservation| (&reservation.account, &reservation.region, &reservation.id));
    let mut attached: HashMap<usize, Held> = HashMap::new();
    for reservation in reservations {
        let mut reserved = reservation.gpus().map_or(0.0, GpuCount::get);
        let mut in_use = reservation.used_gpus().map_or(0.0, GpuCount::get);
        let (_, commitment_paths) = paths(reservation);
        for at in commitment_paths.filter_map(|path| for_model(by_path.get(path)?, commitments, reservation)) {
            let held = attached.entry(at).or_default();
            let units = commitments.get(at).and_then(|commitment| commitment.units);
            let room = (f64::from(units.unwrap_or(0)) - held.reserved).max(0.0);
            let (takes, uses) = (reserved.min(room), in_use.min(room));
            held.reserved += takes;
            held.in_use += uses;
            reserved -= takes;
            in_use -= uses;
        }
    }
    attached
}

/// Which of the records of one commitment, one for each accelerator type, a
/// reservation is under: that of its machine type's model, or else the first.
fn for_model(records: &[usize], commitments: &[Commitment], reservation: &Commitment) -> Option<usize> {
    let model = accelerators::of_catalog(&reservation.instance_type).map(|found| found.model);
    let is_of_model = |at: &&usize| {
        let kind = commitments
            .get(**at)
            .map(|commitment| model_of(&commitment.instance_type));
        kind.is_some() && kind == model
    };
    let first = || {
        records
            .iter()
            .min_by_key(|at| commitments.get(**at).map(|commitment| &commitment.instance_type))
    };
    records.iter().find(is_of_model).or_else(first).copied()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and a number of 32 bits"
)]
fn whole(count: f64) -> u32 {
    count as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        allocate::allocate,
        samples::{committed_use, fleet, machine, reservation},
    };

    fn used(fleet: &Fleet, id: &str) -> Option<u32> {
        fleet
            .commitments
            .iter()
            .find(|commitment| &*commitment.id == id)?
            .used_units
    }

    fn covered(fleet: &Fleet) -> Vec<&str> {
        let reserved = |instance: &&Arc<Instance>| instance.billing.mode == BillingMode::Reserved;
        let mut ids: Vec<&str> = fleet.instances.iter().filter(reserved).map(|i| &*i.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn a_commitment_covers_whole_machines_and_is_used_by_accelerator() {
        let machines = ["1", "2", "3"].map(|id| machine(id, "a3-highgpu-8g", 8));
        let mut fleet = fleet(machines, [committed_use("c", "nvidia-h100-80gb", 20)]);
        allocate(&mut fleet);
        assert_eq!(covered(&fleet), ["1", "2"]);
        assert_eq!(used(&fleet, "c"), Some(20));
        assert!(
            fleet
                .instances
                .iter()
                .all(|instance| instance.billing.certainty == Certainty::Estimated)
        );
    }

    #[test]
    fn only_what_runs_on_demand_with_that_model_in_that_place_is_covered() {
        let base = machine("1", "a3-highgpu-8g", 8);
        let other = |change: fn(&mut Instance)| {
            let mut instance = base.clone();
            change(&mut instance);
            instance
        };
        let machines = [
            other(|i| i.state = State::Stopped),
            other(|i| i.region = "europe-west4".into()),
            other(|i| i.account = "q".into()),
            other(|i| i.accelerators.model = "L4".into()),
            other(|i| i.billing = Billing::exact(BillingMode::Spot, "")),
            other(|i| i.billing = Billing::exact(BillingMode::OnDemand, "flex_start")),
            other(|i| i.accelerators.count = None),
        ];
        let mut fleet = fleet(machines, [committed_use("c", "nvidia-h100-80gb", 64)]);
        allocate(&mut fleet);
        assert!(covered(&fleet).is_empty());
        assert_eq!(used(&fleet, "c"), Some(0));
    }

    #[test]
    fn what_attached_reservations_hold_is_not_given_away() {
        let under = "projects/p/zones/us-central1-a/reservations/r projects/p/regions/us-central1/commitments/c";
        for (units, covers, uses) in [(16, 0, 8), (24, 1, 16)] {
            let mut fleet = fleet(
                [machine("1", "a3-highgpu-8g", 8)],
                [
                    committed_use("c", "nvidia-h100-80gb", units),
                    // Two machines, one of which is used, by a managed service say.
                    reservation(under, "a3-highgpu-8g", 8, 2, 1),
                ],
            );
            allocate(&mut fleet);
            assert_eq!(covered(&fleet).len(), covers, "{units}");
            assert_eq!(used(&fleet, "c"), Some(uses), "{units}");
        }
    }

    #[test]
    fn a_commitment_of_unknown_size_stays_unknown() {
        let unknown = Commitment {
            units: None,
            ..committed_use("c", "nvidia-h100-80gb", 1)
        };
        let mut fleet = fleet([machine("1", "a3-highgpu-8g", 8)], [unknown]);
        allocate(&mut fleet);
        assert_eq!((used(&fleet, "c"), covered(&fleet).len()), (None, 0));
    }

    proptest::proptest! {
        #[test]
        fn the_order_of_records_does_not_matter(
            sizes in proptest::collection::vec(1u32..9, 1..8),
            units in proptest::collection::vec(0u32..20, 1..4),
            turn in 0usize..8,
        ) {
            let machines: Vec<Instance> =
                sizes.iter().enumerate().map(|(n, size)| machine(&n.to_string(), "a3-highgpu-8g", *size)).collect();
            let commitments: Vec<Commitment> = units
                .iter()
                .enumerate()
                .map(|(n, units)| committed_use(&format!("c{n}"), "nvidia-h100-80gb", *units))
                .collect();
            let mut straight = fleet(machines.clone(), commitments.clone());
            let mut turned = fleet(machines, commitments);
            let (by_machines, by_commitments) = (turn % turned.instances.len(), turn % turned.commitments.len());
            turned.instances.rotate_left(by_machines);
            turned.instances.reverse();
            turned.commitments.rotate_left(by_commitments);
            allocate(&mut straight);
            allocate(&mut turned);
            proptest::prop_assert_eq!(covered(&straight), covered(&turned));
            for (n, units) in units.iter().enumerate() {
                let id = format!("c{n}");
                proptest::prop_assert_eq!(used(&straight, &id), used(&turned, &id));
                proptest::prop_assert!(used(&straight, &id) <= Some(*units));
            }
            let total: u32 = units.iter().sum();
            let given: u32 = straight
                .instances
                .iter()
                .filter(|i| i.billing.mode == BillingMode::Reserved)
                .filter_map(|i| i.accelerators.count)
                .map(|count| whole(count.get()))
                .sum();
            proptest::prop_assert!(given <= total);
        }
    }
}
