//! A collector against the simulated Alibaba Cloud on loopback, whose truth is
//! worked out without any code of the collector.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::time::Duration;

use gpuwatch_collector_aliyun::{AliyunCollector, AliyunOptions};
use gpuwatch_collector_core::{
    Account, CollectError, Collected, Collector, Context, Covers, Dataset, Discovery, Reason, Scope,
};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_aliyun::{
    ACCESS_KEY_ID, ACCESS_KEY_SECRET, AccountSpec, Aliyun, InstanceSpec, RegionAccess, World,
};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Outcome, Server, ServerOptions};
use gpuwatch_inventory::{Commitment, Instance, Provider};
use gpuwatch_test_kit::{inventory_targets, owned};

pub const UID: &str = "1234567890123456";
pub const SECOND: &str = "5600000000000002";
pub const HANGZHOU: &str = "cn-hangzhou";
pub const SINGAPORE: &str = "ap-southeast-1";
pub const FINANCE: &str = "cn-shanghai-finance-1";

/// Long enough for every retry.
pub const PATIENT: Duration = Duration::from_secs(40);

/// An instance with one A10.
pub const TYPE: &str = "ecs.gn7i-c8g1.2xlarge";

pub struct Rig {
    pub server: Server,
    pub world: World,
    pub collector: AliyunCollector,
}

/// One account that sees two regions; a third is on request, a fourth closed.
pub fn world() -> World {
    let world = World::with_regions(&[
        (HANGZHOU, RegionAccess::Open),
        (SINGAPORE, RegionAccess::Open),
        (FINANCE, RegionAccess::OnRequest),
        ("ap-south-1", RegionAccess::Closed),
    ]);
    world.add_account(UID, AccountSpec::default());
    world
}

/// As [`world`], with a second account that can be entered through its role.
pub fn two_accounts() -> World {
    let world = world();
    world.add_account(SECOND, AccountSpec::default());
    world
}

pub fn role(account: &str) -> String {
    format!("acs:ram::{account}:role/gpuwatch")
}

/// The own account and that of the second.
pub fn both(options: &mut AliyunOptions) {
    options.assume_roles = vec!["self".into(), role(SECOND)];
}

/// No keys in the configuration.
pub fn no_keys(options: &mut AliyunOptions) {
    (options.access_key_id, options.access_key_secret) = (None, None);
}

pub fn add(world: &World, region: &str, spec: InstanceSpec) -> String {
    world.add_instance(UID, region, spec).expect("account")
}

impl Rig {
    pub async fn new(world: &World, configure: impl FnOnce(&mut AliyunOptions)) -> Self {
        Self::with_variables(world, configure, &[]).await
    }

    /// A collector that knows these environment variables and no others.
    pub async fn with_variables(
        world: &World,
        configure: impl FnOnce(&mut AliyunOptions),
        variables: &[(&str, &str)],
    ) -> Self {
        let server = Server::start(&ServerOptions::default(), vec![Box::new(Aliyun::new(world.clone()))])
            .await
            .expect("port");
        let mut options = AliyunOptions {
            access_key_id: Some(SecretSource::value(ACCESS_KEY_ID)),
            access_key_secret: Some(SecretSource::value(ACCESS_KEY_SECRET)),
            endpoint_url: Some(server.url()),
            metadata_url: Some(server.url()),
            ..AliyunOptions::named("cn")
        };
        configure(&mut options);
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Self {
            server,
            world: world.clone(),
            collector: AliyunCollector::with_environment(options, variables),
        }
    }

    /// A collector whose accounts have been discovered.
    pub async fn discovered(world: &World, configure: impl FnOnce(&mut AliyunOptions)) -> Self {
        let rig = Self::new(world, configure).await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        rig
    }

    pub async fn discover(&self) -> Discovery {
        self.discover_within(PATIENT).await.0
    }

    pub async fn discover_within(&self, limit: Duration) -> (Discovery, Context) {
        let cx = Context::detached(scope("cn", Scope::GLOBAL), limit);
        (self.collector.discover(&cx).await, cx)
    }

