//! Accounts, regions, roles and sessions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeSet, fs, path::Path};

use gpuwatch_collector_core::{Covers, Dataset, Reason, Scope};
use gpuwatch_fakecloud_aliyun::{AccountSpec, InstanceSpec, RegionAccess};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_test_kit::{inventory_targets, owned};
use jiff::SignedDuration;
use support::{
    FINANCE, HANGZHOU, Rig, SECOND, SINGAPORE, TYPE, UID, both, full, is_found, lists, refusal, role, two_accounts,
    world,
};

#[tokio::test]
async fn the_own_account_is_polled_in_the_regions_that_it_sees() {
    let world = world();
    let rig = Rig::new(&world, |_| {}).await;
    let found = rig.discover().await;
    is_found(&found);
    let datasets = |region: &str| {
        let target = found.targets.iter().find(|t| &*t.scope.region == region);
        target.expect("region").datasets.clone()
    };
    assert_eq!(datasets(Scope::GLOBAL), [Dataset::Commitments]);
    assert_eq!(datasets(HANGZHOU), [Dataset::Inventory, Dataset::Commitments]);
    assert!(found.targets.iter().all(|t| &*t.scope.account.name == "cn"));
    // Finance regions show once they are enabled, closed ones no more.
    world.set_region_enabled(UID, FINANCE, true);
    world.set_region_access(SINGAPORE, RegionAccess::Closed);
    let found = rig.discover().await;
    assert_eq!(inventory_targets(&found), owned(&[(UID, HANGZHOU), (UID, FINANCE)]));
}

#[tokio::test]
async fn listed_and_excluded_regions_are_obeyed() {
    let rig = Rig::new(&world(), |options| {
        options.regions = Some(vec![
            HANGZHOU.into(),
            " CN-Shanghai-Finance-1 ".into(),
            SINGAPORE.into(),
        ]);
        options.exclude_regions = vec![SINGAPORE.into(), "us-west-1".into()];
    })
    .await;
    let found = rig.discover().await;
    // One that the account does not see is asked all the same.
    assert_eq!(inventory_targets(&found), owned(&[(UID, HANGZHOU), (UID, FINANCE)]));
    let (refused, _) = rig.instances_in(UID, FINANCE).await;
    let error = refused.expect_err("not enabled");
    assert_eq!(error.reason, Reason::NotEnabled);
    assert!(error.to_string().contains("exclude it"), "{error}");

    let rig = Rig::new(&world(), |options| {
        options.exclude_regions = vec![" CN-hangzhou".into()];
    })
    .await;
    assert_eq!(inventory_targets(&rig.discover().await), owned(&[(UID, SINGAPORE)]));
}

#[tokio::test]
async fn listed_regions_need_no_permission_to_list_regions() {
    let world = full();
    world.deny(UID, "ecs:DescribeRegions");
    let rig = Rig::new(&world, |options| options.regions = Some(vec![HANGZHOU.into()])).await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    lists(&rig, UID).await;
    let rig = Rig::new(&world, |_| {}).await;
    let (covers, reason, text) = refusal(&rig.discover().await);
    assert_eq!((covers, reason), (Covers::Everything, Reason::Permission));
    assert!(text.contains("add ecs:DescribeRegions"), "{text}");
}

#[tokio::test]
async fn an_account_that_sees_no_region_is_a_failure() {
    let world = world();
    for region in [HANGZHOU, SINGAPORE] {
        world.set_region_access(region, RegionAccess::Closed);
    }
    let rig = Rig::new(&world, |_| {}).await;
    let (_, reason, text) = refusal(&rig.discover().await);
    assert_eq!(reason, Reason::Permission);
    assert!(text.contains("list regions in the configuration"), "{text}");
}

#[tokio::test]
async fn roles_name_the_accounts_and_self_adds_the_own_one() {
    let world = two_accounts();
    let rig = Rig::new(&world, |options| options.assume_roles = vec![role(SECOND)]).await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(SECOND, SINGAPORE), (SECOND, HANGZHOU)])
    );
    assert_eq!(rig.calls_of("GetCallerIdentity"), 0, "the role names the account");
    let rig = Rig::new(&world, |options| {
        options.assume_roles = vec![role(SECOND), "self".into(), role(SECOND), role(UID)];
    })
    .await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    // Two ways into one account are one account.
    assert_eq!(inventory_targets(&found).len(), 4);
}

#[tokio::test]
async fn one_session_serves_every_region_and_is_renewed_once_when_it_ends() {
    let world = full();
    let rig = Rig::discovered(&world, |options| options.assume_roles = vec![role(SECOND)]).await;
    for region in [HANGZHOU, SINGAPORE] {
        rig.instances_in(SECOND, region).await.0.expect("listing");
    }
    assert_eq!(rig.calls_of("AssumeRole"), 1);
    world.expire_sessions();
    let looks = [HANGZHOU, SINGAPORE, HANGZHOU].map(|region| rig.instances_in(SECOND, region));
    for (instances, _) in futures::future::join_all(looks).await {
        assert_eq!(instances.expect("listing").len(), 1);
    }
    assert_eq!(rig.calls_of("AssumeRole"), 2, "once for all concurrent callers");
    assert!(rig.refused_with("DescribeInstances", "InvalidSecurityToken.Expired") > 0);
}

