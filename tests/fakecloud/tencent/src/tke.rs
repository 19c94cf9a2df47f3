//! Clusters, their nodes, container instances and what pays for pods.

use std::collections::BTreeSet;

use jiff::{Timestamp, tz};
use serde_json::{Value, json};

use crate::actions::Asked;
use crate::cvm::text;
use crate::error::ApiError;
use crate::world::{Account, ContainerSpec, CouponSpec, NodeSpec, gpus_of};

/// Answers a call of TKE.
pub(crate) fn answer(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    match asked.operation {
        "DescribeClusters" => {
            let rows = clusters(account, asked).into_iter().map(|id| {
                json!({
                    "ClusterId": id, "ClusterName": name_of(id), "ClusterType": "MANAGED_CLUSTER",
                    "ClusterStatus": "Running",
                })
            });
            asked.list("Clusters", "TotalCount", rows.collect(), 100)
        }
        "DescribeClusterInstances" => nodes(account, asked),
        "DescribeEKSContainerInstances" => {
            let here = account.containers.iter().filter(|pod| asked.is_here(&pod.region));
            asked.list("EksCis", "TotalCount", here.map(container).collect(), 100)
        }
        "DescribeReservedInstances" => {
            let here = account.coupons.iter().filter(|coupon| asked.is_here(&coupon.region));
            asked.list("ReservedInstanceSet", "TotalCount", here.map(coupon).collect(), 100)
        }
        _ => Err(ApiError::new("InvalidAction", "The action is not there.")),
    }
}

/// Name of a cluster.
pub(crate) fn name_of(cluster: &str) -> String {
    let last = cluster.rsplit('-').next().unwrap_or_default();
    format!("训练集群-{last}")
}

/// The clusters of a region are those that something is a node of.
fn clusters<'a>(account: &'a Account, asked: &Asked<'_>) -> BTreeSet<&'a str> {
    let machines = account
        .machines
        .iter()
        .map(|machine| (&machine.region, &machine.cluster));
    let nodes = account.nodes.iter().map(|node| (&node.region, &node.cluster));
    machines
        .chain(nodes)
        .filter(|(region, cluster)| asked.is_here(region) && !cluster.is_empty())
        .map(|(_, cluster)| cluster.as_str())
        .collect()
}

fn nodes(account: &Account, asked: &Asked<'_>) -> Result<Value, ApiError> {
    let cluster = asked.body["ClusterId"].as_str().unwrap_or_default();
    if !clusters(account, asked).contains(cluster) {
        return Err(ApiError::new(
            "ResourceNotFound.ClusterNotFound",
            "The cluster does not exist.",
        ));
    }
    let regular = account
        .machines
        .iter()
        .filter(|machine| asked.is_here(&machine.region) && machine.cluster == cluster)
        .map(|machine| {
            json!({
                "InstanceId": machine.id, "NodeType": "Regular", "InstanceRole": "WORKER", "InstanceState": "running",
                "NodePoolId": machine.pool, "LanIP": "10.0.0.2", "Regular": {"AutoscalingGroupId": "asg-0a1b2c3d"},
            })
        });
    let native = account
        .nodes
        .iter()
        .filter(|node| asked.is_here(&node.region) && node.cluster == cluster)
        .map(native);
    asked.list("InstanceSet", "TotalCount", regular.chain(native).collect(), 100)
}

fn native(node: &NodeSpec) -> Value {
    let (gpus, _) = gpus_of(&node.instance_type);
    json!({
        "InstanceId": node.id, "NodeType": "Native", "InstanceRole": "WORKER", "InstanceState": node.state,
        "NodePoolId": node.pool, "LanIP": "10.0.0.3",
        "Native": {
            "MachineName": format!("np-{}", node.id), "DisplayName": node.name, "MachineType": "Native",
            "InstanceId": node.id, "InstanceType": node.instance_type, "GPU": gpus, "Zone": node.zone,
            "InstanceChargeType": node.charge_type, "PayMode": node.charge_type, "RenewFlag": text(&node.renew_flag),
            "CreatedAt": beijing(node.created), "ExpiredTime": node.expires.map_or_else(String::new, beijing),
        },
    })
}

/// Times of this service have no zone.
fn beijing(time: Timestamp) -> String {
    let there = tz::Offset::constant(8).to_datetime(time);
    there.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn container(pod: &ContainerSpec) -> Value {
    json!({
        "EksCiId": pod.id, "EksCiName": pod.name, "Cpu": 8, "Memory": 32, "Status": pod.status,
        "GpuType": text(&pod.gpu_type), "GpuCount": pod.gpu_count, "PrivateIp": "10.0.0.4",
        "CreationTime": pod.created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}

fn coupon(coupon: &CouponSpec) -> Value {
    json!({
        "ReservedInstanceId": coupon.id, "ReservedInstanceName": coupon.id, "Status": coupon.status,
        "ResourceType": coupon.resource_type, "GpuCount": coupon.gpus, "Cpu": 8, "Memory": 32, "TimeSpan": 12,
        "Scope": "region", "ActiveAt": "2026-01-01 00:00:00", "ExpireAt": beijing(coupon.expires),
        "DeductStatus": if coupon.is_used { "Deduct" } else { "NotDeduct" },
    })
}
