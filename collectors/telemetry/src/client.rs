//! Asks one Prometheus-compatible server.

use std::time::Duration;

use bytes::BytesMut;
use gpuwatch_collector_core::{CollectError, Reason, one_line};
use gpuwatch_collector_rest::{ExposeSecret as _, SecretSource, SecretString, causes, what_went_wrong};
use jiff::Timestamp;
use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};

use crate::{
    answer::{Envelope, Series},
    options::{Authentication, TelemetryOptions},
};

/// Largest answer that is read; a query that brings more is asked in parts.
const MAX_ANSWER: usize = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a query has no answer to use.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueryError {
    /// The server, or this client, refuses an answer of this size: ask for
    /// less at once.
    #[error("{0}")]
    TooLarge(String),
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] CollectError),
}

impl QueryError {
    /// The error as it is counted.
    #[must_use]
    pub fn into_failure(self) -> CollectError {
        match self {
            Self::TooLarge(message) => CollectError::new(Reason::Other, message),
            Self::Failed(error) => error,
        }
    }
}

/// What a query gave.
#[derive(Debug, Default)]
pub struct QueryAnswer {
    /// The series.
    pub series: Vec<Series>,
    /// What the server warns of: parts of its storage did not answer, so
    /// series may be missing.
    pub warnings: Vec<String>,
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    authentication: Authentication,
    headers: Vec<(HeaderName, SecretSource)>,
    timeout: Duration,
}

