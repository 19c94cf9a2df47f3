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

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_aliyun::{AliyunCollector, AliyunOptions};
use gpuwatch_collector_core::{
    Account, CollectError, Collected, Collector, Context, Covers, Dataset, Discovery, Fleet, Reason, Scope,
};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_aliyun::{
    ACCESS_KEY_ID, ACCESS_KEY_SECRET, AccountSpec, Aliyun, InstanceSpec, RegionAccess, World,
};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Outcome, Server, ServerOptions};
use gpuwatch_inventory::{Commitment, GpuCount, Instance, Provider};
use jiff::Timestamp;

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
        let cx = Context::detached(scope.clone(), limit);
        let runs = self.collector.parts(scope, dataset).into_iter().map(|part| {
            let cx = &cx;
            async move {
                let run = self.collector.collect(scope, dataset, part, cx);
                let cut = || Err(CollectError::new(Reason::Timeout, "cut off"));
                (part, cx.timeout(limit, run).await.unwrap_or_else(cut))
            }
        });
        let results = futures::future::join_all(runs).await;
        (results, cx)
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
        let (mut results, cx) = self.collect(&scope(account, region), Dataset::Inventory, limit).await;
        let (_, result) = results.pop().expect("one part");
        let instances = result.map(|collected| match collected {
            Collected::Instances(instances) => instances,
            other @ Collected::Commitments(_) => panic!("{other:?}"),
        });
        (instances, cx)
    }

    /// Commitments of every part of a scope.
    pub async fn commitments_in(&self, account: &str, region: &str) -> Result<Vec<Commitment>, CollectError> {
        let (results, _) = self
            .collect(&scope(account, region), Dataset::Commitments, PATIENT)
            .await;
        let mut commitments = Vec::new();
        for (_, result) in results {
            match result? {
                Collected::Commitments(found) => commitments.extend(found),
                other @ Collected::Instances(_) => panic!("{other:?}"),
            }
        }
        Ok(commitments)
    }

    /// Everything that discovery finds, allocated.
    pub async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let discovery = self.discover().await;
        assert!(discovery.failures.is_empty(), "{:?}", discovery.failures);
        let mut fleet = Fleet::default();
        for target in &discovery.targets {
            for dataset in &target.datasets {
                let (results, cx) = self.collect(&target.scope, *dataset, PATIENT).await;
                for (part, result) in results {
                    match result.unwrap_or_else(|error| panic!("{target:?} {part}: {error}")) {
                        Collected::Instances(found) => fleet.instances.extend(found.into_iter().map(Arc::new)),
                        Collected::Commitments(found) => fleet.commitments.extend(found),
                    }
                }
                assert!(!cx.is_degraded(), "{target:?}");
            }
        }
        self.collector.allocate(&mut fleet);
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

/// Regions that have an inventory, by account.
pub fn inventory_targets(discovery: &Discovery) -> Vec<(String, String)> {
    let targets = discovery
        .targets
        .iter()
        .filter(|target| target.datasets.contains(&Dataset::Inventory));
    let mut found: Vec<_> = targets
        .map(|t| (t.scope.account.id.to_string(), t.scope.region.to_string()))
        .collect();
    found.sort();
    found
}

/// As [`inventory_targets`] gives them.
pub fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
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

type Facts = (
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<i64>,
);

fn shown(gpus: Option<f64>) -> Option<String> {
    gpus.map(|gpus| format!("{gpus:.6}"))
}

/// Fails unless exactly the instances of the world are there, as they are.
#[track_caller]
pub fn compare_instances(world: &World, instances: &[Instance]) {
    let expected = world.truth().into_iter().map(|t| {
        let launched = Some(t.launched.as_second());
        let facts: Facts = (
            t.account,
            t.region,
            t.zone,
            t.name,
            t.instance_type,
            t.state.to_owned(),
            t.billing_mode.to_owned(),
            t.billing_detail.to_owned(),
            shown(t.gpus),
            launched,
        );
        (t.id, facts)
    });
    let expected: BTreeMap<String, Facts> = expected.collect();
    assert!(!expected.is_empty());
    let found = instances.iter().map(|i| {
        let facts: Facts = (
            i.account.to_string(),
            i.region.to_string(),
            i.zone.to_string(),
            i.name.to_string(),
            i.instance_type.to_string(),
            i.state.to_string(),
            i.billing.mode.to_string(),
            i.billing.detail.to_string(),
            shown(i.accelerators.count.map(GpuCount::get)),
            i.launched.map(Timestamp::as_second),
        );
        (i.id.to_string(), facts)
    });
    let found: BTreeMap<String, Facts> = found.collect();
    assert_eq!(found.len(), instances.len(), "an instance is there twice");
    for (id, facts) in &expected {
        assert_eq!(found.get(id), Some(facts), "{id}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Fails unless exactly the commitments of the world are there.
#[track_caller]
pub fn compare_commitments(world: &World, commitments: &[Commitment]) {
    let mut expected: Vec<_> = world
        .commitments()
        .into_iter()
        .map(|c| (c.account, c.region, c.id, c.kind.to_owned(), c.units, c.used))
        .collect();
    let mut found: Vec<_> = commitments
        .iter()
        .map(|c| {
            (
                c.account.to_string(),
                c.region.to_string(),
                c.id.to_string(),
                c.kind.to_string(),
                c.units,
                c.used_units,
            )
        })
        .collect();
    expected.sort();
    found.sort();
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
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
