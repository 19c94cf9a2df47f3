//! `gpuwatch demo`, checked with promtool and scraped by a real Prometheus.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    time::Duration,
};

use gpuwatch_inventory::Provider;
use serde_json::Value;

use crate::{
    exposition::Page,
    prometheus::Prometheus,
    support::{Running, filter, get, gpuwatch, metrics_when, tool},
};

fn demo() -> (Running, String) {
    let running = Running::start(
        gpuwatch().args(["demo", "--listen", "127.0.0.1:0", "--instances", "200", "--seed", "1"]),
        false,
    );
    let url = running.line("metrics address", Duration::from_secs(30), |line| {
        let at = line.find("http://")?;
        let url = line[at..].split_whitespace().next()?;
        url.ends_with("/metrics").then(|| url.to_owned())
    });
    (running, url)
}

fn words(page: &Page, metric: &str, label: &str) -> BTreeSet<String> {
    page.named(metric)
        .map(|sample| sample.label(label).to_owned())
        .collect()
}

/// The clouds that the program was built with.
fn clouds() -> impl Iterator<Item = Provider> {
    let built_in = |provider: &Provider| gpuwatch::registry::is_built_in(*provider);
    Provider::ALL.iter().copied().filter(built_in)
}

/// Billing details, and the clouds that they must come from.
const DETAILS: [(&str, &[Provider]); 4] = [
    ("reserved_instance", &[Provider::Aws]),
    ("capacity_block", &[Provider::Aws]),
    ("subscription", &[Provider::Aliyun, Provider::Tencent]),
    ("reservation", &[Provider::Gcp, Provider::Azure]),
];

/// Kinds of commitments, and the clouds that they must come from.
const KINDS: [(&str, &[Provider]); 5] = [
    ("reserved_instance", &[Provider::Aws, Provider::Aliyun]),
    ("savings_plan", &[Provider::Aws, Provider::Azure, Provider::Aliyun]),
    (
        "capacity_reservation",
        &[Provider::Aws, Provider::Azure, Provider::Aliyun],
    ),
    ("capacity_block", &[Provider::Aws]),
    ("committed_use", &[Provider::Gcp]),
];

/// Those that this program must show.
fn expected<'a>(table: &'a [(&'a str, &[Provider])]) -> impl Iterator<Item = &'a str> {
    let shown = |(_, from): &&(&str, &[Provider])| clouds().any(|cloud| from.contains(&cloud));
    table.iter().filter(shown).map(|(word, _)| *word)
}

/// Samples of a metric by cloud.
fn by_cloud(page: &Page, metric: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for sample in page.named(metric) {
        *counts.entry(sample.label("provider").to_owned()).or_default() += 1;
    }
    counts
}

/// Every planted kind of machine is there, in every cloud, and the commitments
/// are known.
fn complete(page: &Page) -> bool {
    let details = words(page, "gpuwatch_instance_info", "billing_detail");
    let instances = by_cloud(page, "gpuwatch_instance_info");
    let commitments = by_cloud(page, "gpuwatch_commitment_info");
    expected(&DETAILS).all(|detail| details.contains(detail))
        && page.named("gpuwatch_task_up").all(|task| task.value == 1.0)
        && expected(&KINDS).all(|kind| words(page, "gpuwatch_commitment_info", "kind").contains(kind))
        && clouds().all(|cloud| {
            let cloud = cloud.as_str();
            instances.get(cloud).is_some_and(|n| *n >= 150) && commitments.contains_key(cloud)
        })
}

#[tokio::test]
async fn the_demo_shows_every_billing_mode_and_its_page_is_clean() {
    let (_running, url) = demo();
    let (text, page) = metrics_when(&url, "a complete page", complete).await;

    let modes = words(&page, "gpuwatch_instance_info", "billing_mode");
    assert!(
        modes.is_superset(&["on_demand", "reserved", "spot"].map(str::to_owned).into()),
        "{modes:?}"
    );
    let states = words(&page, "gpuwatch_instance_info", "state");
    assert!(
        states.is_superset(&["running", "stopped", "stopped_billed"].map(str::to_owned).into()),
        "{states:?}"
    );
    for cloud in clouds() {
        let of_cloud = |metric: &'static str| {
            page.named(metric)
                .filter(move |s| s.label("provider") == cloud.as_str())
        };
        let different = |label: &'static str| -> BTreeSet<&str> {
            of_cloud("gpuwatch_instance_info").map(|s| s.label(label)).collect()
        };
        assert!(different("account").len() >= 2, "{cloud}: several accounts");
        assert!(different("region").len() >= 3, "{cloud}: several regions");
        assert!(different("cluster").len() >= 2, "{cloud}: nodes of a cluster");
        for mode in ["on_demand", "reserved", "spot"] {
            assert!(different("billing_mode").contains(mode), "{cloud}: {mode}");
        }
        assert!(
            of_cloud("gpuwatch_instance_gpus").any(|s| s.value > 0.0 && s.value < 1.0),
            "{cloud}: fractions of a card"
        );
        assert!(
            of_cloud("gpuwatch_unknown_accelerators").any(|s| s.value > 0.0),
            "{cloud}: a type no catalogue knows"
        );
    }
    let owners = words(&page, "gpuwatch_instance_info", "owner");
    assert!(
        owners.iter().any(|owner| !owner.is_ascii()),
        "owners in Chinese: {owners:?}"
    );
    // P32
    let types = words(&page, "gpuwatch_instance_info", "instance_type");
    assert!(
        !types.iter().any(|t| t.starts_with("m5") || t.starts_with("c7")),
        "CPU machines: {types:?}"
    );

    if let Some(promtool) = tool("promtool") {
        let (fine, output) = filter(Command::new(promtool).args(["check", "metrics"]), &text);
        assert!(fine && output.trim().is_empty(), "promtool check metrics: {output}");
    }
}

