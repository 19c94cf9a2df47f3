//! `DescribeReservedInstances`.

use serde_json::{Value, json};

use super::{DEFAULT_PAGE, MAX_PAGE, minute, numbered};
use crate::error::ApiError;
use crate::page::by_number;
use crate::rows::spoilt;
use crate::service::Call;
use crate::types;
use crate::world::{ReservedInstance, zone_id};

pub(super) fn describe(call: &Call<'_>) -> Result<Value, ApiError> {
    let params = call.params;
    let statuses = params.list("Status");
    let ids = params.list("ReservedInstanceId");
    let shared = match params.given("AllocationType") {
        None | Some("Normal") => false,
        Some("Shared") => true,
        Some(_) => return Err(ApiError::invalid("AllocationType")),
    };
    let inner = call.world.read();
    let region = inner.region(call.account(), call.region);
    let found: Vec<&ReservedInstance> = region
        .iter()
        .flat_map(|region| &region.reserved)
        // None of another account is shared with this one.
        .filter(|_| !shared)
        .filter(|bought| statuses.is_empty() || statuses.contains(&bought.spec.status.as_str()))
        .filter(|bought| ids.is_empty() || ids.contains(&bought.id.as_str()))
        .filter(|bought| {
            let family = params.given("InstanceTypeFamily");
            family.is_none_or(|family| family == types::family_of(&bought.spec.instance_type))
        })
        .collect();
    let names = ("PageNumber", "PageSize");
    let page = by_number(found, params, names, (DEFAULT_PAGE, MAX_PAGE), call.alteration)?;
    let rows = page.rows.iter().map(|bought| row(bought, call.region)).collect();
    let rows = spoilt(
        rows,
        call.alteration,
        "ReservedInstanceId",
        &["OfferingType", "AllocationStatus"],
    );
    Ok(numbered(
        &page,
        "ReservedInstances",
        &json!({ "ReservedInstance": rows }),
    ))
}

fn row(bought: &ReservedInstance, region: &str) -> Value {
    let spec = &bought.spec;
    json!({
        "ReservedInstanceId": bought.id,
        "ReservedInstanceName": spec.name,
        "RegionId": region,
        "ZoneId": spec.zone.map(|zone| zone_id(region, zone)).unwrap_or_default(),
        "Scope": if spec.zone.is_some() { "Zone" } else { "Region" },
        "InstanceType": spec.instance_type,
        "InstanceAmount": spec.amount,
        "OfferingType": spec.offering_type,
        "Platform": spec.platform,
        "Status": spec.status,
        "AllocationStatus": "unallocated",
        "CreationTime": minute(bought.start),
        "StartTime": minute(bought.start),
        "ExpiredTime": minute(bought.end),
        "OperationLocks": {"OperationLock": []},
        "Tags": {"Tag": []},
    })
}
