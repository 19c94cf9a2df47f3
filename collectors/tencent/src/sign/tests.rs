//! Vectors that the vendor's own Python client gives, with the clock pinned.

use proptest::prelude::*;

use super::*;

const KEY: &str = "SKEXAMPLEgpuwatch0000000000000000";
const ID: &str = "AKIDEXAMPLEgpuwatch0000000000000000";
const INSTANCES: &str = r#"{"Filters":[{"Name":"instance-state","Values":["RUNNING"]}],"Limit":100,"Offset":0}"#;
const BILL: &str = r#"{"Month":"2026-01","ActionType":"按量计费小时结","Offset":0,"Limit":100}"#;

struct Vector {
    name: &'static str,
    body: &'static str,
    content_type: &'static str,
    host: &'static str,
    service: &'static str,
    at: i64,
    body_hash: &'static str,
    canonical: &'static str,
    signature: &'static str,
}

const VECTORS: [Vector; 7] = [
    Vector {
        name: "empty body",
        body: "{}",
        content_type: CONTENT_TYPE,
        host: "sts.tencentcloudapi.com",
        service: "sts",
        at: 1_767_225_600,
        body_hash: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        canonical: "27a9f5a9c8a4da9c86f0fcf3df35b2a50d53bd6317667e0e3f4382f405e9af81",
        signature: "1284df946cf7fc16ce654f32a256ba6f4298a7e9a7c8520ff9d9a8ae88dd1565",
    },
    Vector {
        name: "a second before midnight",
        body: INSTANCES,
        content_type: CONTENT_TYPE,
        host: "cvm.tencentcloudapi.com",
        service: "cvm",
        at: 1_767_225_599,
        body_hash: "211fb4107f7807fca8dae1ee4176078ebd6ba0bd01a51b56b39147e81f5a9116",
        canonical: "82fdc1098e43c4444e6947e3d716275c30094116a6c8e69b41cca83985d346df",
        signature: "b1e06c9168e918b9708f587415527c2be355de6f1edb055f81c1a753ec6ec8bf",
    },
    Vector {
        name: "chinese text",
        body: BILL,
        content_type: CONTENT_TYPE,
        host: "billing.tencentcloudapi.com",
        service: "billing",
        at: 1_767_311_999,
        body_hash: "fbf89cabbc82306983b1b52952d794c99e5572145633a1d2726cacf8bb2a2cce",
        canonical: "b3d83ea13a91733b2e6d7e8f541f717d5a011a7004c3baea13ff0780a41a1acf",
        signature: "904c80783c7578e3d3b74412538a9cd717b6c376736dae6250592e2793db5202",
    },
    Vector {
        name: "chinese text, escaped",
        body: r#"{"Month": "2026-01", "ActionType": "\u6309\u91cf\u8ba1\u8d39\u5c0f\u65f6\u7ed3", "Offset": 0, "Limit": 100}"#,
        content_type: CONTENT_TYPE,
        host: "billing.tencentcloudapi.com",
        service: "billing",
        at: 1_767_311_999,
        body_hash: "",
        canonical: "254e67b2f0853b0cdb57ae1ce8b42eace20f5bb8c87a4255c019659a8d385d24",
        signature: "f5996477b9d455d18b57005993da3bfb7a67da812f89aabb57df80f457e74632",
    },
    Vector {
        name: "host of the international site",
        body: concat!(
            r#"{"Namespace":"QCE/CVM","MetricName":"GpuUtil","Period":300,"#,
            r#""Instances":[{"Dimensions":[{"Name":"InstanceId","Value":"ins-00000001"}]}],"#,
            r#""StartTime":"2025-12-31T23:00:00+00:00","EndTime":"2026-01-01T00:00:00+00:00"}"#
        ),
        content_type: CONTENT_TYPE,
        host: "monitor.intl.tencentcloudapi.com",
        service: "monitor",
        at: 1_767_225_600,
        body_hash: "de602f32c283db56dec2a7cf98960b8a57560503fc0b2cf96b2db0168b360ea0",
        canonical: "f93cfcab7f7fa505cd25d23a233b92b75c791e53e387c3528295cd619dce9b1f",
        signature: "73943fde18f7e29ba11ef96be5be6c6d22714730be9658cca239bd5fff9f74fe",
    },
    Vector {
        name: "content type with a character set",
        body: "{}",
        content_type: "application/json; charset=utf-8",
        host: "cvm.tencentcloudapi.com",
        service: "cvm",
        at: 1_767_225_600,
        body_hash: "",
        canonical: "9f7b14f984266a47f171cf711a07033e1deaef93badff702a464aa360a6bb576",
        signature: "2d24f4a7e6083f28d44eca43d6cdf4e94495d4c9bce69fc0b302f3f064499b48",
    },
    Vector {
        name: "host with a port",
        body: "{}",
        content_type: CONTENT_TYPE,
        host: "127.0.0.1:8080",
        service: "cvm",
        at: 1_767_225_600,
        body_hash: "",
        canonical: "d30cdaaa133b0f587bba833eefb6a6376829d22c984c78abcab74ca0b8418a61",
        signature: "d29b004daf387794a742a0490b83677504003fb4ad34c81ffbdce93ada257015",
    },
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn requests_are_signed_as_the_vendors_own_client_does() {
    for vector in VECTORS {
        let headers = [("content-type", vector.content_type), ("host", vector.host)];
        let request = Unsigned {
            service: vector.service,
            headers: &headers,
            body: vector.body.as_bytes(),
            at: at(vector.at),
        };
        if !vector.body_hash.is_empty() {
            assert_eq!(sha256(request.body), vector.body_hash, "{}", vector.name);
        }
        assert_eq!(
            sha256(request.canonical_request().as_bytes()),
            vector.canonical,
            "{}",
            vector.name
        );
        assert_eq!(request.signature(&KEY.into()), vector.signature, "{}", vector.name);
    }
}

// The scope's date is the 25th in UTC, when it is the 26th in China.
#[test]
fn the_published_example_comes_out() {
    let body = r#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#;
    assert_eq!(
        sha256(body.as_bytes()),
        "35e9c5b0e3ae67532d3c9f17ead6c90222632e5b1ff7f6e89887f1398934f064"
    );
    let headers = [
        ("content-type", "application/json; charset=utf-8"),
        ("host", "cvm.tencentcloudapi.com"),
        ("x-tc-action", "describeinstances"),
    ];
    let expected = [
        (
            2,
            "5ffe6a04c0664d6b969fab9a13bdab201d63ee709638e2749d62a09ca18d7031",
            "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168",
        ),
        (
            3,
            "7019a55be8395899b900fb5564e4200d984910f34794a27cb3fb7d10ff6a1e84",
            "644be983de9a8a3f00db8eadaba61467c3b429e2215758ba897b738ca469fd26",
        ),
    ];
    for (signed, canonical, signature) in expected {
        let request = Unsigned {
            service: "cvm",
            headers: &headers[..signed],
            body: body.as_bytes(),
            at: at(1_551_113_065),
        };
        assert_eq!(request.date(), "2019-02-25");
        assert_eq!(sha256(request.canonical_request().as_bytes()), canonical);
        assert_eq!(request.signature(&"Gu5t9xGARNpq86cd98joQYCN3EXAMPLE".into()), signature);
    }
}

#[test]
fn every_step_of_a_signature_is_as_documented() {
    let headers = [("content-type", CONTENT_TYPE), ("host", "sts.tencentcloudapi.com")];
    let request = Unsigned {
        service: "sts",
        headers: &headers,
        body: b"{}",
        at: at(1_767_225_600),
    };
    assert_eq!(
        request.canonical_request(),
        "POST\n/\n\ncontent-type:application/json\nhost:sts.tencentcloudapi.com\n\ncontent-type;host\n\
         44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
    assert_eq!(
        request.string_to_sign(),
        "TC3-HMAC-SHA256\n1767225600\n2026-01-01/sts/tc3_request\n\
         27a9f5a9c8a4da9c86f0fcf3df35b2a50d53bd6317667e0e3f4382f405e9af81"
    );
    let by_date = hmac(format!("TC3{KEY}").as_bytes(), b"2026-01-01");
    assert_eq!(
        hex::encode(&by_date),
        "da6e50f2106474b3932cc34ca6c7dff7968521642428caa094ddfcba50a3f843"
    );
    let by_service = hmac(&by_date, b"sts");
    assert_eq!(
        hex::encode(&by_service),
        "d4092518b08b8ee98436d3ff1ffd6fc7bceb7089327ecff4667aaf4b97458df3"
    );
    assert_eq!(
        hex::encode(hmac(&by_service, b"tc3_request")),
        "2446f600902f9e36435437349e1b9fdb475f413829fb5bb6b4a55a21eb8485af"
    );
    assert_eq!(
        request.authorization(&ID.into(), &KEY.into()),
        "TC3-HMAC-SHA256 Credential=AKIDEXAMPLEgpuwatch0000000000000000/2026-01-01/sts/tc3_request, \
         SignedHeaders=content-type;host, \
         Signature=1284df946cf7fc16ce654f32a256ba6f4298a7e9a7c8520ff9d9a8ae88dd1565"
    );
}

#[test]
fn a_change_of_anything_signed_changes_the_signature() {
    let sign = |content_type: &str, host: &str, body: &str, second: i64| {
        let headers = [("content-type", content_type), ("host", host)];
        let request = Unsigned {
            service: "cvm",
            headers: &headers,
            body: body.as_bytes(),
            at: at(second),
        };
        request.signature(&KEY.into())
    };
    let signed = sign(CONTENT_TYPE, "127.0.0.1:8080", INSTANCES, 1_767_225_599);
    for other in [
        sign(CONTENT_TYPE, "127.0.0.1", INSTANCES, 1_767_225_599),
        sign(
            "application/json; charset=utf-8",
            "127.0.0.1:8080",
            INSTANCES,
            1_767_225_599,
        ),
        sign(
            CONTENT_TYPE,
            "127.0.0.1:8080",
            &INSTANCES.replace(',', ", "),
            1_767_225_599,
        ),
        // The next day in UTC; eight hours away, the next day in Beijing.
        sign(CONTENT_TYPE, "127.0.0.1:8080", INSTANCES, 1_767_225_600),
        sign(CONTENT_TYPE, "127.0.0.1:8080", INSTANCES, 1_767_225_599 + 8 * 3600),
    ] {
        assert_ne!(signed, other);
    }
}

proptest! {
    #[test]
    fn any_request_has_a_signature_of_its_own(body: Vec<u8>, other: Vec<u8>, second in 0i64..4_000_000_000) {
        let headers = [("content-type", CONTENT_TYPE), ("host", "h")];
        let sign = |body: &[u8]| {
            Unsigned { service: "cvm", headers: &headers, body, at: at(second) }.signature(&KEY.into())
        };
        let signature = sign(&body);
        prop_assert_eq!(signature.len(), 64);
        prop_assert_eq!(signature == sign(&other), body == other);
    }

    #[test]
    fn the_secret_key_is_never_in_the_header(key in "[A-Za-z0-9]{16,40}", body: Vec<u8>) {
        let headers = [("content-type", CONTENT_TYPE), ("host", "h")];
        let request = Unsigned { service: "cvm", headers: &headers, body: &body, at: at(0) };
        let header = request.authorization(&ID.into(), &key.as_str().into());
        prop_assert!(!header.contains(&key));
    }
}
