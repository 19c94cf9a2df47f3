//! How much of an account's on-demand usage its savings plans can cover.
//!
//! AWS applies plans per hour to all EC2, Fargate and Lambda usage of the
//! organization, and only the bill says to which. This estimate applies an
//! account's own plans to its own accelerators alone: other usage may eat the
//! plans first, so the result is the most that can be covered. Instances are
//! never labelled with it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use gpuwatch_collector_core::CoverageEstimate;
use gpuwatch_inventory::{Commitment, CommitmentKind, Instance, Money, Provider, Text};
use rust_decimal::prelude::ToPrimitive;

use crate::{
    allocate::is_payable,
    platform,
    savings_plans::{COMPUTE, EC2_INSTANCE, can_cover},
};

/// Instances of one account that cost the same under any plan.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    region: &'a str,
    instance_type: &'a str,
    platform: &'a str,
}

/// A group while plans are applied.
#[derive(Debug, Default)]
struct Load {
    instances: f64,
    /// Part that no plan covers yet.
    open: f64,
    /// The highest of the plans' rates: the group's weight in the result.
    weight: f64,
}

/// One estimate for each account that has plans with rates for what it runs.
pub(crate) fn estimate(instances: &[Arc<Instance>], commitments: &[Commitment]) -> Vec<CoverageEstimate> {
    let mut plans: BTreeMap<&Text, Vec<&Commitment>> = BTreeMap::new();
    for plan in commitments.iter().filter(|plan| is_plan(plan)) {
        plans.entry(&plan.account).or_default().push(plan);
    }
    if plans.is_empty() {
        return Vec::new();
    }
    let mut groups: HashMap<&Text, BTreeMap<Group<'_>, Load>> = HashMap::new();
    for instance in instances.iter().filter(|instance| is_eligible(instance)) {
        if plans.contains_key(&instance.account) {
            let group = Group {
                region: &instance.region,
                instance_type: &instance.instance_type,
                platform: platform::of_instance(&instance.platform),
            };
            let load = groups.entry(&instance.account).or_default().entry(group).or_default();
            load.instances += 1.0;
            load.open = 1.0;
        }
    }
    plans
        .into_iter()
        .filter_map(|(account, plans)| {
            let ratio = cover(plans, groups.remove(account)?)?;
            Some(CoverageEstimate {
                provider: Provider::Aws,
                account: account.clone(),
                ratio,
            })
        })
        .collect()
}

fn is_plan(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Aws
        && commitment.kind == CommitmentKind::SavingsPlan
        && matches!(&*commitment.detail, COMPUTE | EC2_INSTANCE)
        && commitment.hourly.is_some()
}

/// Running, still on demand after reserved instances, shared tenancy.
fn is_eligible(instance: &Instance) -> bool {
    is_payable(instance) && platform::tenancy(&instance.tenancy) == "default"
}

/// Applies plans, family plans before compute plans, each to all that it can
/// cover alike: which instance it is that is covered does not matter here.
/// `None` when no plan has a rate for anything that runs.
fn cover(mut plans: Vec<&Commitment>, mut groups: BTreeMap<Group<'_>, Load>) -> Option<f64> {
    plans.sort_by(|a, b| {
        (&*a.detail != EC2_INSTANCE, &a.region, &a.id).cmp(&(&*b.detail != EC2_INSTANCE, &b.region, &b.id))
    });
    for (group, load) in &mut groups {
        let rates = plans.iter().filter_map(|plan| rate(plan, group));
        load.weight = rates.fold(0.0, f64::max);
    }
    for plan in plans {
        let Some(mut commitment) = plan.hourly.as_ref().and_then(amount) else {
            continue;
        };
        let demand: f64 = groups
            .iter()
            .filter_map(|(group, load)| Some(load.instances * load.open * rate(plan, group)?))
            .sum();
        if demand <= 0.0 {
            continue;
        }
        commitment = commitment.min(demand);
        for (group, load) in &mut groups {
            if rate(plan, group).is_some() {
                load.open *= 1.0 - commitment / demand;
            }
        }
    }
    let total: f64 = groups.values().map(|load| load.instances * load.weight).sum();
    let covered: f64 = groups
        .values()
        .map(|load| load.instances * load.weight * (1.0 - load.open))
        .sum();
    (total > 0.0).then(|| (covered / total).clamp(0.0, 1.0))
}

/// What a plan charges per hour for an instance of a group, in the currency of
/// its own commitment.
fn rate(plan: &Commitment, group: &Group<'_>) -> Option<f64> {
    if !can_cover(plan, group.region, group.instance_type) {
        return None;
    }
    let currency = plan.hourly.as_ref().map(|hourly| &hourly.currency);
    let found = plan.rates.iter().find(|rate| {
        &*rate.region == group.region
            && &*rate.instance_type == group.instance_type
            && platform::billed_as(&rate.platform) == group.platform
            && Some(&rate.hourly.currency) == currency
    });
    found.and_then(|rate| amount(&rate.hourly)).filter(|rate| *rate > 0.0)
}

fn amount(money: &Money) -> Option<f64> {
    money
        .amount
        .to_f64()
        .filter(|amount| amount.is_finite() && *amount >= 0.0)
}
