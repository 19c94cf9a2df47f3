//! From the SDK's errors to gpuwatch's: which class, worth a repeat or not,
//! and what the person who reads it can do.

use std::{error::Error, time::Duration};

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::{
    client::{orchestrator::HttpResponse, result::SdkError},
    http::Headers,
};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use gpuwatch_collector_core::{Call, CollectError, Reason, one_line};

/// Longest part of an outside message that is kept, in characters.
const MESSAGE_LIMIT: usize = 300;

/// EC2 appends this and a long opaque blob, which is not for logs.
const ENCODED: &str = "Encoded authorization failure message";

/// What is known about the place of a call when it fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Whether refused keys can mean that the region is not enabled: true for
    /// regional services while the same session has not yet been accepted in
    /// this region.
    pub region_may_be_disabled: bool,
}

/// Classifies a failed call.
pub(crate) fn classify<E>(error: &SdkError<E, HttpResponse>, call: Call, place: Place) -> CollectError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(failure) => {
            let response = failure.raw();
            let answer = Answer {
                status: response.status().as_u16(),
                code: failure.err().code(),
                message: failure.err().message(),
            };
            let classified = answer.classify(call, place);
            match retry_after(response.headers()) {
                Some(delay) => classified.retry_after(delay),
                None => classified,
            }
        }
        SdkError::ResponseError(failure) => {
            let response = failure.raw();
            let status = response.status();
            let what = chain(error);
            // An error answer whose body was lost is still an error answer.
            if status.is_server_error() {
                CollectError::new(
                    Reason::Other,
                    format!("{}: status {}: {what}", call.title(), status.as_u16()),
                )
                .retryable(true)
            } else {
                decode(call, &what)
            }
        }
        SdkError::TimeoutError(_) => CollectError::new(Reason::Timeout, format!("{}: no answer in time", call.title())),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => {
            CollectError::new(Reason::Timeout, format!("{}: {}", call.title(), chain(error)))
        }
        SdkError::DispatchFailure(failure) if failure.is_io() => {
            CollectError::new(Reason::Network, format!("{}: {}", call.title(), chain(error)))
        }
        other => before_sending(other, call),
    }
}

/// Failures before anything was sent: no credentials, a bad endpoint URL.
fn before_sending<E>(error: &SdkError<E, HttpResponse>, call: Call) -> CollectError
where
    E: Error + 'static,
{
    if let Some(credentials) = find::<CredentialsError>(error) {
        return no_credentials(credentials);
    }
    let message = format!("{}: {}", call.title(), chain(error));
    match error {
        SdkError::DispatchFailure(failure) if failure.is_other() => CollectError::new(Reason::Network, message),
        _ => CollectError::new(Reason::Other, message),
    }
}

/// What to do about missing or unusable credentials.
pub(crate) fn no_credentials(error: &CredentialsError) -> CollectError {
    let message = match error {
        CredentialsError::CredentialsNotLoaded(_) => {
            "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
             name a profile, or run with a web identity, container or instance role"
                .to_owned()
        }
        CredentialsError::ProviderTimedOut(_) => {
            "loading credentials took too long: is the metadata or token service reachable?".to_owned()
        }
        other => format!("credentials could not be loaded: {}", chain(other)),
    };
    CollectError::new(Reason::Credentials, message)
}

/// An answer that cannot be understood.
pub(crate) fn decode(call: Call, what: &str) -> CollectError {
    CollectError::new(
        Reason::Decode,
        format!("{}: answer not understood: {what}", call.title()),
    )
    .retryable(true)
}

/// Whether a new session may help: the old one's credentials have run out or
/// are no longer accepted.
pub(crate) fn is_expired(error: &CollectError) -> bool {
    error.reason == Reason::Credentials
        && matches!(
            error.code.as_deref(),
            Some(
                "ExpiredToken"
                    | "ExpiredTokenException"
                    | "RequestExpired"
                    | "TokenRefreshRequired"
                    | "AuthFailure"
                    | "InvalidClientTokenId"
                    | "UnrecognizedClientException"
            )
        )
}

