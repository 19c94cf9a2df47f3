//! How an instance is paid for, as far as its own record says.

use gpuwatch_collector_core::Interner;
use gpuwatch_inventory::{Billing, BillingMode, Certainty};
use serde::Deserialize;

/// The billing detail of machines that run in a reservation under a
/// commitment, or that a commitment covers.
pub(crate) const COMMITTED_USE: &str = "committed_use";

/// The billing detail of capacity that ends on its own, at a lower price.
pub(crate) const FLEX_START: &str = "flex_start";

/// The billing detail of machines that can only run in a reservation.
pub(crate) const RESERVATION_BOUND: &str = "reservation_bound";

/// The billing detail of machines in a reservation that was bought for fixed
/// dates.
pub(crate) const CALENDAR: &str = "calendar";

/// `scheduling` of a machine.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scheduling {
    pub provisioning_model: Option<String>,
    pub preemptible: Option<bool>,
    #[serde(default)]
    pub termination_time: crate::value::Time,
    #[serde(default)]
    pub node_affinities: Option<Vec<serde_json::Value>>,
}

/// Billing by provisioning model and the older `preemptible`.
///
/// An ordinary machine is on-demand only as an estimate: a reservation under
/// a commitment, or a commitment alone, may pay for it. A model nobody knows is
/// unknown, with the model as its detail.
pub(crate) fn of_machine(scheduling: &Scheduling, interner: &mut Interner) -> Billing {
    let model = scheduling.provisioning_model.as_deref().unwrap_or_default();
    let (mode, detail, certainty) = match model {
        // Machines from before Spot are preemptible and of no, or the standard, model.
        "SPOT" => (BillingMode::Spot, "", Certainty::Exact),
        _ if scheduling.preemptible == Some(true) => (BillingMode::Spot, "", Certainty::Exact),
        "FLEX_START" => (BillingMode::OnDemand, FLEX_START, Certainty::Exact),
        "RESERVATION_BOUND" => (BillingMode::Reserved, RESERVATION_BOUND, Certainty::Exact),
        "" | "STANDARD" => (BillingMode::OnDemand, "", Certainty::Estimated),
        other => (BillingMode::Unknown, other, Certainty::Exact),
    };
    Billing {
        mode,
        detail: interner.text(detail),
        certainty,
    }
}

/// `schedulingConfig` of a TPU node.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TpuScheduling {
    preemptible: Option<bool>,
    spot: Option<bool>,
    reserved: Option<bool>,
}

/// Billing of a TPU node.
pub(crate) fn of_node(scheduling: &TpuScheduling) -> Billing {
    if scheduling.spot == Some(true) || scheduling.preemptible == Some(true) {
        Billing::exact(BillingMode::Spot, "")
    } else if scheduling.reserved == Some(true) {
        Billing::exact(BillingMode::Reserved, "reservation")
    } else {
        Billing::estimated(BillingMode::OnDemand, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> (BillingMode, String, Certainty) {
        let scheduling: Scheduling = serde_json::from_str(json).unwrap();
        let billing = of_machine(&scheduling, &mut Interner::default());
        (billing.mode, billing.detail.to_string(), billing.certainty)
    }

    // P24
    #[test]
    fn spot_and_legacy_preemptible_are_spot() {
        for json in [
            r#"{"provisioningModel": "SPOT", "preemptible": true}"#,
            r#"{"provisioningModel": "SPOT"}"#,
            r#"{"provisioningModel": "STANDARD", "preemptible": true}"#,
            r#"{"preemptible": true}"#,
        ] {
            assert_eq!(of(json), (BillingMode::Spot, String::new(), Certainty::Exact), "{json}");
        }
    }

    #[test]
    fn every_other_model_has_a_mode_of_its_own() {
        assert_eq!(of("{}"), (BillingMode::OnDemand, String::new(), Certainty::Estimated));
        assert_eq!(of(r#"{"provisioningModel": "STANDARD"}"#).0, BillingMode::OnDemand);
        let flex = of(r#"{"provisioningModel": "FLEX_START"}"#);
        assert_eq!(flex, (BillingMode::OnDemand, "flex_start".into(), Certainty::Exact));
        assert_eq!(
            of(r#"{"provisioningModel": "RESERVATION_BOUND"}"#).0,
            BillingMode::Reserved
        );
        let new = of(r#"{"provisioningModel": "BRAND_NEW"}"#);
        assert_eq!(new, (BillingMode::Unknown, "BRAND_NEW".into(), Certainty::Exact));
    }

    #[test]
    fn tpu_nodes_state_their_mode() {
        let of = |json: &str| of_node(&serde_json::from_str(json).unwrap()).mode;
        assert_eq!(of("{}"), BillingMode::OnDemand);
        assert_eq!(of(r#"{"spot": true}"#), BillingMode::Spot);
        assert_eq!(of(r#"{"preemptible": true}"#), BillingMode::Spot);
        assert_eq!(of(r#"{"reserved": true, "spot": false}"#), BillingMode::Reserved);
    }
}
