//! Who calls, with which token, and where to.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::path::Path;

use gpuwatch_collector_core::{Collector, Context, Covers, Discovery, Reason, Scope};
use gpuwatch_collector_gcp::{GcpCollector, GcpOptions};
use gpuwatch_fakecloud_core::{Server, ServerOptions};
use gpuwatch_fakecloud_gcp::{Gcp, InstanceSpec};
use support::{
    CENTRAL, PATIENT, PROJECT, Rig, discover_by_default, endpoint, in_environment, is_child, scope, small_world, zone,
};

const ACCOUNT: &str = "gpuwatch@ml-prod.iam.gserviceaccount.com";
const OTHER: &str = "reader@ml-prod.iam.gserviceaccount.com";

fn write(path: &Path, json: &serde_json::Value) {
    std::fs::write(path, json.to_string()).unwrap();
}

/// The one failure that a section without working credentials has.
fn failure(found: &Discovery) -> &gpuwatch_collector_core::CollectError {
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures)
    };
    assert_eq!((failure.covers, found.targets.len()), (Covers::Everything, 0));
    &failure.error
}

#[tokio::test]
async fn a_service_account_key_is_used_and_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let world = small_world();
    world.require_token(true);
    let old = world.add_service_account(ACCOUNT, PROJECT).unwrap();
    let rig = Rig::with(world.clone(), |options, url| {
        write(&file, &old.json(url));
        options.anonymous = false;
        options.credentials_file = Some(file.clone());
        options.projects = vec![PROJECT.into()];
    })
    .await;
    assert!(rig.discover().await.failures.is_empty());

    world.revoke_keys(ACCOUNT);
    let found = rig.discover().await;
    assert_eq!(
        found.failures[0].error.reason,
        Reason::Credentials,
        "{:?}",
        found.failures
    );
    let new = world.add_service_account(ACCOUNT, PROJECT).unwrap();
    write(&file, &new.json(&rig.fake.url()));
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
}

#[tokio::test]
async fn users_and_workloads_of_other_providers_can_call() {
    let folder = tempfile::tempdir().unwrap();
    let (file, subject) = (folder.path().join("login.json"), folder.path().join("subject"));
    let world = small_world();
    world.require_token(true);
    world.add_keyless_service_account(OTHER);
    std::fs::write(&subject, "subject-token").unwrap();
    for kind in ["user", "workload", "workload as an account"] {
        let rig = Rig::with(world.clone(), |options, url| {
            let subject = subject.display().to_string();
            let login = match kind {
                "user" => world.add_user("me@example.com", url),
                "workload" => world.add_workload("subject-token", &subject, url, None),
                _ => world.add_workload("subject-token", &subject, url, Some(OTHER)),
            };
            write(&file, &login);
            options.anonymous = false;
            options.credentials_file = Some(file.clone());
        })
        .await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{kind}: {:?}", found.failures);
        assert!(!found.targets.is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn acting_as_another_account_takes_one_token_for_many_calls() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let world = small_world();
    world.require_token(true);
    let key = world.add_service_account(ACCOUNT, PROJECT).unwrap();
    world.add_keyless_service_account(OTHER);
    let rig = Rig::with(world.clone(), |options, url| {
        write(&file, &key.json(url));
        options.anonymous = false;
        options.credentials_file = Some(file.clone());
        options.impersonate_service_account = Some(OTHER.into());
    })
    .await;
    assert!(rig.discover().await.failures.is_empty());
    let machines = futures::future::join_all((0..10).map(|_| rig.machines(CENTRAL))).await;
    assert!(machines.iter().all(Vec::is_empty));
    assert_eq!(rig.calls_of("generateAccessToken"), 1);

    // A token that has ended is replaced once, without a failure.
    world.expire_tokens();
    rig.nodes(CENTRAL).await;
    assert_eq!(rig.calls_of("generateAccessToken"), 2);
}

#[tokio::test]
async fn an_account_that_may_not_be_acted_as_is_named_with_the_permission() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let world = small_world();
    world.require_token(true);
    let key = world.add_service_account(ACCOUNT, PROJECT).unwrap();
    world.add_keyless_service_account(OTHER);
    world.deny(OTHER, "iam.serviceAccounts.getAccessToken");
    for (account, reason, words) in [
        (OTHER, Reason::Permission, "iam.serviceAccounts.getAccessToken"),
        ("nobody@ml-prod.iam.gserviceaccount.com", Reason::Other, "nobody@"),
        (
            "not an account/../x",
            Reason::Credentials,
            "impersonate_service_account",
        ),
    ] {
        let rig = Rig::with(world.clone(), |options, url| {
            write(&file, &key.json(url));
            options.anonymous = false;
            options.credentials_file = Some(file.clone());
            options.impersonate_service_account = Some(account.into());
        })
        .await;
        let found = rig.discover().await;
        let error = failure(&found);
        assert_eq!(error.reason, reason, "{account}: {error}");
        assert!(error.to_string().contains(words), "{account}: {error}");
    }
}

// P52
#[tokio::test]
async fn a_file_that_is_not_there_or_is_no_credentials_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let rig = Rig::new(small_world(), |options| {
        options.anonymous = false;
        options.credentials_file = Some(file.clone());
    })
    .await;
    for (text, words) in [
        (None, "key.json"),
        (Some(""), "empty"),
        (Some("s3cret"), "not JSON"),
        (Some("{\"private_key\": \"s3cret\"}"), "type"),
        (
            Some("{\"type\": \"service_account\", \"private_key\": \"s3cret\"}"),
            "form of a credentials file",
        ),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let found = rig.discover().await;
        let error = failure(&found);
        assert_eq!(error.reason, Reason::Credentials, "{error}");
        let message = error.to_string();
        assert!(
            message.contains(words) && !message.contains("s3cret"),
            "{text:?}: {message}"
        );
    }
    assert!(rig.fake.calls().is_empty(), "nothing is sent without credentials");
}

