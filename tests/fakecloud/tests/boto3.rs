//! The official SDK lists the simulated fleet and sees exactly what is there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, says why it is skipped, and runs by the wall clock"
)]

mod support;

use std::collections::BTreeMap;

use gpuwatch_fakecloud::aws::{
    ACCESS_KEY_ID, AccountSpec, AccountState, InstanceTypeFacts, OptIn, Partition, ReservationScope, SECRET_ACCESS_KEY,
    World, instance_type,
};
use gpuwatch_fakecloud::{FakeCloud, Options};
use serde_json::{Map, Value, json};

/// What boto3 makes of the world; `None` without a Python that has it.
async fn listed_by_boto3(world: &World) -> Option<Value> {
    let python = gpuwatch_test_kit::python_with("boto3")?;
    let fake = FakeCloud::start(Options {
        aws: Some(world.clone()),
        ..Options::default()
    })
    .await
    .unwrap();
    let output = tokio::process::Command::new(python)
        .arg("tests/boto3/list_fleet.py")
        .args([&fake.url(), world.partition().home_region()])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .output()
        .await
        .unwrap();
    let failed: Vec<_> = fake.calls().into_iter().filter(|call| !call.succeeded()).collect();
    fake.stop().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(failed.is_empty(), "{failed:#?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The same listing, from the world itself.
fn expected(world: &World) -> Value {
    let members = world.accounts().into_iter().filter(|account| account.in_organization);
    let members: Map<String, Value> = members
        .map(|account| (account.id, json!([account.name, account.state.as_str()])))
        .collect();
    let active = world
        .accounts()
        .into_iter()
        .filter(|account| account.state == AccountState::Active);
    let accounts: Map<String, Value> = active
        .map(|account| (account.id.clone(), expected_account(world, &account.id)))
        .collect();
    json!({ "members": members, "types": expected_types(), "accounts": accounts })
}

fn expected_account(world: &World, account: &str) -> Value {
    let partition = world.partition();
    let arn = if account == world.base_account() {
        format!("arn:{partition}:iam::{account}:user/gpuwatch")
    } else {
        format!("arn:{partition}:sts::{account}:assumed-role/gpuwatch/boto3")
    };
    let regions: BTreeMap<String, Value> = world
        .enabled_regions(account)
        .into_iter()
        .map(|region| (region.clone(), expected_region(world, account, &region)))
        .collect();
    let plans: Map<String, Value> = world
        .savings_plans(account)
        .into_iter()
        .map(|plan| {
            let rates = plan.spec.rates.iter();
            let rates: Map<String, Value> = rates
                .map(|rate| (format!("{}/{}", rate.region, rate.instance_type), json!(rate.rate)))
                .collect();
            let row = json!({
                "type": plan.spec.plan_type,
                "family": plan.spec.family.as_ref().map(|(_, family)| family),
                "region": plan.spec.family.as_ref().map(|(region, _)| region),
                "commitment": plan.spec.commitment,
                "currency": plan.spec.currency,
                "state": plan.spec.state,
                "rates": rates,
            });
            (plan.id, row)
        })
        .collect();
    json!({ "arn": arn, "plans": plans, "regions": regions })
}

fn expected_region(world: &World, account: &str, region: &str) -> Value {
    let families = ["p", "g", "inf", "trn", "dl", "vt"];
    let instances = world.instances();
    let listed = instances.iter().filter(|instance| {
        let here = instance.account == account && instance.region == region;
        here && families
            .iter()
            .any(|family| instance.spec.instance_type.starts_with(family))
    });
    let instances: Map<String, Value> = listed
        .map(|instance| {
            let spec = &instance.spec;
            let tags: BTreeMap<_, _> = spec.tags.iter().cloned().collect();
            let row = json!({
                "owner": account,
                "launch_reservation": instance.launch_reservation,
                "type": spec.instance_type,
                "state": spec.state.as_str(),
                "lifecycle": spec.lifecycle.as_api(),
                "zone": instance.zone(),
                "tenancy": spec.tenancy,
                "launched": seconds(instance.launched),
                "reason": spec.transition_reason,
                "private_ip": instance.private_ip,
                "platform": spec.platform.details(),
                "operation": spec.platform.usage_operation(),
                "capacity_reservation": spec.capacity_reservation,
                "capacity_block": spec.capacity_block,
                "managed_by": spec.managed_by,
                "tags": tags,
            });
            (instance.id.clone(), row)
        })
        .collect();
    json!({
        "instances": instances,
        "reserved": expected_reserved(world, account, region),
        "capacity": expected_capacity(world, account, region),
        "blocks": expected_blocks(world, account, region),
    })
}

fn expected_reserved(world: &World, account: &str, region: &str) -> Map<String, Value> {
    let rows = world.reserved_instances(account, region).into_iter();
    rows.map(|reserved| {
        let spec = &reserved.spec;
        let (scope, zone) = match spec.scope {
            ReservationScope::Region => ("Region", None),
            ReservationScope::Zone(zone) => ("Availability Zone", Some(format!("{region}{zone}"))),
        };
        let row = json!({
            "type": spec.instance_type,
            "count": spec.count,
            "scope": scope,
            "zone": zone,
            "state": spec.state,
            "platform": spec.platform.details(),
            "hourly": spec.hourly.parse::<f64>().unwrap(),
            "end": seconds(reserved.end),
            "seconds": u64::from(spec.days) * 86_400,
        });
        (reserved.id, row)
    })
    .collect()
}

/// Own reservations and those that another account shares.
fn expected_capacity(world: &World, account: &str, region: &str) -> Map<String, Value> {
    let owners = world.accounts();
    let all = owners
        .iter()
        .flat_map(|owner| world.capacity_reservations(&owner.id, region));
    let seen = all.filter(|row| row.owner == account || row.spec.shared_with.iter().any(|user| user == account));
    seen.map(|reservation| {
        let spec = &reservation.spec;
        let kind = if spec.capacity_block.is_some() {
            "capacity-block"
        } else {
            "default"
        };
        let available = if spec.state == "active" {
            spec.total - running_in(world, &reservation.id)
        } else {
            0
        };
        let row = json!({
            "owner": reservation.owner,
            "type": spec.instance_type,
            "total": spec.total,
            "available": available,
            "state": spec.state,
            "kind": kind,
            "block": spec.capacity_block,
            "billing_owner": spec.unused_billing_owner,
            "interruptible": spec.interruptible,
        });
        (reservation.id, row)
    })
    .collect()
}

fn expected_blocks(world: &World, account: &str, region: &str) -> Map<String, Value> {
    let blocks = world.capacity_blocks(account, region).into_iter();
    blocks
        .map(|block| {
            let row = json!({
                "reservations": [block.reservation],
                "state": block.spec.state,
                "end": seconds(block.end),
                "total": block.spec.total,
                "available": block.spec.total - running_in(world, &block.reservation),
            });
            (block.id, row)
        })
        .collect()
}

fn running_in(world: &World, reservation: &str) -> u32 {
    let instances = world.instances();
    let users = instances
        .iter()
        .filter(|instance| instance.spec.capacity_reservation.as_deref() == Some(reservation));
    u32::try_from(
        users
            .filter(|instance| instance.spec.state.as_str() == "running")
            .count(),
    )
    .unwrap()
}

/// A sample of types over all sections, with facts known from AWS's documents.
fn expected_types() -> Value {
    let names = [
        "p5.48xlarge",
        "g5.xlarge",
        "g6f.large",
        "gr6f.4xlarge",
        "trn1.32xlarge",
        "trn2.48xlarge",
        "trn2u.48xlarge",
        "inf1.6xlarge",
        "dl2q.24xlarge",
        "dl1.24xlarge",
        "vt1.6xlarge",
        "p3.8xlarge",
        "p9.48xlarge",
        "g4ad.xlarge",
    ];
    let rows: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), expected_type(instance_type(name).unwrap())))
        .collect();
    json!(rows)
}

