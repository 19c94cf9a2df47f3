//! The Tencent Cloud collector: CVM instances with GPUs, GPU nodes of TKE that
//! are no CVM instances, and what was bought ahead for them, over accounts and
//! regions of the China or the international site.
//!
//! What runs where: [`TencentCollector`] answers the scheduler; `discover`
//! finds accounts and regions; `chain` finds the base credentials and `access`
//! holds those of each account; `api` is the only way to a cloud call, `sign`
//! signs it and `errors` says what went wrong; `pages` reads listings;
//! `instances`, `clusters`, `containers`, `commitments` and `savings_plans`
//! fetch one part each; `allocate` decides over the whole fleet, without any
//! call.

mod access;
mod allocate;
mod api;
mod billing;
mod chain;
mod clusters;
mod collector;
mod commitments;
mod containers;
mod credentials;
mod discover;
mod environment;
mod errors;
mod facts;
mod instances;
mod loose;
mod machine;
mod options;
mod ownership;
mod pages;
mod record;
mod savings_plans;
mod sign;
mod site;
mod time;

pub use collector::TencentCollector;
pub use options::TencentOptions;
pub use site::Site;
