//! Injected faults look on the wire as they do in the clouds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use gpuwatch_fakecloud::aws::{InstanceSpec, World};
use gpuwatch_fakecloud::{FakeCloud, FaultKind, FaultRule, Outcome};
use support::client::{Answer, Client};
use support::{BASE, serve, small_world};

const REGION: &str = "us-east-1";
const THROTTLED: FaultKind = FaultKind::Throttled { retry_after: Some(7) };

fn world_of_twelve() -> World {
    let world = small_world();
    world.add_instances(BASE, REGION, 12, &InstanceSpec::of("g5.xlarge"));
    world
}

async fn instances(fake: &FakeCloud, token: Option<&str>) -> Option<Answer> {
    let mut parameters = vec![("MaxResults", "5")];
    parameters.extend(token.map(|token| ("NextToken", token)));
    Client::new(fake, REGION)
        .query("ec2", "2016-11-15", "DescribeInstances", &parameters)
        .await
}

/// The answer to one call with a fault in force.
async fn spoilt(kind: FaultKind) -> (FakeCloud, Answer) {
    let fake = serve(&world_of_twelve()).await;
    fake.faults().add(FaultRule::new(kind).operation("DescribeInstances"));
    let answer = instances(&fake, None).await.expect("an answer");
    (fake, answer)
}

#[tokio::test]
async fn refusals_use_the_words_of_each_service() {
    for (kind, ec2, sts, organizations, plans) in [
        (
            THROTTLED,
            (503, "RequestLimitExceeded"),
            (400, "Throttling"),
            (400, "TooManyRequestsException"),
            (429, "throttlingexception"),
        ),
        (
            FaultKind::InternalError,
            (500, "InternalError"),
            (500, "InternalFailure"),
            (500, "ServiceException"),
            (500, "internalserverexception"),
        ),
        (
            FaultKind::ExpiredToken,
            (400, "RequestExpired"),
            (403, "ExpiredToken"),
            (400, "ExpiredTokenException"),
            (403, "expiredtokenexception"),
        ),
        (
            FaultKind::AccessDenied,
            (403, "UnauthorizedOperation"),
            (403, "AccessDenied"),
            (400, "AccessDeniedException"),
            (403, "accessdeniedexception"),
        ),
        (
            FaultKind::AuthFailure,
            (401, "AuthFailure"),
            (403, "InvalidClientTokenId"),
            (400, "UnrecognizedClientException"),
            (403, "unrecognizedclientexception"),
        ),
        (
            FaultKind::OptInRequired,
            (401, "OptInRequired"),
            (403, "OptInRequired"),
            (403, "OptInRequired"),
            (403, "optinrequired"),
        ),
    ] {
        let fake = serve(&small_world()).await;
        fake.faults().add(FaultRule::new(kind));
        let client = Client::new(&fake, REGION);
        for (answer, (status, code)) in [
            (client.ec2("DescribeInstances", &[]).await, ec2),
            (client.sts("GetCallerIdentity", &[]).await, sts),
            (client.organizations("ListAccounts", "{}").await, organizations),
            (client.savings_plans("DescribeSavingsPlans", "{}").await, plans),
        ] {
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{kind}");
            assert_eq!(
                answer.head.contains("retry-after: 7"),
                kind == THROTTLED,
                "{}",
                answer.head
            );
        }
        assert!(
            fake.calls()
                .iter()
                .all(|call| call.fault == Some(kind) && !call.succeeded())
        );
    }
}

#[tokio::test]
async fn access_denied_of_ec2_carries_an_encoded_message() {
    let (_fake, answer) = spoilt(FaultKind::AccessDenied).await;
    let message = answer.text("Message");
    assert!(
        message.contains("user/gpuwatch is not authorized to perform: ec2:DescribeInstances"),
        "{message}"
    );
    assert!(message.contains("Encoded authorization failure message: "), "{message}");
}

#[tokio::test]
async fn html_pages_come_with_success_or_failure() {
    for (kind, status) in [(FaultKind::HtmlError, 500), (FaultKind::HtmlSuccess, 200)] {
        let (_fake, answer) = spoilt(kind).await;
        assert_eq!(answer.status, status);
        assert!(answer.head.contains("text/html") && answer.body.starts_with("<!DOCTYPE html>"));
    }
}

#[tokio::test]
async fn truncated_body_is_shorter_than_announced() {
    let (_fake, answer) = spoilt(FaultKind::TruncatedBody).await;
    assert_eq!((answer.status, answer.whole), (200, false));
    assert!(answer.body.contains("<reservationSet>") && !answer.body.contains("</DescribeInstancesResponse>"));
}

#[tokio::test]
async fn cut_off_document_has_the_length_announced() {
    let (_fake, answer) = spoilt(FaultKind::CutOffDocument).await;
    assert_eq!((answer.status, answer.whole), (200, true));
    assert!(answer.body.contains("<reservationSet>") && !answer.body.contains("</DescribeInstancesResponse>"));
}

