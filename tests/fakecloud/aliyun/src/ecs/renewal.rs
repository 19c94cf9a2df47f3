//! `DescribeInstanceAutoRenewAttribute`.

use serde_json::{Value, json};

use super::{DEFAULT_PAGE, MAX_PAGE, numbered};
use crate::error::ApiError;
use crate::page::by_number;
use crate::rows::spoilt;
use crate::service::Call;
use crate::world::{Charge, Instance, Renewal};

pub(super) fn describe(call: &Call<'_>) -> Result<Value, ApiError> {
    let params = call.params;
    let ids: Vec<&str> = params
        .given("InstanceId")
        .map(|ids| ids.split(',').collect())
        .unwrap_or_default();
    let status = params.given("RenewalStatus");
    if ids.is_empty() && status.is_none() {
        return Err(ApiError::missing("InstanceId"));
    }
    if ids.len() > MAX_PAGE {
        return Err(ApiError::invalid("InstanceId"));
    }
    let inner = call.world.read();
    let instances = inner
        .region(call.account(), call.region)
        .map(|region| &region.instances);
    for id in &ids {
        let known = instances.and_then(|instances| instances.get(*id));
        let instance = known.filter(|instance| !instance.spec.listed_only).ok_or_else(|| {
            ApiError::new(
                "InvalidInstanceId.NotFound",
                404,
                "The specified InstanceId does not exist.",
            )
        })?;
        // One wrong instance fails the call for all of them.
        if instance.spec.charge != Charge::PrePaid {
            let message = "The instance charge type does not support this operation.";
            return Err(ApiError::new("InvalidInstanceChargeType.NotSupported", 403, message));
        }
    }
    let found: Vec<&Instance> = instances
        .iter()
        .flat_map(|instances| instances.values())
        .filter(|instance| instance.spec.charge == Charge::PrePaid && !instance.spec.listed_only)
        .filter(|instance| ids.is_empty() || ids.contains(&instance.id.as_str()))
        .filter(|instance| status.is_none_or(|status| status == instance.spec.renewal.as_str()))
        .collect();
    let names = ("PageNumber", "PageSize");
    let page = by_number(found, params, names, (DEFAULT_PAGE, MAX_PAGE), call.alteration)?;
    let rows = page.rows.iter().map(|instance| row(instance)).collect();
    let rows = spoilt(rows, call.alteration, "InstanceId", &["RenewalStatus", "PeriodUnit"]);
    let rows = json!({ "InstanceRenewAttribute": rows });
    Ok(numbered(&page, "InstanceRenewAttributes", &rows))
}

fn row(instance: &Instance) -> Value {
    let renewal = instance.spec.renewal;
    let automatic = renewal == Renewal::AutoRenewal;
    json!({
        "InstanceId": instance.id,
        "AutoRenewEnabled": automatic,
        "RenewalStatus": renewal.as_str(),
        "Duration": u32::from(automatic),
        "PeriodUnit": "Month",
    })
}
