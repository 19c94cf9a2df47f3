//! Who may call: signatures, clocks, nonces, sessions, roles, permissions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise and runs by the wall clock"
)]

mod support;

use gpuwatch_fakecloud_aliyun::{AccountSpec, InstanceSpec, SavingsPlanSpec, Site};
use jiff::SignedDuration;
use support::{Client, OTHER, REGION, Scheme, UID, answer, http, serve, world};

#[tokio::test]
async fn both_schemes_and_both_places_of_parameters_are_accepted() {
    let world = world();
    world.add_instance(UID, REGION, InstanceSpec::default().named("训练 节点~*'()+/=&%"));
    let server = serve(&world).await;
    for scheme in [Scheme::V3, Scheme::V3Form, Scheme::V1] {
        let client = Client {
            scheme,
            ..Client::new(&server, &world)
        };
        let params = [
            ("RegionId", REGION),
            ("InstanceName", "训练 节点~*'()+/=&%"),
            ("MaxResults", "100"),
        ];
        let answer = client.ecs("DescribeInstances", &params).await;
        assert_eq!(answer.status, 200, "{scheme:?} {}", answer.text);
        assert_eq!(
            answer.body["Instances"]["Instance"].as_array().unwrap().len(),
            1,
            "{scheme:?}"
        );
        let identity = client.sts("GetCallerIdentity", &[]).await;
        assert_eq!(identity.body["AccountId"], UID);
        assert_eq!(identity.body["IdentityType"], "RAMUser");
    }
}

#[tokio::test]
async fn wrong_keys_are_refused_in_the_services_words() {
    let world = world();
    let server = serve(&world).await;
    for scheme in [Scheme::V3, Scheme::V1] {
        let mut client = Client {
            scheme,
            ..Client::new(&server, &world)
        };
        client.keys.access_key_secret = "wrong".to_owned();
        let refused = client.ecs("DescribeRegions", &[]).await;
        assert_eq!(refused.outcome(), (400, "SignatureDoesNotMatch"), "{scheme:?}");
        let message = refused.body["Message"].as_str().unwrap();
        assert!(message.contains("server string to sign is:"), "{message}");
        for member in ["RequestId", "HostId", "Recommend"] {
            assert!(!refused.body[member].as_str().unwrap().is_empty(), "{member}");
        }
        client.keys.access_key_id = "LTAI5tnobody".to_owned();
        let unknown = client.ecs("DescribeRegions", &[]).await;
        assert_eq!(unknown.outcome(), (404, "InvalidAccessKeyId.NotFound"));
        client.keys = world.base_keys();
        world.set_key_active(&client.keys.access_key_id, false);
        let inactive = client.ecs("DescribeRegions", &[]).await;
        assert_eq!(inactive.outcome(), (400, "InvalidAccessKeyId.Inactive"));
        world.set_key_active(&client.keys.access_key_id, true);
    }
    let unsigned = answer(http().get(format!("{}/?Action=DescribeRegions&Version=2014-05-26", server.url()))).await;
    assert_eq!(unsigned.outcome(), (400, "MissingAccessKeyId"));
}

#[tokio::test]
async fn every_header_of_the_service_must_be_signed() {
    let world = world();
    let server = serve(&world).await;
    for name in [
        "host",
        "x-acs-action",
        "x-acs-version",
        "x-acs-signature-nonce",
        "x-acs-content-sha256",
    ] {
        let leave_unsigned = Some(name);
        let client = Client {
            leave_unsigned,
            ..Client::new(&server, &world)
        };
        let refused = client.ecs("DescribeRegions", &[]).await;
        assert_eq!(refused.outcome(), (400, "IncompleteSignature"), "{name}");
    }
}

#[tokio::test]
async fn a_quarter_of_an_hour_of_clock_skew_is_tolerated() {
    let world = world();
    let server = serve(&world).await;
    for (minutes, fine) in [(14, true), (-14, true), (16, false), (-16, false)] {
        for scheme in [Scheme::V3, Scheme::V1] {
            let skew = SignedDuration::from_mins(minutes);
            let client = Client {
                scheme,
                skew,
                ..Client::new(&server, &world)
            };
            let answer = client.ecs("DescribeRegions", &[]).await;
            let expected = if fine {
                (200, "")
            } else {
                (400, "InvalidTimeStamp.Expired")
            };
            assert_eq!(answer.outcome(), expected, "{minutes} {scheme:?}");
        }
    }
    world.set_clock_offset(SignedDuration::from_hours(2));
    let client = Client::new(&server, &world);
    let late = client.ecs("DescribeRegions", &[]).await;
    assert_eq!(late.outcome(), (400, "InvalidTimeStamp.Expired"));
    // The service's own time is in the answer, so that a client can follow it.
    let date = jiff::fmt::rfc2822::parse(late.header("date")).unwrap().timestamp();
    let skew = date.duration_since(jiff::Timestamp::now());
    assert!((skew.as_secs() - 7200).abs() < 60, "{skew}");
    let followed = Client { skew, ..client };
    assert_eq!(followed.ecs("DescribeRegions", &[]).await.status, 200);
}

