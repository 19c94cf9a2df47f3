//! The fleet's part of the page: golden text, and the `prometheus` crate's
//! encoder as oracle.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::{collections::BTreeSet, path::Path};

use gpuwatch::encode::{
    fleet::encode,
    table::{FLEET, INSTANCE_INFO},
};
use gpuwatch_collector_core::Snapshot;
use prometheus::{Encoder as _, TextEncoder};
use proptest::prelude::*;
use support::{
    exposition::{self, Families},
    fleet, oracle,
};

fn page(snapshot: &Snapshot) -> String {
    let mut out = Vec::new();
    encode(snapshot, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

// P54
#[test]
fn the_page_is_the_golden_page() {
    let path = Path::new("tests/golden/page.prom");
    let page = page(&fleet::showcase());
    if std::env::var_os("GPUWATCH_BLESS").is_some() {
        std::fs::write(path, &page).expect("written");
    }
    let golden = std::fs::read_to_string(path).expect("golden page");
    assert!(
        page == golden,
        "names and labels are a public contract; the page is now:\n{page}"
    );
}

#[test]
fn every_declared_family_is_on_the_golden_page_and_no_other() {
    let families = exposition::parse(&page(&fleet::showcase()));
    let found: Vec<&str> = families.keys().map(String::as_str).collect();
    let mut declared: Vec<&str> = FLEET.iter().map(|metric| metric.name).collect();
    declared.sort_unstable();
    assert_eq!(found, declared);
    for metric in FLEET {
        let family = &families[metric.name];
        assert_eq!((&*family.help, &*family.kind), (metric.help, metric.kind.as_str()));
        for (_, labels) in family.samples.keys() {
            let mut declared: Vec<&str> = metric.labels.to_vec();
            declared.sort_unstable();
            assert_eq!(
                labels.keys().map(String::as_str).collect::<Vec<_>>(),
                declared,
                "{}",
                metric.name
            );
        }
    }
}

// P55
#[test]
fn no_series_but_information_has_more_than_eight_labels() {
    let snapshot = fleet::of_generation(3, 200);
    let families = exposition::parse(&page(&snapshot));
    for (name, family) in &families {
        for (_, labels) in family.samples.keys() {
            assert!(labels.len() <= 8 || name == INSTANCE_INFO.name, "{name}");
        }
    }
    assert_eq!(families["gpuwatch_instance_gpus"].samples.len(), 200);
    assert_eq!(families["gpuwatch_instance_info"].samples.len(), 200);
}

#[test]
fn what_is_unknown_is_absent_and_never_zero() {
    let families = exposition::parse(&page(&fleet::showcase()));
    for metric in [
        "gpuwatch_instance_gpus",
        "gpuwatch_instance_gpu_memory_bytes",
        "gpuwatch_instance_launch_timestamp_seconds",
    ] {
        assert!(
            !exposition::label_values(&families[metric], "instance_id").contains("i-0cc"),
            "{metric}"
        );
    }
    assert!(exposition::label_values(&families["gpuwatch_instance_info"], "instance_id").contains("i-0cc"));
    assert!(!exposition::label_values(&families["gpuwatch_commitment_gpus"], "commitment_id").contains("sp-0bb"));
    let never_run = &families["gpuwatch_task_up"].samples;
    assert!(never_run.keys().all(|(_, labels)| labels["region"] != "eu-west-1"));
}

#[test]
fn an_inventory_that_is_not_live_says_nothing_about_unknown_accelerators() {
    let mut snapshot = fleet::showcase();
    snapshot.instances.clear();
    for task in &mut snapshot.tasks {
        task.expired = &*task.region == "us-west-2";
    }
    let families = exposition::parse(&page(&snapshot));
    let regions = exposition::label_values(&families["gpuwatch_unknown_accelerators"], "region");
    assert_eq!(
        regions,
        BTreeSet::from(["us-east-1".to_owned(), "cn-hangzhou".to_owned()])
    );
}

#[test]
fn an_empty_snapshot_is_a_valid_page() {
    let families = exposition::parse(&page(&Snapshot::empty(fleet::at(fleet::NOON))));
    assert_eq!(
        families.keys().collect::<Vec<_>>(),
        ["gpuwatch_snapshot_timestamp_seconds"]
    );
}

#[test]
fn equal_snapshots_give_equal_pages() {
    assert_eq!(page(&fleet::of_generation(1, 50)), page(&fleet::of_generation(1, 50)));
}

/// The same snapshot through the library's types and encoder.
fn library_page(snapshot: &Snapshot) -> Families {
    let mut out = Vec::new();
    TextEncoder::new()
        .encode(&oracle::families(snapshot), &mut out)
        .expect("encoded");
    exposition::parse(&String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn the_showcase_says_what_the_librarys_encoder_says() {
    let snapshot = fleet::showcase();
    assert_eq!(exposition::parse(&page(&snapshot)), library_page(&snapshot));
}

/// Any text; without NUL, which the writer replaces and the library does not.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9-]{0,12}",
        any::<String>().prop_map(|text| text.replace('\0', "")),
        Just("back\\slash \"quote\"\nnew line 显存".to_owned()),
    ]
}

prop_compose! {
    fn any_instance()(
        provider in 0..5_usize,
        texts in proptest::array::uniform12(any_text()),
        count in proptest::option::of(0.0..1e6_f64),
        memory in proptest::option::of(0..1_u64 << 30),
        launched in proptest::option::of(0..4_000_000_000_000_i64),
        expires in proptest::option::of(0..4_000_000_000_000_i64),
        in_catalog in any::<bool>(),
    ) -> gpuwatch_inventory::Instance {
        let [account, region, id, account_name, zone, name, kind, detail, model, architecture, owner, cluster] = texts;
        let mut instance = fleet::instance(gpuwatch_inventory::Provider::ALL[provider], &account, &region, &id);
        let millisecond = |t: i64| jiff::Timestamp::from_millisecond(t).expect("in range");
        instance.account_name = account_name.into();
        instance.zone = zone.into();
        instance.name = name.into();
        instance.instance_type = kind.into();
        instance.billing.detail = detail.into();
        instance.accelerators.model = model.into();
        instance.accelerators.architecture = architecture.into();
        instance.accelerators.in_catalog = in_catalog;
        instance.accelerators.count = count.and_then(gpuwatch_inventory::GpuCount::new);
        instance.accelerators.memory_mib = memory;
        instance.owner = owner.into();
        instance.cluster = cluster.into();
        instance.launched = launched.map(millisecond);
        instance.expires = expires.map(millisecond);
        instance.auto_renew = expires.map(|end| end % 2 == 0);
        instance
    }
}

proptest! {
    #[test]
    fn the_page_says_what_the_librarys_encoder_says(
        instances in proptest::collection::vec(any_instance(), 0..12),
        failing in any::<bool>(),
        expired in any::<bool>(),
    ) {
        let mut snapshot = Snapshot { generation: 1, ..Snapshot::empty(fleet::at(fleet::NOON)) };
        snapshot.instances = instances.into_iter().map(std::sync::Arc::new).collect();
        // As the scheduler does.
        snapshot.instances.sort_by(|a, b| a.key().cmp(&b.key()));
        snapshot.instances.dedup_by(|b, a| a.key() == b.key());
        let showcase = fleet::showcase();
        snapshot.tasks = showcase.tasks;
        snapshot.commitments = showcase.commitments;
        snapshot.tasks[0].up = Some(!failing);
        snapshot.tasks[1].expired = expired;
        prop_assert_eq!(exposition::parse(&page(&snapshot)), library_page(&snapshot));
    }
}
