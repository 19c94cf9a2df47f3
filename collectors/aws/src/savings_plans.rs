//! Savings plans of an account: money per hour, and what the instance types
//! in use cost under each.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_savingsplans::types::{
    SavingsPlan, SavingsPlanProductType, SavingsPlanRate, SavingsPlanRateFilter, SavingsPlanRateFilterName,
    SavingsPlanRatePropertyKey, SavingsPlanRateServiceCode, SavingsPlanState, SavingsPlanType,
};
use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Scope, read_all, read_rows};
use gpuwatch_inventory::{
    Commitment, CommitmentKind, CommitmentRate, CommitmentScope, Currency, Money, Provider, Text,
};
use jiff::Timestamp;

use crate::{
    calls::{AccountAccess, NO_REGION},
    facts::may_have_accelerators,
    in_use::Usage,
    platform,
};

const DESCRIBE_SAVINGS_PLANS: Call = Call::new(
    "savingsplans",
    "DescribeSavingsPlans",
    "savingsplans:DescribeSavingsPlans",
);
const DESCRIBE_SAVINGS_PLAN_RATES: Call = Call::new(
    "savingsplans",
    "DescribeSavingsPlanRates",
    "savingsplans:DescribeSavingsPlanRates",
);

/// Largest page of both operations.
const PAGE_SIZE: i32 = 1000;

/// Instance types asked for in one call.
const TYPES_PER_CALL: usize = 20;

/// The kinds of plan, as the service spells them; kept as the commitment's
/// detail.
pub(crate) const COMPUTE: &str = "Compute";
/// A plan for one instance family in one region.
pub(crate) const EC2_INSTANCE: &str = "EC2Instance";
const SAGEMAKER: &str = "SageMaker";
const DATABASE: &str = "Database";

/// Active savings plans that accelerators can use, without rates.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn plans(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
) -> Result<Vec<Commitment>, CollectError> {
    let fetch = |token: Option<String>| async move {
        let page = access
            .call(cx, DESCRIBE_SAVINGS_PLANS, NO_REGION, |session| {
                session
                    .savings_plans()
                    .describe_savings_plans()
                    .states(SavingsPlanState::Active)
                    .max_results(PAGE_SIZE)
                    .set_next_token(token.clone())
                    .send()
            })
            .await?;
        let next = page.next_token().map(str::to_owned);
        Ok((page, next))
    };
    // By id: a plan that two pages repeat is one plan.
    let begin = BTreeMap::<Text, Commitment>::new;
    let (listed, skipped) = read_all(
        DESCRIBE_SAVINGS_PLANS,
        || (begin(), Vec::new()),
        fetch,
        |(plans, skipped), page| {
            let records = page.savings_plans();
            for record in records {
                match plan(record, scope) {
                    Ok(Some(plan)) => {
                        plans.entry(plan.id.clone()).or_insert(plan);
                    }
                    Ok(None) => {}
                    Err(reason) => skipped.push(reason),
                }
            }
            Progress::all_new(records.len())
        },
    )
    .await?;
    for reason in skipped {
        cx.skip(reason, 1);
    }
    Ok(listed.into_values().collect())
}

/// Reads a plan; `Ok(None)` for one that is not active or that accelerators
/// cannot use, an error with the word a record that cannot be used is counted
/// under.
fn plan(record: &SavingsPlan, scope: &Scope) -> Result<Option<Commitment>, &'static str> {
    let id = record.savings_plan_id().filter(|id| !id.is_empty()).ok_or("no_id")?;
    if record.state().is_some_and(|state| state.as_str() != "active") {
        return Ok(None);
    }
    let kind = record
        .savings_plan_type()
        .map(SavingsPlanType::as_str)
        .unwrap_or_default();
    let family = record.ec2_instance_family().unwrap_or_default();
    let is_usable = match kind {
        COMPUTE | SAGEMAKER => true,
        EC2_INSTANCE => may_have_accelerators(family),
        DATABASE => false,
        _ => return Err("unknown_plan_type"),
    };
    if !is_usable {
        return Ok(None);
    }
    let region = record
        .region()
        .filter(|region| kind == EC2_INSTANCE && !region.is_empty());
    let hourly = record
        .commitment()
        .zip(record.currency())
        .and_then(|(amount, currency)| {
            let currency = Currency::new(currency.as_str()).ok()?;
            Money::parse(amount, currency).ok()
        });
    Ok(Some(Commitment {
        provider: Provider::Aws,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: region.unwrap_or(Scope::GLOBAL).into(),
        id: id.into(),
        kind: CommitmentKind::SavingsPlan,
        instance_type: if kind == EC2_INSTANCE {
            family.into()
        } else {
            Text::default()
        },
        scope: if region.is_some() {
            CommitmentScope::Region
        } else {
            CommitmentScope::Global
        },
        platform: Text::default(),
        tenancy: Text::default(),
        units: None,
        used_units: None,
        gpus_per_unit: None,
        hourly,
        rates: Vec::new(),
        starts: record.start().and_then(|time| time.parse::<Timestamp>().ok()),
        expires: record.end().and_then(|time| time.parse::<Timestamp>().ok()),
        detail: kind.into(),
    }))
}

