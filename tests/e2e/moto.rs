//! The AWS collector against moto, compared with boto3's own listing.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Stdio},
    time::Duration,
};

use gpuwatch_inventory::Provider;
use gpuwatch_test_kit::python_with;
use serde_json::Value;

use crate::exposition::{Page, Sample};
use crate::prometheus::Prometheus;
use crate::support::{Running, gpuwatch, is_built_in, metrics_when, served_address, tool};

const FLEET: &str = "../tests/e2e/moto_fleet.py";

fn state(of: &str) -> &str {
    match of {
        "pending" => "starting",
        other => other,
    }
}

// P53: 1,200 GPU instances in one region cross the page size of 1,000.
#[tokio::test]
async fn the_page_agrees_with_boto3_instance_by_instance() {
    if !is_built_in(Provider::Aws) {
        return;
    }
    let Some(python) = python_with("boto3, moto.server") else {
        return;
    };
    let moto = Running::start(Command::new(python).arg(FLEET).stderr(Stdio::null()), false);
    let fleet: Value = moto.line("moto fleet", Duration::from_mins(5), |line| {
        serde_json::from_str(line).ok()
    });
    let gpus: BTreeMap<String, f64> = serde_json::from_value(fleet["gpus"].clone()).unwrap();
    let field = |instance: &Value, name: &str| instance[name].as_str().unwrap_or_default().to_owned();
    let expected: BTreeMap<(String, String), Value> = fleet["instances"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|instance| gpus.contains_key(&field(instance, "type")))
        .map(|instance| ((field(instance, "region"), field(instance, "id")), instance.clone()))
        .collect();
    let in_one_region = expected.keys().filter(|(region, _)| region == "us-east-1").count();
    assert!(
        in_one_region > 1000,
        "{in_one_region} GPU instances do not cross a page"
    );

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("gpuwatch.yaml");
    let text = format!(
        "listen: 127.0.0.1:0\n\
         providers:\n  aws:\n    - name: moto\n      type_filter: exact\n      endpoint_url: {}\n      \
         regions: [us-east-1, us-west-2, eu-central-1, ap-northeast-1]\n\
         intervals: {{inventory: 3s, commitments: 1m}}\nlabels: {{owner_tags: [team]}}\n",
        fleet["url"].as_str().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    let serve = Running::start(
        gpuwatch()
            .args(["serve", "--config"])
            .arg(&config)
            .env("AWS_ACCESS_KEY_ID", "testing")
            .env("AWS_SECRET_ACCESS_KEY", "testing"),
        true,
    );
    let address = served_address(&serve);
    let url = format!("http://{address}/metrics");
    let (_, page) = metrics_when(&url, "four regions polled", |page| {
        let fresh = |task: &&Sample| task.label("dataset") == "inventory" && task.value == 1.0;
        page.named("gpuwatch_task_up").filter(fresh).count() == 4
            && page.named("gpuwatch_instance_info").count() >= expected.len()
            && down(page).count() >= 4
            && page.named("gpuwatch_task_errors_total").any(|error| {
                error.label("dataset") == "commitments" && error.label("reason") == "other" && error.value > 0.0
            })
    })
    .await;

    let infos: BTreeMap<_, _> = page
        .named("gpuwatch_instance_info")
        .map(|info| (info.instance(), info))
        .collect();
    assert_eq!(
        infos.len(),
        page.named("gpuwatch_instance_info").count(),
        "no instance twice"
    );
    assert_eq!(
        infos.keys().collect::<BTreeSet<_>>(),
        expected.keys().collect::<BTreeSet<_>>()
    );
    let cards = page.by_instance("gpuwatch_instance_gpus");
    let launched = page.by_instance("gpuwatch_instance_launch_timestamp_seconds");
    for (key, instance) in &expected {
        let info = infos[key];
        let kind = field(instance, "type");
        assert_eq!(info.label("account"), field(instance, "account"), "{key:?}");
        assert_eq!(info.label("account_name"), "moto", "{key:?}");
        assert_eq!(info.label("instance_type"), kind, "{key:?}");
        assert_eq!(info.label("zone"), field(instance, "zone"), "{key:?}");
        assert_eq!(info.label("name"), field(instance, "name"), "{key:?}");
        assert_eq!(info.label("owner"), field(instance, "team"), "{key:?}");
        assert_eq!(info.label("state"), state(&field(instance, "state")), "{key:?}");
        let mode = if field(instance, "lifecycle") == "spot" {
            "spot"
        } else {
            "on_demand"
        };
        assert_eq!(info.label("billing_mode"), mode, "{key:?}");
        assert_eq!(cards.get(key), gpus.get(&kind), "{key:?} {kind}");
        assert_eq!(launched.get(key).copied(), instance["launched"].as_f64(), "{key:?}");
    }

    if let Some(prometheus) = tool("prometheus") {
        let prometheus = Prometheus::scraping(&prometheus, &address);
        let rows = prometheus.result("count(gpuwatch_instance_info)").await;
        assert_eq!(rows[0]["value"][1], expected.len().to_string(), "what Prometheus has");
    }

    // moto lacks reserved instances and capacity reservations and answers
    // with an HTML page: counted, shown as down, and nothing else suffers.
    let down: Vec<_> = down(&page).collect();
    assert!(
        down.iter().all(|task| task.label("dataset") == "commitments"),
        "{down:?}"
    );
}

fn down(page: &Page) -> impl Iterator<Item = &Sample> {
    page.named("gpuwatch_task_up").filter(|task| task.value == 0.0)
}
