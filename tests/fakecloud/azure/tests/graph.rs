//! Resource Graph: queries, pages, quota and refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::collections::BTreeSet;

use gpuwatch_fakecloud_azure::{ACCESS_TOKEN, MachineSpec, ScaleSetSpec, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule, Server};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use support::{SUBSCRIPTION, serve};

const OTHER: &str = "00000000-0000-4000-8000-000000000002";
const MACHINES: &str = "Resources | where type =~ 'microsoft.compute/virtualmachines' | project id | order by id asc";

struct Answer {
    status: u16,
    remaining: Option<String>,
    resets: Option<String>,
    body: Value,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    fn ids(&self) -> BTreeSet<String> {
        let rows = self.body["data"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_lowercase()).collect()
    }
}

async fn ask(server: &Server, scope: &[&str], query: &str, options: Value) -> Answer {
    let url = format!(
        "{}/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01",
        server.url()
    );
    let body = json!({"subscriptions": scope, "query": query, "options": options});
    let request = reqwest::Client::new().post(url).bearer_auth(ACCESS_TOKEN).json(&body);
    let answer = request.send().await.unwrap();
    let header = |name: &str| Some(answer.headers().get(name)?.to_str().unwrap().to_owned());
    Answer {
        status: answer.status().as_u16(),
        remaining: header("x-ms-user-quota-remaining"),
        resets: header("x-ms-user-quota-resets-after"),
        body: answer.json().await.unwrap(),
    }
}

async fn with_machines(count: usize) -> (World, Server) {
    let world = World::empty();
    let server = serve(&world).await;
    for number in 0..count {
        world.add_machine(
            SUBSCRIPTION,
            MachineSpec {
                name: format!("vm-{number:03}"),
                ..MachineSpec::default()
            },
        );
    }
    (world, server)
}

// P53
#[tokio::test]
async fn pages_of_an_ordered_query_have_every_row_once() {
    let (world, server) = with_machines(25).await;
    let (mut token, mut found, mut pages) = (Value::Null, BTreeSet::new(), 0);
    loop {
        let answer = ask(
            &server,
            &[SUBSCRIPTION],
            MACHINES,
            json!({"$top": 10, "$skipToken": token}),
        )
        .await;
        assert_eq!((answer.status, &answer.body["totalRecords"]), (200, &json!(25)));
        assert_eq!(answer.body["resultTruncated"], "false");
        found.extend(answer.ids());
        pages += 1;
        token = answer.body["$skipToken"].clone();
        if token.is_null() {
            break;
        }
        // A token is good for its own query and scope.
        for (scope, query) in [
            (vec![SUBSCRIPTION], "Resources | order by id asc"),
            (vec![SUBSCRIPTION, OTHER], MACHINES),
        ] {
            let answer = ask(&server, &scope, query, json!({"$top": 10, "$skipToken": token})).await;
            assert_eq!((answer.status, answer.code()), (400, "BadRequest"));
            assert_eq!(answer.body["error"]["details"][0]["code"], "InvalidSkipToken");
        }
    }
    let truth: BTreeSet<String> = world.truth().into_iter().map(|row| row.id).collect();
    assert_eq!((pages, found), (3, truth));
}

#[tokio::test]
async fn without_an_order_or_ids_rows_are_cut_and_there_is_no_token() {
    let (_world, server) = with_machines(25).await;
    for query in ["Resources", "Resources | project name | order by name asc"] {
        let answer = ask(&server, &[SUBSCRIPTION], query, json!({"$top": 10})).await;
        assert_eq!(answer.body["resultTruncated"], "true", "{query}");
        assert_eq!(answer.body["count"], 10);
        assert_eq!(answer.body["totalRecords"], 25);
        assert!(answer.body.get("$skipToken").is_none());
    }
    // One that is ordered can be cut short as well.
    server.faults().add(FaultRule::new(FaultKind::PartialResult));
    let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({"$top": 1000})).await;
    assert_eq!((answer.status, answer.ids().len()), (200, 12));
    assert_eq!(answer.body["resultTruncated"], "true");
    assert!(answer.body.get("$skipToken").is_none());
}

