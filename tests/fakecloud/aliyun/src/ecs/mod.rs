//! ECS: regions, instances, types, and what was bought ahead.

mod instance_types;
mod instances;
mod pools;
mod regions;
mod renewal;
mod reserved;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::page::NumberedPage;
use crate::request::Product;
use crate::service::Call;
use crate::world::PoolKind;

/// The largest page of every listing.
const MAX_PAGE: usize = 100;
/// The page of callers that do not ask for a size.
const DEFAULT_PAGE: usize = 10;

pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    match call.action {
        "DescribeRegions" => {
            call.authorize(Product::Ecs)?;
            Ok(regions::describe(call))
        }
        // A caller without the permission gets an empty list.
        "DescribeInstances" => {
            in_region(call)?;
            instances::describe(call)
        }
        "DescribeInstanceTypes" => {
            call.authorize(Product::Ecs)?;
            instance_types::describe(call)
        }
        "DescribeReservedInstances" => regional(call, reserved::describe),
        "DescribeInstanceAutoRenewAttribute" => regional(call, renewal::describe),
        "DescribeElasticityAssurances" => regional(call, |call| pools::describe(call, PoolKind::ElasticityAssurance)),
        "DescribeCapacityReservations" => regional(call, |call| pools::describe(call, PoolKind::CapacityReservation)),
        "DescribeZones" => regional(call, |call| Ok(regions::zones(call))),
        other => Err(ApiError::unknown_action(other)),
    }
}

/// An action that is about one region and refused in words.
fn regional(call: &Call<'_>, describe: impl Fn(&Call<'_>) -> Result<Value, ApiError>) -> Result<Value, ApiError> {
    in_region(call)?;
    call.authorize(Product::Ecs)?;
    describe(call)
}

/// Whether the region exists for the caller, and at this endpoint.
fn in_region(call: &Call<'_>) -> Result<(), ApiError> {
    let region = call.params.required("RegionId")?;
    let inner = call.world.read();
    if !inner.sees_id(call.account(), region) {
        return Err(ApiError::region_not_found(region));
    }
    let other = inner.regions().iter().any(|known| known.endpoint() == call.host)
        && !inner
            .regions()
            .iter()
            .any(|known| known.id == region && known.endpoint() == call.host);
    if other {
        let message = "The specified endpoint cannot operate this region.";
        return Err(ApiError::new("InvalidOperation.NotSupportedEndpoint", 404, message));
    }
    Ok(())
}

/// The times of ECS have no seconds.
fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

/// The answer of a listing by numbered pages.
fn numbered<T>(page: &NumberedPage<T>, name: &str, rows: &Value) -> Value {
    json!({
        "PageNumber": page.number,
        "PageSize": page.size,
        "TotalCount": page.total,
        name: rows,
    })
}
