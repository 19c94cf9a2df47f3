//! The metrics page: what metrics exist ([`table`]), how they are written in
//! the Prometheus text format ([`text`]), and the fleet's part of the page
//! ([`fleet`]).
//!
//! The fleet has its own writer because a page of 100,000 instances through a
//! metrics library costs some twenty times the processor time and several
//! times the memory. The library stays the oracle of the tests.

pub mod docs;
pub mod fleet;
pub mod table;
pub mod text;
mod usage;
