//! Answers that the simulated cloud does not give, byte by byte.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gpuwatch_collector_core::{Collector, Context, Dataset, Reason};
use gpuwatch_collector_gcp::{GcpCollector, GcpOptions};
use gpuwatch_test_kit::reason;
use support::{CENTRAL, PATIENT, PROJECT, WEST, instances, scope};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Serves what `answer` gives for a request's first line, one request per
/// connection, until the test ends. Returns the base URL.
async fn serve(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                    break;
                }
                request.extend(byte);
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let (status, body) = answer(request.lines().next().unwrap_or_default());
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
    });
    url
}

async fn collector(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> GcpCollector {
    let mut options = GcpOptions::named("ml");
    options.endpoint_url = Some(serve(answer).await);
    options.anonymous = true;
    GcpCollector::new(options)
}

fn context(region: &str) -> Context {
    Context::detached(scope(PROJECT, region), PATIENT)
}

const MACHINES: &str = r#"{"items": {"zones/us-central1-a": {"instances":
    [{"id": "1", "machineType": "zones/z/machineTypes/a3-highgpu-8g", "status": "RUNNING",
      "guestAccelerators": [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8}]}]}}}"#;

#[tokio::test]
async fn where_partial_results_cannot_be_asked_for_the_listing_is_read_without() {
    let collector = collector(|line| {
        if line.contains("returnPartialSuccess") {
            let message = r#"Invalid JSON payload received. Unknown name \"returnPartialSuccess\": Cannot bind."#;
            let body = format!(r#"{{"error": {{"code": 400, "status": "INVALID_ARGUMENT", "message": "{message}"}}}}"#);
            (400, body)
        } else {
            (200, MACHINES.to_owned())
        }
    })
    .await;
    let cx = context(CENTRAL);
    let found = collector
        .collect(&scope(PROJECT, CENTRAL), Dataset::Inventory, "instances", &cx)
        .await;
    assert_eq!(instances(found.unwrap()).len(), 1);
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_smaller_ones() {
    let collector = collector(|line| {
        let body = if line.contains("maxResults=500") {
            // One byte more than is read at once.
            format!("{MACHINES}{}", " ".repeat((64 << 20) + 1 - MACHINES.len()))
        } else {
            MACHINES.to_owned()
        };
        (200, body)
    })
    .await;
    let cx = context(CENTRAL);
    let found = collector
        .collect(&scope(PROJECT, CENTRAL), Dataset::Inventory, "instances", &cx)
        .await;
    assert_eq!(instances(found.unwrap()).len(), 1);
}

// P53
#[tokio::test]
async fn a_page_token_that_is_no_longer_accepted_begins_the_listing_anew_once() {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let collector = collector(move |line| {
        if !line.contains("pageToken=") {
            return (200, MACHINES.replacen('{', r#"{"nextPageToken": "t", "#, 1));
        }
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let message = "Invalid value for field 'pageToken': 't'. The page token is invalid.";
            let body =
                format!(r#"{{"error": {{"code": 400, "errors": [{{"reason": "invalid"}}], "message": "{message}"}}}}"#);
            return (400, body);
        }
        (200, MACHINES.replace(r#""id": "1""#, r#""id": "2""#))
    })
    .await;
    let cx = context(CENTRAL);
    let found = collector
        .collect(&scope(PROJECT, CENTRAL), Dataset::Inventory, "instances", &cx)
        .await;
    let found = instances(found.unwrap());
    assert_eq!((found.len(), refused.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn null_lists_and_unknown_fields_are_an_empty_project() {
    let collector = collector(|_| {
        let body = r#"{"items": {"zones/us-central1-a": {"instances": null, "warning": null}, "global": {}},
            "nextPageToken": "", "unreachables": null, "warning": null, "brandNew": [{}]}"#;
        (200, body.to_owned())
    })
    .await;
    for region in [CENTRAL, WEST] {
        let cx = context(region);
        let found = collector
            .collect(&scope(PROJECT, region), Dataset::Inventory, "instances", &cx)
            .await;
        assert!(instances(found.unwrap()).is_empty());
    }
}

#[tokio::test]
async fn an_answer_of_another_shape_is_no_empty_project() {
    let bodies = [
        "[]",
        "7",
        r#"{"items": []}"#,
        r#"{"items": {"zones/us-central1-a": []}}"#,
    ];
    let cases = bodies.map(|body| async move {
        let collector = collector(move |_| (200, body.to_owned())).await;
        let cx = context(CENTRAL);
        let at = scope(PROJECT, CENTRAL);
        let found = collector.collect(&at, Dataset::Inventory, "instances", &cx).await;
        assert_eq!(reason(&found), Some(Reason::Decode), "{body}: {found:?}");
    });
    futures::future::join_all(cases).await;
}

// P40, P44
#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let collector = collector(|_| (302, String::new())).await;
    let cx = context(CENTRAL);
    let found = collector
        .collect(&scope(PROJECT, CENTRAL), Dataset::Inventory, "instances", &cx)
        .await;
    assert_eq!(reason(&found), Some(Reason::Other), "{found:?}");
}

/// The TPU API says to be off in the project with this number; the one that is
/// polled has the number 123.
async fn nodes_where_the_api_is_off_in(number: &'static str) -> Result<usize, gpuwatch_collector_core::CollectError> {
    let collector = collector(move |line| {
        if line.contains("/nodes") {
            let info = format!(
                r#"{{"reason": "SERVICE_DISABLED", "metadata": {{"consumer": "projects/{number}", "service": "tpu.googleapis.com"}}}}"#
            );
            return (403, format!(r#"{{"error": {{"code": 403, "message": "off", "details": [{info}]}}}}"#));
        }
        assert!(line.starts_with("GET /compute/v1/projects/ml-prod "), "{line}");
        let account = "123-compute@developer.gserviceaccount.com";
        (200, format!(r#"{{"id": "7", "defaultServiceAccount": "{account}"}}"#))
    })
    .await;
    let cx = context(CENTRAL);
    let at = scope(PROJECT, CENTRAL);
    let found = collector.collect(&at, Dataset::Inventory, "tpu_nodes", &cx).await;
    found.map(|found| instances(found).len())
}

#[tokio::test]
async fn only_an_api_that_is_off_in_the_project_itself_means_no_nodes() {
    assert_eq!(nodes_where_the_api_is_off_in("123").await.unwrap(), 0);
    assert_eq!(nodes_where_the_api_is_off_in("ml-prod").await.unwrap(), 0);
    // The quota project of whoever calls.
    let error = nodes_where_the_api_is_off_in("999").await.unwrap_err();
    assert_eq!(error.reason, Reason::NotEnabled);
    assert!(
        error
            .to_string()
            .contains("gcloud services enable tpu.googleapis.com --project 999"),
        "{error}"
    );
}
