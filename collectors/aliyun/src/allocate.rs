//! Which instances reserved instances and savings plans pay for.
//!
//! The cloud decides this per hour and shows it only in the bill, days later.
//! What the bill says of the last complete day comes first, for whatever was
//! there on that day. For the rest, and where the bill may not be read,
//! reserved instances are matched by exact type, zone and region, zonal before
//! regional and the oldest instance first, which errs to the low side (no
//! other size of the family is matched). Both are labelled estimated.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Commitment, CommitmentKind, CommitmentScope, Instance, Provider, State, Text,
};

use crate::coverage::{Day, Payer};

const RESERVED_INSTANCE: &str = "reserved_instance";
const SAVINGS_PLAN: &str = "savings_plan";

/// Allocates over the whole fleet; `billed` gives what the bill says about an
/// account. The result does not depend on the order of the fleet's records.
pub(crate) fn allocate(fleet: &mut Fleet, billed: impl Fn(&Text, Payer) -> Option<Arc<Day>>) {
    let days = |fleet: &Fleet, payer: Payer| -> HashMap<Text, Arc<Day>> {
        let owners = fleet.commitments.iter().filter(|c| is_of_kind(c, payer.kind()));
        let owners: HashSet<&Text> = owners.map(|c| &c.account).collect();
        let days = owners.into_iter().map(|id| (id.clone(), billed(id, payer)));
        days.filter_map(|(id, day)| Some((id, day?))).collect()
    };
    let reserved = days(fleet, Payer::ReservedInstances);
    label(fleet, &reserved, RESERVED_INSTANCE);
    match_reserved_instances(fleet, &reserved);
    let plans = days(fleet, Payer::SavingsPlans);
    label(fleet, &plans, SAVINGS_PLAN);
}

/// Labels what the bill says was paid for.
fn label(fleet: &mut Fleet, days: &HashMap<Text, Arc<Day>>, detail: &str) {
    for instance in fleet.instances.iter_mut().filter(|i| is_payable(i)) {
        let is_covered = days
            .get(&instance.account)
            .is_some_and(|day| day.covered.contains_key(&instance.id));
        if is_covered {
            Arc::make_mut(instance).billing = Billing::estimated(BillingMode::Reserved, detail);
        }
    }
}

fn match_reserved_instances(fleet: &mut Fleet, days: &HashMap<Text, Arc<Day>>) {
    // By account, region and type.
    let mut free: BTreeMap<(Text, Text, Text), Vec<usize>> = BTreeMap::new();
    let candidates = fleet.instances.iter().enumerate();
    for (at, instance) in candidates.filter(|(_, i)| is_payable(i) || is_labelled(i)) {
        let key = (
            instance.account.clone(),
            instance.region.clone(),
            instance.instance_type.clone(),
        );
        free.entry(key).or_default().push(at);
    }
    for candidates in free.values_mut() {
        candidates.sort_by_key(|at| {
            let instance = fleet.instances.get(*at);
            instance.map(|i| (!is_labelled(i), i.launched.is_none(), i.launched, i.id.clone()))
        });
    }
    let mut order: Vec<usize> = (0..fleet.commitments.len())
        .filter(|at| {
            let commitment = fleet.commitments.get(*at);
            commitment.is_some_and(|c| is_of_kind(c, CommitmentKind::ReservedInstance))
        })
        .collect();
    order.sort_by_key(|at| {
        let commitment = fleet.commitments.get(*at);
        commitment.map(|c| (!matches!(c.scope, CommitmentScope::Zone(_)), c.id.clone()))
    });
    let freed = freed(fleet, days);
    for at in order {
        let Some(commitment) = fleet.commitments.get_mut(at) else {
            continue;
        };
        let Some(units) = commitment.units else { continue };
        let account = &commitment.account;
        let is_freed = freed.contains(&(account.clone(), commitment.instance_type.clone()));
        let day = days.get(account).filter(|_| !is_freed);
        let key = (
            commitment.account.clone(),
            commitment.region.clone(),
            commitment.instance_type.clone(),
        );
        let candidates = free.entry(key).or_default();
        let mut used = 0;
        candidates.retain(|index| {
            let Some(instance) = fleet.instances.get_mut(*index) else {
                return false;
            };
            let fits = is_in(&commitment.scope, instance) && runs_on(&commitment.platform, instance);
            if used >= units || !fits || day.is_some_and(|day| is_refuted(day, commitment, instance)) {
                return true;
            }
            used += 1;
            let instance = Arc::make_mut(instance);
            instance.billing = Billing::estimated(BillingMode::Reserved, RESERVED_INSTANCE);
            instance.expires = commitment.expires;
            false
        });
        commitment.used_units = Some(used);
    }
    forget_what_other_sizes_use(fleet, free.into_values().flatten());
}

