//! What an error code means for the reader and for the next attempt.

use std::time::Duration;

use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};
use serde::Deserialize;

use crate::loose;

/// Longest part of a service's own words that is shown.
const MESSAGE_LIMIT: usize = 200;

/// How long to wait after being asked to slow down: limits are per second, and
/// no answer says more.
const SLOW_DOWN: Duration = Duration::from_secs(1);

/// The error part of an answer, which comes with status 200.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ApiError {
    #[serde(rename = "Code", default, deserialize_with = "loose::text")]
    pub code: Option<String>,
    #[serde(rename = "Message", default, deserialize_with = "loose::text")]
    pub message: Option<String>,
}

/// Classifies an error answer. What a token service says is not repeated: its
/// answers are about credentials.
pub(crate) fn classify(call: Call, host: &str, error: &ApiError, request_id: Option<&str>) -> CollectError {
    let code = error.code.as_deref().unwrap_or("no error code");
    let said = said(call, error, request_id);
    let title = call.title();
    let (reason, message) = match meaning(code) {
        Meaning::Throttled => (Reason::Throttled, format!("{title}: {said}")),
        Meaning::Server => {
            return CollectError::new(Reason::Other, format!("{title}: {said}"))
                .retryable(true)
                .code(code);
        }
        Meaning::NotCertified => (
            Reason::Permission,
            format!("{title}: the account has not passed real-name verification: {said}"),
        ),
        Meaning::Permission => (
            Reason::Permission,
            format!("{title} is not allowed: {said}; {}", permission(call)),
        ),
        Meaning::SkewedClock => (
            Reason::Credentials,
            format!("{title}: {said}; the signature is too old: check this machine's clock"),
        ),
        Meaning::Expired => (
            Reason::Credentials,
            format!("{title}: temporary credentials have expired: {said}"),
        ),
        Meaning::Keys => (
            Reason::Credentials,
            format!(
                "{title}: credentials are not accepted by {host}: {said}; check secret_id and secret_key, that the \
                 key is enabled, and that it belongs to this site"
            ),
        ),
        Meaning::NoRegion => (
            Reason::NotEnabled,
            format!("{title}: the region is not available: {said}; check its name or exclude it"),
        ),
        Meaning::Absent => (Reason::NotEnabled, format!("{title} does not exist here: {said}")),
        Meaning::Other => (Reason::Other, format!("{title}: {said}")),
    };
    let error = CollectError::new(reason, message).code(code);
    if reason == Reason::Throttled {
        error.retry_after(SLOW_DOWN)
    } else {
        error
    }
}

/// What a code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Throttled,
    Server,
    NotCertified,
    Permission,
    SkewedClock,
    Expired,
    Keys,
    NoRegion,
    Absent,
    Other,
}

/// By the full code where one part of a group differs, else by the part before
/// the first dot.
fn meaning(code: &str) -> Meaning {
    if code.contains("RequestLimitExceeded") || code.contains("RateLimitExceeded") {
        return Meaning::Throttled;
    }
    let group = code.split('.').next().unwrap_or_default();
    match code {
        "RequestLimitExceeded.UinLimitExceeded" | "RequestLimitExceeded.GlobalRegionUinLimitExceeded" => {
            Meaning::Throttled
        }
        "UnauthorizedOperation.NotCertification" | "UnauthorizedOperation.CertificationNeedUpgrade" => {
            Meaning::NotCertified
        }
        "AuthFailure.UnauthorizedOperation" => Meaning::Permission,
        "AuthFailure.SignatureExpire" => Meaning::SkewedClock,
        "AuthFailure.TokenFailure" | "AuthFailure.TokenNotFound" => Meaning::Expired,
        "InvalidParameter.AccessKeyNotSupport" => Meaning::Keys,
        "InvalidParameterValue.ZoneNotSupported" | "FailedOperation.RegionUnavailable" => Meaning::NoRegion,
        "FailedOperation.QueryDBFailed" => Meaning::Server,
        _ => match group {
            "UnauthorizedOperation" | "OperationDenied" => Meaning::Permission,
            "AuthFailure" => Meaning::Keys,
            "InternalError" | "InternalServerError" | "ResourceUnavailable" | "ServiceUnavailable" => Meaning::Server,
            "UnsupportedRegion" => Meaning::NoRegion,
            "InvalidAction" | "NoSuchVersion" | "NoSuchProduct" | "UnsupportedOperation" | "ActionOffline" => {
                Meaning::Absent
            }
            _ => Meaning::Other,
        },
    }
}

fn said(call: Call, error: &ApiError, request_id: Option<&str>) -> String {
    let message = error.message.as_deref().filter(|_| call.service != "sts");
    let mut said = one_line(message.unwrap_or("refused"), MESSAGE_LIMIT);
    if let Some(id) = request_id {
        said = format!("{} (request {})", said.trim_end_matches('.'), one_line(id, 64));
    }
    said
}

fn permission(call: Call) -> String {
    match call.permission {
        "sts:AssumeRole" => "allow sts:AssumeRole on this role for the base identity, and name the base identity (and \
                             external id) in the role's trust policy"
            .to_owned(),
        "" => "ask the account's administrator".to_owned(),
        action => format!("add {action} to the CAM policy"),
    }
}

