//! Memory stays bounded over many generations. Alone in its file, so that no
//! other test shares the process.

#![cfg(target_os = "linux")]
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
use peak_alloc::PeakAlloc;
use support::fleet;

/// Counts what is in use, which needs no guess at what the allocator keeps.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Memory in use, and memory that the system counts for this process, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    used: usize,
    resident: usize,
}

impl Memory {
    fn now() -> Self {
        // Counted page by page: the figure in `status` is kept per thread and
        // lags by some hundred kilobytes.
        let status = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Rss:"))
            .expect("resident memory");
        let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        Self {
            used: HEAP.current_usage(),
            resident: kib * 1024,
        }
    }

    fn highest(self, other: Self) -> Self {
        Self {
            used: self.used.max(other.used),
            resident: self.resident.max(other.resident),
        }
    }
}

// P50
#[test]
fn a_thousand_generations_with_churn_need_no_more_memory_than_a_hundred() {
    const INSTANCES: usize = 100;
    let metrics = OwnMetrics::new().expect("metrics");
    let mut page = None;
    let (mut after_hundred, mut after_thousand) = (Memory::default(), Memory::default());
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
            100..200 => after_hundred = after_hundred.highest(Memory::now()),
            900.. => after_thousand = after_thousand.highest(Memory::now()),
            _ => {}
        }
    }
    assert!(page.is_some_and(|page| page.fleet().generation == 1000));
    let (early, late) = (after_hundred, after_thousand);
    assert!(late.used <= early.used + early.used / 50, "{early:?}, then {late:?}");
    // The allocator keeps some hundred kilobytes more or less of so little, as
    // it happens to place things; what it loses for good would be more.
    assert!(
        late.resident <= early.resident + early.resident / 4,
        "{early:?}, then {late:?}"
    );
}
