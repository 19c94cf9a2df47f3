//! From error answers to gpuwatch's errors: which class, worth a repeat or
//! not, and what the person who reads it can do.

use std::time::Duration;

use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};
use gpuwatch_collector_rest::Answer;
use jiff::Timestamp;
use serde::Deserialize;

/// Longest part of an outside message that is kept, in characters.
const MESSAGE_LIMIT: usize = 300;

/// The window of Resource Graph's quota.
const QUOTA_WINDOW: Duration = Duration::from_secs(5);

/// A longer wait than this is no wait but an outage.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// The body of an error answer: `{"error": {"code", "message"}}`, or the pair
/// without the envelope.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Option<Detail>,
    #[serde(alias = "Code")]
    code: Option<String>,
    #[serde(alias = "Message")]
    message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail {
    code: Option<String>,
    message: Option<String>,
}

/// Classifies an answer that is not a success.
pub(crate) fn classify(call: Call, answer: &Answer, now: Timestamp) -> CollectError {
    let body: Body = serde_json::from_slice(&answer.body).unwrap_or_default();
    let (code, message) = match body.error {
        Some(detail) => (detail.code, detail.message),
        None => (body.code, body.message),
    };
    let Some(code) = code.filter(|code| !code.is_empty()) else {
        return with_hint(answer.failure_by_status(call), answer, now);
    };
    let request_id = answer.header("x-ms-request-id").unwrap_or("none");
    tracing::debug!(
        service = call.service,
        operation = call.operation,
        code,
        request_id,
        "call refused"
    );
    let said = message.map_or_else(|| code.clone(), |message| one_line(&message, MESSAGE_LIMIT));
    with_hint(by_code(call, &code, &said, answer.status), answer, now)
}

fn by_code(call: Call, code: &str, said: &str, status: u16) -> CollectError {
    let title = call.title();
    let error = match (status, code) {
        (429, _) | (_, "TooManyRequests" | "RateLimiting") => {
            CollectError::new(Reason::Throttled, format!("{title}: {said}"))
        }
        (_, throttled) if throttled.ends_with("Throttled") => {
            CollectError::new(Reason::Throttled, format!("{title}: {said}"))
        }
        (_, "ExpiredAuthenticationToken" | "InvalidAuthenticationToken" | "AuthenticationFailed") => CollectError::new(
            Reason::Credentials,
            format!("{title}: the token is not accepted: {said}"),
        ),
        (_, "InvalidAuthenticationTokenTenant") => CollectError::new(
            Reason::Credentials,
            format!(
                "{title}: the subscription is in another tenant: write a section of its own for that tenant: {said}"
            ),
        ),
        // Where roles are given apart from subscriptions, a missing one is
        // answered like this.
        (401, _) if is_of_tenant(call) => refused(call, said),
        (401, _) => CollectError::new(Reason::Credentials, format!("{title}: {said}")),
        (_, "SubscriptionNotFound") => CollectError::new(
            Reason::Permission,
            format!("{title}: {said}; give the identity the Reader role on the subscription, or exclude it"),
        ),
        (_, code) if is_unregistered(code) => CollectError::new(
            Reason::NotEnabled,
            format!("{title}: the resource provider is not registered in this subscription: {said}"),
        ),
        (_, "ReadOnlyDisabledSubscription" | "DisabledSubscription") => CollectError::new(
            Reason::NotEnabled,
            format!("{title}: the subscription is disabled: {said}"),
        ),
        (403, _) => refused(call, said),
        (408 | 504, _) => CollectError::new(Reason::Timeout, format!("{title}: {said}")),
        _ => CollectError::new(Reason::Other, format!("{title}: {said}")).retryable(status >= 500),
    };
    error.code(code)
}

/// Whether a call is about what belongs to the tenant.
fn is_of_tenant(call: Call) -> bool {
    matches!(call.service, "capacity" | "billingbenefits")
}

fn refused(call: Call, said: &str) -> CollectError {
    CollectError::new(
        Reason::Permission,
        format!("{} is not allowed: {said}; {}", call.title(), permission(call)),
    )
}

fn permission(call: Call) -> String {
    let role = match call.service {
        "capacity" => "the Reservations Reader role at /providers/Microsoft.Capacity",
        "billingbenefits" => "the Savings plan Reader role at /providers/Microsoft.BillingBenefits",
        _ => "the Reader role on the subscription or its management group",
    };
    format!("add {} to the role (it is part of {role})", call.permission)
}