#[tokio::test]
async fn the_queries_of_careful_clients_are_answered() {
    let (world, server) = with_machines(2).await;
    world.add_machine(
        SUBSCRIPTION,
        MachineSpec {
            name: "cpu".into(),
            size: "Standard_D4s_v5".into(),
            ..MachineSpec::default()
        },
    );
    world.add_scale_set(
        SUBSCRIPTION,
        ScaleSetSpec {
            name: "pool".into(),
            members: vec![("running".into(), Timestamp::UNIX_EPOCH)],
            ..ScaleSetSpec::default()
        },
    );
    let machines = "Resources\n\
        | where type =~ 'microsoft.compute/virtualmachines'\n\
        | extend size = tostring(properties.hardwareProfile.vmSize)\n\
        | where size matches regex @'(?i)^standard_n[a-z]'\n\
        | project id, name, subscriptionId, resourceGroup, location, zones, tags, size,\n\
            priority = tostring(properties.priority), hostId = tostring(properties.host.id),\n\
            power = tostring(properties.extended.instanceView.powerState.code)\n\
        | order by id asc";
    let answer = ask(&server, &[SUBSCRIPTION], machines, json!({})).await;
    assert_eq!((answer.status, answer.ids().len()), (200, 2), "{}", answer.body);
    let row = &answer.body["data"][0];
    assert_eq!(row["power"], "PowerState/running");
    assert_eq!((&row["priority"], &row["hostId"]), (&json!("Regular"), &json!("")));
    assert_eq!(row["zones"], Value::Null, "a column without a value is there");

    let members = "ComputeResources\n\
        | where type in~ ('Microsoft.Compute/virtualMachineScaleSets/virtualMachines')\n\
        | where tostring(sku.name) matches regex @'(?i)^standard_n[a-z]'\n\
        | project id, size = tostring(sku.name)\n\
        | order by id asc";
    let answer = ask(&server, &[SUBSCRIPTION], members, json!({})).await;
    assert_eq!((answer.status, answer.ids().len()), (200, 1), "{}", answer.body);
}

#[tokio::test]
async fn what_is_not_understood_is_a_bad_request_with_details() {
    let (_world, server) = with_machines(1).await;
    for (query, line, position, token) in [
        ("Resources | summarize count()", 1, 12, "summarize"),
        ("Resources\n| where type matches regex 'x' y", 2, 31, "y"),
        ("Secrets | order by id asc", 1, 0, "Secrets"),
    ] {
        let answer = ask(&server, &[SUBSCRIPTION], query, json!({})).await;
        assert_eq!((answer.status, answer.code()), (400, "BadRequest"), "{query}");
        let details = &answer.body["error"]["details"];
        assert_eq!(details[0]["code"], "InvalidQuery");
        assert_eq!(
            (
                &details[1]["code"],
                &details[1]["line"],
                &details[1]["characterPositionInLine"],
                &details[1]["token"]
            ),
            (&json!("ParserFailure"), &json!(line), &json!(position), &json!(token)),
            "{query}"
        );
    }
    for (scope, options) in [
        (vec![], json!({})),
        (vec![SUBSCRIPTION], json!({"$top": 1001})),
        (vec![SUBSCRIPTION], json!({"$top": 0})),
        (vec![SUBSCRIPTION], json!({"$skipToken": "x"})),
        (vec![SUBSCRIPTION], json!({"resultFormat": "table"})),
    ] {
        let answer = ask(&server, &scope, MACHINES, options.clone()).await;
        assert_eq!((answer.status, answer.code()), (400, "BadRequest"), "{options}");
    }
}

#[tokio::test]
async fn what_the_caller_may_not_read_is_not_there() {
    let (world, server) = with_machines(3).await;
    world.add_subscription(OTHER, "other");
    world.add_machine(OTHER, MachineSpec::default());
    let scope = [SUBSCRIPTION, OTHER];
    let seen = async || ask(&server, &scope, MACHINES, json!({})).await.ids().len();
    assert_eq!(seen().await, 4);
    world.set_state(OTHER, "Disabled");
    assert_eq!((seen().await, world.truth().len()), (3, 3));
    world.set_state(OTHER, "Warned");
    assert_eq!((seen().await, world.truth().len()), (4, 4));
    world.deny(OTHER, "Microsoft.Compute/virtualMachines/read");
    assert_eq!(seen().await, 3);
    world.deny(SUBSCRIPTION, "Microsoft.ResourceGraph/resources/read");
    assert_eq!(seen().await, 0);
    let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await;
    assert_eq!((answer.status, answer.code()), (403, "AccessDenied"));
}

#[tokio::test]
async fn a_cloud_without_it_and_a_caller_without_a_role_are_told_apart() {
    let (world, server) = with_machines(1).await;
    world.set_graph(false);
    let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await;
    assert_eq!((answer.status, answer.code()), (404, "InvalidResourceNamespace"));
    world.deny_graph();
    let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await;
    assert_eq!((answer.status, answer.code()), (403, "AccessDenied"));
    world.set_graph(true);
    assert_eq!(ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await.status, 200);
}

#[tokio::test]
async fn the_quota_counts_down_to_nothing() {
    let (world, server) = with_machines(1).await;
    world.set_graph_quota(2, SignedDuration::from_hours(1));
    for remaining in ["1", "0"] {
        let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await;
        assert_eq!((answer.status, answer.remaining.as_deref()), (200, Some(remaining)));
        let resets = answer.resets.unwrap();
        assert!(resets.as_str() >= "00:59:00", "{resets}");
    }
    let answer = ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await;
    assert_eq!((answer.status, answer.code()), (429, "RateLimiting"));
    assert_eq!(answer.remaining.as_deref(), Some("0"));
    world.set_graph_quota(2, SignedDuration::from_hours(1));
    assert_eq!(ask(&server, &[SUBSCRIPTION], MACHINES, json!({})).await.status, 200);
}