#[tokio::test]
async fn a_nonce_serves_once() {
    let world = world();
    let server = serve(&world).await;
    let nonce = Some("the-same".to_owned());
    let client = Client {
        nonce,
        ..Client::new(&server, &world)
    };
    assert_eq!(client.ecs("DescribeRegions", &[]).await.status, 200);
    let again = client.ecs("DescribeRegions", &[]).await;
    assert_eq!(again.outcome(), (400, "SignatureNonceUsed"));
    let older = Client {
        scheme: Scheme::V1,
        ..client
    };
    assert_eq!(older.ecs("DescribeRegions", &[]).await.code(), "SignatureNonceUsed");
}

#[tokio::test]
async fn a_role_gives_a_session_in_its_account_until_it_ends() {
    let world = world();
    let external_id = Some("gpuwatch-7".to_owned());
    let roles = Some(vec!["reader".to_owned()]);
    world.add_account(
        OTHER,
        AccountSpec {
            external_id,
            roles,
            ..AccountSpec::default()
        },
    );
    world.add_instance(OTHER, REGION, InstanceSpec::default());
    let server = serve(&world).await;
    let mut client = Client::new(&server, &world);
    let arn = format!("acs:ram::{OTHER}:role/reader");
    let role = [
        ("RoleArn", arn.as_str()),
        ("RoleSessionName", "gpuwatch"),
        ("ExternalId", "gpuwatch-7"),
    ];
    assert_eq!(
        client.sts("AssumeRole", &role[..2]).await.outcome(),
        (403, "NoPermission")
    );
    let other = format!("acs:ram::{OTHER}:role/writer");
    let none = [
        ("RoleArn", other.as_str()),
        ("RoleSessionName", "gpuwatch"),
        ("ExternalId", "gpuwatch-7"),
    ];
    assert_eq!(
        client.sts("AssumeRole", &none).await.outcome(),
        (404, "EntityNotExist.Role")
    );
    let long = [&role[..], &[("DurationSeconds", "3601")]].concat();
    assert_eq!(
        client.sts("AssumeRole", &long).await.code(),
        "InvalidParameter.DurationSeconds"
    );
    let granted = client.sts("AssumeRole", &role).await;
    assert_eq!(granted.status, 200, "{}", granted.text);
    let credentials = &granted.body["Credentials"];
    let text = |name: &str| credentials[name].as_str().unwrap().to_owned();
    client.keys.access_key_id = text("AccessKeyId");
    client.keys.access_key_secret = text("AccessKeySecret");
    let token = text("SecurityToken");
    let expiry: jiff::Timestamp = text("Expiration").parse().unwrap();
    let life = expiry.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((3590..=3600).contains(&life), "{life}");

    assert_eq!(
        client.ecs("DescribeRegions", &[]).await.code(),
        "InvalidAccessKeyId.NotFound"
    );
    client.keys.security_token = Some("CAISother".to_owned());
    let refused = client.ecs("DescribeRegions", &[]).await;
    assert_eq!(refused.code(), "InvalidSecurityToken.MismatchWithAccessKey");
    client.keys.security_token = Some(token);
    for scheme in [Scheme::V3, Scheme::V1] {
        client.scheme = scheme;
        assert_eq!(client.instances(REGION).await.0.len(), 1);
        let identity = client.sts("GetCallerIdentity", &[]).await;
        assert_eq!(identity.body["AccountId"], OTHER);
        assert_eq!(
            identity.body["Arn"],
            format!("acs:ram::{OTHER}:assumed-role/reader/gpuwatch")
        );
    }
    world.expire_sessions();
    let ended = client.ecs("DescribeRegions", &[]).await;
    assert_eq!(ended.outcome(), (400, "InvalidSecurityToken.Expired"));
}

