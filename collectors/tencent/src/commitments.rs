//! What was bought ahead in a region: reserved instances, dedicated hosts with
//! GPUs, reserved instances of super nodes.

use gpuwatch_collector_core::{Call, CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, GpuCount, Provider, Text};
use serde::Deserialize;

use crate::{
    access::AccountAccess,
    api::Action,
    facts::{TypeFacts, TypesInUse},
    loose,
    pages::{self, PAGE_SIZE, Query, page},
    record::{Placement, Stated},
    time,
};

const DESCRIBE_RESERVED_INSTANCES: Action = Action::new(
    Call::new("cvm", "DescribeReservedInstances", "cvm:DescribeReservedInstances"),
    "2017-03-12",
);
const DESCRIBE_HOSTS: Action = Action::new(Call::new("cvm", "DescribeHosts", "cvm:DescribeHosts"), "2017-03-12");
const DESCRIBE_SUPER_NODE_RESERVATIONS: Action = Action::new(
    Call::new("tke", "DescribeReservedInstances", "tke:DescribeReservedInstances"),
    "2018-05-25",
);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ReservedInstances {
    #[serde(deserialize_with = "loose::text")]
    reserved_instance_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    instance_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    zone: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    start_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    end_time: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    instance_count: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    state: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    offering_type: Option<String>,
}

page!(ReservedPage, "ReservedInstancesSet": ReservedInstances, "TotalCount", reserved_instance_id);

#[allow(clippy::struct_field_names, reason = "named as in the answer")]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Host {
    #[serde(deserialize_with = "loose::text")]
    host_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    host_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    host_charge_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    host_state: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    created_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    expired_time: Option<String>,
    #[serde(deserialize_with = "loose::part")]
    placement: Option<Placement>,
    #[serde(deserialize_with = "loose::part")]
    host_resource: Option<HostResource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct HostResource {
    #[serde(deserialize_with = "loose::number")]
    gpu_total: Option<f64>,
    #[serde(deserialize_with = "loose::number")]
    gpu_available: Option<f64>,
}

page!(HostsPage, "HostSet": Host, "TotalCount", host_id);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct SuperNodeReservation {
    #[serde(deserialize_with = "loose::text")]
    reserved_instance_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    status: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    resource_type: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    gpu_count: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    active_at: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    expire_at: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    deduct_status: Option<String>,
}

page!(SuperNodePage, "ReservedInstanceSet": SuperNodeReservation, "TotalCount", reserved_instance_id);

/// Active reserved instances of accelerator types.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn reserved_instances(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
    facts: &TypeFacts,
) -> Result<Vec<Commitment>, CollectError> {
    let mut rows = list::<ReservedPage>(cx, access, scope, DESCRIBE_RESERVED_INSTANCES).await?;
    rows.retain(|row| row.state.as_deref() == Some("active"));
    let mut types = TypesInUse::default();
    for instance_type in rows.iter().filter_map(|row| row.instance_type.as_deref()) {
        types.note(instance_type, Stated::default());
    }
    let decider = facts.decider(cx, access, &scope.region, &types).await;
    let mut no_type = 0;
    let mut commitments = Vec::new();
    for row in rows {
        let Some(instance_type) = row.instance_type.as_deref() else {
            no_type += 1;
            continue;
        };
        if let Some(accelerators) = decider.accelerators(instance_type, Stated::default()) {
            let mut commitment = row.commitment(scope, instance_type);
            commitment.gpus_per_unit = accelerators.count;
            commitments.push(commitment);
        }
    }
    cx.skip("no_type", no_type);
    Ok(commitments)
}

/// Dedicated hosts with GPUs; what no instance on them uses is unused.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn dedicated_hosts(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
) -> Result<Vec<Commitment>, CollectError> {
    let rows = list::<HostsPage>(cx, access, scope, DESCRIBE_HOSTS).await?;
    Ok(rows.iter().filter_map(|row| row.commitment(scope)).collect())
}

/// Active reserved instances of super nodes that have GPUs.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn super_node_reservations(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
) -> Result<Vec<Commitment>, CollectError> {
    let rows = list::<SuperNodePage>(cx, access, scope, DESCRIBE_SUPER_NODE_RESERVATIONS).await?;
    Ok(rows.iter().filter_map(|row| row.commitment(scope)).collect())
}

async fn list<P: pages::Page>(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
    action: Action,
) -> Result<Vec<P::Row>, CollectError> {
    let query = Query {
        access,
        action,
        region: &scope.region,
        limit: PAGE_SIZE,
        parameters: &[],
    };
    access
        .if_present(cx, action, &scope.region, pages::list::<P>(cx, query))
        .await
}

