//! Failures in Azure's own words.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{FaultKind, Reply};
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug, Clone)]
pub(crate) struct ArmError {
    status: u16,
    code: String,
    body: Value,
    headers: Vec<(&'static str, String)>,
}

impl ArmError {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            body: json!({"error": {"code": code, "message": message.into()}}),
            headers: Vec::new(),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn no_version() -> Self {
        Self::new(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(404, "ResourceNotFound", format!("The Resource '{what}' was not found."))
    }

    pub(crate) fn no_subscription(id: &str) -> Self {
        let message = format!("The subscription '{id}' could not be found.");
        Self::new(404, "SubscriptionNotFound", message)
    }

    pub(crate) fn denied(action: &str, scope: &str) -> Self {
        Self::new(
            403,
            "AuthorizationFailed",
            format!(
                "The client 'fakecloud' with object id 'fakecloud' does not have authorization to perform action \
                 '{action}' over scope '{scope}' or the scope is invalid."
            ),
        )
    }

    pub(crate) fn token(code: &str, message: &str) -> Self {
        let mut error = Self::new(401, code, message);
        let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{message}\"");
        error.headers.push(("www-authenticate", challenge));
        error
    }

    /// An error of the token endpoint.
    pub(crate) fn sign_in(number: u32, error: &str, message: &str) -> Self {
        Self {
            status: if error == "invalid_client" { 401 } else { 400 },
            code: error.to_owned(),
            body: json!({
                "error": error, "error_description": format!("AADSTS{number}: {message}"), "error_codes": [number],
            }),
            headers: Vec::new(),
        }
    }

    /// How the cloud says that a call failed with `kind`.
    pub(crate) fn injected(kind: FaultKind, action: &str, scope: &str) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let message = "Number of requests exceeded the limit. Please try again later.";
                let mut error = Self::new(429, "TooManyRequests", message);
                error
                    .headers
                    .extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
                error
            }
            FaultKind::ExpiredToken => Self::token("ExpiredAuthenticationToken", "The access token has expired."),
            FaultKind::AuthFailure => Self::token("InvalidAuthenticationToken", "The access token is invalid."),
            FaultKind::AccessDenied => Self::denied(action, scope),
            FaultKind::OptInRequired => Self::new(
                403,
                "ReadOnlyDisabledSubscription",
                "The subscription is disabled and therefore marked as read only.",
            ),
            _ => Self::new(500, "InternalServerError", "The server encountered an error."),
        }
    }

    pub(crate) fn render(&self) -> Reply {
        let mut headers = self.headers.clone();
        headers.push(("x-ms-request-id", "00000000-0000-4000-8000-000000000000".to_owned()));
        Reply {
            status: self.status,
            content_type: "application/json; charset=utf-8",
            headers,
            body: Bytes::from(self.body.to_string()),
            error_code: Some(self.code.clone()),
        }
    }
}
