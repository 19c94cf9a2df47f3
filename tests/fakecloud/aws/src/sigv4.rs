//! Signature Version 4, checked the way AWS checks it.
//!
//! Source: the AWS documentation of the signing process; the tests use the
//! published test suite's own vectors.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use gpuwatch_fakecloud_core::Incoming;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The parsed `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub(crate) access_key_id: String,
    pub(crate) date: String,
    pub(crate) region: String,
    pub(crate) service: String,
    signed_headers: Vec<String>,
    signature: String,
}

impl Authorization {
    /// `None` when the header does not have the documented form.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let fields = header.strip_prefix(ALGORITHM)?;
        let (mut credential, mut signed, mut signature) = (None, None, None);
        for field in fields.split(',') {
            match field.trim().split_once('=')? {
                ("Credential", value) => credential = Some(value),
                ("SignedHeaders", value) => signed = Some(value),
                ("Signature", value) => signature = Some(value),
                _ => return None,
            }
        }
        let mut scope = credential?.rsplitn(5, '/');
        let terminator = scope.next()?;
        let (service, region, date, access_key_id) = (scope.next()?, scope.next()?, scope.next()?, scope.next()?);
        (terminator == "aws4_request").then(|| Self {
            access_key_id: access_key_id.to_owned(),
            date: date.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
            signed_headers: signed
                .map(|names| names.split(';').map(str::to_owned).collect())
                .unwrap_or_default(),
            signature: signature.unwrap_or_default().to_owned(),
        })
    }

    /// Whether the headers that must be signed are: the host and every
    /// `x-amz-` header of the request.
    pub(crate) fn signs_what_it_must(&self, request: &Incoming) -> bool {
        let signed = |name: &str| self.signed_headers.iter().any(|header| header == name);
        let amz = request
            .headers
            .keys()
            .map(axum::http::HeaderName::as_str)
            .filter(|name| name.starts_with("x-amz-"));
        signed("host") && amz.into_iter().all(signed)
    }

    /// Whether the signature is that of `request` under `secret`.
    pub(crate) fn verifies(&self, request: &Incoming, amz_date: &str, secret: &str) -> bool {
        let Some(canonical) = self.canonical_request(request) else {
            return false;
        };
        let scope = format!("{}/{}/{}/aws4_request", self.date, self.region, self.service);
        let to_sign = format!("{ALGORITHM}\n{amz_date}\n{scope}\n{}", sha256(canonical.as_bytes()));
        let expected = signature(secret, &self.date, &self.region, &self.service, &to_sign);
        let matches = expected.is_some_and(|expected| expected == self.signature);
        if !matches {
            tracing::debug!(canonical_request = canonical, "signature does not match");
        }
        matches
    }

    /// `None` when a signed header is not in the request, or the announced
    /// hash is not that of the body.
    fn canonical_request(&self, request: &Incoming) -> Option<String> {
        let mut text = format!(
            "{}\n{}\n{}\n",
            request.method,
            canonical_path(request.uri.path()),
            canonical_query(request.uri.query().unwrap_or_default())
        );
        for name in &self.signed_headers {
            let values: Vec<String> = request
                .headers
                .get_all(name)
                .iter()
                .map(|value| collapse(&String::from_utf8_lossy(value.as_bytes())))
                .collect();
            if values.is_empty() {
                return None;
            }
            let _ = writeln!(text, "{name}:{}", values.join(","));
        }
        let hash = sha256(&request.body);
        if request
            .header("x-amz-content-sha256")
            .is_some_and(|announced| announced != hash)
        {
            return None;
        }
        let _ = write!(text, "\n{}\n{hash}", self.signed_headers.join(";"));
        Some(text)
    }
}

/// The time of `x-amz-date` (`20150830T123600Z`).
pub(crate) fn parse_amz_date(text: &str) -> Option<Timestamp> {
    let part = |range: std::ops::Range<usize>| text.get(range);
    if text.len() != 16 || part(8..9)? != "T" || part(15..16)? != "Z" {
        return None;
    }
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(9..11)?, part(11..13)?, part(13..15)?);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

fn signature(secret: &str, date: &str, region: &str, service: &str, to_sign: &str) -> Option<String> {
    let mut key = hmac(format!("AWS4{secret}").as_bytes(), date)?;
    for part in [region, service, "aws4_request"] {
        key = hmac(&key, part)?;
    }
    Some(hex::encode(hmac(&key, to_sign)?))
}

