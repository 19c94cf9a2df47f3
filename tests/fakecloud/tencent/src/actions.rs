//! What the products answer.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::page::page;
use crate::world::{Account, Inner, MachineSpec, Site, gpus_of, types};

/// What a call is about.
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'a str,
    pub(crate) region: &'a str,
    pub(crate) body: &'a Value,
    pub(crate) alteration: Option<FaultKind>,
}

/// Services by action: which product it is of, its version, and whether it
/// needs a region.
pub(crate) fn product(operation: &str, version: &str) -> Option<(&'static str, bool)> {
    Some(match (operation, version) {
        ("GetCallerIdentity" | "AssumeRole" | "AssumeRoleWithWebIdentity", "2018-08-13") => ("sts", false),
        ("DescribeRegions", "2022-06-27") => ("region", false),
        ("DescribeRegions", "2017-03-12") => ("cvm", false),
        (
            "DescribeInstances"
            | "DescribeZones"
            | "DescribeZoneInstanceConfigInfos"
            | "DescribeInstanceTypeConfigs"
            | "DescribeHosts"
            | "DescribeReservedInstances",
            "2017-03-12",
        ) => ("cvm", true),
        ("DescribeClusters" | "DescribeEKSContainerInstances" | "DescribeReservedInstances", "2018-05-25")
        | ("DescribeClusterInstances", "2022-05-01") => ("tke", true),
        ("DescribeSavingPlanOverview" | "DescribeSavingPlanCoverage", "2024-01-25") => ("svp", false),
        _ => return None,
    })
}

/// Whether an action is there on a site.
pub(crate) fn is_on(site: Site, service: &str, operation: &str) -> bool {
    match (service, operation) {
        ("cvm", "DescribeReservedInstances") => site == Site::International,
        ("svp", _) | ("cvm", "DescribeInstanceTypeConfigs") => site == Site::China,
        _ => true,
    }
}

/// The answer of a call that lists or describes something.
pub(crate) fn answer(inner: &Inner, account: &Account, service: &str, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let listing = |name: &str, total: &str, rows: Vec<Value>, largest: u64| {
        let (rows, count) = page(rows, asked.body, largest, asked.alteration)?;
        Ok(json!({name: rows, total: count}))
    };
    let here = |region: &str| region == asked.region;
    match (service, asked.operation) {
        (_, "DescribeRegions") => {
            let rows: Vec<Value> = inner
                .regions
                .iter()
                .map(|region| json!({"Region": region, "RegionName": region, "RegionState": "AVAILABLE"}))
                .chain([json!({"Region": "ap-chengdu", "RegionName": "closed", "RegionState": "UNAVAILABLE"})])
                .collect();
            Ok(json!({"TotalCount": rows.len(), "RegionSet": rows}))
        }
        ("cvm", "DescribeZones") => Ok(json!({"TotalCount": 1, "ZoneSet": [
            {"Zone": format!("{}-6", asked.region), "ZoneState": "AVAILABLE"}]})),
        ("cvm", "DescribeInstances") => {
            let machines = account.machines.iter().filter(|machine| here(&machine.region));
            let mut rows: Vec<Value> = machines.map(instance).collect();
            if asked.alteration == Some(FaultKind::UnknownEnum) {
                for row in rows.iter_mut().take(2) {
                    row["NewField"] = json!({"of": "the future"});
                    row["RestrictState"] = json!("CONTEMPLATING");
                }
            }
            listing("InstanceSet", "TotalCount", rows, 100)
        }
        ("cvm", "DescribeZoneInstanceConfigInfos") => Ok(json!({"InstanceTypeQuotaSet": zone_configs(asked)})),
        ("cvm", "DescribeInstanceTypeConfigs") => Ok(json!({"InstanceTypeConfigSet": type_configs(asked)})),
        ("cvm", "DescribeHosts") => {
            let hosts = account.hosts.iter().filter(|host| here(&host.region));
            let rows = hosts.map(|host| {
                json!({
                    "HostId": host.id, "HostName": host.id, "HostType": host.host_type, "HostChargeType": "PREPAID",
                    "HostState": "RUNNING", "Placement": {"Zone": host.zone}, "CreatedTime": "2026-01-01T00:00:00Z",
                    "ExpiredTime": host.expires.to_string(), "InstanceIds": [],
                    "HostResource": {"GpuTotal": host.gpus, "GpuAvailable": host.free},
                })
            });
            listing("HostSet", "TotalCount", rows.collect(), 100)
        }
        ("cvm", "DescribeReservedInstances") => {
            let reserved = account.reserved.iter().filter(|reserved| here(&reserved.region));
            let rows = reserved.map(|reserved| {
                json!({
                    "ReservedInstanceId": reserved.id, "InstanceType": reserved.instance_type, "Zone": reserved.zone,
                    "InstanceCount": reserved.count, "State": reserved.state, "CurrencyCode": "USD",
                    "OfferingType": "All Upfront", "StartTime": "2026-01-01T00:00:00Z",
                    "EndTime": reserved.expires.to_string(), "ProductDescription": "linux",
                })
            });
            listing("ReservedInstancesSet", "TotalCount", rows.collect(), 100)
        }
        ("tke", "DescribeClusters") => {
            let rows = clusters(account, asked.region)
                .into_iter()
                .map(|id| json!({"ClusterId": id, "ClusterName": "训练集群", "ClusterType": "MANAGED_CLUSTER"}));
            listing("Clusters", "TotalCount", rows.collect(), 100)
        }
        ("tke", "DescribeClusterInstances") => {
            let cluster = asked.body["ClusterId"].as_str().unwrap_or_default();
            let nodes = account
                .machines
                .iter()
                .filter(|machine| here(&machine.region) && machine.cluster == cluster);
            let rows = nodes.map(|node| {
                json!({"InstanceId": node.id, "NodeType": "Regular", "InstanceState": "running", "NodePoolId": "np-gpu"})
            });
            listing("InstanceSet", "TotalCount", rows.collect(), 100)
        }
        ("tke", "DescribeEKSContainerInstances") => listing("EksCis", "TotalCount", Vec::new(), 100),
        ("tke", "DescribeReservedInstances") => listing("ReservedInstanceSet", "TotalCount", Vec::new(), 100),
        ("svp", "DescribeSavingPlanOverview") => {
            let rows = account.plans.iter().map(|plan| {
                json!({
                    "SpId": plan.id, "SpType": "计算型", "PromiseAmount": "12.5", "Status": 1, "Region": ["全部"],
                    "StartTime": "2026-01-01 00:00:00",
                    "EndTime": plan.expires.strftime("%Y-%m-%d %H:%M:%S").to_string(),
                })
            });
            listing("Overviews", "Total", rows.collect(), 200)
        }
        ("svp", "DescribeSavingPlanCoverage") => listing("DetailSet", "TotalCount", Vec::new(), 200),
        _ => Err(ApiError::new("InvalidAction", "The action is not there.")),
    }
}

