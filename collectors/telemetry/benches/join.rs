//! Joining the telemetry of 100,000 cards to 20,000 instances: one metric of
//! one round, from parsed answers to readings.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench"
)]

use std::{
    collections::{BTreeSet, HashMap},
    hint::black_box,
    sync::Arc,
};

use criterion::{Criterion, criterion_group, criterion_main};
use gpuwatch_collector_telemetry::{
    answer::{Labels, Sample},
    card::{Card, Readings},
    device::{Device, Target},
    family::{FAMILIES, Quantity},
    join::{JoinTable, Node},
};
use gpuwatch_inventory::{Instance, Provider, Signal};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const INSTANCES: usize = 20_000;
const CARDS: usize = 5;
/// Samples of a window of seven minutes at a scrape every thirty seconds.
const SAMPLES: i64 = 14;

fn instance(number: usize) -> Arc<Instance> {
    Arc::new(Instance {
        private_address: format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255).into(),
        private_host: format!(
            "ip-10-{}-{}-{}.ec2.internal",
            number >> 16,
            number >> 8 & 255,
            number & 255
        )
        .into(),
        ..Instance::bare(Provider::Aws, "111122223333", "us-east-1", &format!("i-{number:017x}"))
    })
}

fn node(number: usize) -> Node {
    Node {
        name: format!("node-{number}"),
        provider_id: format!("aws:///us-east-1a/i-{number:017x}"),
        address: String::new(),
        cluster: String::new(),
    }
}

/// A series of dcgm-exporter as Prometheus stores it.
fn labels(number: usize, card: usize) -> Labels {
    let pairs = [
        ("__name__", "DCGM_FI_PROF_GR_ENGINE_ACTIVE".to_owned()),
        ("DCGM_FI_DRIVER_VERSION", "580.95.05".to_owned()),
        ("Hostname", format!("node-{number}")),
        ("UUID", format!("GPU-{number:08x}-0000-0000-0000-{card:012x}")),
        ("device", format!("nvidia{card}")),
        ("gpu", card.to_string()),
        ("modelName", "NVIDIA H100 80GB HBM3".to_owned()),
        ("pci_bus_id", "00000000:53:00.0".to_owned()),
        (
            "instance",
            format!("100.64.{}.{}:9400", number >> 8 & 255, number & 255),
        ),
        ("job", "dcgm-exporter".to_owned()),
        ("namespace", "gpu-operator".to_owned()),
        ("pod", format!("dcgm-exporter-{number}")),
        ("exported_pod", format!("work-{number}-{card}")),
        ("exported_namespace", "ml".to_owned()),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Joins every series and gives how many cards have a reading.
fn join(instances: &[Arc<Instance>], series: &[Labels]) -> usize {
    let table = JoinTable::new(instances, (0..INSTANCES).map(node).collect());
    let id_labels = ["instance_id".to_owned()];
    let mut targets: HashMap<Target, usize> = HashMap::new();
    let mut cards: HashMap<(usize, String), (Card, Readings)> = HashMap::new();
    let family = FAMILIES.first().expect("families");
    for labels in series {
        let (target, device) = (
            Target::of(labels, &id_labels),
            Device::of(labels, family).expect("a card"),
        );
        let index = *targets
            .entry(target)
            .or_insert_with_key(|target| table.join(target).expect("joined").0);
        let (card, readings) = cards.entry((index, device.uuid)).or_default();
        card.held_by(labels);
        let samples = (0..SAMPLES).map(|n| Sample {
            at: 1_780_000_000_000 + n * 30_000,
            value: 0.5,
        });
        readings.add(device.slice, samples, 1.0);
    }
    let mut shown = 0;
    let mut joined = BTreeSet::new();
    for ((index, id), (mut card, readings)) in cards {
        card.take(Quantity::Signal(Signal::GrEngineActive), readings, i64::MIN);
        joined.insert(index);
        shown += usize::from(card.reading(&id, None, i64::MIN).is_some());
    }
    assert_eq!(joined.len(), INSTANCES, "every instance");
    shown
}

fn bench(criterion: &mut Criterion) {
    let instances: Vec<_> = (0..INSTANCES).map(instance).collect();
    let series: Vec<_> = (0..INSTANCES)
        .flat_map(|n| (0..CARDS).map(move |card| labels(n, card)))
        .collect();
    let before = ALLOCATED.current_usage_as_mb();
    ALLOCATED.reset_peak_usage();
    assert_eq!(join(&instances, &series), INSTANCES * CARDS);
    eprintln!(
        "memory of one join beyond its input: {:.0} MB",
        ALLOCATED.peak_usage_as_mb() - before
    );
    let mut group = criterion.benchmark_group("telemetry");
    group.sample_size(10);
    group.bench_function("join 100,000 cards to 20,000 instances", |bencher| {
        bencher.iter(|| black_box(join(&instances, &series)));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
