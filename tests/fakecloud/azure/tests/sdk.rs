//! Microsoft's own clients list the simulated fleet and see exactly what is
//! there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

use std::collections::BTreeMap;

use gpuwatch_fakecloud_azure::{Azure, World};
use gpuwatch_fakecloud_core::{Server, ServerOptions};
use gpuwatch_test_kit::python_with;
use serde_json::Value;

/// Modules of the vendor's SDK that its tests need.
const SDK: &str = "azure.mgmt.compute, azure.mgmt.resourcegraph";

async fn assert_listed(world: &World) {
    let Some(python) = python_with(SDK) else { return };
    let server = Server::start(&ServerOptions::default(), vec![Box::new(Azure::new(world.clone()))])
        .await
        .unwrap();
    let output = tokio::process::Command::new(python)
        .arg("../../conformance/azure.py")
        .arg(server.url())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let failed: Vec<_> = server.calls().into_iter().filter(|call| !call.succeeded()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let listed: BTreeMap<&str, &Value> = listed
        .iter()
        .map(|row| (row["instance_id"].as_str().unwrap(), row))
        .collect();
    let truth = world.truth();
    assert_eq!(listed.len(), truth.len());
    for row in truth {
        let seen = listed[row.id.as_str()];
        for (key, expected) in [
            ("account", row.account.as_str()),
            ("region", &row.region),
            ("zone", &row.zone),
            ("name", &row.name),
            ("instance_type", &row.instance_type),
            ("state", row.state),
        ] {
            assert_eq!(seen[key], expected, "{key} of {}", row.id);
        }
        // What a reservation pays for is in no field of the API.
        if row.billing_mode != "reserved" {
            assert_eq!(seen["billing_mode"], row.billing_mode, "{}", row.id);
        }
        let shown = |gpus: Option<f64>| gpus.map(|gpus| format!("{gpus:.6}"));
        assert_eq!(shown(seen["gpus"].as_f64()), shown(row.gpus), "{}", row.id);
    }
    server.stop().await;
}

// P53
#[tokio::test]
async fn microsofts_clients_list_a_large_fleet_page_by_page() {
    let world = World::fleet(7, 2_345);
    assert_eq!(world.truth().len(), 2_345);
    assert_listed(&world).await;
}

#[tokio::test]
async fn microsofts_clients_list_the_demo_fleet() {
    assert_listed(&World::demo(11, 300)).await;
}
