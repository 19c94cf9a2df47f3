//! One machine of Compute Engine, from its record to an [`Instance`].

use gpuwatch_collector_core::{Interner, Scope, TagRules};
use gpuwatch_inventory::{Accelerators, BillingMode, Instance, Kind, Provider, State, Text};
use serde::Deserialize;

use crate::{
    accelerators::{self, Attached, may_have_accelerators},
    billing::{self, Scheduling},
    labels::{self, Labels},
    listing::Taken,
    place::{Place, last, path_of},
    value::{Time, Whole},
};

/// What is read of a machine. Everything else is dropped with the page, all
/// metadata but one key included: it may hold secrets.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VmRecord {
    id: Whole,
    name: Option<String>,
    machine_type: Option<String>,
    status: Option<String>,
    creation_timestamp: Time,
    last_start_timestamp: Time,
    last_stop_timestamp: Time,
    last_suspended_timestamp: Time,
    guest_accelerators: Option<Vec<Attached>>,
    scheduling: Option<Scheduling>,
    resource_status: Option<ResourceStatus>,
    labels: Option<Labels>,
    network_interfaces: Option<Vec<NetworkInterface>>,
    hostname: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceStatus {
    reservation_consumption_info: Option<ReservationConsumption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReservationConsumption {
    consumed_reservation: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NetworkInterface {
    #[serde(rename = "networkIP")]
    network_ip: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    items: Option<Vec<MetadataItem>>,
}

/// Without `Debug`: values may be secret.
#[derive(Default)]
struct MetadataItem {
    created_by: Option<String>,
}

impl std::fmt::Debug for MetadataItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MetadataItem")
    }
}

impl<'de> Deserialize<'de> for MetadataItem {
    /// Keeps the value of the one key that is worth reading.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Item {
            key: Option<String>,
            value: Option<serde_json::Value>,
        }
        let item = Item::deserialize(deserializer)?;
        let is_wanted = item.key.as_deref() == Some("created-by");
        let value = item.value.filter(|_| is_wanted);
        Ok(Self {
            created_by: value.and_then(|value| value.as_str().map(str::to_owned)),
        })
    }
}

impl VmRecord {
    /// Name of the managed instance group that made it; empty when none.
    fn group(&self) -> &str {
        let items = self.metadata.as_ref().and_then(|metadata| metadata.items.as_ref());
        let created_by = items.into_iter().flatten().find_map(|item| item.created_by.as_deref());
        created_by
            .filter(|link| link.contains("/instanceGroupManagers/"))
            .map(last)
            .unwrap_or_default()
    }

    fn state(&self) -> State {
        match self.status.as_deref().unwrap_or_default() {
            "PENDING" | "PROVISIONING" | "STAGING" => State::Starting,
            "RUNNING" => State::Running,
            // Of no use while it is repaired, and charged.
            "REPAIRING" => State::StoppedBilled,
            "PENDING_STOP" | "STOPPING" | "DEPROVISIONING" | "SUSPENDING" => State::Stopping,
            "STOPPED" | "TERMINATED" | "SUSPENDED" => State::Stopped,
            _ => State::Unknown,
        }
    }

    fn stopped(&self, state: State) -> Option<jiff::Timestamp> {
        if state != State::Stopped {
            return None;
        }
        if self.status.as_deref() == Some("SUSPENDED") {
            return self.last_suspended_timestamp.0;
        }
        self.last_stop_timestamp.0
    }
}

/// A machine whose accelerators may still have to be looked up.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub instance: Instance,
    /// Whether its accelerators are those of its machine type.
    pub by_type: bool,
}

/// Reads the machines of one project.
pub(crate) struct Reader<'a> {
    scope: &'a Scope,
    rules: &'a TagRules,
    interner: Interner,
}

impl<'a> Reader<'a> {
    /// `scope` gives the account; regions come with the records.
    pub(crate) fn new(scope: &'a Scope, rules: &'a TagRules) -> Self {
        Self {
            scope,
            rules,
            interner: Interner::default(),
        }
    }

