//! Simulated Google Cloud: Compute Engine, Cloud TPU, the resource manager, and
//! the endpoints that hand out access tokens.
//!
//! Every call is checked as Google checks it: bearer tokens with their expiry
//! and scopes, signed assertions of service accounts, services that are
//! switched off, permissions, page sizes and page tokens.
//!
//! Words of fault rules and of the log of calls: the service is one of
//! `compute`, `tpu`, `resourcemanager`, `oauth2`, `sts`, `iamcredentials` and
//! `metadata`; the operation is the method as Google documents it without the
//! service's name (`instances.aggregatedList`); the account is the project id.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]

mod auth;
mod compute;
mod demo;
mod error;
mod iam;
mod metadata;
mod oauth;
mod page;
mod params;
mod resource_manager;
mod route;
mod service;
mod tpu;
mod types;
mod world;

pub use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
pub use service::Gcp;
pub use types::{MachineType, machine_type};
pub use world::{
    Commitment, CommitmentResource, CommitmentSpec, FutureReservation, FutureReservationSpec, Instance, InstanceSpec,
    ProjectSpec, ProjectState, Provisioning, Region, Reservation, ReservationSpec, ServiceAccountKey, Status, TpuNode,
    TpuSpec, World,
};
