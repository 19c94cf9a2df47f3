//! Machines and sets as the services show them.

use gpuwatch_fakecloud_core::random::fnv1a;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::spec::{MachineSpec, ScaleSet, capacity_id, host_id, machine_id, set_id};
use crate::world::Subscription;

/// What of a machine is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The model, without any state of running.
    Model,
    /// Identity and state, and nothing else.
    Status,
    /// The model with the state.
    Expanded,
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

/// A time with all its digits and an offset, as the services write it.
fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.7f+00:00").to_string()
}

/// An id with its resource group in capitals: the same id does not have the
/// same case wherever it comes from.
pub(crate) fn in_capitals(id: &str) -> String {
    let mut parts = id.split('/').map(str::to_owned).collect::<Vec<_>>();
    if let Some(group) = parts.get_mut(4) {
        *group = group.to_uppercase();
    }
    parts.join("/")
}

fn statuses(power: &str, hibernated: bool) -> Value {
    let mut statuses = vec![json!({"code": "ProvisioningState/succeeded", "level": "Info"})];
    if hibernated {
        statuses.push(json!({"code": "HibernationState/Hibernated", "level": "Info"}));
    }
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
    let capacity = (!machine.capacity.is_empty())
        .then(|| in_capitals(&capacity_id(subscription, &machine.group, &machine.capacity)));
    let host = machine.on_host.then(|| host_id(subscription, machine));
    let mut row = json!({
        "id": if view == View::Status { in_capitals(&id) } else { id.clone() },
        "name": machine.name,
        "type": "Microsoft.Compute/virtualMachines",
        "location": machine.location,
        "subscriptionId": subscription,
        "resourceGroup": machine.group.to_lowercase(),
        "properties": {
            "vmId": format!("{:016x}", fnv1a(id.as_bytes())),
            "provisioningState": "Succeeded",
            "timeCreated": time(machine.created),
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
        View::Status | View::Expanded => {
            row["properties"]["instanceView"] = json!({"statuses": statuses(machine.power(), machine.hibernated)});
        }
        View::Graph => row["properties"]["extended"] = extended(machine.power()),
    }
    without_nulls(row)
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// A scale set.
pub(crate) fn scale_set(subscription: &Subscription, set: &ScaleSet) -> Value {
    let (set, variety) = (&set.spec, &set.variety);
    let capacity = if set.flexible {
        subscription
            .machines
            .iter()
            .filter(|machine| machine.refers(&machine.set, &set.group, &set.name))
            .count()
    } else {
        set.members.len()
    };
    let is_mixed = !variety.mixed_sizes.is_empty();
    let sizes: Vec<Value> = variety.mixed_sizes.iter().map(|name| json!({ "name": name })).collect();
    without_nulls(json!({
        "id": set_id(&subscription.id, &set.group, &set.name),
        "name": set.name,
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "location": set.location,
        "subscriptionId": subscription.id,
        "resourceGroup": set.group.to_lowercase(),
        "tags": set.tags,
        "zones": (!variety.zones.is_empty()).then_some(&variety.zones),
        "sku": {"name": if is_mixed { "Mix" } else { &set.size }, "tier": "Standard", "capacity": capacity},
        "properties": {
            "orchestrationMode": if set.flexible { "Flexible" } else { "Uniform" },
            "provisioningState": "Succeeded",
            "virtualMachineProfile": {"priority": text(&set.priority)},
            "skuProfile": is_mixed.then(|| json!({"vmSizes": sizes, "allocationStrategy": "LowestPrice"})),
            "priorityMixPolicy": variety.priority_mix.map(|(base, percentage)| json!({
                "baseRegularPriorityCount": base,
                "regularPriorityPercentageAboveBase": percentage,
            })),
        },
    }))
}

/// The member of this number of a uniform set.
pub(crate) fn member(subscription: &Subscription, varied: &ScaleSet, number: usize, view: View) -> Value {
    let set = &varied.spec;
    let base = in_capitals(&set_id(&subscription.id, &set.group, &set.name));
    let (size, zone) = (varied.size_of(number), varied.zone_of(number));
    let Some((power, created)) = set.members.get(number) else {
        return Value::Null;
    };
    let mut row = json!({
        "id": format!("{base}/virtualMachines/{number}"),
        "name": format!("{}_{number}", set.name),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": set.location,
        "subscriptionId": subscription.id,
        "resourceGroup": set.group.to_lowercase(),
        "instanceId": number.to_string(),
        "sku": {"name": size, "tier": "Standard"},
        "tags": set.tags,
        "zones": Some(zone).filter(|zone| !zone.is_empty()).map(|zone| [zone]),
        "properties": {
            "provisioningState": "Succeeded",
            "timeCreated": time(*created),
            "osProfile": {"computerName": format!("{}{number:06}", set.name)},
        },
    });
    match view {
        View::Graph => row["properties"]["extended"] = extended(power),
        View::Status | View::Expanded => {
            row["properties"]["instanceView"] = json!({"statuses": statuses(power, false)});
        }
        View::Model => {}
    }
    without_nulls(row)
}
