//! The AWS collector: GPU instances and what was bought ahead for them, over
//! many accounts, regions and partitions, with the official SDK.
//!
//! What runs where: [`AwsCollector`] answers the scheduler; `discover` finds
//! accounts and regions; `session` holds one set of credentials per account;
//! `calls` is the only way to a cloud call; `inventory`, `commitments` and
//! `savings_plans` fetch one part each; `allocate` and `coverage` decide over
//! the whole fleet, without any call.

mod allocate;
mod billing;
mod calls;
mod collector;
mod commitments;
mod complete;
mod coverage;
mod discover;
mod errors;
mod facts;
mod in_use;
mod inventory;
mod options;
mod partition;
mod platform;
mod record;
mod region;
mod savings_plans;
mod session;
mod tags;
mod text;

pub use collector::AwsCollector;
pub use options::{AwsOptions, TypeFilter};
pub use partition::Partition;