/// What every commitment has.
pub(crate) fn commitment(scope: &Scope, kind: CommitmentKind, id: &str, instance_type: &str) -> Commitment {
    Commitment {
        provider: Provider::Tencent,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: scope.region.clone(),
        id: id.into(),
        kind,
        instance_type: instance_type.into(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: None,
        used_units: None,
        gpus_per_unit: None,
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: None,
        detail: Text::default(),
    }
}

fn in_zone(zone: Option<&str>) -> CommitmentScope {
    match zone {
        Some(zone) => CommitmentScope::Zone(zone.into()),
        None => CommitmentScope::Region,
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn units(number: Option<f64>) -> Option<u32> {
    let number = number?;
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    is_whole.then_some(number as u32)
}

impl ReservedInstances {
    fn commitment(&self, scope: &Scope, instance_type: &str) -> Commitment {
        let id = self.reserved_instance_id.as_deref().unwrap_or_default();
        Commitment {
            scope: in_zone(self.zone.as_deref()),
            units: units(self.instance_count),
            starts: self.start_time.as_deref().and_then(time::parse),
            expires: self.end_time.as_deref().and_then(time::parse),
            detail: self.offering_type.as_deref().unwrap_or_default().into(),
            ..commitment(scope, CommitmentKind::ReservedInstance, id, instance_type)
        }
    }
}

impl Host {
    /// `None` for a host that has no GPU or does not run.
    fn commitment(&self, scope: &Scope) -> Option<Commitment> {
        let resource = self.host_resource.as_ref()?;
        let total = resource.gpu_total.filter(|total| *total > 0.0)?;
        if self.host_state.as_deref() != Some("RUNNING") {
            return None;
        }
        let is_prepaid = self.host_charge_type.as_deref() == Some("PREPAID");
        let used = resource.gpu_available.map(|available| (total - available).max(0.0));
        Some(Commitment {
            scope: in_zone(self.placement.as_ref().and_then(|placement| placement.zone.as_deref())),
            tenancy: "host".into(),
            units: units(Some(total)),
            used_units: units(used),
            gpus_per_unit: Some(GpuCount::from(1)),
            starts: self.created_time.as_deref().and_then(time::parse),
            expires: self
                .expired_time
                .as_deref()
                .filter(|_| is_prepaid)
                .and_then(time::parse),
            detail: "dedicated_host".into(),
            ..commitment(
                scope,
                CommitmentKind::Reservation,
                self.host_id.as_deref()?,
                self.host_type.as_deref().unwrap_or_default(),
            )
        })
    }
}

impl SuperNodeReservation {
    /// `None` for one that has no GPU or is not active.
    fn commitment(&self, scope: &Scope) -> Option<Commitment> {
        let gpus = GpuCount::new(self.gpu_count?).filter(|count| *count > GpuCount::ZERO)?;
        if self.status.as_deref() != Some("Active") {
            return None;
        }
        Some(Commitment {
            units: Some(1),
            used_units: match self.deduct_status.as_deref() {
                Some("Deduct") => Some(1),
                Some("NotDeduct") => Some(0),
                _ => None,
            },
            gpus_per_unit: Some(gpus),
            starts: self.active_at.as_deref().and_then(time::parse),
            expires: self.expire_at.as_deref().and_then(time::parse),
            detail: "super_node".into(),
            ..commitment(
                scope,
                CommitmentKind::ReservedInstance,
                self.reserved_instance_id.as_deref()?,
                self.resource_type.as_deref().unwrap_or_default(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Tencent,
            account: Account {
                id: "100000000001".into(),
                name: "intl".into(),
            },
            region: "ap-singapore".into(),
        }
    }

    #[test]
    fn reserved_instances_belong_to_a_zone() {
        let row: ReservedInstances = serde_json::from_str(
            r#"{"ReservedInstanceId":"ri-1","InstanceCount":3,"Zone":"ap-singapore-1","OfferingType":"All Upfront",
                "StartTime":"2026-01-01T00:00:00Z","EndTime":"2027-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        let commitment = row.commitment(&scope(), "GN7.2XLARGE32");
        assert_eq!(commitment.scope, CommitmentScope::Zone("ap-singapore-1".into()));
        assert_eq!((commitment.units, commitment.used_units), (Some(3), None));
        assert!(commitment.starts < commitment.expires && &*commitment.detail == "All Upfront");
    }

    #[test]
    fn free_gpus_of_a_paid_host_are_unused() {
        let host = |state: &str, resource: &str| {
            let text = format!(
                r#"{{"HostId":"host-1","HostType":"HG20","HostState":"{state}","HostChargeType":"PREPAID",
                     "ExpiredTime":"2027-01-01T00:00:00Z","HostResource":{resource}}}"#
            );
            serde_json::from_str::<Host>(&text).unwrap().commitment(&scope())
        };
        let half = host("RUNNING", r#"{"GpuTotal":8,"GpuAvailable":3}"#).unwrap();
        assert_eq!((half.units, half.used_units), (Some(8), Some(5)));
        assert!(half.expires.is_some());
        assert_eq!(host("RUNNING", r#"{"GpuTotal":8}"#).unwrap().used_units, None);
        assert!(host("RUNNING", r#"{"GpuTotal":0}"#).is_none());
        assert!(host("EXPIRED", r#"{"GpuTotal":8}"#).is_none());
        assert!(host("RUNNING", "null").is_none());
    }

    #[test]
    fn a_reservation_of_a_super_node_is_used_or_not() {
        let used = |status: &str, deduct: &str, gpus: &str| {
            let text = format!(
                r#"{{"ReservedInstanceId":"eksri-1","Status":"{status}","GpuCount":"{gpus}","DeductStatus":"{deduct}"}}"#
            );
            let row: SuperNodeReservation = serde_json::from_str(&text).unwrap();
            row.commitment(&scope())
                .map(|c| (c.used_units, c.gpus_per_unit.map(GpuCount::get)))
        };
        assert_eq!(used("Active", "Deduct", "0.5"), Some((Some(1), Some(0.5))));
        assert_eq!(used("Active", "NotDeduct", "1"), Some((Some(0), Some(1.0))));
        assert_eq!(used("Active", "?", "1"), Some((None, Some(1.0))));
        assert_eq!(used("Expired", "Deduct", "1"), None);
        assert_eq!(used("Active", "Deduct", ""), None);
    }
}