fn expected_type(facts: &InstanceTypeFacts) -> Value {
    let device = facts.device.as_ref().map(|device| {
        let count = if device.partition < 1.0 {
            device.partition
        } else {
            f64::from(device.count)
        };
        json!({ "name": device.name, "count": count, "mib": device.memory_mib })
    });
    json!({
        "vcpus": facts.vcpus,
        "mib": facts.memory_mib,
        "classes": facts.usage_classes,
        "supported": facts.current,
        "device": device,
    })
}

fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Compares part by part, so that a difference is readable.
fn assert_same(listed: &mut Value, expected: &Value) {
    let known: Vec<String> = expected["types"].as_object().unwrap().keys().cloned().collect();
    let types = listed["types"].as_object_mut().unwrap();
    assert!(types.len() > 100, "{} types", types.len());
    types.retain(|name, _| known.contains(name));
    assert_eq!(listed["types"], expected["types"]);
    assert_eq!(listed["members"], expected["members"]);
    let (listed, expected) = (
        listed["accounts"].as_object().unwrap(),
        expected["accounts"].as_object().unwrap(),
    );
    assert_eq!(listed.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (account, expected) in expected {
        let listed = &listed[account];
        assert_eq!(listed["arn"], expected["arn"]);
        assert_eq!(listed["plans"], expected["plans"]);
        let (listed, expected) = (
            listed["regions"].as_object().unwrap(),
            expected["regions"].as_object().unwrap(),
        );
        assert_eq!(listed.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (region, expected) in expected {
            for part in ["instances", "reserved", "capacity", "blocks"] {
                assert_eq!(listed[region][part], expected[part], "{account} {region} {part}");
            }
        }
    }
}

#[tokio::test]
async fn boto3_lists_the_demo_fleet_as_it_is() {
    let world = World::demo(11, 300);
    let Some(mut listed) = listed_by_boto3(&world).await else {
        return;
    };
    assert_same(&mut listed, &expected(&world));
}

#[tokio::test]
async fn boto3_lists_the_china_fleet_as_it_is() {
    let world = World::demo_china(3);
    let Some(mut listed) = listed_by_boto3(&world).await else {
        return;
    };
    assert_same(&mut listed, &expected(&world));
}

#[tokio::test]
async fn boto3_follows_the_organizations_empty_pages() {
    let world = World::with_regions(Partition::Aws, &[("us-east-1", OptIn::NotRequired)]);
    for number in 0..45 {
        let state = if number < 3 {
            AccountState::Active
        } else {
            AccountState::Suspended
        };
        let spec = AccountSpec {
            name: format!("member-{number}"),
            state,
            ..AccountSpec::default()
        };
        world.add_account(&format!("{:012}", 100_000_000_000_u64 + number), spec);
    }
    let Some(mut listed) = listed_by_boto3(&world).await else {
        return;
    };
    assert_eq!(listed["members"].as_object().unwrap().len(), 45);
    assert_same(&mut listed, &expected(&world));
}
