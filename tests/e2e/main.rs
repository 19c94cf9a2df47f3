//! End to end: the real binary against programs that nobody here wrote.
//!
//! Needs Prometheus, promtool, and a Python with moto and the clouds' SDKs. Where one is
//! missing the test says so and passes, unless `GPUWATCH_REQUIRE_TOOLS=1`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::print_stderr,
    reason = "tests"
)]

mod conformance;
mod demo;
mod exposition;
mod moto;
mod prometheus;
mod support;
mod telemetry;
