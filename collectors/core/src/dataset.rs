//! The datasets a collector can be polled for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of fact, with its own interval, deadline and last good answer.
/// The word is the `dataset` label and the key under `intervals:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dataset {
    /// Instances and their accelerators.
    Inventory,
    /// Utilisation from the cloud's own monitoring.
    Usage,
    /// Reservations, plans and blocks.
    Commitments,
    /// Price lists.
    Prices,
    /// Billed cost.
    Spend,
    /// Managed AI platforms.
    Managed,
}

impl Dataset {
    /// Every dataset.
    pub const ALL: &'static [Self] = &[
        Self::Inventory,
        Self::Usage,
        Self::Commitments,
        Self::Prices,
        Self::Spend,
        Self::Managed,
    ];

    /// The public word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inventory => "inventory",
            Self::Usage => "usage",
            Self::Commitments => "commitments",
            Self::Prices => "prices",
            Self::Spend => "spend",
            Self::Managed => "managed",
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
