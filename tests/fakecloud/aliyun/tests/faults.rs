//! Injected faults, each in the shape of the real service.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise and runs by the wall clock"
)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use gpuwatch_fakecloud_aliyun::{InstanceSpec, ReservedInstanceSpec};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server};
use serde_json::Value;
use support::{Answer, Client, REGION, UID, serve, world};

const FLEET: usize = 30;

async fn with_fleet() -> (Server, Client) {
    let world = world();
    world.add_instances(UID, REGION, FLEET, &InstanceSpec::default());
    world.add_reserved_instance(UID, REGION, ReservedInstanceSpec::default());
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    (server, client)
}

async fn page(client: &Client, token: &str) -> Answer {
    let params = [("RegionId", REGION), ("MaxResults", "100"), ("NextToken", token)];
    client.ecs("DescribeInstances", &params).await
}

fn instances(answer: &Answer) -> Vec<Value> {
    answer.body["Instances"]["Instance"].as_array().unwrap().clone()
}

fn ids(rows: &[Value]) -> BTreeSet<&str> {
    rows.iter().filter_map(|row| row["InstanceId"].as_str()).collect()
}

#[tokio::test]
async fn failures_have_the_codes_of_each_product() {
    let (server, client) = with_fleet().await;
    for (kind, ecs, sts, bss) in [
        (
            FaultKind::Throttled { retry_after: Some(2) },
            (400, "Throttling.User"),
            (400, "Throttling.User"),
            (400, "Throttling"),
        ),
        (
            FaultKind::InternalError,
            (500, "InternalError"),
            (500, "InternalError"),
            (500, "InternalError"),
        ),
        (
            FaultKind::ExpiredToken,
            (400, "InvalidSecurityToken.Expired"),
            (400, "InvalidSecurityToken.Expired"),
            (400, "InvalidSecurityToken.Expired"),
        ),
        (
            FaultKind::AccessDenied,
            (403, "Forbidden.RAM"),
            (403, "NoPermission"),
            (403, "NotAuthorized"),
        ),
        (
            FaultKind::AuthFailure,
            (404, "InvalidAccessKeyId.NotFound"),
            (404, "InvalidAccessKeyId.NotFound"),
            (404, "InvalidAccessKeyId.NotFound"),
        ),
        (
            FaultKind::OptInRequired,
            (404, "InvalidRegionId.NotFound"),
            (404, "InvalidOperation.NotSupportedEndpoint"),
            (400, "NotApplicable"),
        ),
    ] {
        let fault = server
            .faults()
            .add(FaultRule::new(kind).provider("aliyun").account(UID));
        let answer = page(&client, "").await;
        assert_eq!(answer.outcome(), ecs, "{kind}");
        if kind == (FaultKind::Throttled { retry_after: Some(2) }) {
            assert_eq!(answer.header("x-acs-retry-after"), "2000", "milliseconds");
        }
        assert_eq!(client.sts("GetCallerIdentity", &[]).await.outcome(), sts, "{kind}");
        assert_eq!(
            client.bss("QuerySavingsPlansInstance", &[]).await.outcome(),
            bss,
            "{kind}"
        );
        server.faults().remove(fault);
    }
    assert_eq!(page(&client, "").await.status, 200);
}

#[tokio::test]
async fn faults_hit_one_region_and_leave_the_others() {
    let (server, client) = with_fleet().await;
    server
        .faults()
        .add(FaultRule::new(FaultKind::InternalError).service("ecs").region(REGION));
    assert_eq!(page(&client, "").await.status, 500);
    let other = client.ecs("DescribeInstances", &[("RegionId", "ap-southeast-1")]).await;
    assert_eq!(other.status, 200);
    let log: Vec<_> = server
        .calls()
        .into_iter()
        .map(|call| (call.operation, call.region, call.account))
        .collect();
    assert_eq!(
        log[0],
        ("DescribeInstances".to_owned(), REGION.to_owned(), UID.to_owned())
    );
}

// P46
#[tokio::test]
async fn a_hanging_call_does_not_end() {
    let (server, client) = with_fleet().await;
    server.faults().add(FaultRule::new(FaultKind::Hang));
    let call = page(&client, "");
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
}

// P48
#[tokio::test]
async fn odd_rows_are_added_and_none_is_lost() {
    let (server, client) = with_fleet().await;
    let before = instances(&page(&client, "").await);
    for kind in [
        FaultKind::MalformedRecord,
        FaultKind::UnknownEnum,
        FaultKind::DuplicateRows,
        FaultKind::ReorderedRows,
        FaultKind::PartialResult,
    ] {
        let fault = server.faults().add(FaultRule::new(kind));
        let answer = page(&client, "").await;
        let rows = instances(&answer);
        assert_eq!(ids(&rows), ids(&before), "{kind}");
        match kind {
            FaultKind::MalformedRecord => assert_eq!(rows.len(), FLEET + 1),
            FaultKind::DuplicateRows => assert_eq!(rows.len(), FLEET * 2),
            FaultKind::UnknownEnum => {
                assert_eq!(rows[0]["Status"], "Foo");
                assert_eq!(rows[1]["InstanceChargeType"], "Foo");
            }
            _ => assert_eq!(rows.len(), FLEET),
        }
        server.faults().remove(fault);
    }
}

// P53
#[tokio::test]
async fn an_empty_page_has_a_token_that_goes_on() {
    let (server, client) = with_fleet().await;
    server.faults().add(FaultRule::new(FaultKind::EmptyPage));
    let first = page(&client, "").await;
    assert!(instances(&first).is_empty());
    let token = first.body["NextToken"].as_str().unwrap().to_owned();
    let second = page(&client, &token).await;
    assert_eq!(instances(&second).len(), FLEET);
    assert_eq!(second.body["NextToken"], "");
}

#[tokio::test]
async fn listings_can_be_without_end() {
    let (server, client) = with_fleet().await;
    for (kind, distinct) in [(FaultKind::EndlessToken, 5), (FaultKind::RepeatedToken, 1)] {
        let fault = server.faults().add(FaultRule::new(kind));
        let (mut token, mut seen) = (String::new(), BTreeSet::new());
        for number in 1..=5 {
            let answer = page(&client, &token).await;
            answer.body["NextToken"].as_str().unwrap().clone_into(&mut token);
            seen.insert(token.clone());
            let number = number.to_string();
            let params = [("RegionId", REGION), ("PageSize", "10"), ("PageNumber", &number)];
            let numbered = client.ecs("DescribeReservedInstances", &params).await;
            let total = numbered.body["TotalCount"].as_u64().unwrap();
            assert!(total > 10 * number.parse::<u64>().unwrap(), "{kind}");
        }
        assert_eq!(seen.len(), distinct, "{kind}");
        server.faults().remove(fault);
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_are_sent_as_they_are() {
    let (server, client) = with_fleet().await;
    for (kind, status) in [
        (FaultKind::HtmlError, 500),
        (FaultKind::HtmlSuccess, 200),
        (FaultKind::CutOffDocument, 200),
    ] {
        server.faults().add(FaultRule::new(kind).times(1));
        let answer = page(&client, "").await;
        assert_eq!((answer.status, &answer.body), (status, &Value::Null), "{kind}");
    }
}