    pub(crate) fn read(&mut self, place: Place<'_>, record: &VmRecord) -> Taken<Draft> {
        let Some(id) = record.id.0 else {
            return Taken::Bad("no_id");
        };
        let id = Text::from(id.to_string());
        let machine_type = last(record.machine_type.as_deref().unwrap_or_default());
        let listed = record
            .guest_accelerators
            .as_deref()
            .and_then(|entries| accelerators::listed(machine_type, entries));
        let by_type = listed.is_none();
        if by_type && machine_type.is_empty() {
            return Taken::Bad("no_type");
        }
        if by_type && !may_have_accelerators(machine_type) {
            return Taken::Other(id);
        }
        let instance = self.instance(place, id.clone(), machine_type, listed.unwrap_or_default(), record);
        Taken::Row(id, Draft { instance, by_type })
    }

    fn instance(
        &mut self,
        place: Place<'_>,
        id: Text,
        machine_type: &str,
        accelerators: Accelerators,
        record: &VmRecord,
    ) -> Instance {
        let state = record.state();
        let no_scheduling = Scheduling::default();
        let scheduling = record.scheduling.as_ref().unwrap_or(&no_scheduling);
        let billing = billing::of_machine(scheduling, &mut self.interner);
        let is_sole_tenant = scheduling.node_affinities.as_ref().is_some_and(|list| !list.is_empty());
        let no_labels = Labels::new();
        let labels = record.labels.as_ref().unwrap_or(&no_labels);
        let ownership = labels::read(self.rules, labels, record.group(), &mut self.interner);
        let consumed = record.resource_status.as_ref().and_then(|status| {
            status
                .reservation_consumption_info
                .as_ref()?
                .consumed_reservation
                .as_deref()
        });
        let address = record
            .network_interfaces
            .iter()
            .flatten()
            .find_map(|interface| interface.network_ip.as_deref());
        let expires = scheduling.termination_time.0;
        let mut text = |text: &str| self.interner.text(text);
        Instance {
            provider: Provider::Gcp,
            account: self.scope.account.id.clone(),
            account_name: self.scope.account.name.clone(),
            region: text(place.region),
            id,
            name: Text::from(record.name.as_deref().unwrap_or_default()),
            zone: text(place.zone),
            instance_type: text(machine_type),
            kind: Kind::Vm,
            state,
            expires: expires.filter(|_| billing.mode == BillingMode::Reserved),
            billing,
            accelerators,
            launched: record.last_start_timestamp.0.or(record.creation_timestamp.0),
            auto_renew: None,
            stopped: record.stopped(state),
            owner: ownership.owner,
            cluster: ownership.cluster,
            pool: ownership.pool,
            platform: text(""),
            tenancy: text(if is_sole_tenant { "sole_tenant" } else { "" }),
            reservation_id: text(path_of(consumed.unwrap_or_default())),
            private_address: Text::from(address.unwrap_or_default()),
            private_host: Text::from(record.hostname.as_deref().unwrap_or_default()),
            tags: ownership.kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::GpuCount;

    use super::*;

    const PLACE: Place<'_> = Place {
        region: "us-central1",
        zone: "us-central1-a",
    };

    fn taken(json: &str) -> Taken<Draft> {
        let scope = Scope {
            provider: Provider::Gcp,
            account: Account {
                id: "p".into(),
                name: "P".into(),
            },
            region: "elsewhere".into(),
        };
        let rules = TagRules {
            owner: vec!["team".into()],
            keep: Vec::new(),
        };
        Reader::new(&scope, &rules).read(PLACE, &serde_json::from_str(json).unwrap())
    }

    fn instance(json: &str) -> Instance {
        match taken(json) {
            Taken::Row(_, draft) => draft.instance,
            Taken::Other(id) => panic!("{id} has no accelerators"),
            Taken::Bad(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn states_map_by_what_they_cost() {
        for (word, state) in [
            ("PENDING", State::Starting),
            ("PROVISIONING", State::Starting),
            ("STAGING", State::Starting),
            ("RUNNING", State::Running),
            ("REPAIRING", State::StoppedBilled),
            ("PENDING_STOP", State::Stopping),
            ("STOPPING", State::Stopping),
            ("DEPROVISIONING", State::Stopping),
            ("SUSPENDING", State::Stopping),
            ("STOPPED", State::Stopped),
            ("TERMINATED", State::Stopped),
            ("SUSPENDED", State::Stopped),
            ("HIBERNATING", State::Unknown),
        ] {
            let found = instance(&format!(
                r#"{{"id": "1", "machineType": "a2-highgpu-1g", "status": "{word}"}}"#
            ));
            assert_eq!(found.state, state, "{word}");
        }
    }

    #[test]
    fn facts_of_a_record_are_taken_over() {
        let found = instance(
            r#"{"id": "9223372036854775808", "name": "n1",
            "machineType": "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/machineTypes/n1-custom-8-30720",
            "status": "TERMINATED", "creationTimestamp": "2026-11-01T00:00:00.000-07:00",
            "lastStartTimestamp": "2026-11-02T00:00:00.000-07:00", "lastStopTimestamp": "2026-11-03T00:00:00.000-07:00",
            "guestAccelerators": [{"acceleratorType": "zones/z/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}],
            "scheduling": {"nodeAffinities": [{"key": "k"}]},
            "resourceStatus": {"reservationConsumptionInfo": {"consumedReservation":
                "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/reservations/r"}},
            "labels": {"team": "视觉组"}, "networkInterfaces": [{}, {"networkIP": "10.0.0.7"}],
            "metadata": {"items": [{"key": "startup-script", "value": "export KEY=s3cret"},
                {"key": "created-by", "value": "projects/1/zones/us-central1-a/instanceGroupManagers/workers"}]}}"#,
        );
        assert_eq!(
            (&*found.id, &*found.instance_type),
            ("9223372036854775808", "n1-custom-8-30720")
        );
        assert_eq!((&*found.region, &*found.zone), ("us-central1", "us-central1-a"));
        assert_eq!(found.accelerators.count, Some(GpuCount::from(2)));
        assert_eq!(found.launched, "2026-11-02T07:00:00Z".parse().ok());
        assert_eq!(found.stopped, "2026-11-03T07:00:00Z".parse().ok());
        assert_eq!(&*found.reservation_id, "projects/p/zones/us-central1-a/reservations/r");
        assert_eq!(
            (&*found.owner, &*found.pool, &*found.tenancy),
            ("视觉组", "workers", "sole_tenant")
        );
        assert_eq!(&*found.private_address, "10.0.0.7");
        assert!(!format!("{found:?}").contains("s3cret"));
    }

    #[test]
    fn managed_groups_are_named_whether_zonal_or_regional() {
        let pool = |created_by: &str| {
            let json = serde_json::json!({"id": "1", "machineType": "a2-highgpu-1g",
                "metadata": {"items": [{"key": "created-by", "value": created_by}]}});
            instance(&json.to_string()).pool.to_string()
        };
        assert_eq!(
            pool("projects/1/zones/us-central1-a/instanceGroupManagers/zonal"),
            "zonal"
        );
        assert_eq!(
            pool("projects/1/regions/us-central1/instanceGroupManagers/regional"),
            "regional"
        );
        assert_eq!(pool("somebody@example.com"), "");
    }

    // P48
    #[test]
    fn only_an_id_and_a_type_are_needed() {
        assert!(matches!(taken("{}"), Taken::Bad("no_id")));
        assert!(matches!(taken(r#"{"id": "1"}"#), Taken::Bad("no_type")));
        let bare = instance(r#"{"id": 1, "machineType": "a9-new-8g"}"#);
        assert_eq!((bare.state, bare.launched, &*bare.name), (State::Unknown, None, ""));
        let none = r#"{"id": "1", "machineType": "a2-x", "labels": null, "scheduling": null, "guestAccelerators": null,
            "metadata": null, "networkInterfaces": null, "resourceStatus": null, "status": null}"#;
        assert_eq!(instance(none).state, State::Unknown);
    }

    #[test]
    fn machines_without_accelerators_are_not_listed() {
        for machine_type in ["n1-standard-8", "c4-standard-8", "g1-small"] {
            let json = format!(r#"{{"id": "1", "machineType": "{machine_type}", "guestAccelerators": []}}"#);
            assert!(matches!(taken(&json), Taken::Other(_)), "{machine_type}");
        }
    }

    #[test]
    fn metadata_is_not_kept() {
        let machine: VmRecord =
            serde_json::from_str(r#"{"metadata": {"items": [{"key": "password", "value": "s3cret"}]}}"#).unwrap();
        assert!(!format!("{machine:?}").contains("s3cret"));
    }

    proptest::proptest! {
        #[test]
        fn any_record_is_read_or_refused(record in crate::samples::any_json()) {
            if let Ok(record) = serde_json::from_value::<VmRecord>(record) {
                let scope = Scope {
                    provider: Provider::Gcp,
                    account: Account { id: "p".into(), name: "P".into() },
                    region: "r".into(),
                };
                let _ = Reader::new(&scope, &TagRules::default()).read(PLACE, &record);
            }
        }
    }
}
