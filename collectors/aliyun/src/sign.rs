//! Signing of requests: `ACS3-HMAC-SHA256`.
//!
//! Scheme by the vendor's documentation "V3 request structure and signature".
//! Nothing is kept between attempts: every one has its own nonce and date.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    hash::{BuildHasher as _, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use gpuwatch_collector_rest::{ExposeSecret as _, SecretString};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// Keys that sign, with the token of temporary ones.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub id: String,
    pub secret: SecretString,
    pub token: Option<SecretString>,
}

/// What is to be signed.
#[derive(Debug)]
pub(crate) struct Unsigned<'a> {
    pub method: &'a str,
    /// Already encoded; `/` for every action of the RPC style.
    pub path: &'a str,
    /// Already encoded and sorted.
    pub query: &'a str,
    /// As it will be sent, with a port that is not the scheme's own.
    pub host: &'a str,
    pub action: &'a str,
    pub version: &'a str,
    /// UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub date: &'a str,
    pub nonce: &'a str,
    pub content_type: Option<&'a str>,
    pub body: &'a [u8],
}

/// Headers to send, the signature among them. `Host` is left to the client.
pub(crate) fn sign(request: &Unsigned<'_>, keys: &Keys) -> Vec<(&'static str, String)> {
    let digest = hex::encode(Sha256::digest(request.body));
    let mut headers: BTreeMap<&'static str, String> = BTreeMap::from([
        ("host", request.host.to_owned()),
        ("x-acs-action", request.action.to_owned()),
        ("x-acs-content-sha256", digest.clone()),
        ("x-acs-date", request.date.to_owned()),
        ("x-acs-signature-nonce", request.nonce.to_owned()),
        ("x-acs-version", request.version.to_owned()),
    ]);
    if let Some(kind) = request.content_type {
        headers.insert("content-type", kind.to_owned());
    }
    if let Some(token) = &keys.token {
        headers.insert("x-acs-accesskey-id", keys.id.clone());
        headers.insert("x-acs-security-token", token.expose_secret().to_owned());
    }
    let names = headers.keys().copied().collect::<Vec<_>>().join(";");
    let mut lines = String::new();
    for (name, value) in &headers {
        // Writing into a `String` cannot fail.
        let _ = writeln!(lines, "{name}:{}", value.trim());
    }
    let canonical = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{digest}",
        request.method, request.path, request.query
    );
    let to_sign = format!("{ALGORITHM}\n{}", hex::encode(Sha256::digest(canonical.as_bytes())));
    let signature = hex::encode(hmac(keys.secret.expose_secret().as_bytes(), to_sign.as_bytes()));
    let authorization = format!(
        "{ALGORITHM} Credential={},SignedHeaders={names},Signature={signature}",
        keys.id
    );
    headers.remove("host");
    let mut headers: Vec<(&'static str, String)> = headers.into_iter().collect();
    headers.push(("authorization", authorization));
    headers
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    // A key of any length is valid for this construction.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}

/// Parameters as a query: sorted by name, encoded, an empty value kept.
pub(crate) fn query(parameters: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    pairs.join("&")
}

/// Percent encoding by RFC 3986: everything but letters, digits, `-_.~`.
pub(crate) fn encode(text: &str) -> String {
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

/// A text that no other request of any program has: the service refuses a
/// nonce that it has seen before.
pub(crate) fn nonce() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The standard library seeds each of these from the system's randomness.
    let random = || RandomState::new().hash_one(count);
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "LTAI5tTESTonlyNotARealKey";
    const SECRET: &str = "gpuwatchTestSecretNotReal0123";
    const NONCE: &str = "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf";
    const DATE: &str = "2026-01-02T03:04:05Z";

    fn keys(id: &str, secret: &str, token: Option<&str>) -> Keys {
        Keys {
            id: id.to_owned(),
            secret: SecretString::from(secret),
            token: token.map(SecretString::from),
        }
    }

    fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn unsigned<'a>(method: &'a str, host: &'a str, action: &'a str, version: &'a str, query: &'a str) -> Unsigned<'a> {
        Unsigned {
            method,
            path: "/",
            query,
            host,
            action,
            version,
            date: DATE,
            nonce: NONCE,
            content_type: None,
            body: b"",
        }
    }

    fn signature(request: &Unsigned<'_>, keys: &Keys) -> String {
        let headers = sign(request, keys);
        let (_, authorization) = headers.iter().find(|(name, _)| *name == "authorization").unwrap();
        authorization.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    #[test]
    fn the_published_example() {
        let query = query(&parameters(&[
            ("ImageId", "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"),
            ("RegionId", "cn-shanghai"),
        ]));
        let request = Unsigned {
            date: "2023-10-26T10:22:32Z",
            nonce: "3156853299f313e23d1673dc12e1703d",
            ..unsigned(
                "POST",
                "ecs.cn-shanghai.aliyuncs.com",
                "RunInstances",
                "2014-05-26",
                &query,
            )
        };
        assert_eq!(
            signature(&request, &keys("YourAccessKeyId", "YourAccessKeySecret", None)),
            "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
        );
    }

    #[test]
    fn chinese_empty_values_reserved_characters_and_order() {
        let query = query(&parameters(&[
            ("RegionId", "cn-hangzhou"),
            ("InstanceName", "训练 节点~*'()+/=&%"),
            ("Tag.1.Key", "团队"),
            ("Tag.1.Value", ""),
            ("Tag.10.Key", "b"),
            ("Tag.2.Key", "a"),
            ("MaxResults", "100"),
        ]));
        assert!(query.ends_with("Tag.1.Key=%E5%9B%A2%E9%98%9F&Tag.1.Value=&Tag.10.Key=b&Tag.2.Key=a"));
        let host = "ecs-cn-hangzhou.aliyuncs.com";
        let request = unsigned("POST", host, "DescribeInstances", "2014-05-26", &query);
        assert_eq!(
            signature(&request, &keys(ID, SECRET, None)),
            "fa0b7774bf1eaa633a7e37b0a7b3de387fd557f8140ce20b5f397542e45291c2"
        );
    }

    #[test]
    fn a_session_token_is_signed_too() {
        let query = query(&parameters(&[
            ("BillingCycle", "2026-01"),
            ("Granularity", "DAILY"),
            ("BillingDate", "2026-01-01"),
            ("MaxResults", "300"),
            ("NextToken", "CAESEgoQCg4KCmd+/=="),
        ]));
        let host = "business.aliyuncs.com";
        let request = unsigned("GET", host, "DescribeInstanceBill", "2017-12-14", &query);
        assert_eq!(
            signature(&request, &keys("STS.TESTonly", SECRET, Some("CAIS+/token=="))),
            "e9feae8147696ddf105c121c2cf88bc9fb03565a3ac83a179a90b4499e1da371"
        );
    }

    #[test]
    fn a_form_body() {
        let host = "metrics.cn-hangzhou.aliyuncs.com";
        let request = Unsigned {
            content_type: Some("application/x-www-form-urlencoded"),
            body: b"Dimensions=%5B%7B%22instanceId%22%3A%22i-bp1a%22%7D%5D&Empty=&Namespace=acs_ecs_dashboard&Note=%E7%A9%BA+%E5%80%BC",
            ..unsigned("POST", host, "DescribeMetricList", "2019-01-01", "")
        };
        assert_eq!(
            signature(&request, &keys(ID, SECRET, None)),
            "ac37f244c508feb0fa8ac2704b7effd2f1b3c008c487fff7fc39802273afb5bf"
        );
    }

    #[test]
    fn a_path_with_a_query_of_json() {
        let query = query(&parameters(&[
            ("PageNumber", "1"),
            ("PageSize", "100"),
            ("ResourceId", "ALL"),
            ("Labels", "{\"团队\":\"a b\"}"),
        ]));
        let host = "pai-dsw.cn-hangzhou.aliyuncs.com";
        let request = Unsigned {
            path: "/api/v2/instances",
            ..unsigned("GET", host, "ListInstances", "2022-01-01", &query)
        };
        assert_eq!(
            signature(&request, &keys(ID, SECRET, None)),
            "a2926ede3991cc6180e70266026e878b02de350f2e899f105b6f85bf12c84089"
        );
    }

    #[test]
    fn a_path_with_chinese() {
        let path = format!("/api/v2/services/cn-hangzhou/{}", encode("模型 a~*"));
        let host = "pai-eas.cn-hangzhou.aliyuncs.com";
        let request = Unsigned {
            path: &path,
            ..unsigned("GET", host, "DescribeService", "2021-07-01", "")
        };
        assert_eq!(
            signature(&request, &keys(ID, SECRET, None)),
            "15a3a8820c24cce8d658ecc82d7c55244d9d22292c36ecb1cbe204d73071fe32"
        );
    }

    #[test]
    fn the_host_of_a_local_endpoint_has_its_port() {
        let query = query(&parameters(&[("AcceptLanguage", "en-US")]));
        let request = unsigned("POST", "127.0.0.1:18080", "DescribeRegions", "2014-05-26", &query);
        assert_eq!(
            signature(&request, &keys(ID, SECRET, None)),
            "7cfbfb3a8b78d4b3c09d070e6f1272aee9d63639b282e2d09332503503cc33b6"
        );
    }

    #[test]
    fn every_character_of_one_byte_is_kept_or_encoded() {
        for byte in 0..=255_u8 {
            let text = char::from(byte).to_string();
            let encoded = encode(&text);
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                assert_eq!(encoded, text);
            } else {
                let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
                assert_eq!(encoded, bytes.concat());
            }
        }
        assert_eq!(encode(" *'()+/~"), "%20%2A%27%28%29%2B%2F~");
    }

    #[test]
    fn nonces_do_not_repeat() {
        let nonces: std::collections::BTreeSet<String> = (0..1000).map(|_| nonce()).collect();
        assert_eq!(nonces.len(), 1000);
    }

    proptest! {
        #[test]
        fn encoding_is_undone_by_a_standard_decoder(text in "\\PC*") {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~%".contains(&b)));
            let url = url::Url::parse(&format!("http://h/?k={encoded}")).unwrap();
            // The URL is sent as it was signed, byte for byte.
            let expected = format!("k={encoded}");
            prop_assert_eq!(url.query().unwrap(), expected.as_str());
            let (_, value) = url.query_pairs().next().unwrap();
            prop_assert_eq!(value, text);
        }

        #[test]
        fn any_change_of_the_request_changes_the_signature(a in "[a-zA-Z0-9]{1,20}", b in "[a-zA-Z0-9]{1,20}") {
            prop_assume!(a != b);
            let keys = keys(ID, SECRET, None);
            let with = |value: &str| {
                let query = query(&parameters(&[("RegionId", value)]));
                signature(&unsigned("POST", "h", "A", "V", &query), &keys)
            };
            prop_assert_ne!(with(&a), with(&b));
        }
    }
}
