//! The collector against the simulated Alibaba Cloud, whose truth is worked
//! out without any code of this crate.
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
    CollectError, Collected, Collector as _, Context, Dataset, Discovery, Fleet, Reason, Scope,
};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_aliyun::{ACCESS_KEY_ID, ACCESS_KEY_SECRET, Aliyun, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server, ServerOptions};
use gpuwatch_inventory::{Commitment, Instance, Provider};

const PATIENT: Duration = Duration::from_secs(30);

struct Rig {
    server: Server,
    collector: AliyunCollector,
}

impl Rig {
    async fn new(world: &World, configure: impl FnOnce(&mut AliyunOptions)) -> Self {
        let server = Server::start(&ServerOptions::default(), vec![Box::new(Aliyun::new(world.clone()))])
            .await
            .expect("port");
        let mut options = AliyunOptions {
            access_key_id: Some(SecretSource::value(ACCESS_KEY_ID)),
            access_key_secret: Some(SecretSource::value(ACCESS_KEY_SECRET)),
            endpoint_url: Some(server.url()),
            ..AliyunOptions::named("cn")
        };
        let own = world.base_account();
        let others = world.accounts().into_iter().filter(|account| account.uid != own);
        options.assume_roles = std::iter::once("self".to_owned())
            .chain(others.map(|account| account.role_arn))
            .collect();
        configure(&mut options);
        let collector = AliyunCollector::new(options);
        Self { server, collector }
    }

    async fn discover(&self) -> Discovery {
        let account = gpuwatch_collector_core::Account {
            id: "cn".into(),
            name: "cn".into(),
        };
        let scope = Scope {
            provider: Provider::Aliyun,
            account,
            region: Scope::GLOBAL.into(),
        };
        self.collector.discover(&Context::detached(scope, PATIENT)).await
    }

