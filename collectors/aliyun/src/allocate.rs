//! Which instances reserved instances pay for.
//!
//! The cloud decides this per hour and shows it only in the bill, a day later.
//! Until then the exact type, zone and region are matched, zonal before
//! regional and the oldest instance first; the result is labelled estimated
//! and errs to the low side (no other size of the family is matched).

use std::{collections::BTreeMap, sync::Arc};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Commitment, CommitmentKind, CommitmentScope, Instance, Provider, State, Text,
};

/// Allocates over the whole fleet. The result does not depend on the order of
/// its records.
pub(crate) fn allocate(fleet: &mut Fleet) {
    // By account, region and type.
    let mut free: BTreeMap<(Text, Text, Text), Vec<usize>> = BTreeMap::new();
    for (at, instance) in fleet.instances.iter().enumerate().filter(|(_, i)| is_payable(i)) {
        let key = (
            instance.account.clone(),
            instance.region.clone(),
            instance.instance_type.clone(),
        );
        free.entry(key).or_default().push(at);
    }
    for candidates in free.values_mut() {
        candidates.sort_by_key(|at| {
            fleet
                .instances
                .get(*at)
                .map(|i| (i.launched.is_none(), i.launched, i.id.clone()))
        });
    }
    let mut order: Vec<usize> = (0..fleet.commitments.len())
        .filter(|at| fleet.commitments.get(*at).is_some_and(is_reserved_instance))
        .collect();
    order.sort_by_key(|at| {
        let commitment = fleet.commitments.get(*at);
        commitment.map(|c| (!matches!(c.scope, CommitmentScope::Zone(_)), c.id.clone()))
    });
    for at in order {
        let Some(commitment) = fleet.commitments.get_mut(at) else {
            continue;
        };
        let Some(units) = commitment.units else { continue };
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
            if used >= units || !is_in(&commitment.scope, instance) || !runs_on(&commitment.platform, instance) {
                return true;
            }
            used += 1;
            let instance = Arc::make_mut(instance);
            instance.billing = Billing::estimated(BillingMode::Reserved, "reserved_instance");
            instance.expires = commitment.expires;
            false
        });
        commitment.used_units = Some(used);
    }
}

/// Never spot or prepaid capacity, and only while it runs.
fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Aliyun
        && instance.state == State::Running
        && instance.billing.mode == BillingMode::OnDemand
        // On a dedicated host it is the host that is paid for.
        && instance.tenancy.is_empty()
}

fn is_reserved_instance(commitment: &Commitment) -> bool {
    commitment.provider == Provider::Aliyun && commitment.kind == CommitmentKind::ReservedInstance
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
    use gpuwatch_collector_core::{Account, Interner, Scope, TagRules};

    use super::*;
    use crate::{commitments::blank, record::Record};

    const TYPE: &str = "ecs.gn7i-c8g1.2xlarge";

    fn scope() -> Scope {
        Scope {
            provider: Provider::Aliyun,
            account: Account {
                id: "1001".into(),
                name: "cn".into(),
            },
            region: "cn-hangzhou".into(),
        }
    }

    fn instance(id: &str, zone: &str, status: &str, spot: &str, created: &str) -> Arc<Instance> {
        let record: Record = serde_json::from_value(serde_json::json!({
            "InstanceId": id, "InstanceType": TYPE, "ZoneId": zone, "Status": status,
            "InstanceChargeType": "PostPaid", "SpotStrategy": spot, "CreationTime": created,
        }))
        .unwrap();
        Arc::new(record.read(&scope(), &TagRules::default(), None, &mut Interner::default()))
    }

    fn reserved(id: &str, units: u32, zone: Option<&str>) -> Commitment {
        Commitment {
            kind: CommitmentKind::ReservedInstance,
            instance_type: TYPE.into(),
            units: Some(units),
            scope: zone.map_or(CommitmentScope::Region, |zone| CommitmentScope::Zone(zone.into())),
            ..blank(&scope(), id)
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
        allocate(&mut fleet);
        assert_eq!(covered(&fleet), ["i-1", "i-2"]);
        assert!(fleet.commitments.iter().all(|c| c.used_units == Some(1)));
    }

    #[test]
    fn the_order_of_records_does_not_matter() {
        let mut reversed = fleet();
        reversed.instances.reverse();
        reversed.commitments.reverse();
        allocate(&mut reversed);
        assert_eq!(covered(&reversed), ["i-1", "i-2"]);
    }

    #[test]
    fn what_is_not_used_shows() {
        let mut fleet = fleet();
        fleet.commitments = vec![reserved("ri", 9, None)];
        allocate(&mut fleet);
        assert_eq!(fleet.commitments[0].used_units, Some(3));
    }
}
