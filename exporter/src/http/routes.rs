//! What each path answers. Nothing here calls a cloud or waits for one.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS},
};

use super::{negotiate::takes_gzip, sd};
use crate::{metrics::OwnMetrics, publisher::Published, serve::Reloader};

/// The text exposition format.
const EXPOSITION: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Largest request body that a handler will ever read.
const BODY_LIMIT: usize = 64 * 1024;

/// What the handlers share.
#[derive(Debug, Clone)]
pub struct App {
    /// The newest page.
    pub published: Arc<ArcSwap<Published>>,
    /// For counting requests.
    pub metrics: OwnMetrics,
    /// For `/-/reload`.
    pub reloader: Reloader,
}

/// The server's routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/", get(landing))
        .route("/metrics", get(metrics))
        .route("/sd", get(sd::targets))
        .route("/-/healthy", get(|| async { "gpuwatch is healthy\n" }))
        .route("/-/ready", get(ready))
        .route("/-/reload", post(reload))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "there is nothing here; see / for what there is\n",
            )
        })
        .layer(middleware::from_fn_with_state(app.metrics.clone(), count))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(app)
}

/// Counts every answer, by a handler name from a fixed set.
async fn count(State(metrics): State<OwnMetrics>, request: Request, next: Next) -> Response {
    let handler = match request.uri().path() {
        "/" => "/",
        "/metrics" => "/metrics",
        "/sd" => "/sd",
        "/-/healthy" => "/-/healthy",
        "/-/ready" => "/-/ready",
        "/-/reload" => "/-/reload",
        _ => "other",
    };
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    metrics.http_request(handler, response.status().as_u16());
    response
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    let published = app.published.load();
    let gzip = takes_gzip(&headers);
    let pieces = if gzip {
        published.page.gzip()
    } else {
        published.page.plain()
    };
    let mut response = pieces_response(pieces);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EXPOSITION);
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// An answer of known length whose body shares the memory of the pieces.
fn pieces_response(pieces: [Bytes; 2]) -> Response {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let pieces = pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(futures::stream::iter(pieces)));
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    response
}

async fn ready(State(app): State<App>) -> Response {
    match app.published.load().readiness() {
        Ok(()) => "gpuwatch is ready\n".into_response(),
        Err(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("gpuwatch is not ready: {reason}\n"),
        )
            .into_response(),
    }
}

async fn reload(State(app): State<App>) -> Response {
    match app.reloader.reload().await {
        Ok(()) => "configuration reloaded\n".into_response(),
        Err(refused) => {
            let text = format!("the new configuration was refused, the one before stays in use:\n{refused}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

async fn landing(State(app): State<App>) -> Html<String> {
    let published = app.published.load();
    let snapshot = &published.snapshot;
    Html(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>gpuwatch</title>\n\
         <h1>gpuwatch {version}</h1>\n\
         <p>{instances} GPU instances known, {commitments} commitments, {tasks} poll tasks, as of {at}.</p>\n\
         <ul>\n<li><a href=\"/metrics\">metrics for Prometheus</a>\n\
         <li><a href=\"/sd\">targets for Prometheus' HTTP service discovery</a>\n\
         <li><a href=\"/-/ready\">readiness</a>\n<li><a href=\"/-/healthy\">health</a>\n</ul>\n</html>\n",
        version = env!("CARGO_PKG_VERSION"),
        instances = snapshot.instances.len(),
        commitments = snapshot.commitments.len(),
        tasks = snapshot.tasks.len(),
        at = snapshot.at.strftime("%Y-%m-%d %H:%M:%S UTC"),
    ))
}
