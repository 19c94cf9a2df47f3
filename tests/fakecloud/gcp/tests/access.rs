//! Who may call, and what others are told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud_gcp::ProjectState;
use gpuwatch_test_kit::python_with;
use serde_json::{Value, json};
use support::{SDK, get, get_as, metadata, post_as, serve, small_world};

const REGIONS: &str = "/compute/v1/projects/p/regions";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const ACCOUNT: &str = "gpuwatch@p.iam.gserviceaccount.com";

#[tokio::test]
async fn tokens_are_asked_for_and_expire() {
    let world = small_world();
    let server = serve(&world).await;
    assert_eq!(get(&server, REGIONS).await.status, 200);
    world.require_token(true);
    let nobody = get(&server, REGIONS).await;
    assert_eq!((nobody.status, nobody.reason()), (401, "CREDENTIALS_MISSING"));
    assert!(nobody.header("www-authenticate").starts_with("Bearer "));
    let token = world.issue_token(60);
    assert_eq!(get_as(&server, REGIONS, &token).await.status, 200);
    let late = get_as(&server, REGIONS, &world.issue_token(-1)).await;
    assert_eq!((late.status, late.reason()), (401, "ACCESS_TOKEN_EXPIRED"));
    world.expire_tokens();
    assert_eq!(get_as(&server, REGIONS, &token).await.status, 401);
    // A token that is sent is checked, also where none is asked for.
    world.require_token(false);
    assert_eq!(get_as(&server, REGIONS, "made-up").await.status, 401);
    assert_eq!(get_as(&server, REGIONS, "a.b.c").await.status, 401);
}

