//! How often, how long and how far back: one value per dataset.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Period;

/// The words of the datasets, which are the keys of the sections here.
pub const DATASETS: [&str; 6] = ["inventory", "usage", "commitments", "prices", "spend", "managed"];

/// Time from start to start of a dataset's polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Intervals {
    /// Instances and their accelerators.
    pub inventory: Period,
    /// Utilisation from the clouds' own monitoring.
    pub usage: Period,
    /// Reservations, plans and blocks.
    pub commitments: Period,
    /// Price lists.
    pub prices: Period,
    /// Billed cost.
    pub spend: Period,
    /// Managed AI platforms.
    pub managed: Period,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            inventory: Period::minutes(5),
            usage: Period::minutes(5),
            commitments: Period::hours(1),
            prices: Period::hours(12),
            spend: Period::hours(6),
            managed: Period::minutes(10),
        }
    }
}

impl Intervals {
    /// The interval of a dataset by its word, `None` for an unknown word.
    #[must_use]
    pub fn get(&self, dataset: &str) -> Option<Duration> {
        let period = match dataset {
            "inventory" => self.inventory,
            "usage" => self.usage,
            "commitments" => self.commitments,
            "prices" => self.prices,
            "spend" => self.spend,
            "managed" => self.managed,
            _ => return None,
        };
        Some(period.get())
    }
}

/// A length of time per dataset that replaces one derived from its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DatasetPeriods {
    /// Instances and their accelerators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<Period>,
    /// Utilisation from the clouds' own monitoring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Period>,
    /// Reservations, plans and blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitments: Option<Period>,
    /// Price lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Period>,
    /// Billed cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend: Option<Period>,
    /// Managed AI platforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<Period>,
}

impl DatasetPeriods {
    /// The configured length for a dataset by its word, `None` when it is to
    /// be derived or the word is unknown.
    #[must_use]
    pub fn get(&self, dataset: &str) -> Option<Duration> {
        let period = match dataset {
            "inventory" => self.inventory,
            "usage" => self.usage,
            "commitments" => self.commitments,
            "prices" => self.prices,
            "spend" => self.spend,
            "managed" => self.managed,
            _ => None,
        };
        period.map(Period::get)
    }
}
