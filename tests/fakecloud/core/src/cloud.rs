//! What a simulated cloud must provide to the shared server.

use axum::http::{HeaderMap, Method, Uri};
use bytes::Bytes;

use crate::FaultKind;

/// A request, read to its end.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Incoming {
    /// A header's value, when it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Who calls what: the facts that fault rules match and the call log keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallKey {
    pub(crate) provider: &'static str,
    pub(crate) service: String,
    pub(crate) operation: String,
    /// Empty when the caller could not be identified.
    pub(crate) account: String,
    /// Empty where a service has no regions.
    pub(crate) region: String,
    pub(crate) page_token: Option<String>,
}

/// An answer in the cloud's own wire format.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    /// The cloud's error code, for the call log.
    pub(crate) error_code: Option<String>,
}

/// One call being answered: authenticated, but not yet executed, so that a
/// fault or a delay falls between the two as it does in a real service.
pub(crate) trait Exchange: Send + Sync {
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
pub(crate) trait Cloud: Send + Sync {
    /// Whether a request speaks this cloud's protocols.
    fn recognises(&self, request: &Incoming) -> bool;

    /// Identifies the caller and the operation.
    fn begin(&self, request: Incoming) -> Box<dyn Exchange>;
}
