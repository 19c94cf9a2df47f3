//! `DescribeInstances`.

use gpuwatch_fakecloud_core::random::fnv1a;
use serde_json::{Value, json};

use super::{DEFAULT_PAGE, MAX_PAGE, minute};
use crate::error::ApiError;
use crate::page::{by_number, by_token};
use crate::params::Params;
use crate::request::Product;
use crate::rows::{set, spoilt, tags};
use crate::service::Call;
use crate::types;
use crate::world::{Charge, Instance, Status};

/// The date that pay-as-you-go instances bear as their end.
const FAR_FUTURE: &str = "2099-12-31T15:59Z";

/// Filters by tag find at most so many resources.
const MAX_TAGGED: usize = 1000;

const STATUSES: &[&str] = &["Pending", "Running", "Starting", "Stopping", "Stopped"];

pub(super) fn describe(call: &Call<'_>) -> Result<Value, ApiError> {
    let filter = Filter::of(call.params)?;
    let size = page_size(call.params)?;
    if call.params.boolean("DryRun")? {
        return Err(if call.is_denied(Product::Ecs) {
            call.denial(Product::Ecs)
        } else {
            ApiError::dry_run()
        });
    }
    let inner = call.world.read();
    // Without the permission the list is empty, and nothing says so.
    let region = inner
        .region(call.account(), call.region)
        .filter(|_| !call.is_denied(Product::Ecs));
    let found: Vec<(&str, &Instance)> = region
        .iter()
        .flat_map(|region| &region.instances)
        .filter(|(_, instance)| filter.passes(instance))
        .map(|(id, instance)| (id.as_str(), instance))
        .collect();
    if !filter.tags.is_empty() && found.len() > MAX_TAGGED {
        let message = "The number of resources that have the specified tags exceeds the limit.";
        return Err(ApiError::new("InvalidParameter.TagFilterResourceLimit", 400, message));
    }
    let mut body = json!({});
    let by_numbers = call.params.given("MaxResults").is_none() && call.params.given("NextToken").is_none();
    let rows = if by_numbers {
        let names = ("PageNumber", "PageSize");
        let page = by_number(found, call.params, names, (DEFAULT_PAGE, MAX_PAGE), call.alteration)?;
        set(&mut body, "TotalCount", page.total);
        set(&mut body, "PageNumber", page.number);
        set(&mut body, "PageSize", page.size);
        page.rows.into_iter().map(|(_, instance)| instance).collect()
    } else {
        let token = call.params.given("NextToken");
        let page = by_token(found.into_iter(), size, token, &call.token_scope(), call.alteration)?;
        // Of no meaning with tokens.
        set(&mut body, "TotalCount", 0);
        set(&mut body, "NextToken", page.next.unwrap_or_default());
        page.rows
    };
    let rows = rows.into_iter().map(row).collect();
    let rows = spoilt(rows, call.alteration, "InstanceId", &["Status", "InstanceChargeType"]);
    set(&mut body, "Instances", json!({ "Instance": rows }));
    Ok(body)
}

/// Sizes below the default are raised to it; those above the limit are refused.
fn page_size(params: &Params) -> Result<usize, ApiError> {
    let asked = params.number("MaxResults", MAX_PAGE)?;
    Ok(asked.unwrap_or(DEFAULT_PAGE).max(DEFAULT_PAGE))
}

struct Filter<'a> {
    ids: Option<Vec<String>>,
    tags: Vec<(&'a str, Option<&'a str>)>,
    params: &'a Params,
}

impl<'a> Filter<'a> {
    fn of(params: &'a Params) -> Result<Self, ApiError> {
        let ids = params.json_list("InstanceIds")?;
        if ids.as_ref().is_some_and(|ids| ids.len() > MAX_PAGE) {
            return Err(ApiError::invalid("InstanceIds"));
        }
        if params.given("Status").is_some_and(|status| !STATUSES.contains(&status)) {
            return Err(ApiError::invalid("Status"));
        }
        Ok(Self {
            ids,
            tags: params.tags(),
            params,
        })
    }

    fn passes(&self, instance: &Instance) -> bool {
        let spec = &instance.spec;
        let equals = |name: &str, value: &str| self.params.given(name).is_none_or(|wanted| wanted == value);
        let tagged = self.tags.iter().all(|(key, wanted)| {
            let tag = spec.tags.iter().find(|(name, _)| name == key);
            tag.is_some_and(|(_, value)| wanted.is_none_or(|wanted| wanted == value))
        });
        self.ids.as_ref().is_none_or(|ids| ids.contains(&instance.id))
            && tagged
            && equals("Status", spec.status.as_str())
            && equals("InstanceType", &spec.instance_type)
            && equals("InstanceTypeFamily", &types::family_of(&spec.instance_type))
            && equals("InstanceChargeType", spec.charge.charge_type())
            && equals("InstanceName", &spec.name)
            && equals("ZoneId", &instance.zone())
    }
}

