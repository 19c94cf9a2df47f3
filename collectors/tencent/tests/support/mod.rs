//! A collector against a scripted Tencent Cloud on loopback.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    clippy::match_same_arms,
    reason = "tests; a simulated cloud lives by the wall clock"
)]

pub mod script;

use std::time::Duration;

use gpuwatch_collector_core::{Account, CollectError, Collected, Collector, Context, Dataset, Discovery, Scope};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_collector_tencent::{Site, TencentCollector, TencentOptions};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server, ServerOptions};
use gpuwatch_inventory::{Commitment, Instance, Provider};
use serde_json::{Value, json};

pub use script::{OWNER, SECRET_ID, SECRET_KEY, Script};

pub const SECOND: &str = "100000000002";
pub const GUANGZHOU: &str = "ap-guangzhou";
pub const SINGAPORE: &str = "ap-singapore";

/// Long enough for every retry.
pub const PATIENT: Duration = Duration::from_secs(40);

pub struct Rig {
    pub server: Server,
    pub script: Script,
    pub collector: TencentCollector,
}

/// Two regions for any account, and one that is not available.
pub fn script() -> Script {
    let script = Script::new();
    for account in [OWNER, SECOND] {
        for (region, state) in [
            (GUANGZHOU, "AVAILABLE"),
            (SINGAPORE, "AVAILABLE"),
            ("ap-taipei", "UNAVAILABLE"),
            ("ap-shanghai-fsi", "AVAILABLE"),
        ] {
            for service in ["region", "cvm"] {
                let record = json!({"Region": region, "RegionState": state});
                script.add(account, "", &format!("{service} DescribeRegions"), record);
            }
        }
    }
    script
}

pub fn role(account: &str) -> String {
    format!("qcs::cam::uin/{account}:roleName/gpuwatch")
}

/// A machine with one T4, as the API prints it.
pub fn machine(id: &str) -> Value {
    json!({
        "InstanceId": id, "InstanceName": format!("训练-{id}"), "InstanceType": "GN7.2XLARGE32", "CPU": 8, "Memory": 32,
        "InstanceState": "RUNNING", "RestrictState": "NORMAL", "StopChargingMode": "NOT_APPLICABLE",
        "InstanceChargeType": "POSTPAID_BY_HOUR", "CreatedTime": "2026-01-01T02:43:51Z", "ExpiredTime": null,
        "Placement": {"Zone": "ap-guangzhou-6", "ProjectId": 0, "HostId": ""},
        "GPUInfo": {"GPUCount": 1.0, "GPUId": ["0000:00:08.0"], "GPUType": "NVIDIA T4"},
        "PrivateIpAddresses": ["10.0.0.2"], "Tags": [{"Key": "团队", "Value": "推荐"}],
    })
}

/// A machine with other values for some fields.
pub fn machine_with(id: &str, changes: Value) -> Value {
    let mut machine = machine(id);
    for (name, value) in changes.as_object().unwrap() {
        machine[name] = value.clone();
    }
    machine
}

pub async fn serve(script: &Script) -> Server {
    Server::start(&ServerOptions::default(), vec![Box::new(script.clone())])
        .await
        .expect("port")
}

impl Rig {
    pub async fn new(script: Script, configure: impl FnOnce(&mut TencentOptions)) -> Self {
        Self::with_environment(script, configure, |_| None).await
    }

    /// A collector that has no credentials but those of the environment.
    pub async fn with_environment(
        script: Script,
        configure: impl FnOnce(&mut TencentOptions),
        environment: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let server = serve(&script).await;
        let mut options = TencentOptions::named("cn");
        options.endpoint_url = Some(server.url());
        options.metadata_url = Some(server.url());
        options.secret_id = Some(SecretSource::value(SECRET_ID));
        options.secret_key = Some(SecretSource::value(SECRET_KEY));
        options.owner_tags = vec!["团队".into()];
        configure(&mut options);
        let collector = TencentCollector::with_environment(options, &environment);
        Self {
            server,
            script,
            collector,
        }
    }

    /// A collector whose accounts have been discovered.
    pub async fn discovered(script: Script, configure: impl FnOnce(&mut TencentOptions)) -> Self {
        let rig = Self::new(script, configure).await;
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

    pub fn fault(&self, kind: FaultKind, service: &str, operation: &str, region: Option<&str>) {
        let rule = FaultRule::new(kind).service(service).operation(operation);
        self.server.faults().add(match region {
            Some(region) => rule.region(region),
            None => rule,
        });
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
    ) -> (Vec<(&'static str, Result<Collected, CollectError>)>, Context) {
        gpuwatch_test_kit::collect(&self.collector, scope, dataset, limit).await
    }

    /// Instances of every part of a scope.
    pub async fn instances_in(&self, account: &str, region: &str) -> (Result<Vec<Instance>, CollectError>, Context) {
        let (results, cx) = self.collect(&scope(account, region), Dataset::Inventory, PATIENT).await;
        (gpuwatch_test_kit::instances(results), cx)
    }

    /// Commitments of every part of a scope.
    pub async fn commitments_in(&self, account: &str, region: &str) -> Result<Vec<Commitment>, CollectError> {
        let (results, _) = self
            .collect(&scope(account, region), Dataset::Commitments, PATIENT)
            .await;
        gpuwatch_test_kit::commitments(results)
    }
}

pub fn international(options: &mut TencentOptions) {
    options.site = Site::International;
}

pub fn scope(account: &str, region: &str) -> Scope {
    Scope {
        provider: Provider::Tencent,
        account: Account {
            id: account.into(),
            name: "cn".into(),
        },
        region: region.into(),
    }
}