fn hmac(key: &[u8], text: &str) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text.as_bytes());
    Some(mac.finalize().into_bytes().to_vec())
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Dot segments resolved, doubled slashes merged, then encoded once more.
fn canonical_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let mut out = String::from("/");
    out.push_str(
        &segments
            .iter()
            .map(|segment| encode(segment))
            .collect::<Vec<_>>()
            .join("/"),
    );
    let directory = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    if directory && !segments.is_empty() {
        out.push('/');
    }
    out
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| (encode(&name), encode(&value)))
        .collect();
    pairs.sort();
    pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join("&")
}

/// Percent-encoding of everything but the unreserved characters.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Without outer blanks, and with runs of blanks as one.
fn collapse(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
    use bytes::Bytes;

    use super::*;

    /// Key and secret of AWS's published Signature Version 4 test suite.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const DATE: &str = "20150830T123600Z";

    fn request(method: Method, uri: &str, headers: &[(&str, &str)], body: &'static str) -> Incoming {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        map.append("host", HeaderValue::from_static("example.amazonaws.com"));
        map.append("x-amz-date", HeaderValue::from_static(DATE));
        Incoming {
            method,
            uri: uri.parse().unwrap(),
            headers: map,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn authorization(signed: &str, signature: &str) -> Authorization {
        Authorization::parse(&format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders={signed}, Signature={signature}"
        ))
        .unwrap()
    }

    #[test]
    fn signatures_of_the_published_test_suite_verify() {
        let form = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "13"),
            (
                "x-amz-content-sha256",
                "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
            ),
        ];
        let token = [(
            "x-amz-security-token",
            "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
        )];
        let blanks = [("my-header1", " value1"), ("my-header2", " \"a   b   c\"")];
        let cases = [
            // post-x-www-form-urlencoded
            (
                request(Method::POST, "/", &form, "Param1=value1"),
                "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
                "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
            ),
            // get-vanilla-query-order-encoded
            (
                request(Method::GET, "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", &[], ""),
                "host;x-amz-date",
                "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
            ),
            // get-slashes-normalized
            (
                request(Method::GET, "http://example.amazonaws.com//example//", &[], ""),
                "host;x-amz-date",
                "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
            ),
            // get-header-value-trim
            (
                request(Method::GET, "/", &blanks, ""),
                "host;my-header1;my-header2;x-amz-date",
                "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
            ),
            // get-vanilla-with-session-token
            (
                request(Method::GET, "/", &token, ""),
                "host;x-amz-date;x-amz-security-token",
                "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
            ),
        ];
        for (request, signed, signature) in cases {
            let authorization = authorization(signed, signature);
            assert!(authorization.signs_what_it_must(&request), "{}", request.uri);
            assert!(authorization.verifies(&request, DATE, SECRET), "{}", request.uri);
            assert!(
                !authorization.verifies(&request, DATE, "another secret"),
                "{}",
                request.uri
            );
        }
    }

    #[test]
    fn changed_body_breaks_the_signature() {
        let form = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "13"),
        ];
        let signed = "content-length;content-type;host;x-amz-date";
        let genuine = request(Method::POST, "/", &form, "Param1=value1");
        let to_sign = {
            let open = authorization(signed, "");
            let canonical = open.canonical_request(&genuine).unwrap();
            let scope = "20150830/us-east-1/service/aws4_request";
            format!("{ALGORITHM}\n{DATE}\n{scope}\n{}", sha256(canonical.as_bytes()))
        };
        let signature = signature(SECRET, "20150830", "us-east-1", "service", &to_sign).unwrap();
        let authorization = authorization(signed, &signature);
        assert!(authorization.verifies(&genuine, DATE, SECRET));
        assert!(!authorization.verifies(&request(Method::POST, "/", &form, "Param1=value2"), DATE, SECRET));
    }

    #[test]
    fn unsigned_amz_header_is_noticed() {
        let request = request(Method::GET, "/", &[("x-amz-security-token", "t")], "");
        assert!(!authorization("host;x-amz-date", "").signs_what_it_must(&request));
    }

    #[test]
    fn broken_authorization_headers_are_refused() {
        for header in [
            "",
            "Basic x",
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 Credential=a/b/c",
            "AWS4-HMAC-SHA256 Foo=1",
        ] {
            assert_eq!(Authorization::parse(header), None, "{header}");
        }
    }

    #[test]
    fn amz_dates_are_read_strictly() {
        assert_eq!(parse_amz_date(DATE), Some("2015-08-30T12:36:00Z".parse().unwrap()));
        for text in [
            "",
            "20150830T123600",
            "2015-08-30T12:36:00Z",
            "20151330T123600Z",
            "2015083\u{e9}T12360Z",
        ] {
            assert_eq!(parse_amz_date(text), None, "{text}");
        }
    }
}
