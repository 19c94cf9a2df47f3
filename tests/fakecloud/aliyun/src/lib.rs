//! Simulated Alibaba Cloud (Aliyun): ECS, STS, BSS and the metadata service.
//!
//! Every call is checked as the real service checks it: the V3 signature
//! (`ACS3-HMAC-SHA256`) or the older `HMAC-SHA1` one, the clock, the nonce,
//! session tokens and their expiry, visible regions, RAM permissions and each
//! action's parameters.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]

mod bss;
mod demo;
mod ecs;
mod error;
mod metadata;
mod page;
mod params;
mod request;
mod rows;
mod service;
mod sign;
mod sts;
mod types;
mod world;

pub use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
pub use service::Aliyun;
pub use types::{InstanceTypeFacts, instance_type};
pub use world::{
    ACCESS_KEY_ID, ACCESS_KEY_SECRET, Account, AccountSpec, Charge, Instance, InstanceSpec, Keys, Pool, PoolKind,
    PoolSpec, RegionAccess, Renewal, ReservedInstance, ReservedInstanceSpec, SavingsPlan, SavingsPlanSpec, Site,
    Status, StoppedMode, World,
};
