//! Verifies `TC3-HMAC-SHA256`.

use gpuwatch_fakecloud_core::Incoming;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;
use crate::world::Inner;

/// A signature is accepted this many seconds from the service's time.
const MAX_AGE: i64 = 300;

/// Who signed, and for which service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signer {
    pub(crate) account: String,
    pub(crate) service: String,
}

/// The parts of an `Authorization` header.
struct Authorization<'a> {
    id: &'a str,
    date: &'a str,
    service: &'a str,
    names: &'a str,
    signature: &'a str,
}

fn parse(header: &str) -> Option<Authorization<'_>> {
    let rest = header.strip_prefix("TC3-HMAC-SHA256")?.trim_start();
    let part = |name: &str| {
        rest.split(',')
            .map(str::trim)
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    };
    let mut scope = part("Credential")?.split('/');
    let (id, date, service, end) = (scope.next()?, scope.next()?, scope.next()?, scope.next()?);
    (end == "tc3_request").then_some(Authorization {
        id,
        date,
        service,
        names: part("SignedHeaders")?,
        signature: part("Signature")?,
    })
}

/// Checks the signature of a request.
pub(crate) fn verify(inner: &Inner, request: &Incoming) -> Result<Signer, ApiError> {
    let header = request.header("authorization").unwrap_or_default();
    let Some(authorization) = parse(header) else {
        return Err(ApiError::new(
            "AuthFailure.InvalidAuthorization",
            "The Authorization header is not valid.",
        ));
    };
    let stated: Option<i64> = request.header("x-tc-timestamp").and_then(|text| text.parse().ok());
    let Some(time) = stated.and_then(|seconds| Timestamp::from_second(seconds).ok()) else {
        return Err(ApiError::new(
            "MissingParameter",
            "The X-TC-Timestamp header is missing.",
        ));
    };
    if (inner.now().as_second() - time.as_second()).abs() > MAX_AGE {
        return Err(ApiError::new(
            "AuthFailure.SignatureExpire",
            "The signature has expired.",
        ));
    }
    if time.strftime("%Y-%m-%d").to_string() != authorization.date {
        return Err(ApiError::new(
            "AuthFailure.SignatureFailure",
            "The date does not fit the timestamp.",
        ));
    }
    let Some(key) = inner.keys.get(authorization.id) else {
        return Err(ApiError::new(
            "AuthFailure.SecretIdNotFound",
            "The SecretId is not found.",
        ));
    };
    if key.token.as_deref() != request.header("x-tc-token") {
        return Err(ApiError::new("AuthFailure.TokenFailure", "The token is invalid."));
    }
    if key.ends.is_some_and(|end| end < inner.now()) {
        return Err(ApiError::new("AuthFailure.TokenFailure", "The token has expired."));
    }
    let names: Vec<&str> = authorization.names.split(';').collect();
    if !names.contains(&"host") || !names.contains(&"content-type") {
        return Err(ApiError::new(
            "AuthFailure.SignatureFailure",
            "Host and Content-Type must be signed.",
        ));
    }
    if signature(request, &authorization, &names, &key.secret) != authorization.signature {
        return Err(ApiError::new(
            "AuthFailure.SignatureFailure",
            "The provided credentials could not be validated. Please check your signature is correct.",
        ));
    }
    Ok(Signer {
        account: key.account.clone(),
        service: authorization.service.to_owned(),
    })
}

fn signature(request: &Incoming, authorization: &Authorization<'_>, names: &[&str], secret: &str) -> String {
    let line = |name: &&str| {
        format!(
            "{name}:{}",
            request.header(name).unwrap_or_default().trim().to_lowercase()
        )
    };
    let lines = names.iter().map(line).collect::<Vec<_>>().join("\n");
    let canonical = format!(
        "{}\n{}\n{}\n{lines}\n\n{}\n{}",
        request.method,
        request.uri.path(),
        request.uri.query().unwrap_or_default(),
        authorization.names,
        hex::encode(Sha256::digest(&request.body))
    );
    let scope = format!("{}/{}/tc3_request", authorization.date, authorization.service);
    let time = request.header("x-tc-timestamp").unwrap_or_default();
    let to_sign = format!(
        "TC3-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex::encode(Sha256::digest(canonical.as_bytes()))
    );
    let mut key = format!("TC3{secret}").into_bytes();
    for part in scope.split('/') {
        key = hmac(&key, part.as_bytes());
    }
    hex::encode(hmac(&key, to_sign.as_bytes()))
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart_and_made_up_ones_refused() {
        let good =
            "TC3-HMAC-SHA256 Credential=ID/2026-01-01/cvm/tc3_request, SignedHeaders=content-type;host, Signature=ab";
        assert!(parse(good).is_some_and(|parts| parts.service == "cvm" && parts.names == "content-type;host"));
        for bad in [
            "",
            "Bearer x",
            "TC3-HMAC-SHA256 Credential=ID/2026-01-01/cvm, SignedHeaders=host, Signature=ab",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    /// The vendor's published example and two that its SDK signed.
    #[test]
    fn published_signatures_are_reproduced() {
        const EXAMPLE: (&str, &str) = (
            "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE",
            "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE",
        );
        const OWN: (&str, &str) = (
            "AKIDEXAMPLEgpuwatch0000000000000000",
            "SKEXAMPLEgpuwatch0000000000000000",
        );
        const NAMES: &str = r#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#;
        const UTF8: &str = "application/json; charset=utf-8";
        for (key, kind, host, action, time, day, names, body, expected) in [
            (
                EXAMPLE,
                UTF8,
                "cvm.tencentcloudapi.com",
                "DescribeInstances",
                "1551113065",
                "2019-02-25",
                "content-type;host",
                NAMES,
                "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168",
            ),
            (
                EXAMPLE,
                UTF8,
                "cvm.tencentcloudapi.com",
                "DescribeInstances",
                "1551113065",
                "2019-02-25",
                "content-type;host;x-tc-action",
                NAMES,
                "644be983de9a8a3f00db8eadaba61467c3b429e2215758ba897b738ca469fd26",
            ),
            (
                OWN,
                "application/json",
                "sts.tencentcloudapi.com",
                "GetCallerIdentity",
                "1767225600",
                "2026-01-01",
                "content-type;host",
                "{}",
                "1284df946cf7fc16ce654f32a256ba6f4298a7e9a7c8520ff9d9a8ae88dd1565",
            ),
        ] {
            let service = host.split('.').next().unwrap_or_default();
            let request = http::Request::post("/")
                .header("content-type", kind)
                .header("host", host)
                .header("x-tc-action", action)
                .header("x-tc-timestamp", time)
                .body(())
                .map(|request| request.into_parts().0);
            let Ok(parts) = request else { panic!("no request") };
            let request = Incoming {
                method: parts.method,
                uri: parts.uri,
                headers: parts.headers,
                body: body.into(),
            };
            let header = format!(
                "TC3-HMAC-SHA256 Credential={}/{day}/{service}/tc3_request, SignedHeaders={names}, Signature=",
                key.0
            );
            let Some(authorization) = parse(&header) else {
                panic!("not parsed")
            };
            let names: Vec<&str> = names.split(';').collect();
            assert_eq!(
                signature(&request, &authorization, &names, key.1),
                expected,
                "{host} {names:?}"
            );
        }
    }
}
