//! Counts of every cloud call, in the program's own registry.

use gpuwatch_inventory::Provider;
use prometheus::{IntCounterVec, Opts, Registry};

use crate::{Call, Reason};

const LABELS: &[&str] = &["provider", "service", "operation", "outcome"];

/// Counters of calls and of billable units. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Accounting {
    requests: IntCounterVec,
    units: IntCounterVec,
}

impl Accounting {
    /// Registers `gpuwatch_api_requests_total` and
    /// `gpuwatch_api_billable_units_total`.
    ///
    /// # Errors
    /// When the registry already has them.
    pub fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let accounting = Self {
            requests: IntCounterVec::new(
                Opts::new(
                    "gpuwatch_api_requests_total",
                    "Calls made to cloud APIs, each attempt counted, by outcome (ok or the reason of failure).",
                ),
                LABELS,
            )?,
            units: IntCounterVec::new(
                Opts::new(
                    "gpuwatch_api_billable_units_total",
                    "Units of cloud API use that the cloud charges for (Cost Explorer requests, CloudWatch metrics).",
                ),
                LABELS,
            )?,
        };
        registry.register(Box::new(accounting.requests.clone()))?;
        registry.register(Box::new(accounting.units.clone()))?;
        Ok(accounting)
    }

    /// Counters that no registry shows, for tests.
    ///
    /// # Errors
    /// Never in practice: the names are constants.
    pub fn detached() -> Result<Self, prometheus::Error> {
        Self::new(&Registry::new())
    }

    /// Counts one attempt.
    pub(crate) fn request(&self, provider: Provider, call: Call, failure: Option<Reason>) {
        let outcome = failure.map_or("ok", Reason::as_str);
        self.requests
            .with_label_values(&[provider.as_str(), call.service, call.operation, outcome])
            .inc();
    }

    /// Counts units that were charged (`None`) or refused by a budget.
    pub(crate) fn units(&self, provider: Provider, call: Call, failure: Option<Reason>, units: u64) {
        let outcome = failure.map_or("ok", Reason::as_str);
        self.units
            .with_label_values(&[provider.as_str(), call.service, call.operation, outcome])
            .inc_by(units);
    }

    /// Attempts counted so far for a call and outcome (`ok` or a reason).
    #[must_use]
    pub fn requests_made(&self, provider: Provider, call: Call, outcome: &str) -> u64 {
        self.requests
            .with_label_values(&[provider.as_str(), call.service, call.operation, outcome])
            .get()
    }

    /// Units counted so far for a call and outcome.
    #[must_use]
    pub fn units_used(&self, provider: Provider, call: Call, outcome: &str) -> u64 {
        self.units
            .with_label_values(&[provider.as_str(), call.service, call.operation, outcome])
            .get()
    }
}
