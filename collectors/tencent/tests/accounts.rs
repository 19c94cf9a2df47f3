//! Accounts, regions, credentials and sites.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{fs, path::Path, time::Duration};

use gpuwatch_collector_core::{Covers, Dataset, Discovery, Reason, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_collector_tencent::TencentOptions;
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_test_kit::{inventory_targets, owned};
use support::{
    GUANGZHOU, OWNER, PATIENT, Rig, SECOND, SECRET_ID, SECRET_KEY, SINGAPORE, Script, international, machine, role,
    script,
};

fn no_keys(options: &mut TencentOptions) {
    (options.secret_id, options.secret_key) = (None, None);
}

/// A rig whose only credentials are in these variables.
async fn with_variables(script: Script, variables: Vec<(&'static str, String)>) -> Rig {
    let get = move |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| value.clone())
    };
    Rig::with_environment(script, no_keys, get).await
}

#[track_caller]
fn is_found(found: &Discovery) {
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(
        inventory_targets(found).first().map(|(account, _)| account.as_str()),
        Some(OWNER)
    );
}

#[tokio::test]
async fn the_own_account_is_polled_in_its_available_regions() {
    let rig = Rig::new(script(), |_| {}).await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(OWNER, GUANGZHOU), (OWNER, SINGAPORE)])
    );
    let global = found
        .targets
        .iter()
        .find(|t| &*t.scope.region == Scope::GLOBAL)
        .expect("savings plans");
    assert_eq!(global.datasets, [Dataset::Commitments]);
    assert_eq!(&*global.scope.account.name, "cn");
    let regional = found
        .targets
        .iter()
        .find(|t| &*t.scope.region == GUANGZHOU)
        .expect("region");
    assert_eq!(regional.datasets, [Dataset::Inventory, Dataset::Commitments]);
}

#[tokio::test]
async fn configured_and_excluded_regions_are_obeyed() {
    let rig = Rig::new(script(), |options| {
        options.regions = Some(vec![GUANGZHOU.into(), " AP-Shanghai-FSI ".into(), SINGAPORE.into()]);
        options.exclude_regions = vec![SINGAPORE.into()];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(OWNER, GUANGZHOU), (OWNER, "ap-shanghai-fsi")])
    );
    assert_eq!(rig.calls_of("DescribeRegions"), 0);
}

#[tokio::test]
async fn regions_are_listed_in_whichever_way_the_identity_may() {
    let rig = Rig::new(script(), |_| {}).await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::AccessDenied).service("region"));
    is_found(&rig.discover().await);
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::AccessDenied).operation("DescribeRegions"));
    let (found, _) = rig.discover_within(PATIENT).await;
    assert!(inventory_targets(&found).len() > 10, "those that are known");
}

#[tokio::test]
async fn roles_name_the_accounts_and_self_adds_the_own_one() {
    let rig = Rig::new(script(), |options| options.assume_roles = vec![role(SECOND)]).await;
    assert_eq!(
        inventory_targets(&rig.discover().await),
        owned(&[(SECOND, GUANGZHOU), (SECOND, SINGAPORE)])
    );
    let rig = Rig::new(script(), |options| {
        options.assume_roles = vec![role(SECOND), "self".into(), "nonsense".into()];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(inventory_targets(&found).len(), 4);
    let failure = found.failures.first().expect("the bad role");
    assert!(failure.covers == Covers::Account && failure.error.to_string().contains("nonsense"));
}

#[tokio::test]
async fn one_session_serves_every_region_and_is_renewed_once_when_it_ends() {
    let script = script();
    script.add(SECOND, GUANGZHOU, "cvm DescribeInstances", machine("ins-1"));
    let rig = Rig::discovered(script.clone(), |options| options.assume_roles = vec![role(SECOND)]).await;
    for region in [GUANGZHOU, SINGAPORE] {
        rig.instances_in(SECOND, region).await.0.expect("listing");
    }
    assert_eq!(rig.calls_of("AssumeRole"), 1);
    script.end_sessions();
    let (instances, _) = rig.instances_in(SECOND, GUANGZHOU).await;
    assert_eq!(instances.expect("listing").len(), 1);
    assert_eq!(rig.calls_of("AssumeRole"), 2, "once for all concurrent callers");
}

#[tokio::test]
async fn short_sessions_are_renewed_before_they_end() {
    let script = script();
    script.state().session_seconds = 120;
    let rig = Rig::discovered(script, |options| options.assume_roles = vec![role(SECOND)]).await;
    let (instances, cx) = rig.instances_in(SECOND, GUANGZHOU).await;
    assert!(instances.is_ok() && cx.errors(Reason::Credentials) == 0);
    assert!(rig.calls_of("AssumeRole") > 1);
}

#[tokio::test]
async fn an_account_that_refuses_its_role_hides_no_other() {
    let script = script();
    script.state().external_id = Some("gpu-42".into());
    let rig = Rig::new(script, |options| {
        options.assume_roles = vec!["self".into(), role(SECOND)];
    })
    .await;
    let found = rig.discover().await;
    is_found(&found_without_failures(&found));
    let failure = found.failures.first().expect("the second account");
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Account, Reason::Permission)
    );
    assert_eq!(&*failure.account.id, SECOND);
    assert!(failure.error.to_string().contains("trust policy"), "{}", failure.error);
}

