//! The `gpuwatch` program: command line, serve loop, metrics page and HTTP
//! server. A library so that tests and benches reach its parts.
//!
//! Life of a scrape: [`publisher`] turns each snapshot of the scheduler into
//! a [`page`], once; [`http`] answers every scrape from that memory.

pub mod cli;
pub mod demo;
pub mod encode;
pub mod filter;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod page;
pub mod publisher;
pub mod registry;
pub mod serve;
