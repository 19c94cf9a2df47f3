//! Reads one instance of `DescribeInstances`.

use gpuwatch_collector_core::{Interner, Scope, TagRules};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Billing, BillingMode, Instance, Kind, Provider, State, Text};
use serde::Deserialize;

use crate::{
    loose,
    shapes::{self, Stated, TypeFacts},
    tags,
};

/// An instance as the API gives it; everything but the id may be absent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Record {
    pub instance_id: String,
    #[serde(default, deserialize_with = "loose::text")]
    instance_name: String,
    #[serde(default, deserialize_with = "loose::text")]
    host_name: String,
    #[serde(default, deserialize_with = "loose::text")]
    zone_id: String,
    #[serde(default, deserialize_with = "loose::text")]
    pub instance_type: String,
    #[serde(default, rename = "GPUAmount", deserialize_with = "loose::number")]
    gpu_amount: Option<f64>,
    #[serde(default, rename = "GPUSpec", deserialize_with = "loose::text")]
    gpu_spec: String,
    #[serde(default, deserialize_with = "loose::text")]
    status: String,
    #[serde(default, deserialize_with = "loose::text")]
    stopped_mode: String,
    #[serde(default, deserialize_with = "loose::text")]
    instance_charge_type: String,
    #[serde(default, deserialize_with = "loose::text")]
    spot_strategy: String,
    #[serde(default, deserialize_with = "loose::text")]
    creation_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    expired_time: String,
    #[serde(default, rename = "OSType", deserialize_with = "loose::text")]
    os_type: String,
    #[serde(default)]
    tags: Option<TagList>,
    #[serde(default)]
    vpc_attributes: Option<VpcAttributes>,
    #[serde(default)]
    dedicated_host_attribute: Option<DedicatedHost>,
    #[serde(default)]
    ecs_capacity_reservation_attr: Option<CapacityReservation>,
}

#[derive(Debug, Deserialize, Default)]
struct TagList {
    /// A tag that cannot be read costs itself, not the instance.
    #[serde(rename = "Tag", default)]
    tag: Rows<Tag>,
}

