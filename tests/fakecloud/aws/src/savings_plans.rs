//! Savings Plans: commitments of money and the rates under them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::AwsError;
use super::json::{add_malformed, set};
use super::page::PageRequest;
use super::service::Call;
use super::world::{SavingsPlan, SavingsPlanRate};
use gpuwatch_fakecloud_core::FaultKind;

/// The paths that are this service's operations.
pub(crate) const PATHS: &[&str] = &["DescribeSavingsPlans", "DescribeSavingsPlanRates"];

const MAX_PAGE: usize = 1000;

const STATES: &[&str] = &[
    "payment-pending",
    "payment-failed",
    "active",
    "retired",
    "queued",
    "queued-deleted",
    "pending-return",
    "returned",
];

const PLAN_FILTERS: &[&str] = &[
    "region",
    "ec2-instance-family",
    "instance-family",
    "savings-plan-type",
    "payment-option",
    "commitment",
];

const RATE_FILTERS: &[&str] = &[
    "region",
    "instanceType",
    "productDescription",
    "tenancy",
    "productType",
    "serviceCode",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DescribePlans {
    #[serde(default)]
    savings_plan_arns: Vec<String>,
    #[serde(default)]
    savings_plan_ids: Vec<String>,
    next_token: Option<String>,
    max_results: Option<usize>,
    #[serde(default)]
    states: Vec<String>,
    #[serde(default)]
    filters: Vec<Filter>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DescribeRates {
    savings_plan_id: String,
    #[serde(default)]
    filters: Vec<Filter>,
    next_token: Option<String>,
    max_results: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    name: String,
    #[serde(default)]
    values: Vec<String>,
}

pub(crate) fn answer(call: &Call<'_>, body: &[u8]) -> Result<String, AwsError> {
    if call.operation == "DescribeSavingsPlanRates" {
        rates(call, &parse(body)?)
    } else {
        plans(call, &parse(body)?)
    }
}

fn plans(call: &Call<'_>, request: &DescribePlans) -> Result<String, AwsError> {
    if let Some(state) = request.states.iter().find(|state| !STATES.contains(&state.as_str())) {
        return Err(invalid(&format!("'{state}' is not a savings plan state")));
    }
    let plans = call.world.savings_plans(&call.caller.account);
    check_filters(&request.filters, PLAN_FILTERS)?;
    let rows = plans.iter().filter(|plan| {
        let named = request.savings_plan_ids.is_empty() || request.savings_plan_ids.contains(&plan.id);
        let by_arn = request.savings_plan_arns.is_empty() || request.savings_plan_arns.contains(&plan.arn);
        let in_state = request.states.is_empty() || request.states.contains(&plan.spec.state);
        named && by_arn && in_state && request.filters.iter().all(|filter| plan_passes(plan, filter))
    });
    let rows = rows.map(|plan| (plan.id.as_str(), plan));
    let scope = format!(
        "{:?}{:?}{:?}{:?}",
        request.savings_plan_arns, request.savings_plan_ids, request.states, request.filters
    );
    let paging = paging(call, request.max_results, request.next_token.as_deref(), &scope)?;
    let page = paging.page(rows, call.alteration);
    let rows = spoilt(
        page.rows.iter().map(|plan| plan_row(plan)).collect(),
        call.alteration,
        "savingsPlanId",
        |first| {
            set(first, "savingsPlanType", "foo");
        },
    );
    Ok(document("savingsPlans", &rows, page.next.as_deref(), None))
}

fn rates(call: &Call<'_>, request: &DescribeRates) -> Result<String, AwsError> {
    let plans = call.world.savings_plans(&call.caller.account);
    let plan = plans
        .iter()
        .find(|plan| plan.id == request.savings_plan_id)
        .ok_or_else(|| {
            AwsError::new(
                "ResourceNotFoundException",
                404,
                format!("Savings plan {} not found", request.savings_plan_id),
            )
        })?;
    check_filters(&request.filters, RATE_FILTERS)?;
    let rows = plan.spec.rates.iter();
    let rows = rows.filter(|rate| request.filters.iter().all(|filter| rate_passes(rate, filter)));
    let mut rows: Vec<(String, &SavingsPlanRate)> = rows
        .map(|rate| {
            (
                format!("{}/{}/{}", rate.region, rate.instance_type, rate.product_description),
                rate,
            )
        })
        .collect();
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    let scope = format!("{}{:?}", request.savings_plan_id, request.filters);
    let paging = paging(call, request.max_results, request.next_token.as_deref(), &scope)?;
    let page = paging.page(rows.iter().map(|(key, rate)| (key.as_str(), *rate)), call.alteration);
    let currency = plan.spec.currency.as_str();
    let rows = page.rows.iter().map(|rate| rate_row(rate, currency)).collect();
    let rows = spoilt(rows, call.alteration, "rate", |first| set(first, "unit", "foo"));
    Ok(document("searchResults", &rows, page.next.as_deref(), Some(&plan.id)))
}

fn plan_row(plan: &SavingsPlan) -> Value {
    let spec = &plan.spec;
    let mut row = json!({
        "offeringId": plan.offering_id,
        "savingsPlanId": plan.id,
        "savingsPlanArn": plan.arn,
        "description": spec.description(),
        "start": plan.start.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
        "end": plan.end.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
        "state": spec.state,
        "savingsPlanType": spec.plan_type,
        "paymentOption": spec.payment_option,
        "productTypes": spec.product_types(),
        "currency": spec.currency,
        "commitment": spec.commitment,
        "upfrontPaymentAmount": spec.upfront,
        "recurringPaymentAmount": spec.recurring,
        "termDurationInSeconds": plan.end.duration_since(plan.start).as_secs(),
        "tags": {},
    });
    if let Some((region, family)) = &spec.family {
        set(&mut row, "region", region.as_str());
        set(&mut row, "ec2InstanceFamily", family.as_str());
    }
    row
}

fn rate_row(rate: &SavingsPlanRate, currency: &str) -> Value {
    let family = rate.instance_type.split('.').next().unwrap_or_default();
    json!({
        "rate": rate.rate,
        "currency": currency,
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": format!("BoxUsage:{}", rate.instance_type),
        "operation": "RunInstances",
        "properties": [
            {"name": "region", "value": rate.region},
            {"name": "instanceType", "value": rate.instance_type},
            {"name": "instanceFamily", "value": family},
            {"name": "productDescription", "value": rate.product_description},
            {"name": "tenancy", "value": "shared"},
        ],
    })
}

fn plan_passes(plan: &SavingsPlan, filter: &Filter) -> bool {
    let (region, family) = plan
        .spec
        .family
        .as_ref()
        .map_or(("", ""), |(region, family)| (region, family));
    let value = match filter.name.as_str() {
        "region" => region,
        "savings-plan-type" => &plan.spec.plan_type,
        "payment-option" => &plan.spec.payment_option,
        "commitment" => &plan.spec.commitment,
        _ => family,
    };
    filter.values.iter().any(|wanted| wanted == value)
}

fn rate_passes(rate: &SavingsPlanRate, filter: &Filter) -> bool {
    let value = match filter.name.as_str() {
        "region" => rate.region.as_str(),
        "instanceType" => &rate.instance_type,
        "productDescription" => &rate.product_description,
        "tenancy" => "shared",
        "productType" => "EC2",
        _ => "AmazonEC2",
    };
    filter.values.iter().any(|wanted| wanted == value)
}

fn check_filters(filters: &[Filter], known: &[&str]) -> Result<(), AwsError> {
    let unknown = filters.iter().find(|filter| !known.contains(&filter.name.as_str()));
    unknown.map_or(Ok(()), |filter| {
        Err(invalid(&format!("'{}' is not a supported filter", filter.name)))
    })
}

fn paging(call: &Call<'_>, limit: Option<usize>, token: Option<&str>, scope: &str) -> Result<PageRequest, AwsError> {
    let limit = limit.unwrap_or(MAX_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(invalid("maxResults must be between 1 and 1000"));
    }
    PageRequest::new(Some(limit), token, &call.token_scope(scope)).map_err(|_| invalid("Invalid nextToken"))
}

/// The alterations that need to know what a row is.
fn spoilt(mut rows: Vec<Value>, alteration: Option<FaultKind>, id: &str, unknown: impl Fn(&mut Value)) -> Vec<Value> {
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            if let Some(first) = rows.first_mut() {
                unknown(first);
            }
        }
        Some(FaultKind::MalformedRecord) => add_malformed(&mut rows, id),
        _ => {}
    }
    rows
}

fn document(name: &str, rows: &[Value], next: Option<&str>, plan: Option<&str>) -> String {
    let mut answer = json!({ name: rows });
    if let Some(next) = next {
        set(&mut answer, "nextToken", next);
    }
    if let Some(plan) = plan {
        set(&mut answer, "savingsPlanId", plan);
    }
    answer.to_string()
}

fn invalid(message: &str) -> AwsError {
    AwsError::new("ValidationException", 400, message)
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, AwsError> {
    // An operation without input may be sent without a body.
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| invalid(&error.to_string()))
}
