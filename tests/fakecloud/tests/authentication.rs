//! Signatures, sessions, regions and partitions are checked as AWS does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud::aws::{AccountSpec, Keys, OptIn, Partition, World};
use jiff::SignedDuration;
use support::client::{Client, exchange};
use support::{BASE, MEMBER, serve, small_world};

const ROLE: &str = "arn:aws:iam::444455556666:role/gpuwatch";

async fn assume(client: &Client, parameters: &[(&str, &str)]) -> Client {
    let answer = client.sts("AssumeRole", parameters).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let keys = Keys {
        access_key_id: answer.text("AccessKeyId").to_owned(),
        secret_access_key: answer.text("SecretAccessKey").to_owned(),
        session_token: Some(answer.text("SessionToken").to_owned()),
    };
    Client { keys, ..client.clone() }
}

#[tokio::test]
async fn caller_is_told_who_it_is() {
    let fake = serve(&small_world()).await;
    let client = Client::new(&fake, "us-east-1");
    let answer = client.sts("GetCallerIdentity", &[]).await;
    assert_eq!(answer.text("Account"), BASE);
    assert_eq!(answer.text("Arn"), "arn:aws:iam::111122223333:user/gpuwatch");

    let session = assume(&client, &[("RoleArn", ROLE), ("RoleSessionName", "me")]).await;
    let answer = session.sts("GetCallerIdentity", &[]).await;
    assert_eq!(answer.text("Account"), MEMBER);
    assert_eq!(answer.text("Arn"), "arn:aws:sts::444455556666:assumed-role/gpuwatch/me");
}

#[tokio::test]
async fn wrong_key_or_secret_or_token_is_refused() {
    let fake = serve(&small_world()).await;
    let good = Client::new(&fake, "us-east-1");
    let with = |change: fn(&mut Keys)| {
        let mut client = good.clone();
        change(&mut client.keys);
        client
    };
    let unknown = with(|keys| keys.access_key_id = "AKIDNOBODY".to_owned());
    let forged = with(|keys| keys.secret_access_key = "guess".to_owned());
    let token = with(|keys| keys.session_token = Some("left over".to_owned()));
    for client in [&unknown, &forged, &token] {
        let answer = client.ec2("DescribeRegions", &[]).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "AuthFailure"));
    }
    assert_eq!(
        unknown.sts("GetCallerIdentity", &[]).await.code(),
        "InvalidClientTokenId"
    );
    assert_eq!(
        forged.sts("GetCallerIdentity", &[]).await.code(),
        "SignatureDoesNotMatch"
    );
    assert_eq!(
        unknown.organizations("ListAccounts", "{}").await.code(),
        "UnrecognizedClientException"
    );
    assert_eq!(
        forged
            .savings_plans("DescribeSavingsPlans", "{}")
            .await
            .code()
            .to_lowercase(),
        "invalidsignatureexception"
    );
    let calls = fake.calls();
    assert!(
        calls.iter().all(|call| !call.succeeded() && call.account.is_empty()),
        "{calls:?}"
    );
}

#[tokio::test]
async fn session_keys_need_their_token() {
    let fake = serve(&small_world()).await;
    let client = Client::new(&fake, "us-east-1");
    let mut session = assume(&client, &[("RoleArn", ROLE), ("RoleSessionName", "me")]).await;
    assert_eq!(session.ec2("DescribeRegions", &[]).await.status, 200);
    session.keys.session_token = None;
    assert_eq!(session.ec2("DescribeRegions", &[]).await.code(), "AuthFailure");
}

#[tokio::test]
async fn unsigned_call_is_refused() {
    let fake = serve(&small_world()).await;
    let host = fake.url().trim_start_matches("http://").to_owned();
    let body = "Action=DescribeRegions&Version=2016-11-15";
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(exchange(&host, &request).await.unwrap().code(), "AuthFailure");
}

