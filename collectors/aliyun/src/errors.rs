//! From error answers to gpuwatch's errors: which class, worth a repeat or
//! not, and what the person who reads it can do.

use std::time::Duration;

use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};
use gpuwatch_collector_rest::Answer;
use jiff::Timestamp;
use serde::Deserialize;

/// Longest part of an outside message that is kept, in characters.
const MESSAGE_LIMIT: usize = 300;

/// The body of an error answer; some products write the names in lower case.
#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default, alias = "code", alias = "Code")]
    code: Option<String>,
    #[serde(default, alias = "message", alias = "Message")]
    message: Option<String>,
    #[serde(default, rename = "RequestId", alias = "requestId")]
    request_id: Option<String>,
    #[serde(default, rename = "AccessDeniedDetail")]
    denied: Option<serde_json::Value>,
}

impl Body {
    /// The RAM action that was refused, where the answer names it.
    fn refused_action(&self) -> Option<&str> {
        let action = self.denied.as_ref()?.get("AuthAction")?.as_str()?;
        let is_action =
            action.contains(':') && action.bytes().all(|b| b.is_ascii_alphanumeric() || b":-*".contains(&b));
        is_action.then_some(action)
    }
}

/// A refusal inside an answer with a status of success, as the billing product
/// gives them.
pub(crate) fn refusal_within(call: Call, answer: &Answer) -> Option<CollectError> {
    #[derive(Deserialize)]
    struct Refusal {
        #[serde(rename = "Success", default)]
        success: Option<bool>,
        #[serde(rename = "Code", default)]
        code: Option<String>,
        #[serde(rename = "Message", default)]
        message: Option<String>,
    }
    let refusal: Refusal = serde_json::from_slice(&answer.body).ok()?;
    if refusal.success != Some(false) {
        return None;
    }
    let code = refusal.code.unwrap_or_default();
    Some(by_code(
        call,
        &code,
        &said(&code, refusal.message.as_deref()),
        call.permission,
        answer.status,
    ))
}

/// Classifies an answer that is not a success.
pub(crate) fn classify(call: Call, answer: &Answer, now: Timestamp) -> CollectError {
    let body: Body = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(code) = body.code.as_deref().filter(|code| !code.is_empty()) else {
        return with_hint(answer.failure_by_status(call), answer, now);
    };
    let request_id = body.request_id.as_deref().unwrap_or("none");
    tracing::debug!(
        service = call.service,
        operation = call.operation,
        code,
        request_id,
        "call refused"
    );
    let said = said(code, body.message.as_deref());
    let action = body.refused_action().unwrap_or(call.permission);
    with_hint(by_code(call, code, &said, action, answer.status), answer, now)
}

/// An error by its code.
fn by_code(call: Call, code: &str, said: &str, action: &str, status: u16) -> CollectError {
    let title = call.title();
    let error = match code {
        code if code.starts_with("Throttling") || code == "ServiceUnavailable" => {
            CollectError::new(Reason::Throttled, format!("{title}: {said}"))
        }
        "InvalidTimeStamp.Expired" => CollectError::new(
            Reason::Credentials,
            format!("{title}: {said}; check this machine's clock"),
        ),
        "SignatureNonceUsed" => CollectError::new(Reason::Other, format!("{title}: {said}")).retryable(true),
        "SignatureDoesNotMatch" | "IncompleteSignature" => CollectError::new(
            Reason::Credentials,
            format!("{title}: the signature is not accepted; check the access key secret and this machine's clock"),
        ),
        code if code.starts_with("InvalidAccessKeyId") => CollectError::new(
            Reason::Credentials,
            format!("{title}: {said}; is the access key still active, and of this site?"),
        ),
        code if is_expired_token(code) => {
            CollectError::new(Reason::Credentials, format!("{title}: the session has ended: {said}"))
        }
        code if code.starts_with("AuthenticationFail.OIDCToken") => CollectError::new(
            Reason::Credentials,
            format!("{title}: {said}; is the token of ALIBABA_CLOUD_OIDC_TOKEN_FILE still renewed by the cluster?"),
        ),
        "EntityNotExist.OIDCProvider" => CollectError::new(
            Reason::Permission,
            format!("{title}: {said}; is ALIBABA_CLOUD_OIDC_PROVIDER_ARN an identity provider of the role's account?"),
        ),
        "NotApplicable" => CollectError::new(
            Reason::NotEnabled,
            format!("{title}: {said}; is `site` (china or international) that of the account?"),
        ),
        code if is_denied(code) => CollectError::new(
            Reason::Permission,
            format!("{title} is not allowed: {said}; {}", permission(call, action)),
        ),
        "InvalidRegionId.NotFound" | "InvalidOperation.NotSupportedEndpoint" => CollectError::new(
            Reason::NotEnabled,
            format!("{title}: {said}; the region is not there for this account: exclude it"),
        ),
        "InvalidApi.NotFound"
        | "InvalidAction.NotFound"
        | "InvalidVersion"
        | "InvalidProduct.NotFound"
        | "OptInRequired"
        | "ServiceNotEnabled" => CollectError::new(Reason::NotEnabled, format!("{title}: {said}")),
        _ => CollectError::new(Reason::Other, format!("{title}: {said}"))
            .retryable(status >= 500 || code.starts_with("InternalError")),
    };
    let error = error.code(code);
    if is_stale_token(code) {
        error.stale_token()
    } else {
        error
    }
}

