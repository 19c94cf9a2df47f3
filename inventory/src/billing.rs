//! How an instance is paid for.

use crate::Text;

crate::words! {
    /// The purchase option an instance runs under.
    BillingMode, "billing mode" {
        /// Pay as you go, at the list or negotiated rate.
        OnDemand = "on_demand",
        /// Paid for by a commitment or a prepaid term.
        Reserved = "reserved",
        /// Interruptible capacity at a market or discounted rate.
        Spot = "spot",
        /// The cloud named a mode that gpuwatch does not know. Never on-demand.
        Unknown = "unknown",
    }
}

crate::words! {
    /// Whether the cloud stated the billing mode for this very instance.
    Certainty, "certainty" {
        /// The cloud says so per instance.
        Exact = "exact",
        /// Allocated by gpuwatch, because the cloud bills by account or pool.
        Estimated = "estimated",
    }
}

/// Billing mode with the facts behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Billing {
    /// The purchase option.
    pub mode: BillingMode,
    /// The kind within the mode (`reserved_instance`, `capacity_block`,
    /// `subscription`, `flex_start` ...) or, for an unknown mode, the cloud's
    /// own word. Empty when there is nothing to add.
    pub detail: Text,
    /// Exact or allocated.
    pub certainty: Certainty,
}

impl Billing {
    /// A mode the cloud stated for the instance, with an optional detail.
    #[must_use]
    pub fn exact(mode: BillingMode, detail: &str) -> Self {
        Self {
            mode,
            detail: detail.into(),
            certainty: Certainty::Exact,
        }
    }

    /// A mode that gpuwatch allocated.
    #[must_use]
    pub fn estimated(mode: BillingMode, detail: &str) -> Self {
        Self {
            mode,
            detail: detail.into(),
            certainty: Certainty::Estimated,
        }
    }
}