#[derive(Debug, Deserialize)]
struct Tag {
    #[serde(rename = "TagKey", default, deserialize_with = "loose::text")]
    key: String,
    #[serde(rename = "TagValue", default, deserialize_with = "loose::text")]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VpcAttributes {
    #[serde(default)]
    private_ip_address: Option<Addresses>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Addresses {
    #[serde(default)]
    ip_address: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DedicatedHost {
    #[serde(default, deserialize_with = "loose::text")]
    dedicated_host_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CapacityReservation {
    #[serde(default, deserialize_with = "loose::text")]
    capacity_reservation_id: String,
}

impl Record {
    pub(crate) fn stated(&self) -> Stated {
        Stated {
            amount: self.gpu_amount,
            model: self.gpu_spec.trim().to_owned(),
        }
    }

    pub(crate) fn has_accelerators(&self) -> bool {
        shapes::has_accelerators(&self.instance_type, &self.stated())
    }

    /// The instance, in a scope.
    pub(crate) fn read(
        &self,
        scope: &Scope,
        rules: &TagRules,
        facts: Option<&TypeFacts>,
        interner: &mut Interner,
    ) -> Instance {
        let pairs: Vec<(&str, &str)> = self
            .tags
            .iter()
            .flat_map(|list| &list.tag.good)
            .map(|tag| (tag.key.as_str(), tag.value.as_str()))
            .collect();
        let ownership = tags::read(rules, &pairs, interner);
        let prepaid = self.is_prepaid();
        let reservation = self.ecs_capacity_reservation_attr.as_ref();
        Instance {
            provider: Provider::Aliyun,
            account: scope.account.id.clone(),
            account_name: scope.account.name.clone(),
            region: scope.region.clone(),
            id: self.instance_id.as_str().into(),
            name: interner.text(&self.instance_name),
            zone: interner.text(&self.zone_id),
            instance_type: interner.text(&self.instance_type),
            kind: Kind::Vm,
            state: self.state(),
            billing: self.billing(),
            accelerators: shapes::accelerators(&self.instance_type, &self.stated(), facts, interner),
            launched: loose::utc(&self.creation_time),
            // Of pay-as-you-go instances it is a date in the far future.
            expires: prepaid.then(|| loose::utc(&self.expired_time)).flatten(),
            // Another call tells.
            auto_renew: None,
            stopped: None,
            owner: ownership.owner,
            cluster: ownership.cluster,
            pool: ownership.pool,
            platform: interner.text(&self.os_type),
            tenancy: interner.text(if self.is_on_dedicated_host() { "host" } else { "" }),
            reservation_id: interner.text(reservation.map_or("", |attr| attr.capacity_reservation_id.as_str())),
            private_address: self.private_address(),
            private_host: self.host_name.as_str().into(),
            tags: ownership.kept,
        }
    }

    fn private_address(&self) -> Text {
        self.vpc_attributes
            .as_ref()
            .and_then(|vpc| vpc.private_ip_address.as_ref()?.ip_address.as_ref()?.first())
            .map(|address| Text::from(address.as_str()))
            .unwrap_or_default()
    }

    fn is_on_dedicated_host(&self) -> bool {
        let host = self.dedicated_host_attribute.as_ref();
        host.is_some_and(|host| !host.dedicated_host_id.is_empty())
    }

    /// Whether it is a subscription: paid ahead, to a date.
    pub(crate) fn is_prepaid(&self) -> bool {
        self.instance_charge_type == "PrePaid"
    }

    fn state(&self) -> State {
        match self.status.as_str() {
            "Running" => State::Running,
            "Pending" | "Starting" => State::Starting,
            "Stopping" => State::Stopping,
            // A subscription is paid for whatever the machine does, and only
            // the economical mode ends the charge of the others.
            "Stopped" if !self.is_prepaid() && self.stopped_mode == "StopCharging" => State::Stopped,
            "Stopped" => State::StoppedBilled,
            _ => State::Unknown,
        }
    }

    /// Pay-as-you-go is on-demand only as an estimate: a reserved instance or
    /// a savings plan may pay for it, which no record says. On a dedicated
    /// host it is the host that costs, in a way that the record does not say
    /// either.
    fn billing(&self) -> Billing {
        match (self.instance_charge_type.as_str(), self.spot_strategy.as_str()) {
            ("PrePaid", _) => Billing::exact(BillingMode::Reserved, "subscription"),
            ("PostPaid", "" | "NoSpot") if self.is_on_dedicated_host() => {
                Billing::estimated(BillingMode::OnDemand, "dedicated_host")
            }
            ("PostPaid", "" | "NoSpot") => Billing::estimated(BillingMode::OnDemand, ""),
            ("PostPaid", _) => Billing::exact(BillingMode::Spot, ""),
            (other, _) => Billing::exact(BillingMode::Unknown, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

    #[allow(clippy::needless_pass_by_value, reason = "read as it is written in a test")]
    fn read(json: Value) -> Instance {
        // By its text, as lists within records are read by theirs.
        read_record(&serde_json::from_str(&json.to_string()).unwrap())
    }

    fn read_record(record: &Record) -> Instance {
        let scope = testing::scope("cn-hangzhou");
        record.read(&scope, &TagRules::default(), None, &mut Interner::default())
    }

    fn with(pairs: &[(&str, &str)]) -> Instance {
        let mut json = json!({"InstanceId": "i-1", "InstanceType": "ecs.gn7i-c8g1.2xlarge", "Status": "Running"});
        for (key, value) in pairs {
            json[*key] = json!(value);
        }
        read(json)
    }

    #[test]
    fn every_billing_mode() {
        for (charge, spot, mode, detail) in [
            ("PostPaid", "NoSpot", BillingMode::OnDemand, ""),
            ("PostPaid", "", BillingMode::OnDemand, ""),
            ("PostPaid", "SpotWithPriceLimit", BillingMode::Spot, ""),
            ("PostPaid", "SpotAsPriceGo", BillingMode::Spot, ""),
            ("PrePaid", "NoSpot", BillingMode::Reserved, "subscription"),
            // P28
            ("Barter", "", BillingMode::Unknown, "Barter"),
            ("", "", BillingMode::Unknown, ""),
        ] {
            let instance = with(&[("InstanceChargeType", charge), ("SpotStrategy", spot)]);
            assert_eq!(
                (instance.billing.mode, &*instance.billing.detail),
                (mode, detail),
                "{charge} {spot}"
            );
        }
    }

    #[test]
    fn only_a_subscription_expires() {
        let far = [("InstanceChargeType", "PostPaid"), ("ExpiredTime", "2099-12-31T15:59Z")];
        assert_eq!(with(&far).expires, None);
        let prepaid = [("InstanceChargeType", "PrePaid"), ("ExpiredTime", "2027-01-01T15:59Z")];
        assert!(with(&prepaid).expires.is_some());
    }

    #[test]
    fn stopped_machines_that_still_cost_are_told_apart() {
        for (charge, mode, state) in [
            ("PostPaid", "StopCharging", State::Stopped),
            ("PostPaid", "KeepCharging", State::StoppedBilled),
            ("PostPaid", "Not-applicable", State::StoppedBilled),
            ("PrePaid", "Not-applicable", State::StoppedBilled),
        ] {
            let instance = with(&[
                ("Status", "Stopped"),
                ("InstanceChargeType", charge),
                ("StoppedMode", mode),
            ]);
            assert_eq!(instance.state, state, "{charge} {mode}");
        }
        assert_eq!(with(&[("Status", "Hovering")]).state, State::Unknown);
    }

    #[test]
    fn a_bare_record_is_an_instance_with_unknowns() {
        let bare =
            read(json!({"InstanceId": "i-1", "InstanceType": "ecs.gn99.x", "Tags": null, "VpcAttributes": null}));
        assert_eq!(
            (bare.accelerators.count, bare.launched, bare.expires),
            (None, None, None)
        );
        assert_eq!(bare.billing.mode, BillingMode::Unknown);
    }

    #[test]
    fn numbers_may_be_texts_and_times_may_have_seconds() {
        let instance = read(json!({
            "InstanceId": "i-1", "InstanceType": "ecs.gn99.x", "GPUAmount": "8", "GPUSpec": "NVidia T4",
            "InstanceChargeType": "PrePaid", "CreationTime": "2026-01-01T02:43:00Z", "ExpiredTime": "2027-01-01T02:43Z",
            "Tags": {"Tag": [{"TagKey": "ack.aliyun.com", "TagValue": "c1"}, {"TagKey": 7}, 7]},
        }));
        assert_eq!(
            instance.accelerators.count.map(gpuwatch_inventory::GpuCount::get),
            Some(8.0)
        );
        assert_eq!(&*instance.accelerators.model, "T4");
        assert_eq!(&*instance.cluster, "c1");
        assert_eq!(instance.launched.unwrap().to_string(), "2026-01-01T02:43:00Z");
        assert_eq!(instance.expires.unwrap().to_string(), "2027-01-01T02:43:00Z");
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::record(&[
            "InstanceId", "InstanceName", "HostName", "ZoneId", "InstanceType", "GPUAmount", "GPUSpec", "Status",
            "StoppedMode", "InstanceChargeType", "SpotStrategy", "CreationTime", "ExpiredTime", "OSType", "Tags", "Tag",
            "TagKey", "TagValue", "VpcAttributes", "PrivateIpAddress", "IpAddress", "DedicatedHostAttribute",
            "DedicatedHostId", "EcsCapacityReservationAttr", "CapacityReservationId",
        ])) {
            if let Ok(record) = serde_json::from_str::<Record>(&text) {
                let _ = record.has_accelerators();
                let instance = read_record(&record);
                // Whatever is written there, it is never on-demand by mistake.
                let is_post_paid = text.contains("\"InstanceChargeType\":\"PostPaid\"");
                prop_assert!(is_post_paid || instance.billing.mode != BillingMode::OnDemand);
                prop_assert!(instance.expires.is_none() || instance.billing.mode == BillingMode::Reserved);
            }
        }
    }
}
