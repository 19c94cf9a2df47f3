//! What the simulated services list, and how they cut it into pages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and runs by the wall clock"
)]

mod support;

use std::collections::BTreeSet;

use gpuwatch_fakecloud_gcp::{
    CommitmentSpec, InstanceSpec, ProjectSpec, ProjectState, Provisioning, ReservationSpec, Status, TpuSpec, World,
};
use serde_json::Value;
use support::{get, names, pages, serve, small_world};

const INSTANCES: &str = "/compute/v1/projects/p/aggregated/instances";
const ZONE: &str = "us-central1-a";

/// The only machine of the small world, as the API shows it.
async fn machine(world: &World) -> Value {
    let server = serve(world).await;
    let answer = get(&server, INSTANCES).await;
    server.stop().await;
    let rows = &answer.body["items"][format!("zones/{ZONE}")]["instances"];
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{answer:?}");
    rows[0].clone()
}

// P53
#[tokio::test]
async fn zone_with_501_machines_comes_on_two_pages() {
    let world = small_world();
    world.add_instances("p", ZONE, 501, &InstanceSpec::of("g2-standard-4"));
    let server = serve(&world).await;
    let pages = pages(&server, INSTANCES, "").await;
    let counts: Vec<usize> = pages.iter().map(|page| names(page, "instances").len()).collect();
    assert_eq!(counts, [500, 1]);
    let all: BTreeSet<_> = pages.iter().flat_map(|page| names(page, "instances")).collect();
    assert_eq!(all.len(), 501);
    // The other zones are there with nothing but a warning that is noise.
    let warning = &pages[0]["items"]["zones/europe-west4-b"]["warning"];
    assert_eq!(warning["code"], "NO_RESULTS_ON_PAGE");
    assert!(pages[0].get("unreachables").is_none());
}

#[tokio::test]
async fn page_sizes_and_tokens_are_checked() {
    let world = small_world();
    world.add_instances("p", ZONE, 5, &InstanceSpec::of("g2-standard-4"));
    let server = serve(&world).await;
    let first = get(&server, &format!("{INSTANCES}?maxResults=2")).await;
    let token = first.body["nextPageToken"].as_str().unwrap().to_owned();
    for (query, status) in [
        ("maxResults=500".to_owned(), 200),
        ("maxResults=501".to_owned(), 400),
        ("maxResults=many".to_owned(), 400),
        (format!("maxResults=3&pageToken={token}"), 200),
        // Whatever selects rows must stay the same from page to page.
        (format!("filter=status%20%3D%20RUNNING&pageToken={token}"), 400),
        ("pageToken=made-up".to_owned(), 400),
        ("filter=nonsense".to_owned(), 400),
        ("%24alt=json&%24apiVersion=2026-09-01&pageToken=".to_owned(), 200),
    ] {
        let answer = get(&server, &format!("{INSTANCES}?{query}")).await;
        assert_eq!(answer.status, status, "{query}: {answer:?}");
    }
    let other = format!("/compute/v1/projects/p/zones?pageToken={token}");
    assert_eq!(get(&server, &other).await.status, 400);
}

#[tokio::test]
async fn machines_come_with_the_accelerators_of_their_type_unless_told_otherwise() {
    let world = small_world();
    world.add_instance("p", ZONE, InstanceSpec::of("a3-highgpu-8g"));
    let row = machine(&world).await;
    let kind = row["guestAccelerators"][0]["acceleratorType"].as_str().unwrap();
    assert!(
        kind.ends_with("/zones/us-central1-a/acceleratorTypes/nvidia-h100-80gb"),
        "{kind}"
    );
    assert_eq!(row["guestAccelerators"][0]["acceleratorCount"], 8);
    // Known by its type alone.
    let bare = small_world();
    let spec = InstanceSpec {
        accelerators: Some(Vec::new()),
        ..InstanceSpec::of("a2-highgpu-1g")
    };
    bare.add_instance("p", ZONE, spec);
    assert!(machine(&bare).await.get("guestAccelerators").is_none());
    assert_eq!(bare.truth()[0].gpus, Some(1.0));
    let attached = small_world();
    let spec = InstanceSpec::of("n1-custom-8-30720").attached("nvidia-tesla-t4", 2);
    attached.add_instance("p", ZONE, spec);
    assert_eq!(machine(&attached).await["guestAccelerators"][0]["acceleratorCount"], 2);
    assert_eq!(attached.truth()[0].gpus, Some(2.0));
}

