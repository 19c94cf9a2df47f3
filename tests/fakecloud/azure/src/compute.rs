//! The Compute provider: machines, scale sets, SKUs, capacity reservations.

use serde_json::{Value, json};

use crate::error::ArmError;
use crate::page::{self, Row};
use crate::rows::{self, View, in_capitals};
use crate::spec::{CapacitySpec, MachineSpec, capacity_id, machine_id, set_id};
use crate::world::Subscription;

/// Where a resource is, below its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) name: String,
}

impl Place {
    fn is(&self, group: &str, name: &str) -> bool {
        self.group.eq_ignore_ascii_case(group) && self.name.eq_ignore_ascii_case(name)
    }
}

/// Machines: all, or those of one flexible scale set by its id.
pub(crate) fn machines<'a>(subscription: &'a Subscription, view: View, set: Option<&str>) -> Vec<Row<'a>> {
    let set = set.map(str::to_lowercase);
    let is_member = |machine: &MachineSpec| {
        let own = set_id(&subscription.id, &machine.group, &machine.set).to_lowercase();
        !machine.set.is_empty() && set.as_ref() == Some(&own)
    };
    let wanted = subscription
        .machines
        .iter()
        .filter(|machine| set.is_none() || is_member(machine));
    page::rows(wanted, move |machine| rows::machine(&subscription.id, machine, view))
}

/// All scale sets.
pub(crate) fn scale_sets(subscription: &Subscription) -> Vec<Row<'_>> {
    page::rows(&subscription.sets, |set| rows::scale_set(subscription, set))
}

/// The members of a set, with their state when it is asked for.
pub(crate) fn members<'a>(
    subscription: &'a Subscription,
    place: &Place,
    with_state: bool,
) -> Result<Vec<Row<'a>>, ArmError> {
    let found = subscription
        .sets
        .iter()
        .find(|set| place.is(&set.spec.group, &set.spec.name));
    let set = found.ok_or_else(|| ArmError::not_found(&place.name))?;
    if set.spec.flexible {
        // Its members are machines, and have names in place of numbers.
        return Err(ArmError::new(
            400,
            "InvalidParameter",
            "The value of parameter instanceId is invalid.",
        ));
    }
    let id = set_id(&subscription.id, &set.spec.group, &set.spec.name);
    if subscription.broken_sets.contains(&id.to_lowercase()) {
        return Err(ArmError::internal());
    }
    let view = if with_state { View::Expanded } else { View::Model };
    let numbers = 0..set.spec.members.len();
    Ok(page::rows(numbers, move |number| {
        rows::member(subscription, set, *number, view)
    }))
}

/// All groups of capacity reservations.
pub(crate) fn capacity_groups(subscription: &Subscription) -> Vec<Row<'_>> {
    page::rows(&subscription.capacity, |capacity| group(subscription, capacity, false))
}

/// One group, with the use of its reservations when it is asked for.
pub(crate) fn capacity_group(subscription: &Subscription, place: &Place, with_use: bool) -> Result<Value, ArmError> {
    Ok(group(subscription, find(subscription, place)?, with_use))
}

/// The reservations of a group.
pub(crate) fn capacity_members<'a>(subscription: &'a Subscription, place: &Place) -> Result<Vec<Row<'a>>, ArmError> {
    let capacity = find(subscription, place)?;
    Ok(page::rows([capacity], |capacity| {
        json!({
            "id": member_id(subscription, capacity),
            "name": capacity.name,
            "location": capacity.location,
            "sku": {"name": capacity.size, "capacity": capacity.capacity},
            "properties": {"provisioningState": "Succeeded", "timeCreated": "2026-01-01T00:00:00Z"},
        })
    }))
}

fn find<'a>(subscription: &'a Subscription, place: &Place) -> Result<&'a CapacitySpec, ArmError> {
    let mut all = subscription.capacity.iter();
    all.find(|capacity| place.is(&capacity.group, &capacity.name))
        .ok_or_else(|| ArmError::not_found(&place.name))
}

/// Ids of the machines that hold a place.
fn holders(subscription: &Subscription, capacity: &CapacitySpec) -> Vec<String> {
    let own = own_holders(subscription, capacity).map(|machine| in_capitals(&machine_id(&subscription.id, machine)));
    let others = (0..capacity.allocated).map(|number| {
        let shared = MachineSpec {
            name: format!("shared-{number}"),
            group: "RG-SHARED".to_owned(),
            ..MachineSpec::default()
        };
        machine_id("ffffffff-0000-4000-8000-000000000001", &shared)
    });
    own.chain(others).collect()
}

fn own_holders<'a>(
    subscription: &'a Subscription,
    capacity: &'a CapacitySpec,
) -> impl Iterator<Item = &'a MachineSpec> {
    let machines = subscription.machines.iter();
    machines
        .filter(|machine| machine.is_allocated() && machine.refers(&machine.capacity, &capacity.group, &capacity.name))
}

/// Places in use.
pub(crate) fn used(subscription: &Subscription, capacity: &CapacitySpec) -> u32 {
    let own = own_holders(subscription, capacity).count();
    u32::try_from(own)
        .unwrap_or(u32::MAX)
        .saturating_add(capacity.allocated)
}

fn group(subscription: &Subscription, capacity: &CapacitySpec, with_use: bool) -> Value {
    let mut group = json!({
        "id": capacity_id(&subscription.id, &capacity.group, &capacity.name),
        "name": capacity.name,
        "location": capacity.location,
        "properties": {"capacityReservations": [{"id": member_id(subscription, capacity)}]},
    });
    if with_use {
        let holders = holders(subscription, capacity);
        let machines: Vec<Value> = holders.iter().map(|id| json!({ "id": id })).collect();
        group["properties"]["instanceView"] = json!({"capacityReservations": [{
            "name": capacity.name,
            "utilizationInfo": {"currentCapacity": capacity.capacity, "virtualMachinesAllocated": machines},
        }]});
    }
    group
}

/// ARM id of the one reservation of a group.
pub(crate) fn member_id(subscription: &Subscription, capacity: &CapacitySpec) -> String {
    format!(
        "{}/capacityReservations/{}",
        capacity_id(&subscription.id, &capacity.group, &capacity.name),
        capacity.name
    )
}
