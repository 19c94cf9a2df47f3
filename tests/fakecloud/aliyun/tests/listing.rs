//! What listings hold, page by page.
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

use gpuwatch_fakecloud_aliyun::{
    Charge, InstanceSpec, PoolKind, PoolSpec, Renewal, ReservedInstanceSpec, SavingsPlanSpec, Status, StoppedMode,
};
use serde_json::{Value, json};
use support::{Client, REGION, UID, serve, world};

fn rows<'a>(answer: &'a support::Answer, set: &str, row: &str) -> &'a Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body[set][row].as_array().unwrap()
}

// P53
#[tokio::test]
async fn tokens_lead_through_every_page_once() {
    let world = world();
    let ids: BTreeSet<String> = world
        .add_instances(UID, REGION, 2345, &InstanceSpec::default())
        .into_iter()
        .collect();
    let server = serve(&world).await;
    let (rows, pages) = Client::new(&server, &world).instances(REGION).await;
    let listed: BTreeSet<String> = rows
        .iter()
        .map(|row| row["InstanceId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((rows.len(), pages), (2345, 24));
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn page_sizes_are_those_of_the_service() {
    let world = world();
    world.add_instances(UID, REGION, 120, &InstanceSpec::default());
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    for (size, expected) in [("3", 10), ("10", 10), ("57", 57), ("100", 100)] {
        let answer = client
            .ecs("DescribeInstances", &[("RegionId", REGION), ("MaxResults", size)])
            .await;
        assert_eq!(rows(&answer, "Instances", "Instance").len(), expected, "{size}");
        assert_eq!(answer.body["TotalCount"], 0, "of no meaning with tokens");
    }
    let refused = client
        .ecs("DescribeInstances", &[("RegionId", REGION), ("MaxResults", "101")])
        .await;
    assert_eq!(refused.outcome(), (400, "InvalidParameter.MaxResults"));
    let numbered = [("RegionId", REGION), ("PageNumber", "2"), ("PageSize", "100")];
    let answer = client.ecs("DescribeInstances", &numbered).await;
    assert_eq!(rows(&answer, "Instances", "Instance").len(), 20);
    assert_eq!(answer.body["TotalCount"], 120);
    let bare = client.ecs("DescribeInstances", &[("RegionId", REGION)]).await;
    assert_eq!(rows(&bare, "Instances", "Instance").len(), 10, "the default page");
    assert_eq!(client.ecs("DescribeInstances", &[]).await.code(), "MissingParameter");
    let foreign = [
        ("RegionId", "ap-southeast-1"),
        ("MaxResults", "100"),
        ("NextToken", "AAAA"),
    ];
    let refused = client.ecs("DescribeInstances", &foreign).await;
    assert_eq!(refused.outcome(), (400, "InvalidParameter.NextToken"));
}

// P24, P25, P28
#[tokio::test]
async fn instances_say_how_they_are_paid_for() {
    let world = world();
    let far = json!("2099-12-31T15:59Z");
    let of = |charge| InstanceSpec {
        charge,
        ..InstanceSpec::default()
    };
    let expected = [
        (of(Charge::PostPaid), "PostPaid", "NoSpot", Some(&far)),
        (of(Charge::PrePaid), "PrePaid", "NoSpot", None),
        (
            of(Charge::SpotWithPriceLimit),
            "PostPaid",
            "SpotWithPriceLimit",
            Some(&far),
        ),
        (of(Charge::SpotAsPriceGo), "PostPaid", "SpotAsPriceGo", Some(&far)),
    ];
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    for (spec, charge, strategy, expires) in expected {
        let id = world.add_instance(UID, REGION, spec).unwrap();
        let ids = json!([id]).to_string();
        let answer = client
            .ecs("DescribeInstances", &[("RegionId", REGION), ("InstanceIds", &ids)])
            .await;
        let row = &rows(&answer, "Instances", "Instance")[0];
        assert_eq!(row["InstanceChargeType"], charge);
        assert_eq!(row["SpotStrategy"], strategy);
        match expires {
            Some(far) => assert_eq!(row["ExpiredTime"], *far),
            None => assert_ne!(row["ExpiredTime"], far),
        }
        assert_eq!(row["CreationTime"].as_str().unwrap().len(), "2026-01-02T03:04Z".len());
    }
}

// P36
#[tokio::test]
async fn gpus_of_slices_and_unknown_types_are_not_told() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let hidden = InstanceSpec {
        hide_gpus: true,
        ..InstanceSpec::default()
    };
    let stated = InstanceSpec {
        stated_gpus: Some((2, "NVIDIA X1000".to_owned())),
        ..InstanceSpec::of("ecs.gn11q.xlarge")
    };
    for (spec, amount, truth) in [
        (InstanceSpec::of("ecs.gn8v-8x.48xlarge"), json!(8), Some(8.0)),
        (InstanceSpec::of("ecs.sgn7i-vws-m2.xlarge"), json!(0), Some(1.0 / 12.0)),
        (InstanceSpec::of("ecs.vgn7i-vws-m4.xlarge"), json!(1), Some(1.0 / 6.0)),
        (hidden, json!(null), Some(1.0)),
        (InstanceSpec::of("ecs.gn11q.xlarge"), json!(null), None),
        (stated, json!(2), Some(2.0)),
    ] {
        let id = world.add_instance(UID, REGION, spec).unwrap();
        let ids = json!([id]).to_string();
        let answer = client
            .ecs("DescribeInstances", &[("RegionId", REGION), ("InstanceIds", &ids)])
            .await;
        assert_eq!(rows(&answer, "Instances", "Instance")[0]["GPUAmount"], amount);
        let row = world.truth().into_iter().find(|row| row.id == id).unwrap();
        assert_eq!(row.gpus, truth, "{}", row.instance_type);
    }
    world.add_instance(UID, REGION, InstanceSpec::of("ecs.g7.xlarge"));
    assert_eq!(
        (world.truth().len(), world.instances().len()),
        (6, 7),
        "CPU machines are no truth"
    );
}

#[tokio::test]
async fn stopped_machines_tell_whether_they_cost() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let id = world.add_instance(UID, REGION, InstanceSpec::default()).unwrap();
    for (mode, word, state) in [
        (StoppedMode::KeepCharging, "KeepCharging", "stopped_billed"),
        (StoppedMode::StopCharging, "StopCharging", "stopped"),
        (StoppedMode::NotApplicable, "Not-applicable", "stopped_billed"),
    ] {
        world.stop(&id, mode);
        let (rows, _) = client.instances(REGION).await;
        assert_eq!(
            (&rows[0]["Status"], &rows[0]["StoppedMode"]),
            (&json!("Stopped"), &json!(word))
        );
        assert_eq!(world.truth()[0].state, state);
    }
    world.update(&id, |instance| {
        instance.spec.charge = Charge::PrePaid;
        instance.spec.stopped_mode = StoppedMode::StopCharging;
    });
    assert_eq!(
        world.truth()[0].state,
        "stopped_billed",
        "a subscription is paid for to its end"
    );
    world.start(&id);
    assert_eq!(world.truth()[0].state, "running");
    world.remove(&id);
    assert!(client.instances(REGION).await.0.is_empty());
}

#[tokio::test]
async fn types_are_told_in_pages() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let first = client.ecs("DescribeInstanceTypes", &[]).await;
    assert_eq!(rows(&first, "InstanceTypes", "InstanceType").len(), 100);
    let token = first.body["NextToken"].as_str().unwrap();
    let second = client.ecs("DescribeInstanceTypes", &[("NextToken", token)]).await;
    assert!(!rows(&second, "InstanceTypes", "InstanceType").is_empty());
    assert_eq!(second.body.get("NextToken"), None);
    let params = [("InstanceTypes.1", "ecs.gn7i-c8g1.2xlarge"), ("MinimumGPUAmount", "1")];
    let one = client.ecs("DescribeInstanceTypes", &params).await;
    let row = &rows(&one, "InstanceTypes", "InstanceType")[0];
    assert_eq!((&row["GPUAmount"], &row["GPUSpec"]), (&json!(1), &json!("NVIDIA A10")));
    assert_eq!(
        (&row["GPUMemorySize"], &row["MemorySize"]),
        (&json!(24.0), &json!(30.0))
    );
    let names: Vec<String> = (1..=11).map(|number| format!("InstanceTypes.{number}")).collect();
    let eleven: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "ecs.g7.xlarge")).collect();
    let refused = client.ecs("DescribeInstanceTypes", &eleven).await;
    assert_eq!(refused.code(), "InvalidParameter.InstanceTypes");
}

