//! Comparing what was found with what is there.

use std::collections::{BTreeMap, BTreeSet};

use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
use gpuwatch_inventory::{Commitment, GpuCount, Instance};
use jiff::Timestamp;

/// Account, region, id.
type Key = (String, String, String);

/// What is compared of an instance.
#[derive(Debug, PartialEq)]
struct Facts {
    zone: String,
    name: String,
    instance_type: String,
    state: String,
    billing_mode: String,
    billing_detail: String,
    /// Rounded, because a third of a card is no exact number.
    gpus: Option<String>,
    launched: Option<i64>,
}

fn shown(gpus: Option<f64>) -> Option<String> {
    gpus.map(|gpus| format!("{gpus:.6}"))
}

/// Accelerators of an instance.
#[must_use]
pub fn gpus(instance: &Instance) -> Option<f64> {
    instance.accelerators.count.map(GpuCount::get)
}

/// Fails unless exactly the instances of the truth are there, as they are,
/// each once.
#[track_caller]
pub fn assert_instances(truth: &[InstanceTruth], instances: &[Instance]) {
    assert!(!truth.is_empty(), "there is nothing to compare with");
    let expected: BTreeMap<Key, Facts> = truth
        .iter()
        .map(|t| {
            let facts = Facts {
                zone: t.zone.clone(),
                name: t.name.clone(),
                instance_type: t.instance_type.clone(),
                state: t.state.to_owned(),
                billing_mode: t.billing_mode.to_owned(),
                billing_detail: t.billing_detail.to_owned(),
                gpus: shown(t.gpus),
                launched: Some(t.launched.as_second()),
            };
            ((t.account.clone(), t.region.clone(), t.id.clone()), facts)
        })
        .collect();
    let found: BTreeMap<Key, Facts> = instances
        .iter()
        .map(|i| {
            let facts = Facts {
                zone: i.zone.to_string(),
                name: i.name.to_string(),
                instance_type: i.instance_type.to_string(),
                state: i.state.to_string(),
                billing_mode: i.billing.mode.to_string(),
                billing_detail: i.billing.detail.to_string(),
                gpus: shown(gpus(i)),
                launched: i.launched.map(Timestamp::as_second),
            };
            ((i.account.to_string(), i.region.to_string(), i.id.to_string()), facts)
        })
        .collect();
    assert_eq!(found.len(), instances.len(), "an instance is there twice");
    assert_same(&found, &expected);
}

/// Fails unless every instance bears the name that its account has.
#[track_caller]
pub fn assert_account_names(truth: &[InstanceTruth], instances: &[Instance]) {
    let named: BTreeMap<&str, &str> = truth
        .iter()
        .map(|t| (t.account.as_str(), t.account_name.as_str()))
        .collect();
    for instance in instances {
        let name = named.get(&*instance.account).copied();
        assert_eq!(Some(&*instance.account_name), name, "{}", instance.id);
    }
}

/// Fails unless exactly the commitments of the truth are there, each once.
#[track_caller]
pub fn assert_commitments(truth: &[CommitmentTruth], commitments: &[Commitment]) {
    assert!(!truth.is_empty(), "there is nothing to compare with");
    // A commitment to two types is one row for each.
    let expected: BTreeMap<_, _> = truth
        .iter()
        .map(|c| {
            let key = (
                c.account.clone(),
                c.region.clone(),
                c.id.clone(),
                c.instance_type.clone(),
            );
            (key, (c.kind.to_owned(), c.units, c.used))
        })
        .collect();
    let found: BTreeMap<_, _> = commitments
        .iter()
        .map(|c| {
            let (account, region) = (c.account.to_string(), c.region.to_string());
            let key = (account, region, c.id.to_string(), c.instance_type.to_string());
            (key, (c.kind.to_string(), c.units, c.used_units))
        })
        .collect();
    assert_eq!(found.len(), commitments.len(), "a commitment is there twice");
    assert_same(&found, &expected);
}

/// Shows the first differences, not two whole fleets.
#[track_caller]
fn assert_same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
) {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    let different: Vec<_> = keys
        .into_iter()
        .filter(|key| found.get(key) != expected.get(key))
        .map(|key| (key, found.get(key), expected.get(key)))
        .collect();
    let first = different.get(..5).unwrap_or(&different);
    assert!(
        different.is_empty(),
        "{} differ (key, found, expected): {first:#?}",
        different.len()
    );
}
