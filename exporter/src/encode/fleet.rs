//! The fleet's part of the page: everything that comes from a snapshot.

use std::{collections::BTreeMap, sync::Arc};

use gpuwatch_collector_core::{Dataset, Reason, Snapshot, TaskStatus};
use gpuwatch_inventory::{Commitment, Instance};

use super::{
    table,
    text::{Family, Page, Value, push_labels},
    usage,
};

const MIB: u64 = 1024 * 1024;

/// Bytes of text that one instance usually takes, to size the first page.
const BYTES_PER_INSTANCE: usize = 1000;

/// About how long the page of a snapshot is, in bytes.
#[must_use]
pub fn estimate(snapshot: &Snapshot) -> usize {
    let cards: usize = snapshot.usage.iter().map(|usage| usage.gpus.len()).sum();
    (snapshot.instances.len() + snapshot.tasks.len() + cards)
        .saturating_mul(BYTES_PER_INSTANCE)
        .saturating_add(16 * 1024)
}

/// Appends the snapshot's families to `out`. The order of families, series
/// and labels is the same for equal snapshots.
pub fn encode(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut page = Page::new(out);
    instances(&mut page, &snapshot.instances);
    usage::encode(&mut page, snapshot);
    commitments(&mut page, &snapshot.commitments);
    page.family(&table::SAVINGS_PLAN_COVERAGE, |family| {
        for estimate in &snapshot.coverage {
            family.series(
                &[estimate.provider.as_str(), &estimate.account],
                Value::Float(estimate.ratio),
            );
        }
    });
    unknown_accelerators(&mut page, snapshot);
    tasks(&mut page, &snapshot.tasks);
    page.family(&table::SKIPPED_RECORDS, |family| {
        for skipped in &snapshot.skipped {
            let labels = [
                skipped.provider.as_str(),
                &skipped.account,
                &skipped.region,
                skipped.reason,
            ];
            family.series(&labels, Value::Whole(skipped.count));
        }
    });
    page.family(&table::SNAPSHOT_TIMESTAMP, |family| {
        family.series(&[], snapshot.at.into());
    });
}

/// What the value families need of the instances, in their order, so that each
/// instance is visited once: following 100,000 records all over memory costs
/// more than writing their text.
struct Columns {
    /// Identity labels, escaped once and written into each family from here.
    identities: Vec<u8>,
    ends: Vec<usize>,
    values: Vec<[Option<Value>; 5]>,
}

impl Columns {
    fn with_capacity(instances: usize) -> Self {
        Self {
            identities: Vec::with_capacity(instances * 96),
            ends: Vec::with_capacity(instances),
            values: Vec::with_capacity(instances),
        }
    }

    /// Adds an instance; gives its identity labels.
    fn add(&mut self, instance: &Instance) -> &[u8] {
        let start = self.identities.len();
        let labels = [
            instance.provider.as_str(),
            &instance.account,
            &instance.region,
            &instance.id,
        ];
        push_labels(&mut self.identities, table::IDENTITY, &labels);
        self.ends.push(self.identities.len());
        // In the order of VALUE_FAMILIES.
        self.values.push([
            instance.accelerators.count.map(|count| Value::Float(count.get())),
            gpu_memory_bytes(instance).map(Value::Whole),
            instance.launched.map(Value::from),
            instance.expires.map(Value::from),
            instance.auto_renew.map(Value::from),
        ]);
        self.identities.get(start..).unwrap_or_default()
    }

    fn rows(&self) -> impl Iterator<Item = (&[u8], &[Option<Value>; 5])> {
        let mut start = 0;
        self.ends.iter().zip(&self.values).map(move |(&end, values)| {
            let block = self.identities.get(start..end).unwrap_or_default();
            start = end;
            (block, values)
        })
    }
}

const VALUE_FAMILIES: [&table::Metric; 5] = [
    &table::INSTANCE_GPUS,
    &table::INSTANCE_GPU_MEMORY,
    &table::INSTANCE_LAUNCH,
    &table::INSTANCE_EXPIRY,
    &table::INSTANCE_AUTO_RENEW,
];

/// Instances whose memory is fetched together.
const BATCH: usize = 32;

/// Reads a little of every record of a batch. Records lie all over memory;
/// reads that do not depend on each other are waited for together, while
/// writing the text would wait for one after the other. Encoding 100,000
/// instances is a third faster for it.
fn fetch(batch: &[Arc<Instance>]) {
    let first = |text: &str| text.as_bytes().first().copied().unwrap_or_default();
    let read = batch.iter().fold(0_u8, |all, instance| {
        all ^ first(&instance.id)
            ^ first(&instance.name)
            ^ instance.kind as u8
            ^ u8::from(instance.launched.is_some())
            ^ u8::from(instance.accelerators.memory_mib.is_some())
            ^ u8::from(instance.cluster.is_empty())
    });
    std::hint::black_box(read);
}