#[tokio::test]
async fn narrow_scopes_do_not_suffice() {
    let world = small_world();
    let server = serve(&world).await;
    let storage = "https://www.googleapis.com/auth/devstorage.read_only";
    let narrow = get_as(&server, REGIONS, &world.issue_token_with_scopes(60, &[storage])).await;
    assert_eq!(
        (narrow.status, narrow.reason()),
        (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT")
    );
    let compute = "https://www.googleapis.com/auth/compute.readonly";
    let token = world.issue_token_with_scopes(60, &[storage, compute]);
    assert_eq!(get_as(&server, REGIONS, &token).await.status, 200);
    assert_eq!(get_as(&server, "/v3/projects:search", &token).await.status, 403);
}

#[tokio::test]
async fn refusals_name_the_permission_or_the_service() {
    let world = small_world();
    let server = serve(&world).await;
    let instances = "/compute/v1/projects/p/aggregated/instances";
    let nodes = "/v2/projects/p/locations/-/nodes";
    world.deny("p", "compute.instances.list");
    world.deny("p", "tpu.nodes.list");
    let denied = get(&server, instances).await;
    assert_eq!((denied.status, denied.reason()), (403, "forbidden"));
    let message = denied.body["error"]["message"].as_str().unwrap();
    assert_eq!(message, "Required 'compute.instances.list' permission for 'projects/p'");
    assert!(denied.body["error"].get("status").is_none());
    let denied = get(&server, nodes).await;
    let detail = &denied.body["error"]["details"][0];
    assert_eq!((denied.status, denied.reason()), (403, "IAM_PERMISSION_DENIED"));
    assert_eq!(detail["metadata"]["permission"], "tpu.nodes.list");
    assert_eq!(get(&server, REGIONS).await.status, 200);
    world.allow("p", "compute.instances.list");
    assert_eq!(get(&server, instances).await.status, 200);
    for (path, service) in [(instances, "compute.googleapis.com"), (nodes, "tpu.googleapis.com")] {
        world.disable_api("p", service);
        let disabled = get(&server, path).await;
        assert_eq!(
            (disabled.status, disabled.reason()),
            (403, "SERVICE_DISABLED"),
            "{path}"
        );
        let metadata = &disabled.body["error"]["details"][0]["metadata"];
        assert_eq!(metadata["service"], service);
        assert!(metadata["consumer"].as_str().unwrap().starts_with("projects/1"));
        world.enable_api("p", service);
    }
    assert_eq!(get(&server, instances).await.status, 200);
}

#[tokio::test]
async fn project_that_is_not_there_or_shut_down_is_refused() {
    let world = small_world();
    let server = serve(&world).await;
    assert_eq!(get(&server, "/compute/v1/projects/other/regions").await.status, 404);
    assert_eq!(get(&server, "/v3/projects/other").await.status, 403);
    world.set_project_state("p", ProjectState::DeleteRequested);
    let gone = get(&server, REGIONS).await;
    assert_eq!((gone.status, gone.reason()), (403, "CONSUMER_INVALID"));
    assert_eq!(get(&server, "/compute/v1/projects/p/global/networks").await.status, 404);
    let hidden = small_world();
    hidden.deny("p", "resourcemanager.projects.get");
    let server = serve(&hidden).await;
    let found = get(&server, "/v3/projects:search").await;
    assert_eq!((found.status, found.body), (200, json!({})));
}

#[tokio::test]
async fn metadata_server_hands_out_tokens_of_the_machines_account() {
    let world = small_world();
    let server = serve(&world).await;
    let path = "instance/service-accounts/default/token";
    assert_eq!(metadata(&server, path).await.status, 404);
    world.set_machine_account(ACCOUNT, &[]);
    world.set_token_lifetime(90);
    assert_eq!(get(&server, &format!("/computeMetadata/v1/{path}")).await.status, 403);
    let answer = metadata(&server, path).await;
    assert_eq!(answer.header("metadata-flavor"), "Google");
    assert_eq!(answer.body["expires_in"], 90);
    let token = answer.body["access_token"].as_str().unwrap();
    assert_eq!(get_as(&server, REGIONS, token).await.status, 200);
    let email = metadata(&server, "instance/service-accounts/default/email").await;
    assert_eq!(email.body, Value::from(ACCOUNT));
    // A machine made with narrow scopes never gets more.
    world.set_machine_account(ACCOUNT, &["https://www.googleapis.com/auth/devstorage.read_only"]);
    let asked = metadata(&server, &format!("{path}?scopes={SCOPE}")).await;
    let token = asked.body["access_token"].as_str().unwrap();
    assert_eq!(
        get_as(&server, REGIONS, token).await.reason(),
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    );
}

#[tokio::test]
async fn service_account_can_be_acted_as_with_the_permission() {
    let world = small_world();
    world.require_token(true);
    world.add_keyless_service_account(ACCOUNT);
    let server = serve(&world).await;
    let path = |account: &str| format!("/v1/projects/-/serviceAccounts/{account}:generateAccessToken");
    let token = world.issue_token(60);
    let body = json!({ "scope": [SCOPE], "lifetime": "600s" });
    let answer = post_as(&server, &path(ACCOUNT), &token, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body["expireTime"].as_str().unwrap().ends_with('Z'));
    let acting = answer.body["accessToken"].as_str().unwrap();
    assert_eq!(get_as(&server, REGIONS, acting).await.status, 200);
    for (body, status) in [
        (json!({ "scope": [] }), 400),
        (json!({ "scope": [SCOPE], "lifetime": "7200s" }), 400),
        (json!({ "scope": [SCOPE], "delegates": ["x@y"] }), 400),
        (json!([]), 400),
    ] {
        assert_eq!(
            post_as(&server, &path(ACCOUNT), &token, &body).await.status,
            status,
            "{body}"
        );
    }
    assert_eq!(post_as(&server, &path("nobody@p"), &token, &body).await.status, 404);
    assert_eq!(post_as(&server, &path(ACCOUNT), "made-up", &body).await.status, 401);
    world.deny(ACCOUNT, "iam.serviceAccounts.getAccessToken");
    let denied = post_as(&server, &path(ACCOUNT), &token, &body).await;
    assert_eq!(denied.reason(), "IAM_PERMISSION_DENIED");
}

/// Google's own library gets tokens in every way it knows, and calls with them.
#[tokio::test]
async fn googles_library_gets_tokens_from_every_kind_of_credentials() {
    let Some(python) = python_with(SDK) else { return };
    let world = small_world();
    world.require_token(true);
    world.set_machine_account(ACCOUNT, &[]);
    let server = serve(&world).await;
    let url = server.url();
    let key = world.add_service_account(ACCOUNT, "p").unwrap();
    let target = "reader@p.iam.gserviceaccount.com";
    world.add_keyless_service_account(target);
    let subject_file = std::env::temp_dir().join(format!("gpuwatch-subject-{}", std::process::id()));
    std::fs::write(&subject_file, "subject-token-1").unwrap();
    let subject_path = subject_file.display().to_string();
    let input = json!({
        "endpoint": url,
        "service_account": key.json(&url),
        "user": world.add_user("somebody@example.com", &url),
        "workload": world.add_workload("subject-token-1", &subject_path, &url, None),
        "workload_as": world.add_workload("subject-token-1", &subject_path, &url, Some(target)),
        "target": target,
    });
    let run = || async {
        let output = tokio::process::Command::new(&python)
            .args(["tests/google_auth.py", &input.to_string()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("GCE_METADATA_HOST", url.trim_start_matches("http://"))
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let statuses = run().await;
    let kinds = [
        "service_account",
        "self_signed",
        "user",
        "workload",
        "workload_as",
        "impersonated",
        "metadata",
    ];
    for kind in kinds {
        assert_eq!(statuses[kind], 200, "{kind}: {statuses}");
    }
    // A key that has been revoked opens nothing.
    world.revoke_keys(ACCOUNT);
    let statuses = run().await;
    assert_eq!(
        statuses["service_account"], "invalid_grant: Invalid JWT Signature.",
        "{statuses}"
    );
    assert_eq!(statuses["self_signed"], 401, "{statuses}");
    assert_eq!(statuses["user"], 200, "{statuses}");
    std::fs::remove_file(&subject_file).unwrap();
}
