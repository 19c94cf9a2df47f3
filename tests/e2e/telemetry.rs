//! Utilisation from end to end: simulated exporters, a real Prometheus that
//! scrapes them, the real binary that reads it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use gpuwatch_fakecloud::{FakeCloud, Options, Storage, TelemetryServer, TelemetryServerOptions, aws, telemetry};
use gpuwatch_fakecloud_core::workload::{Observer, Shape};
use gpuwatch_fakecloud_telemetry::{Exporter, Host, expected};
use gpuwatch_inventory::Provider;
use jiff::Timestamp;

use crate::{
    exposition::Page,
    prometheus::Prometheus,
    support::{Running, get, gpuwatch, metrics_when, served_address, tool},
};

/// Machines of each cloud.
const MACHINES: usize = 40;

fn clouds() -> impl Iterator<Item = Provider> {
    Provider::ALL
        .iter()
        .copied()
        .filter(|provider| gpuwatch::registry::is_built_in(*provider))
}

/// Machines of the clouds that the program was built with.
fn hosts(fake: &FakeCloud) -> Vec<Host> {
    let mut hosts = telemetry::hosts(fake);
    hosts.retain(|host| clouds().any(|provider| provider.as_str() == host.provider));
    hosts
}

/// Machines whose cards must be measured.
fn measured(host: &Host) -> bool {
    host.workload.observer == Observer::Exporter && host.workload.shape != Shape::DeadAgent
}

