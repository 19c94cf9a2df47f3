//! Instances, their accelerators, states and billing modes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeSet, time::Duration};

use gpuwatch_collector_core::{Dataset, Reason};
use gpuwatch_fakecloud_aliyun::{Charge, InstanceSpec, Renewal, Status, StoppedMode, World};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_inventory::{BillingMode, Certainty, GpuCount, Instance, State};
use gpuwatch_test_kit::{assert_instances, inventory_targets};
use support::{
    HANGZHOU, PATIENT, Rig, SECOND, SINGAPORE, TYPE, UID, add, both, every_account, scope, two_accounts, world,
};

async fn listed(world: &World) -> Vec<Instance> {
    let rig = Rig::discovered(world, |_| {}).await;
    let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
    assert!(!cx.is_degraded());
    instances.expect("listing")
}

#[track_caller]
fn by_id<'a>(instances: &'a [Instance], id: &str) -> &'a Instance {
    instances.iter().find(|instance| &*instance.id == id).expect("listed")
}

fn ids(instances: &[Instance]) -> BTreeSet<String> {
    instances.iter().map(|instance| instance.id.to_string()).collect()
}

// P24, P28, P36
#[tokio::test]
async fn the_demo_fleet_is_seen_as_it_is() {
    let world = World::demo(7, 300);
    let (instances, _) = Rig::new(&world, every_account(&world)).await.everything().await;
    assert_instances(&world.truth(), &instances);
    assert!(instances.iter().any(|i| !i.cluster.is_empty()));
}

// P53
#[tokio::test]
async fn a_fleet_of_many_pages_is_complete() {
    let world = World::fleet(7, 2_345);
    assert_eq!(world.truth().len(), 2_345);
    let (instances, _) = Rig::new(&world, every_account(&world)).await.everything().await;
    assert_instances(&world.truth(), &instances);
}

// P53
#[tokio::test]
async fn every_one_of_2345_instances_is_found_in_pages_of_a_hundred() {
    let world = world();
    let fleet: BTreeSet<String> = world
        .add_instances(UID, HANGZHOU, 2_345, &InstanceSpec::of(TYPE))
        .into_iter()
        .collect();
    world.add_instances(UID, HANGZHOU, 300, &InstanceSpec::of("ecs.g7.xlarge"));
    let rig = Rig::discovered(&world, |_| {}).await;
    let (instances, _) = rig.instances_in(UID, HANGZHOU).await;
    assert_eq!(ids(&instances.expect("listing")), fleet);
    // CPU machines are read too: no filter tells them apart.
    assert_eq!(rig.calls_of("DescribeInstances"), 27);
}

// P24, P28
#[tokio::test]
async fn every_billing_mode_is_told_with_what_is_known_about_it() {
    let world = world();
    let paid = |charge, host: Option<&str>| {
        let spec = InstanceSpec {
            charge,
            dedicated_host: host.map(str::to_owned),
            ..InstanceSpec::of(TYPE)
        };
        add(&world, HANGZHOU, spec)
    };
    let cases = [
        (Charge::PostPaid, None, BillingMode::OnDemand, "", Certainty::Estimated),
        (
            Charge::PrePaid,
            None,
            BillingMode::Reserved,
            "subscription",
            Certainty::Exact,
        ),
        (
            Charge::SpotWithPriceLimit,
            None,
            BillingMode::Spot,
            "",
            Certainty::Exact,
        ),
        (Charge::SpotAsPriceGo, None, BillingMode::Spot, "", Certainty::Exact),
        (
            Charge::PostPaid,
            Some("dh-bp1"),
            BillingMode::OnDemand,
            "dedicated_host",
            Certainty::Estimated,
        ),
    ]
    .map(|(charge, host, mode, detail, certainty)| (paid(charge, host), mode, detail, certainty));
    let instances = listed(&world).await;
    assert_eq!(instances.len(), cases.len());
    for (id, mode, detail, certainty) in &cases {
        let instance = by_id(&instances, id);
        let billing = &instance.billing;
        assert_eq!(
            (billing.mode, &*billing.detail, billing.certainty),
            (*mode, *detail, *certainty),
            "{id}"
        );
        // The API prints a date in 2099 for whatever has no term.
        let term = (*detail == "subscription").then(|| world.instance(id).expect("there").expires);
        assert_eq!(instance.expires, term, "{id}");
    }
}