    /// Everything that discovery finds, allocated.
    async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let discovery = self.discover().await;
        assert!(discovery.failures.is_empty(), "{:?}", discovery.failures);
        let mut fleet = Fleet::default();
        for target in &discovery.targets {
            for dataset in &target.datasets {
                let cx = Context::detached(target.scope.clone(), PATIENT);
                for part in self.collector.parts(&target.scope, *dataset) {
                    match self
                        .collector
                        .collect(&target.scope, *dataset, part, &cx)
                        .await
                        .expect("collected")
                    {
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

fn compare(world: &World, instances: &[Instance]) {
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
            shown(i.accelerators.count.map(|count| count.get())),
            i.launched.map(|time| time.as_second()),
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

fn compare_commitments(world: &World, commitments: &[Commitment]) {
    let mut expected: Vec<_> = world
        .commitments()
        .into_iter()
        .map(|c| (c.account, c.region, c.id, c.kind.to_owned(), c.units, c.used))
        .collect();
    let mut found: Vec<_> = commitments
        .iter()
        .map(|c| {
            let key = (
                c.account.to_string(),
                c.region.to_string(),
                c.id.to_string(),
                c.kind.to_string(),
            );
            (key.0, key.1, key.2, key.3, c.units, c.used_units)
        })
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

// P24, P28, P36
#[tokio::test]
async fn the_demo_fleet_is_seen_as_it_is() {
    let world = World::demo(7, 300);
    let (instances, commitments) = Rig::new(&world, |_| {}).await.everything().await;
    compare(&world, &instances);
    compare_commitments(&world, &commitments);
    assert!(instances.iter().any(|i| !i.cluster.is_empty()));
}

// P53
#[tokio::test]
async fn a_fleet_of_many_pages_is_complete() {
    let world = World::fleet(7, 2_345);
    assert_eq!(world.truth().len(), 2_345);
    let (instances, _) = Rig::new(&world, |_| {}).await.everything().await;
    compare(&world, &instances);
}

async fn list(rig: &Rig, scope: &Scope, limit: Duration) -> (Result<usize, CollectError>, Context) {
    let cx = Context::detached(scope.clone(), limit);
    let result = rig.collector.collect(scope, Dataset::Inventory, "instances", &cx).await;
    let count = result.map(|collected| match collected {
        Collected::Instances(found) => found.len(),
        Collected::Commitments(_) => panic!("commitments"),
    });
    (count, cx)
}

fn scopes(discovery: &Discovery, account: &str) -> Vec<Scope> {
    let targets = discovery
        .targets
        .iter()
        .filter(|t| t.datasets.contains(&Dataset::Inventory));
    targets
        .map(|t| t.scope.clone())
        .filter(|scope| &*scope.account.id == account)
        .collect()
}

// P46, P47
#[tokio::test]
async fn a_hanging_region_leaves_the_others_fresh() {
    let world = World::demo(7, 120);
    let rig = Rig::new(&world, |_| {}).await;
    let scopes = scopes(&rig.discover().await, &world.base_account());
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::Hang).region("cn-shanghai"));
    let looks = scopes.iter().map(|scope| list(&rig, scope, Duration::from_secs(2)));
    for (scope, (result, cx)) in scopes.iter().zip(futures::future::join_all(looks).await) {
        let hangs = &*scope.region == "cn-shanghai";
        assert_eq!(
            result.err().map(|error| error.reason),
            hangs.then_some(Reason::Timeout),
            "{}",
            scope.region
        );
        assert_eq!(cx.errors(Reason::Timeout) > 0, hangs);
    }
}

#[tokio::test]
async fn an_empty_list_without_the_permission_is_told_apart_from_an_empty_region() {
    let world = World::demo(7, 120);
    let own = world.base_account();
    let rig = Rig::new(&world, |_| {}).await;
    let scopes = scopes(&rig.discover().await, &own);
    let mut full = None;
    for scope in &scopes {
        let (count, cx) = list(&rig, scope, PATIENT).await;
        if count.expect("permitted") > 0 {
            full = Some(scope);
        }
        assert_eq!(cx.errors(Reason::Other), 0, "a probe is no error");
    }
    world.deny(&own, "ecs:DescribeInstances");
    let (result, cx) = list(&rig, full.expect("a region with machines"), PATIENT).await;
    let error = result.expect_err("refused");
    assert_eq!(error.reason, Reason::Permission);
    assert!(error.to_string().contains("ecs:DescribeInstances"), "{error}");
    assert!(cx.calls().iter().any(|call| call.error.is_some()), "check shows it");
    world.allow(&own, "ecs:DescribeInstances");
    let (result, _) = list(&rig, full.expect("a region"), PATIENT).await;
    assert!(result.expect("permitted again") > 0);
}

// P48
#[tokio::test]
async fn a_malformed_record_is_skipped_and_counted() {
    let world = World::demo(7, 120);
    let rig = Rig::new(&world, |_| {}).await;
    let scopes = scopes(&rig.discover().await, &world.base_account());
    let (before, _) = list(&rig, &scopes[0], PATIENT).await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::MalformedRecord).operation("DescribeInstances"));
    let (after, cx) = list(&rig, &scopes[0], PATIENT).await;
    assert_eq!(after.unwrap(), before.unwrap());
    assert!(cx.skipped("malformed") > 0);
}

#[tokio::test]
async fn sessions_that_have_ended_are_renewed_and_clocks_corrected() {
    let world = World::demo(7, 120);
    let rig = Rig::new(&world, |_| {}).await;
    let discovery = rig.discover().await;
    let own = world.base_account();
    let other = discovery
        .targets
        .iter()
        .map(|t| &t.scope.account.id)
        .find(|id| ***id != *own)
        .expect("a role's account")
        .clone();
    let scope = scopes(&discovery, &other).remove(0);
    world.expire_sessions();
    assert!(list(&rig, &scope, PATIENT).await.0.is_ok());
    world.set_clock_offset(jiff::SignedDuration::from_hours(2));
    assert!(
        list(&rig, &scope, PATIENT).await.0.is_ok(),
        "dated by the service's clock"
    );
}

// P52
#[tokio::test]
async fn refused_keys_are_an_error_that_shows_no_secret() {
    let world = World::demo(7, 60);
    let rig = Rig::new(&world, |options| {
        options.access_key_secret = Some(SecretSource::value("wr0ng-secret"))
    })
    .await;
    let failures = rig.discover().await.failures;
    assert!(!failures.is_empty());
    for failure in failures {
        assert_eq!(failure.error.reason, Reason::Credentials);
        assert!(!failure.error.to_string().contains("wr0ng-secret"));
    }
}

/// What a fault must be counted as; `None` when a correct client is not
/// troubled by it.
fn expected(kind: FaultKind) -> Option<Reason> {
    match kind {
        FaultKind::Throttled { .. } => Some(Reason::Throttled),
        FaultKind::InternalError | FaultKind::HtmlError => Some(Reason::Other),
        FaultKind::HtmlSuccess | FaultKind::TruncatedBody | FaultKind::CutOffDocument => Some(Reason::Decode),
        FaultKind::Hang => Some(Reason::Timeout),
        FaultKind::DropConnection => Some(Reason::Network),
        FaultKind::ExpiredToken | FaultKind::AuthFailure => Some(Reason::Credentials),
        FaultKind::AccessDenied => Some(Reason::Permission),
        FaultKind::OptInRequired => Some(Reason::NotEnabled),
        FaultKind::EndlessToken | FaultKind::RepeatedToken => Some(Reason::Decode),
        FaultKind::UnknownEnum
        | FaultKind::EmptyPage
        | FaultKind::ReorderedRows
        | FaultKind::DuplicateRows
        | FaultKind::MalformedRecord
        | FaultKind::PartialResult => None,
    }
}

/// Every fault at one operation: the data are complete, or it is an error of
/// its class; never a shorter listing.
async fn matrix(operation: &'static str, part: &'static str, dataset: Dataset, region: Option<&'static str>) {
    let cases = FaultKind::ALL.iter().map(|kind| {
        let kind = *kind;
        tokio::spawn(async move {
            let world = World::demo(7, 120);
            let rig = Rig::new(&world, |_| {}).await;
            let discovery = rig.discover().await;
            let account = world.base_account();
            let is_it = |scope: &&Scope| &*scope.account.id == &*account && region.is_none_or(|r| &*scope.region == r);
            let scope = discovery
                .targets
                .iter()
                .map(|t| &t.scope)
                .find(is_it)
                .expect("a scope")
                .clone();
            let count = |collected: Collected| match collected {
                Collected::Instances(found) => found.len(),
                Collected::Commitments(found) => found.len(),
            };
            let cx = Context::detached(scope.clone(), PATIENT);
            let whole = rig
                .collector
                .collect(&scope, dataset, part, &cx)
                .await
                .map(count)
                .expect("without a fault");
            rig.server.faults().add(FaultRule::new(kind).operation(operation));
            let limit = if kind == FaultKind::Hang {
                Duration::from_secs(2)
            } else {
                Duration::from_mins(2)
            };
            let cx = Context::detached(scope.clone(), limit);
            let found = rig.collector.collect(&scope, dataset, part, &cx).await.map(count);
            match (expected(kind), found) {
                (Some(reason), Err(error)) => {
                    assert_eq!(error.reason, reason, "{operation} {kind}: {error}");
                    assert!(!error.to_string().contains(ACCESS_KEY_SECRET), "{error}");
                }
                (None, Ok(found)) => {
                    // A word that nobody knows is no active commitment.
                    let unknown = kind == FaultKind::UnknownEnum && dataset == Dataset::Commitments;
                    assert!(found == whole || unknown, "{operation} {kind}: {found} of {whole}");
                }
                (expected, found) => panic!("{operation} {kind}: {expected:?}, {found:?}"),
            }
        })
    });
    for case in cases.collect::<Vec<_>>() {
        case.await.unwrap_or_else(|error| panic!("{operation}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_instances() {
    matrix(
        "DescribeInstances",
        "instances",
        Dataset::Inventory,
        Some("cn-hangzhou"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_reserved_instances() {
    matrix(
        "DescribeReservedInstances",
        "reserved_instances",
        Dataset::Commitments,
        Some("cn-hangzhou"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_private_pools() {
    matrix(
        "DescribeElasticityAssurances",
        "elasticity_assurances",
        Dataset::Commitments,
        Some("cn-hangzhou"),
    )
    .await;
    matrix(
        "DescribeCapacityReservations",
        "capacity_reservations",
        Dataset::Commitments,
        Some("cn-hangzhou"),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_while_listing_savings_plans() {
    matrix(
        "QuerySavingsPlansInstance",
        "savings_plans",
        Dataset::Commitments,
        Some(Scope::GLOBAL),
    )
    .await;
}
