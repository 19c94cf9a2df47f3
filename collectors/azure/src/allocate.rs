//! Which machines reservations pay for.
//!
//! Billing decides this per hour, and no field of the API says it. A
//! reservation of n is matched to n running machines of its size and region
//! that its scope reaches, the oldest first. The result is labelled estimated
//! and errs to the low side: size flexibility is not followed. Where the
//! machines in a reservation's scope are not all known, how much of it is used
//! stays unknown.

use std::{collections::BTreeMap, sync::Arc};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{Billing, BillingMode, Commitment, CommitmentKind, Instance, Provider, State, Text};

use crate::benefits::{SHARED, subscription_of};

/// Allocates over the whole fleet. The result does not depend on the order of
/// its records. `is_polled` tells of which subscriptions the machines are known.
pub(crate) fn allocate(fleet: &mut Fleet, is_polled: impl Fn(&str) -> bool) {
    // By region and lower-case size.
    let mut free: BTreeMap<(Text, String), Vec<usize>> = BTreeMap::new();
    for (at, instance) in fleet.instances.iter().enumerate().filter(|(_, i)| is_payable(i)) {
        let key = (instance.region.clone(), instance.instance_type.to_lowercase());
        free.entry(key).or_default().push(at);
    }
    for candidates in free.values_mut() {
        candidates.sort_by_key(|at| {
            fleet
                .instances
                .get(*at)
                .map(|i| (i.launched.is_none(), i.launched, i.id.clone()))
        });
    }
    let mut order: Vec<usize> = (0..fleet.commitments.len())
        .filter(|at| fleet.commitments.get(*at).is_some_and(is_reservation))
        .collect();
    // What reaches less comes first, or it would be left without machines.
    order.sort_by_key(|at| {
        let commitment = fleet.commitments.get(*at);
        commitment.map(|c| (std::cmp::Reverse(single_scope(c).map_or(0, str::len)), c.id.clone()))
    });
    for at in order {
        let Some(commitment) = fleet.commitments.get_mut(at) else {
            continue;
        };
        let Some(units) = commitment.units.filter(|_| is_known(commitment, &is_polled)) else {
            continue;
        };
        let key = (commitment.region.clone(), commitment.instance_type.to_lowercase());
        let candidates = free.entry(key).or_default();
        let mut used = 0;
        candidates.retain(|index| {
            let Some(instance) = fleet.instances.get_mut(*index) else {
                return false;
            };
            if used >= units || !reaches(commitment, instance) {
                return true;
            }
            used += 1;
            let instance = Arc::make_mut(instance);
            instance.billing = Billing::estimated(BillingMode::Reserved, "reservation");
            instance.expires = commitment.expires;
            false
        });
        commitment.used_units = Some(used);
    }
}

/// Never spot capacity, never a machine whose host is paid for, and only while
/// it runs.
fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Azure
        && instance.state == State::Running
        && instance.billing.mode == BillingMode::OnDemand
        && instance.billing.detail.is_empty()
}

fn is_reservation(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Azure && commitment.kind == CommitmentKind::Reservation
}

/// The subscription or resource group that a reservation is bound to.
fn single_scope(commitment: &Commitment) -> Option<&str> {
    Some(&*commitment.detail).filter(|detail| detail.starts_with('/'))
}

fn reaches(commitment: &Commitment, instance: &Instance) -> bool {
    match single_scope(commitment) {
        Some(scope) => instance
            .id
            .strip_prefix(scope)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        // Which subscriptions a management group has is not known here.
        None => is_shared(commitment),
    }
}

fn is_shared(commitment: &Commitment) -> bool {
    commitment.detail.eq_ignore_ascii_case(SHARED) || commitment.detail.is_empty()
}

