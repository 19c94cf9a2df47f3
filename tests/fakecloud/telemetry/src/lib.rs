//! Simulated GPU exporters, and a server that answers Prometheus queries about
//! them as if it had scraped them every thirty seconds for weeks.
//!
//! Nothing is stored: every figure is a function of machine, card and time
//! ([`gpuwatch_fakecloud_core::workload`]), so that the past is there from the
//! first second. The same targets can be scraped by a real Prometheus.

pub mod api;
pub mod eval;
pub mod exporters;
mod functions;
pub mod host;
pub mod page;
pub mod source;
pub mod storage;
pub mod truth;

pub use api::{Options, TelemetryServer};
pub use host::{Exporter, Host, Tie};
pub use storage::Storage;
pub use truth::{Expected, expected};
