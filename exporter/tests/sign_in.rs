//! The built program finds the credentials that a cloud's users have already:
//! in the environment, in files of the vendor's own tools, in a pod.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test may fail"
)]

mod support;

use std::{fs, path::Path, process::Command};

use gpuwatch_fakecloud::{FakeCloud, Options};
use gpuwatch_fakecloud_core::InstanceTruth;
use gpuwatch_inventory::Provider;
use support::program::gpuwatch;
use tempfile::TempDir;

async fn clouds() -> FakeCloud {
    FakeCloud::start(Options {
        instances: 20,
        ..Options::default()
    })
    .await
    .expect("started")
}

/// A home directory without anything in it.
fn home() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Lists the instances of a section that has no keys.
async fn list(
    provider: Provider,
    clouds: &FakeCloud,
    home: &TempDir,
    settings: &str,
    environment: &[(&str, &str)],
) -> Vec<serde_json::Value> {
    if !gpuwatch::registry::is_built_in(provider) {
        return Vec::new();
    }
    let configuration = format!(
        "providers:\n  {provider}:\n    - name: found\n      endpoint_url: {}\n{settings}",
        clouds.url()
    );
    let path = write(home.path(), "gpuwatch.yaml", &configuration);
    let mut command = gpuwatch();
    command
        .env("HOME", home.path())
        .envs(environment.iter().copied())
        .args(["list", "-o", "json", "--config", &path]);
    let output = run(command).await;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}{err}");
    serde_json::from_str(&out).expect("a list of objects")
}

/// Away from the threads that the simulated clouds run on.
async fn run(mut command: Command) -> std::process::Output {
    tokio::task::spawn_blocking(move || command.output().expect("it runs"))
        .await
        .expect("joined")
}

/// All of one account, and nothing else.
#[track_caller]
fn assert_account(provider: Provider, found: &[serde_json::Value], truth: &[InstanceTruth], account: &str) {
    if !gpuwatch::registry::is_built_in(provider) {
        return;
    }
    let expected = truth.iter().filter(|instance| instance.account == account).count();
    assert!(expected > 0, "nothing in {account}");
    assert_eq!(found.len(), expected);
    assert!(found.iter().all(|instance| instance["account"] == account));
}

