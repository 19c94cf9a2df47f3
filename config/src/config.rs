//! The whole file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Budgets, CurrencySection, DATASETS, DatasetPeriods, FindingsSection, HistorySection, Intervals, LabelsSection,
    ListenAddress, PricesSection, Providers, ReportSection, TelemetrySection,
    check::Check,
    providers::check_sections,
    yaml::{Checks, Spot},
};

/// Configuration of gpuwatch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where metrics, page and API are served.
    pub listen: ListenAddress,
    /// TLS and basic authentication of the listener, in the format of the
    /// Prometheus exporter toolkit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_config_file: Option<PathBuf>,
    /// What to watch.
    pub providers: Providers,
    /// Servers that hold GPU counters.
    pub telemetry: Vec<TelemetrySection>,
    /// Time between polls, per dataset.
    pub intervals: Intervals,
    /// A poll is cut off after this time. Derived from the interval unless set.
    pub deadlines: DatasetPeriods,
    /// How long the last good answer is shown. Derived from the interval unless set.
    pub time_to_live: DatasetPeriods,
    /// Upper bounds for calls, per provider and name.
    pub budgets: Budgets,
    /// Currency of the report, and exchange rates.
    pub currency: CurrencySection,
    /// Discounts and offline prices.
    pub prices: PricesSection,
    /// Tags with a meaning.
    pub labels: LabelsSection,
    /// Thresholds of the findings.
    pub findings: FindingsSection,
    /// Where hourly and daily figures are kept.
    pub history: HistorySection,
    /// The weekly digest.
    pub report: ReportSection,
}

impl Config {
    /// Whether any cloud is to be watched.
    #[must_use]
    pub fn has_targets(&self) -> bool {
        !self.providers.is_empty()
    }

    /// An answer that ends before the next poll makes every series flicker.
    fn check_time_to_live(&self, spot: &Spot<'_>, checks: &Checks<'_>) {
        for dataset in DATASETS {
            let (Some(shown), Some(interval)) = (self.time_to_live.get(dataset), self.intervals.get(dataset)) else {
                continue;
            };
            if shown <= interval {
                let fix = "write at least twice the interval";
                checks.bad_value(&spot.key(dataset), "not longer than the dataset's interval", fix);
            }
        }
    }
}

impl Check for Config {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.file(&spot.key("web_config_file"), self.web_config_file.as_mut());
        self.check_time_to_live(&spot.key("time_to_live"), checks);
        self.providers.check(&spot.key("providers"), checks);
        check_sections(&mut self.telemetry, &spot.key("telemetry"), checks, |section| {
            &section.name
        });
        self.budgets.check(&spot.key("budgets"), checks);
        self.currency.check(&spot.key("currency"), checks);
        self.prices.check(&spot.key("prices"), checks);
        self.labels.check(&spot.key("labels"), checks);
        self.findings.check(&spot.key("findings"), checks);
        self.history.check(&spot.key("history"), checks);
        self.report.check(&spot.key("report"), checks);
    }
}
