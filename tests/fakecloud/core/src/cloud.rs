//! What a simulated cloud must provide to the shared server.

use axum::http::{HeaderMap, Method, Uri};
use bytes::Bytes;

use crate::FaultKind;

/// A request, read to its end.
#[derive(Debug)]
pub struct Incoming {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, read to its end.
    pub body: Bytes,
}

impl Incoming {
    /// A header's value, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Who calls what: the facts that fault rules match and the call log keeps.
#[derive(Debug, Clone, Default)]
pub struct CallKey {
    /// The cloud (`aws`).
    pub provider: &'static str,
    /// Service, as the collectors count it.
    pub service: String,
    /// Operation, as the cloud spells it.
    pub operation: String,
    /// Empty when the caller could not be identified.
    pub account: String,
    /// Empty where a service has no regions.
    pub region: String,
    /// The page token that was sent.
    pub page_token: Option<String>,
}

/// An answer in the cloud's own wire format.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Further headers; names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Bytes,
    /// The cloud's error code, for the call log.
    pub error_code: Option<String>,
}

/// One call being answered: authenticated, but not yet executed, so that a
/// fault or a delay falls between the two as it does in a real service.
pub trait Exchange: Send + Sync {
    /// Who calls what.
    fn key(&self) -> &CallKey;

    /// The refusal of a call that failed authentication or is malformed.
    fn refusal(&self) -> Option<Reply>;

    /// The true answer at this moment, changed as `alteration` says where the
    /// operation has rows or pages to change.
    fn answer(&self, alteration: Option<FaultKind>) -> Reply;

    /// The cloud's own way to say that the call failed with `kind`.
    fn fail(&self, kind: FaultKind) -> Reply;
}

/// One simulated cloud.
pub trait Cloud: Send + Sync {
    /// Whether a request speaks this cloud's protocols.
    fn recognises(&self, request: &Incoming) -> bool;

    /// Identifies the caller and the operation.
    fn begin(&self, request: Incoming) -> Box<dyn Exchange>;
}
