//! Where keys come from, and what is said when they are not there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::fs;

use gpuwatch_collector_core::{Covers, Reason};
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_fakecloud_aliyun::{ACCESS_KEY_ID, ACCESS_KEY_SECRET, AccountSpec};
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_test_kit::inventory_targets;
use jiff::SignedDuration;
use support::{HANGZHOU, PATIENT, Rig, SECOND, UID, full, is_found, lists, no_keys, refusal, role, world};

#[tokio::test]
async fn keys_in_files_are_read_again_when_the_old_ones_are_gone() {
    let world = full();
    let folder = tempfile::tempdir().unwrap();
    let (id, secret) = (folder.path().join("id"), folder.path().join("secret"));
    let write = || {
        let keys = world.add_access_key(UID);
        fs::write(&id, format!("{}\n", keys.access_key_id)).unwrap();
        fs::write(&secret, format!("{}\n", keys.access_key_secret)).unwrap();
        keys.access_key_id
    };
    let old = write();
    let rig = Rig::discovered(&world, |options| {
        options.access_key_id = Some(SecretSource::File(id.clone()));
        options.access_key_secret = Some(SecretSource::File(secret.clone()));
    })
    .await;
    lists(&rig, UID).await;
    world.remove_key(&old);
    let (refused, _) = rig.instances_in(UID, HANGZHOU).await;
    let error = refused.expect_err("removed and not replaced");
    assert_eq!(error.reason, Reason::Credentials);
    let new = write();
    lists(&rig, UID).await;
    world.set_key_active(&new, false);
    write();
    lists(&rig, UID).await;
    // A file that is away in between is an error and not the end.
    fs::remove_file(&secret).unwrap();
    lists(&rig, UID).await;
}

#[tokio::test]
async fn temporary_keys_of_the_configuration_are_sent_with_their_token() {
    let world = full();
    let keys = world.session(UID, SignedDuration::from_hours(1));
    let rig = Rig::discovered(&world, |options| {
        options.access_key_id = Some(SecretSource::value(&keys.access_key_id));
        options.access_key_secret = Some(SecretSource::value(&keys.access_key_secret));
        options.security_token = keys.security_token.as_deref().map(SecretSource::value);
    })
    .await;
    lists(&rig, UID).await;
}

#[tokio::test]
async fn the_environment_has_keys() {
    for (id, secret) in [
        ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"),
        ("ALICLOUD_ACCESS_KEY", "ALICLOUD_SECRET_KEY"),
    ] {
        let variables = [(id, ACCESS_KEY_ID), (secret, ACCESS_KEY_SECRET)];
        let rig = Rig::with_variables(&world(), no_keys, &variables).await;
        is_found(&rig.discover().await);
    }
}

#[tokio::test]
async fn a_service_account_of_a_cluster_opens_its_role() {
    let world = full();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token = |hours| fs::write(&file, world.oidc_token(SignedDuration::from_hours(hours))).unwrap();
    token(1);
    let (arn, provider) = (role(UID), format!("acs:ram::{UID}:oidc-provider/ack-rrsa"));
    let rig = Rig::with_variables(
        &world,
        no_keys,
        &[
            ("ALIBABA_CLOUD_ROLE_ARN", &arn),
            ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", &provider),
            ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", file.to_str().unwrap()),
        ],
    )
    .await;
    is_found(&rig.discover().await);
    lists(&rig, UID).await;
    assert_eq!(rig.calls_of("AssumeRoleWithOIDC"), 1);
    // The cluster rotates the token: it is read anew for every renewal.
    world.expire_sessions();
    token(-1);
    let (refused, _) = rig.instances_in(UID, HANGZHOU).await;
    let error = refused.expect_err("an old token");
    assert_eq!(error.reason, Reason::Credentials);
    assert!(error.to_string().contains("ALIBABA_CLOUD_OIDC_TOKEN_FILE"), "{error}");
    assert!(
        !error.to_string().contains(&fs::read_to_string(&file).unwrap()),
        "{error}"
    );
    token(1);
    lists(&rig, UID).await;
}

#[tokio::test]
async fn the_role_of_the_machine_is_used_with_and_without_tokens() {
    for (tokens_required, tokens_work, insists, works) in [
        (true, true, false, true),
        (true, true, true, true),
        (false, true, false, true),
        // An old metadata service, without tokens.
        (false, false, false, true),
        (false, false, true, false),
        (true, false, false, false),
    ] {
        let world = full();
        world.set_metadata_role(UID, "gpuwatch");
        world.require_metadata_tokens(tokens_required);
        let insist = [("ALIBABA_CLOUD_IMDSV1_DISABLED", "true")];
        let variables: &[(&str, &str)] = if insists { &insist } else { &[] };
        let rig = Rig::with_variables(&world, no_keys, variables).await;
        if !tokens_work {
            rig.fault(FaultKind::OptInRequired, "token", None);
        }
        let (found, cx) = rig.discover_within(PATIENT).await;
        let counted = cx.calls().iter().any(|status| status.call.service == "metadata");
        assert!(counted, "the metadata service is a call like any other");
        if works {
            is_found(&found);
            lists(&rig, UID).await;
        } else {
            assert_eq!(refusal(&found).1, Reason::Credentials);
        }
    }
}

#[tokio::test]
async fn the_keys_of_the_machine_are_renewed_when_they_end() {
    let world = full();
    world.set_metadata_role(UID, "gpuwatch");
    let rig = Rig::with_variables(&world, no_keys, &[("ALIBABA_CLOUD_ECS_METADATA", "gpuwatch")]).await;
    is_found(&rig.discover().await);
    assert_eq!(
        rig.calls_of("security-credentials"),
        1,
        "its name need not be asked for"
    );
    world.expire_sessions();
    lists(&rig, UID).await;
    assert_eq!(rig.calls_of("security-credentials"), 2);
}