/// The longest of the waits that the answer asks for: `Retry-After`, or the
/// time until Resource Graph's quota is full again (`00:00:05`).
fn with_hint(error: CollectError, answer: &Answer, now: Timestamp) -> CollectError {
    if !error.retryable {
        return error;
    }
    let quota = answer.header("x-ms-user-quota-resets-after").and_then(clock_time);
    match answer.retry_after(now).max(quota) {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

/// How long to hold calls back after an answer that used the quota up.
pub(crate) fn quota_wait(answer: &Answer) -> Option<Duration> {
    let remaining: u64 = answer.header("x-ms-user-quota-remaining")?.trim().parse().ok()?;
    let resets = answer.header("x-ms-user-quota-resets-after").and_then(clock_time);
    (remaining == 0).then(|| resets.unwrap_or(QUOTA_WINDOW).min(LONGEST_WAIT))
}

/// `hh:mm:ss` as a duration.
pub(crate) fn clock_time(text: &str) -> Option<Duration> {
    let mut parts = text.trim().splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    minutes.checked_mul(60)?.checked_add(seconds).map(Duration::from_secs)
}

/// Whether a new token may help.
pub(crate) fn is_refused_token(error: &CollectError) -> bool {
    error.reason == Reason::Credentials
        && matches!(
            error.code.as_deref(),
            Some("ExpiredAuthenticationToken" | "InvalidAuthenticationToken" | "AuthenticationFailed")
        )
}

/// Whether what was asked for has been deleted since it was listed.
pub(crate) fn is_gone(error: &CollectError) -> bool {
    matches!(
        error.code.as_deref(),
        Some("ResourceNotFound" | "ResourceGroupNotFound" | "NotFound")
    )
}

/// Whether nobody ever used the service in this subscription: there is
/// nothing to list.
pub(crate) fn is_unused(error: &CollectError) -> bool {
    error.code.as_deref().is_some_and(is_unregistered)
}

fn is_unregistered(code: &str) -> bool {
    matches!(
        code,
        "MissingSubscriptionRegistration" | "SubscriptionNotRegistered" | "InvalidResourceNamespace"
    )
}

/// Whether this cloud does not know the version of the API: the sovereign ones
/// lag behind.
pub(crate) fn is_unknown_version(error: &CollectError) -> bool {
    matches!(
        error.code.as_deref(),
        Some("InvalidApiVersionParameter" | "NoRegisteredProviderFound" | "InvalidResourceType")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Call = Call::new(
        "compute",
        "virtualMachines.listAll",
        "Microsoft.Compute/virtualMachines/read",
    );

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            headers: http::HeaderMap::new(),
            body: body.to_owned().into(),
        }
    }

    fn classified(status: u16, code: &str) -> CollectError {
        let body = serde_json::json!({"error": {"code": code, "message": "told"}}).to_string();
        classify(LIST, &answer(status, &body), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn codes_have_classes() {
        for (status, code, reason, retryable) in [
            (429, "TooManyRequests", Reason::Throttled, true),
            (429, "SubscriptionRequestsThrottled", Reason::Throttled, true),
            (429, "OperationNotAllowed", Reason::Throttled, true),
            (401, "ExpiredAuthenticationToken", Reason::Credentials, false),
            (401, "InvalidAuthenticationTokenTenant", Reason::Credentials, false),
            (403, "AuthorizationFailed", Reason::Permission, false),
            (404, "SubscriptionNotFound", Reason::Permission, false),
            (409, "MissingSubscriptionRegistration", Reason::NotEnabled, false),
            (503, "ServiceUnavailable", Reason::Other, true),
            (504, "GatewayTimeout", Reason::Timeout, true),
            (400, "BadRequest", Reason::Other, false),
        ] {
            let error = classified(status, code);
            assert_eq!((error.reason, error.retryable), (reason, retryable), "{code}");
        }
    }

    #[test]
    fn a_refusal_names_the_action_and_the_role() {
        let text = classified(403, "AuthorizationFailed").to_string();
        assert!(
            text.contains("Microsoft.Compute/virtualMachines/read") && text.contains("Reader"),
            "{text}"
        );
    }

    #[test]
    fn only_a_quota_that_is_used_up_holds_calls_back() {
        let with = |remaining: &'static str, resets: &'static str| {
            let mut answer = answer(200, "{}");
            let headers = &mut answer.headers;
            headers.insert("x-ms-user-quota-remaining", http::HeaderValue::from_static(remaining));
            headers.insert("x-ms-user-quota-resets-after", http::HeaderValue::from_static(resets));
            quota_wait(&answer)
        };
        assert_eq!(with("1", "00:00:03"), None);
        assert_eq!(with("0", "00:00:03"), Some(Duration::from_secs(3)));
        assert_eq!(with("0", "soon"), Some(QUOTA_WINDOW));
        assert_eq!(with("0", "99999:00:00"), Some(LONGEST_WAIT));
        assert_eq!(quota_wait(&answer(200, "{}")), None);
    }

    #[test]
    fn waits_are_found_in_every_header() {
        let mut throttled = answer(429, r#"{"code": "x", "message": "m"}"#);
        let headers = &mut throttled.headers;
        headers.insert("retry-after", http::HeaderValue::from_static("2"));
        headers.insert(
            "x-ms-user-quota-resets-after",
            http::HeaderValue::from_static("00:00:05"),
        );
        let error = classify(LIST, &throttled, Timestamp::UNIX_EPOCH);
        assert_eq!(error.retry_after, Some(Duration::from_secs(5)));
        assert_eq!(clock_time("01:00:01"), Some(Duration::from_secs(3601)));
        assert_eq!(
            (clock_time(""), clock_time("5"), clock_time("a:b:c")),
            (None, None, None)
        );
    }
}
