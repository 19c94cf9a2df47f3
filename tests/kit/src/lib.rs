//! What the tests of all collectors and simulated clouds share: driving a
//! collector, comparing what it found with the truth, the matrix of faults, and
//! the Python that has the vendors' SDKs.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    reason = "everything here is for tests, which stop at the first surprise and say why one is skipped"
)]

mod drive;
mod faults;
mod python;
mod truth;

pub use drive::{collect, collect_in, commitments, everything, instances, inventory_targets, owned, reason, usage};
pub use faults::{expected, for_each_kind};
pub use python::python_with;
pub use truth::{assert_account_names, assert_commitments, assert_instances, gpus};