/// Whether a page token was too old or not accepted: the listing can be begun
/// anew.
pub(crate) fn is_stale_token(error: &CollectError) -> bool {
    matches!(
        error.code.as_deref(),
        Some("InvalidNextToken" | "InvalidNextTokenException" | "ExpiredNextTokenException" | "InvalidPaginationToken")
    )
}

/// Whether the service refused a parameter it does not know.
pub(crate) fn is_bad_parameter(error: &CollectError) -> bool {
    matches!(
        error.code.as_deref(),
        Some(
            "UnknownParameter"
                | "InvalidParameter"
                | "InvalidParameterValue"
                | "InvalidParameterCombination"
                | "ValidationError"
                | "ValidationException"
        )
    )
}

/// An error answer of a service.
struct Answer<'a> {
    status: u16,
    code: Option<&'a str>,
    message: Option<&'a str>,
}

impl Answer<'_> {
    fn classify(&self, call: Call, place: Place) -> CollectError {
        let Some(code) = self.code else {
            return self.by_status(call);
        };
        let said = self.said();
        let title = call.title();
        let error = match code {
            "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "TooManyRequestsException"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded"
            | "LimitExceededException"
            | "ProvisionedThroughputExceededException"
            | "SlowDown"
            | "PriorRequestNotComplete"
            | "EC2ThrottledException" => CollectError::new(Reason::Throttled, format!("{title}: {said}")),

            "UnauthorizedOperation"
            | "AccessDenied"
            | "AccessDeniedException"
            | "UnauthorizedAccess"
            | "NotAuthorized" => CollectError::new(
                Reason::Permission,
                format!("{title} is not allowed: {said}; {}", permission(call)),
            ),
            "Blocked" | "PendingVerification" | "AccountDisabled" | "AccountProblem" => CollectError::new(
                Reason::Permission,
                format!("{title}: the account is blocked or suspended: {said}"),
            ),

            "OptInRequired" | "RegionDisabledException" | "SubscriptionRequiredException" => {
                CollectError::new(Reason::NotEnabled, format!("{title}: {said}"))
            }
            "AuthFailure" | "InvalidClientTokenId" | "UnrecognizedClientException" if place.region_may_be_disabled => {
                CollectError::new(
                    Reason::NotEnabled,
                    format!("{title}: the region does not accept this account's credentials: enable it or exclude it"),
                )
            }
            "AuthFailure" | "InvalidClientTokenId" | "UnrecognizedClientException" | "InvalidAccessKeyId" => {
                CollectError::new(
                    Reason::Credentials,
                    format!(
                        "{title}: credentials are not accepted: {said}; are they for this partition, and still active?"
                    ),
                )
            }
            "SignatureDoesNotMatch"
            | "IncompleteSignature"
            | "InvalidSignatureException"
            | "MissingAuthenticationToken" => CollectError::new(
                Reason::Credentials,
                format!("{title}: {said}; check the secret key and this machine's clock"),
            ),
            "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" | "TokenRefreshRequired" => CollectError::new(
                Reason::Credentials,
                format!("{title}: credentials have expired: {said}"),
            ),

            "RequestTimeout" | "RequestTimeoutException" => {
                CollectError::new(Reason::Timeout, format!("{title}: {said}"))
            }
            "InternalError"
            | "InternalFailure"
            | "InternalServerError"
            | "InternalServerException"
            | "InternalServiceException"
            | "ServiceUnavailable"
            | "ServiceUnavailableException"
            | "Unavailable"
            | "ServiceException" => CollectError::new(Reason::Other, format!("{title}: {said}")).retryable(true),
            _ => CollectError::new(Reason::Other, format!("{title}: {said}")).retryable(self.status >= 500),
        };
        error.code(code)
    }

    /// A page of a proxy or load balancer, say: there is only the status.
    fn by_status(&self, call: Call) -> CollectError {
        let message = format!("{}: status {} without an error code", call.title(), self.status);
        match self.status {
            401 | 407 => CollectError::new(Reason::Credentials, message),
            403 => CollectError::new(Reason::Permission, message),
            408 => CollectError::new(Reason::Timeout, message),
            429 => CollectError::new(Reason::Throttled, message),
            500.. => CollectError::new(Reason::Other, message).retryable(true),
            200..300 => decode(call, "not the XML or JSON of this service"),
            _ => decode(
                call,
                &format!("status {} without an error code; is the endpoint right?", self.status),
            )
            .retryable(false),
        }
    }

    /// The service's words, without the encoded blob.
    fn said(&self) -> String {
        let message = self.message.unwrap_or("no message");
        let message = message.split(ENCODED).next().unwrap_or_default();
        one_line(message.trim_end_matches([' ', '.', ';']), MESSAGE_LIMIT)
    }
}

