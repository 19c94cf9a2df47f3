//! Google's own client lists the simulated fleet and sees exactly what is
//! there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use gpuwatch_fakecloud_core::Server;
use gpuwatch_fakecloud_gcp::{FutureReservationSpec, ReservationSpec, World};
use gpuwatch_test_kit::python_with;
use serde_json::{Value, json};
use support::{SDK, serve, small_world};

/// What a script makes of the world; `None` without a Python to run it.
async fn run(server: &Server, script: &str) -> Option<Value> {
    let output = tokio::process::Command::new(python_with(SDK)?)
        .arg(script)
        .arg(server.url())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Rows by id, so that a difference is readable.
fn by_id(rows: Vec<Value>) -> BTreeMap<String, Value> {
    let count = rows.len();
    let map: BTreeMap<_, _> = rows
        .into_iter()
        .map(|row| (row["instance_id"].as_str().unwrap().to_owned(), row))
        .collect();
    assert_eq!(map.len(), count, "a machine is listed twice");
    map
}

async fn assert_listed(world: &World) -> Option<usize> {
    let server = serve(world).await;
    let listed = run(&server, "../../conformance/gcp.py").await?;
    let failed: Vec<_> = server.calls().into_iter().filter(|call| !call.succeeded()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let nodes: BTreeSet<String> = world.tpus().into_iter().map(|node| node.id).collect();
    let machines = world.truth().into_iter().filter(|row| !nodes.contains(&row.id));
    let expected = machines.map(|row| {
        json!({
            "account": row.account,
            "region": row.region,
            "zone": row.zone,
            "instance_id": row.id,
            "name": row.name,
            "instance_type": row.instance_type,
            "state": row.state,
            "billing_mode": row.billing_mode,
            "gpus": row.gpus,
        })
    });
    let expected = by_id(expected.collect());
    let mut listed = by_id(listed.as_array().unwrap().clone());
    // 8 and 8.0 are one number.
    for row in listed.values_mut() {
        row["gpus"] = json!(row["gpus"].as_f64());
    }
    assert_eq!(listed.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (id, row) in &expected {
        assert_eq!(&listed[id], row);
    }
    let pages = server
        .calls()
        .iter()
        .filter(|call| call.operation == "instances.aggregatedList")
        .count();
    server.stop().await;
    Some(pages)
}

// P53
#[tokio::test]
async fn googles_client_lists_a_large_fleet_page_by_page() {
    let world = World::fleet(7, 2_345);
    assert_eq!(world.truth().len(), 2_345);
    let Some(pages) = assert_listed(&world).await else {
        return;
    };
    assert!(pages >= 6, "{pages} pages");
}

#[tokio::test]
async fn googles_client_lists_the_demo_fleet() {
    assert_listed(&World::demo(11, 300)).await;
}

#[tokio::test]
async fn googles_client_follows_small_and_empty_pages() {
    let world = World::fleet(3, 150);
    world.limit_pages(40);
    assert_listed(&world).await;
}

#[tokio::test]
async fn googles_client_reads_future_reservations() {
    let world = small_world();
    let reservation = world.add_reservation("p", "us-central1-a", ReservationSpec::of("a4-highgpu-8g", 2));
    let id = world.add_future_reservation(
        "p",
        "us-central1-a",
        FutureReservationSpec {
            machine_type: "a4-highgpu-8g".to_owned(),
            count: 2,
            ends: "2026-12-24T00:00:00Z".parse().ok(),
            reservations: reservation.into_iter().collect(),
            ..FutureReservationSpec::default()
        },
    );
    let server = serve(&world).await;
    let Some(found) = run(&server, "tests/google_future.py").await else {
        return;
    };
    let expected = json!([{
        "scope": "zones/us-central1-a",
        "id": id,
        "mode": "CALENDAR",
        "status": "FULFILLED",
        "count": 2,
        "machine_type": "a4-highgpu-8g",
        "ends": "2026-12-23T16:00:00.000-08:00",
        "reservations": ["reservation-1"],
    }]);
    assert_eq!(found, expected);
}
