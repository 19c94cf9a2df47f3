//! Accounts, regions, credentials and partitions against simulated STS,
//! Organizations and EC2.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::time::Duration;

use gpuwatch_collector_aws::{AwsCollector, AwsOptions, Partition};
use gpuwatch_collector_core::{Collector, Context, Covers, Dataset, Reason, Scope};
use gpuwatch_fakecloud::{
    FaultKind, FaultRule,
    aws::{AccountSpec, AccountState, InstanceSpec, World},
};
use gpuwatch_test_kit::{inventory_targets, owned, reason};
use support::{ACCOUNT, EAST, PATIENT, Rig, SECOND, WEST, role, scope, small_world};

const THIRD: &str = "777788889999";

fn three_accounts() -> World {
    let world = small_world();
    world.add_account(
        SECOND,
        AccountSpec {
            name: "ml-research".into(),
            opted_in: vec!["ap-east-1".into()],
            ..AccountSpec::default()
        },
    );
    world.add_account(
        THIRD,
        AccountSpec {
            name: "推理服务".into(),
            ..AccountSpec::default()
        },
    );
    world
}

#[tokio::test]
async fn the_own_account_is_polled_in_its_enabled_regions() {
    let found = Rig::new(small_world(), |_| {}).await.discover().await;
    assert_eq!(inventory_targets(&found), owned(&[(ACCOUNT, EAST), (ACCOUNT, WEST)]));
    let global = found
        .targets
        .iter()
        .find(|target| &*target.scope.region == Scope::GLOBAL)
        .expect("savings plans");
    assert_eq!(global.datasets, [Dataset::Commitments]);
    assert_eq!(&*global.scope.account.name, "prod");
}

#[tokio::test]
async fn configured_and_excluded_regions_are_obeyed() {
    let rig = Rig::new(small_world(), |options| {
        options.regions = Some(vec![EAST.into(), "AP-EAST-1".into(), WEST.into()]);
        options.exclude_regions = vec![WEST.into()];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(ACCOUNT, "ap-east-1"), (ACCOUNT, EAST)])
    );
    assert_eq!(rig.calls_of("DescribeRegions"), 0);
    // A configured region that the account has not enabled is told apart from
    // bad credentials, and costs no other region.
    let (disabled, _) = rig.instances_in(ACCOUNT, "ap-east-1").await;
    assert_eq!(reason(&disabled), Some(Reason::NotEnabled));
    assert!(rig.instances_in(ACCOUNT, EAST).await.0.is_ok());
}

