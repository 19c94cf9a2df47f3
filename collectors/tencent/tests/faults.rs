//! Every call × every kind of fault: the error is counted under the right
//! reason, nothing panics, and what does not depend on the call goes on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::{collections::BTreeSet, time::Duration};

use gpuwatch_collector_core::{Covers, Dataset, Reason, Scope};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_test_kit::{expected, for_each_kind, inventory_targets};
use serde_json::json;
use support::{GUANGZHOU, OWNER, PATIENT, Rig, SECOND, SINGAPORE, Script, international, machine, role, scope, script};

/// How long a run may take: a hang lasts until the end, everything else comes
/// to an end by itself, however slow the machine.
fn limit(kind: FaultKind) -> Duration {
    if kind == FaultKind::Hang {
        Duration::from_secs(6)
    } else {
        PATIENT
    }
}

fn world() -> Script {
    let script = script();
    for region in [GUANGZHOU, SINGAPORE] {
        for id in ["ins-1", "ins-2", "ins-3"] {
            script.add(OWNER, region, "cvm DescribeInstances", machine(id));
        }
        script.add(
            OWNER,
            region,
            "tke DescribeClusters",
            json!({"ClusterId": "cls-1", "ClusterName": "c"}),
        );
        let node = json!({"_cluster": "cls-1", "InstanceId": "ins-1"});
        script.add(OWNER, region, "tke DescribeClusterInstances", node);
        let pod = json!({"EksCiId": "eksci-1", "GpuCount": 1, "GpuType": "T4", "Status": "Running"});
        script.add(OWNER, region, "tke DescribeEKSContainerInstances", pod);
        let reserved = json!({
            "ReservedInstanceId": "ri-1", "InstanceType": "GN7.2XLARGE32", "InstanceCount": 1, "State": "active",
        });
        script.add(OWNER, region, "cvm DescribeReservedInstances", reserved);
        let host = json!({"HostId": "host-1", "HostState": "RUNNING", "HostResource": {"GpuTotal": 8}});
        script.add(OWNER, region, "cvm DescribeHosts", host);
        let coupon = json!({"ReservedInstanceId": "eksri-1", "Status": "Active", "GpuCount": "1"});
        script.add(OWNER, region, "tke DescribeReservedInstances", coupon);
    }
    script.add(
        OWNER,
        "",
        "svp DescribeSavingPlanOverview",
        json!({"SpId": "sp-1", "Status": 1}),
    );
    let covered = json!({"ResourceId": "ins-1", "StartDate": "2026-11-30", "SpCoverage": 90.0});
    script.add(OWNER, "", "svp DescribeSavingPlanCoverage", covered);
    script
}

/// An operation of a part of a dataset, spoilt in one region (or where the
/// account as a whole is asked about). `is_optional` where a region without
/// the service is no failure.
async fn part(
    service: &'static str,
    operation: &'static str,
    region: &'static str,
    part: &'static str,
    is_optional: bool,
    is_international: bool,
) {
    for_each_kind(move |kind| async move {
        let rig = Rig::discovered(world(), |options| {
            if is_international {
                international(options);
            }
        })
        .await;
        let place = Some(region).filter(|region| *region != Scope::GLOBAL);
        rig.fault(kind, service, operation, place);
        let dataset = if matches!(part, "instances" | "cluster_nodes" | "container_instances") {
            Dataset::Inventory
        } else {
            Dataset::Commitments
        };
        let (results, cx) = rig.collect(&scope(OWNER, region), dataset, limit(kind)).await;
        let expected = expected(kind, true).filter(|reason| !(is_optional && *reason == Reason::NotEnabled));
        for (name, result) in &results {
            let reason = result.as_ref().err().map(|error| error.reason);
            let wanted = expected.filter(|_| *name == part);
            assert_eq!(reason, wanted, "{operation} {kind}, {name}: {result:?}");
        }
        let counts = |reason: &Reason| !matches!(reason, Reason::Timeout) && !kind.alters_answer();
        if let Some(reason) = expected.filter(counts) {
            assert!(cx.errors(reason) > 0, "{operation} {kind}: not counted");
        }
        let (others, _) = rig.collect(&scope(OWNER, GUANGZHOU), Dataset::Inventory, PATIENT).await;
        assert!(
            others.iter().all(|(_, result)| result.is_ok()),
            "{operation} {kind}: {others:?}"
        );
    })
    .await;
}

