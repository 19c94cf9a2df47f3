//! The client against a real listener.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use axum::{Router, response::IntoResponse as _, routing::get};
use flate2::{Compression, write::GzEncoder};
use gpuwatch_collector_core::{Call, Reason};
use gpuwatch_collector_rest::{Http, Origin, Request};
use http::{Method, header};

const CALL: Call = Call::new("svc", "List", "");

async fn serve(router: Router) -> Origin {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Origin::new(&url).unwrap()
}

fn request(origin: &Origin, path: &str) -> Request {
    Request::new(Method::GET, origin.url(path).unwrap())
}

fn zeros_compressed(bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let block = vec![b' '; 1 << 20];
    for _ in 0..bytes >> 20 {
        encoder.write_all(&block).unwrap();
    }
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_answers_are_read_and_bombs_are_refused() {
    let respond = |bytes: usize| {
        move || async move { ([(header::CONTENT_ENCODING, "gzip")], zeros_compressed(bytes)).into_response() }
    };
    let origin = serve(
        Router::new()
            .route("/small", get(respond(1 << 20)))
            .route("/bomb", get(respond(70 << 20))),
    )
    .await;
    let http = Http::new().unwrap();
    let small = http.send(CALL, &origin, request(&origin, "/small")).await.unwrap();
    assert_eq!(small.body.len(), 1 << 20);
    let error = http.send(CALL, &origin, request(&origin, "/bomb")).await.unwrap_err();
    assert_eq!(error.reason, Reason::Decode, "{error}");
    assert!(!error.retryable, "the next answer is as large");
}

#[tokio::test]
async fn redirects_are_not_followed_and_tokens_stay() {
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let other = serve(Router::new().fallback(move || {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    }))
    .await;
    let target = other.url("/stolen").unwrap().to_string();
    let origin = serve(Router::new().route(
        "/",
        get(move || async move { (http::StatusCode::FOUND, [(header::LOCATION, target)]).into_response() }),
    ))
    .await;
    let http = Http::new().unwrap();
    let with_token = request(&origin, "/")
        .secret_header(header::AUTHORIZATION, "Bearer t")
        .unwrap();
    let answer = http.send(CALL, &origin, with_token).await.unwrap();
    assert_eq!(answer.status, 302);
    let elsewhere = request(&other, "/")
        .secret_header(header::AUTHORIZATION, "Bearer t")
        .unwrap();
    let error = http.send(CALL, &origin, elsewhere).await.unwrap_err();
    assert!(error.to_string().contains("refused to follow"), "{error}");
    assert_eq!(seen.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn failures_of_the_network_name_no_url() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let http = Http::new().unwrap();
    let error = http
        .send(CALL, &origin, request(&origin, "/?Signature=s3cret"))
        .await
        .unwrap_err();
    assert_eq!((error.reason, error.retryable), (Reason::Network, true));
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn secret_headers_are_marked_and_line_ends_are_refused() {
    let origin = Origin::new("https://host.example").unwrap();
    let marked = request(&origin, "/")
        .secret_header(header::AUTHORIZATION, "Bearer s3cret")
        .unwrap();
    assert!(!format!("{:?}", marked.headers).contains("s3cret"));
    let error = request(&origin, "/")
        .secret_header(header::AUTHORIZATION, "s3cret\r\nx: y")
        .err()
        .unwrap();
    assert!(!error.to_string().contains("s3cret"), "{error}");
}
