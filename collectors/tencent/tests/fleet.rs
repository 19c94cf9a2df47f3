//! The collector against the simulated Tencent Cloud, whose truth is worked
//! out without any code of this crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::time::Duration;

use gpuwatch_collector_core::{Collector as _, Context, Dataset, Discovery, Reason, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_collector_tencent::{Site, TencentCollector, TencentOptions};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server, ServerOptions};
use gpuwatch_fakecloud_tencent::{
    MachineSpec, OWNER, ReservedSpec, SECRET_ID, SECRET_KEY, Site as PlayedSite, Tencent, World,
};
use gpuwatch_inventory::{Commitment, Instance, Provider};
use gpuwatch_test_kit::{assert_commitments, assert_instances};

const PATIENT: Duration = Duration::from_secs(30);

struct Rig {
    server: Server,
    collector: TencentCollector,
}

impl Rig {
    async fn new(world: &World, site: Site) -> Self {
        let server = Server::start(&ServerOptions::default(), vec![Box::new(Tencent::new(world.clone()))])
            .await
            .expect("port");
        let options = TencentOptions {
            site,
            secret_id: Some(SecretSource::value(SECRET_ID)),
            secret_key: Some(SecretSource::value(SECRET_KEY)),
            assume_roles: std::iter::once("self".to_owned()).chain(world.role_arns()).collect(),
            endpoint_url: Some(server.url()),
            ..TencentOptions::named("cn")
        };
        let collector = TencentCollector::with_environment(options, &|_| None);
        Self { server, collector }
    }

    async fn discover(&self) -> Discovery {
        let account = gpuwatch_collector_core::Account {
            id: "cn".into(),
            name: "cn".into(),
        };
        let scope = Scope {
            provider: Provider::Tencent,
            account,
            region: Scope::GLOBAL.into(),
        };
        self.collector.discover(&Context::detached(scope, PATIENT)).await
    }

    /// Everything that discovery finds, allocated.
    async fn everything(&self) -> (Vec<Instance>, Vec<Commitment>) {
        let discovery = self.discover().await;
        let fleet = gpuwatch_test_kit::everything(&self.collector, &discovery, PATIENT).await;
        let instances = fleet.instances.into_iter().map(|instance| (*instance).clone());
        (instances.collect(), fleet.commitments)
    }
}

// P24, P28, P36
#[tokio::test]
async fn the_demo_fleet_is_seen_as_it_is() {
    let world = World::demo(7, 300);
    let (instances, commitments) = Rig::new(&world, Site::China).await.everything().await;
    assert_instances(&world.truth(), &instances);
    assert_commitments(&world.commitments(), &commitments);
    let nodes = instances
        .iter()
        .filter(|i| &*i.name == "tke-node-1")
        .collect::<Vec<_>>();
    assert_eq!((&*nodes[0].cluster, &*nodes[0].pool), ("训练集群-0a1b2c3d", "np-gpu"));
    let by_name = |name: &str| instances.iter().find(|i| &*i.name == name).expect(name);
    let native = by_name("native-subscribed");
    assert_eq!((&*native.cluster, &*native.pool), ("训练集群-0a1b2c3d", "np-native"));
    assert_eq!(&*by_name("charge-cdhpaid").tenancy, "host");
    for (name, renews) in [
        ("包年包月-notify_and_auto_renew", Some(true)),
        ("包年包月-notify_and_manual_renew", Some(false)),
        ("包年包月-disable_notify_and_manual_renew", Some(false)),
        ("native-subscribed", Some(true)),
        ("native-on-demand", None),
        ("charge-spotpaid", None),
    ] {
        let instance = by_name(name);
        assert_eq!(instance.auto_renew, renews, "{name}");
        assert_eq!(instance.expires.is_some(), renews.is_some(), "{name}");
    }
    assert!(instances.iter().any(|i| &*i.billing.detail == "savings_plan"));
}

// P53
#[tokio::test]
async fn a_fleet_of_many_pages_is_complete() {
    let world = World::fleet(7, 2_345);
    assert_eq!(world.truth().len(), 2_345);
    let (instances, _) = Rig::new(&world, Site::China).await.everything().await;
    assert_instances(&world.truth(), &instances);
}

#[tokio::test]
async fn reserved_instances_of_the_international_site_are_allocated() {
    let world = World::empty(PlayedSite::International);
    for (name, hour, charge_type) in [
        ("a", 1, "POSTPAID_BY_HOUR"),
        ("b", 2, "POSTPAID_BY_HOUR"),
        ("c", 0, "SPOTPAID"),
    ] {
        world.add_machine(
            OWNER,
            MachineSpec {
                name: name.to_owned(),
                region: "ap-tokyo".to_owned(),
                zone: "ap-tokyo-2".to_owned(),
                charge_type: charge_type.to_owned(),
                created: jiff::Timestamp::from_second(1_767_225_600 + hour * 3600).unwrap(),
                ..MachineSpec::default()
            },
        );
    }
    for (id, state) in [("ri-1", "active"), ("ri-2", "retired")] {
        world.add_reserved(
            OWNER,
            ReservedSpec {
                id: id.to_owned(),
                region: "ap-tokyo".to_owned(),
                zone: "ap-tokyo-2".to_owned(),
                instance_type: "GN7.2XLARGE32".to_owned(),
                count: 1,
                state: state.to_owned(),
                expires: "2027-01-01T00:00:00Z".parse().unwrap(),
            },
        );
    }
    let (instances, commitments) = Rig::new(&world, Site::International).await.everything().await;
    assert_instances(&world.truth(), &instances);
    assert_commitments(&world.commitments(), &commitments);
    assert!(instances.iter().any(|i| &*i.billing.detail == "reserved_instance"));
}

// P46, P47
#[tokio::test]
async fn a_hanging_region_leaves_the_others_fresh() {
    let world = World::demo(7, 120);
    let rig = Rig::new(&world, Site::China).await;
    let discovery = rig.discover().await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::Hang).region("ap-shanghai"));
    let regions = discovery
        .targets
        .iter()
        .filter(|t| &*t.scope.account.id == OWNER && t.datasets.contains(&Dataset::Inventory));
    let looks = regions.map(|target| {
        let collector = &rig.collector;
        async move {
            let cx = Context::detached(target.scope.clone(), Duration::from_secs(2));
            let result = collector
                .collect(&target.scope, Dataset::Inventory, "instances", &cx)
                .await;
            (target.scope.region.to_string(), result.err().map(|error| error.reason))
        }
    });
    for (region, failed) in futures::future::join_all(looks).await {
        let expected = (region == "ap-shanghai").then_some(Reason::Timeout);
        assert_eq!(failed, expected, "{region}");
    }
}

#[tokio::test]
async fn a_missing_permission_is_no_empty_fleet() {
    let world = World::demo(7, 120);
    world.deny(OWNER, "cvm:DescribeInstances");
    let rig = Rig::new(&world, Site::China).await;
    let discovery = rig.discover().await;
    let target = discovery
        .targets
        .iter()
        .find(|t| &*t.scope.account.id == OWNER && &*t.scope.region == "ap-guangzhou");
    let scope = &target.expect("a region").scope;
    let cx = Context::detached(scope.clone(), PATIENT);
    let error = rig
        .collector
        .collect(scope, Dataset::Inventory, "instances", &cx)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Permission);
    assert!(error.to_string().contains("cvm:DescribeInstances"), "{error}");
}
