//! Machines and sets as the services show them.

use gpuwatch_fakecloud_core::random::fnv1a;
use serde_json::{Value, json};

use crate::world::{MachineSpec, ScaleSetSpec, Subscription, capacity_id, machine_id, set_id};

/// What of a machine is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The model, without any state of running.
    Model,
    /// Identity and state, and nothing else.
    Status,
    /// As Resource Graph keeps it: the model with the power state.
    Graph,
}

fn text(value: &str) -> Value {
    if value.is_empty() { Value::Null } else { json!(value) }
}

/// Nulls are left out, as the services do.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn statuses(power: &str) -> Value {
    let mut statuses = vec![json!({"code": "ProvisioningState/succeeded", "level": "Info"})];
    if !power.is_empty() {
        statuses.push(json!({"code": format!("PowerState/{power}"), "level": "Info"}));
    }
    json!(statuses)
}

fn extended(power: &str) -> Value {
    let code = if power.is_empty() {
        String::new()
    } else {
        format!("PowerState/{power}")
    };
    json!({"instanceView": {"powerState": {"code": code, "displayStatus": power, "level": "Info"}}})
}

/// A machine.
pub(crate) fn machine(subscription: &str, machine: &MachineSpec, view: View) -> Value {
    let id = machine_id(subscription, machine);
    let reference = |id: Option<String>| id.map(|id| json!({ "id": id }));
    let set = (!machine.set.is_empty()).then(|| set_id(subscription, &machine.group, &machine.set));
    let capacity = (!machine.capacity.is_empty()).then(|| capacity_id(subscription, &machine.group, &machine.capacity));
    let host = machine.on_host.then(|| format!("{id}/hosts/h1"));
    let mut row = json!({
        "id": id,
        "name": machine.name,
        "type": "Microsoft.Compute/virtualMachines",
        "location": machine.location,
        "subscriptionId": subscription,
        "resourceGroup": machine.group.to_lowercase(),
        "properties": {
            "vmId": format!("{:016x}", fnv1a(id.as_bytes())),
            "provisioningState": "Succeeded",
            "timeCreated": machine.created.to_string(),
        },
    });
    if view != View::Status {
        row["tags"] = json!(machine.tags);
        row["zones"] = if machine.zone.is_empty() {
            Value::Null
        } else {
            json!([machine.zone])
        };
        let properties = json!({
            "hardwareProfile": {"vmSize": machine.size},
            "priority": text(&machine.priority),
            "host": reference(host),
            "virtualMachineScaleSet": reference(set),
            "capacityReservation": capacity.map(|id| json!({"capacityReservationGroup": {"id": id}})),
            "storageProfile": {"osDisk": {"osType": "Linux"}},
            "osProfile": (!machine.computer_name.is_empty()).then(|| json!({"computerName": machine.computer_name})),
        });
        merge(&mut row["properties"], properties);
    }
    match view {
        View::Model => {}
        View::Status => row["properties"]["instanceView"] = json!({"statuses": statuses(&machine.power)}),
        View::Graph => row["properties"]["extended"] = extended(&machine.power),
    }
    without_nulls(row)
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// A scale set.
pub(crate) fn scale_set(subscription: &Subscription, set: &ScaleSetSpec) -> Value {
    let capacity = if set.flexible {
        subscription
            .machines
            .iter()
            .filter(|machine| machine.set == set.name)
            .count()
    } else {
        set.members.len()
    };
    without_nulls(json!({
        "id": set_id(&subscription.id, &set.group, &set.name),
        "name": set.name,
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "location": set.location,
        "subscriptionId": subscription.id,
        "tags": set.tags,
        "sku": {"name": set.size, "tier": "Standard", "capacity": capacity},
        "properties": {
            "orchestrationMode": if set.flexible { "Flexible" } else { "Uniform" },
            "provisioningState": "Succeeded",
            "virtualMachineProfile": {"priority": text(&set.priority)},
        },
    }))
}

/// The members of a uniform set.
pub(crate) fn members(subscription: &Subscription, set: &ScaleSetSpec, view: View) -> Vec<Value> {
    let base = set_id(&subscription.id, &set.group, &set.name);
    let member = |(number, (power, created)): (usize, &(String, jiff::Timestamp))| {
        let mut row = json!({
            "id": format!("{base}/virtualMachines/{number}"),
            "name": format!("{}_{number}", set.name),
            "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "location": set.location,
            "subscriptionId": subscription.id,
            "instanceId": number.to_string(),
            "sku": {"name": set.size, "tier": "Standard"},
            "properties": {
                "provisioningState": "Succeeded",
                "timeCreated": created.to_string(),
                "osProfile": {"computerName": format!("{}{number:06}", set.name)},
            },
        });
        match view {
            View::Graph => row["properties"]["extended"] = extended(power),
            View::Status => row["properties"]["instanceView"] = json!({"statuses": statuses(power)}),
            View::Model => {}
        }
        row
    };
    set.members.iter().enumerate().map(member).collect()
}
