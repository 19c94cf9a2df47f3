//! What is refused: signatures, sessions, permissions, parameters.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise and runs by the wall clock"
)]

use gpuwatch_fakecloud_core::{Server, ServerOptions};
use gpuwatch_fakecloud_tencent::{SECRET_ID, SECRET_KEY, Site, Tencent, World};
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
    let without = r#"{"RoleArn": "qcs::cam::uin/100000000002:roleName/gpuwatch", "RoleSessionName": "s"}"#;
    assert_eq!(assume(without).code(&server).await, "UnauthorizedOperation");
    let with = r#"{"RoleArn": "qcs::cam::uin/100000000002:roleName/gpuwatch", "RoleSessionName": "s", "ExternalId": "choose-one"}"#;
    assert!(assume(with).send(&server).await["Credentials"]["Token"].is_string());
    let plans = Call {
        action: "DescribeSavingPlanOverview",
        version: "2024-01-25",
        service: "svp",
        ..Call::default()
    };
    assert_eq!(plans.code(&server).await, "InvalidAction");
}