#[tokio::test]
async fn a_login_that_is_revoked_names_the_reason_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("login.json");
    let world = small_world();
    let rig = Rig::with(world.clone(), |options, url| {
        let mut login = world.add_user("me@example.com", url);
        login["refresh_token"] = "1//s3cret".into();
        write(&file, &login);
        options.anonymous = false;
        options.credentials_file = Some(file.clone());
    })
    .await;
    let found = rig.discover().await;
    let message = failure(&found).to_string();
    assert!(
        message.contains("invalid_grant") && !message.contains("s3cret"),
        "{message}"
    );
}

#[tokio::test]
async fn anonymous_callers_are_told_that_a_token_is_wanted() {
    let world = small_world();
    world.require_token(true);
    let rig = Rig::new(world, |options| options.projects = vec![PROJECT.into()]).await;
    let found = rig.discover().await;
    assert_eq!(found.failures[0].error.reason, Reason::Credentials);
    assert_eq!(rig.calls_of("regions.list"), 1, "there is nothing to renew");
}

// P40, P44
#[tokio::test]
async fn credentials_go_over_tls_or_stay_on_this_machine() {
    for (endpoint, words) in [
        (Some("http://10.0.0.1:8080"), "plain http"),
        (Some("http://compute.googleapis.com"), "plain http"),
        (Some("ftp://127.0.0.1"), "base URL"),
        (None, "anonymous"),
    ] {
        let mut options = GcpOptions::named("ml");
        options.anonymous = true;
        options.endpoint_url = endpoint.map(str::to_owned);
        let cx = Context::detached(scope("ml", Scope::GLOBAL), PATIENT);
        let found = GcpCollector::new(options).discover(&cx).await;
        let message = failure(&found).to_string();
        assert!(message.contains(words), "{endpoint:?}: {message}");
    }
}

// P40, P44
#[tokio::test]
async fn every_call_goes_to_the_configured_endpoint() {
    let world = small_world();
    world.add_instance(PROJECT, &zone(CENTRAL, "a"), InstanceSpec::of("g2-standard-4"));
    let rig = Rig::new(world, |_| {}).await;
    rig.fleet().await;
    let mut seen: Vec<(String, String)> = rig
        .fake
        .calls()
        .into_iter()
        .map(|call| (call.service, call.operation))
        .collect();
    seen.sort();
    seen.dedup();
    let expected = [
        ("compute", "instances.aggregatedList"),
        ("compute", "regionCommitments.aggregatedList"),
        ("compute", "regions.list"),
        ("compute", "reservations.aggregatedList"),
        ("resourcemanager", "projects.search"),
        ("tpu", "nodes.list"),
    ]
    .map(|(service, operation)| (service.to_owned(), operation.to_owned()));
    assert_eq!(seen, expected);
}

// P52
#[test]
fn without_any_credentials_the_error_names_what_to_set() {
    // Nothing listens there.
    in_environment("no_credentials_at_all", &[("GCE_METADATA_HOST", "127.0.0.1:1")]);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn no_credentials_at_all() {
    if !is_child() {
        return;
    }
    let found = discover_by_default(None).await;
    let error = failure(&found);
    assert_eq!(error.reason, Reason::Credentials, "{error}");
    for word in [
        "credentials_file",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "gcloud auth",
        "service account",
    ] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

// P52
#[test]
fn a_file_named_by_the_environment_that_is_missing_is_no_way_to_another_identity() {
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")];
    in_environment("a_missing_file_of_the_environment", &variables);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn a_missing_file_of_the_environment() {
    if !is_child() {
        return;
    }
    let found = discover_by_default(None).await;
    let error = failure(&found);
    assert_eq!(error.reason, Reason::Credentials, "{error}");
    for word in ["cannot be read", "GOOGLE_APPLICATION_CREDENTIALS"] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test]
async fn a_machine_s_own_account_can_call() {
    let world = small_world();
    world.require_token(true);
    world.set_machine_account(ACCOUNT, &[]);
    let fake = Server::start(&ServerOptions::default(), vec![Box::new(Gcp::new(world.clone()))])
        .await
        .unwrap();
    let url = fake.url();
    let host = url.trim_start_matches("http://").to_owned();
    let run = |test: &'static str| {
        let (host, url) = (host.clone(), url.clone());
        tokio::task::spawn_blocking(move || {
            in_environment(test, &[("GCE_METADATA_HOST", &host), ("GPUWATCH_TEST_ENDPOINT", &url)]);
        })
    };
    run("by_the_metadata_server").await.unwrap();

    world.set_machine_account(ACCOUNT, &["https://www.googleapis.com/auth/devstorage.read_only"]);
    run("by_a_machine_with_narrow_scopes").await.unwrap();
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn by_the_metadata_server() {
    if !is_child() {
        return;
    }
    let found = discover_by_default(endpoint()).await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(found.targets.len(), 2);
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn by_a_machine_with_narrow_scopes() {
    if !is_child() {
        return;
    }
    let found = discover_by_default(endpoint()).await;
    let error = &found.failures[0].error;
    assert_eq!(error.reason, Reason::Credentials, "{error}");
    assert!(error.to_string().contains("cloud-platform"), "{error}");
}
