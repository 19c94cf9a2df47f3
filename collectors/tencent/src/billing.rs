//! How an instance is paid for, as far as its own record says.

use gpuwatch_collector_core::Interner;
use gpuwatch_inventory::{Billing, BillingMode, Certainty};

/// Detail of a prepaid instance.
pub(crate) const SUBSCRIPTION: &str = "subscription";

/// Detail of an instance that a reserved instance pays for.
pub(crate) const RESERVED_INSTANCE: &str = "reserved_instance";

/// Detail of an instance that a savings plan pays for.
pub(crate) const SAVINGS_PLAN: &str = "savings_plan";

/// Part of an instance's cost that a plan must have paid for the instance to
/// count as covered.
pub(crate) const COVERED_FROM: f64 = 50.0;

/// Billing by the charge type of the record.
///
/// Pay-as-you-go is on-demand only as an estimate: a reserved instance or a
/// savings plan may pay for it, which no record says. An instance on a
/// dedicated host or cluster costs nothing itself: what was bought is the
/// host.
pub(crate) fn from_charge_type(charge_type: Option<&str>, interner: &mut Interner) -> Billing {
    let (mode, detail, certainty) = match charge_type {
        Some("POSTPAID_BY_HOUR") => (BillingMode::OnDemand, "", Certainty::Estimated),
        Some("SPOTPAID") => (BillingMode::Spot, "", Certainty::Exact),
        Some("PREPAID") => (BillingMode::Reserved, SUBSCRIPTION, Certainty::Exact),
        Some("UNDERWRITE") => (BillingMode::Reserved, "underwrite", Certainty::Exact),
        Some("CDHPAID") => (BillingMode::Reserved, "dedicated_host", Certainty::Exact),
        Some("CDCPAID") => (BillingMode::Reserved, "dedicated_cluster", Certainty::Exact),
        other => (BillingMode::Unknown, other.unwrap_or_default(), Certainty::Exact),
    };
    Billing {
        mode,
        detail: interner.text(detail),
        certainty,
    }
}

/// Whether the record's end of term means anything: pay-as-you-go has none,
/// whatever is printed.
pub(crate) fn has_term(charge_type: Option<&str>) -> bool {
    matches!(charge_type, Some("PREPAID" | "UNDERWRITE"))
}

/// Whether a term is renewed by itself; a word that nobody knows says nothing.
pub(crate) fn renews(flag: Option<&str>, charge_type: Option<&str>) -> Option<bool> {
    match flag.filter(|_| has_term(charge_type))? {
        "NOTIFY_AND_AUTO_RENEW" => Some(true),
        "NOTIFY_AND_MANUAL_RENEW" | "DISABLE_NOTIFY_AND_MANUAL_RENEW" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billing(charge_type: Option<&str>) -> (BillingMode, String) {
        let billing = from_charge_type(charge_type, &mut Interner::default());
        (billing.mode, billing.detail.to_string())
    }

    // P24, P28
    #[test]
    fn every_charge_type_has_its_mode_and_only_one_is_on_demand() {
        use BillingMode::{OnDemand, Reserved, Spot, Unknown};
        for (charge_type, mode, detail) in [
            (Some("POSTPAID_BY_HOUR"), OnDemand, ""),
            (Some("SPOTPAID"), Spot, ""),
            (Some("PREPAID"), Reserved, "subscription"),
            (Some("UNDERWRITE"), Reserved, "underwrite"),
            (Some("CDHPAID"), Reserved, "dedicated_host"),
            (Some("CDCPAID"), Reserved, "dedicated_cluster"),
            (Some("NEWPAID"), Unknown, "NEWPAID"),
            (None, Unknown, ""),
        ] {
            assert_eq!(billing(charge_type), (mode, detail.to_owned()), "{charge_type:?}");
        }
    }

    #[test]
    fn only_prepaid_instances_have_a_term() {
        assert!(has_term(Some("PREPAID")) && has_term(Some("UNDERWRITE")));
        assert!(!has_term(Some("POSTPAID_BY_HOUR")) && !has_term(None));
    }
}