#[tokio::test]
async fn subscriptions_say_what_happens_at_their_end() {
    let world = world();
    let mut cases: Vec<(String, Option<bool>)> = Vec::new();
    for (renewal, renewed) in [
        (Renewal::AutoRenewal, true),
        (Renewal::Normal, false),
        (Renewal::NotRenewal, false),
    ] {
        let spec = InstanceSpec {
            charge: Charge::PrePaid,
            renewal,
            ..InstanceSpec::of(TYPE)
        };
        cases.push((add(&world, HANGZHOU, spec), Some(renewed)));
    }
    for charge in [Charge::PostPaid, Charge::SpotAsPriceGo] {
        let spec = InstanceSpec {
            charge,
            ..InstanceSpec::of(TYPE)
        };
        cases.push((add(&world, HANGZHOU, spec), None));
    }
    let rig = Rig::discovered(&world, |_| {}).await;
    for _ in 0..2 {
        let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
        let instances = instances.expect("listing");
        assert!(!cx.is_degraded());
        for (id, renewed) in &cases {
            assert_eq!(by_id(&instances, id).auto_renew, *renewed, "{id}");
        }
    }
    assert_eq!(rig.calls_of("DescribeInstanceAutoRenewAttribute"), 1, "once an hour");
}

#[tokio::test]
async fn renewals_are_asked_for_a_hundred_subscriptions_at_a_time() {
    let world = world();
    let spec = InstanceSpec {
        charge: Charge::PrePaid,
        renewal: Renewal::AutoRenewal,
        ..InstanceSpec::of(TYPE)
    };
    world.add_instances(UID, HANGZHOU, 250, &spec);
    let rig = Rig::discovered(&world, |_| {}).await;
    let listed = || async { rig.instances_in(UID, HANGZHOU).await.0.expect("listing") };
    let calls = || rig.calls_of("DescribeInstanceAutoRenewAttribute");
    assert_eq!(listed().await.iter().filter(|i| i.auto_renew.is_some()).count(), 250);
    assert_eq!(calls(), 3);
    // One more is one more call, and does not ask for the others again.
    add(&world, HANGZHOU, spec);
    assert_eq!(listed().await.iter().filter(|i| i.auto_renew.is_some()).count(), 251);
    assert_eq!(calls(), 4);
}

#[tokio::test]
async fn one_subscription_that_is_not_known_yet_costs_no_other() {
    let world = world();
    let spec = InstanceSpec {
        charge: Charge::PrePaid,
        ..InstanceSpec::of(TYPE)
    };
    world.add_instances(UID, HANGZHOU, 99, &spec);
    let new = InstanceSpec {
        listed_only: true,
        ..spec
    };
    let new = add(&world, HANGZHOU, new);
    let rig = Rig::discovered(&world, |_| {}).await;
    for expected in [99, 100] {
        let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
        let instances = instances.expect("listing");
        assert_eq!(instances.len(), 100);
        assert_eq!(instances.iter().filter(|i| i.auto_renew.is_some()).count(), expected);
        assert!(!cx.is_degraded());
        world.update(&new, |instance| instance.spec.listed_only = false);
    }
}

#[tokio::test]
async fn a_missing_permission_for_renewals_costs_no_instance() {
    let world = world();
    let spec = InstanceSpec {
        charge: Charge::PrePaid,
        ..InstanceSpec::of(TYPE)
    };
    world.add_instances(UID, HANGZHOU, 3, &spec);
    world.deny(UID, "ecs:DescribeInstanceAutoRenewAttribute");
    let rig = Rig::discovered(&world, |_| {}).await;
    let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
    assert_eq!(instances.expect("listing").len(), 3);
    assert!(cx.is_degraded());
    assert_eq!(cx.errors(Reason::Permission), 1);
}