fn instances(page: &mut Page<'_>, instances: &[Arc<Instance>]) {
    let mut columns = Columns::with_capacity(instances.len());
    page.family(&table::INSTANCE_INFO, |family| {
        for batch in instances.chunks(BATCH) {
            fetch(batch);
            for instance in batch {
                let block = columns.add(instance);
                let [_, _, _, _, facts @ ..] = info_values(instance);
                family.series_in(block, &facts, Value::ONE);
            }
        }
    });
    for (index, metric) in VALUE_FAMILIES.into_iter().enumerate() {
        page.family(metric, |family| {
            for (block, values) in columns.rows() {
                if let Some(value) = values.get(index).copied().flatten() {
                    family.series_in(block, &[], value);
                }
            }
        });
    }
}

/// The values of the information series' labels, in their order.
#[must_use]
pub fn info_values(instance: &Instance) -> [&str; 17] {
    let accelerators = &instance.accelerators;
    [
        instance.provider.as_str(),
        &instance.account,
        &instance.region,
        &instance.id,
        &instance.account_name,
        &instance.zone,
        &instance.name,
        &instance.instance_type,
        instance.kind.as_str(),
        instance.state.as_str(),
        instance.billing.mode.as_str(),
        &instance.billing.detail,
        accelerators.vendor.as_ref().map_or("", |vendor| vendor.as_str()),
        &accelerators.model,
        &accelerators.architecture,
        &instance.owner,
        &instance.cluster,
    ]
}

/// Memory of all accelerators of the instance together, in bytes.
#[must_use]
pub fn gpu_memory_bytes(instance: &Instance) -> Option<u64> {
    instance.accelerators.memory_mib?.checked_mul(MIB)
}

fn commitments(page: &mut Page<'_>, commitments: &[Arc<Commitment>]) {
    let mut value = |metric, value: fn(&Commitment) -> Option<Value>| {
        page.family(metric, |family: &mut Family<'_>| {
            for commitment in commitments {
                let labels = [
                    commitment.provider.as_str(),
                    &commitment.account,
                    &commitment.region,
                    &commitment.id,
                    commitment.kind.as_str(),
                    &commitment.instance_type,
                ];
                if let Some(value) = value(commitment) {
                    family.series(&labels, value);
                }
            }
        });
    };
    value(&table::COMMITMENT_INFO, |_| Some(Value::ONE));
    value(&table::COMMITMENT_GPUS, |c| {
        c.gpus().map(|gpus| Value::Float(gpus.get()))
    });
    value(&table::COMMITMENT_USED_GPUS, |c| {
        c.used_gpus().map(|gpus| Value::Float(gpus.get()))
    });
    value(&table::COMMITMENT_EXPIRY, |c| c.expires.map(Value::from));
}

/// Counts per scope. A scope whose inventory is live and has no unknown
/// accelerator says 0, so that the first one shows as a change; a scope whose
/// inventory is not known says nothing.
fn unknown_accelerators(page: &mut Page<'_>, snapshot: &Snapshot) {
    let mut counts: BTreeMap<(&str, &str, &str), u64> = snapshot
        .tasks
        .iter()
        .filter(|task| task.dataset == Dataset::Inventory && task.last_success.is_some() && !task.expired)
        .map(|task| ((task.provider.as_str(), &*task.account, &*task.region), 0))
        .collect();
    for instance in &snapshot.instances {
        let unknown = !instance.accelerators.in_catalog || instance.accelerators.model.is_empty();
        let scope = (instance.provider.as_str(), &*instance.account, &*instance.region);
        *counts.entry(scope).or_default() += u64::from(unknown);
    }
    page.family(&table::UNKNOWN_ACCELERATORS, |family| {
        for ((provider, account, region), count) in counts {
            family.series(&[provider, account, region], Value::Whole(count));
        }
    });
}

fn tasks(page: &mut Page<'_>, tasks: &[TaskStatus]) {
    let mut value = |metric, value: fn(&TaskStatus) -> Option<Value>| {
        page.family(metric, |family: &mut Family<'_>| {
            for task in tasks {
                if let Some(value) = value(task) {
                    family.series(&task_labels(task), value);
                }
            }
        });
    };
    value(&table::TASK_UP, |task| task.up.map(Value::from));
    value(&table::TASK_LAST_SUCCESS, |task| task.last_success.map(Value::from));
    value(&table::TASK_DURATION, |task| {
        task.last_duration.map(|duration| Value::Float(duration.as_secs_f64()))
    });
    page.family(&table::TASK_ERRORS, |family| {
        for task in tasks {
            let [provider, account, region, dataset] = task_labels(task);
            // Every reason from the start: a counter that appears with its
            // first failure would hide that failure from `increase()`.
            for reason in Reason::ALL {
                let count = task.errors.get(reason).copied().unwrap_or(0);
                family.series(
                    &[provider, account, region, dataset, reason.as_str()],
                    Value::Whole(count),
                );
            }
        }
    });
}

fn task_labels(task: &TaskStatus) -> [&str; 4] {
    [
        task.provider.as_str(),
        &task.account,
        &task.region,
        task.dataset.as_str(),
    ]
}
