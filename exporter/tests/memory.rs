//! Memory stays bounded over many generations. Alone in its file, so that no
//! other test shares the process.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::sync::Arc;

use gpuwatch::{
    encode::fleet::encode,
    metrics::OwnMetrics,
    page::{FleetPart, Page},
};
use support::fleet;

/// Resident memory of this process in bytes, counted page by page: the figure
/// in `status` is kept per thread and lags by some hundred kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .expect("resident memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

// P50
#[test]
#[cfg(target_os = "linux")]
fn a_thousand_generations_with_churn_need_no_more_memory_than_a_hundred() {
    const INSTANCES: usize = 100;
    let metrics = OwnMetrics::new().expect("metrics");
    let mut page = None;
    // The highest of a hundred generations, because between two of them the
    // allocator gives memory back or does not.
    let (mut after_hundred, mut after_thousand) = (0, 0);
    for generation in 1..=1000_u64 {
        let mut snapshot = fleet::of_generation(generation, INSTANCES);
        // A tenth of the instances is new in each generation.
        for instance in snapshot.instances.iter_mut().step_by(10) {
            Arc::make_mut(instance).id = format!("i-{generation}-{}", instance.id).into();
        }
        let mut text = Vec::new();
        encode(&snapshot, &mut text);
        let part = FleetPart::new(generation, text, 0).expect("compressed");
        metrics.page_encoded(&part, 0.001);
        metrics.http_request("/metrics", 200);
        page = Some(Page::new(Arc::new(part), metrics.text().expect("text")).expect("compressed"));
        match generation {
            100..200 => after_hundred = resident().max(after_hundred),
            900.. => after_thousand = resident().max(after_thousand),
            _ => {}
        }
    }
    assert!(page.is_some_and(|page| page.fleet().generation == 1000));
    assert!(
        after_thousand <= after_hundred + after_hundred / 10,
        "resident memory grew from {after_hundred} to {after_thousand} bytes"
    );
}