/// Whether other credentials may help: these have ended, or are no longer
/// accepted.
pub(crate) fn is_refused_credentials(error: &CollectError) -> bool {
    error.reason == Reason::Credentials
        && error
            .code
            .as_deref()
            .is_some_and(|code| matches!(meaning(code), Meaning::Expired | Meaning::Keys))
}

/// Whether a signature was taken for too old.
pub(crate) fn is_skewed_clock(error: &CollectError) -> bool {
    error
        .code
        .as_deref()
        .is_some_and(|code| meaning(code) == Meaning::SkewedClock)
}

/// Whether the site or region does not have the call at all. A region that is
/// merely out of order has it.
pub(crate) fn is_absent(error: &CollectError) -> bool {
    error
        .code
        .as_deref()
        .is_some_and(|code| meaning(code) == Meaning::Absent || code.starts_with("UnsupportedRegion"))
}

/// An answer that cannot be understood.
pub(crate) fn decode(call: Call, what: &str) -> CollectError {
    let message = format!("{}: answer not understood: {what}", call.title());
    CollectError::new(Reason::Decode, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::new("cvm", "DescribeInstances", "cvm:DescribeInstances");

    fn error(call: Call, code: &str) -> CollectError {
        let error = ApiError {
            code: Some(code.to_owned()),
            message: Some("s3cret\nwords.".to_owned()),
        };
        classify(call, "cvm.tencentcloudapi.com", &error, Some("r-1"))
    }

    #[test]
    fn codes_tell_what_is_wrong_and_whether_to_try_again() {
        let cases = [
            ("RequestLimitExceeded", Reason::Throttled, true),
            ("RequestLimitExceeded.UinLimitExceeded", Reason::Throttled, true),
            ("LimitExceeded.RateLimitExceeded", Reason::Throttled, true),
            ("FailedOperation.RequestLimitExceeded", Reason::Throttled, true),
            ("InternalError", Reason::Other, true),
            ("InternalError.GatewayError", Reason::Other, true),
            ("InternalServerError", Reason::Other, true),
            ("ResourceUnavailable", Reason::Other, true),
            ("FailedOperation.QueryDBFailed", Reason::Other, true),
            ("AuthFailure.SignatureExpire", Reason::Credentials, false),
            ("AuthFailure.TokenFailure", Reason::Credentials, false),
            ("AuthFailure.TokenNotFound", Reason::Credentials, false),
            ("AuthFailure.SignatureFailure", Reason::Credentials, false),
            ("AuthFailure.SecretIdNotFound", Reason::Credentials, false),
            ("AuthFailure.InvalidSecretId", Reason::Credentials, false),
            ("InvalidParameter.AccessKeyNotSupport", Reason::Credentials, false),
            ("UnauthorizedOperation", Reason::Permission, false),
            ("UnauthorizedOperation.CamNoAuth", Reason::Permission, false),
            ("AuthFailure.UnauthorizedOperation", Reason::Permission, false),
            ("UnauthorizedOperation.NotCertification", Reason::Permission, false),
            ("OperationDenied.Something", Reason::Permission, false),
            ("UnsupportedRegion", Reason::NotEnabled, false),
            ("FailedOperation.RegionUnavailable", Reason::NotEnabled, false),
            ("InvalidAction", Reason::NotEnabled, false),
            ("NoSuchProduct", Reason::NotEnabled, false),
            ("UnsupportedOperation.Something", Reason::NotEnabled, false),
            ("InvalidParameterValue.Limit", Reason::Other, false),
            ("SomethingNew", Reason::Other, false),
        ];
        for (code, reason, retryable) in cases {
            let error = error(CALL, code);
            assert_eq!((error.reason, error.retryable), (reason, retryable), "{code}");
            assert_eq!(error.code.as_deref(), Some(code));
        }
    }

    #[test]
    fn a_refusal_names_the_permission_to_add() {
        let error = error(CALL, "UnauthorizedOperation");
        assert!(error.message.contains("add cvm:DescribeInstances"), "{error}");
        assert!(error.message.contains("request r-1"), "{error}");
        assert!(!error.message.contains('\n'));
    }

    #[test]
    fn token_services_are_not_quoted() {
        let call = Call::new("sts", "AssumeRole", "sts:AssumeRole");
        let error = error(call, "UnauthorizedOperation");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert!(error.message.contains("trust policy"), "{error}");
    }

    #[test]
    fn refused_credentials_are_told_from_a_wrong_clock() {
        let expired = error(CALL, "AuthFailure.TokenFailure");
        let skewed = error(CALL, "AuthFailure.SignatureExpire");
        assert!(is_refused_credentials(&expired) && !is_skewed_clock(&expired));
        assert!(is_skewed_clock(&skewed) && !is_refused_credentials(&skewed));
        assert!(is_absent(&error(CALL, "NoSuchProduct")) && !is_absent(&expired));
        assert!(
            is_absent(&error(CALL, "UnsupportedRegion"))
                && !is_absent(&error(CALL, "FailedOperation.RegionUnavailable"))
        );
    }
}
