//! From a CVM record to an instance.

use gpuwatch_collector_core::{Interner, Scope, TagRules};
use gpuwatch_inventory::{Accelerators, GpuCount, Instance, Kind, Provider, State};
use serde::Deserialize;

use crate::{
    billing, loose,
    ownership::{self, Membership, Tag},
    time,
};

/// The fields of a record that matter. Any may be missing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct CvmRecord {
    #[serde(deserialize_with = "loose::text")]
    pub instance_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub instance_name: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub instance_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub instance_state: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub stop_charging_mode: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub instance_charge_type: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub created_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub expired_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub renew_flag: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub os_name: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub hpc_cluster_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub dedicated_cluster_id: Option<String>,
    #[serde(deserialize_with = "loose::part")]
    pub placement: Option<Placement>,
    #[serde(rename = "GPUInfo", deserialize_with = "loose::part")]
    pub gpu_info: Option<GpuInfo>,
    #[serde(deserialize_with = "loose::list")]
    pub private_ip_addresses: Vec<String>,
    #[serde(deserialize_with = "loose::list")]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Placement {
    #[serde(deserialize_with = "loose::text")]
    pub zone: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    pub host_id: Option<String>,
}

/// The accelerators of a record.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GpuInfo {
    /// Cards; below 1 for a slice of one.
    #[serde(rename = "GPUCount", deserialize_with = "loose::number")]
    pub count: Option<f64>,
    #[serde(rename = "GPUType", deserialize_with = "loose::text")]
    pub model: Option<String>,
}

/// What a record states about its accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Stated<'a> {
    /// `None` for no statement, of which 0 is one way.
    pub count: Option<GpuCount>,
    /// Empty when not named.
    pub model: &'a str,
}

impl CvmRecord {
    pub(crate) fn stated(&self) -> Stated<'_> {
        let info = self.gpu_info.as_ref();
        Stated {
            count: info
                .and_then(|info| GpuCount::new(info.count?))
                .filter(|count| *count > GpuCount::ZERO),
            model: info.and_then(|info| info.model.as_deref()).unwrap_or_default(),
        }
    }

    /// Whether there is a machine at all: one that could not be launched never
    /// held anything, and is removed by itself.
    pub(crate) fn is_there(&self) -> bool {
        self.instance_state.as_deref() != Some("LAUNCH_FAILED")
    }
}

/// The state of a machine, by what it costs.
///
/// A stopped machine is charged unless it was stopped without charge, which
/// is asked for when stopping and not offered for every type; a subscription
/// is paid for either way. `SHUTDOWN` is isolated and waits for its end.
fn state(record: &CvmRecord) -> State {
    match record.instance_state.as_deref() {
        Some(
            "RUNNING"
            | "REBOOTING"
            | "ENTER_RESCUE_MODE"
            | "RESCUE_MODE"
            | "EXIT_RESCUE_MODE"
            | "ENTER_SERVICE_LIVE_MIGRATE"
            | "SERVICE_LIVE_MIGRATE"
            | "EXIT_SERVICE_LIVE_MIGRATE",
        ) => State::Running,
        Some("PENDING" | "STARTING") => State::Starting,
        Some("STOPPING" | "SHUTDOWN" | "TERMINATING") => State::Stopping,
        Some("STOPPED") => match record.stop_charging_mode.as_deref() {
            Some("STOP_CHARGING") => State::Stopped,
            _ => State::StoppedBilled,
        },
        _ => State::Unknown,
    }
}

