//! Each cloud's official Python SDK lists the simulated fleet; the page of
//! the real binary, which polled the same fleet, agrees instance by instance.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use gpuwatch_fakecloud::{FakeCloud, Options, aliyun, azure, gcp, tencent};
use gpuwatch_fakecloud_core::InstanceTruth;
use gpuwatch_inventory::Provider;
use gpuwatch_test_kit::python_with;
use serde::Deserialize;

use crate::{
    exposition::{Page, Sample},
    support::{Running, gpuwatch, is_built_in, metrics_when, served_address},
};

/// Above every page size of these clouds, several times.
const MACHINES: usize = 2_345;
const SEED: u64 = 7;

/// One instance as a conformance script prints it.
#[derive(Debug, Deserialize)]
struct Listed {
    account: String,
    region: String,
    zone: String,
    instance_id: String,
    name: String,
    instance_type: String,
    state: String,
    billing_mode: String,
    gpus: Option<f64>,
}

/// One cloud under test.
struct Cloud {
    provider: Provider,
    /// A module that must be importable.
    module: &'static str,
    truth: Vec<InstanceTruth>,
    /// Whether the SDK's own listing holds this instance: the client library
    /// for TPUs speaks gRPC only.
    in_sdk: fn(&InstanceTruth) -> bool,
}

fn script(provider: Provider) -> PathBuf {
    PathBuf::from(format!("../tests/conformance/{provider}.py"))
}

type Key = (String, String);

/// What the SDK lists; `None` without a Python that has it.
async fn listed_by_sdk(cloud: &Cloud, fake: &FakeCloud) -> Option<Vec<Listed>> {
    let python = python_with(cloud.module)?;
    let (provider, url) = (cloud.provider, fake.url());
    let roles = gpuwatch::demo::other_accounts(provider, fake);
    let run = move || Command::new(python).arg(script(provider)).arg(url).args(roles).output();
    let output = tokio::task::spawn_blocking(run)
        .await
        .unwrap()
        .expect("the script runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{provider}: {complaint}");
    Some(serde_json::from_slice(&output.stdout).expect("a JSON array"))
}

/// The page of the real binary once it shows every machine of the truth with
/// its billing mode: commitments and instances arrive on their own.
async fn page_of(cloud: &Cloud, fake: &FakeCloud, truth: &BTreeMap<Key, InstanceTruth>) -> Page {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gpuwatch.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\nproviders:\n{}intervals: {{inventory: 5s, commitments: 5s}}\n",
        gpuwatch::demo::section(cloud.provider, fake)
    );
    std::fs::write(&config, text).unwrap();
    let serve = Running::start(gpuwatch().args(["serve", "--config"]).arg(&config), true);
    let metrics = format!("http://{}/metrics", served_address(&serve));
    let whole = |page: &Page| modes(page) == wanted_modes(truth);
    metrics_when(&metrics, "the whole fleet with its billing modes", whole)
        .await
        .1
}

/// Compares the page with the truth and with the SDK's listing.
async fn compare(cloud: Cloud, fake: FakeCloud) {
    let provider = cloud.provider;
    if !is_built_in(provider) {
        return;
    }
    let Some(listed) = listed_by_sdk(&cloud, &fake).await else {
        return;
    };
    let truth: BTreeMap<Key, InstanceTruth> = cloud
        .truth
        .iter()
        .map(|instance| ((instance.region.clone(), instance.id.clone()), instance.clone()))
        .collect();
    assert!(truth.len() >= MACHINES, "{provider}: {} machines", truth.len());
    let page = page_of(&cloud, &fake, &truth).await;
    let infos: BTreeMap<_, _> = page
        .named("gpuwatch_instance_info")
        .map(|info| (info.instance(), info))
        .collect();
    let count = page.named("gpuwatch_instance_info").count();
    assert_eq!(infos.len(), count, "{provider}: no instance twice");
    for (key, instance) in &truth {
        let info = infos
            .get(key)
            .unwrap_or_else(|| panic!("{provider}: {key:?} is missing"));
        assert_eq!(info.label("billing_mode"), instance.billing_mode, "{provider} {key:?}");
        assert_eq!(
            info.label("billing_detail"),
            instance.billing_detail,
            "{provider} {key:?}"
        );
    }
    for mode in ["on_demand", "reserved", "spot"] {
        let is_there = truth.values().any(|instance| instance.billing_mode == mode);
        assert!(is_there, "{provider}: the fleet has {mode}");
    }
    let of_sdk = truth.values().filter(|instance| (cloud.in_sdk)(instance)).count();
    assert_eq!(listed.len(), of_sdk, "{provider}: what the SDK lists");
    let cards = page.by_instance("gpuwatch_instance_gpus");
    for instance in &listed {
        let key = (instance.region.clone(), instance.instance_id.clone());
        let info = infos
            .get(&key)
            .unwrap_or_else(|| panic!("{provider}: the page lacks {key:?}"));
        agree(provider, instance, info, cards.get(&key).copied());
    }
    fake.stop().await;
}