    pub fn fault(&self, kind: FaultKind, operation: &str, region: Option<&str>) {
        let rule = FaultRule::new(kind).operation(operation);
        self.server.faults().add(match region {
            Some(region) => rule.region(region),
            None => rule,
        });
    }

    pub fn calls_of(&self, operation: &str) -> usize {
        let calls = self.server.calls();
        calls.iter().filter(|call| call.operation == operation).count()
    }

    /// Calls of an operation that the cloud refused with a code.
    pub fn refused_with(&self, operation: &str, refusal: &str) -> usize {
        let calls = self.server.calls();
        let refused = calls.iter().filter(|call| {
            let is_code = matches!(&call.outcome, Outcome::Answered { code: Some(code), .. } if code == refusal);
            call.operation == operation && is_code
        });
        refused.count()
    }

    /// Every part of a dataset, each cut off at the limit as the scheduler
    /// does it.
    pub async fn collect(
        &self,
        scope: &Scope,
        dataset: Dataset,
        limit: Duration,
    ) -> (Vec<(&'static str, Result<Collected, CollectError>)>, Context) {
        gpuwatch_test_kit::collect(&self.collector, scope, dataset, limit).await
    }

    pub async fn instances_in(&self, account: &str, region: &str) -> (Result<Vec<Instance>, CollectError>, Context) {
        self.instances_within(account, region, PATIENT).await
    }

    pub async fn instances_within(
        &self,
        account: &str,
        region: &str,
        limit: Duration,
    ) -> (Result<Vec<Instance>, CollectError>, Context) {
        let (results, cx) = self.collect(&scope(account, region), Dataset::Inventory, limit).await;
        (gpuwatch_test_kit::instances(results), cx)
    }

    /// Commitments of every part of a scope.
    pub async fn commitments_in(&self, account: &str, region: &str) -> Result<Vec<Commitment>, CollectError> {
        let (results, _) = self
            .collect(&scope(account, region), Dataset::Commitments, PATIENT)
            .await;
        gpuwatch_test_kit::commitments(results)
    }

    /// Everything that discovery finds, allocated.
    pub async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let discovery = self.discover().await;
        let fleet = gpuwatch_test_kit::everything(&self.collector, &discovery, PATIENT).await;
        let instances = fleet.instances.into_iter().map(|instance| (*instance).clone());
        (instances.collect(), fleet.commitments)
    }
}

pub fn scope(account: &str, region: &str) -> Scope {
    Scope {
        provider: Provider::Aliyun,
        account: Account {
            id: account.into(),
            name: "cn".into(),
        },
        region: region.into(),
    }
}

/// Configures the roles of every account of a world.
pub fn every_account(world: &World) -> impl FnOnce(&mut AliyunOptions) {
    let own = world.base_account();
    let others = world.accounts().into_iter().filter(|account| account.uid != own);
    let roles: Vec<String> = std::iter::once("self".to_owned())
        .chain(others.map(|account| account.role_arn))
        .collect();
    move |options| options.assume_roles = roles
}

/// The own account with one instance in each region.
pub fn full() -> World {
    let world = two_accounts();
    for account in [UID, SECOND] {
        for region in [HANGZHOU, SINGAPORE] {
            world.add_instance(account, region, InstanceSpec::of(TYPE));
        }
    }
    world
}

#[track_caller]
pub fn is_found(found: &Discovery) {
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(inventory_targets(found), owned(&[(UID, SINGAPORE), (UID, HANGZHOU)]));
}

/// The one failure of a discovery that finds nothing.
#[track_caller]
pub fn refusal(found: &Discovery) -> (Covers, Reason, String) {
    assert!(found.targets.is_empty(), "{:?}", found.targets);
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures);
    };
    let text = failure.error.to_string();
    assert!(!text.contains(ACCESS_KEY_SECRET), "{text}");
    (failure.covers, failure.error.reason, text)
}

pub async fn lists(rig: &Rig, account: &str) {
    let (instances, _) = rig.instances_in(account, HANGZHOU).await;
    assert_eq!(instances.expect("listing").len(), 1);
}
