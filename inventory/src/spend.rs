//! Billed cost.

use jiff::civil::Date;

use crate::{BillingMode, Money, Provider, Text};

/// One row of a bill: an account's cost of a service in a billing day.
#[derive(Debug, Clone, PartialEq)]
pub struct SpendRow {
    /// The cloud.
    pub provider: Provider,
    /// Billed account.
    pub account: Text,
    /// Service name as billed.
    pub service: Text,
    /// Purchase option of the usage.
    pub billing_mode: BillingMode,
    /// The day, in the provider's billing zone.
    pub day: Date,
    /// Billed amount; a billed 0 is a fact.
    pub cost: Money,
}
