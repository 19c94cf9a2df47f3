//! BSS, the billing product: savings plans, and what commitments paid for.

mod coverage;

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::page::by_number;
use crate::request::Product;
use crate::rows::spoilt;
use crate::service::Call;
use crate::world::{SavingsPlan, Site};

const DEFAULT_PAGE: usize = 20;
const MAX_PAGE: usize = 300;

pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    let (site, wrong_site, refusal) = call.world.billing_state(call.account());
    let other_host = [Site::China, Site::International]
        .into_iter()
        .any(|other| other != site && call.host == other.billing_host());
    if wrong_site || other_host {
        return Err(ApiError::wrong_site());
    }
    call.authorize(Product::Bss)?;
    if let Some(code) = refusal {
        return Err(ApiError::inside_success(&code));
    }
    match call.action {
        "QuerySavingsPlansInstance" => savings_plans(call, site),
        "DescribeResourceCoverageDetail" => coverage::of_reserved_instances(call),
        "DescribeSavingsPlansCoverageDetail" => coverage::of_savings_plans(call),
        "QueryAccountBalance" => Ok(success(&json!({
            "AvailableAmount": "1,204,567.89",
            "AvailableCashAmount": "1,204,567.89",
            "CreditAmount": "0.00",
            "Currency": site.currency(),
        }))),
        other => Err(ApiError::unknown_action(other)),
    }
}

fn savings_plans(call: &Call<'_>, site: Site) -> Result<Value, ApiError> {
    let inner = call.world.read();
    let status = call.params.given("Status");
    let id = call.params.given("InstanceId");
    let plans: Vec<&SavingsPlan> = inner
        .savings_plans(call.account())
        .iter()
        .filter(|plan| status.is_none_or(|status| plan.spec.status == status))
        .filter(|plan| id.is_none_or(|id| plan.id == id))
        .collect();
    let names = ("PageNum", "PageSize");
    let page = by_number(plans, call.params, names, (DEFAULT_PAGE, MAX_PAGE), call.alteration)?;
    let rows = page.rows.iter().map(|plan| row(plan, site)).collect();
    let rows = spoilt(rows, call.alteration, "InstanceId", &["SavingsType", "DeductCycleType"]);
    Ok(success(&json!({
        "PageNum": page.number,
        "PageSize": page.size,
        "TotalCount": page.total,
        "Items": inner.bill_items(&rows),
    })))
}

/// Numbers are texts in this answer.
fn row(plan: &SavingsPlan, site: Site) -> Value {
    let spec = &plan.spec;
    let time = |time: jiff::Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    json!({
        "InstanceId": plan.id,
        "SavingsType": spec.savings_type,
        "InstanceFamily": spec.instance_family,
        "Region": spec.region,
        "PoolValue": spec.pool_value,
        "PrepayFee": "0",
        "Currency": site.currency(),
        "DeductCycleType": "HOUR",
        "PayMode": spec.pay_mode,
        "Status": spec.status,
        "AllocationStatus": "unallocated",
        "Utilization": "0.87",
        "LastBillUtilization": "0.9",
        "LastBillTotalUsage": "12.1",
        "TotalSave": "1024.5",
        "StartTime": time(plan.start),
        "EndTime": time(plan.end),
        "StartTimestamp": plan.start.as_millisecond(),
        "EndTimestamp": plan.end.as_millisecond(),
        "Tags": [],
    })
}

fn success(data: &Value) -> Value {
    json!({"Success": true, "Code": "Success", "Message": "Successful!", "Data": data})
}
