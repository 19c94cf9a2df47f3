//! Encoding a page of 100,000 instances: the own writer against the
//! `prometheus` crate's text encoder over the same series.
#![allow(missing_docs, reason = "a bench")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "made-up data"
)]

#[path = "../tests/support/fleet.rs"]
mod fleet;
#[path = "../tests/support/oracle.rs"]
mod oracle;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gpuwatch::{
    encode::fleet::{encode, estimate},
    page::FleetPart,
};
use prometheus::{Encoder as _, TextEncoder};

const INSTANCES: usize = 100_000;

fn page(criterion: &mut Criterion) {
    let snapshot = fleet::of_generation(1, INSTANCES);
    let mut text = Vec::with_capacity(estimate(&snapshot));
    encode(&snapshot, &mut text);

    let mut group = criterion.benchmark_group("page of 100000 instances");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(20))
        .throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("own writer", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::with_capacity(text.len());
            encode(&snapshot, &mut out);
            out
        });
    });
    group.bench_function("gzip of the text", |bencher| {
        bencher.iter_batched(
            || text.clone(),
            |text| FleetPart::new(1, text, INSTANCES * 120).expect("compressed"),
            criterion::BatchSize::PerIteration,
        );
    });
    // Only the encoding: the families are built beforehand.
    let families = oracle::families(&snapshot);
    group.bench_function("prometheus crate, TextEncoder alone", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::with_capacity(text.len());
            TextEncoder::new().encode(&families, &mut out).expect("encoded");
            out
        });
    });
    drop(families);
    group.bench_function("prometheus crate, families and TextEncoder", |bencher| {
        bencher.iter(|| {
            let mut out = Vec::with_capacity(text.len());
            TextEncoder::new()
                .encode(&oracle::families(&snapshot), &mut out)
                .expect("encoded");
            out
        });
    });
    group.finish();
}

criterion_group!(benches, page);
criterion_main!(benches);