#[tokio::test]
async fn a_token_of_the_identity_provider_opens_a_role_without_a_signature() {
    let world = world();
    let server = serve(&world).await;
    let arn = format!("acs:ram::{UID}:role/gpuwatch");
    let provider = format!("acs:ram::{UID}:oidc-provider/ack-rrsa");
    let ask = |token: String| {
        let request = http().get(format!("{}/", server.url())).query(&[
            ("Action", "AssumeRoleWithOIDC"),
            ("Version", "2015-04-01"),
            ("Format", "JSON"),
            ("RoleArn", &arn),
            ("OIDCProviderArn", &provider),
            ("OIDCToken", &token),
            ("RoleSessionName", "gpuwatch"),
        ]);
        answer(request)
    };
    let granted = ask(world.oidc_token(SignedDuration::from_hours(1))).await;
    assert_eq!(granted.status, 200, "{}", granted.text);
    assert!(
        granted.body["Credentials"]["AccessKeyId"]
            .as_str()
            .unwrap()
            .starts_with("STS.")
    );
    let old = ask(world.oidc_token(SignedDuration::from_secs(-1))).await;
    assert_eq!(old.code(), "AuthenticationFail.OIDCToken.Expired");
    assert_eq!(
        ask("a.b.c".to_owned()).await.code(),
        "AuthenticationFail.OIDCToken.Invalid"
    );
}

#[tokio::test]
async fn the_metadata_service_tells_the_machines_keys() {
    let world = world();
    let server = serve(&world).await;
    let url = |path: &str| format!("{}/latest/{path}", server.url());
    let roles = "meta-data/ram/security-credentials/";
    assert_eq!(answer(http().get(url(roles))).await.status, 404);
    world.set_metadata_role(UID, "gpuwatch");
    assert_eq!(answer(http().get(url(roles))).await.text, "gpuwatch");
    world.require_metadata_tokens(true);
    assert_eq!(answer(http().get(url(roles))).await.status, 403);
    let put = |seconds: &str| {
        let request = http().put(url("api/token"));
        answer(request.header("X-aliyun-ecs-metadata-token-ttl-seconds", seconds))
    };
    assert_eq!(put("21601").await.status, 400);
    let token = put("21600").await.text;
    let get = |path: String| {
        answer(
            http()
                .get(url(&path))
                .header("X-aliyun-ecs-metadata-token", token.as_str()),
        )
    };
    assert_eq!(get(roles.to_owned()).await.text, "gpuwatch");
    let wrong = get(format!("{roles}other")).await;
    assert_eq!(wrong.status, 404);
    assert!(wrong.text.contains("<html"), "a page, not JSON");
    let keys = get(format!("{roles}gpuwatch")).await.body;
    assert_eq!(keys["Code"], "Success");
    let mut client = Client::new(&server, &world);
    keys["AccessKeyId"]
        .as_str()
        .unwrap()
        .clone_into(&mut client.keys.access_key_id);
    keys["AccessKeySecret"]
        .as_str()
        .unwrap()
        .clone_into(&mut client.keys.access_key_secret);
    client.keys.security_token = keys["SecurityToken"].as_str().map(str::to_owned);
    assert_eq!(client.sts("GetCallerIdentity", &[]).await.body["AccountId"], UID);
}

// P47
#[tokio::test]
async fn a_caller_without_permission_sees_an_empty_list_and_a_dry_run_tells() {
    let world = world();
    world.add_instance(UID, REGION, InstanceSpec::default());
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let dry = [("RegionId", REGION), ("DryRun", "true")];
    assert_eq!(
        client.ecs("DescribeInstances", &dry).await.outcome(),
        (400, "DryRunOperation")
    );
    world.deny(UID, "ecs:DescribeInstances");
    assert_eq!(client.instances(REGION).await.0.len(), 0);
    let refused = client.ecs("DescribeInstances", &dry).await;
    assert_eq!(refused.outcome(), (403, "Forbidden.RAM"));
    let detail = &refused.body["AccessDeniedDetail"];
    assert_eq!(detail["AuthAction"], "ecs:DescribeInstances");
    assert_eq!(detail["AuthPrincipalType"], "SubUser");
    world.allow(UID, "ecs:DescribeInstances");
    assert_eq!(client.instances(REGION).await.0.len(), 1);
}