/// What the usage costs under a plan, where the plan covers it. Usage under a
/// plan for another family or region is not asked for.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn rates(
    cx: &Context,
    access: &AccountAccess,
    plan: &Commitment,
    usage: &BTreeSet<Usage>,
) -> Result<Vec<CommitmentRate>, CollectError> {
    let covered: BTreeSet<&Usage> = usage
        .iter()
        .filter(|usage| can_cover(plan, &usage.region, &usage.instance_type))
        .collect();
    let types: Vec<&str> = covered
        .iter()
        .map(|usage| &*usage.instance_type)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let regions: BTreeSet<&str> = covered.iter().map(|usage| &*usage.region).collect();
    let platforms: BTreeSet<&str> = covered.iter().map(|usage| &*usage.platform).collect();
    let mut rates = BTreeMap::new();
    for batch in types.chunks(TYPES_PER_CALL) {
        let filters = vec![
            filter(SavingsPlanRateFilterName::InstanceType, batch.iter().copied()),
            filter(SavingsPlanRateFilterName::Region, regions.iter().copied()),
            filter(SavingsPlanRateFilterName::ProductDescription, platforms.iter().copied()),
            filter(SavingsPlanRateFilterName::Tenancy, ["shared"]),
            filter(
                SavingsPlanRateFilterName::ProductType,
                [SavingsPlanProductType::Ec2.as_str()],
            ),
            filter(
                SavingsPlanRateFilterName::ServiceCode,
                [SavingsPlanRateServiceCode::Ec2.as_str()],
            ),
        ];
        let filters = &filters;
        let fetch = |token: Option<String>| async move {
            let page = access
                .call(cx, DESCRIBE_SAVINGS_PLAN_RATES, NO_REGION, |session| {
                    session
                        .savings_plans()
                        .describe_savings_plan_rates()
                        .savings_plan_id(&*plan.id)
                        .set_filters(Some(filters.clone()))
                        .max_results(PAGE_SIZE)
                        .set_next_token(token.clone())
                        .send()
                })
                .await?;
            Ok((page.search_results.unwrap_or_default(), page.next_token))
        };
        let listed: Vec<SavingsPlanRate> = read_rows(DESCRIBE_SAVINGS_PLAN_RATES, fetch).await?;
        for rate in listed.iter().filter_map(rate) {
            let key = Usage {
                region: rate.region.clone(),
                instance_type: rate.instance_type.clone(),
                platform: rate.platform.clone(),
            };
            if covered.contains(&key) {
                rates.entry(key).or_insert(rate);
            }
        }
    }
    Ok(rates.into_values().collect())
}

/// Whether a plan can pay for a type in a region at all.
pub(crate) fn can_cover(plan: &Commitment, region: &str, instance_type: &str) -> bool {
    match &*plan.detail {
        COMPUTE => true,
        EC2_INSTANCE => &*plan.region == region && instance_type.split('.').next() == Some(&*plan.instance_type),
        _ => false,
    }
}

fn filter<'a>(name: SavingsPlanRateFilterName, values: impl IntoIterator<Item = &'a str>) -> SavingsPlanRateFilter {
    let values = values.into_iter().map(str::to_owned).collect();
    SavingsPlanRateFilter::builder()
        .name(name)
        .set_values(Some(values))
        .build()
}

