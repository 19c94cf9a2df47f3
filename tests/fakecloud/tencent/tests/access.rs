//! What is refused: signatures, sessions, permissions, parameters.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise and runs by the wall clock"
)]

use gpuwatch_fakecloud_core::{Server, ServerOptions};
use gpuwatch_fakecloud_tencent::{MachineSpec, OWNER, SECRET_ID, SECRET_KEY, Site, Tencent, World};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A call, signed without the fake's own code.
struct Call<'a> {
    action: &'a str,
    version: &'a str,
    service: &'a str,
    region: &'a str,
    body: &'a str,
    key: &'a str,
    ahead: i64,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Self {
            action: "DescribeInstances",
            version: "2017-03-12",
            service: "cvm",
            region: "ap-guangzhou",
            body: "{}",
            key: SECRET_KEY,
            ahead: 0,
        }
    }
}

fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.chain_update(message).finalize().into_bytes().to_vec()
}

impl Call<'_> {
    async fn send(&self, server: &Server) -> Value {
        let now = Timestamp::now() + SignedDuration::from_secs(self.ahead);
        let (seconds, date) = (now.as_second(), now.strftime("%Y-%m-%d").to_string());
        let host = server.url().trim_start_matches("http://").to_owned();
        let hash = |text: &str| hex::encode(Sha256::digest(text));
        let canonical = format!(
            "POST\n/\n\ncontent-type:application/json\nhost:{host}\n\ncontent-type;host\n{}",
            hash(self.body)
        );
        let scope = format!("{date}/{}/tc3_request", self.service);
        let to_sign = format!("TC3-HMAC-SHA256\n{seconds}\n{scope}\n{}", hash(&canonical));
        let mut key = format!("TC3{}", self.key).into_bytes();
        for part in scope.split('/') {
            key = hmac(&key, part);
        }
        let signature = hex::encode(hmac(&key, &to_sign));
        let answer = reqwest::Client::new()
            .post(server.url())
            .header("content-type", "application/json")
            .header("x-tc-action", self.action)
            .header("x-tc-version", self.version)
            .header("x-tc-region", self.region)
            .header("x-tc-timestamp", seconds)
            .header(
                "authorization",
                format!(
                    "TC3-HMAC-SHA256 Credential={SECRET_ID}/{scope}, SignedHeaders=content-type;host, Signature={signature}"
                ),
            )
            .body(self.body.to_owned())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "failures come with success too");
        answer.json::<Value>().await.unwrap()["Response"].clone()
    }

    async fn code(&self, server: &Server) -> String {
        let response = self.send(server).await;
        response["Error"]["Code"].as_str().unwrap_or("none").to_owned()
    }
}

async fn serve(world: &World) -> Server {
    Server::start(&ServerOptions::default(), vec![Box::new(Tencent::new(world.clone()))])
        .await
        .unwrap()
}

#[tokio::test]
async fn a_call_is_let_in_only_when_everything_about_it_is_right() {
    let world = World::empty(Site::China);
    let server = serve(&world).await;
    let good = || Call::default();
    for (call, code) in [
        (good(), "none"),
        (Call { key: "wrong", ..good() }, "AuthFailure.SignatureFailure"),
        (
            Call {
                service: "sts",
                ..good()
            },
            "AuthFailure.SignatureFailure",
        ),
        (Call { ahead: 301, ..good() }, "AuthFailure.SignatureExpire"),
        (Call { ahead: -301, ..good() }, "AuthFailure.SignatureExpire"),
        (Call { region: "", ..good() }, "MissingParameter"),
        (Call { region: "gz", ..good() }, "UnsupportedRegion"),
        (
            Call {
                action: "DestroyEverything",
                ..good()
            },
            "InvalidAction",
        ),
        (
            Call {
                version: "2018-08-13",
                ..good()
            },
            "InvalidAction",
        ),
        (
            Call {
                action: "DescribeReservedInstances",
                ..good()
            },
            "InvalidAction",
        ),
        (
            Call {
                body: r#"{"Limit": 101}"#,
                ..good()
            },
            "InvalidParameterValue.Range",
        ),
        (
            Call {
                body: r#"{"Limit": "10"}"#,
                ..good()
            },
            "InvalidParameter",
        ),
    ] {
        assert_eq!(call.code(&server).await, code, "{} {}", call.action, call.body);
    }
    world.deny(gpuwatch_fakecloud_tencent::OWNER, "cvm:DescribeInstances");
    assert_eq!(good().code(&server).await, "UnauthorizedOperation");
}

