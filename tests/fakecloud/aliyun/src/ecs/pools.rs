//! Private pools: `DescribeElasticityAssurances` and
//! `DescribeCapacityReservations`.

use serde_json::{Value, json};

use super::{DEFAULT_PAGE, MAX_PAGE, minute};
use crate::error::ApiError;
use crate::page::by_token;
use crate::rows::{set, spoilt};
use crate::service::Call;
use crate::world::{Pool, PoolKind, RegionData, zone_id};

pub(super) fn describe(call: &Call<'_>, kind: PoolKind) -> Result<Value, ApiError> {
    let params = call.params;
    let size = params.number("MaxResults", MAX_PAGE)?.unwrap_or(DEFAULT_PAGE);
    let ids = params.json_list("PrivatePoolOptions.Ids")?;
    let status = params.given("Status");
    let inner = call.world.read();
    let region = inner.region(call.account(), call.region);
    let pools = region
        .iter()
        .flat_map(|region| region.pools.iter().map(|pool| (*region, pool)));
    let mut found: Vec<(&str, (&RegionData, &Pool))> = pools
        .filter(|(_, pool)| pool.spec.kind == kind)
        .filter(|(_, pool)| ids.as_ref().is_none_or(|ids| ids.contains(&pool.id)))
        .filter(|(_, pool)| match status {
            Some("All") => true,
            Some(status) => pool.spec.status == status,
            // Those that are over are shown only to who asks for them.
            None => pool.spec.status != "Released",
        })
        .map(|(region, pool)| (pool.id.as_str(), (region, pool)))
        .collect();
    found.sort_by_key(|(id, _)| *id);
    let total = found.len();
    let token = params.given("NextToken");
    let page = by_token(found.into_iter(), size, token, &call.token_scope(), call.alteration)?;
    let rows = page
        .rows
        .into_iter()
        .map(|(region, pool)| row(call, region, pool))
        .collect();
    let words = ["PrivatePoolOptionsMatchCriteria", "StartTimeType"];
    let rows = spoilt(rows, call.alteration, "PrivatePoolOptionsId", &words);
    let mut body = json!({"MaxResults": size, "TotalCount": total, "NextToken": page.next.unwrap_or_default()});
    match kind {
        PoolKind::ElasticityAssurance => {
            set(
                &mut body,
                "ElasticityAssuranceSet",
                json!({ "ElasticityAssuranceItem": rows }),
            );
        }
        PoolKind::CapacityReservation => {
            set(
                &mut body,
                "CapacityReservationSet",
                json!({ "CapacityReservationItem": rows }),
            );
        }
    }
    Ok(body)
}

fn row(call: &Call<'_>, region: &RegionData, pool: &Pool) -> Value {
    let spec = &pool.spec;
    let used = region.pool_users(pool);
    let mut row = json!({
        "PrivatePoolOptionsId": pool.id,
        "PrivatePoolOptionsName": spec.name,
        "PrivatePoolOptionsMatchCriteria": spec.match_criteria,
        "Description": "",
        "RegionId": call.region,
        "ResourceGroupId": "",
        "InstanceChargeType": "PostPaid",
        "Status": spec.status,
        "StartTime": minute(pool.start),
        "StartTimeType": "Now",
        "EndTime": minute(pool.end),
        "Tags": {"Tag": []},
        "AllocatedResources": {"AllocatedResource": [{
            "InstanceType": spec.instance_type,
            "TotalAmount": spec.total,
            "UsedAmount": used,
            "AvailableAmount": spec.total.saturating_sub(used),
            // The one field of the answer that begins in lower case.
            "zoneId": zone_id(call.region, spec.zone),
        }]},
    });
    match spec.kind {
        PoolKind::ElasticityAssurance => {
            set(&mut row, "PackageType", "ElasticityAssurance");
            set(&mut row, "TotalAssuranceTimes", "Unlimited");
            set(&mut row, "UsedAssuranceTimes", 0);
        }
        PoolKind::CapacityReservation => {
            set(&mut row, "Platform", "linux");
            set(&mut row, "EndTimeType", "Limited");
            set(&mut row, "SavingPlanId", "");
            set(&mut row, "ReservedInstanceId", "");
        }
    }
    row
}
