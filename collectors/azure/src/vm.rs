//! Virtual machines as Resource Graph and the Compute API give them, and what
//! they are as instances.

use std::collections::BTreeMap;

use gpuwatch_collector_core::{Account, Interner, TagRules};
use gpuwatch_inventory::{Accelerators, Billing, BillingMode, Instance, Kind, Provider, State, Text};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{sizes, tags};

/// A machine, or a member of a scale set. Everything but the id, name and
/// location may be absent.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Record {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub location: String,
    #[serde(default)]
    zones: Option<Vec<String>>,
    #[serde(default)]
    tags: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    sku: Option<Sku>,
    #[serde(default)]
    pub properties: Option<Properties>,
    /// Of the scale set that the member belongs to, which has what its members
    /// do not state themselves.
    #[serde(skip)]
    pub set: Option<SetFacts>,
}

#[derive(Debug, Clone, Deserialize)]
struct Sku {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Properties {
    time_created: Option<String>,
    hardware_profile: Option<HardwareProfile>,
    priority: Option<String>,
    license_type: Option<String>,
    host: Option<Reference>,
    virtual_machine_scale_set: Option<Reference>,
    capacity_reservation: Option<CapacityReservation>,
    storage_profile: Option<StorageProfile>,
    os_profile: Option<OsProfile>,
    instance_view: Option<InstanceView>,
    /// Added by Resource Graph.
    extended: Option<Extended>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HardwareProfile {
    vm_size: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reference {
    id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CapacityReservation {
    capacity_reservation_group: Option<Reference>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StorageProfile {
    os_disk: Option<OsDisk>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OsDisk {
    os_type: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OsProfile {
    computer_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InstanceView {
    statuses: Option<Vec<Status>>,
    computer_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Extended {
    instance_view: Option<ExtendedView>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExtendedView {
    power_state: Option<Status>,
}

/// What a scale set says for its members.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SetFacts {
    pub name: String,
    pub size: String,
    pub priority: Option<String>,
    pub tags: BTreeMap<String, String>,
}

/// A location as a region: lower case without blanks (`East US` is `eastus`).
pub(crate) fn region_of(location: &str) -> String {
    location
        .chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

impl Record {
    /// The size; for members of a uniform set the set's, unless they have
    /// their own.
    pub(crate) fn size(&self) -> &str {
        let own = self
            .properties
            .as_ref()
            .and_then(|p| p.hardware_profile.as_ref()?.vm_size.as_deref());
        let stated = own.or_else(|| self.sku.as_ref()?.name.as_deref());
        stated
            .filter(|size| !size.is_empty())
            .or_else(|| self.set.as_ref().map(|set| set.size.as_str()))
            .unwrap_or_default()
    }

    /// Takes the run-time state from another listing of the same machine.
    pub(crate) fn take_view(&mut self, other: &Self) {
        let view = other.properties.as_ref().and_then(|p| p.instance_view.clone());
        if let Some(view) = view {
            self.properties.get_or_insert_default().instance_view = Some(view);
        }
    }

    /// The instance, in an account.
    pub(crate) fn read(
        &self,
        account: &Account,
        rules: &TagRules,
        accelerators: Accelerators,
        interner: &mut Interner,
    ) -> Instance {
        let none = Properties::default();
        let properties = self.properties.as_ref().unwrap_or(&none);
        let own_tags = self
            .tags
            .iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_deref().unwrap_or_default()));
        let set_tags = self
            .set
            .iter()
            .flat_map(|set| &set.tags)
            .map(|(k, v)| (k.as_str(), v.as_str()));
        let pairs: Vec<(&str, &str)> = own_tags.chain(set_tags).collect();
        let set_name = self.set.as_ref().map(|set| set.name.clone()).or_else(|| {
            let id = properties.virtual_machine_scale_set.as_ref()?.id.as_ref()?;
            id.rsplit('/').next().map(str::to_owned)
        });
        let place = tags::Place {
            id: &self.id,
            set: set_name.as_deref().unwrap_or_default(),
        };
        let ownership = tags::read(rules, &pairs, &place, interner);
        let group = properties
            .capacity_reservation
            .as_ref()
            .and_then(|reservation| reservation.capacity_reservation_group.as_ref()?.id.clone());
        Instance {
            provider: Provider::Azure,
            account: account.id.clone(),
            account_name: account.name.clone(),
            region: interner.text(&region_of(&self.location)),
            id: self.id.to_lowercase().into(),
            name: self.name.as_str().into(),
            zone: interner.text(self.zones.iter().flatten().next().map_or("", String::as_str)),
            instance_type: interner.text(self.size()),
            kind: Kind::Vm,
            state: state(self.power().as_deref()),
            billing: self.billing(),
            accelerators,
            launched: properties.time_created.as_deref().and_then(time),
            expires: None,
            auto_renew: None,
            stopped: None,
            owner: ownership.owner,
            cluster: ownership.cluster,
            pool: ownership.pool,
            platform: interner.text(&self.platform()),
            tenancy: interner.text(if self.is_on_host() { "host" } else { "" }),
            reservation_id: group.map(|id| Text::from(id.to_lowercase())).unwrap_or_default(),
            private_address: Text::default(),
            private_host: self.computer_name().unwrap_or_default().into(),
            tags: ownership.kept,
        }
    }

    fn computer_name(&self) -> Option<&str> {
        let properties = self.properties.as_ref()?;
        let of_profile = properties.os_profile.as_ref().and_then(|p| p.computer_name.as_deref());
        of_profile.or_else(|| properties.instance_view.as_ref()?.computer_name.as_deref())
    }

    fn platform(&self) -> String {
        let properties = self.properties.as_ref();
        let os = properties.and_then(|p| p.storage_profile.as_ref()?.os_disk.as_ref()?.os_type.as_deref());
        os.unwrap_or_default().to_lowercase()
    }

    fn is_on_host(&self) -> bool {
        let host = self.properties.as_ref().and_then(|p| p.host.as_ref()?.id.as_deref());
        host.is_some_and(|id| !id.is_empty())
    }

    /// `running` of `PowerState/running`, in lower case.
    fn power(&self) -> Option<String> {
        let properties = self.properties.as_ref()?;
        let of_graph = properties
            .extended
            .as_ref()
            .and_then(|e| e.instance_view.as_ref()?.power_state.as_ref()?.code.clone());
        let of_view = || {
            let statuses = properties.instance_view.as_ref()?.statuses.as_ref()?;
            statuses
                .iter()
                .filter_map(|status| status.code.clone())
                .find(|code| power_word(code).is_some())
        };
        of_graph.or_else(of_view).as_deref().and_then(power_word)
    }

    fn billing(&self) -> Billing {
        let own = self.properties.as_ref().and_then(|p| p.priority.as_deref());
        let priority = own
            .or_else(|| self.set.as_ref()?.priority.as_deref())
            .unwrap_or_default();
        // What a set says for its members is missing, and they may be spot.
        if priority.is_empty() && self.set.is_none() && is_uniform_member(&self.id) {
            return Billing::exact(BillingMode::Unknown, "");
        }
        match priority {
            "Spot" | "Low" => Billing::exact(BillingMode::Spot, ""),
            // A name of the newest model; what it costs is not published.
            "SpotPlus" => Billing::exact(BillingMode::Spot, "spot_plus"),
            // The host is billed, and the machine costs nothing by itself.
            "" | "Regular" if self.is_on_host() => Billing::exact(BillingMode::OnDemand, "dedicated_host"),
            "" | "Regular" => Billing::exact(BillingMode::OnDemand, ""),
            other => Billing::exact(BillingMode::Unknown, other),
        }
    }

    /// Whether it has accelerators, as far as its size tells.
    pub(crate) fn has_accelerators(&self) -> bool {
        sizes::has_accelerators(self.size())
    }
}

/// Whether an id is that of a member of a uniform set: they have ids below the
/// set's, and no priority of their own.
pub(crate) fn is_uniform_member(id: &str) -> bool {
    id.to_lowercase().contains("/virtualmachinescalesets/")
}

fn power_word(code: &str) -> Option<String> {
    let lower = code.to_lowercase();
    lower.strip_prefix("powerstate/").map(str::to_owned)
}

fn state(power: Option<&str>) -> State {
    match power {
        Some("running") => State::Running,
        Some("starting" | "creating") => State::Starting,
        Some("stopping" | "deallocating") => State::Stopping,
        // Shut down from inside: the hardware is still held and charged.
        Some("stopped") => State::StoppedBilled,
        Some("deallocated") => State::Stopped,
        _ => State::Unknown,
    }
}

/// A time of the API: up to seven digits of a second, and an offset.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    text.trim().parse().ok()
}

/// A time, or the beginning of a day.
pub(crate) fn day_or_time(text: &str) -> Option<Timestamp> {
    time(text).or_else(|| time(&format!("{}T00:00:00Z", text.trim())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn record(json: Value) -> Record {
        serde_json::from_value(json).unwrap()
    }

    fn read(json: Value) -> Instance {
        let account = Account {
            id: "s1".into(),
            name: "corp".into(),
        };
        record(json).read(
            &account,
            &TagRules::default(),
            Accelerators::default(),
            &mut Interner::default(),
        )
    }

    fn vm(properties: &Value) -> Value {
        json!({"id": "/subscriptions/S1/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/A",
               "name": "A", "location": "East US", "properties": properties})
    }

    #[test]
    fn ids_are_lower_case_and_regions_have_no_blanks() {
        let vm = read(vm(&json!({"timeCreated": "2026-01-01T00:00:00.1234567+00:00"})));
        assert!(vm.id.starts_with("/subscriptions/s1/resourcegroups/rg/"));
        assert_eq!(&*vm.region, "eastus");
        assert!(vm.launched.is_some());
    }

    // P24
    #[test]
    fn every_priority_has_a_mode() {
        for (priority, mode, detail) in [
            (json!("Regular"), BillingMode::OnDemand, ""),
            (json!(null), BillingMode::OnDemand, ""),
            (json!("Spot"), BillingMode::Spot, ""),
            (json!("Low"), BillingMode::Spot, ""),
            (json!("SpotPlus"), BillingMode::Spot, "spot_plus"),
            (json!("Barter"), BillingMode::Unknown, "Barter"),
        ] {
            let vm = read(vm(&json!({"priority": priority})));
            assert_eq!((vm.billing.mode, &*vm.billing.detail), (mode, detail), "{priority}");
        }
        let hosted = read(vm(&json!({"host": {"id": "/h"}})));
        assert_eq!((&*hosted.billing.detail, &*hosted.tenancy), ("dedicated_host", "host"));
    }

    #[test]
    fn power_states_tell_whether_it_is_charged() {
        for (code, expected) in [
            ("PowerState/running", State::Running),
            ("powerstate/starting", State::Starting),
            ("PowerState/stopped", State::StoppedBilled),
            ("PowerState/deallocating", State::Stopping),
            ("PowerState/deallocated", State::Stopped),
            ("PowerState/levitating", State::Unknown),
            ("", State::Unknown),
        ] {
            let by_graph = read(vm(
                &json!({"extended": {"instanceView": {"powerState": {"code": code}}}}),
            ));
            assert_eq!(by_graph.state, expected, "{code}");
            let statuses = json!([{"code": "ProvisioningState/succeeded"}, {"code": code}, {}]);
            let by_view = read(vm(&json!({"instanceView": {"statuses": statuses}})));
            assert_eq!(by_view.state, expected, "{code}");
        }
        assert_eq!(read(vm(&json!({}))).state, State::Unknown);
    }

    #[test]
    fn members_inherit_what_the_set_says() {
        let mut member = record(vm(&json!({})));
        member.set = Some(SetFacts {
            name: "set".into(),
            size: "Standard_NC24ads_A100_v4".into(),
            priority: Some("Spot".into()),
            tags: BTreeMap::new(),
        });
        assert_eq!(member.size(), "Standard_NC24ads_A100_v4");
        assert_eq!(member.billing().mode, BillingMode::Spot);
    }

    #[test]
    fn a_member_whose_set_is_missing_has_no_known_mode() {
        let id =
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/x/virtualMachines/0";
        let member = record(json!({"id": id, "sku": {"name": "Standard_NC24ads_A100_v4"}}));
        assert_eq!(member.billing().mode, BillingMode::Unknown);
    }

    // P48
    #[test]
    fn a_machine_without_computer_name_or_tags_is_a_machine() {
        let bare = read(json!({"id": "/a/b", "tags": null, "zones": null, "properties": null}));
        assert_eq!((&*bare.private_host, &*bare.zone), ("", ""));
    }

    fn arbitrary_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let keys = prop_oneof![
                Just("id".to_owned()),
                Just("properties".to_owned()),
                Just("tags".to_owned()),
                Just("extended".to_owned()),
                Just("instanceView".to_owned()),
                Just("statuses".to_owned()),
                "[a-zA-Z]{1,8}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((keys, inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(json in arbitrary_json()) {
            if let Ok(record) = serde_json::from_value::<Record>(json) {
                let _ = (record.size().len(), record.power(), record.billing());
            }
        }
    }
}
