//! What an error answer means: `google.rpc.Status` as JSON, and the older form
//! of Compute Engine with its own list of reasons.

use std::{collections::BTreeMap, time::Duration};

use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};
use gpuwatch_collector_rest::{Answer, Rows};
use jiff::Timestamp;
use serde::Deserialize;

/// What was asked for when the answer came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub call: Call,
    /// The project, or the service account, that it was about.
    pub about: &'a str,
    /// Whether a page token was sent.
    pub with_page_token: bool,
}

#[derive(Deserialize)]
struct Body {
    error: Failure,
}

#[derive(Deserialize)]
struct Failure {
    message: Option<String>,
    status: Option<String>,
    #[serde(default)]
    errors: Rows<Legacy>,
    #[serde(default)]
    details: Rows<Detail>,
}

/// An entry of the older list.
#[derive(Deserialize)]
struct Legacy {
    reason: Option<String>,
}

/// `google.rpc.ErrorInfo` or `google.rpc.RetryInfo`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    reason: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    retry_delay: Option<String>,
}

const DISABLED: [&str; 2] = ["SERVICE_DISABLED", "accessNotConfigured"];

/// What stands before the project in which an API is off.
const OFF_IN: &str = "is not enabled in";

/// Whether an API is off in this project, by id or number, and not in another
/// one that the call was charged to.
pub(crate) fn is_off_in(error: &CollectError, project: &str) -> bool {
    let names = |words: &str| error.message.contains(words);
    error.reason == Reason::NotEnabled
        && (names(&format!("{OFF_IN} projects/{project}:")) || names(&format!("{OFF_IN} {project}:")))
}

const TOO_FAST: [&str; 6] = [
    "rateLimitExceeded",
    "userRateLimitExceeded",
    "quotaExceeded",
    "RATE_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "dailyLimitExceeded",
];

/// Codes of a token that is not accepted (any more).
const TOKEN_REFUSED: [&str; 6] = [
    "ACCESS_TOKEN_EXPIRED",
    "ACCOUNT_STATE_INVALID",
    "CREDENTIALS_MISSING",
    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    "UNAUTHENTICATED",
    "authError",
];

/// Whether a code says that the token was not accepted.
pub(crate) fn is_token_refusal(code: &str) -> bool {
    TOKEN_REFUSED.contains(&code)
}

/// The error that an answer without success stands for.
pub(crate) fn classify(asked: &Asked<'_>, answer: &Answer, now: Timestamp) -> CollectError {
    let Ok(Body { error: failure }) = serde_json::from_slice::<Body>(&answer.body) else {
        return hinted(answer.failure_by_status(asked.call), answer.retry_after(now));
    };
    let known = Known::new(asked, answer, &failure);
    let retry_after = answer.retry_after(now).or_else(|| failure.retry_delay());
    hinted(known.error(), retry_after)
}

fn hinted(error: CollectError, retry_after: Option<Duration>) -> CollectError {
    match retry_after {
        Some(delay) => error.retry_after(delay),
        None => error,
    }
}

impl Failure {
    /// Reasons, the newer form first.
    fn reasons(&self) -> Vec<&str> {
        let newer = self.details.good.iter().filter_map(|detail| detail.reason.as_deref());
        let older = self.errors.good.iter().filter_map(|entry| entry.reason.as_deref());
        newer.chain(older).filter(|reason| !reason.is_empty()).collect()
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.details
            .good
            .iter()
            .find_map(|detail| detail.metadata.as_ref()?.get(key))
            .map(String::as_str)
    }

    /// `RetryInfo.retryDelay`, such as `1.5s`.
    fn retry_delay(&self) -> Option<Duration> {
        let text = self
            .details
            .good
            .iter()
            .find_map(|detail| detail.retry_delay.as_deref())?;
        let seconds = text.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// The facts of one error answer.
struct Known<'a> {
    asked: &'a Asked<'a>,
    status: u16,
    failure: &'a Failure,
    reasons: Vec<&'a str>,
    message: String,
}

impl<'a> Known<'a> {
    fn new(asked: &'a Asked<'a>, answer: &Answer, failure: &'a Failure) -> Self {
        Self {
            asked,
            status: answer.status,
            failure,
            reasons: failure.reasons(),
            message: one_line(failure.message.as_deref().unwrap_or_default(), 300),
        }
    }