// P25
#[tokio::test]
async fn every_instance_has_its_mode_however_fast_they_come_and_go() {
    let world = world();
    let rig = Rig::discovered(&world, |_| {}).await;
    let spot = InstanceSpec {
        charge: Charge::SpotAsPriceGo,
        ..InstanceSpec::of(TYPE)
    };
    let mut fleet: Vec<String> = Vec::new();
    for _ in 0..3 {
        for id in fleet.drain(..) {
            world.remove(&id);
        }
        fleet = world.add_instances(UID, HANGZHOU, 500, &spot);
        let (instances, _) = rig.instances_in(UID, HANGZHOU).await;
        let instances = instances.expect("listing");
        assert_eq!(ids(&instances), fleet.iter().cloned().collect());
        assert!(instances.iter().all(|i| i.billing.mode == BillingMode::Spot));
    }
}

// P36
#[tokio::test]
async fn slices_of_cards_are_fractions_and_unknown_counts_are_absent() {
    let world = world();
    let of = |instance_type: &str, hide_gpus, stated: Option<(u32, &str)>| {
        let spec = InstanceSpec {
            hide_gpus,
            stated_gpus: stated.map(|(amount, model)| (amount, model.to_owned())),
            ..InstanceSpec::of(instance_type)
        };
        add(&world, HANGZHOU, spec)
    };
    let cases = [
        // The API states 0 cards for slices, or nothing.
        (of("ecs.vgn6i-m4-vws.xlarge", false, None), Some(0.25)),
        (of("ecs.sgn7i-vws-m2.xlarge", true, None), Some(1.0 / 12.0)),
        (
            of("ecs.sgn7i-vws-m2.xlarge", false, Some((1, "NVIDIA A10"))),
            Some(1.0 / 12.0),
        ),
        (of("ecs.gn8v-8x.48xlarge", false, None), Some(8.0)),
        (of(TYPE, true, None), Some(1.0)),
        // In the type API, not in the catalogue; in neither; in neither, and stated.
        (of("ecs.gn10x-c32g4.32xlarge", true, None), Some(4.0)),
        (of("ecs.gn11q-c16g2.8xlarge", false, None), None),
        (
            of("ecs.gn11q-c16g2.8xlarge", false, Some((2, "NVIDIA X1000"))),
            Some(2.0),
        ),
    ];
    for other in ["ecs.g7.xlarge", "ecs.ebmg7.32xlarge", "ecs.f3-c4f1.xlarge"] {
        of(other, false, None);
    }
    let rig = Rig::discovered(&world, |_| {}).await;
    for _ in 0..2 {
        let (instances, _) = rig.instances_in(UID, HANGZHOU).await;
        let instances = instances.expect("listing");
        assert_eq!(instances.len(), cases.len(), "CPU and FPGA machines are not listed");
        for (id, count) in &cases {
            let instance = by_id(&instances, id);
            let found = instance.accelerators.count;
            assert_eq!(found, count.and_then(GpuCount::new), "{}", instance.instance_type);
        }
    }
    assert_eq!(rig.calls_of("DescribeInstanceTypes"), 1, "once a day");
}

#[tokio::test]
async fn types_that_no_catalogue_has_are_asked_for_ten_at_a_time() {
    let world = world();
    for number in 0..12 {
        add(
            &world,
            HANGZHOU,
            InstanceSpec::of(&format!("ecs.gn99-c{number}.xlarge")),
        );
    }
    let rig = Rig::discovered(&world, |_| {}).await;
    for _ in 0..2 {
        let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
        let instances = instances.expect("listing");
        assert_eq!(instances.len(), 12);
        assert!(instances.iter().all(|i| i.accelerators.count.is_none()) && !cx.is_degraded());
        // What the type API does not know either is not asked for again.
        assert_eq!(rig.calls_of("DescribeInstanceTypes"), 2);
    }
}