// P24
#[tokio::test]
async fn purchases_are_written_as_the_api_writes_them() {
    for (provisioning, model, preemptible) in [
        (Provisioning::Standard, Some("STANDARD"), false),
        (Provisioning::Unset, None, false),
        (Provisioning::Spot, Some("SPOT"), true),
        (Provisioning::LegacyPreemptible, Some("STANDARD"), true),
        (Provisioning::FlexStart, Some("FLEX_START"), false),
        (Provisioning::ReservationBound, Some("RESERVATION_BOUND"), false),
        (Provisioning::Other("BRAND_NEW"), Some("BRAND_NEW"), false),
    ] {
        let world = small_world();
        world.add_instance("p", ZONE, InstanceSpec::of("g2-standard-4").bought(provisioning));
        let scheduling = machine(&world).await["scheduling"].clone();
        assert_eq!(scheduling.get("provisioningModel").and_then(Value::as_str), model);
        assert_eq!(scheduling["preemptible"], preemptible);
    }
}

#[tokio::test]
async fn numbers_of_64_bits_are_text_and_times_have_an_offset() {
    let world = small_world();
    let spec = InstanceSpec {
        id: Some(u64::MAX),
        created: Some("2026-03-01T08:30:00Z".parse().unwrap()),
        max_run_seconds: Some(86_400),
        ..InstanceSpec::of("g2-standard-4")
    };
    world.add_instance("p", ZONE, spec);
    let row = machine(&world).await;
    assert_eq!(row["id"], "18446744073709551615");
    assert_eq!(row["creationTimestamp"], "2026-03-01T00:30:00.000-08:00");
    assert_eq!(row["lastStartTimestamp"], row["creationTimestamp"]);
    assert_eq!(row["scheduling"]["maxRunDuration"]["seconds"], "86400");
}

#[tokio::test]
async fn zone_that_is_down_is_named_and_the_others_stay() {
    let world = small_world();
    world.add_instance("p", ZONE, InstanceSpec::of("g2-standard-4").named("lost"));
    world.add_instance("p", "europe-west4-a", InstanceSpec::of("g2-standard-4").named("kept"));
    world.zone_down(ZONE);
    let server = serve(&world).await;
    let page = get(&server, INSTANCES).await.body;
    assert_eq!(
        names(&page, "instances"),
        [("zones/europe-west4-a".into(), "kept".into())]
    );
    assert_eq!(page["items"]["zones/us-central1-a"]["warning"]["code"], "UNREACHABLE");
    assert_eq!(page["unreachables"][0], "projects/p/zones/us-central1-a");
    let path = |zone| format!("/compute/v1/projects/p/zones/{zone}/instances");
    assert_eq!(get(&server, &path(ZONE)).await.status, 503);
    assert_eq!(get(&server, &path("europe-west4-a")).await.status, 200);
    assert_eq!(get(&server, &path("mars-north1-a")).await.status, 400);
    // The other behaviour that clients must expect.
    world.outages_fail_lists(true);
    assert_eq!(get(&server, INSTANCES).await.status, 503);
    world.zone_up(ZONE);
    assert_eq!(names(&get(&server, INSTANCES).await.body, "instances").len(), 2);
}

#[tokio::test]
async fn reservations_count_what_runs_in_them_in_any_project() {
    let world = small_world();
    world.add_project("q", ProjectSpec::default());
    let commitment = world.add_commitment("p", "us-central1", CommitmentSpec::default());
    let reservation = ReservationSpec {
        name: "h100".to_owned(),
        commitment: commitment.clone(),
        shared_with: vec!["q".to_owned()],
        ..ReservationSpec::of("a3-highgpu-8g", 4)
    };
    let reservation = world.add_reservation("p", ZONE, reservation);
    let user = InstanceSpec {
        reservation: reservation.clone(),
        ..InstanceSpec::of("a3-highgpu-8g")
    };
    let stopped = user.clone().in_state(Status::Terminated);
    world.add_instance("q", ZONE, user.clone());
    world.add_instance("p", ZONE, user);
    world.add_instance("p", ZONE, stopped);
    let server = serve(&world).await;
    let page = get(&server, "/compute/v1/projects/p/aggregated/reservations")
        .await
        .body;
    let row = &page["items"][format!("zones/{ZONE}")]["reservations"][0];
    assert_eq!(row["specificReservation"]["count"], "4");
    assert_eq!(row["specificReservation"]["inUseCount"], "2");
    let name = "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/commitments/commitment-1";
    assert_eq!(row["commitment"], name);
    // A shared reservation is in its owner's list only.
    let page = get(&server, "/compute/v1/projects/q/aggregated/reservations")
        .await
        .body;
    assert!(names(&page, "reservations").is_empty());
    let page = get(&server, "/compute/v1/projects/q/aggregated/instances").await.body;
    let consumed = &page["items"][format!("zones/{ZONE}")]["instances"][0]["resourceStatus"];
    assert_eq!(
        consumed["reservationConsumptionInfo"]["consumedReservation"],
        "projects/p/zones/us-central1-a/reservations/h100"
    );
    let page = get(&server, "/compute/v1/projects/p/aggregated/commitments").await.body;
    let row = &page["items"]["regions/us-central1"]["commitments"][0];
    assert_eq!(Some(row["id"].as_str().unwrap()), commitment.as_deref());
    assert_eq!(row["resources"][0]["amount"], "8");
    assert_eq!(row["reservations"][0]["name"], "h100");
    let truth = world.truth();
    assert_eq!(truth.len(), 3);
    assert!(truth.iter().all(|row| row.billing_detail == "committed_use"));
}