#[tokio::test]
async fn roles_name_the_accounts_and_self_adds_the_own_one() {
    let rig = Rig::new(three_accounts(), |options| options.assume_roles = vec![role(SECOND)]).await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(SECOND, "ap-east-1"), (SECOND, EAST), (SECOND, WEST)])
    );
    let rig = Rig::new(three_accounts(), |options| {
        options.assume_roles = vec![role(THIRD), "self".into()];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(
        inventory_targets(&found),
        owned(&[(ACCOUNT, EAST), (ACCOUNT, WEST), (THIRD, EAST), (THIRD, WEST)])
    );
}

#[tokio::test]
async fn one_session_serves_every_region_of_an_account() {
    let world = three_accounts();
    world.add_instance(SECOND, EAST, InstanceSpec::of("g6.xlarge"));
    let rig = Rig::discovered(world, |options| options.assume_roles = vec![role(SECOND)]).await;
    for region in [EAST, WEST, "ap-east-1"] {
        rig.instances_in(SECOND, region).await.0.expect("listing");
    }
    assert_eq!(rig.calls_of("AssumeRole"), 1);
}

#[tokio::test]
async fn members_of_the_organization_are_found_with_their_names() {
    let world = three_accounts();
    world.add_account(
        "123456789012",
        AccountSpec {
            name: "closed".into(),
            state: AccountState::Suspended,
            ..AccountSpec::default()
        },
    );
    // 45 more accounts take three pages.
    for n in 0..45 {
        world.add_account(
            &format!("2000000000{n:02}"),
            AccountSpec {
                name: format!("a{n}"),
                ..AccountSpec::default()
            },
        );
    }
    let rig = Rig::new(world.clone(), |options| {
        options.organization = true;
        options.regions = Some(vec![EAST.into()]);
    })
    .await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    let targets = inventory_targets(&found);
    assert_eq!(targets.len(), 48, "{targets:?}");
    let name = |id: &str| {
        found
            .targets
            .iter()
            .find(|t| &*t.scope.account.id == id)
            .map(|t| t.scope.account.name.to_string())
    };
    assert_eq!(name(THIRD).as_deref(), Some("推理服务"));
    assert_eq!(name(ACCOUNT).as_deref(), Some("prod"));

    world.leave_organization();
    let rig = Rig::new(world, |options| options.organization = true).await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(inventory_targets(&found), owned(&[(ACCOUNT, EAST), (ACCOUNT, WEST)]));
}

#[tokio::test]
async fn one_account_that_fails_hides_no_other() {
    let world = three_accounts();
    let rig = Rig::new(world, |options| {
        options.assume_roles = vec![role(SECOND), role("999999999999"), role(THIRD), "not an arn".into()];
    })
    .await;
    let found = rig.discover().await;
    let accounts: std::collections::BTreeSet<_> = inventory_targets(&found)
        .into_iter()
        .map(|(account, _)| account)
        .collect();
    assert_eq!(accounts.into_iter().collect::<Vec<_>>(), [SECOND, THIRD]);
    let failed: Vec<_> = found
        .failures
        .iter()
        .map(|f| (&*f.account.id, f.covers, f.error.reason))
        .collect();
    assert!(
        failed.contains(&("999999999999", Covers::Account, Reason::Permission)),
        "{failed:?}"
    );
    assert!(failed.contains(&("prod", Covers::Account, Reason::Other)), "{failed:?}");
    let message = &found
        .failures
        .iter()
        .find(|f| &*f.account.id == "999999999999")
        .expect("failure")
        .error
        .message;
    assert!(message.contains("trust policy"), "{message}");
}

#[tokio::test]
async fn an_external_id_is_sent() {
    let world = small_world();
    world.add_account(
        SECOND,
        AccountSpec {
            external_id: Some("gpu-42".into()),
            ..AccountSpec::default()
        },
    );
    let with = |id: Option<&str>| {
        let (world, id) = (world.clone(), id.map(str::to_owned));
        async move {
            let rig = Rig::new(world, |options| {
                options.assume_roles = vec![role(SECOND)];
                options.external_id = id;
            })
            .await;
            rig.discover().await.failures.len()
        }
    };
    assert_eq!(with(Some("gpu-42")).await, 0);
    assert_eq!(with(None).await, 1);
}

#[tokio::test]
async fn sessions_that_end_early_are_renewed() {
    let world = three_accounts();
    world.add_instance(SECOND, EAST, InstanceSpec::of("g6.xlarge"));
    let rig = Rig::discovered(world.clone(), |options| options.assume_roles = vec![role(SECOND)]).await;
    world.expire_sessions();
    let (instances, cx) = rig.instances_in(SECOND, EAST).await;
    assert_eq!(instances.expect("listing").len(), 1);
    assert_eq!((rig.calls_of("AssumeRole"), cx.errors(Reason::Credentials)), (2, 1));
}

#[tokio::test]
async fn short_sessions_are_renewed_before_they_end() {
    let world = three_accounts();
    world.add_instance(SECOND, EAST, InstanceSpec::of("g6.xlarge"));
    world.set_session_limit(jiff::SignedDuration::from_mins(2));
    let rig = Rig::discovered(world, |options| options.assume_roles = vec![role(SECOND)]).await;
    let (instances, cx) = rig.instances_in(SECOND, EAST).await;
    assert_eq!(
        (instances.expect("listing").len(), cx.errors(Reason::Credentials)),
        (1, 0)
    );
    assert!(rig.calls_of("AssumeRole") > 1);
}

#[tokio::test]
async fn the_home_region_is_asked_where_sts_is_switched_off() {
    let world = three_accounts();
    world.disable_sts(WEST);
    let rig = Rig::discovered(world, |options| {
        options.regions = Some(vec![WEST.into()]);
        options.assume_roles = vec![role(SECOND)];
    })
    .await;
    assert!(rig.instances_in(SECOND, WEST).await.0.is_ok());
}

// P40
#[tokio::test]
async fn china_is_called_with_china_regions_only() {
    for partition in [Some(Partition::AwsCn), None] {
        let rig = Rig::new(World::demo_china(1), |options| {
            options.partition = partition;
            options.regions = partition
                .is_none()
                .then(|| vec!["cn-north-1".into(), "cn-northwest-1".into()]);
        })
        .await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        let mut total = 0;
        for (account, region) in inventory_targets(&found) {
            total += rig.instances_in(&account, &region).await.0.expect("listing").len();
            rig.commitments_in(&account, &region).await.expect("commitments");
        }
        assert_eq!(total, 6);
        let account = rig.fake.aws().base_account();
        let plans = rig.commitments_in(&account, Scope::GLOBAL).await.expect("plans");
        assert_eq!(
            plans[0]
                .hourly
                .as_ref()
                .map(|money| money.currency.as_str().to_owned())
                .as_deref(),
            Some("CNY")
        );
        let calls = rig.fake.calls();
        assert!(calls.iter().all(|call| call.region.starts_with("cn-")), "{calls:?}");
    }
}

// P40
#[tokio::test]
async fn credentials_of_another_partition_are_found_out() {
    let rig = Rig::new(small_world(), |options| options.partition = Some(Partition::AwsCn)).await;
    let found = rig.discover().await;
    let failure = found.failures.first().expect("failure");
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Credentials)
    );
}

