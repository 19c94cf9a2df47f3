//! How long to wait between attempts of one call.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Five attempts in all: 0.3 s, doubled each time and jittered, capped at 20 s.
pub(crate) fn delays() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(300))
        .with_max_delay(Duration::from_secs(20))
        .with_factor(2.0)
        .with_max_times(4)
        .with_jitter()
        .build()
}