/// Whether the machines that a reservation can pay for are known.
fn is_known(commitment: &Commitment, is_polled: impl Fn(&str) -> bool) -> bool {
    match single_scope(commitment) {
        Some(scope) => subscription_of(scope).is_some_and(|subscription| is_polled(&subscription)),
        // A management group, or a single scope that is not named.
        None => is_shared(commitment),
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::{Account, Interner, Scope, TagRules};
    use gpuwatch_inventory::Accelerators;
    use serde_json::json;

    use super::*;
    use crate::{benefits::blank, vm::Record};

    const SIZE: &str = "Standard_ND96isr_H100_v5";

    fn instance(subscription: &str, name: &str, day: u32, priority: &str, power: &str) -> Arc<Instance> {
        let account = Account {
            id: subscription.into(),
            name: "corp".into(),
        };
        let record: Record = serde_json::from_value(json!({
            "id": format!("/subscriptions/{subscription}/resourceGroups/rg/providers/x/{name}"), "name": name,
            "location": "eastus", "properties": {"hardwareProfile": {"vmSize": SIZE}, "priority": priority,
            "timeCreated": format!("2026-01-{day:02}T00:00:00Z"),
            "extended": {"instanceView": {"powerState": {"code": format!("PowerState/{power}")}}}}}))
        .unwrap();
        Arc::new(record.read(
            &account,
            &TagRules::default(),
            Accelerators::default(),
            &mut Interner::default(),
        ))
    }

    fn reservation(id: &str, units: u32, detail: &str) -> Commitment {
        let scope = Scope {
            provider: Provider::Azure,
            account: Account {
                id: "s1".into(),
                name: "corp".into(),
            },
            region: "eastus".into(),
        };
        Commitment {
            units: Some(units),
            instance_type: SIZE.to_uppercase().as_str().into(),
            detail: detail.into(),
            ..blank(&scope, id)
        }
    }

    fn fleet() -> Fleet {
        Fleet {
            instances: vec![
                instance("s1", "old", 1, "Regular", "running"),
                instance("s1", "new", 2, "Regular", "running"),
                instance("s2", "other", 3, "Regular", "running"),
                instance("s1", "spot", 1, "Spot", "running"),
                instance("s1", "off", 1, "Regular", "deallocated"),
            ],
            commitments: vec![reservation("a", 2, "Shared"), reservation("b", 1, "/subscriptions/s1")],
            coverage: Vec::new(),
        }
    }

    fn covered(fleet: &Fleet) -> Vec<&str> {
        let mut names: Vec<&str> = fleet
            .instances
            .iter()
            .filter(|i| i.billing.mode == BillingMode::Reserved)
            .map(|i| &*i.name)
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_reservation_of_n_marks_exactly_n_machines_in_its_scope() {
        let mut fleet = fleet();
        allocate(&mut fleet, |_| true);
        assert_eq!(covered(&fleet), ["new", "old", "other"]);
        assert_eq!(fleet.commitments[0].used_units, Some(2));
        assert_eq!(fleet.commitments[1].used_units, Some(1));
    }

    #[test]
    fn another_subscriptions_reservation_does_not_reach() {
        let mut fleet = fleet();
        fleet.commitments = vec![reservation("c", 5, "/subscriptions/s3")];
        allocate(&mut fleet, |_| true);
        assert_eq!((covered(&fleet).len(), fleet.commitments[0].used_units), (0, Some(0)));
    }

    #[test]
    fn what_a_scope_out_of_sight_uses_is_unknown() {
        for detail in ["Single", "ManagementGroup", "/subscriptions/s9", "/nonsense"] {
            let mut fleet = fleet();
            fleet.commitments = vec![reservation("c", 5, detail)];
            allocate(&mut fleet, |subscription| subscription != "s9");
            let used = fleet.commitments[0].used_units;
            assert_eq!((covered(&fleet).len(), used), (0, None), "{detail}");
        }
    }

    #[test]
    fn the_order_of_records_does_not_matter() {
        let (mut first, mut second) = (fleet(), fleet());
        second.instances.reverse();
        second.commitments.reverse();
        allocate(&mut first, |_| true);
        allocate(&mut second, |_| true);
        assert_eq!(covered(&first), covered(&second));
    }
}
