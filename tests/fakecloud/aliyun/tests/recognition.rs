//! Which requests are this cloud's, and which are another's at the same address.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud_aliyun::Aliyun;
use gpuwatch_fakecloud_core::{Cloud, Incoming};

fn is_ours(method: &str, uri: &str, headers: &[(&str, &str)], body: &str) -> bool {
    let mut request = http::Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    Aliyun::new(support::world()).recognises(&Incoming {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        body: body.to_owned().into(),
    })
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[test]
fn calls_of_both_schemes_and_of_the_metadata_service_are_ours() {
    let v3 = [("x-acs-action", "DescribeRegions"), ("x-acs-version", "2014-05-26")];
    assert!(is_ours("POST", "/", &v3, ""));
    assert!(is_ours(
        "POST",
        "/?RegionId=x",
        &[("authorization", "ACS3-HMAC-SHA256 Credential=a")],
        ""
    ));
    assert!(is_ours("GET", "/?Action=DescribeRegions&Version=2014-05-26", &[], ""));
    assert!(is_ours(
        "GET",
        "/?Action=X&Version=2099-01-01&SignatureNonce=n&AccessKeyId=a",
        &[],
        ""
    ));
    assert!(is_ours(
        "POST",
        "/",
        &[FORM],
        "Action=AssumeRoleWithOIDC&Version=2015-04-01&OIDCToken=t"
    ));
    let token = [("x-aliyun-ecs-metadata-token-ttl-seconds", "21600")];
    assert!(is_ours("PUT", "/latest/api/token", &token, ""));
    assert!(is_ours("GET", "/latest/meta-data/ram/security-credentials/", &[], ""));
}

#[test]
fn calls_of_other_clouds_are_not() {
    // AWS: query protocol, signed, and its metadata service at the same path.
    assert!(!is_ours(
        "POST",
        "/",
        &[FORM],
        "Action=DescribeInstances&Version=2016-11-15"
    ));
    let signed = [
        FORM,
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/ec2/aws4_request",
        ),
    ];
    assert!(!is_ours(
        "POST",
        "/",
        &signed,
        "Action=GetCallerIdentity&Version=2011-06-15"
    ));
    assert!(!is_ours(
        "PUT",
        "/latest/api/token",
        &[("x-aws-ec2-metadata-token-ttl-seconds", "21600")],
        ""
    ));
    // Tencent Cloud: both its schemes, and its metadata service.
    let tc3 = [
        ("authorization", "TC3-HMAC-SHA256 Credential=a"),
        ("x-tc-action", "DescribeInstances"),
    ];
    assert!(!is_ours("POST", "/", &tc3, "{}"));
    let older = "/?Action=DescribeInstances&Version=2017-03-12&SecretId=s&Nonce=1&Signature=x";
    assert!(!is_ours("GET", older, &[], ""));
    assert!(!is_ours("GET", "/latest/meta-data/cam/security-credentials/", &[], ""));
    // Google Cloud and Azure.
    let bearer = [("authorization", "Bearer t")];
    assert!(!is_ours(
        "GET",
        "/compute/v1/projects/p/aggregated/instances",
        &bearer,
        ""
    ));
    assert!(!is_ours("GET", "/subscriptions?api-version=2022-12-01", &bearer, ""));
}
