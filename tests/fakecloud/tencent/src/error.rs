//! Failures in Tencent Cloud's own words.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

/// A refusal. It comes with status 200.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) code: String,
    message: String,
}

impl ApiError {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn denied(action: &str, account: &str) -> Self {
        Self::new(
            "UnauthorizedOperation",
            format!(
                "[request id:00000000-0000-4000-8000-000000000000]you are not authorized to perform operation \
                 ({action}) resource (qcs::cvm::uin/{account}:*) has no permission"
            ),
        )
    }

    /// How the cloud says that a call failed with `kind`.
    pub(crate) fn injected(kind: FaultKind, action: &str, account: &str) -> Self {
        match kind {
            FaultKind::Throttled { .. } => Self::new("RequestLimitExceeded", "The request limit is exceeded."),
            FaultKind::ExpiredToken => Self::new("AuthFailure.TokenFailure", "The token is invalid or has expired."),
            FaultKind::AuthFailure => Self::new("AuthFailure.SecretIdNotFound", "The SecretId is not found."),
            FaultKind::AccessDenied => Self::denied(action, account),
            FaultKind::OptInRequired => Self::new("UnsupportedRegion", "The region is not supported."),
            _ => Self::new("InternalError", "An internal error has occurred. Retry your request."),
        }
    }

    pub(crate) fn body(&self) -> Value {
        json!({"Response": {
            "Error": {"Code": self.code, "Message": self.message},
            "RequestId": "00000000-0000-4000-8000-000000000000",
        }})
    }
}
