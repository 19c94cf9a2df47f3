//! The Google Cloud collector: virtual machines with accelerators, TPU nodes,
//! and the reservations and committed use discounts bought for them, over
//! projects, folders or a whole organization.
//!
//! What runs where: [`GcpCollector`] answers the scheduler; `discover` finds
//! projects and regions; `credentials` gives the headers that prove who calls;
//! `api` is the only way to a cloud call, and `errors` says what went wrong;
//! `instances`, `tpu`, `reservations` and `commitments` fetch one part each;
//! `allocate` decides over the whole fleet, without any call.

mod accelerators;
mod allocate;
mod api;
mod billing;
mod calls;
mod collector;
mod commitments;
mod cover;
mod credentials;
mod discover;
mod errors;
mod future_reservations;
mod impersonate;
mod instances;
mod labels;
mod listing;
mod machine_types;
mod options;
mod place;
mod projects;
mod record;
mod reservations;
#[cfg(test)]
mod samples;
mod tpu;
mod value;

pub use collector::GcpCollector;
pub use options::GcpOptions;
