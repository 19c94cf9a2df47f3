//! How an instance is paid for, as far as its own record says.

use gpuwatch_inventory::{Billing, BillingMode, Certainty};

use gpuwatch_collector_core::Interner;

/// Billing by `InstanceLifecycle`; `None` is an ordinary instance.
///
/// An ordinary instance is on-demand only as an estimate: a reserved instance
/// or a savings plan may pay for it, which no record says per instance.
///
/// An instance in an interruptible capacity reservation runs in capacity that
/// another account holds and may take back. Who pays which rate is not
/// documented, so the mode is unknown and the detail names it.
pub(crate) fn from_lifecycle(lifecycle: Option<&str>, interner: &mut Interner) -> Billing {
    let (mode, detail, certainty) = match lifecycle {
        None | Some("") => (BillingMode::OnDemand, "", Certainty::Estimated),
        Some("spot") => (BillingMode::Spot, "", Certainty::Exact),
        Some("capacity-block") => (BillingMode::Reserved, CAPACITY_BLOCK, Certainty::Exact),
        Some("scheduled") => (BillingMode::Reserved, "scheduled", Certainty::Exact),
        Some("interruptible-capacity-reservation") => (
            BillingMode::Unknown,
            "interruptible_capacity_reservation",
            Certainty::Exact,
        ),
        Some(other) => (BillingMode::Unknown, other, Certainty::Exact),
    };
    Billing {
        mode,
        detail: interner.text(detail),
        certainty,
    }
}

/// The billing detail of instances in a capacity block.
pub(crate) const CAPACITY_BLOCK: &str = "capacity_block";

/// The billing detail of instances that a reserved instance pays for.
pub(crate) const RESERVED_INSTANCE: &str = "reserved_instance";

#[cfg(test)]
mod tests {
    use super::*;

    fn billing(lifecycle: Option<&str>) -> (BillingMode, String, Certainty) {
        let billing = from_lifecycle(lifecycle, &mut Interner::default());
        (billing.mode, billing.detail.to_string(), billing.certainty)
    }

    // P28
    #[test]
    fn only_an_ordinary_instance_is_on_demand() {
        assert_eq!(
            billing(None),
            (BillingMode::OnDemand, String::new(), Certainty::Estimated)
        );
        assert_eq!(
            billing(Some("spot")),
            (BillingMode::Spot, String::new(), Certainty::Exact)
        );
        assert_eq!(
            billing(Some("capacity-block")),
            (BillingMode::Reserved, "capacity_block".into(), Certainty::Exact)
        );
        assert_eq!(
            billing(Some("interruptible-capacity-reservation")).1,
            "interruptible_capacity_reservation"
        );
        for lifecycle in [
            "capacity-block",
            "interruptible-capacity-reservation",
            "scheduled",
            "foo",
        ] {
            assert_ne!(billing(Some(lifecycle)).0, BillingMode::OnDemand, "{lifecycle}");
        }
    }

    #[test]
    fn a_lifecycle_nobody_knows_is_unknown_and_keeps_its_word() {
        assert_eq!(
            billing(Some("foo")),
            (BillingMode::Unknown, "foo".into(), Certainty::Exact)
        );
    }
}
