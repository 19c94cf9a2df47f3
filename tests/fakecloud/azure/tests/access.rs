//! What is refused: tokens, permissions, versions, queries that are not
//! understood.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod support;

use gpuwatch_fakecloud_azure::{ACCESS_TOKEN, TENANT, World};
use gpuwatch_fakecloud_core::Server;
use serde_json::Value;
use support::{SUBSCRIPTION, get_as as get, serve};

async fn sign_in(server: &Server, tenant: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .post(format!("{}/{tenant}/oauth2/v2.0/token", server.url()))
        .form(form)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

const SCOPE: (&str, &str) = ("scope", "https://management.azure.com/.default");
const GRANT: (&str, &str) = ("grant_type", "client_credentials");

#[tokio::test]
async fn tokens_are_for_known_applications_of_this_cloud() {
    let world = World::empty();
    world.add_client("app", "secret");
    let server = serve(&world).await;
    let good = [GRANT, SCOPE, ("client_id", "app"), ("client_secret", "secret")];
    let (status, granted) = sign_in(&server, TENANT, &good).await;
    assert_eq!(status, 200);
    let token = granted["access_token"].as_str().unwrap();
    assert_eq!(
        get(&server, "/subscriptions?api-version=2022-12-01", token).await.0,
        200
    );
    world.expire_tokens();
    let (status, body) = get(&server, "/subscriptions?api-version=2022-12-01", token).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (401, Some("ExpiredAuthenticationToken"))
    );

    let china = ("scope", "https://management.chinacloudapi.cn/.default");
    for (tenant, form, number) in [
        (
            "other",
            vec![GRANT, SCOPE, ("client_id", "app"), ("client_secret", "secret")],
            90002,
        ),
        (
            TENANT,
            vec![GRANT, china, ("client_id", "app"), ("client_secret", "secret")],
            500_011,
        ),
        (
            TENANT,
            vec![GRANT, SCOPE, ("client_id", "x"), ("client_secret", "secret")],
            700_016,
        ),
        (
            TENANT,
            vec![GRANT, SCOPE, ("client_id", "app"), ("client_secret", "wrong")],
            7_000_215,
        ),
    ] {
        let (status, body) = sign_in(&server, tenant, &form).await;
        assert!(status >= 400, "{number}");
        assert_eq!(body["error_codes"][0], number);
    }
}

#[tokio::test]
async fn calls_need_a_token_a_version_and_a_permission() {
    let world = World::empty();
    let server = serve(&world).await;
    let machines = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines");
    let version = "?api-version=2024-07-01";
    for (path, token, status, code) in [
        (format!("{machines}{version}"), "x", 401, "InvalidAuthenticationToken"),
        (machines.clone(), ACCESS_TOKEN, 400, "MissingApiVersionParameter"),
        (
            format!("{machines}?api-version=2999-01-01"),
            ACCESS_TOKEN,
            400,
            "InvalidResourceType",
        ),
        (
            "/subscriptions?api-version=2024-07-01".to_owned(),
            ACCESS_TOKEN,
            400,
            "InvalidApiVersionParameter",
        ),
        (
            format!("{machines}{version}&$expand=instanceView"),
            ACCESS_TOKEN,
            400,
            "BadRequest",
        ),
        (
            "/subscriptions/none/locations?api-version=2022-12-01".to_owned(),
            ACCESS_TOKEN,
            404,
            "SubscriptionNotFound",
        ),
        (
            format!("/providers/Microsoft.Compute/nothing{version}"),
            ACCESS_TOKEN,
            404,
            "ResourceNotFound",
        ),
    ] {
        let (got, body) = get(&server, &path, token).await;
        assert_eq!((got, body["error"]["code"].as_str()), (status, Some(code)), "{path}");
    }
    world.deny(SUBSCRIPTION, "Microsoft.Compute/virtualMachines/read");
    let (status, body) = get(&server, &format!("{machines}{version}"), ACCESS_TOKEN).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (403, Some("AuthorizationFailed"))
    );
}