#[tokio::test]
async fn machine_types_name_their_accelerators_and_can_be_filtered() {
    let server = serve(&small_world()).await;
    let path = "/compute/v1/projects/p/aggregated/machineTypes";
    let found = pages(&server, path, "?filter=name%20eq%20%22a9-.*%22").await;
    assert_eq!(found.len(), 1);
    assert_eq!(names(&found[0], "machineTypes").len(), 3, "one in each zone");
    let row = &found[0]["items"]["zones/us-central1-a"]["machineTypes"][0];
    assert_eq!(row["accelerators"][0]["guestAcceleratorType"], "nvidia-future-512gb");
    assert_eq!(row["accelerators"][0]["guestAcceleratorCount"], 8);
    let all = pages(&server, path, "?maxResults=50").await;
    let plain = all.iter().flat_map(|page| names(page, "machineTypes")).count();
    assert!(plain > 100 && all.len() > 2, "{plain} on {}", all.len());
    let kinds = get(&server, "/compute/v1/projects/p/aggregated/acceleratorTypes").await;
    assert!(
        names(&kinds.body, "acceleratorTypes")
            .iter()
            .any(|(_, name)| name == "nvidia-l4")
    );
}

#[tokio::test]
async fn regions_name_their_zones_and_zones_their_region() {
    let server = serve(&small_world()).await;
    let regions = get(&server, "/compute/v1/projects/p/regions").await.body;
    let names: Vec<_> = regions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["europe-west4", "us-central1"]);
    assert_eq!(regions["items"][0]["zones"].as_array().unwrap().len(), 2);
    let zones = get(&server, "/compute/v1/projects/p/zones").await.body;
    let last = &zones["items"][2];
    assert_eq!(last["name"], ZONE);
    assert!(last["region"].as_str().unwrap().ends_with("/regions/us-central1"));
}

