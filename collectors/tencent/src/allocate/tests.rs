use gpuwatch_collector_core::{Account, Scope, TagRules};
use gpuwatch_inventory::Accelerators;

use super::*;
use crate::{
    commitments,
    record::{CvmRecord, Reader},
};

fn scope() -> Scope {
    Scope {
        provider: Provider::Tencent,
        account: Account {
            id: "100000000001".into(),
            name: "intl".into(),
        },
        region: "ap-singapore".into(),
    }
}

fn instance(id: &str, zone: &str, charge: &str, created: &str) -> Arc<Instance> {
    let record = serde_json::json!({
        "InstanceType": "GN7.2XLARGE32", "InstanceState": "RUNNING", "InstanceChargeType": charge,
        "CreatedTime": created, "Placement": {"Zone": zone},
    });
    let record: CvmRecord = serde_json::from_value(record).unwrap();
    let (scope, rules) = (scope(), TagRules::default());
    Arc::new(Reader::new(&scope, &rules).read(&record, id, Accelerators::default(), None))
}

fn reserved(id: &str, zone: Option<&str>, units: u32) -> Commitment {
    Commitment {
        scope: zone.map_or(CommitmentScope::Region, |zone| CommitmentScope::Zone(zone.into())),
        units: Some(units),
        ..commitments::commitment(&scope(), CommitmentKind::ReservedInstance, id, "GN7.2XLARGE32")
    }
}

fn allocated(instances: Vec<Arc<Instance>>, commitments: Vec<Commitment>) -> (Vec<String>, Vec<Option<u32>>) {
    let mut fleet = Fleet {
        instances,
        commitments,
        coverage: vec![],
    };
    allocate(&mut fleet);
    let paid = fleet
        .instances
        .iter()
        .filter(|i| &*i.billing.detail == RESERVED_INSTANCE);
    let mut paid: Vec<String> = paid.map(|i| i.id.to_string()).collect();
    paid.sort();
    (paid, fleet.commitments.iter().map(|c| c.used_units).collect())
}

#[test]
fn the_oldest_running_pay_as_you_go_instances_of_the_zone_are_paid_for() {
    let fleet = || {
        vec![
            instance("ins-new", "z1", "POSTPAID_BY_HOUR", "2026-03-01T00:00:00Z"),
            instance("ins-old", "z1", "POSTPAID_BY_HOUR", "2026-01-01T00:00:00Z"),
            instance("ins-spot", "z1", "SPOTPAID", "2025-01-01T00:00:00Z"),
            instance("ins-far", "z2", "POSTPAID_BY_HOUR", "2025-01-01T00:00:00Z"),
        ]
    };
    let one = allocated(fleet(), vec![reserved("ri-1", Some("z1"), 1)]);
    assert_eq!(one, (vec!["ins-old".to_owned()], vec![Some(1)]));
    let mut turned = fleet();
    turned.reverse();
    assert_eq!(
        allocated(turned, vec![reserved("ri-1", Some("z1"), 1)]),
        one,
        "whatever the order"
    );
    let many = allocated(fleet(), vec![reserved("ri-1", Some("z1"), 5)]);
    assert_eq!(many.1, [Some(2)], "the rest is unused");
}

#[test]
fn no_instance_is_paid_for_twice() {
    let fleet = vec![
        instance("ins-1", "z1", "POSTPAID_BY_HOUR", "2026-03-01T00:00:00Z"),
        instance("ins-2", "z2", "POSTPAID_BY_HOUR", "2026-01-01T00:00:00Z"),
    ];
    let (paid, used) = allocated(fleet, vec![reserved("ri-r", None, 2), reserved("ri-z", Some("z2"), 2)]);
    assert_eq!(paid.len(), 2);
    assert_eq!(used, [Some(1), Some(1)]);
}
