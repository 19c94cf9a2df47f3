//! Machines, their types, dedicated hosts and reserved instances.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::actions::Asked;
use crate::error::ApiError;
use crate::filters::Filters;
use crate::world::{Account, MachineSpec, Site, gpus_of, types};

/// Values of one filter of `DescribeInstances`, and ids of one call.
const INSTANCE_FILTER_VALUES: usize = 5;
const INSTANCE_IDS: usize = 100;

/// Filters of `DescribeInstances` on both sites. There is none of a type.
const INSTANCE_FILTERS: [&str; 13] = [
    "zone",
    "project-id",
    "host-id",
    "vpc-id",
    "subnet-id",
    "instance-id",
    "security-group-id",
    "instance-name",
    "instance-charge-type",
    "private-ip-address",
    "public-ip-address",
    "tag-key",
    "tag-value",
];

/// Those of the China site only.
const CHINA_FILTERS: [&str; 4] = ["dedicated-cluster-id", "uuid", "instance-state", "ipv6-address"];

const TYPE_FILTERS: [&str; 5] = [
    "zone",
    "instance-family",
    "instance-type",
    "instance-charge-type",
    "sort-keys",
];

/// Answers a call of CVM.
pub(crate) fn answer(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    match asked.operation {
        "DescribeInstances" => instances(account, asked),
        "DescribeZones" => Ok(zones(account, asked)),
        "DescribeZoneInstanceConfigInfos" => {
            let filters = Filters::read(asked.body, 100, |name| TYPE_FILTERS.contains(&name))?;
            let rows: Vec<Value> = known_types(&filters).map(|kind| zone_config(asked, kind)).collect();
            Ok(json!({"InstanceTypeQuotaSet": rows}))
        }
        "DescribeInstanceTypeConfigs" => {
            let filters = Filters::read(asked.body, 1, |name| TYPE_FILTERS[..3].contains(&name))?;
            let rows: Vec<Value> = known_types(&filters).map(|kind| type_config(asked, kind)).collect();
            Ok(json!({"InstanceTypeConfigSet": rows}))
        }
        "DescribeHosts" => hosts(account, asked),
        "DescribeReservedInstances" => reserved(account, asked),
        _ => Err(ApiError::new("InvalidAction", "The action is not there.")),
    }
}

fn instances(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let filters = Filters::read(asked.body, INSTANCE_FILTER_VALUES, |name| {
        INSTANCE_FILTERS.contains(&name)
            || name.starts_with("tag:")
            || (asked.site == Site::China && CHINA_FILTERS.contains(&name))
    })?;
    let ids = asked.body["InstanceIds"].as_array();
    if ids.is_some() && !asked.body["Filters"].is_null() {
        return Err(ApiError::new(
            "InvalidParameter.AtMostOne",
            "InstanceIds and Filters exclude each other.",
        ));
    }
    if ids.is_some_and(|ids| ids.len() > INSTANCE_IDS) {
        return Err(ApiError::new(
            "InvalidParameterValue.LimitExceeded",
            format!("At most {INSTANCE_IDS} instance ids."),
        ));
    }
    let is_asked = |machine: &MachineSpec| {
        ids.is_none_or(|ids| ids.iter().any(|id| id.as_str() == Some(&machine.id)))
            && filters.pass(|name| filtered_by(machine, name))
    };
    let machines = account
        .machines
        .iter()
        .filter(|machine| asked.is_here(&machine.region) && is_asked(machine));
    let mut rows: Vec<Value> = machines.map(instance).collect();
    if asked.alteration == Some(FaultKind::UnknownEnum) {
        for row in rows.iter_mut().take(2) {
            row["NewField"] = json!({"of": "the future"});
            row["RestrictState"] = json!("CONTEMPLATING");
        }
    }
    asked.list("InstanceSet", "TotalCount", rows, 100)
}

/// What a filter compares; `None` for what machines here do not have.
fn filtered_by<'a>(machine: &'a MachineSpec, name: &str) -> Option<&'a str> {
    match name {
        "zone" => Some(&machine.zone),
        "project-id" => Some("0"),
        "host-id" => Some(&machine.host),
        "instance-id" => Some(&machine.id),
        "instance-name" => Some(&machine.name),
        "instance-charge-type" => Some(&machine.charge_type),
        "instance-state" => Some(&machine.state),
        "private-ip-address" => Some("10.0.0.2"),
        "tag-key" => machine.tags.keys().next().map(String::as_str),
        "tag-value" => machine.tags.values().next().map(String::as_str),
        _ => machine.tags.get(name.strip_prefix("tag:")?).map(String::as_str),
    }
}

/// The zones that machines are in, one that is closed, and the usual one.
fn zones(account: &Account, asked: &Asked<'_>) -> Value {
    let machines = account.machines.iter().filter(|machine| asked.is_here(&machine.region));
    let mut names: Vec<String> = machines.map(|machine| machine.zone.clone()).collect();
    names.extend([format!("{}-6", asked.region), format!("{}-1", asked.region)]);
    names.sort();
    names.dedup();
    let rows: Vec<Value> = names
        .iter()
        .map(|zone| {
            let state = if zone.ends_with("-1") {
                "UNAVAILABLE"
            } else {
                "AVAILABLE"
            };
            json!({"Zone": zone, "ZoneName": zone, "ZoneId": "100006", "ZoneState": state})
        })
        .collect();
    json!({"TotalCount": rows.len(), "ZoneSet": rows})
}

