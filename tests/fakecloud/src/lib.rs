//! Simulated clouds on loopback, speaking the real wire formats.
//!
//! Tests run the real collectors against it, and `gpuwatch demo` shows a live
//! fleet without an account anywhere. It checks what the real services check
//! (signatures, parameters, paging tokens), so that a client that is wrong
//! fails here too, and it injects the faults that real services show.
//!
//! [`FakeCloud`] is one HTTP server for all clouds. Each cloud is one module
//! that implements the private `Cloud` trait; server, [`Faults`], call log,
//! seeded randomness and the make-up of the demo fleet are shared.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]

pub mod aws;

mod calls;
mod cloud;
mod connection;
mod faults;
mod fleet;
mod random;
mod server;

pub use calls::{CallRecord, Outcome};
pub use faults::{FaultId, FaultKind, FaultRule, Faults};
pub use server::{FakeCloud, Options};