/// Builds instances of one scope from records.
pub(crate) struct Reader<'a> {
    scope: &'a Scope,
    rules: &'a TagRules,
    interner: Interner,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(scope: &'a Scope, rules: &'a TagRules) -> Self {
        Self {
            scope,
            rules,
            interner: Interner::default(),
        }
    }

    /// The instance of a record with an id.
    pub(crate) fn read(
        &mut self,
        record: &CvmRecord,
        id: &str,
        accelerators: Accelerators,
        membership: Option<&Membership>,
    ) -> Instance {
        let interner = &mut self.interner;
        let cluster = record.hpc_cluster_id.as_deref();
        let ownership = ownership::read(self.rules, &record.tags, membership, cluster, interner);
        let placement = record.placement.clone().unwrap_or_default();
        let charge_type = record.instance_charge_type.as_deref();
        let mut text = |text: Option<&str>| interner.text(text.unwrap_or_default());
        Instance {
            provider: Provider::Tencent,
            account: self.scope.account.id.clone(),
            account_name: self.scope.account.name.clone(),
            region: self.scope.region.clone(),
            id: id.into(),
            name: text(record.instance_name.as_deref()),
            zone: text(placement.zone.as_deref()),
            instance_type: text(record.instance_type.as_deref()),
            kind: Kind::Vm,
            state: state(record),
            accelerators,
            launched: record.created_time.as_deref().and_then(time::parse),
            expires: record
                .expired_time
                .as_deref()
                .filter(|_| billing::has_term(charge_type))
                .and_then(time::parse),
            auto_renew: billing::renews(record.renew_flag.as_deref(), charge_type),
            stopped: None,
            owner: ownership.owner,
            cluster: ownership.cluster,
            pool: ownership.pool,
            platform: text(platform(record.os_name.as_deref())),
            tenancy: text(tenancy(record, &placement)),
            reservation_id: text(None),
            private_address: text(record.private_ip_addresses.first().map(String::as_str)),
            private_host: text(None),
            tags: ownership.kept,
            billing: billing::from_charge_type(charge_type, interner),
        }
    }
}

/// The system that is billed: Windows has a licence, the others have none.
fn platform(os_name: Option<&str>) -> Option<&'static str> {
    os_name.map(|name| if name.contains("Windows") { "Windows" } else { "Linux" })
}

