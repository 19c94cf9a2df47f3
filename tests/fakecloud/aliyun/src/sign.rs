//! Signatures, verified from scratch: V3 in headers, V1 in parameters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuwatch_fakecloud_core::Incoming;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::params::Params;

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// The parts of a call that decide who makes it, before any is believed.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) access_key_id: String,
    pub(crate) security_token: Option<String>,
    pub(crate) nonce: String,
    pub(crate) signed_at: Timestamp,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    V3 { string_to_sign: String, signature: String },
    V1 { string_to_sign: String, signature: String },
}

impl Claim {
    /// Reads the `Authorization` and `x-acs-*` headers.
    pub(crate) fn v3(request: &Incoming) -> Result<Self, ApiError> {
        let header = request.header("authorization").unwrap_or_default();
        let (algorithm, fields) = header.split_once(' ').unwrap_or((header, ""));
        if algorithm != ALGORITHM {
            return Err(ApiError::incomplete_signature("The algorithm is not supported."));
        }
        let fields: BTreeMap<&str, &str> = fields
            .split(',')
            .filter_map(|field| field.trim().split_once('='))
            .collect();
        let field = |name: &str| {
            let value = fields.get(name).copied().filter(|value| !value.is_empty());
            value.ok_or_else(|| ApiError::incomplete_signature(&format!("{name} is missing.")))
        };
        let (access_key_id, signed, signature) = (field("Credential")?, field("SignedHeaders")?, field("Signature")?);
        let acs = |name: &str| {
            let value = request.header(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| ApiError::missing(name))
        };
        let digest = hex::encode(Sha256::digest(&request.body));
        if acs("x-acs-content-sha256")? != digest {
            let message = format!("x-acs-content-sha256 is not the digest of the body, which is {digest}.");
            return Err(ApiError::incomplete_signature(&message));
        }
        let canonical = canonical_request(request, signed, &digest)?;
        if request
            .header("x-acs-accesskey-id")
            .is_some_and(|id| id != access_key_id)
        {
            return Err(ApiError::incomplete_signature(
                "x-acs-accesskey-id differs from Credential.",
            ));
        }
        let hashed = hex::encode(Sha256::digest(canonical));
        Ok(Self {
            access_key_id: access_key_id.to_owned(),
            security_token: request.header("x-acs-security-token").map(str::to_owned),
            nonce: acs("x-acs-signature-nonce")?.to_owned(),
            signed_at: utc(acs("x-acs-date")?)?,
            kind: Kind::V3 {
                string_to_sign: format!("{ALGORITHM}\n{hashed}"),
                signature: signature.to_owned(),
            },
        })
    }

    /// Reads the common parameters of the older scheme.
    pub(crate) fn v1(request: &Incoming, params: &Params) -> Result<Self, ApiError> {
        if params.required("SignatureMethod")? != "HMAC-SHA1" {
            return Err(ApiError::invalid("SignatureMethod"));
        }
        if params.required("SignatureVersion")? != "1.0" {
            return Err(ApiError::invalid("SignatureVersion"));
        }
        let canonical = canonical_query(params.fields().iter().filter(|(name, _)| *name != "Signature"));
        Ok(Self {
            access_key_id: params.required("AccessKeyId")?.to_owned(),
            security_token: params.given("SecurityToken").map(str::to_owned),
            nonce: params.required("SignatureNonce")?.to_owned(),
            signed_at: utc(params.required("Timestamp")?)?,
            kind: Kind::V1 {
                string_to_sign: format!("{}&%2F&{}", request.method, encode(&canonical)),
                signature: params.required("Signature")?.to_owned(),
            },
        })
    }

    /// Whether the secret made this signature.
    ///
    /// # Errors
    /// With what should have been signed.
    pub(crate) fn verify(&self, secret: &str) -> Result<(), ApiError> {
        let (expected, given, string_to_sign) = match &self.kind {
            Kind::V3 {
                string_to_sign,
                signature,
            } => (sign_v3(secret, string_to_sign), signature, string_to_sign),
            Kind::V1 {
                string_to_sign,
                signature,
            } => (sign_v1(secret, string_to_sign), signature, string_to_sign),
        };
        if expected.as_ref() == Some(given) {
            Ok(())
        } else {
            Err(ApiError::bad_signature(string_to_sign))
        }
    }
}