#[tokio::test]
async fn the_services_own_clock_decides() {
    let world = World::empty(Site::China);
    world.set_clock_offset(3600);
    let server = serve(&world).await;
    assert_eq!(Call::default().code(&server).await, "AuthFailure.SignatureExpire");
    let right = Call {
        ahead: 3600,
        ..Call::default()
    };
    assert_eq!(right.code(&server).await, "none");
}

#[tokio::test]
async fn roles_ask_for_their_external_id_and_what_a_site_lacks_is_not_there() {
    let world = World::empty(Site::International);
    world.add_account("100000000002");
    world.set_external_id(Some("choose-one"));
    let server = serve(&world).await;
    let assume = |body| Call {
        action: "AssumeRole",
        version: "2018-08-13",
        service: "sts",
        body,
        ..Call::default()
    };
    let without = r#"{"RoleArn": "qcs::cam::uin/100000000002:roleName/gpuwatch", "RoleSessionName": "session"}"#;
    assert_eq!(assume(without).code(&server).await, "UnauthorizedOperation");
    let with = r#"{"RoleArn": "qcs::cam::uin/100000000002:roleName/gpuwatch", "RoleSessionName": "session", "ExternalId": "choose-one"}"#;
    assert!(assume(with).send(&server).await["Credentials"]["Token"].is_string());
    let plans = Call {
        action: "DescribeSavingPlanOverview",
        version: "2024-01-25",
        service: "svp",
        ..Call::default()
    };
    assert_eq!(plans.code(&server).await, "InvalidAction");
}

