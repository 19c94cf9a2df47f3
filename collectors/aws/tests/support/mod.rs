//! A collector against a simulated AWS on loopback.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use gpuwatch_collector_aws::{AwsCollector, AwsOptions};
use gpuwatch_collector_core::{Account, CollectError, Collected, Collector, Context, Dataset, Discovery, Scope};
use gpuwatch_fakecloud::{
    FakeCloud, FaultKind, FaultRule, Options,
    aws::{ACCESS_KEY_ID, AccountSpec, OptIn, Partition, SECRET_ACCESS_KEY, World},
};
use gpuwatch_inventory::{Commitment, Instance, Provider};

pub const ACCOUNT: &str = "111122223333";
pub const SECOND: &str = "444455556666";
pub const EAST: &str = "us-east-1";
pub const WEST: &str = "us-west-2";

/// Long enough for every retry.
pub const PATIENT: Duration = Duration::from_secs(30);

pub struct Rig {
    pub fake: FakeCloud,
    pub collector: AwsCollector,
}

/// One account in three regions, of which one must be opted in to.
pub fn small_world() -> World {
    let regions = [
        (EAST, OptIn::NotRequired),
        (WEST, OptIn::NotRequired),
        ("ap-east-1", OptIn::Required),
    ];
    let world = World::with_regions(Partition::Aws, &regions);
    world.add_account(
        ACCOUNT,
        AccountSpec {
            name: "platform".into(),
            ..AccountSpec::default()
        },
    );
    world
}

pub fn role(account: &str) -> String {
    format!("arn:aws:iam::{account}:role/gpuwatch")
}

impl Rig {
    pub async fn new(world: World, configure: impl FnOnce(&mut AwsOptions)) -> Self {
        let fake = FakeCloud::start(Options {
            aws: Some(world),
            ..Options::default()
        })
        .await
        .expect("port");
        let mut options = AwsOptions::named("prod");
        options.endpoint_url = Some(fake.url());
        configure(&mut options);
        let collector = AwsCollector::with_fixed_credentials(options, ACCESS_KEY_ID, SECRET_ACCESS_KEY);
        Self { fake, collector }
    }

    /// A collector whose accounts have been discovered.
    pub async fn discovered(world: World, configure: impl FnOnce(&mut AwsOptions)) -> Self {
        let rig = Self::new(world, configure).await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        rig
    }

    pub async fn discover(&self) -> Discovery {
        self.discover_within(PATIENT).await.0
    }

    pub async fn discover_within(&self, limit: Duration) -> (Discovery, Context) {
        let cx = Context::detached(scope("prod", Scope::GLOBAL), limit);
        (self.collector.discover(&cx).await, cx)
    }

    pub fn fault(&self, kind: FaultKind, operation: &str, region: Option<&str>) {
        let rule = FaultRule::new(kind).operation(operation);
        self.fake.faults().add(match region {
            Some(region) => rule.region(region),
            None => rule,
        });
    }

    pub fn calls_of(&self, operation: &str) -> usize {
        self.fake
            .calls()
            .iter()
            .filter(|call| call.operation == operation)
            .count()
    }

    pub async fn collect(
        &self,
        scope: &Scope,
        dataset: Dataset,
        limit: Duration,
    ) -> (Vec<Result<Collected, CollectError>>, Context) {
        let cx = Context::detached(scope.clone(), limit);
        let parts = self.collector.parts(scope, dataset);
        let runs = parts
            .into_iter()
            .map(|part| self.collector.collect(scope, dataset, part, &cx));
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
        let instances = results.pop().expect("one part").map(|collected| match collected {
            Collected::Instances(instances) => instances,
            other => panic!("{other:?}"),
        });
        (instances, cx)
    }

    /// Commitments of every part of a scope.
    pub async fn commitments_in(&self, account: &str, region: &str) -> Result<Vec<Commitment>, CollectError> {
        let (results, _) = self
            .collect(&scope(account, region), Dataset::Commitments, PATIENT)
            .await;
        let mut commitments = Vec::new();
        for result in results {
            match result? {
                Collected::Commitments(found) => commitments.extend(found),
                other => panic!("{other:?}"),
            }
        }
        Ok(commitments)
    }
}

pub fn scope(account: &str, region: &str) -> Scope {
    Scope {
        provider: Provider::Aws,
        account: Account {
            id: account.into(),
            name: "prod".into(),
        },
        region: region.into(),
    }
}