fn tenancy(record: &CvmRecord, placement: &Placement) -> Option<&'static str> {
    if placement.host_id.is_some() {
        Some("host")
    } else {
        record.dedicated_cluster_id.as_ref().map(|_| "dedicated_cluster")
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::BillingMode;
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Tencent,
            account: Account {
                id: "100000000001".into(),
                name: "cn".into(),
            },
            region: "ap-guangzhou".into(),
        }
    }

    fn parse(text: &str) -> CvmRecord {
        serde_json::from_str(text).unwrap()
    }

    fn read(record: &CvmRecord) -> Instance {
        let rules = TagRules {
            owner: vec!["团队".into()],
            keep: vec![],
        };
        Reader::new(&scope(), &rules).read(record, "ins-1", Accelerators::default(), None)
    }

    const SAMPLE: &str = r#"{"InstanceId":"ins-00000001","InstanceName":"训练-01","InstanceType":"GN7.LARGE20",
        "CPU":4,"Memory":20,"InstanceState":"RUNNING","RestrictState":"NORMAL","IsolatedSource":"NOTISOLATED",
        "StopChargingMode":"NOT_APPLICABLE","InstanceChargeType":"POSTPAID_BY_HOUR","RenewFlag":null,
        "CreatedTime":"2026-01-01T02:43:51Z","ExpiredTime":null,
        "Placement":{"Zone":"ap-guangzhou-6","ProjectId":0,"HostId":""},
        "GPUInfo":{"GPUCount":0.25,"GPUId":["0000:00:08.0"],"GPUType":"NVIDIA T4"},
        "PrivateIpAddresses":["10.0.0.2"],"PublicIpAddresses":null,"Tags":[{"Key":"团队","Value":"推荐"}],
        "HpcClusterId":"","DedicatedClusterId":""}"#;

    // P36
    #[test]
    fn facts_of_a_record_are_taken_over() {
        let record = parse(SAMPLE);
        let stated = record.stated();
        assert_eq!(
            (stated.count.map(GpuCount::get), stated.model),
            (Some(0.25), "NVIDIA T4")
        );
        let instance = read(&record);
        assert_eq!((&*instance.name, &*instance.owner), ("训练-01", "推荐"));
        assert_eq!(
            (&*instance.zone, &*instance.private_address),
            ("ap-guangzhou-6", "10.0.0.2")
        );
        assert_eq!((&*instance.tenancy, &*instance.cluster), ("", ""));
        assert_eq!(
            (instance.state, instance.billing.mode),
            (State::Running, BillingMode::OnDemand)
        );
        let launched: Timestamp = "2026-01-01T02:43:51Z".parse().unwrap();
        assert_eq!((instance.launched, instance.expires), (Some(launched), None));
    }

    #[test]
    fn states_map_by_what_they_cost() {
        let state = |name: &str, mode: &str| {
            state(&CvmRecord {
                instance_state: Some(name.to_owned()),
                stop_charging_mode: Some(mode.to_owned()),
                ..CvmRecord::default()
            })
        };
        for (name, expected) in [
            ("PENDING", State::Starting),
            ("RUNNING", State::Running),
            ("STARTING", State::Starting),
            ("STOPPING", State::Stopping),
            ("REBOOTING", State::Running),
            ("SHUTDOWN", State::Stopping),
            ("TERMINATING", State::Stopping),
            ("ENTER_RESCUE_MODE", State::Running),
            ("RESCUE_MODE", State::Running),
            ("EXIT_RESCUE_MODE", State::Running),
            ("ENTER_SERVICE_LIVE_MIGRATE", State::Running),
            ("SERVICE_LIVE_MIGRATE", State::Running),
            ("EXIT_SERVICE_LIVE_MIGRATE", State::Running),
            ("HIBERNATED", State::Unknown),
        ] {
            assert_eq!(state(name, "NOT_APPLICABLE"), expected, "{name}");
        }
        assert_eq!(state("STOPPED", "STOP_CHARGING"), State::Stopped);
        assert_eq!(state("STOPPED", "KEEP_CHARGING"), State::StoppedBilled);
        assert_eq!(state("STOPPED", "NOT_APPLICABLE"), State::StoppedBilled);
        assert!(!parse(r#"{"InstanceState":"LAUNCH_FAILED"}"#).is_there());
    }

    #[test]
    fn a_subscription_has_an_end_and_pay_as_you_go_has_none() {
        let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let expires = |charge: &str| {
            let text = format!(r#"{{"InstanceChargeType":"{charge}","ExpiredTime":"2027-01-01T00:00:00Z"}}"#);
            read(&parse(&text)).expires
        };
        assert_eq!(expires("PREPAID"), Some(end));
        assert_eq!(expires("POSTPAID_BY_HOUR"), None);
    }

    #[test]
    fn only_a_term_is_renewed() {
        let renews = |charge: &str, flag: &str| {
            let text = format!(r#"{{"InstanceId":"ins-1","InstanceChargeType":"{charge}","RenewFlag":{flag}}}"#);
            read(&parse(&text)).auto_renew
        };
        assert_eq!(renews("PREPAID", r#""NOTIFY_AND_AUTO_RENEW""#), Some(true));
        assert_eq!(renews("PREPAID", r#""NOTIFY_AND_MANUAL_RENEW""#), Some(false));
        assert_eq!(renews("PREPAID", r#""DISABLE_NOTIFY_AND_MANUAL_RENEW""#), Some(false));
        for unknown in ["null", r#""""#, r#""SOON""#] {
            assert_eq!(renews("PREPAID", unknown), None, "{unknown}");
        }
        assert_eq!(renews("POSTPAID_BY_HOUR", r#""NOTIFY_AND_AUTO_RENEW""#), None);
    }

    // P48
    #[test]
    fn nothing_is_needed_and_odd_fields_cost_themselves() {
        for text in [
            "{}",
            r#"{"GPUInfo":7,"Placement":[],"Tags":"x","PrivateIpAddresses":null,"CreatedTime":"0000-00-00 00:00:00"}"#,
            r#"{"GPUInfo":{"GPUCount":"-","GPUType":null},"Tags":[null,{"Key":null}],"InstanceState":3}"#,
        ] {
            let record = parse(text);
            let instance = read(&record);
            assert_eq!((instance.state, instance.launched), (State::Unknown, None), "{text}");
            assert_eq!(record.stated(), Stated::default(), "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(|n| serde_json::json!(n)),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::hash_map("[A-Za-z]{1,6}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_record_is_survived(
            fields in prop::collection::hash_map(
                prop::sample::select(vec![
                    "InstanceId", "InstanceType", "InstanceState", "CreatedTime", "ExpiredTime", "Placement", "GPUInfo",
                    "PrivateIpAddresses", "Tags", "InstanceChargeType",
                ]),
                any_json(),
                0..8,
            ),
            whole in any_json(),
        ) {
            let _ = serde_json::from_value::<CvmRecord>(whole);
            let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let record: CvmRecord = serde_json::from_value(serde_json::Value::Object(fields)).unwrap();
            let _ = (read(&record), record.stated());
        }
    }
}
