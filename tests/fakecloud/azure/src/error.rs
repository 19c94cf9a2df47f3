//! Failures in Azure's own words.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{FaultKind, Reply};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::graph::{ACTION, Left};
use crate::kql::Failure;

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

    /// A refusal of Resource Graph: the reasons are in the details.
    pub(crate) fn graph(code: &str, message: &str) -> Self {
        Self::with_details(400, "BadRequest", &json!([{"code": code, "message": message}]))
    }

    pub(crate) fn graph_denied() -> Self {
        let details = json!([{"code": "AccessDenied", "message": "Access is denied to the requested resource."}]);
        Self::with_details(403, "AccessDenied", &details)
    }

    /// A query that is not understood.
    pub(crate) fn query(failure: &Failure) -> Self {
        let details = json!([
            {"code": "InvalidQuery", "message": "Query is invalid. Correct the error before retrying."},
            {
                "code": "ParserFailure",
                "message": "ParserFailure",
                "line": failure.line,
                "characterPositionInLine": failure.position,
                "token": failure.token,
            },
        ]);
        Self::with_details(400, "BadRequest", &details)
    }

    /// A quota that is used up.
    pub(crate) fn rate(left: Left) -> Self {
        let details = json!([{"code": "RateLimiting", "message": "The quota of queries is used up."}]);
        let mut error = Self::with_details(429, "RateLimiting", &details);
        error.headers.extend(left.headers());
        error.headers.push(("retry-after", left.seconds.to_string()));
        error
    }

    /// Resource Graph says the same of every failure, and the rest in details.
    fn with_details(status: u16, code: &str, details: &Value) -> Self {
        let message = format!(
            "Please provide below info when asking for support: timestamp = {}, correlationId = \
             00000000-0000-4000-8000-000000000000.",
            Timestamp::now()
        );
        let mut error = Self::new(status, code, message);
        error.body["error"]["details"] = details.clone();
        error
    }

    /// A provider that this cloud does not have.
    pub(crate) fn no_namespace(namespace: &str) -> Self {
        let message = format!("The resource namespace '{namespace}' is invalid.");
        Self::new(404, "InvalidResourceNamespace", message)
    }

    pub(crate) fn no_version() -> Self {
        Self::new(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    }

    pub(crate) fn method(given: &str) -> Self {
        let message = format!("The requested resource does not support http method '{given}'.");
        Self::new(405, "HttpMethodNotSupported", message)
    }

    /// A version that what belongs to no provider lacks.
    pub(crate) fn invalid_version(given: &str, known: &[&str]) -> Self {
        let known = known.join(", ");
        let message = format!("The api-version '{given}' is invalid. The supported versions are '{known}'.");
        Self::new(400, "InvalidApiVersionParameter", message)
    }

    /// A version that a provider's type lacks.
    pub(crate) fn unknown_version(given: &str, namespace: &str, kind: &str, known: &[&str]) -> Self {
        let message = format!(
            "The resource type '{kind}' could not be found in the namespace '{namespace}' for api version '{given}'. \
             The supported api-versions are '{}'.",
            known.join(",")
        );
        Self::new(400, "InvalidResourceType", message)
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

    /// How the services of a tenant refuse a caller: with 401 or with 403.
    pub(crate) fn denied_with(status: u16, action: &str, scope: &str) -> Self {
        if status == 401 {
            return Self::new(401, "Unauthorized", "The caller is not authorized for this operation.");
        }
        Self::denied(action, scope)
    }

    pub(crate) fn internal() -> Self {
        Self::new(500, "InternalServerError", "The server encountered an error.")
    }

    pub(crate) fn token(code: &str, message: &str) -> Self {
        let mut error = Self::new(401, code, message);
        let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{message}\"");
        error.headers.push(("www-authenticate", challenge));
        error
    }

    /// A failure of a machine's metadata service.
    pub(crate) fn of_machine(message: &str) -> Self {
        Self {
            status: 400,
            code: "invalid_request".to_owned(),
            body: json!({"error": "invalid_request", "error_description": message}),
            headers: Vec::new(),
        }
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

    /// How Resource Manager says that a call failed with `kind`.
    pub(crate) fn injected(kind: FaultKind, action: &str, scope: &str) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let message = "Number of requests exceeded the limit. Please try again later.";
                Self::new(429, "TooManyRequests", message).wait(retry_after)
            }
            FaultKind::ExpiredToken => Self::token("ExpiredAuthenticationToken", "The access token has expired."),
            FaultKind::AuthFailure => Self::token("InvalidAuthenticationToken", "The access token is invalid."),
            FaultKind::AccessDenied => Self::denied(action, scope),
            FaultKind::OptInRequired => Self::new(
                403,
                "ReadOnlyDisabledSubscription",
                "The subscription is disabled and therefore marked as read only.",
            ),
            _ => Self::internal(),
        }
    }

    /// How Resource Graph says it, where it has words of its own.
    pub(crate) fn injected_in_graph(kind: FaultKind, scope: &str) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let left = Left { queries: 0, seconds: 5 };
                let mut error = Self::rate(left);
                error.headers.retain(|(name, _)| *name != "retry-after");
                error.wait(retry_after)
            }
            FaultKind::AccessDenied => Self::graph_denied(),
            _ => Self::injected(kind, ACTION, scope),
        }
    }

    /// How the token endpoint says it: an application that is not let in.
    pub(crate) fn injected_at_sign_in(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let mut error = Self::sign_in(90033, "temporarily_unavailable", "Too many requests.");
                error.status = 429;
                error.wait(retry_after)
            }
            FaultKind::ExpiredToken => Self::sign_in(
                7_000_222,
                "invalid_client",
                "The provided client secret keys are expired.",
            ),
            FaultKind::AuthFailure => Self::sign_in(7_000_215, "invalid_client", "Invalid client secret provided."),
            FaultKind::AccessDenied => Self::sign_in(
                700_016,
                "unauthorized_client",
                "Application was not found in the directory.",
            ),
            FaultKind::OptInRequired => Self::sign_in(90002, "invalid_request", "Tenant not found."),
            _ => {
                let mut error = Self::sign_in(90033, "server_error", "A transient error has occurred.");
                error.status = 500;
                error
            }
        }
    }

    fn wait(mut self, seconds: Option<u32>) -> Self {
        self.headers
            .extend(seconds.map(|seconds| ("retry-after", seconds.to_string())));
        self
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