#[tokio::test]
async fn stopped_machines_are_told_by_whether_they_are_charged() {
    let world = world();
    let stopped = |charge, mode| {
        let spec = InstanceSpec {
            charge,
            ..InstanceSpec::of(TYPE).stopped(mode)
        };
        add(&world, HANGZHOU, spec)
    };
    let mut cases = vec![
        (stopped(Charge::PostPaid, StoppedMode::StopCharging), State::Stopped),
        (
            stopped(Charge::SpotAsPriceGo, StoppedMode::StopCharging),
            State::Stopped,
        ),
        (
            stopped(Charge::PostPaid, StoppedMode::KeepCharging),
            State::StoppedBilled,
        ),
        (
            stopped(Charge::PostPaid, StoppedMode::NotApplicable),
            State::StoppedBilled,
        ),
        (
            stopped(Charge::PrePaid, StoppedMode::NotApplicable),
            State::StoppedBilled,
        ),
        // A subscription is paid for to its end, whatever is said here.
        (
            stopped(Charge::PrePaid, StoppedMode::StopCharging),
            State::StoppedBilled,
        ),
    ];
    for (status, state) in [
        (Status::Pending, State::Starting),
        (Status::Starting, State::Starting),
        (Status::Running, State::Running),
        (Status::Stopping, State::Stopping),
    ] {
        let spec = InstanceSpec {
            status,
            ..InstanceSpec::of(TYPE)
        };
        cases.push((add(&world, HANGZHOU, spec), state));
    }
    let instances = listed(&world).await;
    for (id, state) in &cases {
        assert_eq!(by_id(&instances, id).state, *state, "{id}");
    }
    // The economical mode ends with the next start.
    assert!(world.start(&cases[0].0));
    assert_eq!(by_id(&listed(&world).await, &cases[0].0).state, State::Running);
}

#[tokio::test]
async fn what_joins_with_other_data_is_read() {
    let world = world();
    let spec = InstanceSpec {
        private_ip: Some("172.16.9.9".into()),
        private_pool: Some("eap-1".into()),
        os_type: "windows".into(),
        ..InstanceSpec::of(TYPE).named("训练 节点~*'()+/=&%")
    };
    let spec = spec
        .tag("ack.aliyun.com", "c1")
        .tag("ack.alibabacloud.com/nodepool-id", "np-1")
        .tag("负责人", "王小明")
        .tag("password", "s3cret");
    let id = add(&world, HANGZHOU, spec);
    let rig = Rig::discovered(&world, |options| options.owner_tags = vec!["负责人".into()]).await;
    let (instances, _) = rig.instances_in(UID, HANGZHOU).await;
    let instances = instances.expect("listing");
    let found = by_id(&instances, &id);
    assert_eq!(&*found.name, "训练 节点~*'()+/=&%");
    assert_eq!((&*found.cluster, &*found.pool, &*found.owner), ("c1", "np-1", "王小明"));
    assert_eq!((&*found.private_address, &*found.platform), ("172.16.9.9", "windows"));
    assert_eq!((&*found.reservation_id, &*found.zone), ("eap-1", "cn-hangzhou-h"));
    assert!(found.private_host.starts_with("iZ"), "{}", found.private_host);
    assert!(!found.tags.iter().any(|tag| &*tag.key == "password"));
}

// P46
#[tokio::test]
async fn a_hanging_region_leaves_the_others_fresh() {
    let world = World::demo(7, 120);
    let rig = Rig::discovered(&world, |_| {}).await;
    let own = world.base_account();
    let found = rig.discover().await;
    let scopes: Vec<_> = inventory_targets(&found)
        .iter()
        .map(|(account, region)| scope(account, region))
        .collect();
    assert!(scopes.iter().any(|scope| &*scope.region == "cn-shanghai") && scopes.len() > 3);
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::Hang).region("cn-shanghai"));
    let looks = scopes.iter().map(|scope| async {
        let hangs = &*scope.region == "cn-shanghai";
        let limit = if hangs { Duration::from_secs(3) } else { PATIENT };
        rig.collect(scope, Dataset::Inventory, limit).await
    });
    for (scope, (results, cx)) in scopes.iter().zip(futures::future::join_all(looks).await) {
        assert_eq!(&*scope.account.id, own);
        let hangs = &*scope.region == "cn-shanghai";
        let reason = results[0].1.as_ref().err().map(|error| error.reason);
        assert_eq!(reason, hangs.then_some(Reason::Timeout), "{}", scope.region);
        assert_eq!(cx.errors(Reason::Timeout) > 0, hangs, "{}", scope.region);
    }
}

