//! What one hour of an instance costs.

use jiff::Timestamp;

use crate::Money;

crate::words! {
    /// The `basis` label: three different things that are never mixed.
    Basis, "price basis" {
        /// Published on-demand price of that shape.
        List = "list",
        /// What this account pays now: spot price, spread prepaid price,
        /// a commitment's rate.
        Effective = "effective",
        /// From the bill.
        Billed = "billed",
    }
}

/// A price for one hour of one instance.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceQuote {
    /// Per hour, in the cloud's own currency. A list price of 0 is unknown
    /// and must not be built.
    pub hourly: Money,
    /// What kind of price it is.
    pub basis: Basis,
    /// When the cloud stated it.
    pub at: Timestamp,
}