// P47
#[tokio::test]
async fn other_actions_say_that_they_are_refused() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    for denied in ["ecs:*", "sts:AssumeRole", "bssapi:QuerySavingsPlansInstance"] {
        world.deny(UID, denied);
    }
    for action in [
        "DescribeRegions",
        "DescribeInstanceTypes",
        "DescribeReservedInstances",
        "DescribeInstanceAutoRenewAttribute",
        "DescribeElasticityAssurances",
        "DescribeCapacityReservations",
    ] {
        let refused = client.ecs(action, &[("RegionId", REGION)]).await;
        assert_eq!(refused.outcome(), (403, "Forbidden.RAM"), "{action}");
    }
    let arn = format!("acs:ram::{UID}:role/x");
    let role = [("RoleArn", arn.as_str()), ("RoleSessionName", "gpuwatch")];
    assert_eq!(client.sts("AssumeRole", &role).await.outcome(), (403, "NoPermission"));
    let refused = client.bss("QuerySavingsPlansInstance", &[]).await;
    assert_eq!(refused.outcome(), (403, "NotAuthorized"));
    assert_eq!(
        client.sts("GetCallerIdentity", &[]).await.status,
        200,
        "needs no permission"
    );
}

#[tokio::test]
async fn regions_that_are_closed_or_not_enabled_do_not_exist() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let listed = || async {
        let answer = client.ecs("DescribeRegions", &[("AcceptLanguage", "en-US")]).await;
        let rows = answer.body["Regions"]["Region"].as_array().unwrap().clone();
        let ids = rows.iter().map(|row| row["RegionId"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [REGION, "ap-southeast-1"]);
    for region in ["cn-shanghai-finance-1", "ap-south-1", "mars-1"] {
        let refused = client.ecs("DescribeInstances", &[("RegionId", region)]).await;
        assert_eq!(refused.outcome(), (404, "InvalidRegionId.NotFound"), "{region}");
    }
    world.set_region_enabled(UID, "cn-shanghai-finance-1", true);
    assert_eq!(listed().await.len(), 3);
    assert!(client.instances("cn-shanghai-finance-1").await.0.is_empty());
}

// P40, P44
#[tokio::test]
async fn a_region_answers_at_its_own_host_only() {
    let world = world();
    let server = serve(&world).await;
    for (host, fine) in [
        ("ecs-cn-hangzhou.aliyuncs.com", true),
        ("ecs.ap-southeast-1.aliyuncs.com", false),
    ] {
        let host = Some(host.to_owned());
        let client = Client {
            host,
            ..Client::new(&server, &world)
        };
        let answer = client.ecs("DescribeInstances", &[("RegionId", REGION)]).await;
        let expected = if fine {
            (200, "")
        } else {
            (404, "InvalidOperation.NotSupportedEndpoint")
        };
        assert_eq!(answer.outcome(), expected);
    }
}

// P44
#[tokio::test]
async fn the_billing_product_knows_the_accounts_of_its_own_site_only() {
    let world = world();
    world.add_savings_plan(UID, SavingsPlanSpec::default());
    world.add_account(
        OTHER,
        AccountSpec {
            site: Site::International,
            ..AccountSpec::default()
        },
    );
    world.add_savings_plan(OTHER, SavingsPlanSpec::default());
    let server = serve(&world).await;
    let ask = |keys, host: &str| {
        let host = Some(host.to_owned());
        let client = Client {
            host,
            keys,
            ..Client::new(&server, &world)
        };
        async move { client.bss("QuerySavingsPlansInstance", &[]).await }
    };
    let (china, abroad) = ("business.aliyuncs.com", "business.ap-southeast-1.aliyuncs.com");
    let other = world.add_access_key(OTHER);
    assert_eq!(ask(world.base_keys(), abroad).await.outcome(), (400, "NotApplicable"));
    assert_eq!(ask(other.clone(), china).await.outcome(), (400, "NotApplicable"));
    for (keys, host, currency) in [(world.base_keys(), china, "CNY"), (other, abroad, "USD")] {
        assert_eq!(ask(keys, host).await.body["Data"]["Items"][0]["Currency"], currency);
    }
    // At an address that is no host of the product, a switch says so.
    let client = Client::new(&server, &world);
    world.set_wrong_site(UID, true);
    assert_eq!(
        client.bss("QuerySavingsPlansInstance", &[]).await.code(),
        "NotApplicable"
    );
    world.set_wrong_site(UID, false);
    world.set_billing_refusal(UID, Some("NotAuthorized"));
    let refused = client.bss("QuerySavingsPlansInstance", &[]).await;
    assert_eq!(
        (refused.status, &refused.body["Success"]),
        (200, &serde_json::json!(false))
    );
    assert_eq!(refused.code(), "NotAuthorized");
}
