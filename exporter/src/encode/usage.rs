//! Use of accelerators and machines, and the state of telemetry servers.

use std::sync::Arc;

use gpuwatch_collector_core::{Snapshot, TelemetryStatus};
use gpuwatch_inventory::{GpuError, GpuUsage, HostUsage, Instance, InstanceUsage, State};

use super::{
    table::{self, Metric},
    text::{Family, Page, Value, push_labels},
};

/// Writes everything about use.
pub(super) fn encode(page: &mut Page<'_>, snapshot: &Snapshot) {
    monitored(page, &snapshot.instances, &snapshot.usage);
    hosts(page, &snapshot.usage);
    cards(page, &snapshot.usage);
    errors(page, &snapshot.usage);
    servers(page, &snapshot.telemetry);
}

fn identity(usage: &InstanceUsage) -> [&str; 4] {
    [usage.provider.as_str(), &usage.account, &usage.region, &usage.id]
}

/// Both lists are sorted by identity.
fn monitored(page: &mut Page<'_>, instances: &[Arc<Instance>], usage: &[Arc<InstanceUsage>]) {
    page.family(&table::INSTANCE_MONITORED_GPUS, |family| {
        let mut usage = usage.iter().peekable();
        for instance in instances.iter().filter(|instance| instance.state == State::Running) {
            while usage.next_if(|usage| usage.key() < instance.key()).is_some() {}
            let measured = usage.peek().filter(|usage| usage.key() == instance.key());
            let labels = [
                instance.provider.as_str(),
                &instance.account,
                &instance.region,
                &instance.id,
            ];
            family.series(
                &labels,
                measured.map_or(Value::Whole(0), |usage| measured_cards(instance, usage)),
            );
        }
    });
}

fn measured_cards(instance: &Instance, usage: &InstanceUsage) -> Value {
    let mut measured = usage.gpus.iter().filter(|gpu| !gpu.activity.is_empty());
    let average_of_all = measured.clone().any(|gpu| &*gpu.gpu == GpuUsage::ALL_CARDS);
    match instance.accelerators.count {
        Some(count) if average_of_all => Value::Float(count.get()),
        // A part of a card is measured as one card.
        Some(count) if count.get() < 1.0 && measured.next().is_some() => Value::Float(count.get()),
        _ => Value::Whole(measured.count() as u64),
    }
}

/// One value of a machine.
type OfHost = fn(&HostUsage) -> Option<f64>;

fn hosts(page: &mut Page<'_>, usage: &[Arc<InstanceUsage>]) {
    let families: [(&Metric, OfHost); 3] = [
        (&table::INSTANCE_CPU, |host| host.cpu),
        (&table::INSTANCE_MEMORY, |host| host.memory_used),
        (&table::INSTANCE_NETWORK, |host| host.network_bytes_per_second),
    ];
    for (metric, value) in families {
        page.family(metric, |family| {
            for usage in usage {
                if let Some(value) = value(&usage.host) {
                    family.series(&identity(usage), Value::Float(value));
                }
            }
        });
    }
}

/// One value of a card.
type OfCard = fn(&GpuUsage) -> Option<Value>;

fn cards(page: &mut Page<'_>, usage: &[Arc<InstanceUsage>]) {
    let mut blocks = Blocks::default();
    for usage in usage {
        for gpu in &usage.gpus {
            blocks.add(usage, gpu);
        }
    }
    page.family(&table::GPU_UTILIZATION, |family| {
        for (block, gpu) in blocks.rows() {
            for (signal, ratio) in gpu.activity.iter() {
                family.series_in(block, &[signal.as_str()], Value::Float(ratio));
            }
        }
    });
    let families: [(&Metric, OfCard); 6] = [
        (&table::GPU_MEMORY_USED, |gpu| gpu.memory_used.map(Value::Float)),
        (&table::GPU_TENSOR_ACTIVE, |gpu| gpu.tensor_active.map(Value::Float)),
        (&table::GPU_DRAM_ACTIVE, |gpu| gpu.dram_active.map(Value::Float)),
        (&table::GPU_VIDEO_ACTIVE, |gpu| gpu.video_active.map(Value::Float)),
        (&table::GPU_POWER, |gpu| gpu.power_watts.map(Value::Float)),
        (&table::GPU_TELEMETRY_TIMESTAMP, |gpu| Some(gpu.at.into())),
    ];
    for (metric, value) in families {
        page.family(metric, |family| {
            for (block, gpu) in blocks.rows() {
                if let Some(value) = value(gpu) {
                    family.series_in(block, &[], value);
                }
            }
        });
    }
}

