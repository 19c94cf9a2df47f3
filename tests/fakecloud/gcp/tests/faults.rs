//! Injected faults have the shape that the real services give them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server};
use gpuwatch_fakecloud_gcp::{InstanceSpec, TpuSpec, World};
use serde_json::Value;
use support::{Answer, get, names, serve, small_world};

const INSTANCES: &str = "/compute/v1/projects/p/aggregated/instances";
const NODES: &str = "/v2/projects/p/locations/-/nodes";
const SEARCH: &str = "/v3/projects:search";

fn world() -> World {
    let world = small_world();
    world.add_instances("p", "us-central1-a", 2, &InstanceSpec::of("g2-standard-4"));
    world.add_instance("p", "europe-west4-a", InstanceSpec::of("g2-standard-4").named("west"));
    world.add_tpu("p", "us-central1-a", TpuSpec::of("v6e-8").named("a"));
    world.add_tpu("p", "europe-west4-b", TpuSpec::of("v6e-8").named("b"));
    world
}

/// The answer with one fault in force.
async fn with_fault(server: &Server, kind: FaultKind, path: &str) -> Answer {
    let id = server.faults().add(FaultRule::new(kind).provider("gcp"));
    let answer = get(server, path).await;
    server.faults().remove(id);
    answer
}

fn rows(page: &Value) -> usize {
    names(page, "instances").len()
}

#[tokio::test]
async fn refusals_have_the_form_of_their_service() {
    let server = serve(&world()).await;
    let throttled = |retry_after| FaultKind::Throttled { retry_after };
    for (kind, path, status, reason) in [
        (throttled(None), INSTANCES, 403, "rateLimitExceeded"),
        (throttled(Some(3)), INSTANCES, 429, "RATE_LIMIT_EXCEEDED"),
        (throttled(None), NODES, 429, "RATE_LIMIT_EXCEEDED"),
        (throttled(None), SEARCH, 429, "RATE_LIMIT_EXCEEDED"),
        (FaultKind::InternalError, INSTANCES, 500, "backendError"),
        (FaultKind::ExpiredToken, INSTANCES, 401, "ACCESS_TOKEN_EXPIRED"),
        (FaultKind::AuthFailure, NODES, 401, "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
        (FaultKind::AccessDenied, INSTANCES, 403, "forbidden"),
        (FaultKind::AccessDenied, NODES, 403, "IAM_PERMISSION_DENIED"),
        (FaultKind::OptInRequired, INSTANCES, 403, "SERVICE_DISABLED"),
        (FaultKind::OptInRequired, NODES, 403, "SERVICE_DISABLED"),
    ] {
        let answer = with_fault(&server, kind, path).await;
        assert_eq!((answer.status, answer.reason()), (status, reason), "{kind} {path}");
        assert_eq!(answer.body["error"]["code"], status, "{kind} {path}");
    }
    let waits = with_fault(&server, throttled(Some(3)), INSTANCES).await;
    assert_eq!(waits.header("retry-after"), "3");
    // A number, never the id.
    let disabled = with_fault(&server, FaultKind::OptInRequired, NODES).await;
    let consumer = &disabled.body["error"]["details"][0]["metadata"]["consumer"];
    assert_eq!(consumer, "projects/100000007919");
    // The old form has no canonical code to go by.
    let old = with_fault(&server, throttled(None), INSTANCES).await;
    assert!(old.body["error"].get("status").is_none() && old.body["error"].get("details").is_none());
    // The newer services have no list of the old form.
    let new = with_fault(&server, FaultKind::AccessDenied, NODES).await;
    assert!(new.body["error"].get("errors").is_none());
}

#[tokio::test]
async fn a_part_that_cannot_be_reached_is_named() {
    let server = serve(&world()).await;
    let page = with_fault(&server, FaultKind::PartialResult, INSTANCES).await.body;
    assert_eq!(rows(&page), 2);
    assert_eq!(page["items"]["zones/europe-west4-a"]["warning"]["code"], "UNREACHABLE");
    assert_eq!(page["unreachables"][0], "projects/p/zones/europe-west4-a");
    let page = with_fault(&server, FaultKind::PartialResult, NODES).await.body;
    assert_eq!(page["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(page["unreachable"][0], "projects/p/locations/europe-west4-b");
    let path = "/compute/v1/projects/p/zones/us-central1-a/instances";
    let page = with_fault(&server, FaultKind::PartialResult, path).await.body;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(page["warning"]["code"], "PARTIAL_SUCCESS");
}

#[tokio::test]
async fn odd_answers_are_well_formed() {
    let server = serve(&world()).await;
    let odd = |kind| with_fault(&server, kind, INSTANCES);
    let unknown = odd(FaultKind::UnknownEnum).await.body;
    let text = unknown.to_string();
    assert_eq!(text.matches("\"status\":\"BRAND_NEW\"").count(), 2);
    assert_eq!(text.matches("\"provisioningModel\":\"BRAND_NEW\"").count(), 2);
    assert_eq!(rows(&odd(FaultKind::DuplicateRows).await.body), 6);
    let broken = odd(FaultKind::MalformedRecord).await.body;
    assert_eq!(rows(&broken), 4);
    assert!(names(&broken, "instances").iter().any(|(_, name)| name.is_empty()));
    let empty = odd(FaultKind::EmptyPage).await.body;
    assert_eq!((rows(&empty), empty["nextPageToken"].is_string()), (0, true));
    let endless = odd(FaultKind::EndlessToken).await.body;
    assert_eq!((rows(&endless), endless["nextPageToken"].is_string()), (3, true));
    let straight = names(&get(&server, INSTANCES).await.body, "instances");
    let turned = names(&odd(FaultKind::ReorderedRows).await.body, "instances");
    assert_eq!((turned.len(), turned == straight), (3, false));
    for kind in [FaultKind::HtmlSuccess, FaultKind::CutOffDocument] {
        let answer = odd(kind).await;
        assert_eq!((answer.status, answer.body.is_string()), (200, true), "{kind}");
    }
}

#[tokio::test]
async fn calls_are_logged_by_project_region_and_operation() {
    let server = serve(&world()).await;
    get(&server, "/compute/v1/projects/p/zones/us-central1-a/instances").await;
    get(&server, NODES).await;
    get(&server, "/v3/projects:search?pageToken=").await;
    get(&server, "/compute/v1/projects/nobody/regions").await;
    get(&server, "/compute/v1/projects/p/global/images").await;
    let calls: Vec<_> = server
        .calls()
        .into_iter()
        .map(|call| {
            let succeeded = call.succeeded();
            (call.service, call.operation, call.account, call.region, succeeded)
        })
        .collect();
    let row = |service: &str, operation: &str, account: &str, region: &str, succeeded| {
        let text = str::to_owned;
        (text(service), text(operation), text(account), text(region), succeeded)
    };
    assert_eq!(
        calls,
        [
            row("compute", "instances.list", "p", "us-central1", true),
            row("tpu", "nodes.list", "p", "", true),
            row("resourcemanager", "projects.search", "", "", true),
            row("compute", "regions.list", "nobody", "", false),
            row("compute", "unknown", "", "", false),
        ]
    );
}
