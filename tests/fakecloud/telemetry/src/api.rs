//! The Prometheus HTTP API over the storage, and the exporters' own pages.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Json, Response},
    routing::get,
};
use jiff::Timestamp;
use serde_json::{Value as Data, json};
use tokio_util::sync::CancellationToken;

use crate::{
    eval::{EvalError, Evaluation, Value},
    page,
    source::Labels,
    storage::Storage,
};

/// Points of a series that a range query may have.
const MAX_POINTS: i64 = 11_000;

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// As until Prometheus 3: a range holds a sample exactly at its beginning.
    pub closed_ranges: bool,
    /// Samples that a query may read.
    pub max_samples: usize,
    /// The `Authorization` that is asked for; none lets everybody in.
    pub authorization: Option<String>,
    /// A warning with every answer, as of a part that did not answer.
    pub warning: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            closed_ranges: false,
            max_samples: 50_000_000,
            authorization: None,
            warning: None,
        }
    }
}

struct Shared {
    storage: Arc<Storage>,
    options: Options,
}

/// A server on loopback that answers until it is dropped.
pub struct TelemetryServer {
    address: SocketAddr,
    storage: Arc<Storage>,
    stop: CancellationToken,
}

impl TelemetryServer {
    /// Starts to answer.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(storage: Storage, options: Options) -> io::Result<Self> {
        let storage = Arc::new(storage);
        let shared = Arc::new(Shared {
            storage: Arc::clone(&storage),
            options,
        });
        let app = Router::new()
            .route("/api/v1/query", get(query).post(query))
            .route("/api/v1/query_range", get(query_range).post(query_range))
            .route("/-/ready", get(|| async { "ready\n" }))
            .route("/exporters/{*path}", get(exporter))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = async { axum::serve(listener, app).await } => {}
                () = stopped.cancelled() => {}
            }
        });
        Ok(Self { address, storage, stop })
    }

    /// Base URL of the query API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The targets in the form of Prometheus' file and HTTP service discovery,
    /// for a real Prometheus that scrapes the pages of this server.
    #[must_use]
    pub fn targets(&self) -> Data {
        let groups = self.storage.targets().iter().map(|target| {
            let mut labels = target.labels.clone();
            labels.insert("__metrics_path__".to_owned(), format!("/exporters/{}", target.path));
            json!({"targets": [self.address.to_string()], "labels": labels})
        });
        groups.collect()
    }
}

impl Drop for TelemetryServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[allow(clippy::disallowed_methods, reason = "a simulated server lives by the wall clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

async fn exporter(State(shared): State<Arc<Shared>>, Path(path): Path<String>) -> Response {
    let now = now();
    match shared.storage.targets().iter().find(|target| target.path == path) {
        Some(target) if target.answers(now, now) => (
            [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
            page::text(target, now),
        )
            .into_response(),
        Some(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

struct Failure(StatusCode, &'static str, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = json!({"status": "error", "errorType": self.1, "error": self.2});
        (self.0, Json(body)).into_response()
    }
}

fn bad(what: impl Into<String>) -> Failure {
    Failure(StatusCode::BAD_REQUEST, "bad_data", what.into())
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::BadData(what) => bad(what),
            EvalError::Execution(_) | EvalError::TooManySamples => {
                Self(StatusCode::UNPROCESSABLE_ENTITY, "execution", error.to_string())
            }
        }
    }
}

/// The parameters of a request: those of its URL, then those of its form.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read(shared: &Shared, headers: &HeaderMap, query: Option<&str>, body: &Bytes) -> Result<Self, Failure> {
        if let Some(wanted) = &shared.options.authorization {
            let given = headers.get("authorization").and_then(|value| value.to_str().ok());
            if given != Some(wanted) {
                return Err(Failure(
                    StatusCode::UNAUTHORIZED,
                    "unauthorized",
                    "no authorization".to_owned(),
                ));
            }
        }
        let pairs = |text: &[u8]| url::form_urlencoded::parse(text).into_owned().collect::<Vec<_>>();
        let mut all = pairs(query.unwrap_or_default().as_bytes());
        all.extend(pairs(body));
        Ok(Self(all))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(of, _)| of == name)
            .map(|(_, value)| value.as_str())
    }

    /// A time in milliseconds.
    fn time(&self, name: &str) -> Result<Option<i64>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        if let Some(seconds) = text.parse::<f64>().ok().filter(|seconds| seconds.abs() < 1e12) {
            #[allow(clippy::cast_possible_truncation, reason = "below 1e15")]
            return Ok(Some((seconds * 1000.0).round() as i64));
        }
        let parsed = text.parse::<Timestamp>().map(|time| Some(time.as_millisecond()));
        parsed.map_err(|_| {
            bad(format!(
                "invalid parameter \"{name}\": cannot parse \"{text}\" to a valid timestamp"
            ))
        })
    }

    fn expression(&self) -> Result<promql_parser::parser::Expr, Failure> {
        let text = self.text("query").unwrap_or_default();
        promql_parser::parser::parse(text).map_err(|error| bad(format!("invalid parameter \"query\": {error}")))
    }
}

