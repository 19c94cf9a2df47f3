//! A collector against a simulated Azure on loopback.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_azure::{AzureCollector, AzureOptions};
use gpuwatch_collector_core::{
    Account, CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Reason, Scope,
};
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
            other @ Collected::Commitments(_) => panic!("{other:?}"),
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
                other @ Collected::Instances(_) => panic!("{other:?}"),
            }
        }
        bought
    }

    /// Everything that discovery finds, allocated.
    pub async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let (discovery, _) = self.discover().await;
        assert!(discovery.failures.is_empty(), "{:?}", discovery.failures);
        let mut fleet = Fleet::default();
        for target in &discovery.targets {
            for dataset in &target.datasets {
                let (results, cx) = self.collect(&target.scope, *dataset, PATIENT).await;
                assert!(!cx.is_degraded(), "{target:?}");
                for result in results {
                    match result.expect("collected") {
                        Collected::Instances(found) => fleet.instances.extend(found.into_iter().map(Arc::new)),
                        Collected::Commitments(found) => fleet.commitments.extend(found),
                    }
                }
            }
        }
        self.collector.allocate(&mut fleet);
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

/// The truth about what a world's tenant bought and what was collected of it.
pub fn compare_commitments(world: &World, commitments: &[Commitment]) {
    let mut expected: Vec<_> = world
        .commitments()
        .into_iter()
        .map(|c| {
            (
                c.id,
                c.account,
                c.region,
                c.kind.to_owned(),
                c.instance_type,
                c.units,
                c.used,
            )
        })
        .collect();
    let mut found: Vec<_> = commitments
        .iter()
        .map(|c| {
            (
                c.id.to_string(),
                c.account.to_string(),
                c.region.to_string(),
                c.kind.to_string(),
                c.instance_type.to_string(),
                c.units,
                c.used_units,
            )
        })
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

pub fn reason(result: &Result<impl Sized, CollectError>) -> Option<Reason> {
    result.as_ref().err().map(|error| error.reason)
}

/// What is compared of an instance.
pub type Facts = (
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

/// The truth about a world and what was collected from it, by id.
pub fn compare(world: &World, instances: &[Instance]) {
    let expected: BTreeMap<String, Facts> = world
        .truth()
        .into_iter()
        .map(|t| {
            let launched = Some(t.launched.as_second());
            let facts = (
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
        })
        .collect();
    let found: BTreeMap<String, Facts> = instances
        .iter()
        .map(|i| {
            let facts = (
                i.account.to_string(),
                i.region.to_string(),
                i.zone.to_string(),
                i.name.to_string(),
                i.instance_type.to_string(),
                i.state.to_string(),
                i.billing.mode.to_string(),
                i.billing.detail.to_string(),
                shown(i.accelerators.count.map(gpuwatch_inventory::GpuCount::get)),
                i.launched.map(jiff::Timestamp::as_second),
            );
            (i.id.to_string(), facts)
        })
        .collect();
    assert_eq!(found.len(), instances.len(), "an instance is there twice");
    for (id, facts) in &expected {
        assert_eq!(found.get(id), Some(facts), "{id}");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
}