#[tokio::test]
async fn clock_more_than_a_quarter_of_an_hour_off_is_refused() {
    let fake = serve(&small_world()).await;
    for (minutes, fine) in [(-20, false), (-10, true), (0, true), (10, true), (20, false)] {
        let mut client = Client::new(&fake, "us-east-1");
        client.skew = SignedDuration::from_mins(minutes);
        let answer = client.ec2("DescribeRegions", &[]).await;
        assert_eq!(answer.status == 200, fine, "{minutes} minutes");
        if !fine {
            assert_eq!(answer.code(), "RequestExpired");
            assert_eq!(
                client.sts("GetCallerIdentity", &[]).await.code(),
                "SignatureDoesNotMatch"
            );
        }
    }
}

#[tokio::test]
async fn signature_for_another_service_is_refused() {
    let fake = serve(&small_world()).await;
    let mut client = Client::new(&fake, "us-east-1");
    client.scope_service = Some("ec2".to_owned());
    let answer = client.sts("GetCallerIdentity", &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "SignatureDoesNotMatch"));
}

#[tokio::test]
async fn ended_session_is_told_apart_from_a_wrong_key() {
    let world = small_world();
    let fake = serve(&world).await;
    let client = Client::new(&fake, "us-east-1");
    let session = assume(&client, &[("RoleArn", ROLE), ("RoleSessionName", "me")]).await;
    world.expire_sessions();
    assert_eq!(session.ec2("DescribeInstances", &[]).await.code(), "RequestExpired");
    let answer = session.sts("GetCallerIdentity", &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "ExpiredToken"));

    world.set_session_limit(SignedDuration::ZERO);
    let session = assume(&client, &[("RoleArn", ROLE), ("RoleSessionName", "me")]).await;
    assert_eq!(session.ec2("DescribeInstances", &[]).await.code(), "RequestExpired");
}

#[tokio::test]
async fn region_works_once_the_account_opts_in() {
    let world = small_world();
    let fake = serve(&world).await;
    let client = Client::new(&fake, "ap-east-1");
    let answer = client.ec2("DescribeInstances", &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "AuthFailure"));
    assert_eq!(
        client.sts("GetCallerIdentity", &[]).await.code(),
        "InvalidClientTokenId"
    );
    world.set_opted_in(BASE, "ap-east-1", true);
    assert_eq!(client.ec2("DescribeInstances", &[]).await.status, 200);
    assert_eq!(client.sts("GetCallerIdentity", &[]).await.status, 200);
    assert_eq!(
        Client::new(&fake, "mars-east-1")
            .ec2("DescribeInstances", &[])
            .await
            .code(),
        "AuthFailure"
    );
}

#[tokio::test]
async fn sts_can_be_off_in_a_region() {
    let world = small_world();
    world.disable_sts("us-west-2");
    let fake = serve(&world).await;
    let answer = Client::new(&fake, "us-west-2").sts("GetCallerIdentity", &[]).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "RegionDisabledException")
    );
    assert_eq!(
        Client::new(&fake, "us-east-1")
            .sts("GetCallerIdentity", &[])
            .await
            .status,
        200
    );
}

// P40
#[tokio::test]
async fn china_accepts_only_its_own_regions() {
    let fake = serve(&World::demo_china(1)).await;
    for region in ["us-east-1", "aws-global", "us-gov-west-1"] {
        let answer = Client::new(&fake, region).sts("GetCallerIdentity", &[]).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "InvalidClientTokenId"),
            "{region}"
        );
    }
    let answer = Client::new(&fake, "cn-north-1").sts("GetCallerIdentity", &[]).await;
    assert!(answer.text("Arn").starts_with("arn:aws-cn:iam::"), "{}", answer.body);
    let home = Client::new(&fake, "cn-northwest-1");
    assert_eq!(home.organizations("ListAccounts", "{}").await.status, 200);
    assert_eq!(
        home.ec2("DescribeRegions", &[]).await.texts("regionName"),
        ["cn-north-1", "cn-northwest-1"]
    );
}

