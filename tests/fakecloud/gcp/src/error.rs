//! Failures in Google's own words: `google.rpc.Status` in JSON, with the older
//! `errors` list that Compute Engine still sends, and the OAuth errors of the
//! token endpoints.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{FaultKind, Reply};
use serde_json::{Value, json};

use crate::route::Service;

/// A refusal, before it takes the form that its service gives it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: u16,
    /// Canonical code (`PERMISSION_DENIED`); empty where Compute Engine leaves
    /// it out.
    code: &'static str,
    message: String,
    /// The reason of the older list (`forbidden`).
    legacy: &'static str,
    /// Reason and metadata of an `ErrorInfo`.
    info: Option<(&'static str, Value)>,
    retry_after: Option<u32>,
    /// Names the scheme to authenticate with.
    challenge: bool,
}

impl ApiError {
    pub(crate) fn new(status: u16, code: &'static str, legacy: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            legacy,
            info: None,
            retry_after: None,
            challenge: false,
        }
    }

    fn with_info(mut self, reason: &'static str, metadata: Value) -> Self {
        self.info = Some((reason, metadata));
        self
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "INVALID_ARGUMENT", "invalid", message)
    }

    pub(crate) fn bad_page_token(service: Service) -> Self {
        match service {
            Service::Compute => Self::new(
                400,
                "",
                "invalid",
                "Invalid value for field 'pageToken'. The page token is invalid.",
            ),
            _ => Self::invalid("The page token is invalid."),
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "NOT_FOUND", "notFound", message)
    }

    pub(crate) fn no_such_project(service: Service, project: &str) -> Self {
        match service {
            Service::Compute => Self::new(
                404,
                "",
                "notFound",
                format!("The resource 'projects/{project}' was not found"),
            ),
            // Told apart from a project without permission by nobody.
            _ => Self::new(
                403,
                "PERMISSION_DENIED",
                "forbidden",
                format!("Permission denied on resource project {project}."),
            )
            .with_info("CONSUMER_INVALID", consumer(service, project)),
        }
    }

    pub(crate) fn unauthenticated() -> Self {
        let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, \
                       login cookie or other valid authentication credential.";
        let mut error = Self::new(401, "UNAUTHENTICATED", "authError", message);
        error.challenge = true;
        error.with_info("ACCESS_TOKEN_TYPE_UNSUPPORTED", json!({}))
    }

    pub(crate) fn no_credentials() -> Self {
        let message = "Request is missing required authentication credential. Expected OAuth 2 access token, \
                       login cookie or other valid authentication credential.";
        let mut error = Self::new(401, "UNAUTHENTICATED", "required", message);
        error.challenge = true;
        error.with_info("CREDENTIALS_MISSING", json!({}))
    }

    pub(crate) fn expired_token() -> Self {
        let mut error = Self::unauthenticated();
        error.info = Some(("ACCESS_TOKEN_EXPIRED", json!({})));
        error
    }

    pub(crate) fn narrow_scope(service: Service) -> Self {
        Self::new(
            403,
            "PERMISSION_DENIED",
            "insufficientPermissions",
            "Request had insufficient authentication scopes.",
        )
        .with_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT", json!({ "service": service.host() }))
    }

    /// The caller lacks `permission` on `resource` (`projects/p`).
    pub(crate) fn denied(service: Service, resource: &str, permission: &str) -> Self {
        if service == Service::Compute {
            let message = format!("Required '{permission}' permission for '{resource}'");
            return Self::new(403, "", "forbidden", message);
        }
        let message = format!("Permission '{permission}' denied on resource '{resource}' (or it may not exist).");
        Self::new(403, "PERMISSION_DENIED", "forbidden", message).with_info(
            "IAM_PERMISSION_DENIED",
            json!({ "permission": permission, "resource": resource }),
        )
    }

    /// The service is switched off in the project with this number.
    pub(crate) fn disabled(service: Service, number: &str) -> Self {
        let (title, host) = (service.title(), service.host());
        let message = format!(
            "{title} has not been used in project {number} before or it is disabled. Enable it by visiting \
             https://console.developers.google.com/apis/api/{host}/overview?project={number} then retry. If you \
             enabled this API recently, wait a few minutes for the action to propagate to our systems and retry."
        );
        Self::new(403, "PERMISSION_DENIED", "accessNotConfigured", message)
            .with_info("SERVICE_DISABLED", consumer(service, number))
    }

    /// The project is being shut down.
    pub(crate) fn shut_down(service: Service, number: &str) -> Self {
        let message = format!("Project #{number} has been deleted.");
        Self::new(403, "PERMISSION_DENIED", "forbidden", message)
            .with_info("CONSUMER_INVALID", consumer(service, number))
    }

    /// An outage of the whole call, as older versions answer it.
    pub(crate) fn unavailable() -> Self {
        Self::new(
            503,
            "UNAVAILABLE",
            "backendError",
            "The service is currently unavailable.",
        )
    }

    /// The cloud's way to fail with `kind`; `resource` and `permission` say
    /// what the call is about, `number` is the project that it is charged to.
    pub(crate) fn injected(kind: FaultKind, service: Service, resource: &str, permission: &str, number: &str) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => throttled(service, retry_after, number),
            FaultKind::AccessDenied => Self::denied(service, resource, permission),
            FaultKind::ExpiredToken => Self::expired_token(),
            FaultKind::AuthFailure => Self::unauthenticated(),
            FaultKind::OptInRequired => Self::disabled(service, number),
            _ => Self::new(500, "INTERNAL", "backendError", "Internal error encountered."),
        }
    }

    /// The answer in the form of this service.
    pub(crate) fn render(&self, service: Service) -> Reply {
        let (body, code) = match service {
            Service::OAuth | Service::Sts => self.oauth_body(),
            Service::Metadata => (self.message.clone(), self.code),
            _ => (self.status_body(service).to_string(), self.code_for_log()),
        };
        let mut headers = Vec::new();
        if self.challenge {
            let challenge = r#"Bearer realm="https://accounts.google.com/", error="invalid_token""#;
            headers.push(("www-authenticate", challenge.to_owned()));
        }
        if let Some(seconds) = self.retry_after {
            headers.push(("retry-after", seconds.to_string()));
        }
        if service == Service::Metadata {
            headers.push(("metadata-flavor", "Google".to_owned()));
        }
        let content_type = match service {
            Service::Metadata => "text/html; charset=UTF-8",
            _ => "application/json; charset=UTF-8",
        };
        Reply {
            status: self.status,
            content_type,
            headers,
            body: Bytes::from(body),
            error_code: Some(code.to_owned()),
        }
    }

    fn code_for_log(&self) -> &'static str {
        match &self.info {
            Some((reason, _)) => reason,
            None if self.code.is_empty() => self.legacy,
            None => self.code,
        }
    }

    fn status_body(&self, service: Service) -> Value {
        let mut error = json!({ "code": self.status, "message": self.message });
        let Some(fields) = error.as_object_mut() else {
            return error;
        };
        // The services that began with the new form send no older list.
        if service == Service::Compute {
            let domain = if self.legacy.ends_with("LimitExceeded") || self.legacy == "accessNotConfigured" {
                "usageLimits"
            } else {
                "global"
            };
            let row = json!({ "message": self.message, "domain": domain, "reason": self.legacy });
            fields.insert("errors".to_owned(), json!([row]));
        }
        if !self.code.is_empty() {
            fields.insert("status".to_owned(), Value::from(self.code));
        }
        if let Some((reason, metadata)) = &self.info {
            let detail = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "googleapis.com",
                "metadata": metadata,
            });
            fields.insert("details".to_owned(), json!([detail]));
        }
        json!({ "error": error })
    }

    /// Token endpoints answer in the words of OAuth 2.
    fn oauth_body(&self) -> (String, &'static str) {
        let word = match self.status {
            500.. => "internal_failure",
            429 => "rate_limit_exceeded",
            401 => "invalid_client",
            403 => "access_denied",
            _ if !self.legacy.is_empty() => self.legacy,
            _ => "invalid_request",
        };
        let body = json!({ "error": word, "error_description": self.message });
        (body.to_string(), word)
    }
}

/// A refusal of a token endpoint: an OAuth word and its description.
pub(crate) fn oauth(word: &'static str, description: &str) -> ApiError {
    ApiError::new(400, "", word, description)
}

/// Compute Engine has two ways to say it, and the test that asks for a time to
/// wait gets the one that has it.
fn throttled(service: Service, retry_after: Option<u32>, number: &str) -> ApiError {
    if service == Service::Compute && retry_after.is_none() {
        return ApiError::new(403, "", "rateLimitExceeded", "Rate Limit Exceeded");
    }
    let message = format!(
        "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service '{}'.",
        service.host()
    );
    let metadata = consumer(service, number);
    let mut error = ApiError::new(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", message)
        .with_info("RATE_LIMIT_EXCEEDED", metadata);
    error.retry_after = retry_after;
    error
}

fn consumer(service: Service, project: &str) -> Value {
    json!({ "consumer": format!("projects/{project}"), "service": service.host() })
}