/// An operation of discovery, spoilt for one of two accounts.
async fn discovery(operation: &'static str, account: &'static str, covers: Covers) {
    for_each_kind(move |kind| async move {
        let rig = Rig::new(world(), |options| {
            options.assume_roles = vec!["self".into(), role(SECOND)];
        })
        .await;
        rig.server
            .faults()
            .add(FaultRule::new(kind).operation(operation).account(account));
        let (found, _) = rig.discover_within(limit(kind)).await;
        let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
        // Without permission for any listing, the known regions are polled.
        let has_fallback =
            operation == "DescribeRegions" && matches!(kind, FaultKind::AccessDenied | FaultKind::OptInRequired);
        match expected(kind, false).filter(|_| !has_fallback) {
            Some(reason) => assert_eq!(failures, [(covers, reason)], "{operation} {kind}: {:?}", found.failures),
            None => assert!(failures.is_empty(), "{operation} {kind}: {:?}", found.failures),
        }
        if covers == Covers::Account {
            let accounts: BTreeSet<_> = inventory_targets(&found).into_iter().map(|(a, _)| a).collect();
            assert!(accounts.contains(OWNER), "{operation} {kind}");
            assert_eq!(accounts.contains(SECOND), failures.is_empty(), "{operation} {kind}");
        }
    })
    .await;
}

/// Type facts cost detail, never the listing.
async fn type_facts(operation: &'static str) {
    for_each_kind(move |kind| async move {
        let script = world();
        let quiet = support::machine_with("ins-4", json!({"GPUInfo": null}));
        script.add(OWNER, SINGAPORE, "cvm DescribeInstances", quiet);
        let rig = Rig::discovered(script, |_| {}).await;
        rig.fault(kind, "cvm", operation, Some(SINGAPORE));
        let (results, cx) = rig
            .collect(&scope(OWNER, SINGAPORE), Dataset::Inventory, limit(kind))
            .await;
        assert!(
            results.iter().all(|(_, result)| result.is_ok()),
            "{operation} {kind}: {results:?}"
        );
        let expected = expected(kind, false).filter(|reason| *reason != Reason::NotEnabled);
        assert_eq!(cx.is_degraded(), expected.is_some(), "{operation} {kind}");
    })
    .await;
}

#[tokio::test]
async fn every_fault_of_every_call_of_the_inventory_is_counted_and_contained() {
    tokio::join!(
        part("cvm", "DescribeInstances", SINGAPORE, "instances", false, false),
        part("tke", "DescribeClusters", SINGAPORE, "cluster_nodes", true, false),
        part(
            "tke",
            "DescribeClusterInstances",
            SINGAPORE,
            "cluster_nodes",
            false,
            false
        ),
        part(
            "tke",
            "DescribeEKSContainerInstances",
            SINGAPORE,
            "container_instances",
            true,
            false
        ),
        type_facts("DescribeZoneInstanceConfigInfos"),
        type_facts("DescribeInstanceTypeConfigs"),
    );
}

#[tokio::test]
async fn every_fault_of_every_call_of_the_commitments_is_counted_and_contained() {
    tokio::join!(
        part(
            "cvm",
            "DescribeReservedInstances",
            SINGAPORE,
            "reserved_instances",
            true,
            true
        ),
        part("cvm", "DescribeHosts", SINGAPORE, "dedicated_hosts", true, false),
        part(
            "tke",
            "DescribeReservedInstances",
            SINGAPORE,
            "super_node_reservations",
            true,
            false
        ),
        part(
            "svp",
            "DescribeSavingPlanOverview",
            Scope::GLOBAL,
            "savings_plans",
            true,
            false
        ),
    );
}

#[tokio::test]
async fn every_fault_of_every_call_of_discovery_is_counted_and_contained() {
    tokio::join!(
        discovery("GetCallerIdentity", OWNER, Covers::Everything),
        discovery("AssumeRole", OWNER, Covers::Account),
        discovery("DescribeRegions", SECOND, Covers::Account),
    );
}

#[tokio::test]
async fn coverage_that_cannot_be_had_costs_no_plan() {
    let rig = Rig::discovered(world(), |_| {}).await;
    rig.fault(FaultKind::AccessDenied, "svp", "DescribeSavingPlanCoverage", None);
    let (results, cx) = rig
        .collect(&scope(OWNER, Scope::GLOBAL), Dataset::Commitments, PATIENT)
        .await;
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    assert!(cx.is_degraded() && cx.errors(Reason::Permission) > 0);
}

#[tokio::test]
async fn throttling_that_ends_is_waited_out() {
    let rig = Rig::discovered(world(), |_| {}).await;
    let throttled = FaultKind::Throttled { retry_after: None };
    rig.server
        .faults()
        .add(FaultRule::new(throttled).operation("DescribeInstances").times(2));
    let (instances, cx) = rig.instances_in(OWNER, GUANGZHOU).await;
    assert!(instances.is_ok());
    assert_eq!(cx.errors(Reason::Throttled), 2);
}
