//! A series of an exporter: its labels, and its value as a function of time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::host::Host;

/// Labels without the metric's name.
pub type Labels = BTreeMap<String, String>;

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
}

type Figure = Box<dyn Fn(&Host, Timestamp) -> Option<f64> + Send + Sync>;

/// One series.
pub struct Source {
    /// The metric's name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The exporter's own labels.
    pub labels: Labels,
    figure: Figure,
}

impl Source {
    /// A gauge.
    pub fn gauge(
        name: &'static str,
        labels: Labels,
        figure: impl Fn(&Host, Timestamp) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            kind: Kind::Gauge,
            labels,
            figure: Box::new(figure),
        }
    }

    /// A counter.
    pub fn counter(
        name: &'static str,
        labels: Labels,
        figure: impl Fn(&Host, Timestamp) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind: Kind::Counter,
            ..Self::gauge(name, labels, figure)
        }
    }

    /// The value at a time; `None` when the exporter does not show the series
    /// then.
    #[must_use]
    pub fn value(&self, host: &Host, at: Timestamp) -> Option<f64> {
        (self.figure)(host, at)
    }
}

/// Labels from pairs.
#[must_use]
pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
