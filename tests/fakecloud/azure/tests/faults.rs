//! Every injected fault at every route, each in the shape of the real service.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod routes;
mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server};
use routes::{Answer, Client, ROWS, Request, fill, routes, world};
use serde_json::{Value, json};
use support::serve;

async fn start() -> (Server, Client) {
    let world = world();
    let server = serve(&world).await;
    fill(&world);
    let client = Client {
        http: reqwest::Client::new(),
        url: server.url(),
    };
    (server, client)
}

fn names(pages: &[Answer]) -> BTreeSet<String> {
    let rows = pages.iter().flat_map(Answer::rows);
    let id = |row: &Value| {
        let name = row.get("id").or_else(|| row.get("name"));
        name.and_then(Value::as_str).map(str::to_owned)
    };
    rows.filter_map(id).collect()
}

fn total(pages: &[Answer]) -> usize {
    pages.iter().map(|page| page.rows().len()).sum()
}

// P53
#[tokio::test]
async fn every_listing_is_whole_by_its_pages() {
    let (_server, client) = start().await;
    for route in routes() {
        let Some(rows) = route.rows else {
            assert_eq!(client.send(&route.request, None).await.unwrap().status, 200);
            continue;
        };
        let pages = client.walk(&route.request).await;
        assert_eq!(total(&pages), rows, "{}", route.operation);
        assert_eq!(names(&pages).len(), rows, "{}", route.operation);
        assert_eq!(pages.len(), rows.div_ceil(200), "{}", route.operation);
    }
}

#[tokio::test]
async fn a_link_is_good_for_its_own_listing() {
    let (_server, client) = start().await;
    let links: Vec<String> = {
        let mut links = Vec::new();
        for route in routes() {
            let page = client.send(&route.request, None).await.unwrap();
            links.extend(page.body["nextLink"].as_str().map(str::to_owned));
        }
        links
    };
    assert!(links.len() > 5);
    let (token_of, path_of) = (
        |link: &str| link.split_once("%24skiptoken=").unwrap().1.to_owned(),
        |link: &str| link.split_once("%24skiptoken=").unwrap().0.to_owned(),
    );
    for (at, link) in links.iter().enumerate() {
        let other = &links[(at + 1) % links.len()];
        for (token, status) in [(token_of(link), 200), (token_of(other), 400), ("1".to_owned(), 400)] {
            let request = Request::Get(format!("{}%24skiptoken={token}", path_of(link)));
            assert_eq!(client.send(&request, None).await.unwrap().status, status, "{link}");
        }
    }
}

#[tokio::test]
async fn refusals_have_the_words_of_each_service() {
    let (server, client) = start().await;
    for (kind, arm, graph, sign_in) in [
        (
            FaultKind::Throttled { retry_after: Some(2) },
            (429, "TooManyRequests"),
            (429, "RateLimiting"),
            (429, "temporarily_unavailable"),
        ),
        (
            FaultKind::InternalError,
            (500, "InternalServerError"),
            (500, "InternalServerError"),
            (500, "server_error"),
        ),
        (
            FaultKind::ExpiredToken,
            (401, "ExpiredAuthenticationToken"),
            (401, "ExpiredAuthenticationToken"),
            (401, "invalid_client"),
        ),
        (
            FaultKind::AuthFailure,
            (401, "InvalidAuthenticationToken"),
            (401, "InvalidAuthenticationToken"),
            (401, "invalid_client"),
        ),
        (
            FaultKind::AccessDenied,
            (403, "AuthorizationFailed"),
            (403, "AccessDenied"),
            (400, "unauthorized_client"),
        ),
        (
            FaultKind::OptInRequired,
            (403, "ReadOnlyDisabledSubscription"),
            (403, "ReadOnlyDisabledSubscription"),
            (400, "invalid_request"),
        ),
    ] {
        for route in routes() {
            let fault = server.faults().add(FaultRule::new(kind).operation(route.operation));
            let answer = client.send(&route.request, None).await.unwrap();
            let expected = match route.request {
                Request::Get(_) => arm,
                Request::Query(_) => graph,
                Request::SignIn | Request::Machine => sign_in,
            };
            assert_eq!((answer.status, answer.code()), expected, "{} {kind}", route.operation);
            let throttled = matches!(kind, FaultKind::Throttled { .. });
            assert_eq!(
                answer.retry_after.as_deref(),
                throttled.then_some("2"),
                "{}",
                route.operation
            );
            let is_query = matches!(route.request, Request::Query(_));
            assert_eq!(answer.quota.as_deref(), (throttled && is_query).then_some("0"));
            server.faults().remove(fault);
        }
    }
}

#[tokio::test]
async fn answers_that_are_no_json_or_do_not_come() {
    let (server, client) = start().await;
    for route in routes() {
        for (kind, status) in [
            (FaultKind::HtmlError, Some(500)),
            (FaultKind::HtmlSuccess, Some(200)),
            (FaultKind::CutOffDocument, Some(200)),
            (FaultKind::TruncatedBody, None),
            (FaultKind::DropConnection, None),
        ] {
            let fault = server.faults().add(FaultRule::new(kind).operation(route.operation));
            let answer = client.send(&route.request, None).await;
            match (answer, status) {
                (Ok(answer), Some(status)) => {
                    assert_eq!((answer.status, &answer.body), (status, &Value::Null), "{kind}");
                }
                (Err(_), None) => {}
                (answer, _) => panic!("{} {kind}: {:?}", route.operation, answer.map(|answer| answer.body)),
            }
            assert!(server.faults().hits(fault) >= 1);
            server.faults().remove(fault);
        }
    }
}