// P21
#[tokio::test]
async fn discovery_recovers_after_a_bad_start() {
    let world = small_world();
    world.add_instance(ACCOUNT, EAST, InstanceSpec::of("g6.xlarge"));
    let rig = Rig::new(world, |_| {}).await;
    let down = rig.fake.faults().add(FaultRule::new(FaultKind::DropConnection));
    for _ in 0..2 {
        let (found, _) = rig.discover_within(Duration::from_millis(300)).await;
        assert_eq!(
            found.failures.first().map(|f| (f.covers, f.error.reason)),
            Some((Covers::Everything, Reason::Network))
        );
    }
    rig.fake.faults().remove(down);
    assert!(rig.discover().await.failures.is_empty());
    assert_eq!(rig.instances_in(ACCOUNT, EAST).await.0.expect("listing").len(), 1);
}

// P52
#[tokio::test]
async fn wrong_credentials_are_an_error_and_not_a_dead_process() {
    let rig = Rig::new(small_world(), |_| {}).await;
    let mut options = AwsOptions::named("prod");
    options.endpoint_url = Some(rig.fake.url());
    options.regions = Some(vec![EAST.into()]);
    let collector = AwsCollector::with_fixed_credentials(options, "AKIAWRONG", "wrong-secret-text");
    let found = collector
        .discover(&Context::detached(scope("prod", Scope::GLOBAL), PATIENT))
        .await;
    let failure = found.failures.first().expect("failure");
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Credentials)
    );
    assert!(!failure.error.to_string().contains("wrong-secret-text"));
}

// P52
#[tokio::test]
async fn missing_credentials_are_found_out_soon_and_tried_again() {
    let rig = Rig::new(small_world(), |_| {}).await;
    let mut options = AwsOptions::named("prod");
    options.endpoint_url = Some(rig.fake.url());
    options.regions = Some(vec![EAST.into()]);
    options.profile = Some("gpuwatch-test-has-no-such-profile".into());
    // Whatever credentials the machine has, they are not those of the fake.
    let collector = AwsCollector::new(options);
    for _ in 0..2 {
        let found = collector
            .discover(&Context::detached(scope("prod", Scope::GLOBAL), PATIENT))
            .await;
        let failure = found.failures.first().expect("failure");
        assert_eq!(
            (failure.covers, failure.error.reason),
            (Covers::Everything, Reason::Credentials)
        );
        assert!(found.targets.is_empty());
    }
}