#[tokio::test]
async fn one_pay_as_you_go_instance_fails_a_question_about_renewals() {
    let world = world();
    let renewal = Renewal::AutoRenewal;
    let prepaid = InstanceSpec {
        charge: Charge::PrePaid,
        renewal,
        ..InstanceSpec::default()
    };
    let paid = world.add_instance(UID, REGION, prepaid).unwrap();
    let other = world.add_instance(UID, REGION, InstanceSpec::default()).unwrap();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let ask = |ids: String| {
        let client = client.clone();
        async move {
            let params = [("RegionId", REGION), ("InstanceId", ids.as_str())];
            client.ecs("DescribeInstanceAutoRenewAttribute", &params).await
        }
    };
    let answer = ask(paid.clone()).await;
    let row = &rows(&answer, "InstanceRenewAttributes", "InstanceRenewAttribute")[0];
    assert_eq!(
        (&row["RenewalStatus"], &row["AutoRenewEnabled"]),
        (&json!("AutoRenewal"), &json!(true))
    );
    assert_eq!(
        ask(format!("{paid},{other}")).await.code(),
        "InvalidInstanceChargeType.NotSupported"
    );
    assert_eq!(
        ask("i-none".to_owned()).await.outcome(),
        (404, "InvalidInstanceId.NotFound")
    );
    let new = InstanceSpec {
        charge: Charge::PrePaid,
        listed_only: true,
        ..InstanceSpec::default()
    };
    let new = world.add_instance(UID, REGION, new).unwrap();
    assert_eq!(ask(new.clone()).await.code(), "InvalidInstanceId.NotFound");
    let (listed, _) = client.instances(REGION).await;
    assert!(listed.iter().any(|row| row["InstanceId"] == json!(new)));
    assert_eq!(
        ask(vec!["i-1"; 101].join(",")).await.code(),
        "InvalidParameter.InstanceId"
    );
}