fn found_without_failures(found: &Discovery) -> Discovery {
    Discovery {
        targets: found.targets.clone(),
        failures: vec![],
    }
}

#[tokio::test]
async fn the_external_id_is_sent() {
    let script = script();
    script.state().external_id = Some("gpu-42".into());
    Rig::discovered(script, |options| {
        options.assume_roles = vec![role(SECOND)];
        options.external_id = Some("gpu-42".into());
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_is_off_is_corrected_once() {
    let script = script();
    script.state().skew = 3 * 3600;
    let rig = Rig::new(script, |_| {}).await;
    is_found(&rig.discover().await);
    assert_eq!(rig.calls_of("GetCallerIdentity"), 2);
    assert_eq!(rig.calls_of("DescribeRegions"), 1, "the offset is kept");
}

#[tokio::test]
async fn the_environment_is_asked_for_keys() {
    let keys = |extra: Option<(&'static str, String)>| {
        let both = [
            ("TENCENTCLOUD_SECRET_ID", SECRET_ID.to_owned()),
            ("TENCENTCLOUD_SECRET_KEY", format!(" {SECRET_KEY}\n")),
        ];
        both.into_iter().chain(extra).collect()
    };
    let rig = with_variables(script(), keys(None)).await;
    is_found(&rig.discover().await);
    assert_eq!(rig.calls_of("AssumeRole"), 0);
    let rig = with_variables(script(), keys(Some(("TENCENTCLOUD_ROLE_ARN", role(OWNER))))).await;
    is_found(&rig.discover().await);
    assert_eq!(rig.calls_of("AssumeRole"), 1);
}

#[tokio::test]
async fn a_pod_in_tke_has_an_identity_whose_token_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "old").unwrap();
    let variables = vec![
        ("TKE_REGION", GUANGZHOU.to_owned()),
        ("TKE_PROVIDER_ID", "cls-1".to_owned()),
        ("TKE_WEB_IDENTITY_TOKEN_FILE", file.display().to_string()),
        ("TKE_ROLE_ARN", role(OWNER)),
    ];
    let rig = with_variables(script(), variables).await;
    let found = rig.discover().await;
    assert_eq!(
        found.failures.first().map(|f| f.error.reason),
        Some(Reason::Credentials)
    );
    fs::write(&file, support::script::WEB_TOKEN).unwrap();
    is_found(&rig.discover().await);
    is_found(&rig.discover().await);
    assert_eq!(rig.calls_of("AssumeRoleWithWebIdentity"), 2, "one refused, one for all");
}

#[tokio::test]
async fn a_profile_file_is_read_anew_for_every_use() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".tencentcloud");
    fs::create_dir(&folder).unwrap();
    let write = |key: &str| {
        let text = format!("[default]\nsecret_id = {SECRET_ID}\nsecret_key = {key}\n");
        fs::write(folder.join("credentials"), text).unwrap();
    };
    write("wrong");
    let rig = with_variables(script(), vec![("HOME", home.path().display().to_string())]).await;
    let failure = rig.discover().await.failures.pop().expect("wrong key");
    assert_eq!(failure.error.code.as_deref(), Some("AuthFailure.SignatureFailure"));
    write(SECRET_KEY);
    is_found(&rig.discover().await);
}

#[tokio::test]
async fn a_configured_key_file_is_read_anew_for_every_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    fs::write(&file, SECRET_KEY).unwrap();
    let rig = Rig::discovered(script(), |options| {
        options.secret_key = Some(SecretSource::File(file.clone()));
    })
    .await;
    rig.script.state().keys.get_mut(SECRET_ID).unwrap().1 = "rotated".into();
    let listed = async || {
        let (results, _) = rig
            .collect(&support::scope(OWNER, GUANGZHOU), Dataset::Inventory, PATIENT)
            .await;
        results
            .iter()
            .any(|(part, result)| *part == "instances" && result.is_ok())
    };
    assert!(!listed().await);
    fs::write(&file, "rotated\n").unwrap();
    assert!(listed().await);
}