fn hosts(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let rows = account
        .hosts
        .iter()
        .filter(|host| asked.is_here(&host.region))
        .map(|host| {
            let guests = account.machines.iter().filter(|machine| machine.host == host.id);
            let guests: Vec<&str> = guests.map(|machine| machine.id.as_str()).collect();
            json!({
                "HostId": host.id, "HostName": host.id, "HostType": host.host_type, "HostChargeType": "PREPAID",
                "HostState": host.state, "Placement": {"Zone": host.zone}, "CreatedTime": "2026-01-01T00:00:00Z",
                "ExpiredTime": host.expires.to_string(), "InstanceIds": guests,
                "HostResource": {"GpuTotal": host.gpus, "GpuAvailable": host.free},
            })
        });
    asked.list("HostSet", "TotalCount", rows.collect(), 100)
}

fn reserved(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let reserved = account
        .reserved
        .iter()
        .filter(|reserved| asked.is_here(&reserved.region));
    let rows = reserved.map(|reserved| {
        json!({
            "ReservedInstanceId": reserved.id, "InstanceType": reserved.instance_type, "Zone": reserved.zone,
            "InstanceCount": reserved.count, "State": reserved.state, "CurrencyCode": "USD",
            "OfferingType": "All Upfront", "StartTime": "2026-01-01T00:00:00Z",
            "EndTime": reserved.expires.to_string(), "ProductDescription": "linux",
        })
    });
    asked.list("ReservedInstancesSet", "TotalCount", rows.collect(), 100)
}

/// Null for an empty text.
pub(crate) fn text(value: &str) -> Value {
    if value.is_empty() { Value::Null } else { json!(value) }
}

fn instance(machine: &MachineSpec) -> Value {
    let (gpus, model) = gpus_of(&machine.instance_type);
    let stated = machine.states_gpus && gpus > 0.0;
    let tags: Vec<Value> = machine
        .tags
        .iter()
        .map(|(key, value)| json!({"Key": key, "Value": value}))
        .collect();
    let isolated = machine.state == "SHUTDOWN";
    json!({
        "InstanceId": machine.id,
        "InstanceName": machine.name,
        "InstanceType": machine.instance_type,
        "CPU": 10,
        "Memory": 40,
        "InstanceState": machine.state,
        "RestrictState": if isolated { "PROTECTIVELY_ISOLATED" } else { "NORMAL" },
        "IsolatedSource": if isolated { "ARREAR" } else { "NOTISOLATED" },
        "StopChargingMode": machine.stop_mode,
        "InstanceChargeType": text(&machine.charge_type),
        "RenewFlag": text(&machine.renew_flag),
        "CreatedTime": machine.created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "ExpiredTime": machine.expires.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()),
        "Placement": {"Zone": machine.zone, "ProjectId": 0, "HostId": machine.host},
        "GPUInfo": if stated { json!({"GPUCount": gpus, "GPUType": model, "GPUId": ["0000:00:08.0"]}) } else { Value::Null },
        "PrivateIpAddresses": ["10.0.0.2"],
        "PublicIpAddresses": null,
        "OsName": "TencentOS Server 3.1 (TK4)",
        "Tags": tags,
        "HpcClusterId": "",
        "DedicatedClusterId": "",
        "LatestOperation": null,
    })
}

type TypeRow = (&'static str, f64, &'static str);

fn known_types(filters: &Filters<'_>) -> impl Iterator<Item = TypeRow> {
    types().filter(move |(name, _, _)| {
        filters.pass(|filter| match filter {
            "instance-type" => Some(*name),
            "instance-family" => name.split('.').next(),
            _ => None,
        })
    })
}

/// Whole cards, as the old field states them.
fn whole(gpus: f64) -> f64 {
    if gpus >= 1.0 { gpus } else { 0.0 }
}

fn zone_config(asked: &Asked<'_>, (name, gpus, model): TypeRow) -> Value {
    let remark = if gpus >= 1.0 {
        format!("{gpus} * {model}")
    } else {
        String::new()
    };
    json!({
        "Zone": format!("{}-6", asked.region), "InstanceType": name, "InstanceChargeType": "POSTPAID_BY_HOUR",
        "Gpu": whole(gpus), "GpuCount": gpus, "Remark": remark, "Status": "SELL",
    })
}

fn type_config(asked: &Asked<'_>, (name, gpus, model): TypeRow) -> Value {
    json!({
        "Zone": format!("{}-6", asked.region), "InstanceType": name, "GPU": whole(gpus),
        "GpuCount": gpus, "GpuType": model, "GpuMemory": if model.contains("X900") { 192.0 } else { 0.0 },
    })
}
