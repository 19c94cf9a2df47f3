//! The HTTP server shared by all simulated clouds.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::calls::{CallLog, CallRecord};
use crate::cloud::{Cloud, Exchange, Incoming, Reply};
use crate::connection::{CuttableListener, Line};
use crate::{FaultKind, Faults};

/// Largest request body read; every request of these clouds is far smaller.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// How long a stopping fake waits for answers that are being sent.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Added to every call before its answer.
    pub latency: Duration,
    /// Port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// Calls the log keeps; older ones are forgotten.
    pub keep_calls: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            port: 0,
            keep_calls: 20_000,
        }
    }
}

/// Simulated clouds behind one address on loopback.
///
/// Dropping it stops the server; [`Server::stop`] also waits for that.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

struct Shared {
    clouds: Vec<Box<dyn Cloud>>,
    faults: Faults,
    calls: CallLog,
    latency: Duration,
    stopped: watch::Receiver<bool>,
}

impl Server {
    /// Starts to serve on 127.0.0.1.
    ///
    /// # Errors
    /// When the port cannot be bound.
    pub async fn start(options: &ServerOptions, clouds: Vec<Box<dyn Cloud>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared {
            clouds,
            faults: Faults::default(),
            calls: CallLog::new(options.keep_calls),
            latency: options.latency,
            stopped: stopped.clone(),
        });
        let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<Line>();
        let serving = tokio::spawn(async move {
            let running =
                axum::serve(CuttableListener(listener), service).with_graceful_shutdown(until_stopped(stopped));
            if let Err(error) = running.await {
                tracing::warn!(%error, "fake cloud server ended");
            }
        });
        tracing::debug!(%address, "fake cloud listening");
        Ok(Self {
            address,
            shared,
            stop,
            serving,
        })
    }

    /// The base URL of every service: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The faults in force.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The calls so far, oldest first: the newest [`ServerOptions::keep_calls`].
    #[must_use]
    pub fn calls(&self) -> Vec<CallRecord> {
        self.shared.calls.records()
    }

    /// All calls since the start, also those no longer kept.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.shared.calls.total()
    }

    /// The most calls that were in flight at the same time.
    #[must_use]
    pub fn max_in_flight(&self) -> usize {
        self.shared.calls.max_in_flight()
    }

    /// Forgets the calls so far and the most in flight.
    pub fn clear_calls(&self) {
        self.shared.calls.clear();
    }

    /// Closes every connection, hanging ones too, and frees the port.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(STOP_PATIENCE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a stop as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn handle(State(shared): State<Arc<Shared>>, ConnectInfo(line): ConnectInfo<Line>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let request = Incoming {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body,
    };
    let Some(cloud) = shared.clouds.iter().find(|cloud| cloud.recognises(&request)) else {
        return (StatusCode::NOT_FOUND, "no simulated cloud speaks this protocol\n").into_response();
    };
    let exchange = cloud.begin(request);
    respond(&shared, &line, exchange.as_ref()).await
}

/// Answers one call: refusal first, then an injected fault, then the truth.
async fn respond(shared: &Shared, line: &Line, exchange: &dyn Exchange) -> Response {
    let call = shared.calls.open(exchange.key());
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    if let Some(refusal) = exchange.refusal() {
        call.answered(refusal.status, refusal.error_code.clone());
        return whole(&refusal);
    }
    let fault = shared.faults.take(exchange.key());
    if let Some(kind) = fault {
        call.fault(kind);
        tracing::debug!(fault = %kind, operation = exchange.key().operation, "fault injected");
    }
    let reply = match fault {
        None => exchange.answer(None),
        Some(FaultKind::Hang) => {
            until_stopped(shared.stopped.clone()).await;
            line.cut();
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        Some(FaultKind::DropConnection) => {
            line.cut();
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        Some(FaultKind::HtmlError) => html(500),
        Some(FaultKind::HtmlSuccess) => html(200),
        Some(FaultKind::TruncatedBody) => {
            let reply = exchange.answer(None);
            call.answered(reply.status, reply.error_code.clone());
            return truncated(&reply);
        }
        Some(FaultKind::CutOffDocument) => {
            let mut reply = exchange.answer(None);
            reply.body.truncate(reply.body.len() / 2);
            reply
        }
        Some(kind) if kind.alters_answer() => exchange.answer(Some(kind)),
        Some(kind) => exchange.fail(kind),
    };
    call.answered(reply.status, reply.error_code.clone());
    whole(&reply)
}

fn html(status: u16) -> Reply {
    let page = "<!DOCTYPE html>\n<html><head><title>Bad Gateway</title></head>\
                <body><h1>Something went wrong</h1><p>Please try again later.<br></body></html>\n";
    Reply {
        status,
        content_type: "text/html; charset=utf-8",
        headers: Vec::new(),
        body: Bytes::from_static(page.as_bytes()),
        error_code: None,
    }
}

fn whole(reply: &Reply) -> Response {
    let body = Body::from(reply.body.clone());
    with_head(reply, body)
}

/// Announces the whole body and sends half of it.
fn truncated(reply: &Reply) -> Response {
    let length = reply.body.len();
    let half = reply.body.slice(..length / 2);
    // The error must come later than the bytes, or the server discards them.
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "cut by an injected fault",
        ))
    };
    let body = futures::stream::once(async { Ok(half) }).chain(futures::stream::once(end));
    let mut response = with_head(reply, Body::from_stream(body));
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn with_head(reply: &Reply, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    for (name, value) in &reply.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