/// Which permission would help.
fn permission(call: Call) -> String {
    let action = call.permission;
    if action == "sts:AssumeRole" {
        "allow sts:AssumeRole on this role for the base identity, and name the base identity (and external id) in the role's trust policy"
            .to_owned()
    } else {
        format!("add {action} to the policy, or exclude the region if an organization policy denies it")
    }
}

/// The cloud's hint when to come back: seconds, or milliseconds in the header
/// of the newer retry specification.
fn retry_after(headers: &Headers) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.trim().parse::<f64>().ok();
    let seconds = number("retry-after")
        .or_else(|| number("x-amzn-retry-after"))
        .or_else(|| number("x-amz-retry-after").map(|millis| millis / 1000.0))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The first error of a type in a chain of causes.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// All causes on one line. Only their display texts: debug output of the SDK
/// can hold requests and with them signatures.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut parts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = cause.source();
    }
    one_line(&parts.join(": "), MESSAGE_LIMIT)
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::operation::describe_instances::DescribeInstancesError;
    use aws_smithy_runtime_api::{client::result::ConnectorError, http::StatusCode};
    use aws_smithy_types::{body::SdkBody, error::ErrorMetadata};

    use super::*;

    const CALL: Call = Call::new("ec2", "DescribeInstances", "ec2:DescribeInstances");
    const PROVEN: Place = Place {
        region_may_be_disabled: false,
    };

    type Failure = SdkError<DescribeInstancesError, HttpResponse>;

    fn response(status: u16, headers: &[(&'static str, &'static str)]) -> HttpResponse {
        let status = StatusCode::try_from(status).expect("status");
        let mut response = HttpResponse::new(status, SdkBody::empty());
        for (name, value) in headers {
            response.headers_mut().insert(*name, *value);
        }
        response
    }

    fn answer(status: u16, code: Option<&str>, message: &str) -> Failure {
        let mut meta = ErrorMetadata::builder().message(message);
        if let Some(code) = code {
            meta = meta.code(code);
        }
        SdkError::service_error(DescribeInstancesError::generic(meta.build()), response(status, &[]))
    }

    fn reason(error: &Failure) -> (Reason, bool) {
        let error = classify(error, CALL, PROVEN);
        (error.reason, error.retryable)
    }

    #[test]
    fn codes_decide_before_the_status() {
        let cases = [
            (503, "RequestLimitExceeded", Reason::Throttled, true),
            (400, "Throttling", Reason::Throttled, true),
            (400, "ThrottlingException", Reason::Throttled, true),
            (429, "TooManyRequestsException", Reason::Throttled, true),
            (403, "UnauthorizedOperation", Reason::Permission, false),
            (400, "AccessDeniedException", Reason::Permission, false),
            (403, "Blocked", Reason::Permission, false),
            (403, "OptInRequired", Reason::NotEnabled, false),
            (403, "RegionDisabledException", Reason::NotEnabled, false),
            (401, "AuthFailure", Reason::Credentials, false),
            (403, "SignatureDoesNotMatch", Reason::Credentials, false),
            (403, "ExpiredToken", Reason::Credentials, false),
            (400, "RequestExpired", Reason::Credentials, false),
            (400, "RequestTimeout", Reason::Timeout, true),
            (500, "InternalError", Reason::Other, true),
            (503, "Unavailable", Reason::Other, true),
            (400, "InvalidParameterValue", Reason::Other, false),
            (400, "SomethingNew", Reason::Other, false),
            (500, "SomethingNew", Reason::Other, true),
        ];
        for (status, code, expected, retryable) in cases {
            assert_eq!(
                reason(&answer(status, Some(code), "m")),
                (expected, retryable),
                "{code}"
            );
        }
    }

    #[test]
    fn without_a_code_the_status_decides() {
        let cases = [
            (200, Reason::Decode, true),
            (404, Reason::Decode, false),
            (403, Reason::Permission, false),
            (429, Reason::Throttled, true),
            (500, Reason::Other, true),
            (504, Reason::Other, true),
        ];
        for (status, expected, retryable) in cases {
            assert_eq!(reason(&answer(status, None, "")), (expected, retryable), "{status}");
        }
    }

    #[test]
    fn refused_keys_in_an_unproven_region_mean_it_is_not_enabled() {
        let unproven = Place {
            region_may_be_disabled: true,
        };
        let error = classify(&answer(401, Some("AuthFailure"), "no"), CALL, unproven);
        assert_eq!(error.reason, Reason::NotEnabled);
        let expired = classify(&answer(403, Some("ExpiredToken"), "old"), CALL, unproven);
        assert!(is_expired(&expired));
    }

    #[test]
    fn a_permission_error_names_the_action_and_hides_the_blob() {
        let message = "You are not authorized to perform this operation. \
                       Encoded authorization failure message: s3cr3tBl0b";
        let error = classify(&answer(403, Some("UnauthorizedOperation"), message), CALL, PROVEN);
        assert!(error.message.contains("add ec2:DescribeInstances"), "{}", error.message);
        assert!(!error.message.contains("s3cr3tBl0b"), "{}", error.message);
        assert_eq!(error.code.as_deref(), Some("UnauthorizedOperation"));
    }

    #[test]
    fn failures_without_an_answer_are_told_apart() {
        let io = || std::io::Error::other("connection reset");
        assert_eq!(reason(&SdkError::timeout_error(io())), (Reason::Timeout, true));
        let timeout = SdkError::dispatch_failure(ConnectorError::timeout(io().into()));
        assert_eq!(reason(&timeout), (Reason::Timeout, true));
        let network = SdkError::dispatch_failure(ConnectorError::io(io().into()));
        assert_eq!(reason(&network), (Reason::Network, true));
        let cut = SdkError::response_error(crate::complete::CutOff, response(200, &[]));
        assert_eq!(reason(&cut), (Reason::Decode, true));
        let lost = SdkError::response_error(io(), response(502, &[]));
        assert_eq!(reason(&lost), (Reason::Other, true));
    }

    // P52
    #[test]
    fn missing_credentials_say_what_to_do() {
        let missing = CredentialsError::not_loaded("nothing in the chain");
        let error = SdkError::dispatch_failure(ConnectorError::other(missing.into(), None));
        let error = classify::<DescribeInstancesError>(&error, CALL, PROVEN);
        assert_eq!(error.reason, Reason::Credentials);
        assert!(error.message.contains("AWS_ACCESS_KEY_ID"), "{}", error.message);
    }

    #[test]
    fn hints_when_to_come_back_are_read() {
        let hint = |headers: &[(&'static str, &'static str)]| {
            let meta = ErrorMetadata::builder().code("Throttling").build();
            let error = SdkError::service_error(DescribeInstancesError::generic(meta), response(400, headers));
            classify(&error, CALL, PROVEN).retry_after
        };
        assert_eq!(hint(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(hint(&[("x-amzn-retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(
            hint(&[("x-amz-retry-after", "1500")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(hint(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]), None);
        assert_eq!(hint(&[("retry-after", "-1")]), None);
        assert_eq!(hint(&[]), None);
    }
}