/// The labels of every card, escaped once.
#[derive(Default)]
struct Blocks<'a> {
    text: Vec<u8>,
    cards: Vec<(usize, &'a GpuUsage)>,
}

impl<'a> Blocks<'a> {
    fn add(&mut self, usage: &InstanceUsage, gpu: &'a GpuUsage) {
        let [provider, account, region, id] = identity(usage);
        push_labels(
            &mut self.text,
            table::GPU_POWER.labels,
            &[provider, account, region, id, &gpu.gpu],
        );
        self.cards.push((self.text.len(), gpu));
    }

    fn rows(&self) -> impl Iterator<Item = (&[u8], &'a GpuUsage)> {
        let mut start = 0;
        self.cards.iter().map(move |(end, gpu)| {
            let block = self.text.get(start..*end).unwrap_or_default();
            start = *end;
            (block, *gpu)
        })
    }
}

/// One value of an error.
type OfError = fn(&GpuError) -> Option<Value>;

fn errors(page: &mut Page<'_>, usage: &[Arc<InstanceUsage>]) {
    let families: [(&Metric, OfError); 3] = [
        (&table::GPU_ERRORS, |error| Some(Value::Whole(error.count))),
        (&table::GPU_RECENT_ERRORS, |error| {
            (error.recent > 0).then_some(Value::Whole(error.recent))
        }),
        (&table::GPU_LAST_ERROR, |error| Some(error.last.into())),
    ];
    for (metric, value) in families {
        page.family(metric, |family| {
            for usage in usage {
                for gpu in &usage.gpus {
                    for error in &gpu.errors {
                        let [provider, account, region, id] = identity(usage);
                        let code = error.code.to_string();
                        if let Some(value) = value(error) {
                            family.series(&[provider, account, region, id, &gpu.gpu, &code], value);
                        }
                    }
                }
            }
        });
    }
}

fn servers(page: &mut Page<'_>, servers: &[TelemetryStatus]) {
    let mut one = |metric: &'static Metric, value: fn(&TelemetryStatus) -> Option<Value>| {
        page.family(metric, |family: &mut Family<'_>| {
            for server in servers {
                if let Some(value) = value(server) {
                    family.series(&[&server.name], value);
                }
            }
        });
    };
    one(&table::TELEMETRY_UP, |server| server.up.map(Value::from));
    one(&table::TELEMETRY_LAST_SUCCESS, |server| {
        server.last_success.map(Value::from)
    });
    one(&table::TELEMETRY_DURATION, |server| {
        server.last_duration.map(|d| Value::Float(d.as_secs_f64()))
    });
    let mut many = |metric: &'static Metric, values: fn(&TelemetryStatus) -> Vec<(&str, u64)>| {
        page.family(metric, |family: &mut Family<'_>| {
            for server in servers {
                for (word, count) in values(server) {
                    family.series(&[&server.name, word], Value::Whole(count));
                }
            }
        });
    };
    many(&table::TELEMETRY_ERRORS, |server| {
        server
            .errors
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect()
    });
    many(&table::TELEMETRY_JOINED, |server| {
        server.joined.iter().map(|(method, count)| (*method, *count)).collect()
    });
    many(&table::TELEMETRY_UNMATCHED, |server| {
        server
            .unjoined
            .iter()
            .map(|(reason, count)| (*reason, *count))
            .collect()
    });
    many(&table::TELEMETRY_EXPORTER, |server| {
        server.families.iter().map(|family| (*family, 1)).collect()
    });
    page.family(&table::TELEMETRY_BAD_VALUES, |family| {
        for server in servers.iter().filter(|server| server.up.is_some()) {
            family.series(&[&server.name], Value::Whole(server.bad_values));
        }
    });
}
