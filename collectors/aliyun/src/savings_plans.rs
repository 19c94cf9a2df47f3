//! Savings plans: commitments of money, from the billing product.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason, Scope, lock};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Currency, Money, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    account::Account,
    client::{Action, parameters},
    commitments::{blank, unique},
    errors,
    hosts::Product,
    loose, numbered,
};

const QUERY_SAVINGS_PLANS: Action = Action::new(
    Product::Bss,
    "QuerySavingsPlansInstance",
    "bssapi:QuerySavingsPlansInstance",
);

const PAGE_SIZE: &str = "100";

/// An answer of the billing product.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct Data {
    #[serde(default, deserialize_with = "loose::number")]
    total_count: Option<f64>,
    #[serde(default)]
    items: Option<Box<RawValue>>,
}

impl Data {
    /// The list, plain or in an object around it.
    fn rows(&self, call: Call) -> Result<Rows<Plan>, CollectError> {
        #[derive(Deserialize)]
        struct Wrapped {
            #[serde(rename = "Item", default)]
            item: Rows<Plan>,
        }
        let Some(items) = &self.items else {
            return Ok(Rows::default());
        };
        serde_json::from_str(items.get())
            .or_else(|_| serde_json::from_str::<Wrapped>(items.get()).map(|wrapped| wrapped.item))
            .map_err(|_| CollectError::new(Reason::Decode, format!("{}: `Items` is no list", call.title())))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Plan {
    #[serde(rename = "InstanceId")]
    id: String,
    #[serde(default, deserialize_with = "loose::text")]
    savings_type: String,
    #[serde(default, deserialize_with = "loose::text")]
    instance_family: String,
    #[serde(default, deserialize_with = "loose::text")]
    region: String,
    #[serde(default, deserialize_with = "loose::text")]
    pool_value: String,
    #[serde(default, deserialize_with = "loose::text")]
    currency: String,
    #[serde(default, deserialize_with = "loose::text")]
    deduct_cycle_type: String,
    #[serde(default, deserialize_with = "loose::text")]
    start_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    end_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    status: String,
}

/// How long an account is not asked about at a site that has refused it: the
/// vendor blocks accounts that go on.
const QUIET: Duration = Duration::from_hours(24);

/// Lists savings plans, and knows the accounts that the site does not have.
#[derive(Default)]
pub(crate) struct SavingsPlans {
    refused: Mutex<HashMap<Text, (Duration, CollectError)>>,
}

impl SavingsPlans {
    /// Active savings plans of an account.
    ///
    /// # Errors
    /// When the listing is not complete, and when the account is known to be
    /// one of the other site.
    pub(crate) async fn list(
        &self,
        cx: &Context,
        account: &Account,
        scope: &Scope,
    ) -> Result<Vec<Commitment>, CollectError> {
        let id = &scope.account.id;
        if let Some((at, error)) = lock(&self.refused).get(id)
            && cx.monotonic().saturating_sub(*at) < QUIET
        {
            // Made anew, so that it is counted for this run too.
            let known = CollectError::new(error.reason, error.message.clone());
            return Err(known.code(error.code.clone().unwrap_or_default()));
        }
        let listed = savings_plans(cx, account, scope).await;
        match &listed {
            Err(error) if errors::is_of_other_site(error) => {
                lock(&self.refused).insert(id.clone(), (cx.monotonic(), error.clone()));
            }
            _ => {
                lock(&self.refused).remove(id);
            }
        }
        listed
    }
}

async fn savings_plans(cx: &Context, account: &Account, scope: &Scope) -> Result<Vec<Commitment>, CollectError> {
    let fetch = |number: u64| async move {
        let mut asked = parameters(&[("PageSize", PAGE_SIZE), ("Status", "NORMAL")]);
        asked.insert("PageNum".into(), number.to_string());
        let page: Page = account.call(cx, QUERY_SAVINGS_PLANS, "", &asked).await?;
        let data = page.data.unwrap_or_default();
        let total = loose::units(data.total_count).map(u64::from);
        Ok((data.rows(QUERY_SAVINGS_PLANS.call)?, total))
    };
    let plans = numbered::read(cx, QUERY_SAVINGS_PLANS.call, |plan: &Plan| &plan.id, fetch).await?;
    let active = plans
        .into_iter()
        .filter(|plan| matches!(plan.status.as_str(), "NORMAL" | "LIMIT" | ""));
    Ok(unique(active.map(|plan| commitment(&plan, scope))))
}

fn commitment(plan: &Plan, scope: &Scope) -> Commitment {
    let is_regional = !plan.region.is_empty() && !plan.region.eq_ignore_ascii_case("all");
    let blank = blank(scope, &plan.id);
    Commitment {
        kind: CommitmentKind::SavingsPlan,
        region: if is_regional {
            plan.region.as_str().into()
        } else {
            blank.region.clone()
        },
        instance_type: plan.instance_family.trim_start_matches("ecs.").into(),
        scope: if is_regional {
            CommitmentScope::Region
        } else {
            CommitmentScope::Global
        },
        hourly: hourly(plan),
        starts: loose::beijing(&plan.start_time),
        expires: loose::beijing(&plan.end_time),
        detail: plan.savings_type.as_str().into(),
        ..blank
    }
}

/// What is committed per hour; plans that deduct otherwise have no such sum.
fn hourly(plan: &Plan) -> Option<Money> {
    let is_hourly = plan.deduct_cycle_type.eq_ignore_ascii_case("hour") || plan.deduct_cycle_type.is_empty();
    let currency = Currency::new(&plan.currency).ok()?;
    is_hourly
        .then(|| Money::parse(&plan.pool_value, currency).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(json: &str) -> usize {
        let data: Data = serde_json::from_str(json).unwrap();
        data.rows(QUERY_SAVINGS_PLANS.call).unwrap().good.len()
    }

    #[test]
    fn both_shapes_of_the_list_are_read() {
        assert_eq!(items(r#"{"Items": [{"InstanceId": "spn-1"}]}"#), 1);
        assert_eq!(items(r#"{"Items": {"Item": [{"InstanceId": "spn-1"}]}}"#), 1);
        assert_eq!(items(r#"{"Items": null}"#), 0);
        assert_eq!(items("{}"), 0);
    }

    #[test]
    fn only_hourly_plans_have_an_hourly_sum() {
        let plan = |cycle: &str| -> Plan {
            serde_json::from_value(serde_json::json!({
                "InstanceId": "spn-1", "PoolValue": "12.5", "Currency": "CNY", "DeductCycleType": cycle
            }))
            .unwrap()
        };
        assert!(hourly(&plan("HOUR")).is_some());
        assert!(hourly(&plan("ONCE")).is_none());
    }
}
