//! What came back.

use std::time::Duration;

use bytes::Bytes;
use gpuwatch_collector_core::{Call, CollectError, Reason};
use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};
use serde::de::DeserializeOwned;

/// An answer, read to its end and decompressed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status is one of success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// [`Reason::Decode`], worth one more try; the text says where and not
    /// what, because answers can hold secrets.
    pub fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, CollectError> {
        serde_json::from_slice(&self.body).map_err(|error| self.not_understood(call, &error))
    }

    fn not_understood(&self, call: Call, error: &serde_json::Error) -> CollectError {
        let what = if self.is_html() {
            "an HTML page where JSON was expected; is a proxy or gateway in between?".to_owned()
        } else if self.body.is_empty() {
            "an empty body".to_owned()
        } else if error.is_eof() {
            "JSON that ends too early".to_owned()
        } else {
            let kind = if error.is_data() {
                "JSON of an unexpected shape"
            } else {
                "not JSON"
            };
            format!("{kind} (line {}, column {})", error.line(), error.column())
        };
        let message = format!(
            "{}: answer not understood: {what} (status {})",
            call.title(),
            self.status
        );
        CollectError::new(Reason::Decode, message).retryable(true)
    }

    /// Whether this is a web page, as gateways and captive portals send them.
    #[must_use]
    pub fn is_html(&self) -> bool {
        let is_typed = self
            .header(header::CONTENT_TYPE.as_str())
            .is_some_and(|kind| kind.starts_with("text/html"));
        is_typed || self.body.trim_ascii_start().first() == Some(&b'<')
    }

    /// The `Retry-After` header: seconds, or a date.
    #[must_use]
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let text = self.header(header::RETRY_AFTER.as_str())?.trim();
        if let Ok(seconds) = text.parse::<f64>() {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
    }

    /// An error answer that is none of the cloud's own: a gateway's page, an
    /// empty body. Classified by its status alone.
    #[must_use]
    pub fn failure_by_status(&self, call: Call) -> CollectError {
        let what = if self.is_html() {
            "an HTML page from a proxy or gateway"
        } else {
            "no error code"
        };
        let message = format!("{}: status {} with {what}", call.title(), self.status);
        let (reason, retryable) = match self.status {
            401 => (Reason::Credentials, false),
            403 => (Reason::Permission, false),
            408 | 504 => (Reason::Timeout, true),
            429 => (Reason::Throttled, true),
            500.. => (Reason::Other, true),
            _ => (Reason::Other, false),
        };
        CollectError::new(reason, message).retryable(retryable)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const CALL: Call = Call::new("svc", "List", "svc:List");

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn errors_say_where_and_never_what() {
        let error = answer(200, r#"{"token": "s3cret"}"#)
            .json::<std::collections::BTreeMap<String, u32>>(CALL)
            .unwrap_err();
        assert!(
            error.reason == Reason::Decode && !error.to_string().contains("s3cret"),
            "{error}"
        );
        for (body, word) in [
            ("<html>", "HTML"),
            ("", "empty"),
            ("{\"a\": [", "too early"),
            ("nope", "not JSON"),
        ] {
            let error = answer(200, body).json::<serde_json::Value>(CALL).unwrap_err();
            assert!(error.to_string().contains(word) && error.retryable, "{body}: {error}");
        }
    }

    #[test]
    fn the_hint_to_come_back_is_seconds_or_a_date() {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        for (text, seconds) in [
            ("30", Some(30)),
            (" 2 ", Some(2)),
            ("Tue, 01 Dec 2026 00:01:00 GMT", Some(60)),
            ("Mon, 30 Nov 2026 00:01:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let mut throttled = answer(429, "");
            throttled
                .headers
                .insert(header::RETRY_AFTER, HeaderValue::from_static(text));
            assert_eq!(throttled.retry_after(now), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn answers_of_gateways_are_classified_by_status() {
        for (status, reason, retryable) in [
            (401, Reason::Credentials, false),
            (403, Reason::Permission, false),
            (429, Reason::Throttled, true),
            (502, Reason::Other, true),
            (504, Reason::Timeout, true),
            (404, Reason::Other, false),
        ] {
            let error = answer(status, "<html>").failure_by_status(CALL);
            assert_eq!((error.reason, error.retryable), (reason, retryable), "{status}");
        }
    }
}