async fn query(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Failure> {
    let parameters = Parameters::read(&shared, &headers, query.as_deref(), &body)?;
    let now = now();
    let time = parameters.time("time")?.unwrap_or(now.as_millisecond());
    let expression = parameters.expression()?;
    let evaluation = Evaluation::new(
        &shared.storage,
        now,
        shared.options.closed_ranges,
        shared.options.max_samples,
    );
    let data = match evaluation.at(&expression, time)? {
        Value::Scalar(value) => json!({"resultType": "scalar", "result": sample(time, value)}),
        Value::Vector(points) => {
            let result: Vec<Data> = points
                .into_iter()
                .map(|(labels, value)| json!({"metric": labels, "value": sample(time, value)}))
                .collect();
            json!({"resultType": "vector", "result": result})
        }
        Value::Matrix(series) => {
            let series = series.into_iter().map(|series| (series.labels, series.samples));
            matrix(series)
        }
    };
    Ok(success(&shared, &data))
}

async fn query_range(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Failure> {
    let parameters = Parameters::read(&shared, &headers, query.as_deref(), &body)?;
    let wanted = |name: &'static str| -> Result<i64, Failure> {
        parameters
            .time(name)?
            .ok_or_else(|| bad(format!("invalid parameter \"{name}\": missing")))
    };
    let (start, end, step) = (wanted("start")?, wanted("end")?, wanted("step")?);
    if end < start {
        return Err(bad(
            "invalid parameter \"end\": end timestamp must not be before start time",
        ));
    }
    if step <= 0 {
        return Err(bad(
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        ));
    }
    if (end - start) / step > MAX_POINTS {
        return Err(bad(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution \
             (?step=XX)",
        ));
    }
    let expression = parameters.expression()?;
    let evaluation = Evaluation::new(
        &shared.storage,
        now(),
        shared.options.closed_ranges,
        shared.options.max_samples,
    );
    let mut series: std::collections::BTreeMap<Labels, Vec<(i64, f64)>> = std::collections::BTreeMap::new();
    let mut at = start;
    while at <= end {
        match evaluation.at(&expression, at)? {
            Value::Scalar(value) => series.entry(Labels::new()).or_default().push((at, value)),
            Value::Vector(points) => {
                for (labels, value) in points {
                    series.entry(labels).or_default().push((at, value));
                }
            }
            Value::Matrix(_) => {
                return Err(bad(
                    "invalid expression type \"range vector\" for range query, must be Scalar or instant Vector",
                ));
            }
        }
        at += step;
    }
    Ok(success(&shared, &matrix(series.into_iter())))
}

fn matrix(series: impl Iterator<Item = (Labels, Vec<(i64, f64)>)>) -> Data {
    let result: Vec<Data> = series
        .map(|(labels, samples)| {
            let values: Vec<Data> = samples.into_iter().map(|(at, value)| sample(at, value)).collect();
            json!({"metric": labels, "values": values})
        })
        .collect();
    json!({"resultType": "matrix", "result": result})
}

fn success(shared: &Shared, data: &Data) -> Response {
    let mut body = json!({"status": "success", "data": data});
    if let (Some(warning), Some(body)) = (&shared.options.warning, body.as_object_mut()) {
        body.insert("warnings".to_owned(), json!([warning]));
    }
    Json(body).into_response()
}

fn sample(at: i64, value: f64) -> Data {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds fit")]
    let seconds = at as f64 / 1000.0;
    let text = if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    };
    json!([seconds, text])
}
