//! Upper bounds for calls, above all for those a cloud charges for.

use std::collections::BTreeMap;

use gpuwatch_inventory::Provider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    check::Check,
    error::nearest,
    yaml::{Checks, Spot},
};

/// Budgets of one provider: units by name. The end of a name says per what:
/// `_per_hour`, `_per_day` or `_per_month`.
pub type ProviderBudgets = BTreeMap<String, u64>;

/// Budgets per provider. Names that are not given keep their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// Amazon Web Services: `cost_explorer_calls_per_day` (each costs 0.01 USD)
    /// and `cloudwatch_metrics_per_hour` (1,000 cost 0.01 USD).
    pub aws: ProviderBudgets,
    /// Google Cloud.
    pub gcp: ProviderBudgets,
    /// Microsoft Azure.
    pub azure: ProviderBudgets,
    /// Alibaba Cloud.
    pub aliyun: ProviderBudgets,
    /// Tencent Cloud.
    pub tencent: ProviderBudgets,
}

/// Budgets that hold unless the file says otherwise.
const AWS_DEFAULTS: [(&str, u64); 2] = [
    ("cost_explorer_calls_per_day", 8),
    ("cloudwatch_metrics_per_hour", 20_000),
];

const SUFFIXES: [&str; 3] = ["_per_hour", "_per_day", "_per_month"];

impl Default for Budgets {
    fn default() -> Self {
        Self {
            aws: AWS_DEFAULTS.map(|(name, units)| (name.to_owned(), units)).into(),
            gcp: ProviderBudgets::new(),
            azure: ProviderBudgets::new(),
            aliyun: ProviderBudgets::new(),
            tencent: ProviderBudgets::new(),
        }
    }
}

impl Budgets {
    /// The budgets of a provider.
    #[must_use]
    pub fn get(&self, provider: Provider) -> &ProviderBudgets {
        match provider {
            Provider::Aws => &self.aws,
            Provider::Gcp => &self.gcp,
            Provider::Azure => &self.azure,
            Provider::Aliyun => &self.aliyun,
            Provider::Tencent => &self.tencent,
        }
    }

    /// All budgets by provider word and name, as the scheduler takes them.
    #[must_use]
    pub fn by_provider(&self) -> BTreeMap<String, ProviderBudgets> {
        Provider::ALL
            .iter()
            .map(|provider| (provider.to_string(), self.get(*provider).clone()))
            .collect()
    }
}

impl Check for Budgets {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        for provider in Provider::ALL {
            for name in self.get(*provider).keys() {
                check_name(name, &spot.key(provider.as_str()).key(name), checks);
            }
        }
        for (name, units) in AWS_DEFAULTS {
            self.aws.entry(name.to_owned()).or_insert(units);
        }
    }
}

fn check_name(name: &str, spot: &Spot<'_>, checks: &Checks<'_>) {
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    let is_word = |stem: &str| {
        !stem.is_empty()
            && stem
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if !stem.is_some_and(is_word) {
        let fix = "end it in _per_hour, _per_day or _per_month, in lower case: cost_explorer_calls_per_day";
        checks.problem(spot, "not the name of a budget", fix);
        return;
    }
    let known = AWS_DEFAULTS.map(|(known, _)| known);
    if let Some(meant) = nearest(name, known).filter(|meant| *meant != name) {
        checks.warn_of(
            spot,
            "a budget that no collector uses",
            format!("did you mean {meant}?"),
        );
    }
}
