//! A collector against a simulated Google Cloud on loopback.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{process::Command, time::Duration};

use gpuwatch_collector_core::{Account, CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Scope};
use gpuwatch_collector_gcp::{GcpCollector, GcpOptions};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server, ServerOptions};
use gpuwatch_fakecloud_gcp::{Gcp, ProjectSpec, World};
use gpuwatch_inventory::{Commitment, Instance, Provider};

pub const PROJECT: &str = "ml-prod";
pub const SECOND: &str = "ml-dev";
pub const CENTRAL: &str = "us-central1";
pub const WEST: &str = "europe-west4";

/// Long enough for every retry.
pub const PATIENT: Duration = Duration::from_secs(30);

pub struct Rig {
    pub fake: Server,
    pub world: World,
    pub collector: GcpCollector,
}

/// Two regions, one project.
pub fn small_world() -> World {
    let world = World::with_regions(&[(CENTRAL, "abc"), (WEST, "ab")]);
    world.add_project(PROJECT, ProjectSpec::named("Platform"));
    world
}

pub fn zone(region: &str, letter: &str) -> String {
    format!("{region}-{letter}")
}

impl Rig {
    pub async fn new(world: World, configure: impl FnOnce(&mut GcpOptions)) -> Self {
        Self::with(world, |options, _| configure(options)).await
    }

    /// The configuration may need the fake's address.
    pub async fn with(world: World, configure: impl FnOnce(&mut GcpOptions, &str)) -> Self {
        let fake = Server::start(&ServerOptions::default(), vec![Box::new(Gcp::new(world.clone()))])
            .await
            .expect("port");
        let mut options = GcpOptions::named("ml");
        options.endpoint_url = Some(fake.url());
        options.anonymous = true;
        configure(&mut options, &fake.url());
        Self {
            fake,
            world,
            collector: GcpCollector::new(options),
        }
    }

    pub async fn discover(&self) -> Discovery {
        self.discover_within(PATIENT).await.0
    }

    pub async fn discover_within(&self, limit: Duration) -> (Discovery, Context) {
        let cx = Context::detached(scope("ml", Scope::GLOBAL), limit);
        (self.collector.discover(&cx).await, cx)
    }

    pub fn fault(&self, kind: FaultKind, operation: &str) {
        self.fake.faults().add(FaultRule::new(kind).operation(operation));
    }

    pub fn calls_of(&self, operation: &str) -> usize {
        self.fake
            .calls()
            .iter()
            .filter(|call| call.operation == operation)
            .count()
    }

    pub async fn part(
        &self,
        scope: &Scope,
        dataset: Dataset,
        part: &'static str,
        limit: Duration,
    ) -> (Result<Collected, CollectError>, Context) {
        let cx = Context::detached(scope.clone(), limit);
        let result = self.collector.collect(scope, dataset, part, &cx).await;
        (result, cx)
    }

    /// One part of the inventory.
    pub async fn instances(
        &self,
        part: &'static str,
        region: &str,
        limit: Duration,
    ) -> (Result<Vec<Instance>, CollectError>, Context) {
        let (result, cx) = self
            .part(&scope(PROJECT, region), Dataset::Inventory, part, limit)
            .await;
        (result.map(instances), cx)
    }

    pub async fn machines(&self, region: &str) -> Vec<Instance> {
        self.instances("instances", region, PATIENT).await.0.expect("machines")
    }

    pub async fn nodes(&self, region: &str) -> Vec<Instance> {
        self.instances("tpu_nodes", region, PATIENT).await.0.expect("nodes")
    }

    /// Everything of every target, as the scheduler would merge it.
    pub async fn fleet(&self) -> Fleet {
        gpuwatch_test_kit::everything(&self.collector, &self.discover().await, PATIENT).await
    }
}

pub fn instances(collected: Collected) -> Vec<Instance> {
    match collected {
        Collected::Instances(instances) => instances,
        other => panic!("{other:?}"),
    }
}

pub fn commitments(collected: Collected) -> Vec<Commitment> {
    match collected {
        Collected::Commitments(commitments) => commitments,
        other => panic!("{other:?}"),
    }
}

pub fn scope(account: &str, region: &str) -> Scope {
    Scope {
        provider: Provider::Gcp,
        account: Account {
            id: account.into(),
            name: "ml".into(),
        },
        region: region.into(),
    }
}

/// Targets as account and region, in order.
pub fn targets(discovery: &Discovery) -> Vec<(String, String)> {
    let mut found: Vec<_> = discovery
        .targets
        .iter()
        .map(|target| (target.scope.account.id.to_string(), target.scope.region.to_string()))
        .collect();
    found.sort();
    found
}

/// Set for tests that are run by another one.
const CHILD: &str = "GPUWATCH_TEST_CHILD";

/// Whether another test has set up the environment. Without it these tests
/// would use the credentials of whoever runs them.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs an ignored test of the same file in a process of its own, with these
/// variables: application default credentials read the environment.
pub fn in_environment(test: &str, variables: &[(&str, &str)]) {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("HOME", home.path())
        .env_remove("GOOGLE_APPLICATION_CREDENTIALS")
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && shown.contains("1 passed"), "{test}: {shown}");
}

/// A discovery by application default credentials.
pub async fn discover_by_default(endpoint: Option<String>) -> Discovery {
    let mut options = GcpOptions::named("ml");
    options.endpoint_url = endpoint;
    options.projects = vec![PROJECT.into()];
    let scope = Scope {
        provider: Provider::Gcp,
        ..scope("ml", Scope::GLOBAL)
    };
    let cx = Context::detached(scope, Duration::from_secs(30));
    GcpCollector::new(options).discover(&cx).await
}

/// The endpoint that another test has started.
pub fn endpoint() -> Option<String> {
    std::env::var("GPUWATCH_TEST_ENDPOINT").ok()
}
