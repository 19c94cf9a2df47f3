//! Lets the credentials library use gpuwatch's connections: one set of
//! proxies, bounds and root certificates for everything.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_core::{
    error::{Error, ErrorKind},
    http::{AsyncRawResponse, Body, HttpClient, Request, StatusCode, headers::Headers},
};
use gpuwatch_collector_core::{Call, CollectError, lock};
use gpuwatch_collector_rest::{Http, Request as OwnRequest};
use http::{HeaderName, HeaderValue, Method};

use super::origin_of;
use crate::environment::Environment;

/// Why the newest exchange failed, where it was not for what the directory
/// said: the library's errors do not tell a lost connection or a busy server
/// from a refusal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<CollectError>>>);

impl Trouble {
    /// Takes it out.
    pub(crate) fn take(&self) -> Option<CollectError> {
        lock(&self.0).take()
    }
}

#[derive(Debug)]
pub(crate) struct OwnTransport {
    http: Http,
    environment: Arc<Environment>,
    call: Call,
    trouble: Trouble,
}

impl OwnTransport {
    pub(crate) fn new(http: Http, environment: Arc<Environment>, call: Call, trouble: Trouble) -> Self {
        Self {
            http,
            environment,
            call,
            trouble,
        }
    }
}

#[async_trait]
impl HttpClient for OwnTransport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let failed = |text: String| Error::with_message(ErrorKind::Io, text);
        let asked = request.url();
        let origin = origin_of(&self.environment, asked).map_err(|error| failed(error.to_string()))?;
        let path = match asked.query() {
            Some(query) => format!("{}?{query}", asked.path()),
            None => asked.path().to_owned(),
        };
        let url = origin.url(&path).map_err(|error| failed(error.to_string()))?;
        let method = Method::from_bytes(request.method().as_str().as_bytes())
            .map_err(|_| failed("a method that HTTP does not have".to_owned()))?;
        let mut own = OwnRequest::new(method, url);
        for (name, value) in request.headers().iter() {
            let (Ok(name), Ok(mut value)) = (
                HeaderName::from_bytes(name.as_str().as_bytes()),
                HeaderValue::from_str(value.as_str()),
            ) else {
                continue;
            };
            // Any of them can hold a token.
            value.set_sensitive(true);
            own.headers.insert(name, value);
        }
        if let Body::Bytes(bytes) = request.body() {
            own = own.body(bytes.clone());
        }
        let answer = match self.http.send(self.call, &origin, own).await {
            Ok(answer) => answer,
            Err(error) => {
                let text = error.to_string();
                *lock(&self.trouble.0) = Some(error);
                return Err(failed(text));
            }
        };
        *lock(&self.trouble.0) = if answer.status == 429 || answer.status >= 500 {
            Some(answer.failure_by_status(self.call))
        } else if answer.is_success() {
            answer.json::<serde::de::IgnoredAny>(self.call).err()
        } else {
            None
        };
        let mut headers = Headers::new();
        for (name, value) in &answer.headers {
            if let Ok(value) = value.to_str() {
                headers.insert(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(AsyncRawResponse::from_bytes(
            StatusCode::from(answer.status),
            headers,
            answer.body,
        ))
    }
}