fn canonical_request(request: &Incoming, signed: &str, digest: &str) -> Result<String, ApiError> {
    let names: Vec<&str> = signed.split(';').collect();
    if !names.is_sorted() {
        return Err(ApiError::incomplete_signature("SignedHeaders are not in order."));
    }
    let must_sign = request
        .headers
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|name| matches!(*name, "host" | "content-type") || name.starts_with("x-acs-"));
    for name in must_sign {
        if !names.contains(&name) {
            return Err(ApiError::incomplete_signature(&format!("{name} is not signed.")));
        }
    }
    let mut headers = String::new();
    for name in &names {
        let value = request
            .header(name)
            .ok_or_else(|| ApiError::incomplete_signature(&format!("{name} is signed but absent.")))?;
        // Writing to a string cannot fail.
        let _ = writeln!(headers, "{name}:{}", value.trim());
    }
    // Only what is in the query: a form body is covered by its digest.
    let query = match request.uri.query() {
        None => String::new(),
        Some(query) => canonical_query(Params::parse(query, b"").fields().iter()),
    };
    Ok(format!(
        "{}\n{}\n{query}\n{headers}\n{signed}\n{digest}",
        request.method,
        request.uri.path()
    ))
}

fn canonical_query<'a>(fields: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let pairs: Vec<String> = fields
        .map(|(key, value)| format!("{}={}", encode(key), encode(value)))
        .collect();
    pairs.join("&")
}

/// Percent encoding of everything but letters, digits and `-_.~`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn utc(text: &str) -> Result<Timestamp, ApiError> {
    let malformed = || {
        ApiError::new(
            "InvalidTimeStamp.Format",
            400,
            "Specified time stamp is not well formatted.",
        )
    };
    if text.len() != "2026-01-02T03:04:05Z".len() || !text.ends_with('Z') {
        return Err(malformed());
    }
    text.parse().map_err(|_| malformed())
}

fn sign_v3(secret: &str, string_to_sign: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).ok()?;
    mac.update(string_to_sign.as_bytes());
    Some(hex::encode(mac.finalize().into_bytes()))
}

