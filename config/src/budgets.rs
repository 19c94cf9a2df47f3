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
    /// Google Cloud: `monitoring_series_per_day` (time series read from Cloud
    /// Monitoring; 1,000,000 cost 0.50 USD).
    pub gcp: ProviderBudgets,
    /// Microsoft Azure: `monitor_calls_per_day` (metrics read for 50 machines
    /// at once; 1,000 cost 0.01 USD).
    pub azure: ProviderBudgets,
    /// Alibaba Cloud: `cloud_monitor_calls_per_month`; an account has 1,000,000
    /// free ones, after which calls fail.
    pub aliyun: ProviderBudgets,
    /// Tencent Cloud: `monitor_calls_per_month`; an account has 1,000,000 free
    /// ones, after which calls fail.
    pub tencent: ProviderBudgets,
}

/// Budgets that hold unless the file says otherwise.
const DEFAULTS: [(Provider, &str, u64); 6] = [
    (Provider::Aws, "cost_explorer_calls_per_day", 8),
    (Provider::Aws, "cloudwatch_metrics_per_hour", 20_000),
    (Provider::Gcp, "monitoring_series_per_day", 1_000_000),
    (Provider::Azure, "monitor_calls_per_day", 20_000),
    (Provider::Aliyun, "cloud_monitor_calls_per_month", 800_000),
    (Provider::Tencent, "monitor_calls_per_month", 800_000),
];

const SUFFIXES: [&str; 3] = ["_per_hour", "_per_day", "_per_month"];

impl Default for Budgets {
    fn default() -> Self {
        let mut budgets = Self {
            aws: ProviderBudgets::new(),
            gcp: ProviderBudgets::new(),
            azure: ProviderBudgets::new(),
            aliyun: ProviderBudgets::new(),
            tencent: ProviderBudgets::new(),
        };
        budgets.fill();
        budgets
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

    /// Puts in the defaults of what is not given.
    fn fill(&mut self) {
        for (provider, name, units) in DEFAULTS {
            let names = match provider {
                Provider::Aws => &mut self.aws,
                Provider::Gcp => &mut self.gcp,
                Provider::Azure => &mut self.azure,
                Provider::Aliyun => &mut self.aliyun,
                Provider::Tencent => &mut self.tencent,
            };
            names.entry(name.to_owned()).or_insert(units);
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
        self.fill();
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
    let known = DEFAULTS.map(|(_, known, _)| known);
    if let Some(meant) = nearest(name, known).filter(|meant| *meant != name) {
        checks.warn_of(
            spot,
            "a budget that no collector uses",
            format!("did you mean {meant}?"),
        );
    }
}
