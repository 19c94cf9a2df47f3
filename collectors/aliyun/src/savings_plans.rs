//! Savings plans: commitments of money, from the billing product.

use gpuwatch_collector_core::{CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Currency, Money};
use serde::Deserialize;

use crate::{
    account::Account,
    bss::Page,
    client::{Action, parameters},
    commitments::{blank, unique},
    hosts::Product,
    loose, numbered,
};

const QUERY_SAVINGS_PLANS: Action = Action::new(
    Product::Bss,
    "QuerySavingsPlansInstance",
    "bssapi:QuerySavingsPlansInstance",
);

const PAGE_SIZE: &str = "100";

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

/// Active savings plans of an account.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn savings_plans(
    cx: &Context,
    account: &Account,
    scope: &Scope,
) -> Result<Vec<Commitment>, CollectError> {
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
    use proptest::prelude::*;

    use super::*;
    use crate::{
        bss::Data,
        testing::{self, scope},
    };

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

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::record(&[
            "InstanceId", "SavingsType", "InstanceFamily", "Region", "PoolValue", "Currency", "DeductCycleType",
            "StartTime", "EndTime", "Status",
        ])) {
            let data: Data = serde_json::from_str(&format!(r#"{{"Items": [{text}]}}"#)).unwrap();
            let rows = data.rows::<Plan>(QUERY_SAVINGS_PLANS.call).unwrap();
            prop_assert_eq!(rows.total(), 1);
            for plan in rows.good {
                let _ = commitment(&plan, &scope(Scope::GLOBAL));
            }
        }
    }
}
