//! Subscriptions and signing in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use gpuwatch_collector_azure::AzureCloud;
use gpuwatch_collector_core::{Dataset, Reason, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_azure::{TENANT, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_test_kit::reason;
use support::{EAST, FIRST, PATIENT, Rig, SECOND, WEST, scope, small_world};

fn accounts(discovery: &gpuwatch_collector_core::Discovery) -> Vec<&str> {
    let mut ids: Vec<&str> = discovery.targets.iter().map(|t| &*t.scope.account.id).collect();
    ids.dedup();
    ids
}

#[tokio::test]
async fn every_visible_subscription_is_polled_unless_it_is_left_out() {
    let world = small_world();
    world.add_subscription("00000000-0000-4000-8000-00000000000D", "off");
    world.set_state("00000000-0000-4000-8000-00000000000D", "Disabled");
    let (found, _) = Rig::new(world.clone(), |_| {}).await.discover().await;
    assert_eq!(accounts(&found), [FIRST, SECOND]);
    let global = found.targets.iter().filter(|t| &*t.scope.region == Scope::GLOBAL);
    assert_eq!(global.count(), 1, "the tenant's commitments are polled once");

    let rig = Rig::new(world.clone(), |options| {
        options.exclude_subscriptions = vec![FIRST.into()];
    })
    .await;
    assert_eq!(accounts(&rig.discover().await.0), [SECOND]);
    let rig = Rig::new(world, |options| {
        options.subscriptions = vec![FIRST.into()];
        options.exclude_regions = vec!["East US".into()];
    })
    .await;
    let (found, _) = rig.discover().await;
    assert_eq!(accounts(&found), [FIRST]);
    let polled: Vec<&str> = found.targets.iter().map(|t| &*t.scope.region).collect();
    assert!(
        !polled.contains(&EAST) && polled.contains(&WEST) && !polled.contains(&"europe"),
        "{polled:?}"
    );
}

#[tokio::test]
async fn no_visible_subscription_is_an_error_that_names_the_role() {
    let world = small_world();
    for id in [FIRST, SECOND] {
        world.deny(id, "Microsoft.Resources/subscriptions/read");
    }
    let (found, cx) = Rig::new(world, |_| {}).await.discover().await;
    let error = &found.failures[0].error;
    assert_eq!(error.reason, Reason::Permission);
    assert!(error.to_string().contains("Reader"), "{error}");
    assert!(cx.calls().iter().any(|call| call.error.is_some()), "check shows it");
}

#[tokio::test]
async fn a_configured_subscription_that_is_not_there_hides_no_other() {
    let rig = Rig::new(small_world(), |options| {
        options.subscriptions = vec![FIRST.into(), "00000000-0000-4000-8000-0000000000ff".into()];
    })
    .await;
    let (found, _) = rig.discover().await;
    assert_eq!(accounts(&found), [FIRST]);
    assert_eq!(found.failures.len(), 1);
    assert!(found.failures[0].error.to_string().contains("00000000ff"));
}

#[tokio::test]
async fn without_locations_the_regions_with_machines_are_polled() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.fault(FaultKind::AccessDenied, "locations.list");
    let (found, _) = rig.discover().await;
    let regions: Vec<&str> = found
        .targets
        .iter()
        .filter(|t| &*t.scope.account.id == FIRST && t.datasets.contains(&Dataset::Inventory))
        .map(|t| &*t.scope.region)
        .collect();
    assert_eq!(regions, [EAST, WEST]);
}

fn with_secret(options: &mut gpuwatch_collector_azure::AzureOptions, secret: SecretSource) {
    options.access_token = None;
    options.tenant_id = Some(TENANT.into());
    options.client_id = Some("11111111-1111-4111-8111-111111111111".into());
    options.client_secret = Some(secret);
}

#[tokio::test]
async fn an_application_signs_in_and_again_when_its_token_has_ended() {
    let world = small_world();
    world.add_client("11111111-1111-4111-8111-111111111111", "secret");
    let rig = Rig::new(world.clone(), |options| {
        with_secret(options, SecretSource::value("secret"));
    })
    .await;
    let (found, _) = rig.discover().await;
    assert_eq!(accounts(&found), [FIRST, SECOND], "{:?}", found.failures);
    assert_eq!(rig.calls_of("token"), 1, "one token for everything");
    world.expire_tokens();
    let (instances, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_eq!(instances.unwrap().len(), 1);
    assert_eq!(rig.calls_of("token"), 2);
}

#[tokio::test]
async fn a_rotated_secret_file_is_read_anew() {
    let world = small_world();
    let client = "11111111-1111-4111-8111-111111111111";
    world.add_client(client, "old");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "old\n").unwrap();
    let rig = Rig::new(world.clone(), |options| {
        with_secret(options, SecretSource::File(file.clone()));
    })
    .await;
    assert!(rig.discover().await.0.failures.is_empty());
    world.add_client(client, "new");
    std::fs::write(&file, "new\n").unwrap();
    world.expire_tokens();
    assert!(rig.discover().await.0.failures.is_empty());
}

// P52
#[tokio::test]
async fn refused_sign_ins_say_what_to_correct_and_show_no_secret() {
    let world = small_world();
    world.add_client("11111111-1111-4111-8111-111111111111", "secret");
    let rig = Rig::new(world.clone(), |options| {
        with_secret(options, SecretSource::value("wr0ng"));
    })
    .await;
    let error = rig.discover().await.0.failures.remove(0).error;
    assert_eq!(error.reason, Reason::Credentials);
    let text = error.to_string();
    assert!(
        text.contains("client secret is wrong") && !text.contains("wr0ng"),
        "{text}"
    );
    assert_eq!(rig.calls_of("token"), 1, "not tried again and again");
}

// P52
#[tokio::test]
async fn without_credentials_it_says_what_to_set() {
    let world = small_world();
    world.set_machine_identity(false);
    let rig = Rig::new(world, |options| options.access_token = None).await;
    let (found, _) = rig.discover().await;
    let error = &found.failures[0].error;
    assert_eq!(error.reason, Reason::Credentials);
    for part in ["tenant_id", "client_secret_file", "managed", "az login"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[tokio::test]
async fn the_machines_own_identity_is_found_without_configuration() {
    let world = small_world();
    world.set_machine_identity(true);
    let rig = Rig::new(world, |options| options.access_token = None).await;
    let (found, _) = rig.discover().await;
    assert_eq!(accounts(&found), [FIRST, SECOND], "{:?}", found.failures);
}

// P47
#[tokio::test]
async fn a_refused_first_subscription_hides_no_commitments_of_the_tenant() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::AccessDenied).account(FIRST));
    let (found, _) = rig.discover().await;
    assert_eq!(found.failures.len(), 1);
    let mut global = found.targets.iter().filter(|t| &*t.scope.region == Scope::GLOBAL);
    assert_eq!(global.next().map(|t| &*t.scope.account.id), Some(FIRST));
    assert!(accounts(&found).contains(&SECOND));
}