    fn code(&self) -> Option<&str> {
        self.reasons.first().copied().or(self.failure.status.as_deref())
    }

    fn is(&self, words: &[&str]) -> bool {
        let status = self.failure.status.as_deref();
        self.reasons
            .iter()
            .copied()
            .chain(status)
            .any(|reason| words.contains(&reason))
    }

    /// The word of a list that the answer has, to be shown as its code.
    fn word(&self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| self.is(&[word]))
    }

    /// An error with the cloud's own words after ours.
    fn failed(&self, reason: Reason, what: &str) -> CollectError {
        let title = self.asked.call.title();
        let text = match (what.is_empty(), self.message.is_empty()) {
            (false, false) => format!("{title}: {what} ({})", self.message),
            (false, true) => format!("{title}: {what}"),
            (true, false) => format!("{title}: {}", self.message),
            (true, true) => format!("{title}: status {} without a message", self.status),
        };
        let error = CollectError::new(reason, text);
        match self.code() {
            Some(code) => error.code(code),
            None => error,
        }
    }

    /// What the answer is about, as well as it says.
    fn consumer(&self) -> &str {
        self.failure.metadata("consumer").unwrap_or(self.asked.about)
    }

    fn error(&self) -> CollectError {
        if let Some(code) = self.word(&DISABLED) {
            return self.not_enabled().code(code);
        }
        if self.status == 429 || self.is(&TOO_FAST) {
            // A daily quota does not come back within a poll.
            let is_short = !self.is(&["dailyLimitExceeded"]);
            return self.failed(Reason::Throttled, "").retryable(is_short);
        }
        match self.status {
            401 => self.refused_token(),
            403 => self.forbidden(),
            404 => self.not_found(),
            400 if self.asked.with_page_token && self.is_about_page_token() => self
                .failed(Reason::Other, "the page token is not accepted")
                .stale_token(),
            408 | 504 => self.failed(Reason::Timeout, ""),
            500.. => self.failed(Reason::Other, "").retryable(true),
            _ => self.failed(Reason::Other, ""),
        }
    }

    fn is_about_page_token(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        message.contains("pagetoken") || message.contains("page token") || message.contains("page_token")
    }

    fn not_found(&self) -> CollectError {
        let (about, kind) = (self.asked.about, self.asked.call.service);
        let what = match kind {
            "iamcredentials" => format!("{about} was not found: it is deleted, or not the address of an account"),
            "resourcemanager" => format!("{about} was not found: it is deleted, or its number is wrong"),
            _ => format!("project {about} was not found: it is deleted, or its id (not the name or number) is wrong"),
        };
        self.failed(Reason::Other, &what)
    }

    fn not_enabled(&self) -> CollectError {
        let service = self
            .failure
            .metadata("service")
            .map_or_else(|| host_of(self.asked.call.service), str::to_owned);
        let consumer = self.consumer();
        let project = consumer.strip_prefix("projects/").unwrap_or(consumer);
        let mut what = format!(
            "the API {service} {OFF_IN} {consumer}: run `gcloud services enable {service} --project {project}`"
        );
        // The others are enabled in the identity's own project.
        if self.asked.call.service == "compute" {
            what.push_str(", or leave the project out with exclude_projects");
        }
        self.failed(Reason::NotEnabled, &what)
    }

    fn refused_token(&self) -> CollectError {
        let error = self.failed(
            Reason::Credentials,
            "the access token is not accepted: it has expired or its key is revoked; check credentials and this \
             machine's clock",
        );
        if error.code.is_none() {
            error.code("UNAUTHENTICATED")
        } else {
            error
        }
    }

