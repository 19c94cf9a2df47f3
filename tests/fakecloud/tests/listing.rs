//! Listings: filters, pages and the parameters that AWS refuses.
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

use gpuwatch_fakecloud::aws::{InstanceSpec, InstanceState, Lifecycle, SavingsPlanSpec};
use gpuwatch_fakecloud::{FakeCloud, Options};
use jiff::Timestamp;
use support::client::{Answer, Client};
use support::{BASE, serve, small_world};

const REGION: &str = "us-east-1";

type Parameters<'a> = Vec<(&'a str, &'a str)>;

/// All pages of a listing, following its tokens.
async fn pages(client: &Client, action: &str, parameters: &[(&str, &str)]) -> Vec<Answer> {
    let mut pages: Vec<Answer> = Vec::new();
    loop {
        let token = pages
            .last()
            .and_then(|page| page.texts("nextToken").first().map(|token| (*token).to_owned()));
        if token.is_none() && !pages.is_empty() {
            return pages;
        }
        let mut parameters = parameters.to_vec();
        parameters.extend(token.as_deref().map(|token| ("NextToken", token)));
        let page = client.ec2(action, &parameters).await;
        assert_eq!(page.status, 200, "{}", page.body);
        pages.push(page);
    }
}

// P53
#[tokio::test]
async fn all_of_2345_instances_come_in_pages_of_100() {
    let world = small_world();
    let ids: BTreeSet<String> = (0..335)
        .flat_map(|_| world.add_instances(BASE, REGION, 7, &InstanceSpec::of("g5.xlarge")))
        .collect();
    assert_eq!(ids.len(), 2345);
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let found = pages(&client, "DescribeInstances", &[("MaxResults", "100")]).await;
    assert_eq!(found.len(), 24);
    assert!(found[..23].iter().all(|page| page.texts("instanceId").len() == 100));
    let listed: Vec<&str> = found.iter().flat_map(|page| page.texts("instanceId")).collect();
    assert_eq!(listed.len(), 2345);
    assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), ids);
    assert_eq!(fake.calls().iter().filter(|call| call.page_token.is_some()).count(), 23);
}

#[tokio::test]
async fn filters_select_as_ec2_does() {
    let world = small_world();
    let add = |spec: InstanceSpec| world.add_instance(BASE, REGION, spec).unwrap();
    let a100 = add(InstanceSpec::of("p4d.24xlarge").tag("team", "推荐*算法"));
    let spot = add(InstanceSpec {
        lifecycle: Lifecycle::Spot,
        ..InstanceSpec::of("g5.xlarge")
    });
    let arm = add(InstanceSpec::of("g5g.xlarge"));
    let cpu = add(InstanceSpec::of("m5.large"));
    let stopped = add(InstanceSpec::of("g6f.large").stopped_at(Timestamp::now()));
    let hidden = add(InstanceSpec {
        managed_by: Some("eks.amazonaws.com".to_owned()),
        ..InstanceSpec::of("g6.xlarge")
    });
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let cases: Vec<(Parameters<'_>, Vec<&String>)> = vec![
        (vec![], vec![&a100, &spot, &arm, &cpu, &stopped]),
        (
            vec![("IncludeManagedResources", "true")],
            vec![&a100, &spot, &arm, &cpu, &stopped, &hidden],
        ),
        (filter("instance-type", "g5.*"), vec![&spot]),
        (filter("instance-type", "g?g.xlarge"), vec![&arm]),
        (filter("instance-type", "g*"), vec![&spot, &arm, &stopped]),
        (filter("instance-lifecycle", "spot"), vec![&spot]),
        (filter("instance-state-name", "stopped"), vec![&stopped]),
        (filter("tag:team", r"推荐\*算法"), vec![&a100]),
        (filter("tag:team", "*"), vec![&a100]),
        (filter("tag-key", "team"), vec![&a100]),
        (filter("instance-id", &cpu), vec![&cpu]),
        (vec![("InstanceId.1", a100.as_str())], vec![&a100]),
    ];
    for (parameters, expected) in cases {
        let answer = client.ec2("DescribeInstances", &parameters).await;
        let listed: BTreeSet<&str> = answer.texts("instanceId").into_iter().collect();
        let expected: BTreeSet<&str> = expected.into_iter().map(String::as_str).collect();
        assert_eq!(listed, expected, "{parameters:?}");
    }
}

