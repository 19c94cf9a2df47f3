//! The Compute provider: machines, scale sets, SKUs, capacity reservations.

use serde_json::{Value, json};

use crate::error::ArmError;
use crate::rows::{self, View};
use crate::world::{CapacitySpec, Subscription, capacity_id};

/// All machines: the model, or their state of running.
pub(crate) fn machines(subscription: &Subscription, status_only: bool) -> Vec<Value> {
    let view = if status_only { View::Status } else { View::Model };
    let machines = subscription.machines.iter();
    machines
        .map(|machine| rows::machine(&subscription.id, machine, view))
        .collect()
}

/// All scale sets.
pub(crate) fn scale_sets(subscription: &Subscription) -> Vec<Value> {
    subscription
        .sets
        .iter()
        .map(|set| rows::scale_set(subscription, set))
        .collect()
}

/// The members of a set, with their state when it is asked for.
pub(crate) fn members(subscription: &Subscription, set: &str, with_state: bool) -> Result<Vec<Value>, ArmError> {
    let found = subscription
        .sets
        .iter()
        .find(|other| other.name.eq_ignore_ascii_case(set));
    let set = found.ok_or_else(|| ArmError::not_found(set))?;
    if set.flexible {
        // Its members are machines, and have names in place of numbers.
        return Err(ArmError::new(
            400,
            "InvalidParameter",
            "The value of parameter instanceId is invalid.",
        ));
    }
    let view = if with_state { View::Status } else { View::Model };
    Ok(rows::members(subscription, set, view))
}

/// All groups of capacity reservations.
pub(crate) fn capacity_groups(subscription: &Subscription) -> Vec<Value> {
    let groups = subscription.capacity.iter();
    groups.map(|capacity| group(subscription, capacity, false)).collect()
}

/// One group, with the use of its reservations.
pub(crate) fn capacity_group(subscription: &Subscription, name: &str) -> Result<Value, ArmError> {
    Ok(group(subscription, find(subscription, name)?, true))
}

/// The reservations of a group.
pub(crate) fn capacity_members(subscription: &Subscription, group: &str) -> Result<Vec<Value>, ArmError> {
    let capacity = find(subscription, group)?;
    Ok(vec![json!({
        "id": member_id(subscription, capacity),
        "name": capacity.name,
        "location": capacity.location,
        "sku": {"name": capacity.size, "capacity": capacity.capacity},
        "properties": {"provisioningState": "Succeeded", "timeCreated": "2026-01-01T00:00:00Z"},
    })])
}

fn find<'a>(subscription: &'a Subscription, name: &str) -> Result<&'a CapacitySpec, ArmError> {
    let mut all = subscription.capacity.iter();
    all.find(|capacity| capacity.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| ArmError::not_found(name))
}

fn group(subscription: &Subscription, capacity: &CapacitySpec, with_use: bool) -> Value {
    let mut group = json!({
        "id": capacity_id(&subscription.id, &capacity.group, &capacity.name),
        "name": capacity.name,
        "location": capacity.location,
        "properties": {"capacityReservations": [{"id": member_id(subscription, capacity)}]},
    });
    if with_use {
        let machines: Vec<Value> = (0..capacity.allocated)
            .map(|n| json!({"id": format!("/vm/{n}")}))
            .collect();
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
