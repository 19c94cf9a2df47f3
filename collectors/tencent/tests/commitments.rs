//! Reserved instances, savings plans and dedicated hosts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::sync::Arc;

use gpuwatch_collector_core::{Collector, Dataset, Fleet, Reason, Scope};
use gpuwatch_inventory::{BillingMode, Certainty, CommitmentKind, GpuCount};
use serde_json::json;
use support::{GUANGZHOU, OWNER, PATIENT, Rig, SINGAPORE, international, machine, machine_with, scope, script};

#[tokio::test]
async fn reserved_instances_pay_for_running_instances_of_their_zone() {
    let script = script();
    for (id, zone, kind) in [
        ("ri-1", "ap-guangzhou-6", "GN7.2XLARGE32"),
        ("ri-2", "ap-guangzhou-7", "GN7.2XLARGE32"),
        ("ri-cpu", "ap-guangzhou-6", "S5.LARGE8"),
    ] {
        let record = json!({
            "ReservedInstanceId": id, "InstanceType": kind, "Zone": zone, "InstanceCount": 2, "State": "active",
            "StartTime": "2026-01-01T00:00:00Z", "EndTime": "2027-01-01T00:00:00Z", "OfferingType": "All Upfront",
        });
        script.add(OWNER, GUANGZHOU, "cvm DescribeReservedInstances", record);
    }
    let retired =
        json!({"ReservedInstanceId": "ri-3", "InstanceType": "GN7.2XLARGE32", "InstanceCount": 9, "State": "retired"});
    script.add(OWNER, GUANGZHOU, "cvm DescribeReservedInstances", retired);
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine("ins-1"));
    let spot = json!({"InstanceChargeType": "SPOTPAID"});
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine_with("ins-2", spot));
    let rig = Rig::discovered(script, international).await;
    let commitments = rig.commitments_in(OWNER, GUANGZHOU).await.expect("commitments");
    let instances = rig.instances_in(OWNER, GUANGZHOU).await.0.expect("listing");
    let mut fleet = Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments,
        coverage: vec![],
    };
    rig.collector.allocate(&mut fleet);
    let reserved: Vec<_> = fleet
        .commitments
        .iter()
        .map(|c| (&*c.id, c.kind, c.units, c.used_units))
        .collect();
    assert_eq!(
        reserved,
        [
            ("ri-1", CommitmentKind::ReservedInstance, Some(2), Some(1)),
            ("ri-2", CommitmentKind::ReservedInstance, Some(2), Some(0)),
        ]
    );
    assert_eq!(fleet.commitments[0].gpus_per_unit, Some(GpuCount::from(1)));
    let billing: Vec<_> = fleet
        .instances
        .iter()
        .map(|i| (i.billing.mode, &*i.billing.detail))
        .collect();
    assert_eq!(
        billing,
        [(BillingMode::Reserved, "reserved_instance"), (BillingMode::Spot, "")]
    );
    assert_eq!(fleet.instances[0].billing.certainty, Certainty::Estimated);
}

#[tokio::test]
async fn savings_plans_are_listed_once_and_label_what_they_paid_for() {
    let script = script();
    let plan = |id: &str, status: u8| {
        json!({"SpId": id, "SpType": "all", "Status": status, "PromiseAmount": "100", "Region": [],
            "StartTime": "2026-01-01 00:00:00", "EndTime": "2027-01-01 00:00:00"})
    };
    script.add(OWNER, "", "svp DescribeSavingPlanOverview", plan("sp-1", 1));
    script.add(OWNER, "", "svp DescribeSavingPlanOverview", plan("sp-2", 2));
    for (id, coverage) in [("ins-1", 80.0), ("ins-1", 0.0), ("ins-2", 20.0), ("ins-3", 100.0)] {
        let row = json!({"ResourceId": id, "StartDate": "2026-11-30", "SpCoverage": coverage});
        script.add(OWNER, "", "svp DescribeSavingPlanCoverage", row);
    }
    for id in ["ins-1", "ins-2"] {
        script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine(id));
    }
    let prepaid = json!({"InstanceChargeType": "PREPAID"});
    script.add(
        OWNER,
        GUANGZHOU,
        "cvm DescribeInstances",
        machine_with("ins-3", prepaid),
    );
    let rig = Rig::discovered(script, |_| {}).await;
    // Also when the inventory is the first to ask.
    let instances = rig.instances_in(OWNER, GUANGZHOU).await.0.expect("listing");
    let labels: Vec<_> = instances.iter().map(|i| (i.billing.mode, &*i.billing.detail)).collect();
    assert_eq!(
        labels,
        [
            (BillingMode::Reserved, "savings_plan"),
            (BillingMode::OnDemand, ""),
            (BillingMode::Reserved, "subscription"),
        ]
    );
    let plans = rig.commitments_in(OWNER, Scope::GLOBAL).await.expect("plans");
    let ids: Vec<_> = plans.iter().map(|p| (&*p.id, p.kind, &*p.region)).collect();
    assert_eq!(ids, [("sp-1", CommitmentKind::SavingsPlan, "global")]);
    assert_eq!((plans[0].units, plans[0].hourly.is_some()), (None, false));
}