    fn forbidden(&self) -> CollectError {
        if self.is(&["ACCESS_TOKEN_SCOPE_INSUFFICIENT"]) || self.message.contains("insufficient authentication scopes")
        {
            return self.failed(
                Reason::Credentials,
                "the access token has too narrow scopes, whatever roles there are: give the machine or node pool the \
                 scope cloud-platform, or use credentials_file",
            );
        }
        if self.is(&["BILLING_DISABLED"]) {
            let what = format!(
                "billing is off in {}: link a billing account, or leave the project out with exclude_projects",
                self.consumer()
            );
            return self.failed(Reason::NotEnabled, &what);
        }
        if self.is(&["USER_PROJECT_DENIED"]) {
            let what = format!(
                "the identity may not use the quota project {}: grant it serviceusage.services.use there",
                self.consumer()
            );
            return self.failed(Reason::Permission, &what);
        }
        if self.is(&["SECURITY_POLICY_VIOLATED"]) || self.message.contains("VPC Service Controls") {
            return self.failed(
                Reason::Permission,
                "a perimeter of VPC Service Controls refuses the call: add the identity or its network to an access \
                 level or ingress rule",
            );
        }
        if self.is(&["CONSUMER_INVALID"]) {
            let what = format!("{} is gone, or not a project", self.consumer());
            return self.failed(Reason::Other, &what);
        }
        let permission = self
            .failure
            .metadata("permission")
            .unwrap_or(self.asked.call.permission);
        let what = format!(
            "not permitted on {}: grant the identity a role with {permission}",
            self.failure.metadata("resource").unwrap_or(self.asked.about)
        );
        self.failed(Reason::Permission, &what)
    }
}