impl Client {
    /// A client by these options.
    ///
    /// # Errors
    /// When the certificates or a header's name cannot be used.
    pub fn new(options: &TelemetryOptions) -> Result<Self, CollectError> {
        let unusable = |what: String| CollectError::new(Reason::Other, what);
        let tls = &options.tls;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("gpuwatch/", env!("CARGO_PKG_VERSION")))
            // A redirect could lead a token to another host.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(options.timeout)
            .retry(reqwest::retry::never());
        let read = |path: &std::path::Path| {
            std::fs::read(path).map_err(|error| unusable(format!("{} cannot be read: {error}", path.display())))
        };
        if let Some(path) = &tls.ca_file {
            let certificates = reqwest::Certificate::from_pem_bundle(&read(path)?)
                .map_err(|error| unusable(format!("{}: {}", path.display(), causes(&error))))?;
            builder = builder.tls_certs_only(certificates);
        }
        if let Some((certificate, key)) = &tls.identity {
            let mut pem = read(certificate)?;
            pem.extend(read(key)?);
            let identity = reqwest::Identity::from_pem(&pem)
                .map_err(|error| unusable(format!("{}: {}", certificate.display(), causes(&error))))?;
            builder = builder.identity(identity);
        }
        if tls.insecure_skip_verify {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        if is_loopback(&options.url) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| unusable(format!("the HTTP client cannot be set up: {}", causes(&error))))?;
        let mut headers = Vec::new();
        for (name, value) in &options.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| unusable(format!("{name:?} is not a header name")))?;
            headers.push((name, value.clone()));
        }
        Ok(Self {
            http,
            base: options.url.trim_end_matches('/').to_owned(),
            authentication: options.authentication.clone(),
            headers,
            timeout: options.timeout,
        })
    }

    /// An instant query; a range selector gives the samples themselves.
    ///
    /// # Errors
    /// When there is no answer, or none to use.
    pub async fn query(&self, query: &str, at: Timestamp) -> Result<QueryAnswer, QueryError> {
        self.ask("query", &[("query", query.to_owned()), ("time", seconds(at))])
            .await
    }

    /// A range query.
    ///
    /// # Errors
    /// When there is no answer, or none to use.
    pub async fn query_range(
        &self,
        query: &str,
        from: Timestamp,
        to: Timestamp,
        step: Duration,
    ) -> Result<QueryAnswer, QueryError> {
        let form = [
            ("query", query.to_owned()),
            ("start", seconds(from)),
            ("end", seconds(to)),
            ("step", step.as_secs().max(1).to_string()),
        ];
        self.ask("query_range", &form).await
    }

    async fn ask(&self, what: &str, form: &[(&'static str, String)]) -> Result<QueryAnswer, QueryError> {
        let url = format!("{}/api/v1/{what}", self.base);
        let timeout = ("timeout", format!("{}s", self.timeout.as_secs().max(1)));
        // Long queries do not fit into a URL.
        let mut all: Vec<_> = form.to_vec();
        all.push(timeout);
        let request = self.identified(self.http.post(&url).form(&all)).await?;
        let mut response = request.send().await.map_err(transport)?;
        if matches!(
            response.status(),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
        ) {
            let request = self.identified(self.http.get(&url).query(&all)).await?;
            response = request.send().await.map_err(transport)?;
        }
        let status = response.status();
        let retry_after = retry_after(&response);
        let body = read(response).await?;
        let envelope: Result<Envelope, _> = serde_json::from_slice(&body);
        if !status.is_success() {
            let said = envelope.ok().map(|envelope| (envelope.error_type, envelope.error));
            return Err(refused(status, said, retry_after));
        }
        let envelope = envelope.map_err(|error| not_understood(&error.to_string()))?;
        if envelope.status != "success" {
            return Err(refused(
                StatusCode::UNPROCESSABLE_ENTITY,
                Some((envelope.error_type, envelope.error)),
                None,
            ));
        }
        let data = envelope.data.ok_or_else(|| not_understood("no data"))?;
        if !matches!(&*data.result_type, "vector" | "matrix") {
            return Err(not_understood(&format!(
                "a result of type {:?}",
                one_line(&data.result_type, 40)
            )));
        }
        Ok(QueryAnswer {
            series: data.result,
            warnings: envelope.warnings,
        })
    }

    async fn identified(&self, mut request: RequestBuilder) -> Result<RequestBuilder, CollectError> {
        match &self.authentication {
            Authentication::None => {}
            Authentication::Basic { username, password } => {
                let password = match password {
                    Some(source) => Some(source.read().await?),
                    None => None,
                };
                request = request.basic_auth(username, password.as_ref().map(SecretString::expose_secret));
            }
            Authentication::Bearer(token) => {
                let token = token.read().await?;
                let text = format!("Bearer {}", token.expose_secret());
                request = request.header(AUTHORIZATION, sensitive(&text)?);
            }
        }
        for (name, value) in &self.headers {
            let value = value.read().await?;
            request = request.header(name.clone(), sensitive(value.expose_secret())?);
        }
        Ok(request)
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, CollectError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| CollectError::new(Reason::Credentials, "a secret that is no header value"))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn read(mut response: Response) -> Result<BytesMut, QueryError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(QueryError::TooLarge(format!(
                "an answer of more than {} MiB",
                MAX_ANSWER >> 20
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn refused(status: StatusCode, said: Option<(String, String)>, retry_after: Option<Duration>) -> QueryError {
    let (kind, text) = said.unwrap_or_default();
    let text = one_line(&text, 300);
    let message = if text.is_empty() {
        format!("the server answered {status}")
    } else {
        format!("the server answered {status}: {text}")
    };
    let reason = match status.as_u16() {
        // Prometheus: too many samples; Mimir, Thanos, VictoriaMetrics: limits
        // of series, chunks and memory.
        413 => return QueryError::TooLarge(message),
        422 if kind != "bad_data" => return QueryError::TooLarge(message),
        401 => Reason::Credentials,
        403 => Reason::Permission,
        429 => Reason::Throttled,
        408 | 504 => Reason::Timeout,
        503 if kind == "timeout" => Reason::Timeout,
        400 | 404 => Reason::Decode,
        _ => Reason::Other,
    };
    let retryable = matches!(status.as_u16(), 408 | 429 | 500..);
    let mut error = CollectError::new(reason, message).retryable(retryable);
    error.retry_after = retry_after;
    error.into()
}

fn not_understood(what: &str) -> QueryError {
    let message = format!("the answer is not one of the Prometheus API: {}", one_line(what, 200));
    CollectError::new(Reason::Decode, message).into()
}

fn transport(error: reqwest::Error) -> QueryError {
    let (reason, text) = what_went_wrong(error);
    CollectError::new(reason, text).into()
}

/// Only seconds: a date would need the server's clock to be right.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

fn seconds(at: Timestamp) -> String {
    let millis = at.as_millisecond();
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}

fn is_loopback(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| {
        matches!(url.host_str(), Some(host) if host == "localhost" || host == "[::1]" || host.starts_with("127."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sent_with_milliseconds() {
        let at = Timestamp::from_millisecond(1_767_225_600_007).expect("in range");
        assert_eq!(seconds(at), "1767225600.007");
    }

    #[test]
    fn refusals_for_size_are_told_apart_from_wrong_queries() {
        let said = |kind: &str| {
            Some((
                kind.to_owned(),
                "query processing would load too many samples".to_owned(),
            ))
        };
        assert!(matches!(
            refused(StatusCode::UNPROCESSABLE_ENTITY, said("execution"), None),
            QueryError::TooLarge(_)
        ));
        let wrong = refused(StatusCode::BAD_REQUEST, said("bad_data"), None).into_failure();
        assert_eq!((wrong.reason, wrong.retryable), (Reason::Decode, false));
        let slow = refused(StatusCode::TOO_MANY_REQUESTS, None, Some(Duration::from_secs(7))).into_failure();
        assert_eq!(
            (slow.reason, slow.retry_after),
            (Reason::Throttled, Some(Duration::from_secs(7)))
        );
    }
}