fn clusters(account: &Account, region: &str) -> Vec<String> {
    let nodes = account
        .machines
        .iter()
        .filter(|machine| machine.region == region && !machine.cluster.is_empty());
    let mut ids: Vec<String> = nodes.map(|machine| machine.cluster.clone()).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn text(value: &str) -> Value {
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
    json!({
        "InstanceId": machine.id,
        "InstanceName": machine.name,
        "InstanceType": machine.instance_type,
        "InstanceState": machine.state,
        "RestrictState": "NORMAL",
        "StopChargingMode": machine.stop_mode,
        "InstanceChargeType": text(&machine.charge_type),
        "RenewFlag": if machine.charge_type == "PREPAID" { json!("NOTIFY_AND_AUTO_RENEW") } else { Value::Null },
        "CreatedTime": machine.created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "ExpiredTime": machine.expires.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()),
        "Placement": {"Zone": machine.zone, "ProjectId": 0, "HostId": ""},
        "GPUInfo": if stated { json!({"GPUCount": gpus, "GPUType": model, "GPUId": ["0000:00:08.0"]}) } else { Value::Null },
        "PrivateIpAddresses": ["10.0.0.2"],
        "PublicIpAddresses": null,
        "Tags": tags,
    })
}

/// Values of the filter of this name; `None` without one.
fn filtered<'a>(asked: &'a Asked<'_>, name: &str) -> Option<Vec<&'a str>> {
    let filters = asked.body["Filters"].as_array()?;
    let filter = filters.iter().find(|filter| filter["Name"].as_str() == Some(name))?;
    Some(filter["Values"].as_array()?.iter().filter_map(Value::as_str).collect())
}

fn known_types<'a>(asked: &'a Asked<'_>) -> impl Iterator<Item = (&'static str, f64, &'static str)> + use<'a> {
    let wanted: Option<Vec<String>> =
        filtered(asked, "instance-type").map(|names| names.into_iter().map(str::to_owned).collect());
    types().filter(move |(name, _, _)| {
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|other| other == name))
    })
}

fn zone_configs(asked: &Asked<'_>) -> Vec<Value> {
    let row = |(name, gpus, model): (&str, f64, &str)| {
        let remark = if gpus >= 1.0 {
            format!("{gpus} * {model}")
        } else {
            String::new()
        };
        json!({
            "Zone": format!("{}-6", asked.region), "InstanceType": name, "InstanceChargeType": "POSTPAID_BY_HOUR",
            "Gpu": if gpus >= 1.0 { gpus } else { 0.0 }, "GpuCount": gpus, "Remark": remark, "Status": "SELL",
        })
    };
    known_types(asked).map(row).collect()
}

fn type_configs(asked: &Asked<'_>) -> Vec<Value> {
    let row = |(name, gpus, model): (&str, f64, &str)| {
        json!({
            "Zone": format!("{}-6", asked.region), "InstanceType": name, "GPU": if gpus >= 1.0 { gpus } else { 0.0 },
            "GpuCount": gpus, "GpuType": model, "GpuMemory": if model.contains("X900") { 192.0 } else { 0.0 },
        })
    };
    known_types(asked).map(row).collect()
}
