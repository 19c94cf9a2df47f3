//! Simulated Azure: subscriptions, Resource Graph, Compute, Capacity, Billing
//! Benefits, and the token endpoints.
//!
//! Every call is checked as Azure checks it: a bearer token for this cloud's
//! Resource Manager that has not ended, an API version, permissions per
//! subscription, and the parameters of each operation.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]
#![allow(
    clippy::indexing_slicing,
    reason = "only JSON is indexed: a member that is missing reads as null and is made when it is set"
)]

mod auth;
mod benefits;
mod compute;
mod demo;
mod error;
mod graph;
mod kql;
mod page;
mod route;
mod rows;
mod service;
mod sizes;
mod spec;
mod subscriptions;
mod truth;
mod versions;
mod world;

pub use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
pub use service::Azure;
pub use spec::{CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, ScaleSetSpec, ScaleSetVariety};
pub use world::{ACCESS_TOKEN, TENANT, World};