#[tokio::test]
async fn commitments_are_listed_with_what_is_used_of_them() {
    let world = world();
    world.add_instances(UID, REGION, 2, &InstanceSpec::default());
    let bought = ReservedInstanceSpec {
        amount: 3,
        ..ReservedInstanceSpec::default()
    };
    world.add_reserved_instance(UID, REGION, bought.clone());
    let status = "Expired".to_owned();
    world.add_reserved_instance(UID, REGION, ReservedInstanceSpec { status, ..bought });
    for kind in [PoolKind::ElasticityAssurance, PoolKind::CapacityReservation] {
        let spec = PoolSpec {
            kind,
            total: 4,
            ..PoolSpec::default()
        };
        let pool = world.add_pool(UID, REGION, spec.clone()).unwrap();
        world.add_pool(
            UID,
            REGION,
            PoolSpec {
                status: "Released".to_owned(),
                ..spec
            },
        );
        let user = InstanceSpec {
            private_pool: Some(pool),
            status: Status::Stopped,
            ..InstanceSpec::default()
        };
        world.add_instance(UID, REGION, user.clone());
        world.add_instance(UID, REGION, user.stopped(StoppedMode::StopCharging));
    }
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let here = ("RegionId", REGION);
    let active = client
        .ecs("DescribeReservedInstances", &[here, ("Status.1", "Active")])
        .await;
    let row = &rows(&active, "ReservedInstances", "ReservedInstance")[0];
    assert_eq!(
        (&active.body["TotalCount"], &row["InstanceAmount"]),
        (&json!(1), &json!(3))
    );
    let all = client.ecs("DescribeReservedInstances", &[here]).await;
    assert_eq!(rows(&all, "ReservedInstances", "ReservedInstance").len(), 2);
    for (action, set, item) in [
        (
            "DescribeElasticityAssurances",
            "ElasticityAssuranceSet",
            "ElasticityAssuranceItem",
        ),
        (
            "DescribeCapacityReservations",
            "CapacityReservationSet",
            "CapacityReservationItem",
        ),
    ] {
        let answer = client.ecs(action, &[here, ("MaxResults", "100")]).await;
        let pools = rows(&answer, set, item);
        assert_eq!(pools.len(), 1, "{action}");
        let resource = &pools[0]["AllocatedResources"]["AllocatedResource"][0];
        assert_eq!(
            (&resource["TotalAmount"], &resource["UsedAmount"]),
            (&json!(4), &json!(1))
        );
        assert_eq!(resource["zoneId"], "cn-hangzhou-h");
        let all = client.ecs(action, &[here, ("Status", "All")]).await;
        assert_eq!(rows(&all, set, item).len(), 2, "{action}");
    }
    let used: Vec<_> = world
        .commitments()
        .iter()
        .map(|row| (row.kind, row.units, row.used))
        .collect();
    assert_eq!(
        used,
        [
            ("reserved_instance", Some(3), Some(2)),
            ("capacity_reservation", Some(4), Some(1)),
            ("capacity_reservation", Some(4), Some(1)),
        ]
    );
}