#[tokio::test]
async fn machines_are_asked_for_by_id_or_by_filter_and_not_by_both() {
    let world = World::empty(Site::China);
    for (id, name, zone) in [("ins-a", "one", "ap-guangzhou-6"), ("ins-b", "two", "ap-guangzhou-7")] {
        world.add_machine(
            OWNER,
            MachineSpec {
                id: id.to_owned(),
                name: name.to_owned(),
                zone: zone.to_owned(),
                tags: [("team".to_owned(), name.to_owned())].into(),
                ..MachineSpec::default()
            },
        );
    }
    let server = serve(&world).await;
    for (body, expected) in [
        ("{}", "ins-a ins-b"),
        (r#"{"InstanceIds": ["ins-b", "ins-none"]}"#, "ins-b"),
        (
            r#"{"Filters": [{"Name": "zone", "Values": ["ap-guangzhou-6"]}]}"#,
            "ins-a",
        ),
        (
            r#"{"Filters": [{"Name": "tag:team", "Values": ["two", "three"]}]}"#,
            "ins-b",
        ),
        (
            r#"{"Filters": [{"Name": "instance-state", "Values": ["STOPPED"]}]}"#,
            "",
        ),
        (
            r#"{"Filters": [{"Name": "instance-type", "Values": ["GN7"]}]}"#,
            "InvalidFilter",
        ),
        (
            r#"{"Filters": [{"Name": "zone", "Values": ["1", "2", "3", "4", "5", "6"]}]}"#,
            "InvalidFilterValue.LimitExceeded",
        ),
        (
            r#"{"InstanceIds": ["ins-a"], "Filters": [{"Name": "zone", "Values": ["1"]}]}"#,
            "InvalidParameter.AtMostOne",
        ),
    ] {
        let call = Call {
            body,
            ..Call::default()
        };
        let response = call.send(&server).await;
        let found = if let Some(code) = response["Error"]["Code"].as_str() {
            code.to_owned()
        } else {
            let rows = response["InstanceSet"].as_array().unwrap();
            let ids: Vec<&str> = rows.iter().filter_map(|row| row["InstanceId"].as_str()).collect();
            assert_eq!(response["TotalCount"], ids.len(), "{body}");
            ids.join(" ")
        };
        assert_eq!(found, expected, "{body}");
    }
    let ids: Vec<String> = (0..101).map(|n| format!("ins-{n}")).collect();
    let many = serde_json::json!({"InstanceIds": ids}).to_string();
    let call = Call {
        body: &many,
        ..Call::default()
    };
    assert_eq!(call.code(&server).await, "InvalidParameterValue.LimitExceeded");
}

#[tokio::test]
async fn a_role_is_assumed_only_as_it_may_be() {
    let world = World::empty(Site::China);
    world.add_account("100000000002");
    let server = serve(&world).await;
    let body = |arn: &str, name: &str, seconds: i64| {
        serde_json::json!({"RoleArn": arn, "RoleSessionName": name, "DurationSeconds": seconds}).to_string()
    };
    let arn = "qcs::cam::uin/100000000002:roleName/gpuwatch";
    for (body, code) in [
        (body(arn, "gpuwatch", 3600), "none"),
        (body(arn, "gpuwatch", 43_201), "InvalidParameter.OverTimeError"),
        (body(arn, "g", 3600), "InvalidParameter.ParamError"),
        (body(arn, "not a name", 3600), "InvalidParameter.ParamError"),
        (
            body("qcs::cam::uin/100000000002:roleName/other", "gpuwatch", 3600),
            "ResourceNotFound.RoleNotFound",
        ),
        (
            body("qcs::cam::uin/100000000003:roleName/gpuwatch", "gpuwatch", 3600),
            "ResourceNotFound.RoleNotFound",
        ),
    ] {
        let call = Call {
            action: "AssumeRole",
            version: "2018-08-13",
            service: "sts",
            body: &body,
            ..Call::default()
        };
        assert_eq!(call.code(&server).await, code, "{body}");
    }
    // The call by token is not signed.
    let signed = Call {
        action: "AssumeRoleWithWebIdentity",
        version: "2018-08-13",
        service: "sts",
        ..Call::default()
    };
    assert_eq!(signed.code(&server).await, "AuthFailure.InvalidAuthorization");
    world.deny(OWNER, "sts:AssumeRole");
    let denied = body(arn, "gpuwatch", 3600);
    let call = Call {
        action: "AssumeRole",
        version: "2018-08-13",
        service: "sts",
        body: &denied,
        ..Call::default()
    };
    assert_eq!(call.code(&server).await, "UnauthorizedOperation");
}

#[tokio::test]
async fn savings_plans_are_asked_for_half_a_year_at_a_time() {
    let server = serve(&World::empty(Site::China)).await;
    for (body, code) in [
        (
            r#"{"StartDate": "2026-06-01", "EndDate": "2026-11-30", "Offset": 0, "Limit": 200}"#,
            "none",
        ),
        (
            r#"{"StartDate": "2026-05-29", "EndDate": "2026-11-30", "Offset": 0, "Limit": 200}"#,
            "InvalidParameterValue",
        ),
        (
            r#"{"StartDate": "2026-11-30", "EndDate": "2026-06-01", "Offset": 0, "Limit": 200}"#,
            "InvalidParameterValue",
        ),
        (
            r#"{"StartDate": "2026-06-01", "EndDate": "2026-11-30"}"#,
            "MissingParameter",
        ),
        (
            r#"{"StartDate": "2026-06-01", "EndDate": "2026-11-30", "Offset": 0, "Limit": 201}"#,
            "InvalidParameterValue.Range",
        ),
    ] {
        let call = Call {
            action: "DescribeSavingPlanOverview",
            version: "2024-01-25",
            service: "svp",
            body,
            ..Call::default()
        };
        assert_eq!(call.code(&server).await, code, "{body}");
    }
}