#[tokio::test]
async fn tpu_nodes_are_listed_over_all_zones_and_pages() {
    let world = small_world();
    for number in 0..5 {
        let zone = if number < 3 { ZONE } else { "europe-west4-b" };
        world.add_tpu("p", zone, TpuSpec::of("v5litepod-8").named(&format!("n{number}")));
    }
    let spec = TpuSpec {
        spot: true,
        hosts: 4,
        ..TpuSpec::of("v5p-32").shaped("V5P", "2x2x4").named("pod")
    };
    let id = world.add_tpu("p", ZONE, spec);
    let server = serve(&world).await;
    let path = "/v2/projects/p/locations/-/nodes";
    let found = pages(&server, path, "?pageSize=2").await;
    assert_eq!(found.len(), 3);
    let rows: Vec<_> = found
        .iter()
        .flat_map(|page| page["nodes"].as_array().unwrap().clone())
        .collect();
    let pod = rows.iter().find(|row| row["id"].as_str() == id.as_deref()).unwrap();
    assert_eq!(pod["name"], "projects/p/locations/us-central1-a/nodes/pod");
    assert_eq!(pod["acceleratorConfig"]["topology"], "2x2x4");
    assert_eq!(pod["schedulingConfig"], serde_json::json!({ "spot": true }));
    assert_eq!(pod["networkEndpoints"].as_array().unwrap().len(), 4);
    let truth = world.truth();
    let pod = truth.iter().find(|row| row.name == "pod").unwrap();
    assert_eq!((pod.gpus, pod.billing_mode), (Some(16.0), "spot"));
    let one = get(&server, "/v2/projects/p/locations/europe-west4-b/nodes").await;
    assert_eq!(one.body["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(get(&server, "/v2/projects/p/locations/nowhere/nodes").await.status, 404);
    assert_eq!(get(&server, &format!("{path}?maxResults=2")).await.status, 400);
    world.zone_down(ZONE);
    let partial = get(&server, path).await.body;
    assert_eq!(partial["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(partial["unreachable"][0], "projects/p/locations/us-central1-a");
}

#[tokio::test]
async fn hosts_of_a_node_that_are_machines_are_counted_once() {
    let world = small_world();
    let machine = world
        .add_instance("p", ZONE, InstanceSpec::of("ct5lp-hightpu-4t"))
        .unwrap();
    let spec = TpuSpec {
        machines: vec![machine.clone()],
        ..TpuSpec::of("v5litepod-4")
    };
    world.add_tpu("p", ZONE, spec);
    let node = &world.tpus()[0];
    assert_eq!(node.addresses, [world.instances()[0].private_ip.clone()]);
    let truth = world.truth();
    assert_eq!(truth.len(), 1);
    assert_eq!((truth[0].id.as_str(), truth[0].gpus), (machine.as_str(), Some(4.0)));
}

#[tokio::test]
async fn projects_are_found_below_their_parents_and_by_search() {
    let world = World::with_regions(&[("us-central1", "a")]);
    let organization = world.add_organization("1", "example.com");
    let folder = world.add_folder("2", &organization, "Research");
    let nested = world.add_folder("3", &folder, "Vision");
    world.add_project("top", ProjectSpec::default().below(&organization));
    world.add_project("deep", ProjectSpec::named("深").below(&nested));
    let gone = ProjectSpec {
        state: ProjectState::DeleteRequested,
        ..ProjectSpec::default().below(&organization)
    };
    world.add_project("gone", gone);
    for number in 0..4 {
        world.add_project(&format!("many-{number}"), ProjectSpec::default().below(&folder));
    }
    let server = serve(&world).await;
    let ids = |page: &Value| -> Vec<String> {
        let rows = page["projects"].as_array().cloned().unwrap_or_default();
        rows.iter()
            .map(|row| row["projectId"].as_str().unwrap().to_owned())
            .collect()
    };
    let below = |parent: &str| format!("/v3/projects?parent={}", parent.replace('/', "%2F"));
    assert_eq!(ids(&get(&server, &below("organizations/1")).await.body), ["top"]);
    let all = format!("{}&showDeleted=true", below("organizations/1"));
    assert_eq!(ids(&get(&server, &all).await.body), ["gone", "top"]);
    let some = pages(&server, &below("folders/2"), "&pageSize=3").await;
    assert_eq!(some.iter().map(|page| ids(page).len()).collect::<Vec<_>>(), [3, 1]);
    let folders = get(&server, "/v3/folders?parent=organizations/1").await.body;
    assert_eq!(folders["folders"][0]["name"], "folders/2");
    let search = get(&server, "/v3/projects:search?query=state%3AACTIVE").await.body;
    assert_eq!(ids(&search).len(), 6);
    // Several fields are alternatives.
    let either = get(
        &server,
        "/v3/projects:search?query=parent%3Afolders%2F3%20state%3ADELETE_REQUESTED",
    )
    .await;
    assert_eq!(ids(&either.body), ["deep", "gone"]);
    assert_eq!(get(&server, "/v3/projects:search?query=nonsense").await.status, 400);
    assert_eq!(get(&server, "/v3/projects?parent=departments/1").await.status, 400);
    assert_eq!(get(&server, "/v3/projects?parent=folders/99").await.status, 403);
    let one = get(&server, "/v3/projects/deep").await.body;
    assert_eq!((&one["displayName"], &one["parent"]), (&"深".into(), &nested.into()));
    assert!(one["name"].as_str().unwrap().starts_with("projects/"));
    let organizations = get(&server, "/v3/organizations:search").await.body;
    assert_eq!(organizations["organizations"][0]["name"], organization);
}

#[tokio::test]
async fn what_changes_while_it_is_served_is_seen_at_once() {
    let world = small_world();
    let id = world
        .add_instance("p", ZONE, InstanceSpec::of("g2-standard-4"))
        .unwrap();
    let server = serve(&world).await;
    world.stop(&id, world.created());
    let page = get(&server, INSTANCES).await.body;
    let row = &page["items"][format!("zones/{ZONE}")]["instances"][0];
    assert_eq!(row["status"], "TERMINATED");
    assert!(row["lastStopTimestamp"].is_string());
    world.remove(&id);
    assert!(names(&get(&server, INSTANCES).await.body, "instances").is_empty());
    assert!(world.truth().is_empty());
}
