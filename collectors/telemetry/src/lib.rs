//! GPU counters read from Prometheus-compatible servers and joined to
//! instances.
//!
//! A [`Reader`] asks one server at intervals, with instant queries over the
//! last minutes, never over days ([`reader`]): which exporters there are
//! ([`family`]), the samples of each of their metrics, the Kubernetes nodes and the
//! machines' weak signals ([`host`]). Samples become readings of cards
//! ([`card`]), which are joined to instances ([`join`]); what cannot be joined
//! with certainty is counted and left out. A [`Board`] runs the readers of all
//! servers and publishes what they find.

pub mod answer;
mod assemble;
pub mod card;
pub mod client;
pub mod device;
pub mod errors;
pub mod family;
mod gather;
pub mod host;
pub mod join;
pub mod neuron;
pub mod options;
pub mod poll;
pub mod reader;
pub mod round;
pub mod select;

pub use options::{Authentication, TelemetryOptions, Tls};
pub use poll::Board;
pub use reader::Reader;
pub use round::{Folded, Round};
