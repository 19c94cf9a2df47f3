//! Simulated AWS: EC2, STS, Organizations and Savings Plans.
//!
//! Every call is checked as AWS checks it: Signature Version 4 (the account
//! comes from the access key, the region from the credential scope), session
//! tokens and their expiry, enabled regions, and each operation's parameters.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated cloud lives by the wall clock, as the real ones do"
)]

mod demo;
mod ec2;
mod error;
mod json;
mod organizations;
mod page;
mod params;
mod savings_plans;
mod service;
mod sigv4;
mod sts;
mod types;
mod wildcard;
mod world;
mod xml;

pub use types::{DeviceFacts, InstanceTypeFacts, instance_type};
pub use world::{
    ACCESS_KEY_ID, Account, AccountSpec, AccountState, CapacityBlock, CapacityBlockSpec, CapacityReservation,
    CapacityReservationSpec, CommitmentTruth, Instance, InstanceSpec, InstanceState, InstanceTruth, Keys, Lifecycle,
    OptIn, Partition, Platform, Region, ReservationScope, ReservedInstances, ReservedInstancesSpec, SECRET_ACCESS_KEY,
    SavingsPlan, SavingsPlanRate, SavingsPlanSpec, World,
};

pub use service::Aws;

pub(crate) use service::Service;
