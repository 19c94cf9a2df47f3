//! Simulated Tencent Cloud: CVM, regions, STS, TKE, savings plans, and the
//! metadata service.
//!
//! Every call is checked as Tencent Cloud checks it: `TC3-HMAC-SHA256` over the
//! bytes that came, the service that belongs to the action, the age of the
//! signature, session tokens and their end, regions, permissions and each
//! operation's parameters. Failures come with status 200.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]
#![allow(
    clippy::indexing_slicing,
    reason = "only JSON is indexed: a member that is missing reads as null and is made when it is set"
)]

mod actions;
mod cvm;
mod demo;
mod error;
mod filters;
mod page;
mod service;
mod sign;
mod sts;
mod svp;
mod tke;
mod truth;
mod world;

pub use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
pub use service::Tencent;
pub use world::{
    ContainerSpec, CouponSpec, HostSpec, MachineSpec, NodeSpec, OWNER, PlanSpec, ROLE, ReservedSpec, SECRET_ID,
    SECRET_KEY, Site, World, gpus_of,
};