fn filter<'a>(name: &'a str, value: &'a str) -> Parameters<'a> {
    vec![("Filter.1.Name", name), ("Filter.1.Value.1", value)]
}

#[tokio::test]
async fn parameters_that_aws_refuses_are_refused() {
    let world = small_world();
    let id = world.add_instance(BASE, REGION, InstanceSpec::default()).unwrap();
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let too_many: Vec<String> = (1..=201).map(|number| format!("Filter.1.Value.{number}")).collect();
    let mut too_many: Vec<(&str, &str)> = too_many.iter().map(|name| (name.as_str(), "x")).collect();
    too_many.push(("Filter.1.Name", "instance-type"));
    let names: Vec<String> = (1..=101).map(|number| format!("InstanceType.{number}")).collect();
    let names: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "g5.xlarge")).collect();
    let instances = "DescribeInstances";
    let types = "DescribeInstanceTypes";
    let capacity = "DescribeCapacityReservations";
    let cases: Vec<(&str, Parameters<'_>, &str)> = vec![
        (instances, vec![("MaxResults", "4")], "InvalidParameterValue"),
        (instances, vec![("MaxResults", "1001")], "InvalidParameterValue"),
        (
            instances,
            vec![("MaxResults", "5"), ("InstanceId.1", &id)],
            "InvalidParameterCombination",
        ),
        (instances, vec![("NextToken", "abc")], "InvalidNextToken"),
        (instances, vec![("maxResults", "5")], "UnknownParameter"),
        (
            instances,
            vec![("IncludeManagedResources", "yes")],
            "InvalidParameterValue",
        ),
        (
            instances,
            vec![("InstanceId.1", "i-00000000000000000")],
            "InvalidInstanceID.NotFound",
        ),
        (instances, vec![("InstanceId.1", "g5")], "InvalidInstanceID.Malformed"),
        (instances, filter("platform-details", "x"), "InvalidParameterValue"),
        (
            instances,
            vec![("Filter.1.Name", "instance-type")],
            "InvalidParameterValue",
        ),
        (instances, too_many, "FilterLimitExceeded"),
        (types, vec![("MaxResults", "101")], "InvalidParameterValue"),
        (
            types,
            vec![("MaxResults", "5"), ("InstanceType.1", "g5.xlarge")],
            "InvalidParameterCombination",
        ),
        (
            types,
            vec![("InstanceType.1", "g5.xlarge"), ("InstanceType.2", "g99.48xlarge")],
            "InvalidInstanceType",
        ),
        (types, vec![("InstanceType.1", "p3.2xlarge")], "InvalidInstanceType"),
        (types, names, "InvalidParameterValue"),
        (types, filter("gpu", "true"), "InvalidParameterValue"),
        (capacity, filter("reservation-type", "default"), "InvalidParameterValue"),
        (
            capacity,
            vec![("CapacityReservationId.1", "cr-1")],
            "InvalidCapacityReservationId.NotFound",
        ),
        (
            "DescribeReservedInstances",
            vec![("NextToken", "x")],
            "UnknownParameter",
        ),
        (
            "DescribeRegions",
            vec![("RegionName.1", "mars-east-1")],
            "InvalidParameterValue",
        ),
        ("DescribeMartians", vec![], "InvalidAction"),
        (instances, vec![("DryRun", "true")], "DryRunOperation"),
    ];
    for (action, parameters, code) in cases {
        let answer = client.ec2(action, &parameters).await;
        assert_eq!(answer.code(), code, "{action} {parameters:?}");
        assert_eq!(answer.status, if code == "DryRunOperation" { 412 } else { 400 });
    }
}

