//! The official SDK lists the simulated fleet and sees exactly what is there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud_aliyun::{ACCESS_KEY_ID, ACCESS_KEY_SECRET, World};
use gpuwatch_test_kit::python_with;
use serde_json::Value;
use support::serve;

/// Modules of the vendor's SDK that its tests need.
const SDK: &str = "alibabacloud_ecs20140526.client";

/// What the SDK makes of the world; `None` without a Python that has it.
async fn listed_by_sdk(world: &World) -> Option<Vec<Value>> {
    let python = python_with(SDK)?;
    let server = serve(world).await;
    let roles = world
        .accounts()
        .into_iter()
        .filter(|account| account.uid != world.base_account());
    let output = tokio::process::Command::new(python)
        .arg("../../conformance/aliyun.py")
        .arg(server.url())
        .args(roles.map(|account| account.role_arn))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("ALIBABA_CLOUD_ACCESS_KEY_ID", ACCESS_KEY_ID)
        .env("ALIBABA_CLOUD_ACCESS_KEY_SECRET", ACCESS_KEY_SECRET)
        .output()
        .await
        .unwrap();
    let failed: Vec<_> = server.calls().into_iter().filter(|call| !call.succeeded()).collect();
    server.stop().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(failed.is_empty(), "{failed:#?}");
    let mut rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    rows.sort_by_key(|row| ["account", "region", "instance_id"].map(|name| row[name].as_str().unwrap().to_owned()));
    Some(rows)
}

async fn assert_same(world: &World) {
    let Some(listed) = listed_by_sdk(world).await else {
        return;
    };
    let truth = world.truth();
    assert_eq!(listed.len(), truth.len());
    for (row, truth) in listed.iter().zip(&truth) {
        // Which instances commitments pay for is not in these answers.
        let mode = match truth.billing_detail {
            "reserved_instance" | "savings_plan" => "on_demand",
            _ => truth.billing_mode,
        };
        // Nor is the size of a slice of a card.
        let is_slice = truth.instance_type.starts_with("ecs.vgn") || truth.instance_type.starts_with("ecs.sgn");
        let gpus = truth.gpus.filter(|_| !is_slice);
        let texts = [
            ("account", truth.account.as_str()),
            ("region", &truth.region),
            ("zone", &truth.zone),
            ("instance_id", &truth.id),
            ("name", &truth.name),
            ("instance_type", &truth.instance_type),
            ("state", truth.state),
            ("billing_mode", mode),
        ];
        for (name, value) in texts {
            assert_eq!(row[name], value, "{name} of {truth:?}");
        }
        assert_eq!(row["gpus"].as_f64(), gpus, "{truth:?}");
        let is_subscription = truth.billing_detail == "subscription";
        let renewal = world.instance(&truth.id).unwrap().spec.renewal.as_str();
        assert_eq!(row["renewal"].as_str(), is_subscription.then_some(renewal), "{truth:?}");
    }
}

// P53
#[tokio::test]
async fn the_official_sdk_lists_a_large_fleet_as_it_is() {
    assert_same(&World::fleet(7, 2345)).await;
}

#[tokio::test]
async fn the_official_sdk_lists_the_demo_fleet_as_it_is() {
    assert_same(&World::demo(11, 300)).await;
}
