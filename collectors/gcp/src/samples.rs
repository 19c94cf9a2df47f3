//! Records for tests of what is decided over the whole fleet.

use std::sync::Arc;

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{
    Billing, BillingMode, Commitment, CommitmentKind, CommitmentScope, GpuCount, Instance, Kind, Provider, State, Text,
};

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any},
    prop_oneof,
    sample::select,
};

use crate::accelerators;

pub(crate) fn fleet(
    instances: impl IntoIterator<Item = Instance>,
    commitments: impl IntoIterator<Item = Commitment>,
) -> Fleet {
    Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments: commitments.into_iter().collect(),
        coverage: Vec::new(),
    }
}

/// A machine that runs on-demand.
pub(crate) fn machine(id: &str, machine_type: &str, accelerators: u32) -> Instance {
    let mut found = accelerators::of_catalog(machine_type).unwrap_or_default();
    found.count = Some(GpuCount::from(accelerators));
    Instance {
        provider: Provider::Gcp,
        account: "p".into(),
        account_name: "P".into(),
        region: "us-central1".into(),
        id: id.into(),
        name: Text::default(),
        zone: "us-central1-a".into(),
        instance_type: machine_type.into(),
        kind: Kind::Vm,
        state: State::Running,
        billing: Billing::estimated(BillingMode::OnDemand, ""),
        accelerators: found,
        launched: None,
        expires: None,
        auto_renew: None,
        stopped: None,
        owner: Text::default(),
        cluster: Text::default(),
        pool: Text::default(),
        platform: Text::default(),
        tenancy: Text::default(),
        reservation_id: Text::default(),
        private_address: Text::default(),
        private_host: Text::default(),
        tags: Vec::new(),
    }
}

/// A commitment to so many accelerators.
pub(crate) fn committed_use(name: &str, accelerator_type: &str, accelerators: u32) -> Commitment {
    Commitment {
        provider: Provider::Gcp,
        account: "p".into(),
        account_name: "P".into(),
        region: "us-central1".into(),
        id: name.into(),
        kind: CommitmentKind::CommittedUse,
        instance_type: accelerator_type.into(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: Some(accelerators),
        used_units: None,
        gpus_per_unit: Some(GpuCount::from(1)),
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: "2027-01-01T00:00:00Z".parse().ok(),
        detail: format!("projects/p/regions/us-central1/commitments/{name}").into(),
    }
}

/// A reservation with these paths in its detail.
pub(crate) fn reservation(paths: &str, machine_type: &str, each: u32, units: u32, used: u32) -> Commitment {
    Commitment {
        kind: CommitmentKind::Reservation,
        id: "1".into(),
        instance_type: machine_type.into(),
        scope: CommitmentScope::Zone("us-central1-a".into()),
        units: Some(units),
        used_units: Some(used),
        gpus_per_unit: Some(GpuCount::from(each)),
        expires: None,
        detail: paths.into(),
        ..committed_use("r", "", 0)
    }
}

/// Fields that answers have, so that arbitrary documents reach deep.
const FIELDS: &[&str] = &[
    "items",
    "zones/us-central1-a",
    "regions/us-central1",
    "instances",
    "reservations",
    "commitments",
    "nodes",
    "nextPageToken",
    "unreachables",
    "unreachable",
    "warning",
    "code",
    "data",
    "key",
    "value",
    "id",
    "name",
    "zone",
    "machineType",
    "status",
    "creationTimestamp",
    "lastStartTimestamp",
    "guestAccelerators",
    "acceleratorType",
    "acceleratorCount",
    "scheduling",
    "provisioningModel",
    "preemptible",
    "nodeAffinities",
    "terminationTime",
    "resourceStatus",
    "reservationConsumptionInfo",
    "consumedReservation",
    "labels",
    "networkInterfaces",
    "networkIP",
    "metadata",
    "specificReservation",
    "count",
    "inUseCount",
    "instanceProperties",
    "commitment",
    "linkedCommitments",
    "futureReservations",
    "reservationMode",
    "timeWindow",
    "endTime",
    "autoCreatedReservations",
    "accelerators",
    "guestAcceleratorType",
    "guestAcceleratorCount",
    "projects",
    "projectId",
    "displayName",
    "folders",
    "selfLink",
    "region",
    "aggregateReservation",
    "reservedResources",
    "inUseResources",
    "accelerator",
    "vmFamily",
    "resources",
    "type",
    "amount",
    "acceleratorConfig",
    "topology",
    "schedulingConfig",
    "networkEndpoints",
    "ipAddress",
    "state",
    "createTime",
    "error",
    "errors",
    "details",
    "reason",
    "message",
    "retryDelay",
];

/// Any JSON document, mostly of fields that answers have.
pub(crate) fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let texts = [
        "ACTIVE",
        "ACCELERATOR",
        "CALENDAR",
        "us-central1-a",
        "a3-highgpu-8g",
        "18446744073709551615",
        "projects/p/locations/us-central1-a/nodes/n",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,12}".prop_map(serde_json::Value::String),
        select(texts.to_vec()).prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(serde_json::Value::Array),
            vec((select(FIELDS.to_vec()), inner), 0..8).prop_map(|fields| {
                let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
                serde_json::Value::Object(fields.collect())
            }),
        ]
    })
}
