//! Instances, their accelerators, states and billing modes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeSet, time::Duration};

use gpuwatch_collector_core::{Dataset, Reason};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_inventory::{BillingMode, Certainty, Instance, State};
use gpuwatch_test_kit::gpus;
use serde_json::{Value, json};
use support::{GUANGZHOU, OWNER, PATIENT, Rig, SECOND, SINGAPORE, machine, machine_with, scope, script};

const LISTING: &str = "cvm DescribeInstances";

async fn listed(records: Vec<Value>) -> (Vec<Instance>, Rig) {
    let script = script();
    for record in records {
        script.add(OWNER, GUANGZHOU, LISTING, record);
    }
    let rig = Rig::discovered(script, |_| {}).await;
    let (instances, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    (instances.expect("listing"), rig)
}

fn ids(instances: &[Instance]) -> BTreeSet<&str> {
    instances.iter().map(|instance| &*instance.id).collect()
}

// P53
#[tokio::test]
async fn every_one_of_2345_instances_is_found_in_pages_of_a_hundred() {
    let script = script();
    let fleet: Vec<String> = (0..2345).map(|n| format!("ins-{n:08}")).collect();
    for id in &fleet {
        script.add(OWNER, GUANGZHOU, LISTING, machine(id));
    }
    for n in 0..300 {
        let cpu = json!({"InstanceType": "S5.LARGE8", "GPUInfo": null});
        script.add(OWNER, GUANGZHOU, LISTING, machine_with(&format!("ins-cpu{n}"), cpu));
    }
    let rig = Rig::discovered(script, |_| {}).await;
    let (instances, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(
        ids(&instances.expect("listing")),
        fleet.iter().map(String::as_str).collect()
    );
    assert_eq!(rig.calls_of("DescribeInstances"), 27);
}

// P24, P25, P28
#[tokio::test]
async fn every_billing_mode_is_told_with_what_is_known_about_it() {
    let charge = |id: &str, charge: &str| {
        machine_with(
            id,
            json!({"InstanceChargeType": charge, "ExpiredTime": "2027-01-01T00:00:00Z"}),
        )
    };
    let (instances, _rig) = listed(vec![
        charge("ins-od", "POSTPAID_BY_HOUR"),
        charge("ins-spot", "SPOTPAID"),
        charge("ins-pre", "PREPAID"),
        charge("ins-cdh", "CDHPAID"),
        charge("ins-cdc", "CDCPAID"),
        charge("ins-uw", "UNDERWRITE"),
        charge("ins-new", "NEWPAID"),
    ])
    .await;
    let expected = [
        ("ins-od", BillingMode::OnDemand, "", Certainty::Estimated, false),
        ("ins-spot", BillingMode::Spot, "", Certainty::Exact, false),
        ("ins-pre", BillingMode::Reserved, "subscription", Certainty::Exact, true),
        (
            "ins-cdh",
            BillingMode::Reserved,
            "dedicated_host",
            Certainty::Exact,
            false,
        ),
        (
            "ins-cdc",
            BillingMode::Reserved,
            "dedicated_cluster",
            Certainty::Exact,
            false,
        ),
        ("ins-uw", BillingMode::Reserved, "underwrite", Certainty::Exact, true),
        ("ins-new", BillingMode::Unknown, "NEWPAID", Certainty::Exact, false),
    ];
    assert_eq!(instances.len(), expected.len());
    for (id, mode, detail, certainty, expires) in expected {
        let instance = instances.iter().find(|i| &*i.id == id).expect(id);
        let billing = &instance.billing;
        assert_eq!(
            (billing.mode, &*billing.detail, billing.certainty),
            (mode, detail, certainty),
            "{id}"
        );
        assert_eq!(instance.expires.is_some(), expires, "{id}");
    }
}

// P36
#[tokio::test]
async fn fractions_are_exact_and_unknown_counts_are_absent() {
    let with = |id: &str, kind: &str, info: Value| machine_with(id, json!({"InstanceType": kind, "GPUInfo": info}));
    let (instances, _rig) = listed(vec![
        with(
            "ins-quarter",
            "GN7.LARGE20",
            json!({"GPUCount": 0.25, "GPUType": "NVIDIA T4"}),
        ),
        with("ins-half", "GN7.2XLARGE40", json!(null)),
        with(
            "ins-eight",
            "GT4.41XLARGE948",
            json!({"GPUCount": 8, "GPUType": "NVIDIA A100"}),
        ),
        with("ins-hcc", "HCCPNV4ane.58XLARGE1929", json!(null)),
        with(
            "ins-bare",
            "BMG5t.24XLARGE384",
            json!({"GPUCount": 4, "GPUType": "NVIDIA T4"}),
        ),
        with("ins-ic", "HCCIC5.32XLARGE", json!({"GPUCount": 0, "GPUType": ""})),
        with("ins-cpu", "S5.LARGE8", json!(null)),
    ])
    .await;
    let counts: Vec<_> = instances.iter().map(|i| (&*i.id, gpus(i))).collect();
    assert_eq!(
        counts,
        [
            ("ins-quarter", Some(0.25)),
            ("ins-half", Some(0.5)),
            ("ins-eight", Some(8.0)),
            ("ins-hcc", None),
            ("ins-bare", Some(4.0)),
        ]
    );
    assert_eq!(instances[0].accelerators.memory_mib, Some(4 * 1024));
    assert_eq!(&*instances[0].owner, "推荐");
}

#[tokio::test]
async fn the_type_tables_answer_for_instances_that_state_nothing() {
    let script = script();
    let quiet = |id: &str, kind: &str| machine_with(id, json!({"InstanceType": kind, "GPUInfo": null}));
    script.add(OWNER, GUANGZHOU, LISTING, quiet("ins-1", "NEW1.8XLARGE64"));
    script.add(OWNER, GUANGZHOU, LISTING, quiet("ins-2", "S9.8XLARGE64"));
    let zone = json!({"InstanceType": "NEW1.8XLARGE64", "Gpu": 1, "GpuCount": 0.5, "Remark": "1/2 * NVIDIA T4"});
    script.add(OWNER, GUANGZHOU, "cvm DescribeZoneInstanceConfigInfos", zone);
    let config =
        json!({"InstanceType": "NEW1.8XLARGE64", "GPU": 1, "GpuCount": 0.5, "GpuType": "N88a", "GpuMemory": 16.0});
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstanceTypeConfigs", config);
    let rig = Rig::discovered(script, |_| {}).await;
    for _ in 0..2 {
        let (instances, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
        let instances = instances.expect("listing");
        assert_eq!(ids(&instances), BTreeSet::from(["ins-1"]));
        assert_eq!(
            (gpus(&instances[0]), &*instances[0].accelerators.model),
            (Some(0.5), "T4")
        );
        assert_eq!(instances[0].accelerators.memory_mib, Some(8 * 1024));
        assert!(!cx.is_degraded());
    }
    // Asked once a day.
    assert_eq!(rig.calls_of("DescribeZoneInstanceConfigInfos"), 1);
    assert_eq!(rig.calls_of("DescribeInstanceTypeConfigs"), 1);
}

#[tokio::test]
async fn stopped_instances_are_told_by_whether_they_are_charged() {
    let stopped =
        |id: &str, mode: &str| machine_with(id, json!({"InstanceState": "STOPPED", "StopChargingMode": mode}));
    let (instances, _rig) = listed(vec![
        stopped("ins-1", "STOP_CHARGING"),
        stopped("ins-2", "KEEP_CHARGING"),
        stopped("ins-3", "NOT_APPLICABLE"),
        machine_with("ins-4", json!({"InstanceState": "SHUTDOWN"})),
        machine_with("ins-5", json!({"InstanceState": "BRAND_NEW"})),
        machine_with("ins-6", json!({"InstanceState": "LAUNCH_FAILED"})),
    ])
    .await;
    let states: Vec<_> = instances.iter().map(|i| i.state).collect();
    assert_eq!(
        states,
        [
            State::Stopped,
            State::StoppedBilled,
            State::StoppedBilled,
            State::Stopping,
            State::Unknown
        ]
    );
}

// P48
#[tokio::test]
async fn a_malformed_record_is_skipped_and_counted() {
    let script = script();
    for n in 0..99 {
        script.add(OWNER, GUANGZHOU, LISTING, machine(&format!("ins-{n}")));
    }
    script.add(OWNER, GUANGZHOU, LISTING, json!({"InstanceName": "nameless"}));
    script.add(OWNER, GUANGZHOU, LISTING, json!(7));
    let rig = Rig::discovered(script, |_| {}).await;
    let (instances, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(instances.expect("listing").len(), 99);
    assert_eq!((cx.skipped("no_id"), cx.skipped("malformed")), (1, 1));
}

#[tokio::test]
async fn no_machine_is_lost_while_the_set_moves() {
    let script = script();
    for n in 0..250 {
        script.add(OWNER, GUANGZHOU, LISTING, machine(&format!("ins-{n:03}")));
    }
    // After the first page, so that ins-100 moves to it.
    script.state().removals.push((1, "ins-005".into()));
    let rig = Rig::discovered(script, |_| {}).await;
    let (instances, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
    let instances = instances.expect("listing");
    let found = ids(&instances);
    for n in (0..250).filter(|n| *n != 5) {
        assert!(found.contains(format!("ins-{n:03}").as_str()), "{n}");
    }
    assert_eq!(found.len(), instances.len(), "each once");
    assert!(!cx.is_degraded());
    let (after, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(after.expect("listing").len(), 249);
}

// P46
#[tokio::test]
async fn a_hanging_region_leaves_the_others_fresh() {
    let script = script();
    for region in [GUANGZHOU, SINGAPORE] {
        script.add(OWNER, region, LISTING, machine("ins-1"));
    }
    let rig = Rig::discovered(script, |_| {}).await;
    rig.server
        .faults()
        .add(FaultRule::new(FaultKind::Hang).region(SINGAPORE));
    let (hanging, fine) = (scope(OWNER, SINGAPORE), scope(OWNER, GUANGZHOU));
    let (hanging, fine) = tokio::join!(
        rig.collect(&hanging, Dataset::Inventory, Duration::from_secs(3)),
        rig.collect(&fine, Dataset::Inventory, PATIENT),
    );
    assert!(fine.0.iter().all(|(_, result)| result.is_ok()), "{:?}", fine.0);
    assert!(
        hanging
            .0
            .iter()
            .all(|(_, result)| result.as_ref().err().is_some_and(|e| e.reason == Reason::Timeout)),
        "{:?}",
        hanging.0
    );
}

// P47
#[tokio::test]
async fn a_missing_permission_is_told_from_an_empty_region() {
    let script = script();
    script.refuse(OWNER, "DescribeInstances", "UnauthorizedOperation.CamNoAuth");
    let rig = Rig::discovered(script, |options| {
        options.assume_roles = vec!["self".into(), support::role(SECOND)];
    })
    .await;
    let (refused, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
    let error = refused.expect_err("refused");
    assert_eq!((error.reason, cx.errors(Reason::Permission)), (Reason::Permission, 1));
    assert!(error.to_string().contains("add cvm:DescribeInstances"), "{error}");
    let (empty, cx) = rig.instances_in(SECOND, GUANGZHOU).await;
    assert_eq!((empty.expect("empty").len(), cx.errors(Reason::Permission)), (0, 0));
}

#[tokio::test]
async fn nodes_have_their_cluster_and_those_outside_of_cvm_are_listed() {
    let script = script();
    script.add(OWNER, GUANGZHOU, LISTING, machine("ins-1"));
    script.add(
        OWNER,
        GUANGZHOU,
        "tke DescribeClusters",
        json!({"ClusterId": "cls-1", "ClusterName": "训练"}),
    );
    let nodes = [
        json!({"_cluster": "cls-1", "InstanceId": "ins-1", "NodeType": "Regular", "NodePoolId": "np-1"}),
        json!({"_cluster": "cls-1", "InstanceId": "eks-2", "NodeType": "Native", "NodePoolId": "np-2",
            "InstanceState": "running", "LanIP": "10.0.0.9", "Native": {
                "MachineType": "Native", "InstanceId": "eks-2", "DisplayName": "native-2", "GPU": 8,
                "InstanceType": "PNV4.56XLARGE932", "InstanceChargeType": "PREPAID", "Zone": "ap-guangzhou-6",
                "CreatedAt": "2026-01-01 10:43:51", "ExpiredTime": "2027-01-01 00:00:00"}}),
    ];
    for node in nodes {
        script.add(OWNER, GUANGZHOU, "tke DescribeClusterInstances", node);
    }
    let pod =
        json!({"EksCiId": "eksci-3", "EksCiName": "推理", "GpuCount": 1, "GpuType": "1/4*T4", "Status": "Running"});
    script.add(OWNER, GUANGZHOU, "tke DescribeEKSContainerInstances", pod);
    let rig = Rig::discovered(script, |_| {}).await;
    let (instances, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    let instances = instances.expect("listing");
    assert_eq!(ids(&instances), BTreeSet::from(["ins-1", "eks-2", "eksci-3"]));
    let by_id = |id: &str| instances.iter().find(|i| &*i.id == id).expect("listed");
    assert_eq!((&*by_id("ins-1").cluster, &*by_id("ins-1").pool), ("训练", "np-1"));
    let native = by_id("eks-2");
    assert_eq!(
        (&*native.cluster, &*native.pool, gpus(native)),
        ("训练", "np-2", Some(8.0))
    );
    assert_eq!(
        (native.billing.mode, &*native.billing.detail),
        (BillingMode::Reserved, "subscription")
    );
    assert_eq!(
        native.expires.expect("term").to_string(),
        "2026-12-31T16:00:00Z",
        "Beijing time"
    );
    assert_eq!(gpus(by_id("eksci-3")), Some(0.25));
    // Both parts take the nodes from one listing.
    assert_eq!(rig.calls_of("DescribeClusters"), 1);
}

#[tokio::test]
async fn without_clusters_the_instances_are_listed_all_the_same() {
    let script = script();
    script.add(OWNER, GUANGZHOU, LISTING, machine("ins-1"));
    script.refuse(OWNER, "DescribeClusters", "UnauthorizedOperation");
    let rig = Rig::discovered(script, |_| {}).await;
    let (results, _) = rig.collect(&scope(OWNER, GUANGZHOU), Dataset::Inventory, PATIENT).await;
    let outcomes: Vec<_> = results.iter().map(|(part, result)| (*part, result.is_ok())).collect();
    assert_eq!(
        outcomes,
        [
            ("instances", true),
            ("cluster_nodes", false),
            ("container_instances", true)
        ]
    );
    let error = results[1].1.as_ref().expect_err("refused");
    assert!(error.to_string().contains("add tke:DescribeClusters"), "{error}");
}

#[tokio::test]
async fn a_service_that_a_region_does_not_have_is_no_failure_and_asked_once() {
    let script = script();
    script.refuse("", "DescribeClusters", "UnsupportedRegion");
    script.refuse("", "DescribeEKSContainerInstances", "InvalidAction");
    let rig = Rig::discovered(script, |_| {}).await;
    for _ in 0..2 {
        assert!(rig.instances_in(OWNER, GUANGZHOU).await.0.is_ok());
    }
    assert_eq!(rig.calls_of("DescribeEKSContainerInstances"), 1);
    rig.script.refuse("", "DescribeInstances", "UnsupportedRegion");
    let (refused, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(refused.expect_err("not available").reason, Reason::NotEnabled);
}

#[tokio::test]
async fn a_service_that_answered_before_has_not_vanished() {
    let rig = Rig::discovered(script(), |_| {}).await;
    assert!(rig.instances_in(OWNER, GUANGZHOU).await.0.is_ok());
    rig.script.refuse("", "DescribeEKSContainerInstances", "InvalidAction");
    let (gone, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(gone.expect_err("no empty list").reason, Reason::NotEnabled);
}

#[tokio::test]
async fn an_answer_without_list_and_total_is_no_empty_region() {
    let script = script();
    script.state().hollow = true;
    let rig = Rig::discovered(script, |_| {}).await;
    let (hollow, _) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert_eq!(hollow.expect_err("not a page").reason, Reason::Decode);
}
