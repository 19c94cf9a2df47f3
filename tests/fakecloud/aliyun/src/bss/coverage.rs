//! What commitments paid for, by day and instance.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::{DEFAULT_PAGE, MAX_PAGE, success};
use crate::error::ApiError;
use crate::page::by_token;
use crate::params::Params;
use crate::rows::spoilt;
use crate::service::Call;
use crate::world::{Covered, Instance};

/// By the hours of reserved instances.
pub(super) fn of_reserved_instances(call: &Call<'_>) -> Result<Value, ApiError> {
    if !matches!(call.params.required("ResourceType")?, "RI" | "SCU") {
        return Err(ApiError::invalid("ResourceType"));
    }
    let is_reserved = call.params.get("ResourceType") == Some("RI");
    listing(call, "NextToken", |covered| {
        let share = covered.by_reserved_instances.filter(|_| is_reserved)?;
        let spec = &covered.instance.spec;
        Some(json!({
            "InstanceId": covered.instance.id,
            "InstanceSpec": spec.instance_type,
            "ProductCode": "ecs",
            "CommodityCode": "ecs",
            "Region": "华东1（杭州）",
            "RegionNo": covered.instance.region,
            "Zone": covered.instance.zone(),
            "CapacityUnit": "算力*小时",
            "DeductQuantity": 24.0 * share,
            "TotalQuantity": 24.0,
            "CoveragePercentage": share,
            "UserId": covered.instance.account,
        }))
    })
}

/// By the money of savings plans. Its token has another name.
pub(super) fn of_savings_plans(call: &Call<'_>) -> Result<Value, ApiError> {
    listing(call, "Token", |covered| {
        let share = covered.by_savings_plans?;
        Some(json!({
            "InstanceId": covered.instance.id,
            "InstanceSpec": covered.instance.spec.instance_type,
            "Region": "华东1（杭州）",
            "DeductAmount": 12.5 * share,
            "TotalAmount": 12.5,
            "PostpaidCost": 12.5 * (1.0 - share),
            "CoveragePercentage": share,
            "OwnerId": covered.instance.account,
        }))
    })
}

fn listing(call: &Call<'_>, token: &str, row: impl Fn(&Covered<'_>) -> Option<Value>) -> Result<Value, ApiError> {
    let params = call.params;
    let period = Period::of(params)?;
    let size = params.number("MaxResults", MAX_PAGE)?.unwrap_or(DEFAULT_PAGE);
    let inner = call.world.read();
    let covered = inner.covered(call.account());
    let mut rows: Vec<(&str, Value)> = covered
        .iter()
        .filter(|covered| period.had(covered.instance))
        .filter_map(|covered| Some((covered.instance.id.as_str(), period.put(row(covered)?, token))))
        .collect();
    rows.sort_by_key(|(id, _)| *id);
    let total = rows.len();
    let page = by_token(
        rows.into_iter(),
        size,
        params.given(token),
        &call.token_scope(),
        call.alteration,
    )?;
    let rows = spoilt(
        page.rows,
        call.alteration,
        "InstanceId",
        &["CommodityCode", "ProductCode"],
    );
    Ok(success(&json!({
        "TotalCount": total,
        "MaxResults": size,
        "NextToken": page.next.unwrap_or_default(),
        "Items": inner.bill_items(&rows),
    })))
}

/// The time that is asked about, in the zone of the bill.
struct Period {
    start: DateTime,
    end: DateTime,
}

impl Period {
    fn of(params: &Params) -> Result<Self, ApiError> {
        if !matches!(params.required("PeriodType")?, "HOUR" | "DAY" | "MONTH") {
            return Err(ApiError::invalid("PeriodType"));
        }
        let read =
            |name: &str, text: &str| DateTime::strptime("%Y-%m-%d %H:%M:%S", text).map_err(|_| ApiError::invalid(name));
        let start = read("StartPeriod", params.required("StartPeriod")?)?;
        let end = match params.given("EndPeriod") {
            Some(text) => read("EndPeriod", text)?,
            None => start.saturating_add(1.day()),
        };
        if end <= start {
            return Err(ApiError::invalid("EndPeriod"));
        }
        Ok(Self { start, end })
    }

    /// Whether the instance was there at any time of it.
    fn had(&self, instance: &Instance) -> bool {
        let end = Offset::constant(8).to_timestamp(self.end).unwrap_or(Timestamp::MAX);
        instance.created < end
    }

    fn put(&self, mut row: Value, token: &str) -> Value {
        let (start, end) = if token == "Token" {
            ("StartPeriod", "EndPeriod")
        } else {
            ("StartTime", "EndTime")
        };
        for (name, time) in [(start, self.start), (end, self.end)] {
            crate::rows::set(&mut row, name, time.strftime("%Y-%m-%d %H:%M:%S").to_string());
        }
        row
    }
}