/// The host of a service, as `gcloud services enable` wants it.
fn host_of(service: &str) -> String {
    match service {
        "resourcemanager" => "cloudresourcemanager.googleapis.com".to_owned(),
        other => format!("{other}.googleapis.com"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, header};

    use super::*;

    const CALL: Call = Call::new("compute", "instances.aggregatedList", "compute.instances.list");

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn of(status: u16, body: &str) -> CollectError {
        let asked = Asked {
            call: CALL,
            about: "ml-prod",
            with_page_token: true,
        };
        classify(&asked, &answer(status, body), Timestamp::UNIX_EPOCH)
    }

    fn info(status: &str, reason: &str, metadata: &str) -> String {
        format!(
            r#"{{"error": {{"code": 403, "message": "m", "status": "{status}", "errors": [{{"reason": "forbidden"}}],
            "details": [{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "{reason}",
            "domain": "googleapis.com", "metadata": {metadata}}}]}}}}"#
        )
    }

    #[test]
    fn a_disabled_api_names_the_command_that_enables_it() {
        let error = of(
            403,
            &info(
                "PERMISSION_DENIED",
                "SERVICE_DISABLED",
                r#"{"service": "compute.googleapis.com", "consumer": "projects/123"}"#,
            ),
        );
        assert_eq!((error.reason, error.retryable), (Reason::NotEnabled, false));
        assert_eq!(error.code.as_deref(), Some("SERVICE_DISABLED"));
        let text = error.to_string();
        assert!(
            text.contains("gcloud services enable compute.googleapis.com --project 123"),
            "{text}"
        );
        assert!(is_off_in(&error, "123") && !is_off_in(&error, "12") && !is_off_in(&error, "ml-prod"));
        let older = of(
            403,
            r#"{"error": {"errors": [{"reason": "accessNotConfigured"}], "message": "off"}}"#,
        );
        assert_eq!(older.reason, Reason::NotEnabled);
        assert!(
            is_off_in(&older, "ml-prod"),
            "what the call was about, where nothing else is named"
        );
        let billing = of(403, &info("PERMISSION_DENIED", "BILLING_DISABLED", "{}"));
        assert!(!is_off_in(&billing, "ml-prod"));
    }

    #[test]
    fn throttling_has_many_names() {
        let named = |reason: &str| {
            of(
                403,
                &format!(r#"{{"error": {{"errors": [{{"reason": "{reason}"}}]}}}}"#),
            )
        };
        for reason in [
            "rateLimitExceeded",
            "userRateLimitExceeded",
            "quotaExceeded",
            "RATE_LIMIT_EXCEEDED",
        ] {
            let error = named(reason);
            assert_eq!((error.reason, error.retryable), (Reason::Throttled, true), "{reason}");
        }
        assert!(!named("dailyLimitExceeded").retryable);
        assert_eq!(of(429, "{}").reason, Reason::Throttled);
        let error = of(
            429,
            r#"{"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "1.5s"}]}}"#,
        );
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
        let asked = Asked {
            call: CALL,
            about: "p",
            with_page_token: false,
        };
        let mut throttled = answer(429, "<html>");
        throttled
            .headers
            .insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
        let error = classify(&asked, &throttled, Timestamp::UNIX_EPOCH);
        assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_missing_permission_is_named() {
        let error = of(
            403,
            r#"{"error": {"code": 403, "message": "Required permission", "errors": [{"reason": "forbidden"}]}}"#,
        );
        assert_eq!(error.reason, Reason::Permission);
        assert!(error.to_string().contains("compute.instances.list"), "{error}");
        let error = of(
            403,
            &info(
                "PERMISSION_DENIED",
                "IAM_PERMISSION_DENIED",
                r#"{"permission": "tpu.nodes.list"}"#,
            ),
        );
        assert!(error.to_string().contains("tpu.nodes.list"), "{error}");
    }

    #[test]
    fn configuration_errors_say_what_to_change() {
        for (reason, class, words) in [
            ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", Reason::Credentials, "cloud-platform"),
            ("BILLING_DISABLED", Reason::NotEnabled, "billing account"),
            ("USER_PROJECT_DENIED", Reason::Permission, "serviceusage.services.use"),
            ("SECURITY_POLICY_VIOLATED", Reason::Permission, "perimeter"),
            ("CONSUMER_INVALID", Reason::Other, "gone"),
        ] {
            let error = of(403, &info("PERMISSION_DENIED", reason, "{}"));
            assert_eq!((error.reason, error.retryable), (class, false), "{reason}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn a_refused_token_is_told_apart_from_a_missing_one() {
        for body in [
            r#"{"error": {"code": 401, "status": "UNAUTHENTICATED", "details": [{"reason": "ACCESS_TOKEN_EXPIRED"}]}}"#,
            r#"{"error": {"code": 401, "errors": [{"reason": "authError"}]}}"#,
            r#"{"error": {"code": 401}}"#,
        ] {
            let error = of(401, body);
            assert_eq!(error.reason, Reason::Credentials);
            assert!(error.code.as_deref().is_some_and(is_token_refusal), "{error}");
        }
    }

    #[test]
    fn page_tokens_projects_and_servers_have_classes_of_their_own() {
        let stale = of(
            400,
            r#"{"error": {"message": "Invalid value for field 'pageToken': 'x'."}}"#,
        );
        assert!(stale.stale_token && !stale.retryable);
        assert!(!of(400, r#"{"error": {"message": "Invalid value for field 'filter'."}}"#).stale_token);
        assert!(
            of(404, r#"{"error": {"message": "no"}}"#)
                .to_string()
                .contains("ml-prod")
        );
        for (status, reason) in [(500, Reason::Other), (503, Reason::Other), (504, Reason::Timeout)] {
            let error = of(status, r#"{"error": {"message": "try again"}}"#);
            assert_eq!((error.reason, error.retryable), (reason, true), "{status}");
            assert!(of(status, "<html>").retryable);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_document_is_an_error_and_never_a_panic(status in 300u16..600, error in crate::samples::any_json()) {
            let _ = of(status, &serde_json::json!({"error": error}).to_string());
        }

        #[test]
        fn any_answer_is_an_error_and_never_a_panic(status in 300u16..600, body in ".{0,200}") {
            let _ = of(status, &body);
            let quoted = serde_json::json!({"error": {"message": body, "details": body, "errors": [body]}});
            let _ = of(status, &quoted.to_string());
        }
    }
}