#[track_caller]
fn assert_all(provider: Provider, found: &[serde_json::Value], truth: &[InstanceTruth]) {
    if gpuwatch::registry::is_built_in(provider) {
        assert_eq!(found.len(), truth.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gcp_service_account_and_user_files() {
    let (clouds, home) = (clouds().await, home());
    let world = clouds.gcp();
    world.require_token(true);
    let key = world
        .add_service_account("gpuwatch@fleet.iam.gserviceaccount.com", "fleet")
        .expect("a key");
    let file = write(home.path(), "key.json", &key.json(&clouds.url()).to_string());
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", file.as_str())];
    let found = list(Provider::Gcp, &clouds, &home, "", &variables).await;
    assert_all(Provider::Gcp, &found, &world.truth());

    let user = world.add_user("engineer@fleet.example", &clouds.url());
    write(
        home.path(),
        ".config/gcloud/application_default_credentials.json",
        &user.to_string(),
    );
    let found = list(Provider::Gcp, &clouds, &home, "", &[]).await;
    assert_all(Provider::Gcp, &found, &world.truth());
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_pod_application_and_command_line() {
    use gpuwatch_fakecloud::azure::{ACCESS_TOKEN, TENANT};
    const CLIENT: &str = "11111111-1111-4111-8111-111111111111";
    let (clouds, home) = (clouds().await, home());
    let world = clouds.azure();
    world.add_client(CLIENT, "application-secret");
    let file = write(home.path(), "token", "header.payload.signature");
    let pod = [
        ("AZURE_TENANT_ID", TENANT),
        ("AZURE_CLIENT_ID", CLIENT),
        ("AZURE_FEDERATED_TOKEN_FILE", file.as_str()),
    ];
    let found = list(Provider::Azure, &clouds, &home, "", &pod).await;
    assert_all(Provider::Azure, &found, &world.truth());

    let application = [
        ("AZURE_TENANT_ID", TENANT),
        ("AZURE_CLIENT_ID", CLIENT),
        ("AZURE_CLIENT_SECRET", "application-secret"),
    ];
    let found = list(Provider::Azure, &clouds, &home, "", &application).await;
    assert_all(Provider::Azure, &found, &world.truth());

    // Whoever is signed in to the command line, on a machine that has no
    // identity of its own.
    world.set_machine_identity(false);
    let answer = serde_json::json!({
        "accessToken": ACCESS_TOKEN, "expiresOn": "2037-01-01 00:00:00.000000", "expires_on": 2_114_380_800,
        "subscription": "x", "tenant": TENANT, "tokenType": "Bearer",
    });
    let script = format!("#!/bin/sh\ncat <<'END'\n{answer}\nEND\n");
    let tool = write(home.path(), "bin/az", &script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&tool, executable).expect("executable");
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let found = list(Provider::Azure, &clouds, &home, "", &[("PATH", &path)]).await;
    assert_all(Provider::Azure, &found, &world.truth());
}

#[tokio::test(flavor = "multi_thread")]
async fn aliyun_environment_profile_and_pod() {
    use gpuwatch_fakecloud::aliyun::{ACCESS_KEY_ID, ACCESS_KEY_SECRET};
    let (clouds, home) = (clouds().await, home());
    let world = clouds.aliyun();
    let own = world.base_account();
    let keys = [
        ("ALIBABA_CLOUD_ACCESS_KEY_ID", ACCESS_KEY_ID),
        ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", ACCESS_KEY_SECRET),
    ];
    let found = list(Provider::Aliyun, &clouds, &home, "", &keys).await;
    assert_account(Provider::Aliyun, &found, &world.truth(), &own);

    let profile = serde_json::json!({"current": "default", "profiles": [{
        "name": "default", "mode": "AK", "access_key_id": ACCESS_KEY_ID, "access_key_secret": ACCESS_KEY_SECRET,
    }]});
    write(home.path(), ".aliyun/config.json", &profile.to_string());
    let found = list(Provider::Aliyun, &clouds, &home, "", &[]).await;
    assert_account(Provider::Aliyun, &found, &world.truth(), &own);

    let token = world.oidc_token(jiff::SignedDuration::from_hours(1));
    let file = write(home.path(), "token", &token);
    let role = world.account(&own).expect("the account").role_arn;
    let issuer = format!("acs:ram::{own}:oidc-provider/ack-rrsa");
    let pod = [
        ("ALIBABA_CLOUD_ROLE_ARN", role.as_str()),
        ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", issuer.as_str()),
        ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", file.as_str()),
    ];
    let found = list(Provider::Aliyun, &clouds, &home, "", &pod).await;
    assert_account(Provider::Aliyun, &found, &world.truth(), &own);
}

#[tokio::test(flavor = "multi_thread")]
async fn tencent_environment_profile_and_pod() {
    use gpuwatch_fakecloud::tencent::{SECRET_ID, SECRET_KEY};
    let (clouds, home) = (clouds().await, home());
    let world = clouds.tencent();
    let keys = [
        ("TENCENTCLOUD_SECRET_ID", SECRET_ID),
        ("TENCENTCLOUD_SECRET_KEY", SECRET_KEY),
    ];
    let found = list(Provider::Tencent, &clouds, &home, "", &keys).await;
    let truth = world.truth();
    let own = found
        .first()
        .and_then(|instance| instance["account"].as_str())
        .unwrap_or_default()
        .to_owned();
    assert_account(Provider::Tencent, &found, &truth, &own);

    write(
        home.path(),
        ".tencentcloud/credentials",
        &format!("[default]\nsecret_id = {SECRET_ID}\nsecret_key = {SECRET_KEY}\n"),
    );
    let found = list(Provider::Tencent, &clouds, &home, "", &[]).await;
    assert_account(Provider::Tencent, &found, &truth, &own);

    let role = format!("qcs::cam::uin/{own}:roleName/gpuwatch");
    let file = write(home.path(), "token", "header.payload.signature");
    let pod = [
        ("TKE_REGION", "ap-guangzhou"),
        ("TKE_PROVIDER_ID", "cls-12345678"),
        ("TKE_WEB_IDENTITY_TOKEN_FILE", file.as_str()),
        ("TKE_ROLE_ARN", role.as_str()),
    ];
    let found = list(Provider::Tencent, &clouds, &home, "", &pod).await;
    assert_account(Provider::Tencent, &found, &truth, &own);
}
