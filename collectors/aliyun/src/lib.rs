//! The Alibaba Cloud (Aliyun) collector: ECS instances with accelerators, and
//! the reserved instances, private pools and savings plans bought for them.
//!
//! What runs where: [`AliyunCollector`] answers the scheduler; `discover` finds
//! accounts and regions; `credentials` and `account` give keys that work;
//! `client` sends calls that `sign` has signed, to the place that `hosts`
//! names; `errors` says what went wrong; `instances`, `commitments` and
//! `savings_plans` fetch one part each; `allocate` decides over the whole
//! fleet, without any call.

mod account;
mod allocate;
mod client;
mod collector;
mod commitments;
mod credentials;
mod discover;
mod errors;
mod hosts;
mod instances;
mod loose;
mod numbered;
mod options;
mod record;
mod savings_plans;
mod shapes;
mod sign;
mod tags;

pub use collector::AliyunCollector;
pub use options::{AliyunOptions, Site};