#[tokio::test]
async fn savings_plans_come_in_numbered_pages() {
    let world = world();
    for _ in 0..25 {
        world.add_savings_plan(UID, SavingsPlanSpec::default());
    }
    world.add_savings_plan(
        UID,
        SavingsPlanSpec {
            status: "RELEASE".to_owned(),
            ..SavingsPlanSpec::default()
        },
    );
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let mut ids = BTreeSet::new();
    for number in ["1", "2"] {
        let params = [("PageNum", number), ("Status", "NORMAL")];
        let answer = client.bss("QuerySavingsPlansInstance", &params).await;
        assert_eq!(answer.body["Data"]["TotalCount"], 25);
        for row in answer.body["Data"]["Items"].as_array().unwrap() {
            assert_eq!(row["PoolValue"], "12.5", "numbers are texts");
            ids.insert(row["InstanceId"].to_string());
        }
    }
    assert_eq!(ids.len(), 25);
    assert_eq!(world.commitments().len(), 25);
    let refused = client.bss("QuerySavingsPlansInstance", &[("PageSize", "301")]).await;
    assert_eq!(refused.code(), "InvalidParameter.PageSize");
}

#[tokio::test]
async fn the_bill_says_what_commitments_paid_for() {
    let world = world();
    let ids = world.add_instances(UID, REGION, 3, &InstanceSpec::default());
    let spot = InstanceSpec {
        charge: Charge::SpotAsPriceGo,
        ..InstanceSpec::default()
    };
    world.add_instance(UID, REGION, spot);
    world.add_reserved_instance(UID, REGION, ReservedInstanceSpec::default());
    world.set_paid_by_savings_plans(UID, &ids[2], 0.75);
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let day = [
        ("PeriodType", "DAY"),
        ("StartPeriod", "2999-01-01 00:00:00"),
        ("EndPeriod", "2999-01-02 00:00:00"),
    ];
    for (action, more, token, expected) in [
        (
            "DescribeResourceCoverageDetail",
            Some(("ResourceType", "RI")),
            "NextToken",
            1.0,
        ),
        ("DescribeSavingsPlansCoverageDetail", None, "Token", 0.75),
    ] {
        let mut params: Vec<(&str, &str)> = day.into_iter().chain(more).chain([("MaxResults", "2")]).collect();
        let first = client.bss(action, &params).await;
        assert_eq!(
            (first.status, &first.body["Success"]),
            (200, &json!(true)),
            "{}",
            first.text
        );
        let next = first.body["Data"]["NextToken"].as_str().unwrap().to_owned();
        params.push((token, &next));
        let second = client.bss(action, &params).await;
        assert_eq!(second.body["Data"]["NextToken"], "", "{}", second.text);
        let rows: Vec<_> = [&first, &second]
            .iter()
            .flat_map(|answer| answer.body["Data"]["Items"].as_array().unwrap().clone())
            .collect();
        assert_eq!(rows.len(), 3, "never spot");
        let shares: Vec<f64> = rows
            .iter()
            .map(|row| row["CoveragePercentage"].as_f64().unwrap())
            .collect();
        assert_eq!(
            shares.iter().filter(|share| **share > 0.0).collect::<Vec<_>>(),
            [&expected]
        );
        // Instances that were not there yet are not in the bill.
        let early = [("PeriodType", "DAY"), ("StartPeriod", "2020-01-01 00:00:00")];
        let early: Vec<_> = early.into_iter().chain(more).collect();
        assert_eq!(client.bss(action, &early).await.body["Data"]["TotalCount"], 0);
        for bad in [
            ("PeriodType", "WEEK"),
            ("StartPeriod", "2020-01-01"),
            ("MaxResults", "301"),
        ] {
            let params: Vec<_> = day.into_iter().chain(more).chain([bad]).collect();
            let refused = client.bss(action, &params).await;
            assert_eq!(refused.code(), format!("InvalidParameter.{}", bad.0));
        }
    }
}

#[tokio::test]
async fn actions_and_versions_that_do_not_exist_are_refused() {
    let world = world();
    let server = serve(&world).await;
    let client = Client::new(&server, &world);
    let refused = client.ecs("DescribeNothing", &[]).await;
    assert_eq!(refused.outcome(), (404, "InvalidApi.NotFound"));
    let refused = client.call("2014-05-27", "DescribeRegions", &[]).await;
    assert_eq!(refused.outcome(), (404, "InvalidVersion"));
}