// P47
#[tokio::test]
async fn an_empty_list_without_the_permission_is_told_apart_from_an_empty_region() {
    let world = two_accounts();
    add(&world, HANGZHOU, InstanceSpec::of(TYPE));
    let rig = Rig::discovered(&world, both).await;
    world.deny(UID, "ecs:DescribeInstances");
    for region in [HANGZHOU, SINGAPORE] {
        let (result, cx) = rig.instances_in(UID, region).await;
        let error = result.expect_err("refused");
        assert_eq!((error.reason, cx.errors(Reason::Permission)), (Reason::Permission, 1));
        assert!(error.to_string().contains("add ecs:DescribeInstances"), "{error}");
        assert!(cx.calls().iter().any(|call| call.error.is_some()), "check shows it");
    }
    // The other account may look, and has nothing.
    let (empty, cx) = rig.instances_in(SECOND, HANGZHOU).await;
    assert!(empty.expect("empty").is_empty());
    assert_eq!(
        cx.errors(Reason::Permission) + cx.errors(Reason::Other),
        0,
        "a probe is no error"
    );
    world.allow(UID, "ecs:DescribeInstances");
    assert_eq!(rig.instances_in(UID, HANGZHOU).await.0.expect("permitted").len(), 1);
}

// P47
#[tokio::test]
async fn a_region_whose_machines_are_all_removed_is_empty_after_a_dry_run() {
    let world = world();
    let fleet = world.add_instances(UID, HANGZHOU, 3, &InstanceSpec::of(TYPE));
    let rig = Rig::discovered(&world, |_| {}).await;
    let listed = || async { rig.instances_in(UID, HANGZHOU).await.0.map(|found| found.len()) };
    assert_eq!(listed().await.expect("full"), 3);
    assert_eq!(rig.refused_with("DescribeInstances", "DryRunOperation"), 0);
    for id in &fleet {
        assert!(world.remove(id));
    }
    for _ in 0..2 {
        assert_eq!(listed().await.expect("empty"), 0);
        assert_eq!(rig.refused_with("DescribeInstances", "DryRunOperation"), 1, "once");
    }
    // Full, and without the permission all at once: not what it was before.
    add(&world, HANGZHOU, InstanceSpec::of(TYPE));
    assert_eq!(listed().await.expect("full again"), 1);
    world.deny(UID, "ecs:DescribeInstances");
    assert_eq!(listed().await.expect_err("refused").reason, Reason::Permission);
}

#[tokio::test]
async fn a_region_of_cpu_machines_is_not_asked_for_permission() {
    let world = world();
    add(&world, HANGZHOU, InstanceSpec::of("ecs.g7.xlarge"));
    assert!(listed(&world).await.is_empty());
    let rig = Rig::discovered(&world, |_| {}).await;
    rig.instances_in(UID, HANGZHOU).await.0.expect("listing");
    assert_eq!(rig.calls_of("DescribeInstances"), 1);
}

// P48
#[tokio::test]
async fn a_malformed_record_is_skipped_and_counted() {
    let world = world();
    world.add_instances(UID, HANGZHOU, 99, &InstanceSpec::of(TYPE));
    let rig = Rig::discovered(&world, |_| {}).await;
    rig.fault(FaultKind::MalformedRecord, "DescribeInstances", Some(HANGZHOU));
    let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
    assert_eq!((instances.expect("listing").len(), cx.skipped("malformed")), (99, 1));
    rig.server.faults().clear();
    rig.fault(FaultKind::DuplicateRows, "DescribeInstances", Some(HANGZHOU));
    let (instances, cx) = rig.instances_in(UID, HANGZHOU).await;
    assert_eq!((instances.expect("listing").len(), cx.skipped("duplicate")), (99, 99));
}
