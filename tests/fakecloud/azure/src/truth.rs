//! What a correct observer must report, worked out from the world itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
use jiff::Timestamp;

use crate::compute::{member_id, used as used_places};
use crate::sizes::{Gpus, gpus};
use crate::spec::{ReservationSpec, machine_id, set_id};
use crate::world::{Inner, World};

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

/// Mode and detail. A priority that nobody knows is its own detail.
fn billing(priority: &str, on_host: bool) -> (&'static str, &'static str) {
    match priority {
        "Spot" | "Low" => ("spot", ""),
        "SpotPlus" => ("spot", "spot_plus"),
        "" | "Regular" if on_host => ("on_demand", "dedicated_host"),
        "" | "Regular" => ("on_demand", ""),
        other => ("unknown", lasting(other)),
    }
}

/// A word for as long as the process runs; they are few.
fn lasting(word: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(word) {
        return known;
    }
    let word: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.insert(word);
    word
}

impl World {
    /// Every accelerator machine, by account, region and id.
    #[must_use]
    pub fn truth(&self) -> Vec<InstanceTruth> {
        let inner = self.read();
        let mut truth = machines(&inner);
        let covered: BTreeSet<String> = allocate(&inner, &truth).0.into_iter().collect();
        for row in truth.iter_mut().filter(|row| covered.contains(&row.id)) {
            (row.billing_mode, row.billing_detail) = ("reserved", "reservation");
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
        let active = active(&inner);
        let mut truth: Vec<CommitmentTruth> = active
            .into_iter()
            .zip(used)
            .map(|((id, spec), used)| CommitmentTruth {
                account: spec.billed_to.to_lowercase(),
                region: spec.location.clone(),
                id: id.to_lowercase(),
                kind: "reservation",
                instance_type: spec.size.clone(),
                units: Some(spec.quantity),
                used,
            })
            .collect();
        let plans = inner.plans.iter().filter(|(_, spec)| spec.expires > Timestamp::now());
        let plans = plans.filter(|_| inner.allows("Microsoft.BillingBenefits/savingsPlans/read"));
        truth.extend(plans.map(|(id, spec)| CommitmentTruth {
            account: spec.billed_to.to_lowercase(),
            region: "global".to_owned(),
            id: id.to_lowercase(),
            kind: "savings_plan",
            instance_type: String::new(),
            units: None,
            used: None,
        }));
        for subscription in inner.subscriptions.values().filter(|s| s.is_polled()) {
            let held = subscription.capacity.iter().filter(|capacity| has_gpus(&capacity.size));
            truth.extend(held.map(|capacity| CommitmentTruth {
                account: subscription.id.to_lowercase(),
                region: capacity.location.clone(),
                id: member_id(subscription, capacity).to_lowercase(),
                kind: "capacity_reservation",
                instance_type: capacity.size.clone(),
                units: Some(capacity.capacity),
                used: Some(used_places(subscription, capacity)),
            }));
        }
        truth
    }
}

/// Units in use of each active reservation of which that is known, by id.
pub(crate) fn used_units(inner: &Inner) -> Vec<(String, u32)> {
    let used = allocate(inner, &machines(inner)).1;
    let all = active(inner).into_iter().zip(used);
    all.filter_map(|((id, _), used)| Some((id.clone(), used?))).collect()
}

fn machines(inner: &Inner) -> Vec<InstanceTruth> {
    let mut truth = Vec::new();
    for subscription in inner.subscriptions.values().filter(|s| s.is_polled()) {
        let with_skus = subscription.allows("Microsoft.Compute/skus/read");
        let row = |id: String, name: &str, location: &str, zone: &str, size: &str, power: &str, created: Timestamp| {
            let gpus = gpus(size, with_skus);
            (gpus != Gpus::Absent).then(|| InstanceTruth {
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
                gpus: gpus.count(),
                launched: created,
            })
        };
        for machine in &subscription.machines {
            let id = machine_id(&subscription.id, machine);
            let (mode, detail) = billing(&machine.priority, machine.on_host);
            let m = machine;
            truth.extend(
                row(id, &m.name, &m.location, &m.zone, &m.size, m.power(), m.created).map(|row| InstanceTruth {
                    billing_mode: mode,
                    billing_detail: detail,
                    ..row
                }),
            );
        }
        for varied in subscription.sets.iter().filter(|set| !set.spec.flexible) {
            let set = &varied.spec;
            let (mode, detail) = billing(&set.priority, false);
            let base = set_id(&subscription.id, &set.group, &set.name);
            for (number, (power, created)) in set.members.iter().enumerate() {
                let id = format!("{base}/virtualMachines/{number}");
                let name = format!("{}_{number}", set.name);
                let (zone, size) = (varied.zone_of(number), varied.size_of(number));
                let found = row(id, &name, &set.location, zone, size, power, *created);
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

fn has_gpus(size: &str) -> bool {
    gpus(size, true) != Gpus::Absent
}

/// The reservations that pay for something now, unless nobody can see them.
fn active(inner: &Inner) -> Vec<&(String, ReservationSpec)> {
    let visible = inner.allows("Microsoft.Capacity/reservationOrders/reservations/read");
    let all = inner.reservations.iter().filter(|_| visible);
    all.filter(|(_, spec)| spec.state == "Succeeded" && spec.expires > Timestamp::now() && has_gpus(&spec.size))
        .collect()
}

/// Where a reservation applies, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Group,
    Subscription,
    Shared,
}

fn reach(spec: &ReservationSpec) -> Reach {
    let scope = spec.applies_to.to_lowercase();
    match scope.contains("/resourcegroups/") {
        true => Reach::Group,
        false if scope.is_empty() => Reach::Shared,
        false => Reach::Subscription,
    }
}

/// Whether the machines in a reservation's reach can all be seen.
fn is_in_sight(inner: &Inner, spec: &ReservationSpec) -> bool {
    let scope = spec.applies_to.to_lowercase();
    let mut polled = inner.subscriptions.values().filter(|s| s.is_polled());
    scope.is_empty() || polled.any(|s| scope.split('/').any(|part| part.eq_ignore_ascii_case(&s.id)))
}

/// Which machines reservations pay for, and how many units of each (active)
/// reservation are used: those bound to a single scope before the shared ones,
/// a resource group's before a subscription's, then by id; machines from the
/// oldest on.
fn allocate(inner: &Inner, truth: &[InstanceTruth]) -> (Vec<String>, Vec<Option<u32>>) {
    let active = active(inner);
    let mut order: Vec<usize> = (0..active.len()).collect();
    order.sort_by_key(|at| active.get(*at).map(|(id, spec)| (reach(spec), id.to_lowercase())));
    let mut machines: Vec<&InstanceTruth> = truth
        .iter()
        .filter(|row| (row.state, row.billing_mode, row.billing_detail) == ("running", "on_demand", ""))
        .collect();
    machines.sort_by(|a, b| (a.launched, &a.id).cmp(&(b.launched, &b.id)));
    // By region and size.
    let mut left: BTreeMap<(&str, String), Vec<&InstanceTruth>> = BTreeMap::new();
    for row in machines {
        let kind = (row.region.as_str(), row.instance_type.to_lowercase());
        left.entry(kind).or_default().push(row);
    }
    let mut covered = Vec::new();
    let mut used = vec![None; active.len()];
    for at in order {
        let (Some((_, spec)), Some(used)) = (active.get(at), used.get_mut(at)) else {
            continue;
        };
        if !is_in_sight(inner, spec) {
            continue;
        }
        let mut scope = spec.applies_to.trim_end_matches('/').to_lowercase();
        if !scope.is_empty() {
            scope.push('/');
        }
        let mut count = 0;
        if let Some(rows) = left.get_mut(&(spec.location.as_str(), spec.size.to_lowercase())) {
            rows.retain(|row| {
                let pays = count < spec.quantity && row.id.starts_with(&scope);
                if pays {
                    count += 1;
                    covered.push(row.id.clone());
                }
                !pays
            });
        }
        *used = Some(count);
    }
    (covered, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::MachineSpec;

    const OWN: &str = "s1";
    const SIZE: &str = "Standard_NC24ads_A100_v4";

    fn machine(name: &str, group: &str, day: i64) -> MachineSpec {
        MachineSpec {
            name: name.to_owned(),
            group: group.to_owned(),
            size: SIZE.to_owned(),
            created: Timestamp::from_second(day * 86_400).expect("a time"),
            ..MachineSpec::default()
        }
    }

    fn reservation(quantity: u32, applies_to: &str) -> ReservationSpec {
        ReservationSpec {
            location: "eastus".to_owned(),
            size: SIZE.to_uppercase(),
            quantity,
            applies_to: applies_to.to_owned(),
            billed_to: OWN.to_owned(),
            state: "Succeeded".to_owned(),
            expires: Timestamp::MAX,
        }
    }

    fn world() -> World {
        let world = World::empty();
        world.add_subscription(OWN, "corp");
        for (name, group, day) in [("a", "rg-1", 1), ("b", "rg-1", 2), ("c", "rg-2", 3), ("d", "rg-2", 4)] {
            world.add_machine(OWN, machine(name, group, day));
        }
        world
    }

    fn covered(world: &World) -> Vec<String> {
        let rows = world.truth().into_iter().filter(|row| row.billing_mode == "reserved");
        rows.map(|row| row.name).collect()
    }

    fn used(world: &World, id: &str) -> Option<u32> {
        let bought = world.commitments();
        let found = bought.iter().find(|bought| bought.id == id.to_lowercase());
        found.expect("it is active").used
    }

    // P28
    #[test]
    fn the_narrowest_reservation_is_used_first() {
        let world = world();
        let shared = world.add_reservation(reservation(2, ""));
        let subscription = world.add_reservation(reservation(1, "/subscriptions/S1"));
        let group = world.add_reservation(reservation(2, "/subscriptions/s1/resourceGroups/RG-1"));
        assert_eq!(covered(&world), ["a", "b", "c", "d"]);
        // The group's takes a and b; the oldest left is the subscription's.
        for (id, units) in [(group, 2), (subscription, 1), (shared, 1)] {
            assert_eq!(used(&world, &id), Some(units), "{id}");
        }
    }

    #[test]
    fn ended_reservations_pay_for_nothing_and_those_out_of_sight_are_unknown() {
        let world = world();
        world.add_reservation(ReservationSpec {
            expires: Timestamp::UNIX_EPOCH,
            ..reservation(4, "")
        });
        assert!(world.commitments().is_empty() && covered(&world).is_empty());
        let elsewhere = world.add_reservation(reservation(4, "/subscriptions/s9"));
        assert_eq!((used(&world, &elsewhere), covered(&world).len()), (None, 0));
    }

    // P24
    #[test]
    fn a_priority_that_nobody_knows_is_its_own_detail() {
        let world = World::empty();
        world.add_subscription(OWN, "corp");
        for (priority, mode, detail) in [
            ("", "on_demand", ""),
            ("Spot", "spot", ""),
            ("Barter", "unknown", "Barter"),
            ("Lease", "unknown", "Lease"),
        ] {
            world.add_machine(
                OWN,
                MachineSpec {
                    priority: priority.to_owned(),
                    ..machine("vm", "rg", 1)
                },
            );
            let row = world.truth().remove(0);
            assert_eq!((row.billing_mode, row.billing_detail), (mode, detail));
            world.remove_machine(OWN, "vm");
        }
    }

    #[test]
    fn without_the_list_of_skus_a_new_size_has_no_known_number() {
        let world = World::empty();
        world.add_subscription(OWN, "corp");
        world.add_machine(
            OWN,
            MachineSpec {
                size: crate::sizes::FUTURE_SIZE.0.to_owned(),
                ..machine("vm", "rg", 1)
            },
        );
        assert_eq!(world.truth().remove(0).gpus, Some(8.0));
        world.deny(OWN, "Microsoft.Compute/skus/read");
        assert_eq!(world.truth().remove(0).gpus, None);
    }
}