/// Units that no instance of their own type uses may pay for other sizes of
/// the family: how many do, when the bill shows some, is unknown and not 0.
fn forget_what_other_sizes_use(fleet: &mut Fleet, left: impl Iterator<Item = usize>) {
    let left = left.filter_map(|at| fleet.instances.get(at)).filter(|i| is_labelled(i));
    let families: HashSet<(Text, Text, Text)> = left
        .map(|i| (i.account.clone(), i.region.clone(), family(&i.instance_type).into()))
        .collect();
    let reserved = fleet.commitments.iter_mut();
    for commitment in reserved.filter(|c| is_of_kind(c, CommitmentKind::ReservedInstance)) {
        let key = (
            commitment.account.clone(),
            commitment.region.clone(),
            family(&commitment.instance_type).into(),
        );
        if commitment.used_units < commitment.units && families.contains(&key) {
            commitment.used_units = None;
        }
    }
}

/// `ecs.gn7i` of `ecs.gn7i-c8g1.2xlarge`.
fn family(instance_type: &str) -> &str {
    let (family, _) = instance_type.rsplit_once('.').unwrap_or((instance_type, ""));
    family.split('-').next().unwrap_or(family)
}

/// Accounts and types of which an instance that was paid for on the day does
/// not run any more: what paid for it has passed to others since.
fn freed(fleet: &Fleet, days: &HashMap<Text, Arc<Day>>) -> HashSet<(Text, Text)> {
    let running = fleet.instances.iter().filter(|i| is_labelled(i));
    let running: HashSet<(&Text, &Text)> = running.map(|i| (&i.account, &i.id)).collect();
    let covered = days
        .iter()
        .flat_map(|(account, day)| day.covered.iter().map(move |(id, kind)| (account, id, kind)));
    covered
        .filter(|(account, id, _)| !running.contains(&(account, id)))
        .map(|(account, _, kind)| (account.clone(), kind.clone()))
        .collect()
}

/// Whether the bill says that this did not pay for that: both were there on
/// the day, and the bill has the instance as not paid for.
fn is_refuted(day: &Day, commitment: &Commitment, instance: &Instance) -> bool {
    let was_there = |time: Option<jiff::Timestamp>| time.is_some_and(|time| time <= day.starts);
    was_there(commitment.starts) && was_there(instance.launched) && day.uncovered.contains(&instance.id)
}

/// Labelled by the bill as paid for by reserved instances.
fn is_labelled(instance: &Instance) -> bool {
    instance.provider == Provider::Aliyun
        && instance.billing.mode == BillingMode::Reserved
        && &*instance.billing.detail == RESERVED_INSTANCE
}

/// Never spot or prepaid capacity, and only while it runs.
fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Aliyun
        && instance.state == State::Running
        && instance.billing.mode == BillingMode::OnDemand
        // On a dedicated host it is the host that is paid for.
        && instance.tenancy.is_empty()
}

fn is_of_kind(commitment: &Commitment, kind: CommitmentKind) -> bool {
    commitment.provider == Provider::Aliyun && commitment.kind == kind
}

/// Whether the operating system is the one that was reserved; unknown ones fit.
fn runs_on(platform: &str, instance: &Instance) -> bool {
    platform.is_empty() || instance.platform.is_empty() || instance.platform.eq_ignore_ascii_case(platform)
}

