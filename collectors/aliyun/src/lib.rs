//! The Alibaba Cloud (Aliyun) collector: ECS instances with accelerators, and
//! the reserved instances, private pools and savings plans bought for them.
//!
//! What runs where: [`AliyunCollector`] answers the scheduler; `discover` finds
//! accounts and regions; `credentials` and `account` give keys that work;
//! `client` sends calls that `sign` has signed, to the place that `hosts`
//! names; `errors` says what went wrong; `instances`, `commitments` and
//! `savings_plans` fetch one part each, with details from `shapes`, `renewal`
//! and, by way of `bss`, from the bill (`coverage`); `allocate` decides over
//! the whole fleet, without any call.

mod account;
mod allocate;
mod bss;
mod client;
mod collector;
mod commitments;
mod coverage;
mod credentials;
mod discover;
mod errors;
mod hosts;
mod instances;
mod loose;
mod numbered;
mod options;
mod record;
mod renewal;
mod savings_plans;
mod shapes;
mod sign;
mod tags;
#[cfg(test)]
mod testing;

pub use collector::AliyunCollector;
pub use options::{AliyunOptions, Site};
