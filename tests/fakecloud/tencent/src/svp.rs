//! Savings plans and what they paid for.

use jiff::{Timestamp, ToSpan as _, civil::Date, tz};
use serde_json::{Value, json};

use crate::actions::Asked;
use crate::error::ApiError;
use crate::world::{Account, PlanSpec};

/// Billing days begin and end in Beijing.
const BEIJING: tz::Offset = tz::Offset::constant(8);

/// Answers a call about savings plans.
pub(crate) fn answer(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let (from, to) = days(asked.body)?;
    for name in ["Offset", "Limit"] {
        if asked.body[name].is_null() {
            return Err(ApiError::new(
                "MissingParameter",
                format!("The request is missing {name}."),
            ));
        }
    }
    match asked.operation {
        "DescribeSavingPlanOverview" => {
            let bought = |plan: &&PlanSpec| (from..=to).contains(&date(plan.starts));
            let rows = account.plans.iter().filter(bought).map(|plan| {
                json!({
                    "SpId": plan.id, "SpType": "计算型", "PromiseAmount": "12.5", "Status": plan.status,
                    "Region": ["全部"], "PayType": 3, "PayAmount": "0", "SavingAmount": "-",
                    "StartTime": time(plan.starts), "BuyTime": time(plan.starts), "EndTime": time(plan.expires),
                })
            });
            asked.list("Overviews", "Total", rows.collect(), 200)
        }
        "DescribeSavingPlanCoverage" => {
            if asked.body["PeriodType"].as_u64().is_none_or(|kind| kind != 1) {
                return Err(ApiError::new("InvalidParameterValue", "PeriodType is not 1."));
            }
            asked.list("DetailSet", "TotalCount", coverage(account, from, to), 200)
        }
        _ => Err(ApiError::new("InvalidAction", "The action is not there.")),
    }
}

/// Two items of every machine and day: its cores, which plans may pay for,
/// and its disk, which they never do.
fn coverage(account: &Account, from: Date, to: Date) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut day = from;
    while day <= to {
        for machine in &account.machines {
            let Some(covered) = machine.plan_coverage else { continue };
            for (item, covered) in [("CPU/内存", covered), ("云硬盘", 0.0)] {
                rows.push(json!({
                    "ResourceId": machine.id, "ProductCode": "p_cvm", "SubProductCode": "sp_cvm_gn7",
                    "RegionId": 1, "StartDate": day.to_string(), "EndDate": day.to_string(),
                    "BillingItemName": item, "SubBillingItemName": item, "SpCoverage": covered,
                    "SpCoveredAmount": covered, "SpUncoveredAmount": 100.0 - covered, "TotalRealAmount": 100.0,
                }));
            }
        }
        day = day.saturating_add(1.day());
    }
    rows
}

/// First and last day asked for: written out, in order, half a year at most.
fn days(body: &Value) -> Result<(Date, Date), ApiError> {
    let day = |name: &str| -> Result<Date, ApiError> {
        let text = body[name].as_str().unwrap_or_default();
        let plain = text.len() == 10;
        text.parse()
            .ok()
            .filter(|_| plain)
            .ok_or_else(|| ApiError::new("InvalidParameterValue", format!("{name} is not a date.")))
    };
    let (from, to) = (day("StartDate")?, day("EndDate")?);
    if to < from || from.saturating_add(6.months()) < to {
        return Err(ApiError::new(
            "InvalidParameterValue",
            "The dates are not in order or more than six months apart.",
        ));
    }
    Ok((from, to))
}

fn date(time: Timestamp) -> Date {
    BEIJING.to_datetime(time).date()
}

fn time(time: Timestamp) -> String {
    BEIJING.to_datetime(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