#[tokio::test]
async fn an_account_without_savings_plans_is_not_asked_for_their_coverage() {
    let script = script();
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine("ins-1"));
    let rig = Rig::discovered(script, |_| {}).await;
    assert!(
        rig.commitments_in(OWNER, Scope::GLOBAL)
            .await
            .expect("plans")
            .is_empty()
    );
    rig.instances_in(OWNER, GUANGZHOU).await.0.expect("listing");
    assert_eq!(rig.calls_of("DescribeSavingPlanCoverage"), 0);
}

#[tokio::test]
async fn a_missing_permission_for_savings_plans_costs_no_inventory() {
    let script = script();
    script.add(OWNER, GUANGZHOU, "cvm DescribeInstances", machine("ins-1"));
    script.refuse("", "DescribeSavingPlanOverview", "UnauthorizedOperation");
    let rig = Rig::discovered(script, |_| {}).await;
    for _ in 0..2 {
        let (instances, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
        assert_eq!((instances.expect("listing").len(), cx.is_degraded()), (1, false));
    }
    assert_eq!(
        rig.calls_of("DescribeSavingPlanOverview"),
        1,
        "the inventory does not insist"
    );
    let error = rig.commitments_in(OWNER, Scope::GLOBAL).await.expect_err("refused");
    assert_eq!(error.reason, Reason::Permission);
    assert!(
        error.to_string().contains("add svp:DescribeSavingPlanOverview"),
        "{error}"
    );
}

#[tokio::test]
async fn hosts_and_super_node_reservations_show_what_is_unused() {
    let script = script();
    let host = json!({
        "HostId": "host-1", "HostType": "HG20", "HostState": "RUNNING", "HostChargeType": "PREPAID",
        "Placement": {"Zone": "ap-singapore-1"}, "ExpiredTime": "2027-01-01T00:00:00Z",
        "HostResource": {"GpuTotal": 8, "GpuAvailable": 2},
    });
    script.add(OWNER, SINGAPORE, "cvm DescribeHosts", host);
    let coupon = json!({
        "ReservedInstanceId": "eksri-1", "Status": "Active", "ResourceType": "t4", "GpuCount": "1",
        "ActiveAt": "2026-01-01T00:00:00Z", "ExpireAt": "2027-01-01T00:00:00Z", "DeductStatus": "NotDeduct",
    });
    script.add(OWNER, SINGAPORE, "tke DescribeReservedInstances", coupon);
    let rig = Rig::discovered(script, |_| {}).await;
    let commitments = rig.commitments_in(OWNER, SINGAPORE).await.expect("commitments");
    let gpus: Vec<_> = commitments
        .iter()
        .map(|c| (&*c.id, c.gpus().map(GpuCount::get), c.used_gpus().map(GpuCount::get)))
        .collect();
    assert_eq!(
        gpus,
        [("host-1", Some(8.0), Some(6.0)), ("eksri-1", Some(1.0), Some(0.0))]
    );
    let (parts, _) = rig
        .collect(&scope(OWNER, GUANGZHOU), Dataset::Commitments, PATIENT)
        .await;
    assert!(parts.iter().all(|(_, result)| result.is_ok()));
}