/// The index shows nothing to those who may not see it, and no error.
#[tokio::test]
async fn a_subscription_whose_machines_may_not_be_read_is_not_taken_for_an_empty_one() {
    for action in [
        "Microsoft.Compute/virtualMachines/read",
        "Microsoft.Compute/virtualMachineScaleSets/read",
    ] {
        let world = small_world();
        world.deny(FIRST, action);
        let rig = Rig::new(world, |_| {}).await;
        let (refused, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
        let error = refused.unwrap_err();
        assert_eq!(error.reason, Reason::Permission, "{action}");
        assert!(error.to_string().contains(action), "{error}");
        let (fine, _) = rig.instances_in(SECOND, EAST, PATIENT).await;
        assert_eq!(fine.unwrap().len(), 1);
    }
    let world = World::empty();
    world.add_subscription(FIRST, "really empty");
    let rig = Rig::new(world, |_| {}).await;
    for _ in 0..2 {
        let (found, cx) = rig.instances_in(FIRST, EAST, PATIENT).await;
        assert!(found.unwrap().is_empty() && !cx.is_degraded());
    }
    assert_eq!(
        rig.calls_of("virtualMachines.listAll"),
        1,
        "asked once and then believed"
    );
}

#[tokio::test]
async fn an_empty_list_of_reservations_is_called_unclear() {
    let rig = Rig::new(small_world(), |_| {}).await;
    let (results, cx) = rig
        .collect(&scope(FIRST, Scope::GLOBAL), Dataset::Commitments, PATIENT)
        .await;
    assert!(results.iter().all(Result::is_ok));
    let unclear: Vec<&str> = cx
        .calls()
        .iter()
        .filter(|call| call.unclear.is_some())
        .map(|call| call.call.service)
        .collect();
    assert_eq!(unclear, ["billingbenefits", "capacity"]);
}

// P40, P44
#[tokio::test]
async fn a_token_of_one_cloud_is_not_accepted_by_another() {
    let world = World::with_audience("https://management.chinacloudapi.cn");
    world.add_subscription(FIRST, "中国区");
    world.add_client("11111111-1111-4111-8111-111111111111", "secret");
    for (cloud, works) in [(AzureCloud::China, true), (AzureCloud::Public, false)] {
        let rig = Rig::new(world.clone(), |options| {
            with_secret(options, SecretSource::value("secret"));
            options.cloud = cloud;
        })
        .await;
        assert_eq!(rig.discover().await.0.failures.is_empty(), works, "{cloud:?}");
    }
}

// P46
#[tokio::test]
async fn one_subscription_that_is_refused_hides_no_other() {
    let rig = Rig::new(small_world(), |_| {}).await;
    rig.discover().await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::AccessDenied).account(FIRST));
    let (refused, _) = rig.instances_in(FIRST, EAST, PATIENT).await;
    assert_eq!(reason(&refused), Some(Reason::Permission));
    let (fine, _) = rig.instances_in(SECOND, EAST, PATIENT).await;
    assert_eq!(fine.unwrap().len(), 1);
    let (results, _) = rig.collect(&scope(FIRST, EAST), Dataset::Commitments, PATIENT).await;
    let error = results[0].as_ref().unwrap_err().to_string();
    assert!(
        error.contains("Microsoft.Compute/capacityReservationGroups/read"),
        "{error}"
    );
}