#[tokio::test]
async fn a_real_prometheus_scrapes_the_demo_and_joins_gpus_with_models() {
    let Some(prometheus) = tool("prometheus") else { return };
    let (_running, url) = demo();
    metrics_when(&url, "a complete page", complete).await;
    let target = url.trim_start_matches("http://").trim_end_matches("/metrics");

    let prometheus = Prometheus::scraping(&prometheus, target);

    let query = "sum by (gpu_model) (gpuwatch_instance_gpus * on (provider,account,region,instance_id) \
                 group_left(gpu_model) gpuwatch_instance_info)";
    // Accounts join one after the other while the demo starts: both sides are
    // asked until they agree on a fleet of the size that was ordered.
    let mut last = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..100 {
        let page = Page::parse(&get(&url).await.expect("page"));
        last = (by_model(&prometheus.result(query).await), sums(&page));
        let instances = page.named("gpuwatch_instance_info").count();
        if instances >= 180 && agree(&last.0, &last.1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let (answered, expected) = last;
    assert!(
        agree(&answered, &expected),
        "Prometheus: {answered:?}\npage: {expected:?}"
    );
    assert!(expected.len() >= 5, "several models: {expected:?}");
    let up = prometheus.result("up").await;
    assert_eq!(up[0]["value"][1], "1");
}

/// Prometheus' answer: GPUs by model.
fn by_model(rows: &[Value]) -> BTreeMap<String, f64> {
    rows.iter()
        .map(|row| {
            let model = row["metric"]["gpu_model"].as_str().unwrap_or_default().to_owned();
            (model, row["value"][1].as_str().unwrap().parse().unwrap())
        })
        .collect()
}

/// The same sums straight from the page.
fn sums(page: &Page) -> BTreeMap<String, f64> {
    let gpus = page.by_instance("gpuwatch_instance_gpus");
    let mut sums = BTreeMap::new();
    for info in page.named("gpuwatch_instance_info") {
        if let Some(count) = gpus.get(&info.instance()) {
            *sums.entry(info.label("gpu_model").to_owned()).or_default() += count;
        }
    }
    sums
}

fn agree(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && (x.1 - y.1).abs() < 1e-6)
}
