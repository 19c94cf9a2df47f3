//! Every endpoint that hands out tokens × every kind of fault: there are no
//! credentials then, which is said, and there are some again afterwards.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::sync::Arc;

use gpuwatch_collector_core::{Covers, Reason};
use gpuwatch_fakecloud_core::FaultRule;
use gpuwatch_fakecloud_gcp::World;
use gpuwatch_test_kit::{expected, for_each_kind};
use support::{PATIENT, PROJECT, Rig, small_world};

/// One set of cases at a time: a token is waited for ten seconds only, which is
/// short when a machine sets up a hundred clients at once.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const ACCOUNT: &str = "gpuwatch@ml-prod.iam.gserviceaccount.com";

/// A way to credentials, with the endpoint that it depends on.
#[derive(Debug, Clone, Copy)]
enum Login {
    User,
    UserActingAs,
    Workload,
    WorkloadActingAs,
}

impl Login {
    /// Service and operation of the endpoint.
    const fn endpoint(self) -> (&'static str, &'static str) {
        match self {
            Self::User => ("oauth2", "token"),
            Self::Workload => ("sts", "token"),
            Self::UserActingAs | Self::WorkloadActingAs => ("iamcredentials", "generateAccessToken"),
        }
    }

    /// The credentials file.
    fn file(self, world: &World, url: &str, subject: &str) -> serde_json::Value {
        match self {
            Self::User => world.add_user("me@example.com", url),
            Self::UserActingAs => serde_json::json!({
                "type": "impersonated_service_account",
                "service_account_impersonation_url":
                    format!("{url}/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"),
                "source_credentials": world.add_user("me@example.com", url),
                "delegates": [],
            }),
            Self::Workload => world.add_workload("subject-token", subject, url, None),
            Self::WorkloadActingAs => world.add_workload("subject-token", subject, url, Some(ACCOUNT)),
        }
    }
}

async fn token_endpoint(login: Login) {
    let world = small_world();
    world.require_token(true);
    world.add_keyless_service_account(ACCOUNT);
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let subject = folder.path().join("subject").display().to_string();
    std::fs::write(&subject, "subject-token").unwrap();
    for_each_kind(move |kind| {
        let (world, folder, subject) = (world.clone(), Arc::clone(&folder), subject.clone());
        async move {
            let title = format!("{login:?} {kind}");
            let file = folder.path().join(kind.as_str());
            let rig = Rig::with(world.clone(), |options, url| {
                std::fs::write(&file, login.file(&world, url, &subject).to_string()).unwrap();
                options.anonymous = false;
                options.credentials_file = Some(file);
                options.projects = vec![PROJECT.into()];
            })
            .await;
            let (service, operation) = login.endpoint();
            let rule = FaultRule::new(kind).service(service).operation(operation);
            let rule = rig.fake.faults().add(rule);
            let (found, _) = rig.discover_within(PATIENT).await;
            let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
            // Whatever is wrong there, there are no credentials.
            let wanted = expected(kind, false).map(|_| (Covers::Everything, Reason::Credentials));
            assert_eq!(failures, Vec::from_iter(wanted), "{title}: {:?}", found.failures);
            for failure in &found.failures {
                let text = failure.error.to_string();
                let is_clear = text.contains("credentials_file") && text.contains(kind.as_str());
                let has_secret = ["ya29", "1//", "subject-token"].iter().any(|word| text.contains(word));
                assert!(is_clear && !has_secret, "{title}: {text}");
            }
            rig.fake.faults().remove(rule);
            let (found, _) = rig.discover_within(PATIENT).await;
            assert!(found.failures.is_empty(), "{title}, afterwards: {:?}", found.failures);
        }
    })
    .await;
}

// P52
#[tokio::test]
async fn every_fault_of_every_token_endpoint_says_that_there_are_no_credentials() {
    let _turn = TURN.lock().await;
    for login in [
        Login::User,
        Login::UserActingAs,
        Login::Workload,
        Login::WorkloadActingAs,
    ] {
        token_endpoint(login).await;
    }
}

/// What is expected of the metadata service, for the process that asks it.
const EXPECTED: &str = "GPUWATCH_TEST_EXPECTED";

// P52
#[tokio::test]
async fn every_fault_of_the_metadata_service_says_that_there_are_no_credentials() {
    let _turn = TURN.lock().await;
    for_each_kind(|kind| async move {
        let world = small_world();
        world.require_token(true);
        world.set_machine_account(ACCOUNT, &[]);
        let rig = Rig::new(world, |_| {}).await;
        rig.fake.faults().add(FaultRule::new(kind).service("metadata"));
        let url = rig.fake.url();
        let is_troubled = expected(kind, false).is_some();
        let run = move || {
            let host = url.trim_start_matches("http://").to_owned();
            let expected = if is_troubled { "trouble" } else { "none" };
            let variables = [
                ("GCE_METADATA_HOST", host.as_str()),
                ("GPUWATCH_TEST_ENDPOINT", url.as_str()),
                (EXPECTED, expected),
            ];
            support::in_environment("by_a_faulty_metadata_service", &variables);
        };
        tokio::task::spawn_blocking(run).await.unwrap();
    })
    .await;
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn by_a_faulty_metadata_service() {
    if !support::is_child() {
        return;
    }
    let found = support::discover_by_default(support::endpoint()).await;
    let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
    if std::env::var(EXPECTED).unwrap() == "none" {
        assert_eq!((failures.len(), found.targets.len()), (0, 2), "{:?}", found.failures);
        return;
    }
    assert_eq!(
        failures,
        [(Covers::Everything, Reason::Credentials)],
        "{:?}",
        found.failures
    );
    let text = found.failures[0].error.to_string();
    assert!(
        text.contains("GOOGLE_APPLICATION_CREDENTIALS") && !text.contains("ya29"),
        "{text}"
    );
}
