//! What is refused: tokens, permissions, versions, queries that are not
//! understood.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use gpuwatch_fakecloud_azure::{ACCESS_TOKEN, Azure, TENANT, World};
use gpuwatch_fakecloud_core::{Server, ServerOptions};
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "00000000-0000-4000-8000-000000000001";

async fn serve(world: &World) -> Server {
    world.add_subscription(SUBSCRIPTION, "corp");
    Server::start(&ServerOptions::default(), vec![Box::new(Azure::new(world.clone()))])
        .await
        .unwrap()
}

async fn get(server: &Server, path: &str, token: &str) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .get(format!("{}{path}", server.url()))
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

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
            format!("{machines}{version}&$expand=instanceView"),
            ACCESS_TOKEN,
            400,
            "BadRequest",
        ),
        (
            format!("/subscriptions/none/locations{version}"),
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
async fn queries_that_are_not_understood_are_refused() {
    let server = serve(&World::empty()).await;
    for (query, top, status) in [
        ("Resources | order by id asc", 1000, 200),
        (
            "Resources | where type =~ 'x' | project id, name | order by id asc",
            1000,
            200,
        ),
        ("Resources | where type matches regex @'x'", 1000, 400),
        ("Resources | summarize count()", 1000, 400),
        ("Secrets | order by id asc", 1000, 400),
        ("Resources", 1001, 400),
    ] {
        let body = json!({"subscriptions": [SUBSCRIPTION], "query": query, "options": {"$top": top}});
        let url = format!(
            "{}/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01",
            server.url()
        );
        let client = reqwest::Client::new();
        let answer = client
            .post(url)
            .bearer_auth(ACCESS_TOKEN)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), status, "{query}");
    }
}
