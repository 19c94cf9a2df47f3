//! The HTTP server over a real socket, fed with made-up snapshots.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::{
    collections::BTreeSet,
    io::Read as _,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use gpuwatch::{
    http::{self, App},
    metrics::OwnMetrics,
    publisher::{Publisher, Source},
    serve::Reloader,
};
use gpuwatch_collector_core::Snapshot;
use reqwest::{Client, Method, Response, StatusCode, header};
use support::{eventually, exposition, fleet};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn service_discovery_lists_running_instances_with_their_identity() {
    let mut snapshot = fleet::showcase();
    for (index, instance) in snapshot.instances.iter_mut().enumerate() {
        Arc::make_mut(instance).private_address = format!("10.0.0.{index}").into();
    }
    snapshot.tasks[0].last_success = Some(snapshot.at);
    let server = Server::start(snapshot, 1).await;
    let all: serde_json::Value = server.get("/sd").await.json().await.expect("JSON");
    let running = all.as_array().expect("a list");
    assert_eq!(running.len(), 2, "stopped and unknown ones are no targets: {all}");
    assert_eq!(running[0]["targets"], serde_json::json!(["10.0.0.0:9400"]));
    let labels = &running[0]["labels"];
    let identity = ["provider", "account", "region", "instance_id"].map(|name| labels[name].as_str().expect("text"));
    assert_eq!(identity, ["aws", "111122223333", "us-east-1", "i-0aa"]);

    let some: serde_json::Value = server
        .get("/sd?port=9835&billing_mode=spot")
        .await
        .json()
        .await
        .expect("JSON");
    assert_eq!(some[0]["targets"], serde_json::json!(["10.0.0.1:9835"]));
    assert_eq!(some.as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/sd?port=none").await.status(), StatusCode::BAD_REQUEST);
    // An empty list would take the targets away.
    let empty = Server::start(Snapshot::empty(fleet::at(fleet::NOON)), 1).await;
    assert_eq!(empty.get("/sd").await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// A server whose snapshots a test sends.
struct Server {
    address: SocketAddr,
    snapshots: watch::Sender<Arc<Snapshot>>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    client: Client,
    /// Kept so that the publisher's source does not end.
    _sources: Mutex<watch::Sender<Source>>,
}

impl Server {
    async fn start(first: Snapshot, sections: usize) -> Self {
        let (snapshots, receiver) = watch::channel(Arc::new(first));
        let (sources, sources_receiver) = watch::channel(Source {
            snapshots: receiver,
            sections,
        });
        let metrics = OwnMetrics::new().expect("metrics");
        let publisher = Publisher::new(metrics.clone(), sources_receiver).expect("first page");
        let stop = CancellationToken::new();
        let app = App {
            published: publisher.published(),
            metrics,
            reloader: Reloader::refusing(),
        };
        tokio::spawn(publisher.run(stop.clone()));
        let listener = http::listen::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let serving = tokio::spawn(http::listen::serve(listener, http::router(app), stop.clone()));
        let client = Client::builder().no_gzip().no_proxy().build().expect("client");
        Self {
            address,
            snapshots,
            stop,
            serving,
            client,
            _sources: Mutex::new(sources),
        }
    }

    fn publish(&self, snapshot: Snapshot) {
        self.snapshots.send_replace(Arc::new(snapshot));
    }

    async fn request(&self, method: Method, path: &str, accept: &str) -> Response {
        let url = format!("http://{}{path}", self.address);
        self.client
            .request(method, url)
            .header(header::ACCEPT_ENCODING, accept)
            .send()
            .await
            .expect("answered")
    }

    async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path, "identity").await
    }

    async fn page(&self) -> exposition::Families {
        exposition::parse(&self.get("/metrics").await.text().await.expect("text"))
    }
}

fn header_of<'a>(response: &'a Response, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn the_page_is_text_of_known_length_with_the_fleet_and_the_program() {
    let server = Server::start(fleet::showcase(), 1).await;
    let response = server.get("/metrics").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        header_of(&response, "content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert_eq!(header_of(&response, "content-encoding"), "");
    assert_eq!(header_of(&response, "vary"), "accept-encoding");
    let length: usize = header_of(&response, "content-length").parse().expect("a length");
    let text = response.text().await.expect("text");
    assert_eq!(text.len(), length);
    let families = exposition::parse(&text);
    for name in [
        "gpuwatch_instance_info",
        "gpuwatch_build_info",
        "gpuwatch_page_encode_duration_seconds",
        "process_open_fds",
    ] {
        assert!(families.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn gzip_is_sent_to_those_who_take_it_and_says_the_same() {
    let server = Server::start(fleet::of_generation(1, 300), 1).await;
    let response = server
        .request(Method::GET, "/metrics", "gzip;q=0.9, identity;q=0.1")
        .await;
    assert_eq!(header_of(&response, "content-encoding"), "gzip");
    let length: usize = header_of(&response, "content-length").parse().expect("a length");
    let body = response.bytes().await.expect("body");
    assert_eq!(body.len(), length);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*body)
        .read_to_string(&mut text)
        .expect("valid gzip");
    let families = exposition::parse(&text);
    assert_eq!(families["gpuwatch_instance_info"].samples.len(), 300);

    let refused = server.request(Method::GET, "/metrics", "gzip;q=0").await;
    assert_eq!(header_of(&refused, "content-encoding"), "");
}

#[tokio::test]
async fn head_answers_without_a_body() {
    let server = Server::start(fleet::showcase(), 1).await;
    let response = server.request(Method::HEAD, "/metrics", "identity").await;
    assert_eq!(response.status(), StatusCode::OK);
    let length: usize = header_of(&response, "content-length").parse().expect("a length");
    assert!(length > 1000);
    assert!(response.bytes().await.expect("body").is_empty());
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused_in_plain_text() {
    let server = Server::start(fleet::showcase(), 1).await;
    let missing = server.get("/nothing").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(header_of(&missing, "content-type").starts_with("text/plain"));
    assert_eq!(
        server.request(Method::POST, "/metrics", "identity").await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(server.get("/-/reload").await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_landing_page_names_version_and_links() {
    let server = Server::start(fleet::showcase(), 1).await;
    let text = server.get("/").await.text().await.expect("text");
    assert!(
        text.contains(env!("CARGO_PKG_VERSION")) && text.contains("href=\"/metrics\""),
        "{text}"
    );
    assert!(text.contains("4 GPU instances"), "{text}");
}

#[tokio::test]
async fn requests_are_counted_by_handler_and_code() {
    let server = Server::start(Snapshot::empty(fleet::at(fleet::NOON)), 0).await;
    server.get("/-/healthy").await;
    server.get("/a-scanner-was-here").await;
    // The own part is refreshed with the next page.
    server.publish(fleet::of_generation(1, 1));
    eventually("the requests are counted", || async {
        let families = server.page().await;
        let counted = families.get("gpuwatch_http_requests_total")?;
        let handlers = exposition::label_values(counted, "handler");
        let codes = exposition::label_values(counted, "code");
        (handlers.contains("/-/healthy") && handlers.contains("other") && codes.contains("404")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn it_is_healthy_at_once_and_ready_with_the_first_inventory() {
    let server = Server::start(Snapshot::empty(fleet::at(fleet::NOON)), 1).await;
    assert_eq!(server.get("/-/healthy").await.status(), StatusCode::OK);
    let waiting = server.get("/-/ready").await;
    assert_eq!(waiting.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        waiting
            .text()
            .await
            .expect("text")
            .contains("no account has been discovered yet")
    );
    server.publish(fleet::showcase());
    eventually("ready", || async {
        (server.get("/-/ready").await.status() == StatusCode::OK).then_some(())
    })
    .await;
}

// P19
#[tokio::test]
async fn it_is_not_ready_once_every_inventory_has_expired() {
    let mut snapshot = fleet::showcase();
    snapshot.instances.clear();
    for task in &mut snapshot.tasks {
        task.expired = true;
        task.up = Some(false);
        task.last_error = Some("no route to host".to_owned());
    }
    let server = Server::start(snapshot, 1).await;
    let response = server.get("/-/ready").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let reason = response.text().await.expect("text");
    assert!(
        reason.contains("none of 3 inventories has fresh data") && reason.contains("no route to host"),
        "{reason}"
    );
    let families = server.page().await;
    assert!(!families.contains_key("gpuwatch_instance_info"));
    assert!(families["gpuwatch_task_up"].samples.values().all(|up| *up == 0.0));
}

#[tokio::test]
async fn with_nothing_to_poll_it_is_ready() {
    let server = Server::start(Snapshot::empty(fleet::at(fleet::NOON)), 0).await;
    assert_eq!(server.get("/-/ready").await.status(), StatusCode::OK);
}

// P16
#[tokio::test]
async fn a_changed_value_is_on_the_page_with_the_next_snapshot() {
    let server = Server::start(fleet::of_generation(1, 5), 1).await;
    server.publish(fleet::of_generation(2, 5));
    eventually("the new value", || async {
        let families = server.page().await;
        families["gpuwatch_instance_gpus"]
            .samples
            .values()
            .all(|gpus| *gpus == 2.0)
            .then_some(())
    })
    .await;
}

/// Insists that the page is of one generation and returns its word.
fn generation_of(text: &str, instances: usize) -> String {
    let families = exposition::parse(text);
    let info = &families["gpuwatch_instance_info"];
    let gpus = &families["gpuwatch_instance_gpus"];
    assert_eq!((info.samples.len(), gpus.samples.len()), (instances, instances));
    let owners = exposition::label_values(info, "owner");
    let counts: BTreeSet<String> = gpus
        .samples
        .values()
        .map(|count| format!("generation-{count}"))
        .collect();
    assert_eq!(owners.len(), 1, "two generations on one page");
    assert_eq!(owners, counts, "families of different generations");
    owners.into_iter().next().expect("one")
}

// P51
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_page_is_of_one_generation_while_snapshots_are_swapped() {
    const INSTANCES: usize = 60;
    let server = Arc::new(Server::start(fleet::of_generation(1, INSTANCES), 1).await);
    let done = CancellationToken::new();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let readers: Vec<_> = ["identity", "gzip", "identity", "gzip"]
        .into_iter()
        .map(|encoding| {
            let (server, done, seen) = (Arc::clone(&server), done.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                while !done.is_cancelled() {
                    let body = server
                        .request(Method::GET, "/metrics", encoding)
                        .await
                        .bytes()
                        .await
                        .expect("body");
                    let mut text = String::new();
                    if encoding == "gzip" {
                        flate2::read::GzDecoder::new(&*body)
                            .read_to_string(&mut text)
                            .expect("valid gzip");
                    } else {
                        text.push_str(std::str::from_utf8(&body).expect("UTF-8"));
                    }
                    let generation = generation_of(&text, INSTANCES);
                    seen.lock().expect("not poisoned").insert(generation);
                }
            })
        })
        .collect();
    let generation = AtomicU64::new(1);
    eventually("the readers meet ten generations", || async {
        let next = generation.fetch_add(1, Ordering::Relaxed) + 1;
        server.publish(fleet::of_generation(next, INSTANCES));
        let failed = readers.iter().any(tokio::task::JoinHandle::is_finished);
        (failed || seen.lock().expect("not poisoned").len() >= 10).then_some(())
    })
    .await;
    done.cancel();
    for reader in readers {
        reader.await.expect("every page was consistent");
    }
}

#[tokio::test]
async fn an_answer_in_flight_is_finished_when_the_server_stops() {
    let server = Server::start(fleet::of_generation(1, 20_000), 1).await;
    let mut slow = TcpStream::connect(server.address).await.expect("connected");
    slow.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .expect("sent");
    let mut start = [0; 64];
    slow.read_exact(&mut start).await.expect("an answer begins");
    server.stop.cancel();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.expect("the answer ends");
    server.serving.await.expect("stopped");
    let text = String::from_utf8([&start[..], &rest].concat()).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a header");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .expect("a length");
    assert_eq!(body.len().to_string(), length);
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn an_address_in_use_and_a_bad_one_are_told_apart() {
    let taken = http::listen::bind("127.0.0.1:0").await.expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let in_use = http::listen::bind(&address).await.expect_err("in use");
    assert!(in_use.to_string().contains("in use by another program"), "{in_use}");
    for bad in ["nonsense", "203.0.113.1:9836", "127.0.0.1:99999"] {
        let error = http::listen::bind(bad).await.expect_err("bad address").to_string();
        assert!(
            error.contains(bad) && error.contains("not an address of this machine"),
            "{error}"
        );
    }
}