/// One instance of the SDK's listing against the page.
fn agree(provider: Provider, instance: &Listed, info: &Sample, gpus: Option<f64>) {
    let id = &instance.instance_id;
    assert_eq!(info.label("provider"), provider.as_str());
    for (label, expected) in [
        ("account", &instance.account),
        ("zone", &instance.zone),
        ("name", &instance.name),
        ("instance_type", &instance.instance_type),
        ("state", &instance.state),
    ] {
        assert_eq!(info.label(label), expected, "{provider} {id} {label}");
    }
    // Alibaba Cloud's API does not tell the size of a slice.
    let agrees = match (gpus, instance.gpus) {
        (Some(page), Some(sdk)) => (page - sdk).abs() < 1e-9,
        (page, None) => provider == Provider::Aliyun || page.is_none(),
        (None, Some(_)) => false,
    };
    assert!(agrees, "{provider} {id} {} {gpus:?}", instance.instance_type);
    // Which instances an account-wide commitment pays for is gpuwatch's
    // allocation; no SDK says it per instance.
    let mode = info.label("billing_mode");
    let allocated = mode == "reserved" && instance.billing_mode == "on_demand";
    assert!(allocated || mode == instance.billing_mode, "{provider} {id}: {mode}");
}

/// Instances by billing mode and detail.
fn modes(page: &Page) -> BTreeMap<(String, String), usize> {
    count(
        page.named("gpuwatch_instance_info")
            .map(|info| (info.label("billing_mode"), info.label("billing_detail"))),
    )
}

fn wanted_modes(truth: &BTreeMap<(String, String), InstanceTruth>) -> BTreeMap<(String, String), usize> {
    count(
        truth
            .values()
            .map(|instance| (instance.billing_mode, instance.billing_detail)),
    )
}

fn count<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for (mode, detail) in pairs {
        *counts.entry((mode.to_owned(), detail.to_owned())).or_default() += 1;
    }
    counts
}

async fn fake(options: Options) -> FakeCloud {
    FakeCloud::start(Options {
        keep_calls: 100,
        ..options
    })
    .await
    .expect("port")
}

#[tokio::test(flavor = "multi_thread")]
async fn google_cloud_agrees_with_its_sdk() {
    let world = gcp::World::fleet(SEED, MACHINES);
    let cloud = Cloud {
        provider: Provider::Gcp,
        module: "google.cloud.compute_v1",
        truth: world.truth(),
        in_sdk: |instance| !instance.id.contains('/'),
    };
    let gcp = Some(world);
    compare(
        cloud,
        fake(Options {
            gcp,
            ..Options::default()
        })
        .await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_agrees_with_its_sdk() {
    let world = azure::World::fleet(SEED, MACHINES);
    let cloud = Cloud {
        provider: Provider::Azure,
        module: "azure.mgmt.compute, azure.mgmt.resourcegraph",
        truth: world.truth(),
        in_sdk: |_| true,
    };
    let azure = Some(world);
    compare(
        cloud,
        fake(Options {
            azure,
            ..Options::default()
        })
        .await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aliyun_agrees_with_its_sdk() {
    let world = aliyun::World::fleet(SEED, MACHINES);
    let cloud = Cloud {
        provider: Provider::Aliyun,
        module: "alibabacloud_ecs20140526.client",
        truth: world.truth(),
        in_sdk: |_| true,
    };
    let aliyun = Some(world);
    compare(
        cloud,
        fake(Options {
            aliyun,
            ..Options::default()
        })
        .await,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tencent_agrees_with_its_sdk() {
    let world = tencent::World::fleet(SEED, MACHINES);
    let cloud = Cloud {
        provider: Provider::Tencent,
        module: "tencentcloud.cvm.v20170312.cvm_client",
        truth: world.truth(),
        in_sdk: |_| true,
    };
    let tencent = Some(world);
    compare(
        cloud,
        fake(Options {
            tencent,
            ..Options::default()
        })
        .await,
    )
    .await;
}