#[tokio::test]
async fn global_services_take_only_their_home_region() {
    let fake = serve(&small_world()).await;
    let elsewhere = Client::new(&fake, "us-west-2");
    assert_eq!(
        elsewhere.organizations("ListAccounts", "{}").await.code(),
        "InvalidSignatureException"
    );
    assert_eq!(elsewhere.savings_plans("DescribeSavingsPlans", "{}").await.status, 403);
}

#[tokio::test]
async fn assume_role_checks_its_parameters_and_the_role() {
    let world = small_world();
    let strict = AccountSpec {
        external_id: Some("s3cret-id".to_owned()),
        roles: Some(vec!["reader".to_owned()]),
        ..AccountSpec::default()
    };
    world.add_account("999900001111", strict);
    let fake = serve(&world).await;
    let client = Client::new(&fake, "us-east-1");
    let reader = "arn:aws:iam::999900001111:role/reader";
    let name = ("RoleSessionName", "gpuwatch");
    for (parameters, code) in [
        (vec![("RoleArn", ROLE)], "ValidationError"),
        (vec![name], "ValidationError"),
        (vec![("RoleArn", ROLE), ("RoleSessionName", "x")], "ValidationError"),
        (
            vec![("RoleArn", ROLE), ("RoleSessionName", "no blanks")],
            "ValidationError",
        ),
        (
            vec![("RoleArn", ROLE), name, ("DurationSeconds", "899")],
            "ValidationError",
        ),
        (vec![("RoleArn", ROLE), name, ("ExternalId", "x")], "ValidationError"),
        (
            vec![("RoleArn", "arn:aws:iam::000000000000:role/gpuwatch"), name],
            "AccessDenied",
        ),
        (
            vec![("RoleArn", "arn:aws-cn:iam::444455556666:role/gpuwatch"), name],
            "AccessDenied",
        ),
        (vec![("RoleArn", reader), name], "AccessDenied"),
        (vec![("RoleArn", reader), name, ("ExternalId", "wrong")], "AccessDenied"),
        (
            vec![
                ("RoleArn", "arn:aws:iam::999900001111:role/other"),
                name,
                ("ExternalId", "s3cret-id"),
            ],
            "AccessDenied",
        ),
    ] {
        assert_eq!(
            client.sts("AssumeRole", &parameters).await.code(),
            code,
            "{parameters:?}"
        );
    }
    let session = assume(&client, &[("RoleArn", reader), name, ("ExternalId", "s3cret-id")]).await;
    let chained = [("RoleArn", ROLE), name, ("DurationSeconds", "7200")];
    assert_eq!(session.sts("AssumeRole", &chained).await.code(), "ValidationError");
    assert_eq!(session.sts("AssumeRole", &chained[..2]).await.status, 200);
}

#[tokio::test]
async fn accounts_do_not_see_each_other() {
    let world = World::with_regions(Partition::Aws, &[("us-east-1", OptIn::NotRequired)]);
    world.add_account(BASE, AccountSpec::default());
    world.add_account(MEMBER, AccountSpec::default());
    let mine = world
        .add_instance(BASE, "us-east-1", gpuwatch_fakecloud::aws::InstanceSpec::default())
        .unwrap();
    let theirs = world
        .add_instance(MEMBER, "us-east-1", gpuwatch_fakecloud::aws::InstanceSpec::default())
        .unwrap();
    let fake = serve(&world).await;
    let client = Client::new(&fake, "us-east-1");
    let session = assume(&client, &[("RoleArn", ROLE), ("RoleSessionName", "me")]).await;
    assert_eq!(client.ec2("DescribeInstances", &[]).await.text("instanceId"), mine);
    let answer = session.ec2("DescribeInstances", &[]).await;
    assert_eq!(
        (answer.text("instanceId"), answer.texts("ownerId")[0]),
        (theirs.as_str(), MEMBER)
    );
    assert_eq!(
        session.organizations("ListAccounts", "{}").await.code(),
        "AccessDeniedException"
    );
}
