//! What all simulated clouds share: the HTTP server, injected faults, the log
//! of calls, seeded randomness and the make-up of the demo fleet.
//!
//! Each cloud is one crate that implements [`Cloud`]; [`Server`] serves any
//! number of them behind one address on loopback.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]

pub mod fleet;
pub mod random;

mod calls;
mod cloud;
mod connection;
mod faults;
mod server;
mod truth;
pub mod workload;

pub use calls::{CallRecord, Outcome};
pub use cloud::{CallKey, Cloud, Exchange, Incoming, Reply};
pub use faults::{FaultId, FaultKind, FaultRule, Faults};
pub use server::{Server, ServerOptions};
pub use truth::{CommitmentTruth, InstanceTruth};