fn sign_v1(secret: &str, string_to_sign: &str) -> Option<String> {
    let mut mac = Hmac::<Sha1>::new_from_slice(format!("{secret}&").as_bytes()).ok()?;
    mac.update(string_to_sign.as_bytes());
    Some(STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    const SECRET: &str = "gpuwatchTestSecretNotReal0123";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    struct Vector {
        method: &'static str,
        target: &'static str,
        key: &'static str,
        secret: &'static str,
        headers: &'static [(&'static str, &'static str)],
        body: &'static str,
        digest: &'static str,
        signature: &'static str,
    }

    fn request(vector: &Vector) -> Incoming {
        let mut headers = HeaderMap::new();
        for (name, value) in vector.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.insert("x-acs-content-sha256", HeaderValue::from_static(vector.digest));
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let authorization = format!(
            "{ALGORITHM} Credential={},SignedHeaders={},Signature={}",
            vector.key,
            names.join(";"),
            vector.signature
        );
        headers.insert("authorization", HeaderValue::from_str(&authorization).unwrap());
        Incoming {
            method: vector.method.parse().unwrap(),
            uri: vector.target.parse().unwrap(),
            headers,
            body: vector.body.into(),
        }
    }

    fn verdict(vector: &Vector) -> Result<(), ApiError> {
        let request = request(vector);
        Claim::v3(&request)?.verify(vector.secret)
    }

    fn published() -> Vector {
        Vector {
            method: "POST",
            target: "/?ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai",
            key: "YourAccessKeyId",
            secret: "YourAccessKeySecret",
            headers: &[
                ("host", "ecs.cn-shanghai.aliyuncs.com"),
                ("x-acs-action", "RunInstances"),
                ("x-acs-date", "2023-10-26T10:22:32Z"),
                ("x-acs-signature-nonce", "3156853299f313e23d1673dc12e1703d"),
                ("x-acs-version", "2014-05-26"),
            ],
            body: "",
            digest: EMPTY,
            signature: "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0",
        }
    }

    fn chinese() -> Vector {
        Vector {
            target: "/?InstanceName=%E8%AE%AD%E7%BB%83%20%E8%8A%82%E7%82%B9~%2A%27%28%29%2B%2F%3D%26%25&MaxResults=100\
                     &RegionId=cn-hangzhou&Tag.1.Key=%E5%9B%A2%E9%98%9F&Tag.1.Value=&Tag.10.Key=b&Tag.2.Key=a",
            key: "LTAI5tTESTonlyNotARealKey",
            secret: SECRET,
            headers: &[
                ("host", "ecs-cn-hangzhou.aliyuncs.com"),
                ("x-acs-action", "DescribeInstances"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2014-05-26"),
            ],
            signature: "fa0b7774bf1eaa633a7e37b0a7b3de387fd557f8140ce20b5f397542e45291c2",
            ..published()
        }
    }

    fn session() -> Vector {
        Vector {
            method: "GET",
            target: "/?BillingCycle=2026-01&BillingDate=2026-01-01&Granularity=DAILY&MaxResults=300\
                     &NextToken=CAESEgoQCg4KCmd%2B%2F%3D%3D",
            key: "STS.TESTonly",
            secret: SECRET,
            headers: &[
                ("host", "business.aliyuncs.com"),
                ("x-acs-accesskey-id", "STS.TESTonly"),
                ("x-acs-action", "DescribeInstanceBill"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-security-token", "CAIS+/token=="),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2017-12-14"),
            ],
            signature: "e9feae8147696ddf105c121c2cf88bc9fb03565a3ac83a179a90b4499e1da371",
            ..published()
        }
    }

    fn form() -> Vector {
        Vector {
            target: "/",
            key: "LTAI5tTESTonlyNotARealKey",
            secret: SECRET,
            headers: &[
                ("content-type", "application/x-www-form-urlencoded"),
                ("host", "metrics.cn-hangzhou.aliyuncs.com"),
                ("x-acs-action", "DescribeMetricList"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2019-01-01"),
            ],
            body: "Dimensions=%5B%7B%22instanceId%22%3A%22i-bp1a%22%7D%5D&Empty=&Namespace=acs_ecs_dashboard\
                   &Note=%E7%A9%BA+%E5%80%BC",
            digest: "5a94c539f46b8cced22704f448ee96ee3bb7e47dfeb1a0d82a902f6dd47bf40e",
            signature: "ac37f244c508feb0fa8ac2704b7effd2f1b3c008c487fff7fc39802273afb5bf",
            ..published()
        }
    }

    fn with_port() -> Vector {
        Vector {
            target: "/?AcceptLanguage=en-US",
            headers: &[
                ("host", "127.0.0.1:18080"),
                ("x-acs-action", "DescribeRegions"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2014-05-26"),
            ],
            signature: "7cfbfb3a8b78d4b3c09d070e6f1272aee9d63639b282e2d09332503503cc33b6",
            ..chinese()
        }
    }

    /// A listing of another style: a path, and a document in the query.
    fn path() -> Vector {
        Vector {
            method: "GET",
            target: "/api/v2/instances?Labels=%7B%22%E5%9B%A2%E9%98%9F%22%3A%22a%20b%22%7D&PageNumber=1&PageSize=100\
                     &ResourceId=ALL",
            headers: &[
                ("host", "pai-dsw.cn-hangzhou.aliyuncs.com"),
                ("x-acs-action", "ListInstances"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2022-01-01"),
            ],
            signature: "a2926ede3991cc6180e70266026e878b02de350f2e899f105b6f85bf12c84089",
            ..chinese()
        }
    }

    fn chinese_path() -> Vector {
        Vector {
            method: "GET",
            target: "/api/v2/services/cn-hangzhou/%E6%A8%A1%E5%9E%8B%20a~%2A",
            headers: &[
                ("host", "pai-eas.cn-hangzhou.aliyuncs.com"),
                ("x-acs-action", "DescribeService"),
                ("x-acs-date", "2026-01-02T03:04:05Z"),
                ("x-acs-signature-nonce", "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"),
                ("x-acs-version", "2021-07-01"),
            ],
            signature: "15a3a8820c24cce8d658ecc82d7c55244d9d22292c36ecb1cbe204d73071fe32",
            ..chinese()
        }
    }

    #[test]
    fn known_v3_signatures_are_accepted() {
        let all = [
            published(),
            chinese(),
            session(),
            form(),
            path(),
            chinese_path(),
            with_port(),
        ];
        for vector in all {
            verdict(&vector).unwrap_or_else(|error| panic!("{}: {}", vector.target, error.message()));
        }
    }

    #[test]
    fn wrong_secret_query_header_or_body_is_refused() {
        let wrong = [
            Vector {
                secret: "other",
                ..published()
            },
            Vector {
                target: "/?RegionId=cn-beijing",
                ..published()
            },
            Vector {
                method: "GET",
                ..published()
            },
            Vector { body: "a=b", ..form() },
            Vector {
                body: "a=b",
                digest: "5a94c539f46b8cced22704f448ee96ee3bb7e47dfeb1a0d82a902f6dd47bf40e",
                ..form()
            },
        ];
        for vector in wrong {
            assert!(verdict(&vector).is_err(), "{}", vector.target);
        }
        let error = verdict(&Vector {
            secret: "other",
            ..published()
        })
        .unwrap_err();
        assert_eq!(error.code(), "SignatureDoesNotMatch");
        let signed = "ACS3-HMAC-SHA256\n7ea06492da5221eba5297e897ce16e55f964061054b7695beedaac1145b1e259";
        assert!(error.message().ends_with(signed), "{}", error.message());
    }

    #[test]
    fn header_that_is_not_signed_is_refused() {
        let mut request = request(&published());
        request
            .headers
            .insert("x-acs-security-token", HeaderValue::from_static("t"));
        assert_eq!(Claim::v3(&request).unwrap_err().code(), "IncompleteSignature");
    }

    fn v1(method: &str, secret: &str, target: &str) -> Result<(), ApiError> {
        let request = Incoming {
            method: method.parse().unwrap(),
            uri: target.parse().unwrap(),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
        };
        let params = Params::parse(request.uri.query().unwrap(), b"");
        Claim::v1(&request, &params)?.verify(secret)
    }

    #[test]
    fn known_v1_signatures_are_accepted() {
        let published = "/?AccessKeyId=testid&Action=DescribeDedicatedHosts&Format=JSON&RegionId=cn-beijing\
             &SignatureMethod=HMAC-SHA1&SignatureNonce=edb2b34af0af9a6d14deaf7c1a5315eb&SignatureVersion=1.0\
             &Timestamp=2023-03-13T08%3A34%3A30Z&Version=2014-05-26&Signature=9NaGiOspFP5UPcwX8Iwt2YJXXuk%3D";
        assert!(v1("GET", "testsecret", published).is_ok());
        assert!(v1("POST", "testsecret", published).is_err());
        let common = "AccessKeyId=LTAI5tTESTonlyNotARealKey&Action=DescribeInstances&Format=JSON\
             &SignatureMethod=HMAC-SHA1&SignatureNonce=3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf&SignatureVersion=1.0\
             &Timestamp=2026-01-02T03%3A04%3A05Z&Version=2014-05-26";
        let chinese = format!(
            "/?{common}&RegionId=cn-hangzhou&MaxResults=100&Tag.1.Key=%E5%9B%A2%E9%98%9F&Tag.1.Value=\
             &InstanceName=%E8%AE%AD%E7%BB%83%20%E8%8A%82%E7%82%B9~%2A%27%28%29%2B%2F%3D%26%25\
             &Signature=1OzFuqmrWc6JS5Nux4eMBOxNFcA%3D"
        );
        assert!(v1("POST", SECRET, &chinese).is_ok());
        let token = format!(
            "/?{common}&RegionId=cn-shanghai&InstanceIds=%5B%22i-bp1a%22%2C%22i-bp1b%22%5D\
             &NextToken=caeba0bbb2be03f84eb48b699f0a4883&SecurityToken=CAIS%2B%2Ftoken%3D%3D\
             &Signature=7yK5pHKcM8%2Fa8kDjbCRbf0j1%2F9A%3D"
        );
        assert!(v1("GET", SECRET, &token).is_ok());
        assert!(v1("GET", "other", &token).is_err());
        let role = "/?AccessKeyId=LTAI5tTESTonlyNotARealKey&Action=AssumeRole&DurationSeconds=3600&Format=JSON\
             &RoleArn=acs%3Aram%3A%3A1234567890123456%3Arole%2Fgpuwatch-ro&RoleSessionName=gpuwatch\
             &SignatureMethod=HMAC-SHA1&SignatureNonce=n-0004&SignatureVersion=1.0\
             &Timestamp=2026-01-02T03%3A04%3A05Z&Version=2015-04-01&Signature=8FIvl4O4KI9xjmw0MqWXJD8Eksk%3D";
        assert!(v1("GET", SECRET, role).is_ok());
    }
}