#[tokio::test]
async fn dropped_connection_sends_nothing() {
    let fake = serve(&world_of_twelve()).await;
    fake.faults().add(FaultRule::new(FaultKind::DropConnection).times(1));
    assert_eq!(instances(&fake, None).await, None);
    assert_eq!(fake.calls()[0].outcome, Outcome::Abandoned);
    assert_eq!(instances(&fake, None).await.unwrap().status, 200);
}

#[tokio::test]
async fn hanging_call_ends_only_with_the_fake() {
    let fake = serve(&world_of_twelve()).await;
    fake.faults()
        .add(FaultRule::new(FaultKind::Hang).operation("DescribeInstances"));
    let client = Client::new(&fake, REGION);
    let hanging = tokio::spawn(async move { client.query("ec2", "2016-11-15", "DescribeInstances", &[]).await });
    while fake.calls().first().is_none_or(|call| call.fault.is_none()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Others are served meanwhile.
    assert_eq!(Client::new(&fake, REGION).ec2("DescribeRegions", &[]).await.status, 200);
    assert!(!hanging.is_finished());
    let url = fake.url();
    fake.stop().await;
    assert_eq!(hanging.await.unwrap(), None);
    let address = url.trim_start_matches("http://").to_owned();
    assert!(
        tokio::net::TcpStream::connect(address).await.is_err(),
        "the port is free again"
    );
}

#[tokio::test]
async fn unknown_words_spoil_two_rows_and_no_more() {
    let (_fake, answer) = spoilt(FaultKind::UnknownEnum).await;
    assert_eq!(answer.texts("instanceLifecycle"), ["foo"]);
    let states = answer.texts("name");
    assert_eq!(states.iter().filter(|state| **state == "bar").count(), 1);
    assert_eq!(states.iter().filter(|state| **state == "running").count(), 4);
}

#[tokio::test]
async fn malformed_record_comes_on_top_of_the_good_ones() {
    let (_fake, answer) = spoilt(FaultKind::MalformedRecord).await;
    assert_eq!(answer.texts("instanceId").len(), 5);
    assert_eq!(answer.texts("instanceType").len(), 6);
}

#[tokio::test]
async fn order_and_repetition_keep_the_rows() {
    let fake = serve(&world_of_twelve()).await;
    let ids = |answer: &Answer| {
        answer
            .texts("instanceId")
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let plain = ids(&instances(&fake, None).await.unwrap());
    fake.faults().add(FaultRule::new(FaultKind::ReorderedRows).times(1));
    let mut reordered = ids(&instances(&fake, None).await.unwrap());
    assert_ne!(reordered, plain);
    reordered.reverse();
    assert_eq!(reordered, plain);
    fake.faults().add(FaultRule::new(FaultKind::DuplicateRows).times(1));
    let doubled = ids(&instances(&fake, None).await.unwrap());
    assert_eq!(doubled.len(), 10);
    assert_eq!(
        doubled.iter().collect::<BTreeSet<_>>(),
        plain.iter().collect::<BTreeSet<_>>()
    );
}

#[tokio::test]
async fn tokens_go_on_for_ever_or_repeat() {
    for (kind, distinct) in [(FaultKind::EndlessToken, 9), (FaultKind::RepeatedToken, 1)] {
        let fake = serve(&world_of_twelve()).await;
        fake.faults().add(FaultRule::new(kind));
        let mut token: Option<String> = None;
        let mut tokens = BTreeSet::new();
        for _ in 0..9 {
            let answer = instances(&fake, token.as_deref()).await.unwrap();
            token = Some(answer.text("nextToken").to_owned());
            tokens.extend(token.clone());
        }
        assert_eq!(tokens.len(), distinct, "{kind}");
    }
}

#[tokio::test]
async fn empty_page_leads_to_the_first_one() {
    let (fake, empty) = spoilt(FaultKind::EmptyPage).await;
    assert!(empty.texts("instanceId").is_empty());
    let first = instances(&fake, Some(empty.text("nextToken"))).await.unwrap();
    assert_eq!(first.texts("instanceId").len(), 5);
    assert_eq!(fake.calls().iter().filter(|call| call.succeeded()).count(), 2);
}

#[tokio::test]
async fn every_kind_of_fault_leaves_other_regions_alone() {
    let fake = serve(&world_of_twelve()).await;
    for kind in FaultKind::ALL {
        let id = fake.faults().add(FaultRule::new(*kind).region(REGION));
        let other = Client::new(&fake, "us-west-2").ec2("DescribeInstances", &[]).await;
        assert_eq!((other.status, other.whole), (200, true), "{kind}");
        assert_eq!(fake.faults().hits(id), 0);
        if *kind != FaultKind::Hang {
            let _ = instances(&fake, None).await;
            assert_eq!(fake.faults().hits(id), 1, "{kind}");
        }
        fake.faults().remove(id);
    }
}