#[tokio::test]
async fn short_sessions_are_renewed_before_they_end() {
    let world = full();
    world.set_session_limit(SignedDuration::from_secs(200));
    let rig = Rig::discovered(&world, |options| options.assume_roles = vec![role(SECOND)]).await;
    let (instances, cx) = rig.instances_in(SECOND, HANGZHOU).await;
    assert!(instances.is_ok() && cx.errors(Reason::Credentials) == 0);
    assert!(rig.calls_of("AssumeRole") > 1);
    assert_eq!(rig.refused_with("DescribeInstances", "InvalidSecurityToken.Expired"), 0);
}

#[tokio::test]
async fn an_account_that_does_not_trust_hides_no_other() {
    let world = world();
    let strict = AccountSpec {
        external_id: Some("gpu-42".into()),
        ..AccountSpec::default()
    };
    world.add_account(SECOND, strict);
    world.add_instance(SECOND, HANGZHOU, InstanceSpec::of(TYPE));
    let rig = Rig::new(&world, |options| {
        both(options);
        options.external_id = Some("another".into());
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(inventory_targets(&found), owned(&[(UID, SINGAPORE), (UID, HANGZHOU)]));
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures)
    };
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Account, Reason::Permission)
    );
    assert_eq!(&*failure.account.id, SECOND);
    let text = failure.error.to_string();
    assert!(text.contains("trust policy") && text.contains("external id"), "{text}");

    let rig = Rig::discovered(&world, |options| {
        both(options);
        options.external_id = Some("gpu-42".into());
    })
    .await;
    lists(&rig, SECOND).await;
}

#[tokio::test]
async fn a_role_that_is_not_there_or_may_not_be_assumed_says_so() {
    let world = two_accounts();
    let rig = Rig::new(&world, |options| {
        options.assume_roles = vec!["acs:ram::9:role/none".into()];
    })
    .await;
    let (covers, reason, text) = refusal(&rig.discover().await);
    assert_eq!((covers, reason), (Covers::Account, Reason::Permission));
    assert!(text.contains("EntityNotExist.Role"), "{text}");
    world.deny(UID, "sts:AssumeRole");
    let rig = Rig::new(&world, |options| options.assume_roles = vec![role(SECOND)]).await;
    let (_, reason, text) = refusal(&rig.discover().await);
    assert_eq!(reason, Reason::Permission);
    assert!(text.contains("allow sts:AssumeRole"), "{text}");
}

#[tokio::test]
async fn a_clock_that_is_off_is_refused_once_and_then_corrected() {
    for hours in [2, -3] {
        let world = full();
        let rig = Rig::discovered(&world, |_| {}).await;
        world.set_clock_offset(SignedDuration::from_hours(hours));
        let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
        assert_eq!(instances.expect("dated by the service's clock").len(), 1);
        assert_eq!(cx.errors(Reason::Credentials), 1);
        for region in [HANGZHOU, SINGAPORE] {
            rig.instances_in(UID, region).await.0.expect("listing");
        }
        let refused = rig.refused_with("DescribeInstances", "InvalidTimeStamp.Expired");
        assert_eq!((refused, rig.calls_of("DescribeInstances")), (1, 4));
    }
}

// P44
#[tokio::test]
async fn credentials_are_never_sent_over_plain_http_to_another_machine() {
    let rig = Rig::new(&world(), |options| {
        options.endpoint_url = Some("http://ecs.example.com".into());
    })
    .await;
    let (_, _, text) = refusal(&rig.discover().await);
    assert!(text.contains("plain http"), "{text}");
}

#[tokio::test]
async fn every_request_has_a_nonce_of_its_own() {
    let world = full();
    let rig = Rig::discovered(&world, |_| {}).await;
    // Retries too: the service refuses a nonce that it has seen.
    rig.server.faults().add(
        FaultRule::new(FaultKind::InternalError)
            .operation("DescribeInstances")
            .times(2),
    );
    lists(&rig, UID).await;
    let calls = rig.server.calls();
    assert!(calls.len() > 4);
    assert_eq!(rig.refused_with("DescribeInstances", "SignatureNonceUsed"), 0);
}

// The policy of the documentation names what is called, and nothing else.
#[test]
fn the_policy_has_exactly_the_permissions_of_the_calls() {
    let root = Path::new(".");
    let mut called = BTreeSet::new();
    for file in fs::read_dir(root.join("src")).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for prefix in ["\"ecs:", "\"bssapi:"] {
            let names = text.split(prefix).skip(1).filter_map(|rest| rest.split_once('"'));
            called.extend(names.map(|(name, _)| format!("{}{name}", prefix.trim_start_matches('"'))));
        }
    }
    let policy = fs::read_to_string(root.join("../../deploy/iam/aliyun-policy.json")).unwrap();
    let policy: serde_json::Value = serde_json::from_str(&policy).unwrap();
    let allowed = policy["Statement"][0]["Action"].as_array().unwrap().iter();
    let allowed: BTreeSet<String> = allowed.map(|action| action.as_str().unwrap().to_owned()).collect();
    assert!(called.len() > 5);
    assert_eq!(called, allowed);
}