fn is_in(scope: &CommitmentScope, instance: &Instance) -> bool {
    match scope {
        CommitmentScope::Zone(zone) => *zone == instance.zone,
        CommitmentScope::Region | CommitmentScope::Global => true,
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::{Interner, TagRules};

    use super::*;
    use crate::{commitments::blank, record::Record, testing::scope};

    const TYPE: &str = "ecs.gn7i-c8g1.2xlarge";

    fn instance(id: &str, zone: &str, status: &str, spot: &str, created: &str) -> Arc<Instance> {
        let record: Record = serde_json::from_value(serde_json::json!({
            "InstanceId": id, "InstanceType": TYPE, "ZoneId": zone, "Status": status,
            "InstanceChargeType": "PostPaid", "SpotStrategy": spot, "CreationTime": created,
        }))
        .unwrap();
        Arc::new(record.read(
            &scope("cn-hangzhou"),
            &TagRules::default(),
            None,
            &mut Interner::default(),
        ))
    }

    fn reserved(id: &str, units: u32, zone: Option<&str>) -> Commitment {
        Commitment {
            kind: CommitmentKind::ReservedInstance,
            instance_type: TYPE.into(),
            units: Some(units),
            scope: zone.map_or(CommitmentScope::Region, |zone| CommitmentScope::Zone(zone.into())),
            ..blank(&scope("cn-hangzhou"), id)
        }
    }

    fn fleet() -> Fleet {
        Fleet {
            instances: vec![
                instance("i-1", "a", "Running", "NoSpot", "2026-01-01T00:00Z"),
                instance("i-2", "b", "Running", "NoSpot", "2026-01-02T00:00Z"),
                instance("i-3", "b", "Running", "NoSpot", "2026-01-03T00:00Z"),
                instance("i-4", "b", "Running", "SpotAsPriceGo", "2025-01-01T00:00Z"),
                instance("i-5", "b", "Stopped", "NoSpot", "2025-01-01T00:00Z"),
            ],
            commitments: vec![reserved("ri-region", 1, None), reserved("ri-zone", 1, Some("b"))],
            coverage: Vec::new(),
        }
    }

    fn covered(fleet: &Fleet) -> Vec<&str> {
        let mut ids: Vec<&str> = fleet
            .instances
            .iter()
            .filter(|i| i.billing.mode == BillingMode::Reserved)
            .map(|i| &*i.id)
            .collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn zonal_before_regional_oldest_first_and_never_spot_or_stopped() {
        let mut fleet = fleet();
        allocate(&mut fleet, |_, _| None);
        assert_eq!(covered(&fleet), ["i-1", "i-2"]);
        assert!(fleet.commitments.iter().all(|c| c.used_units == Some(1)));
    }

    #[test]
    fn the_order_of_records_does_not_matter() {
        let mut reversed = fleet();
        reversed.instances.reverse();
        reversed.commitments.reverse();
        allocate(&mut reversed, |_, _| None);
        assert_eq!(covered(&reversed), ["i-1", "i-2"]);
    }

    #[test]
    fn what_is_not_used_shows() {
        let mut fleet = fleet();
        fleet.commitments = vec![reserved("ri", 9, None)];
        allocate(&mut fleet, |_, _| None);
        assert_eq!(fleet.commitments[0].used_units, Some(3));
    }

    /// A day on which some instances were covered, and the others not.
    fn day(starts: &str, covered: &[&str]) -> Arc<Day> {
        Arc::new(Day {
            starts: starts.parse().unwrap(),
            covered: covered.iter().map(|id| (Text::from(*id), Text::from(TYPE))).collect(),
            uncovered: ["i-1", "i-2", "i-3"]
                .iter()
                .filter(|id| !covered.contains(*id))
                .map(|id| Text::from(*id))
                .collect(),
        })
    }

    fn details(fleet: &Fleet) -> Vec<(&str, &str)> {
        let mut details: Vec<_> = fleet.instances.iter().map(|i| (&*i.id, &*i.billing.detail)).collect();
        details.sort_unstable();
        details
    }

    #[test]
    fn what_the_bill_says_comes_before_what_seems_to_match() {
        let mut fleet = fleet();
        fleet.commitments = vec![Commitment {
            starts: Some("2025-06-01T00:00:00Z".parse().unwrap()),
            ..reserved("ri", 2, None)
        }];
        // i-1 was there on that day and not covered; i-2 was; i-3 is newer.
        let billed = |_: &Text, payer: Payer| match payer {
            Payer::ReservedInstances => Some(day("2026-01-02T12:00:00Z", &["i-2"])),
            Payer::SavingsPlans => None,
        };
        allocate(&mut fleet, billed);
        assert_eq!(covered(&fleet), ["i-2", "i-3"]);
        assert_eq!(fleet.commitments[0].used_units, Some(2));
    }

    #[test]
    fn instances_that_the_bill_does_not_have_are_not_refuted() {
        let mut fleet = fleet();
        fleet.commitments = vec![Commitment {
            starts: Some("2025-06-01T00:00:00Z".parse().unwrap()),
            ..reserved("ri", 2, None)
        }];
        let nothing = Day {
            starts: "2026-01-20T00:00:00Z".parse().unwrap(),
            covered: HashMap::new(),
            uncovered: HashSet::new(),
        };
        allocate(&mut fleet, |_, _| Some(Arc::new(nothing.clone())));
        assert_eq!(covered(&fleet), ["i-1", "i-2"]);
    }

    #[test]
    fn what_paid_for_an_instance_that_is_gone_passes_to_others() {
        // Spot and stopped ones count as gone, and are never labelled.
        for gone in ["i-none", "i-4", "i-5"] {
            let mut fleet = fleet();
            fleet.commitments = vec![Commitment {
                starts: Some("2025-06-01T00:00:00Z".parse().unwrap()),
                ..reserved("ri", 2, None)
            }];
            allocate(&mut fleet, |_, _| Some(day("2026-01-20T00:00:00Z", &["i-3", gone])));
            assert_eq!(covered(&fleet), ["i-1", "i-3"], "{gone}");
        }
    }

    #[test]
    fn the_bill_says_nothing_about_what_was_bought_later() {
        let mut fleet = fleet();
        fleet.commitments = vec![Commitment {
            starts: Some("2026-02-01T00:00:00Z".parse().unwrap()),
            ..reserved("ri", 1, None)
        }];
        allocate(&mut fleet, |_, _| Some(day("2026-01-20T00:00:00Z", &[])));
        assert_eq!(covered(&fleet), ["i-1"]);
    }

    #[test]
    fn another_size_of_the_family_is_labelled_by_the_bill_alone() {
        let mut fleet = fleet();
        fleet.commitments = vec![Commitment {
            instance_type: "ecs.gn7i-c16g1.4xlarge".into(),
            ..reserved("ri", 1, None)
        }];
        allocate(&mut fleet, |_, _| Some(day("2026-01-20T00:00:00Z", &["i-1", "i-2"])));
        assert_eq!(covered(&fleet), ["i-1", "i-2"]);
        assert_eq!(fleet.commitments[0].used_units, None, "how much they use is not said");
        let mut other = self::fleet();
        other.commitments = vec![Commitment {
            instance_type: "ecs.gn7e-c16g1.4xlarge".into(),
            ..reserved("ri", 1, None)
        }];
        allocate(&mut other, |_, _| Some(day("2026-01-20T00:00:00Z", &["i-1"])));
        assert_eq!(
            other.commitments[0].used_units,
            Some(0),
            "another family is another matter"
        );
    }

    #[test]
    fn savings_plans_pay_for_what_no_reserved_instance_does() {
        let mut fleet = fleet();
        let plan = Commitment {
            kind: CommitmentKind::SavingsPlan,
            ..blank(&scope("cn-hangzhou"), "spn-1")
        };
        fleet.commitments = vec![reserved("ri", 1, None), plan];
        let billed = |_: &Text, payer: Payer| match payer {
            Payer::ReservedInstances => None,
            Payer::SavingsPlans => Some(day("2026-01-20T00:00:00Z", &["i-1", "i-2", "i-4"])),
        };
        allocate(&mut fleet, billed);
        assert_eq!(
            details(&fleet),
            [
                ("i-1", "reserved_instance"),
                ("i-2", "savings_plan"),
                ("i-3", ""),
                ("i-4", ""),
                ("i-5", "")
            ]
        );
        assert_eq!(
            (fleet.commitments[1].units, fleet.commitments[1].used_units),
            (None, None)
        );
        assert!(fleet.instances.iter().all(|i| i.billing.mode != BillingMode::Reserved
            || i.billing.certainty == gpuwatch_inventory::Certainty::Estimated));
    }

    #[test]
    fn a_bill_of_accounts_that_have_bought_nothing_is_not_believed() {
        let mut fleet = fleet();
        fleet.commitments.clear();
        allocate(&mut fleet, |_, _| Some(day("2026-01-20T00:00:00Z", &["i-1"])));
        assert!(covered(&fleet).is_empty());
    }
}