fn row(instance: &Instance) -> Value {
    let spec = &instance.spec;
    let facts = types::instance_type(&spec.instance_type);
    let digits = format!("{:016x}", fnv1a(instance.id.as_bytes()));
    let stopped_mode = match spec.status {
        Status::Stopped => spec.stopped_mode.as_str(),
        _ => "Not-applicable",
    };
    let mut row = json!({
        "InstanceId": instance.id,
        "InstanceName": spec.name,
        "HostName": format!("iZ{digits}Z"),
        "RegionId": instance.region,
        "ZoneId": instance.zone(),
        "InstanceType": spec.instance_type,
        "InstanceTypeFamily": types::family_of(&spec.instance_type),
        "Status": spec.status.as_str(),
        "StoppedMode": stopped_mode,
        "InstanceChargeType": spec.charge.charge_type(),
        "SpotStrategy": spec.charge.spot_strategy(),
        "SpotDuration": i32::from(spec.charge.spot_strategy() != "NoSpot"),
        "SpotPriceLimit": if spec.charge == Charge::SpotWithPriceLimit { 9.5 } else { 0.0 },
        "CreationTime": minute(instance.created),
        "StartTime": minute(instance.created),
        "ExpiredTime": if spec.charge == Charge::PrePaid { minute(instance.expires) } else { FAR_FUTURE.to_owned() },
        "AutoReleaseTime": "",
        "OSType": spec.os_type,
        "OSName": "Ubuntu 22.04 64位",
        "OSNameEn": "Ubuntu 22.04 64 bit",
        "ImageId": "ubuntu_22_04_x64_20G_alibase_20250101.vhd",
        "InstanceNetworkType": "vpc",
        "InternetChargeType": "PayByTraffic",
        "InternetMaxBandwidthIn": 0,
        "InternetMaxBandwidthOut": 0,
        "IoOptimized": true,
        "DeviceAvailable": true,
        "DeletionProtection": false,
        "Recyclable": spec.locks.iter().any(|lock| lock == "Recycling"),
        "SerialNumber": digits,
        "OperationLocks": {"LockReason": spec.locks.iter().map(|lock| json!({"LockReason": lock})).collect::<Vec<_>>()},
    });
    set(&mut row, "Cpu", facts.map_or(64, |facts| facts.vcpus));
    // MiB here, GiB in the type API.
    set(
        &mut row,
        "Memory",
        facts.map_or(262_144, |facts| whole(facts.memory_gib * 1024.0)),
    );
    for (name, value) in network(instance, &digits) {
        set(&mut row, name, value);
    }
    // Absent without tags, as the real answer has it.
    if !spec.tags.is_empty() {
        set(&mut row, "Tags", tags(&spec.tags));
    }
    set_gpus(&mut row, instance);
    row
}

/// Addresses and places.
fn network(instance: &Instance, digits: &str) -> Vec<(&'static str, Value)> {
    let spec = &instance.spec;
    let host = spec.dedicated_host.clone().unwrap_or_default();
    let pool = spec.private_pool.clone().unwrap_or_default();
    vec![
        ("SecurityGroupIds", json!({"SecurityGroupId": ["sg-bp1fakecloud"]})),
        ("InnerIpAddress", json!({"IpAddress": []})),
        ("PublicIpAddress", json!({"IpAddress": []})),
        (
            "EipAddress",
            json!({"AllocationId": "", "IpAddress": "", "InternetChargeType": ""}),
        ),
        (
            "VpcAttributes",
            json!({
                "VpcId": "vpc-bp1fakecloud",
                "VSwitchId": "vsw-bp1fakecloud",
                "NatIpAddress": "",
                "PrivateIpAddress": {"IpAddress": [instance.private_ip]},
            }),
        ),
        (
            "NetworkInterfaces",
            json!({"NetworkInterface": [{
                "NetworkInterfaceId": format!("eni-{digits}"),
                "Type": "Primary",
                "MacAddress": "00:16:3e:00:00:01",
                "PrimaryIpAddress": instance.private_ip,
            }]}),
        ),
        (
            "DedicatedHostAttribute",
            json!({"DedicatedHostId": host, "DedicatedHostName": ""}),
        ),
        ("DedicatedInstanceAttribute", json!({"Tenancy": "", "Affinity": ""})),
        (
            "EcsCapacityReservationAttr",
            json!({"CapacityReservationId": pool, "CapacityReservationPreference": ""}),
        ),
    ]
}

fn set_gpus(row: &mut Value, instance: &Instance) {
    let spec = &instance.spec;
    if spec.hide_gpus {
        return;
    }
    let facts = types::instance_type(&spec.instance_type);
    if let Some((amount, model)) = &spec.stated_gpus {
        set(row, "GPUAmount", *amount);
        set(row, "GPUSpec", model.as_str());
    } else if let Some(facts) = facts {
        set(row, "GPUAmount", facts.gpu_amount);
        set(row, "GPUSpec", facts.gpu_spec.as_str());
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "sizes of memory in MiB, from this crate's own table"
)]
fn whole(number: f64) -> i64 {
    number as i64
}