/// The message without anything that could be a key or a signature.
fn said(code: &str, message: Option<&str>) -> String {
    // This one quotes the string to sign, with the key's id in it.
    let quotes_request = code.starts_with("Signature") || code.starts_with("IncompleteSignature");
    match message {
        Some(message) if !quotes_request => one_line(message, MESSAGE_LIMIT),
        _ => code.to_owned(),
    }
}

fn permission(call: Call, action: &str) -> String {
    if call.operation == "AssumeRole" {
        return "allow sts:AssumeRole on this role for the base identity, and name the base account (and external id) \
                in the role's trust policy"
            .to_owned();
    }
    format!("add {action} to the RAM policy")
}

fn with_hint(error: CollectError, answer: &Answer, now: Timestamp) -> CollectError {
    let millis = answer
        .header("x-acs-retry-after")
        .and_then(|text| text.trim().parse::<u64>().ok());
    match millis.map(Duration::from_millis).or_else(|| answer.retry_after(now)) {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

/// Whether new temporary keys may help.
pub(crate) fn is_expired(error: &CollectError) -> bool {
    error.reason == Reason::Credentials && error.code.as_deref().is_some_and(is_expired_token)
}

/// Whether rereading the keys may help: they may have been rotated.
pub(crate) fn is_refused_key(error: &CollectError) -> bool {
    error.reason == Reason::Credentials
        && error
            .code
            .as_deref()
            .is_some_and(|code| code.starts_with("InvalidAccessKeyId") || code == "SignatureDoesNotMatch")
}

/// Whether the machine's clock may be off.
pub(crate) fn is_skewed(error: &CollectError) -> bool {
    error.code.as_deref() == Some("InvalidTimeStamp.Expired")
}

/// Whether one of the instances that were asked about is the reason.
pub(crate) fn is_about_an_instance(error: &CollectError) -> bool {
    let code = error.code.as_deref().unwrap_or_default();
    code.starts_with("InvalidInstanceId") || code.starts_with("InvalidInstanceChargeType")
}

/// Whether the billing product serves this account at its other site.
pub(crate) fn is_of_other_site(error: &CollectError) -> bool {
    error.code.as_deref() == Some("NotApplicable")
}

fn is_expired_token(code: &str) -> bool {
    code.starts_with("InvalidSecurityToken")
}

/// Whether this is how a dry run of a permitted call is refused.
pub(crate) fn is_permitted_dry_run(error: &CollectError) -> bool {
    error.code.as_deref() == Some("DryRunOperation")
}

/// Whether the code says that the identity may not do this.
pub(crate) fn is_denied(code: &str) -> bool {
    ["Forbidden", "NoPermission", "NotAuthorized", "EntityNotExist.Role"]
        .iter()
        .any(|prefix| code.starts_with(prefix))
}

fn is_stale_token(code: &str) -> bool {
    code.starts_with("InvalidNextToken") || code == "InvalidParameter.NextToken" || code == "InvalidToken"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    const CALL: Call = Call::new("ecs", "DescribeInstances", "ecs:DescribeInstances");

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            headers: http::HeaderMap::new(),
            body: body.to_owned().into(),
        }
    }

    fn classified(status: u16, code: &str) -> CollectError {
        let body = serde_json::json!({"RequestId": "r", "HostId": "h", "Code": code, "Message": "told"}).to_string();
        classify(CALL, &answer(status, &body), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn codes_have_classes() {
        for (status, code, reason, retryable) in [
            (400, "Throttling", Reason::Throttled, true),
            (400, "Throttling.User", Reason::Throttled, true),
            (400, "Throttling.Api", Reason::Throttled, true),
            (503, "ServiceUnavailable", Reason::Throttled, true),
            (500, "InternalError", Reason::Other, true),
            (400, "SignatureNonceUsed", Reason::Other, true),
            (400, "SignatureDoesNotMatch", Reason::Credentials, false),
            (404, "InvalidAccessKeyId.NotFound", Reason::Credentials, false),
            (403, "InvalidSecurityToken.Expired", Reason::Credentials, false),
            (403, "Forbidden.RAM", Reason::Permission, false),
            (403, "NoPermission", Reason::Permission, false),
            (404, "InvalidRegionId.NotFound", Reason::NotEnabled, false),
            (400, "NotApplicable", Reason::NotEnabled, false),
            (400, "InvalidParameter", Reason::Other, false),
            (400, "SomethingNew", Reason::Other, false),
        ] {
            let error = classified(status, code);
            assert_eq!((error.reason, error.retryable), (reason, retryable), "{code}");
            assert_eq!(error.code.as_deref(), Some(code));
        }
    }

    #[test]
    fn a_refusal_names_the_action_to_add() {
        let error = classified(403, "Forbidden.RAM");
        assert!(error.to_string().contains("add ecs:DescribeInstances"), "{error}");
    }

    #[test]
    fn an_action_that_the_answer_names_comes_first() {
        let refused = |action: &str| {
            let body = serde_json::json!({"Code": "Forbidden.RAM", "AccessDeniedDetail": {"AuthAction": action}});
            classify(CALL, &answer(403, &body.to_string()), Timestamp::UNIX_EPOCH).to_string()
        };
        assert!(refused("ecs:DescribeInstancesFull").contains("add ecs:DescribeInstancesFull to"));
        assert!(refused("<b>anything</b>").contains("add ecs:DescribeInstances to"));
    }

    #[test]
    fn the_string_to_sign_is_not_shown() {
        let body = r#"{"Code": "SignatureDoesNotMatch", "Message": "server string to sign is: LTAIkey"}"#;
        let error = classify(CALL, &answer(400, body), Timestamp::UNIX_EPOCH);
        assert!(!error.to_string().contains("LTAIkey"), "{error}");
    }

    #[test]
    fn the_wait_is_in_milliseconds() {
        let mut throttled = answer(400, r#"{"code": "Throttling"}"#);
        throttled
            .headers
            .insert("x-acs-retry-after", http::HeaderValue::from_static("1500"));
        let error = classify(CALL, &throttled, Timestamp::UNIX_EPOCH);
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(
            text in testing::record(&["Code", "code", "Message", "message", "RequestId", "requestId", "Success"]),
            noise in prop::collection::vec(any::<u8>(), 0..40),
            status in 200_u16..600,
        ) {
            for body in [text.as_bytes(), &noise] {
                let answer = Answer {
                    status,
                    headers: http::HeaderMap::new(),
                    body: body.to_vec().into(),
                };
                let error = classify(CALL, &answer, Timestamp::UNIX_EPOCH);
                prop_assert!(!error.to_string().contains('\n'));
                let _ = refusal_within(CALL, &answer);
            }
        }
    }
}