#[tokio::test]
async fn token_is_good_only_for_the_listing_it_came_from() {
    let world = small_world();
    world.add_instances(BASE, REGION, 6, &InstanceSpec::default());
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let first = client.ec2("DescribeInstances", &[("MaxResults", "5")]).await;
    let token = first.text("nextToken");
    let again = [("MaxResults", "5"), ("NextToken", token)];
    assert_eq!(
        client.ec2("DescribeInstances", &again).await.texts("instanceId").len(),
        1
    );
    let other_region = Client::new(&fake, "us-west-2");
    assert_eq!(
        other_region.ec2("DescribeInstances", &again).await.code(),
        "InvalidNextToken"
    );
    let mut other_filter = again.to_vec();
    other_filter.extend(filter("instance-type", "g*"));
    assert_eq!(
        client.ec2("DescribeInstances", &other_filter).await.code(),
        "InvalidNextToken"
    );
}

#[tokio::test]
async fn regions_show_their_opt_in_state() {
    let world = small_world();
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let statuses = async |parameters: &[(&str, &str)]| {
        let answer = client.ec2("DescribeRegions", parameters).await;
        let names = answer.texts("regionName").into_iter().zip(answer.texts("optInStatus"));
        names
            .map(|(name, status)| format!("{name} {status}"))
            .collect::<Vec<_>>()
    };
    let open = ["us-east-1 opt-in-not-required", "us-west-2 opt-in-not-required"];
    assert_eq!(statuses(&[]).await, open);
    let all = statuses(&[("AllRegions", "true")]).await;
    assert_eq!(all[2], "ap-east-1 not-opted-in");
    world.set_opted_in(BASE, "ap-east-1", true);
    assert_eq!(statuses(&[]).await[2], "ap-east-1 opted-in");
    let only = statuses(&[("Filter.1.Name", "opt-in-status"), ("Filter.1.Value.1", "opted-in")]).await;
    assert_eq!(only, ["ap-east-1 opted-in"]);
}

#[tokio::test]
async fn types_come_in_pages_and_withdrawn_ones_only_on_request() {
    let fake = serve(&small_world()).await;
    let client = Client::new(&fake, REGION);
    let mut parameters = filter("instance-type", "p*");
    parameters.push(("MaxResults", "5"));
    let sold = pages(&client, "DescribeInstanceTypes", &parameters).await;
    let sold: Vec<&str> = sold.iter().flat_map(|page| page.texts("instanceType")).collect();
    assert!(sold.contains(&"p5.48xlarge") && sold.contains(&"p9.48xlarge") && !sold.contains(&"p3.2xlarge"));
    parameters.push(("IncludeUnsupportedInRegion", "true"));
    let all = pages(&client, "DescribeInstanceTypes", &parameters).await;
    let all: Vec<&str> = all.iter().flat_map(|page| page.texts("instanceType")).collect();
    assert!(all.contains(&"p3.2xlarge") && all.len() > sold.len());
    let fraction = client
        .ec2("DescribeInstanceTypes", &[("InstanceType.1", "g6f.large")])
        .await;
    assert_eq!((fraction.text("count"), fraction.text("logicalGpuCount")), ("0", "1"));
    assert_eq!(fraction.text("gpuPartitionSize"), "0.125");
}