#[tokio::test]
async fn a_role_that_the_machine_does_not_have_is_named() {
    let world = world();
    world.set_metadata_role(UID, "gpuwatch");
    let rig = Rig::with_variables(&world, no_keys, &[("ALIBABA_CLOUD_ECS_METADATA", "gpuwhat")]).await;
    let (_, reason, text) = refusal(&rig.discover().await);
    assert_eq!(reason, Reason::Credentials);
    assert!(text.contains("gpuwhat") && !text.contains('<'), "{text}");
}

#[tokio::test]
async fn profiles_of_the_command_line_are_used() {
    let strict = AccountSpec {
        external_id: Some("gpu-42".into()),
        ..AccountSpec::default()
    };
    let world = world();
    world.add_account(SECOND, strict);
    world.set_metadata_role(UID, "gpuwatch");
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aliyun")).unwrap();
    let profile = |name: &str, rest: &str| format!(r#"{{"name": "{name}", {rest}}}"#);
    let keys = format!(r#""access_key_id": "{ACCESS_KEY_ID}", "access_key_secret": "{ACCESS_KEY_SECRET}""#);
    let assumed = format!(r#""ram_role_arn": "{}", "external_id": "gpu-42""#, role(SECOND));
    let profiles = [
        profile("keys", &format!(r#""mode": "AK", {keys}"#)),
        profile("role", &format!(r#""mode": "RamRoleArn", {keys}, {assumed}"#)),
        profile("machine", r#""mode": "EcsRamRole", "ram_role_name": "gpuwatch""#),
        profile(
            "chain",
            &format!(r#""mode": "ChainableRamRoleArn", "source_profile": "machine", {assumed}"#),
        ),
        profile(
            "hops",
            &format!(
                r#""mode": "ChainableRamRoleArn", "source_profile": "role", "ram_role_arn": "{}""#,
                role(UID)
            ),
        ),
        profile("sso", r#""mode": "CloudSSO""#),
    ];
    let config = format!(r#"{{"current": "keys", "profiles": [{}]}}"#, profiles.join(","));
    fs::write(home.path().join(".aliyun/config.json"), config).unwrap();
    let home = home.path().to_str().unwrap();
    for (name, account) in [
        ("", UID),
        ("role", SECOND),
        ("machine", UID),
        ("chain", SECOND),
        ("hops", UID),
    ] {
        let variables = [("HOME", home), ("ALIBABA_CLOUD_PROFILE", name)];
        let rig = Rig::with_variables(&world, no_keys, &variables).await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{name}: {:?}", found.failures);
        assert_eq!(inventory_targets(&found)[0].0, account, "{name}");
    }
    let rig = Rig::with_variables(&world, no_keys, &[("HOME", home), ("ALIBABA_CLOUD_PROFILE", "sso")]).await;
    let (_, reason, text) = refusal(&rig.discover().await);
    assert_eq!(reason, Reason::Credentials);
    assert!(text.contains("CloudSSO"), "{text}");
}

#[tokio::test]
async fn a_local_service_may_give_the_keys() {
    let world = full();
    world.set_metadata_role(UID, "gpuwatch");
    let service = Rig::new(&world, |_| {}).await;
    let url = |path: &str| {
        format!(
            "{}/latest/meta-data/ram/security-credentials/{path}",
            service.server.url()
        )
    };
    for (path, works) in [("gpuwatch", true), ("gpuwhat", false)] {
        let uri = url(path);
        let variables = [
            ("ALIBABA_CLOUD_ECS_METADATA_DISABLED", "true"),
            ("ALIBABA_CLOUD_CREDENTIALS_URI", uri.as_str()),
        ];
        let rig = Rig::with_variables(&world, no_keys, &variables).await;
        let found = rig.discover().await;
        if works {
            is_found(&found);
            assert_eq!(rig.calls_of("security-credentials"), 0);
        } else {
            assert_eq!(refusal(&found).1, Reason::Credentials);
        }
    }
}

// P52
#[tokio::test]
async fn without_any_credentials_the_error_names_what_to_set() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let rig = Rig::new(&world(), |options| {
        no_keys(options);
        options.metadata_url = Some(closed);
    })
    .await;
    let (covers, reason, text) = refusal(&rig.discover().await);
    assert_eq!((covers, reason), (Covers::Everything, Reason::Credentials));
    for word in [
        "access_key_id",
        "access_key_secret",
        "ALIBABA_CLOUD_ACCESS_KEY_ID",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        "CLI profile",
        "instance role",
        "RRSA",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(rig.server.calls().is_empty());
}

// P52
#[tokio::test]
async fn wrong_credentials_are_an_error_that_shows_no_secret() {
    let wrong = |options: &mut gpuwatch_collector_aliyun::AliyunOptions| {
        options.access_key_secret = Some(SecretSource::value("wr0ng-secret"));
    };
    let rig = Rig::new(&world(), wrong).await;
    let (covers, reason, text) = refusal(&rig.discover().await);
    assert_eq!((covers, reason), (Covers::Everything, Reason::Credentials));
    assert!(
        !text.contains("wr0ng-secret") && !text.contains(ACCESS_KEY_ID),
        "{text}"
    );
    let rig = Rig::new(&world(), |options| options.access_key_secret = None).await;
    let (_, reason, text) = refusal(&rig.discover().await);
    assert_eq!(reason, Reason::Credentials);
    assert!(text.contains("go together"), "{text}");
}