#[tokio::test]
async fn a_refused_version_names_those_that_are_there() {
    let world = World::empty();
    let server = serve(&world).await;
    let members = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/s\
         /virtualMachines"
    );
    world.set_api_versions("virtualMachineScaleSetVMs.list", &["2022-11-01"]);
    let (status, body) = get(&server, &format!("{members}?api-version=2024-07-01"), ACCESS_TOKEN).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (400, Some("InvalidResourceType"))
    );
    let message = body["error"]["message"].as_str().unwrap();
    for part in [
        "virtualMachineScaleSets/virtualMachines",
        "Microsoft.Compute",
        "'2022-11-01'",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let (status, _) = get(&server, &format!("{members}?api-version=2022-11-01"), ACCESS_TOKEN).await;
    assert_eq!(status, 404, "there is no such set");
}

#[tokio::test]
async fn a_token_for_another_resource_does_not_open_resource_manager() {
    let world = World::empty();
    world.add_client("app", "secret");
    let server = serve(&world).await;
    for (resource, opens) in [
        ("https://management.azure.com", true),
        ("https://management.azure.com/", true),
        ("https://management.core.windows.net/", true),
        ("https://graph.microsoft.com", false),
        ("https://metrics.monitor.azure.com", false),
    ] {
        let scope = format!("{resource}/.default");
        let form = [
            GRANT,
            ("scope", &scope),
            ("client_id", "app"),
            ("client_secret", "secret"),
        ];
        let (status, granted) = sign_in(&server, TENANT, &form).await;
        assert_eq!(status, 200, "{resource}: {granted}");
        let token = granted["access_token"].as_str().unwrap();
        let (status, body) = get(&server, "/subscriptions?api-version=2022-12-01", token).await;
        assert_eq!(status == 200, opens, "{resource}: {body}");
        if !opens {
            assert_eq!(body["error"]["code"], "InvalidAuthenticationTokenAudience");
            assert!(body["error"]["message"].as_str().unwrap().contains(resource));
        }
    }
}

#[tokio::test]
async fn a_machine_gets_a_token_from_its_metadata_service() {
    let world = World::empty();
    let server = serve(&world).await;
    let ask = async |resource: &str, version: &str, metadata: &str| {
        let url = format!("{}/metadata/identity/oauth2/token", server.url());
        let request = reqwest::Client::new()
            .get(url)
            .query(&[("api-version", version), ("resource", resource)])
            .header("metadata", metadata);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap())
    };
    let manager = "https://management.azure.com";
    let (status, body) = ask(manager, "2019-08-01", "true").await;
    assert_eq!((status, body["error"].as_str()), (400, Some("invalid_request")));
    assert_eq!(body["error_description"], "Identity not found");
    world.set_machine_identity(true);
    for (resource, version, metadata, error) in [
        (manager, "2019-08-01", "", "invalid_request"),
        (manager, "", "true", "invalid_request"),
        (
            "https://management.chinacloudapi.cn",
            "2019-08-01",
            "true",
            "invalid_resource",
        ),
    ] {
        let (status, body) = ask(resource, version, metadata).await;
        assert_eq!(
            (status, body["error"].as_str()),
            (400, Some(error)),
            "{resource} {version}"
        );
    }
    let (status, granted) = ask(manager, "2019-08-01", "true").await;
    assert_eq!((status, granted["token_type"].as_str()), (200, Some("Bearer")));
    assert_eq!(
        (&granted["expires_in"], &granted["resource"]),
        (&"3600".into(), &manager.into())
    );
    assert!(granted["expires_on"].as_str().unwrap().parse::<i64>().is_ok());
    let token = granted["access_token"].as_str().unwrap();
    let (status, _) = get(&server, "/subscriptions?api-version=2022-12-01", token).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn operations_have_one_method() {
    let server = serve(&World::empty()).await;
    let client = reqwest::Client::new();
    for (method, path) in [
        (reqwest::Method::POST, "/subscriptions?api-version=2022-12-01"),
        (
            reqwest::Method::GET,
            "/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01",
        ),
    ] {
        let request = client
            .request(method, format!("{}{path}", server.url()))
            .bearer_auth(ACCESS_TOKEN);
        assert_eq!(request.send().await.unwrap().status().as_u16(), 405, "{path}");
    }
}
