//! Sending one request.

use std::{error::Error, time::Duration};

use bytes::{Bytes, BytesMut};
use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::redirect::Policy;
use url::Url;

use crate::{Answer, Origin};

/// Largest answer that is read, after decompression. A page of a thousand
/// machines is a few megabytes.
const MAX_ANSWER: usize = 64 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One attempt's request, complete and signed.
#[derive(Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Whole URL, query included.
    pub url: Url,
    /// Headers; `Host` is set from the URL.
    pub headers: HeaderMap,
    /// Body, empty for none.
    pub body: Bytes,
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// Adds a header that is not secret.
    ///
    /// # Errors
    /// When the value cannot be a header's.
    pub fn header(mut self, name: HeaderName, value: &str) -> Result<Self, CollectError> {
        let value = header_value(&name, value)?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds a header whose value must not be shown, in this program or in
    /// libraries below.
    ///
    /// # Errors
    /// When the value cannot be a header's.
    pub fn secret_header(mut self, name: HeaderName, value: &str) -> Result<Self, CollectError> {
        let mut value = header_value(&name, value)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

fn header_value(name: &HeaderName, value: &str) -> Result<HeaderValue, CollectError> {
    HeaderValue::from_str(value).map_err(|_| {
        // The value may be a secret with a stray line end.
        let message = format!("the value of {name} has characters that a header cannot have");
        CollectError::new(Reason::Credentials, message)
    })
}

/// The client of all REST clouds. Cheap to clone; connections are shared.
///
/// Redirects are not followed: no cloud API sends them, and a signature or
/// token must not go elsewhere. `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are
/// honoured, except for this machine and its metadata service.
#[derive(Debug, Clone)]
pub struct Http {
    outside: reqwest::Client,
    nearby: reqwest::Client,
}

impl Http {
    /// A client with the system's root certificates.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self, CollectError> {
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("gpuwatch/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                // Retry is the scheduler's, which counts every attempt.
                .retry(reqwest::retry::never())
        };
        let build = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| {
                CollectError::new(
                    Reason::Other,
                    format!("the HTTP client cannot be set up: {}", causes(&error)),
                )
            })
        };
        Ok(Self {
            outside: build(builder())?,
            nearby: build(builder().no_proxy())?,
        })
    }

    /// Sends a request to `origin` and reads the whole answer, whatever its
    /// status. Time is bounded by the caller.
    ///
    /// # Errors
    /// When the URL is not of `origin`, nothing came back, or the answer was
    /// cut off or too large.
    pub async fn send(&self, call: Call, origin: &Origin, request: Request) -> Result<Answer, CollectError> {
        origin.allow(&request.url)?;
        let is_nearby = origin.is_loopback() || request.url.scheme() == "http";
        let client = if is_nearby { &self.nearby } else { &self.outside };
        let mut response = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await
            .map_err(|error| transport(call, error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| transport(call, error))? {
            if body.len() + chunk.len() > MAX_ANSWER {
                let message = format!("{}: an answer of more than {} MiB", call.title(), MAX_ANSWER >> 20);
                return Err(CollectError::new(Reason::Decode, message));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            headers,
            body: body.freeze(),
        })
    }
}

fn transport(call: Call, error: reqwest::Error) -> CollectError {
    let (reason, text) = what_went_wrong(error);
    CollectError::new(reason, format!("{}: {text}", call.title())).retryable(true)
}

/// Class and text of a failure below HTTP. The text holds no URL, which can
/// carry a signature or a password.
#[must_use]
pub fn what_went_wrong(error: reqwest::Error) -> (Reason, String) {
    let error = error.without_url();
    let reason = if error.is_timeout() {
        Reason::Timeout
    } else if error.is_decode() {
        // Compressed data that do not decompress; cut-off ones among them.
        Reason::Decode
    } else {
        Reason::Network
    };
    (reason, causes(&error))
}

/// All causes on one line.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut parts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = cause.source();
    }
    one_line(&parts.join(": "), 300)
}