// P46
#[tokio::test]
async fn a_hanging_route_does_not_end_and_the_others_answer() {
    let (server, client) = start().await;
    let all = routes();
    for (at, route) in all.iter().enumerate() {
        let fault = server
            .faults()
            .add(FaultRule::new(FaultKind::Hang).operation(route.operation));
        let call = client.send(&route.request, None);
        assert!(
            tokio::time::timeout(Duration::from_millis(100), call).await.is_err(),
            "{}",
            route.operation
        );
        let other = all[at..]
            .iter()
            .chain(&all)
            .find(|other| other.operation != route.operation);
        assert_eq!(client.send(&other.unwrap().request, None).await.unwrap().status, 200);
        server.faults().remove(fault);
    }
}

// P48
#[tokio::test]
async fn odd_rows_are_added_and_none_is_lost() {
    let (server, client) = start().await;
    for route in routes() {
        let Some(rows) = route.rows else { continue };
        let before = client.walk(&route.request).await;
        let pages = before.len();
        for kind in [
            FaultKind::MalformedRecord,
            FaultKind::UnknownEnum,
            FaultKind::DuplicateRows,
            FaultKind::ReorderedRows,
            FaultKind::EmptyPage,
        ] {
            let fault = server.faults().add(FaultRule::new(kind).operation(route.operation));
            let after = client.walk(&route.request).await;
            let what = format!("{} {kind}", route.operation);
            assert!(names(&after).is_superset(&names(&before)), "{what}");
            let expected = match kind {
                FaultKind::MalformedRecord => rows + pages,
                FaultKind::DuplicateRows => rows * 2,
                _ => rows,
            };
            assert_eq!(total(&after), expected, "{what}");
            let first = &after[0].rows();
            match kind {
                FaultKind::EmptyPage => assert_eq!((first.len(), after.len()), (0, pages + 1), "{what}"),
                FaultKind::ReorderedRows => assert_eq!(first.first(), before[0].rows().last(), "{what}"),
                FaultKind::UnknownEnum => {
                    let words = [
                        &first[0]["properties"]["provisioningState"],
                        &first[0]["properties"]["priority"],
                        &first[0]["state"],
                        &first[0]["metadata"]["category"],
                        &first[0]["restrictions"][0]["reasonCode"],
                    ];
                    assert!(words.contains(&&json!("Contemplating")), "{what}: {}", first[0]);
                }
                FaultKind::MalformedRecord => assert!(first.last().unwrap().get("id").is_none(), "{what}"),
                _ => {}
            }
            server.faults().remove(fault);
        }
    }
}

#[tokio::test]
async fn listings_can_be_without_end() {
    let (server, client) = start().await;
    for route in routes().iter().filter(|route| route.rows.is_some()) {
        for (kind, distinct) in [(FaultKind::EndlessToken, 5), (FaultKind::RepeatedToken, 1)] {
            let fault = server.faults().add(FaultRule::new(kind).operation(route.operation));
            let pages = client.walk(&route.request).await;
            let next: BTreeSet<String> = pages
                .iter()
                .map(|page| match page.next(&route.request).unwrap() {
                    (Request::Get(link), None) => link,
                    (_, token) => token.unwrap(),
                })
                .collect();
            assert_eq!((pages.len(), next.len()), (5, distinct), "{} {kind}", route.operation);
            server.faults().remove(fault);
        }
    }
}

/// A listing of Resource Manager is whole or fails: what may be missing is
/// what was to be expanded. Resource Graph cuts rows off, and says so.
#[tokio::test]
async fn a_part_of_an_answer_can_be_missing() {
    let (server, client) = start().await;
    server.faults().add(FaultRule::new(FaultKind::PartialResult));
    for route in routes() {
        let what = route.operation;
        let pages = match (&route.request, route.rows) {
            (_, None) => vec![client.send(&route.request, None).await.unwrap()],
            (request, Some(_)) => client.walk(request).await,
        };
        let expanded = |row: &Value| {
            let properties = &row["properties"];
            properties.get("instanceView").is_some() || properties.get("utilization").is_some()
        };
        match (&route.request, what, route.rows) {
            (Request::Query(_), _, _) => {
                assert_eq!((pages.len(), total(&pages)), (1, 100));
                assert_eq!(pages[0].body["resultTruncated"], "true");
                assert_eq!(pages[0].body["totalRecords"], ROWS);
            }
            (_, "capacityReservationGroups.get", _) => assert!(!expanded(&pages[0].body)),
            (Request::Get(path), _, Some(rows)) => {
                let with = pages.iter().flat_map(Answer::rows).filter(|row| expanded(row)).count();
                assert_eq!(total(&pages), rows, "{what}");
                let has_expansions =
                    path.contains("statusOnly") || path.contains("$expand") || what == "reservations.list";
                assert_eq!(with, if has_expansions { rows / 2 } else { 0 }, "{what}");
            }
            _ => assert_eq!(pages[0].status, 200, "{what}"),
        }
    }
}

#[tokio::test]
async fn a_next_page_can_be_said_to_be_elsewhere() {
    let world = world();
    let server = serve(&world).await;
    fill(&world);
    let client = Client {
        http: reqwest::Client::new(),
        url: server.url(),
    };
    let own = format!("{}/", server.url());
    for route in routes() {
        let Request::Get(_) = route.request else { continue };
        for foreign in [true, false] {
            world.set_foreign_links(foreign);
            let page = client.send(&route.request, None).await.unwrap();
            match page.body["nextLink"].as_str() {
                Some(link) => assert_eq!(!link.starts_with(&own), foreign, "{link}"),
                None => assert!(route.rows.is_none_or(|rows| rows <= 200), "{}", route.operation),
            }
        }
    }
    assert_eq!(world.truth().len(), 2 * ROWS, "the machines are there all the same");
}
