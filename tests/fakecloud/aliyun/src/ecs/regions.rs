//! `DescribeRegions` and `DescribeZones`.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::rows::spoilt;
use crate::service::Call;
use crate::world::zone_id;

pub(super) fn describe(call: &Call<'_>) -> Value {
    let english = call
        .params
        .given("AcceptLanguage")
        .is_some_and(|tag| tag.starts_with("en"));
    let inner = call.world.read();
    let visible = inner
        .regions()
        .iter()
        .filter(|region| inner.sees(call.account(), region));
    let mut rows: Vec<Value> = visible
        .map(|region| {
            json!({
                "RegionId": region.id,
                "RegionEndpoint": region.endpoint(),
                "LocalName": region.local_name(english),
                "Status": "available",
            })
        })
        .collect();
    match call.alteration {
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => rows = rows.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        _ => {}
    }
    let rows = spoilt(rows, call.alteration, "RegionId", &["Status", "Status"]);
    json!({"Regions": {"Region": rows}})
}

pub(super) fn zones(call: &Call<'_>) -> Value {
    let rows: Vec<Value> = ['g', 'h', 'i']
        .iter()
        .map(|zone| json!({"ZoneId": zone_id(call.region, *zone), "ZoneType": "AvailabilityZone"}))
        .collect();
    json!({"Zones": {"Zone": rows}})
}
