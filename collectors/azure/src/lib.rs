//! The Azure collector: virtual machines and scale-set members with
//! accelerators, and the reservations, capacity reservations and savings plans
//! bought for them.
//!
//! What runs where: [`AzureCollector`] answers the scheduler; `discover` finds
//! subscriptions and regions; `environment` keeps the hosts of one of Azure's
//! clouds together; `credentials` gives tokens; `arm` is the only way to a
//! call, and `errors` says what went wrong; `fleet` lists machines, through
//! `graph` or `compute`, and `vm` reads them; `capacity` and `benefits` list
//! what was bought; `allocate` decides over the whole fleet, without any call.

mod allocate;
mod arm;
mod benefits;
mod capacity;
mod collector;
mod compute;
mod credentials;
mod discover;
mod environment;
mod errors;
mod fleet;
mod graph;
mod options;
mod sizes;
mod tags;
mod vm;

pub use collector::AzureCollector;
pub use options::{AzureCloud, AzureOptions};