#[tokio::test]
async fn the_role_of_the_machine_is_the_last_source() {
    let script = script();
    script.state().machine_role = Some("gpuwatch-role".into());
    let rig = with_variables(script.clone(), vec![]).await;
    is_found(&rig.discover().await);
    assert_eq!(script.state().sessions, 1);
    script.end_sessions();
    is_found(&rig.discover().await);
    assert_eq!(script.state().sessions, 2, "renewed once when refused");
}

// P52
#[tokio::test]
async fn without_credentials_the_error_says_what_to_set() {
    let rig = with_variables(script(), vec![]).await;
    let (found, _) = rig.discover_within(Duration::from_secs(10)).await;
    let failure = found.failures.first().expect("failure");
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Credentials)
    );
    assert!(
        failure.error.to_string().contains("TENCENTCLOUD_SECRET_ID"),
        "{}",
        failure.error
    );
    assert!(found.targets.is_empty());
}

// P52
#[tokio::test]
async fn wrong_credentials_are_an_error_that_shows_no_secret() {
    let rig = Rig::new(script(), |options| {
        options.secret_key = Some(SecretSource::value("wrong-secret-text"));
    })
    .await;
    let failure = rig.discover().await.failures.pop().expect("failure");
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Credentials)
    );
    assert!(!failure.error.to_string().contains("wrong-secret-text"));
    let half = Rig::new(script(), |options| options.secret_key = None).await;
    let failure = half.discover().await.failures.pop().expect("failure");
    assert!(failure.error.to_string().contains("go together"), "{}", failure.error);
}

// P40, P44
#[tokio::test]
async fn a_site_is_never_asked_for_what_only_the_other_has() {
    let script = script();
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine("ins-1"));
    let calls = |rig: &Rig| -> Vec<String> {
        let calls = rig.server.calls().into_iter();
        calls
            .map(|call| format!("{} {}", call.service, call.operation))
            .collect()
    };
    for site_is_international in [true, false] {
        let configure = |options: &mut TencentOptions| {
            if site_is_international {
                international(options);
            }
        };
        let rig = Rig::discovered(script.clone(), configure).await;
        for region in [GUANGZHOU, SINGAPORE, Scope::GLOBAL] {
            rig.commitments_in(OWNER, region).await.expect("commitments");
        }
        rig.instances_in(OWNER, GUANGZHOU).await.0.expect("listing");
        let calls = calls(&rig);
        let has = |name: &str| calls.iter().any(|call| call == name);
        assert_eq!(has("cvm DescribeReservedInstances"), site_is_international);
        for china in [
            "svp DescribeSavingPlanOverview",
            "cvm DescribeInstanceTypeConfigs",
            "tke DescribeReservedInstances",
        ] {
            assert_eq!(has(china), !site_is_international, "{china}");
        }
    }
}

#[tokio::test]
async fn credentials_are_never_sent_over_plain_http_to_another_machine() {
    let rig = Rig::new(script(), |options| {
        options.endpoint_url = Some("http://cvm.example.com".into());
    })
    .await;
    let failure = rig.discover().await.failures.pop().expect("refused");
    assert!(failure.error.to_string().contains("plain http"), "{}", failure.error);
}

#[tokio::test]
async fn discovery_recovers_after_a_bad_start() {
    let rig = Rig::new(script(), |_| {}).await;
    let down = rig.server.faults().add(FaultRule::new(FaultKind::DropConnection));
    let (found, _) = rig.discover_within(Duration::from_millis(300)).await;
    assert_eq!(
        found.failures.first().map(|f| (f.covers, f.error.reason)),
        Some((Covers::Everything, Reason::Network))
    );
    rig.server.faults().remove(down);
    is_found(&rig.discover().await);
}

// The policies of the documentation name what is called, and nothing else.
#[test]
fn the_policy_has_exactly_the_permissions_of_the_calls() {
    let root = Path::new(".");
    let mut called = std::collections::BTreeSet::new();
    for file in fs::read_dir(root.join("src")).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for service in ["cvm", "tke", "svp", "region"] {
            let prefix = format!("\"{service}:Describe");
            let parts = text.split(&prefix).skip(1);
            called.extend(parts.filter_map(|rest| Some(format!("{service}:Describe{}", rest.split_once('"')?.0))));
        }
    }
    let policy = fs::read_to_string(root.join("../../deploy/iam/tencent-policy.json")).unwrap();
    let policy: serde_json::Value = serde_json::from_str(&policy).unwrap();
    let allowed = policy["statement"][0]["action"].as_array().unwrap().iter();
    let allowed: std::collections::BTreeSet<String> = allowed.map(|a| a.as_str().unwrap().to_owned()).collect();
    assert_eq!(called, allowed);
}
