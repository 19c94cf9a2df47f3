//! What accounts have: machines, nodes, containers, and what was bought ahead.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A CVM instance.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    /// `ins-…`; made up when empty.
    pub id: String,
    /// Name.
    pub name: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// `InstanceState`.
    pub state: String,
    /// `StopChargingMode`.
    pub stop_mode: String,
    /// `InstanceChargeType`; empty for null.
    pub charge_type: String,
    /// `RenewFlag`; empty for null.
    pub renew_flag: String,
    /// Dedicated host; empty for none.
    pub host: String,
    /// Creation.
    pub created: Timestamp,
    /// End of a prepaid term.
    pub expires: Option<Timestamp>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Whether the record states its accelerators.
    pub states_gpus: bool,
    /// TKE cluster it is a node of; empty for none.
    pub cluster: String,
    /// Node pool in that cluster; empty for none.
    pub pool: String,
    /// Part of yesterday's cost that a savings plan paid, in percent.
    pub plan_coverage: Option<f64>,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            region: "ap-guangzhou".to_owned(),
            zone: "ap-guangzhou-6".to_owned(),
            instance_type: "GN7.2XLARGE32".to_owned(),
            state: "RUNNING".to_owned(),
            stop_mode: "NOT_APPLICABLE".to_owned(),
            charge_type: "POSTPAID_BY_HOUR".to_owned(),
            renew_flag: String::new(),
            host: String::new(),
            created: Timestamp::UNIX_EPOCH,
            expires: None,
            tags: BTreeMap::new(),
            states_gpus: true,
            cluster: String::new(),
            pool: String::new(),
            plan_coverage: None,
        }
    }
}

/// A native node of a TKE cluster that is no CVM instance.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// `eks-…`.
    pub id: String,
    /// Name shown.
    pub name: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// `InstanceState` of the cluster's node: `initializing`, `running`, `failed`.
    pub state: String,
    /// `InstanceChargeType`.
    pub charge_type: String,
    /// `RenewFlag`; empty for null.
    pub renew_flag: String,
    /// Creation.
    pub created: Timestamp,
    /// End of a prepaid term.
    pub expires: Option<Timestamp>,
    /// Cluster.
    pub cluster: String,
    /// Node pool.
    pub pool: String,
}

/// A container instance: a pod without a cluster.
#[derive(Debug, Clone)]
pub struct ContainerSpec {
    /// `eksci-…`.
    pub id: String,
    /// Name.
    pub name: String,
    /// Region.
    pub region: String,
    /// `GpuType`: `V100`, or `1/4*T4` for a part of a card; empty without GPU.
    pub gpu_type: String,
    /// `GpuCount`.
    pub gpu_count: u32,
    /// Accelerators that the two mean together.
    pub gpus: f64,
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub status: String,
    /// Creation.
    pub created: Timestamp,
}

/// A dedicated host.
#[derive(Debug, Clone)]
pub struct HostSpec {
    /// `host-…`.
    pub id: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Type.
    pub host_type: String,
    /// `HostState`.
    pub state: String,
    /// Accelerators.
    pub gpus: u32,
    /// Accelerators that no machine has.
    pub free: u32,
    /// End of the term.
    pub expires: Timestamp,
}

/// A reserved instance (international site).
#[derive(Debug, Clone)]
pub struct ReservedSpec {
    /// Id.
    pub id: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Instance type.
    pub instance_type: String,
    /// Units.
    pub count: u32,
    /// `active` and so on.
    pub state: String,
    /// End of the term.
    pub expires: Timestamp,
}

/// A reserved instance that pays for pods of super nodes.
#[derive(Debug, Clone)]
pub struct CouponSpec {
    /// `eksri-…`.
    pub id: String,
    /// Region.
    pub region: String,
    /// `ResourceType`: `t4`, `v100`.
    pub resource_type: String,
    /// `GpuCount`, as text; may be a part of a card.
    pub gpus: String,
    /// `Creating`, `Active`, `Expired`, `Refunded`.
    pub status: String,
    /// Whether it paid for something in the last period.
    pub is_used: bool,
    /// End of the term.
    pub expires: Timestamp,
}

/// A savings plan (China).
#[derive(Debug, Clone)]
pub struct PlanSpec {
    /// Id.
    pub id: String,
    /// 1 active, 2 expired, 3 void.
    pub status: u8,
    /// Begin of the term.
    pub starts: Timestamp,
    /// End of the term.
    pub expires: Timestamp,
}