fn configuration(folder: &Path, fake: &FakeCloud, prometheus_url: &str) -> std::path::PathBuf {
    let sections: String = clouds()
        .map(|provider| gpuwatch::demo::section(provider, fake))
        .collect();
    let text = format!(
        "listen: 127.0.0.1:0\nproviders:\n{sections}telemetry:\n  - {{name: main, prometheus_url: \"{prometheus_url}\"}}\n\
         intervals: {{inventory: 5s, usage: 3s, commitments: 30s}}\n"
    );
    let path = folder.join("gpuwatch.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The real binary with the keys that the simulated AWS accepts.
fn program() -> std::process::Command {
    let mut command = gpuwatch();
    command
        .env("AWS_ACCESS_KEY_ID", aws::ACCESS_KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", aws::SECRET_ACCESS_KEY);
    command
}

type Card = (String, String, String);

/// Values of a series of cards, by instance and card.
fn by_card(page: &Page, metric: &str, signal: Option<&str>) -> BTreeMap<Card, f64> {
    let samples = page
        .named(metric)
        .filter(|sample| signal.is_none_or(|signal| sample.label("signal") == signal));
    let cards = samples.map(|sample| {
        let (region, id) = sample.instance();
        ((region, id, sample.label("gpu").to_owned()), sample.value)
    });
    cards.collect()
}

/// Cards whose value is not that of the workload at the time of the data.
fn wrong(page: &Page, hosts: &[Host]) -> Vec<String> {
    let times = by_card(page, "gpuwatch_gpu_telemetry_timestamp_seconds", None);
    let mut wrong = Vec::new();
    let signals = ["sm_active", "gr_engine_active", "vendor", "gpu_util"];
    let values: BTreeMap<&str, BTreeMap<Card, f64>> = signals
        .into_iter()
        .map(|signal| (signal, by_card(page, "gpuwatch_gpu_utilization_ratio", Some(signal))))
        .collect();
    for host in hosts.iter().filter(|host| measured(host)) {
        let of_card = |gpu: &str| (host.region.clone(), host.id.clone(), gpu.to_owned());
        let any = expected(host, Timestamp::UNIX_EPOCH);
        for (index, card) in any.iter().enumerate() {
            let key = of_card(&card.gpu);
            let Some(time) = times.get(&key) else {
                wrong.push(format!("{key:?} {} {:?} is not there", host.instance_type, host.tie));
                continue;
            };
            #[allow(clippy::cast_possible_truncation, reason = "a time of today")]
            let at = Timestamp::from_millisecond((time * 1000.0) as i64).unwrap();
            // A page is made a little after its scrape was begun.
            let possible = [at, at + std::time::Duration::from_secs(2)].map(|at| expected(host, at)[index].clone());
            let found = values[card.signal].get(&key).copied();
            if !possible
                .iter()
                .any(|card| found.is_some_and(|found| (found - card.ratio).abs() < 1e-6))
            {
                wrong.push(format!(
                    "{key:?} {:?} {}: {found:?}, not {possible:?}",
                    host.exporter, card.signal
                ));
            }
        }
    }
    wrong
}

/// Every instance that nothing measures says so, and shows no reading.
fn assert_unmeasured_is_not_idle(page: &Page, hosts: &[Host]) {
    let unmeasured: BTreeSet<(String, String)> = hosts
        .iter()
        .filter(|host| !measured(host))
        .map(|host| (host.region.clone(), host.id.clone()))
        .collect();
    assert!(!unmeasured.is_empty());
    let monitored = page.by_instance("gpuwatch_instance_monitored_gpus");
    for key in &unmeasured {
        assert_eq!(monitored.get(key), Some(&0.0), "{key:?}");
    }
    let shown = page
        .named("gpuwatch_gpu_utilization_ratio")
        .map(crate::exposition::Sample::instance);
    let both: Vec<_> = shown.filter(|key| unmeasured.contains(key)).collect();
    assert!(both.is_empty(), "{both:?}");
}

/// The page once it shows the truth of every card.
async fn true_page(metrics: &str, hosts: &[Host]) -> (String, Page) {
    let mut last = Vec::new();
    for _ in 0..300 {
        if let Some(text) = get(metrics).await {
            let page = Page::parse(&text);
            last = wrong(&page, hosts);
            if last.is_empty() && page.named("gpuwatch_gpu_utilization_ratio").count() > 0 {
                return (text, page);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    last.truncate(10);
    panic!("never the truth of every card: {last:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_prometheus_between_exporters_and_page_changes_nothing() {
    let Some(prometheus) = tool("prometheus") else { return };
    let fake = FakeCloud::start(Options {
        instances: MACHINES,
        ..Options::default()
    })
    .await
    .unwrap();
    let exporters = TelemetryServer::start(Storage::new(hosts(&fake)), TelemetryServerOptions::default())
        .await
        .unwrap();
    let prometheus = Prometheus::scraping_every(&prometheus, "2s", &exporters.targets());
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), &fake, &prometheus.url());
    let serve = Running::start(program().args(["serve", "--config"]).arg(&config), true);
    let metrics = format!("http://{}/metrics", served_address(&serve));
    let hosts = hosts(&fake);
    let families: BTreeSet<Exporter> = hosts
        .iter()
        .filter(|host| measured(host))
        .map(|host| host.exporter)
        .collect();
    assert!(families.len() >= 3, "{families:?}");

    let (text, page) = true_page(&metrics, &hosts).await;
    assert_unmeasured_is_not_idle(&page, &hosts);
    let up = page.named("gpuwatch_telemetry_up").map(|sample| sample.value);
    assert_eq!(up.collect::<Vec<_>>(), [1.0]);
    for metric in [
        "gpuwatch_instance_cpu_utilization_ratio",
        "gpuwatch_gpu_memory_used_ratio",
        "gpuwatch_gpu_power_watts",
    ] {
        assert!(page.named(metric).count() > 0, "{metric}");
    }
    if let Some(promtool) = tool("promtool") {
        let (fine, output) =
            crate::support::filter(std::process::Command::new(promtool).args(["check", "metrics"]), &text);
        assert!(fine && output.trim().is_empty(), "promtool check metrics: {output}");
    }
    // Every running instance is a target with its identity.
    let url = metrics.replace("/metrics", "/sd");
    let targets: serde_json::Value = serde_json::from_str(&get(&url).await.expect("targets")).expect("JSON");
    assert!(!targets.as_array().expect("a list").is_empty());

    // P19: the server goes away. What is known stays until it is too old.
    drop(prometheus);
    let (_, page) = metrics_when(&metrics, "that the server is gone", |page| {
        page.named("gpuwatch_telemetry_up").any(|sample| sample.value == 0.0)
    })
    .await;
    assert!(page.named("gpuwatch_gpu_utilization_ratio").count() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_zone_of_the_machine_changes_nothing() {
    let fake = FakeCloud::start(Options {
        instances: MACHINES / 2,
        ..Options::default()
    })
    .await
    .unwrap();
    let telemetry = TelemetryServer::start(Storage::new(hosts(&fake)), TelemetryServerOptions::default())
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), &fake, &telemetry.url());
    let hosts = hosts(&fake);
    for zone in ["UTC", "Asia/Shanghai", "America/St_Johns", "Pacific/Kiritimati"] {
        let serve = Running::start(program().env("TZ", zone).args(["serve", "--config"]).arg(&config), true);
        let metrics = format!("http://{}/metrics", served_address(&serve));
        true_page(&metrics, &hosts).await;
    }
}
