//! Metrics about the program itself, in a registry of the `prometheus` crate.

use std::fmt;

use jiff::Timestamp;
use prometheus::{
    Encoder as _, Gauge, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::{
    encode::table::{self, Metric},
    page::FleetPart,
};

/// Buckets of the encoding time, in seconds: from a small fleet (under a
/// millisecond) to 1,000,000 instances (some seconds).
const ENCODE_BUCKETS: &[f64] = &[0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The registry and the metrics in it. Cheap to clone.
#[derive(Clone)]
pub struct OwnMetrics {
    registry: Registry,
    reload_successful: IntGauge,
    reload_timestamp: Gauge,
    http_requests: IntCounterVec,
    page_size: IntGaugeVec,
    encode_duration: Histogram,
}

impl fmt::Debug for OwnMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnMetrics").finish_non_exhaustive()
    }
}

impl OwnMetrics {
    /// A registry of its own with every metric in it.
    ///
    /// # Errors
    /// Never in practice: names and labels are constants.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let build_info = IntGaugeVec::new(opts(&table::BUILD_INFO), table::BUILD_INFO.labels)?;
        build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let duration = &table::PAGE_ENCODE_DURATION;
        let metrics = Self {
            reload_successful: IntGauge::with_opts(opts(&table::CONFIG_RELOAD_SUCCESSFUL))?,
            reload_timestamp: Gauge::with_opts(opts(&table::CONFIG_RELOAD_TIMESTAMP))?,
            http_requests: IntCounterVec::new(opts(&table::HTTP_REQUESTS), table::HTTP_REQUESTS.labels)?,
            page_size: IntGaugeVec::new(opts(&table::PAGE_SIZE), table::PAGE_SIZE.labels)?,
            encode_duration: Histogram::with_opts(
                HistogramOpts::new(duration.name, duration.help).buckets(ENCODE_BUCKETS.to_vec()),
            )?,
            registry,
        };
        let registry = &metrics.registry;
        registry.register(Box::new(build_info))?;
        registry.register(Box::new(metrics.reload_successful.clone()))?;
        registry.register(Box::new(metrics.reload_timestamp.clone()))?;
        registry.register(Box::new(metrics.http_requests.clone()))?;
        registry.register(Box::new(metrics.page_size.clone()))?;
        registry.register(Box::new(metrics.encode_duration.clone()))?;
        #[cfg(target_os = "linux")]
        registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(metrics)
    }

    /// The registry, for other parts of the program to add to.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The configuration was loaded at this time.
    #[allow(
        clippy::cast_precision_loss,
        reason = "milliseconds of jiff's whole range fit 53 bits"
    )]
    pub fn configuration_loaded(&self, at: Timestamp) {
        self.reload_successful.set(1);
        self.reload_timestamp.set(at.as_millisecond() as f64 / 1000.0);
    }

    /// A new configuration was refused.
    pub fn configuration_refused(&self) {
        self.reload_successful.set(0);
    }

    /// Counts an answered HTTP request. `handler` must come from a fixed set.
    pub fn http_request(&self, handler: &str, code: u16) {
        self.http_requests
            .with_label_values(&[handler, itoa::Buffer::new().format(code)])
            .inc();
    }

    /// Records an encoded page.
    pub fn page_encoded(&self, part: &FleetPart, seconds: f64) {
        let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.page_size
            .with_label_values(&["identity"])
            .set(size(part.plain_len()));
        self.page_size
            .with_label_values(&["gzip"])
            .set(size(part.compressed_len()));
        self.encode_duration.observe(seconds);
    }

    /// The text of every family in the registry.
    ///
    /// # Errors
    /// When a family cannot be encoded, which only a defect can cause.
    pub fn text(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}

fn opts(metric: &Metric) -> Opts {
    Opts::new(metric.name, metric.help)
}