#[tokio::test]
async fn changes_show_in_the_next_answer() {
    let world = small_world();
    let id = world
        .add_instance(BASE, REGION, InstanceSpec::of("g5.xlarge").tag("team", "old"))
        .unwrap();
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let state = async || client.ec2("DescribeInstances", &[]).await;
    assert_eq!(state().await.texts("name")[0], "running");
    let when: Timestamp = "2026-11-30T19:42:36Z".parse().unwrap();
    assert!(world.stop(&id, when) && world.retag(&id, "team", "new"));
    let answer = state().await;
    assert_eq!(answer.texts("name")[0], "stopped");
    assert_eq!(answer.text("reason"), "User initiated (2026-11-30 19:42:36 GMT)");
    assert!(answer.body.contains("<value>new</value>"));
    assert!(world.start(&id, when));
    assert_eq!(state().await.text("launchTime"), "2026-11-30T19:42:36.000Z");
    assert!(world.terminate(&id, when));
    let answer = state().await;
    assert_eq!(
        (answer.texts("name")[0], answer.texts("privateIpAddress").len()),
        ("terminated", 0)
    );
    assert!(world.forget(&id) && !world.forget(&id));
    assert!(state().await.texts("instanceId").is_empty());
    assert_eq!(InstanceState::Terminated.code(), 48);
}

#[tokio::test]
async fn json_services_check_their_members() {
    let world = small_world();
    let id = world.add_savings_plan(BASE, SavingsPlanSpec::default()).unwrap();
    let fake = serve(&world).await;
    let client = Client::new(&fake, REGION);
    let organizations = async |body: &str| client.organizations("ListAccounts", body).await;
    assert_eq!(
        organizations("{}").await.json()["Accounts"].as_array().unwrap().len(),
        2
    );
    assert_eq!(
        organizations(r#"{"MaxResults": 21}"#).await.code(),
        "InvalidInputException"
    );
    assert_eq!(
        organizations(r#"{"maxResults": 2}"#).await.code(),
        "SerializationException"
    );
    assert_eq!(
        organizations(r#"{"NextToken": "x"}"#).await.code(),
        "InvalidInputException"
    );
    assert_eq!(
        client.organizations("DescribeOrganization", "{}").await.json()["Organization"]["MasterAccountId"],
        BASE
    );

    let plans = async |body: &str| client.savings_plans("DescribeSavingsPlans", body).await;
    assert_eq!(
        plans(r#"{"states": ["active"]}"#).await.json()["savingsPlans"][0]["savingsPlanId"],
        id.as_str()
    );
    for body in [
        r#"{"states": ["bogus"]}"#,
        r#"{"maxResults": 0}"#,
        r#"{"State": []}"#,
        r#"{"nextToken": "!"}"#,
    ] {
        let answer = plans(body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "validationexception"),
            "{body}"
        );
    }
    let rates = client
        .savings_plans("DescribeSavingsPlanRates", r#"{"savingsPlanId": "none"}"#)
        .await;
    assert_eq!(
        (rates.status, rates.code().as_str()),
        (404, "resourcenotfoundexception")
    );

    world.leave_organization();
    assert_eq!(organizations("{}").await.code(), "AWSOrganizationsNotInUseException");
}

#[tokio::test]
async fn latency_and_concurrency_are_measured() {
    let latency = std::time::Duration::from_millis(30);
    let options = Options {
        aws: Some(small_world()),
        latency,
        keep_calls: 3,
        ..Options::default()
    };
    let fake = FakeCloud::start(options).await.unwrap();
    let client = Client::new(&fake, REGION);
    futures::future::join_all((0..5).map(|_| client.ec2("DescribeRegions", &[]))).await;
    let calls = fake.calls();
    assert!(
        calls
            .iter()
            .all(|call| call.duration.is_some_and(|duration| duration >= latency))
    );
    assert_eq!((calls.len(), fake.call_count()), (3, 5));
    assert!((1..=5).contains(&fake.max_in_flight()));
    let (service, operation) = (calls[0].service.as_str(), calls[0].operation.as_str());
    assert_eq!(
        (calls[0].provider, service, operation),
        ("aws", "ec2", "DescribeRegions")
    );
    assert_eq!((calls[0].account.as_str(), calls[0].region.as_str()), (BASE, REGION));
}
