//! A collector against a simulated Azure on loopback.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use gpuwatch_collector_azure::{AzureCollector, AzureOptions};
use gpuwatch_collector_core::{Account, CollectError, Collected, Collector, Context, Dataset, Discovery, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_azure::{ACCESS_TOKEN, Azure, MachineSpec, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server, ServerOptions};
use gpuwatch_inventory::{Commitment, Instance, Provider};

pub const FIRST: &str = "00000000-0000-4000-8000-000000000001";
pub const SECOND: &str = "00000000-0000-4000-8000-000000000002";
pub const EAST: &str = "eastus";
pub const WEST: &str = "westeurope";

/// Long enough for every retry.
pub const PATIENT: Duration = Duration::from_secs(30);

pub struct Rig {
    pub server: Server,
    pub world: World,
    pub collector: AzureCollector,
}

/// Two subscriptions with a machine in each of two regions.
pub fn small_world() -> World {
    let world = World::empty();
    for id in [FIRST, SECOND] {
        world.add_subscription(id, "corp");
        for location in [EAST, WEST] {
            world.add_machine(
                id,
                MachineSpec {
                    name: format!("vm-{location}"),
                    location: location.to_owned(),
                    ..MachineSpec::default()
                },
            );
        }
    }
    world
}

impl Rig {
    pub async fn new(world: World, configure: impl FnOnce(&mut AzureOptions)) -> Self {
        let clouds: Vec<Box<dyn gpuwatch_fakecloud_core::Cloud>> = vec![Box::new(Azure::new(world.clone()))];
        let server = Server::start(&ServerOptions::default(), clouds).await.expect("port");
        let mut options = AzureOptions::named("corp");
        options.endpoint_url = Some(server.url());
        options.access_token = Some(SecretSource::value(ACCESS_TOKEN));
        configure(&mut options);
        let collector = AzureCollector::new(options);
        Self {
            server,
            world,
            collector,
        }
    }

    pub async fn discover(&self) -> (Discovery, Context) {
        let cx = Context::detached(scope("corp", Scope::GLOBAL), PATIENT);
        (self.collector.discover(&cx).await, cx)
    }

    pub fn fault(&self, kind: FaultKind, operation: &str) {
        self.server.faults().add(FaultRule::new(kind).operation(operation));
    }

    pub fn calls_of(&self, operation: &str) -> usize {
        let calls = self.server.calls();
        calls.iter().filter(|call| call.operation == operation).count()
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
        (futures::future::join_all(runs).await, cx)
    }

    pub async fn instances_in(
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

    /// What the tenant bought.
    pub async fn everything_bought(&self) -> Vec<Commitment> {
        let (results, _) = self
            .collect(&scope(FIRST, Scope::GLOBAL), Dataset::Commitments, PATIENT)
            .await;
        let mut bought = Vec::new();
        for result in results {
            match result.expect("collected") {
                Collected::Commitments(found) => bought.extend(found),
                other => panic!("{other:?}"),
            }
        }
        bought
    }

    /// Everything that discovery finds, allocated.
    pub async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let (discovery, _) = self.discover().await;
        let fleet = gpuwatch_test_kit::everything(&self.collector, &discovery, PATIENT).await;
        let instances = fleet.instances.into_iter().map(|instance| (*instance).clone());
        (instances.collect(), fleet.commitments)
    }
}

pub fn scope(account: &str, region: &str) -> Scope {
    Scope {
        provider: Provider::Azure,
        account: Account {
            id: account.into(),
            name: "corp".into(),
        },
        region: region.into(),
    }
}