/// Reads a rate: of running instances with shared tenancy, per hour.
fn rate(record: &SavingsPlanRate) -> Option<CommitmentRate> {
    let property = |key: &SavingsPlanRatePropertyKey| {
        let found = record.properties().iter().find(|property| property.name() == Some(key));
        found
            .and_then(|property| property.value())
            .filter(|value| !value.is_empty())
    };
    let is_hourly = record.unit().is_none_or(|unit| unit.as_str() == "Hrs");
    let is_shared = property(&SavingsPlanRatePropertyKey::Tenancy).is_none_or(|tenancy| tenancy == "shared");
    // Capacity reservations that nobody uses have rates of their own.
    let is_used = !record
        .usage_type()
        .is_some_and(|usage| usage.contains("UnusedBox") || usage.contains("UnusedDed"));
    if !(is_hourly && is_shared && is_used) {
        return None;
    }
    let currency = Currency::new(record.currency()?.as_str()).ok()?;
    let hourly = Money::parse(record.rate()?, currency)
        .ok()
        .filter(|rate| rate.amount.is_sign_positive() && !rate.amount.is_zero())?;
    Some(CommitmentRate {
        region: property(&SavingsPlanRatePropertyKey::Region)?.into(),
        instance_type: property(&SavingsPlanRatePropertyKey::InstanceType)?.into(),
        platform: platform::billed_as(property(&SavingsPlanRatePropertyKey::ProductDescription)?).into(),
        hourly,
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_savingsplans::types::{CurrencyCode, SavingsPlanRateProperty, SavingsPlanRateUnit};
    use gpuwatch_collector_core::Account;

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Aws,
            account: Account {
                id: "111122223333".into(),
                name: "prod".into(),
            },
            region: Scope::GLOBAL.into(),
        }
    }

    fn record(kind: &str) -> aws_sdk_savingsplans::types::builders::SavingsPlanBuilder {
        SavingsPlan::builder()
            .savings_plan_id("sp-1")
            .savings_plan_type(SavingsPlanType::from(kind))
            .state(SavingsPlanState::Active)
            .commitment("12.50")
            .currency(CurrencyCode::Cny)
            .start("2026-01-01T00:00:00.000Z")
            .end("2027-01-01T00:00:00Z")
    }

    #[test]
    fn a_family_plan_is_bound_to_its_region_and_family() {
        let read = plan(
            &record("EC2Instance")
                .region("us-east-1")
                .ec2_instance_family("p5")
                .build(),
            &scope(),
        );
        let read = read.expect("usable").expect("GPU family");
        assert_eq!((&*read.region, &*read.instance_type), ("us-east-1", "p5"));
        assert_eq!(read.hourly, Money::parse("12.50", Currency::cny()).ok());
        assert!(read.expires.is_some() && read.starts.is_some() && read.gpus().is_none());
        assert!(can_cover(&read, "us-east-1", "p5.48xlarge"));
        assert!(!can_cover(&read, "us-east-1", "p5e.48xlarge"));
        assert!(!can_cover(&read, "us-west-2", "p5.48xlarge"));
    }

    #[test]
    fn plans_that_accelerators_cannot_use_are_left_out() {
        let cpu = record("EC2Instance")
            .region("us-east-1")
            .ec2_instance_family("m5")
            .build();
        assert_eq!(plan(&cpu, &scope()), Ok(None));
        assert_eq!(plan(&record("Database").build(), &scope()), Ok(None));
        assert_eq!(
            plan(&record("Compute").state(SavingsPlanState::Retired).build(), &scope()),
            Ok(None)
        );
        assert_eq!(plan(&SavingsPlan::builder().build(), &scope()), Err("no_id"));
        assert_eq!(plan(&record("Quantum").build(), &scope()), Err("unknown_plan_type"));
        let compute = plan(&record("Compute").build(), &scope())
            .expect("usable")
            .expect("any type");
        assert_eq!(
            (&*compute.region, &compute.scope),
            (Scope::GLOBAL, &CommitmentScope::Global)
        );
    }

    #[test]
    fn only_rates_of_running_shared_instances_are_read() {
        let property = |name, value: &str| SavingsPlanRateProperty::builder().name(name).value(value).build();
        let record = |usage: &str, tenancy: &str, amount: &str| {
            SavingsPlanRate::builder()
                .rate(amount)
                .currency(CurrencyCode::Usd)
                .unit(SavingsPlanRateUnit::Hours)
                .usage_type(usage)
                .properties(property(SavingsPlanRatePropertyKey::Region, "us-east-1"))
                .properties(property(SavingsPlanRatePropertyKey::InstanceType, "g6.xlarge"))
                .properties(property(SavingsPlanRatePropertyKey::ProductDescription, "Linux/UNIX"))
                .properties(property(SavingsPlanRatePropertyKey::Tenancy, tenancy))
                .build()
        };
        let read = rate(&record("BoxUsage:g6.xlarge", "shared", "0.5")).expect("rate");
        assert_eq!((&*read.instance_type, &*read.platform), ("g6.xlarge", "Linux/UNIX"));
        assert_eq!(rate(&record("UnusedBox:g6.xlarge", "shared", "0.5")), None);
        assert_eq!(rate(&record("DedicatedUsage:g6.xlarge", "dedicated", "0.5")), None);
        assert_eq!(rate(&record("BoxUsage:g6.xlarge", "shared", "0")), None);
        assert_eq!(rate(&record("BoxUsage:g6.xlarge", "shared", "free")), None);
    }
}
