//! A snapshot as families of the `prometheus` crate, written independently of
//! the page's own writer: the oracle of its tests, the rival of its bench.

use std::collections::BTreeMap;

use gpuwatch::encode::table::FLEET;
use gpuwatch_collector_core::{Dataset, Reason, Snapshot, TaskStatus};
use gpuwatch_inventory::{Commitment, GpuUsage, Instance, InstanceUsage, State};
use jiff::Timestamp;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

type Labels = Vec<(&'static str, String)>;

/// Every family of the snapshot that has series.
pub fn families(snapshot: &Snapshot) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    instances(&mut families, snapshot);
    usage(&mut families, snapshot);
    telemetry(&mut families, snapshot);
    commitments(&mut families, snapshot);
    tasks(&mut families, snapshot);
    let coverage = snapshot.coverage.iter().map(|estimate| {
        let labels = vec![
            ("provider", estimate.provider.to_string()),
            ("account", estimate.account.to_string()),
        ];
        (labels, estimate.ratio)
    });
    add(&mut families, "gpuwatch_savings_plan_coverage_ratio", coverage);
    let skipped = snapshot.skipped.iter().map(|skipped| {
        let labels = vec![
            ("provider", skipped.provider.to_string()),
            ("account", skipped.account.to_string()),
            ("region", skipped.region.to_string()),
            ("reason", skipped.reason.to_owned()),
        ];
        (labels, skipped.count as f64)
    });
    add(&mut families, "gpuwatch_skipped_records_total", skipped);
    add(
        &mut families,
        "gpuwatch_snapshot_timestamp_seconds",
        [(Vec::new(), seconds(snapshot.at))].into_iter(),
    );
    families
}

fn instances(families: &mut Vec<MetricFamily>, snapshot: &Snapshot) {
    let all = || snapshot.instances.iter().map(|instance| &**instance);
    add(families, "gpuwatch_instance_info", all().map(|i| (facts(i), 1.0)));
    let gpus = all().filter_map(|i| Some((identity(i), i.accelerators.count?.get())));
    add(families, "gpuwatch_instance_gpus", gpus);
    let memory = all().filter_map(|i| Some((identity(i), i.accelerators.memory_mib? as f64 * 1_048_576.0)));
    add(families, "gpuwatch_instance_gpu_memory_bytes", memory);
    let launched = all().filter_map(|i| Some((identity(i), seconds(i.launched?))));
    add(families, "gpuwatch_instance_launch_timestamp_seconds", launched);
    let expires = all().filter_map(|i| Some((identity(i), seconds(i.expires?))));
    add(families, "gpuwatch_instance_expiry_timestamp_seconds", expires);
    let renewed = all().filter_map(|i| Some((identity(i), f64::from(i.auto_renew?))));
    add(families, "gpuwatch_instance_auto_renew", renewed);

    let mut unknown = BTreeMap::new();
    for task in snapshot.tasks.iter().filter(|task| task.dataset == Dataset::Inventory) {
        if task.last_success.is_some() && !task.expired {
            unknown.insert((task.provider, task.account.clone(), task.region.clone()), 0.0);
        }
    }
    for instance in all() {
        let count = unknown
            .entry((instance.provider, instance.account.clone(), instance.region.clone()))
            .or_insert(0.0);
        if !instance.accelerators.in_catalog || instance.accelerators.model.is_empty() {
            *count += 1.0;
        }
    }
    let unknown = unknown.into_iter().map(|((provider, account, region), count)| {
        let labels = vec![
            ("provider", provider.to_string()),
            ("account", account.to_string()),
            ("region", region.to_string()),
        ];
        (labels, count)
    });
    add(families, "gpuwatch_unknown_accelerators", unknown);
}

fn usage(families: &mut Vec<MetricFamily>, snapshot: &Snapshot) {
    let monitored = snapshot
        .instances
        .iter()
        .filter(|i| i.state == State::Running)
        .map(|i| {
            let of_instance = snapshot.usage.iter().find(|usage| usage.key() == i.key());
            let cards = of_instance.map_or(0, |usage| {
                usage.gpus.iter().filter(|gpu| !gpu.activity.is_empty()).count()
            });
            (identity(i), cards as f64)
        });
    add(families, "gpuwatch_instance_monitored_gpus", monitored);
    let hosts = || snapshot.usage.iter().map(|usage| (machine(usage), usage.host));
    let cpu = hosts().filter_map(|(labels, host)| Some((labels, host.cpu?)));
    add(families, "gpuwatch_instance_cpu_utilization_ratio", cpu);
    let memory = hosts().filter_map(|(labels, host)| Some((labels, host.memory_used?)));
    add(families, "gpuwatch_instance_memory_used_ratio", memory);
    let network = hosts().filter_map(|(labels, host)| Some((labels, host.network_bytes_per_second?)));
    add(families, "gpuwatch_instance_network_bytes_per_second", network);

    let cards = || {
        snapshot
            .usage
            .iter()
            .flat_map(|usage| usage.gpus.iter().map(move |gpu| (card(usage, gpu), gpu)))
    };
    let signals = cards().flat_map(|(labels, gpu)| {
        gpu.activity.iter().map(move |(signal, ratio)| {
            let mut labels = labels.clone();
            labels.push(("signal", signal.to_string()));
            (labels, ratio)
        })
    });
    add(families, "gpuwatch_gpu_utilization_ratio", signals);
    let memory = cards().filter_map(|(labels, gpu)| Some((labels, gpu.memory_used?)));
    add(families, "gpuwatch_gpu_memory_used_ratio", memory);
    let tensor = cards().filter_map(|(labels, gpu)| Some((labels, gpu.tensor_active?)));
    add(families, "gpuwatch_gpu_tensor_active_ratio", tensor);
    let dram = cards().filter_map(|(labels, gpu)| Some((labels, gpu.dram_active?)));
    add(families, "gpuwatch_gpu_dram_active_ratio", dram);
    let video = cards().filter_map(|(labels, gpu)| Some((labels, gpu.video_active?)));
    add(families, "gpuwatch_gpu_video_active_ratio", video);
    let power = cards().filter_map(|(labels, gpu)| Some((labels, gpu.power_watts?)));
    add(families, "gpuwatch_gpu_power_watts", power);
    let times = cards().map(|(labels, gpu)| (labels, seconds(gpu.at)));
    add(families, "gpuwatch_gpu_telemetry_timestamp_seconds", times);
    let errors = || {
        cards().flat_map(|(labels, gpu)| {
            gpu.errors.iter().map(move |error| {
                let mut labels = labels.clone();
                labels.push(("xid", error.code.to_string()));
                (labels, *error)
            })
        })
    };
    let counts = errors().map(|(labels, error)| (labels, error.count as f64));
    add(families, "gpuwatch_gpu_errors_total", counts);
    let recent = errors()
        .filter(|(_, error)| error.recent != 0)
        .map(|(labels, error)| (labels, error.recent as f64));
    add(families, "gpuwatch_gpu_recent_errors", recent);
    let last = errors().map(|(labels, error)| (labels, seconds(error.last)));
    add(families, "gpuwatch_gpu_last_error_timestamp_seconds", last);
}

fn machine(usage: &InstanceUsage) -> Labels {
    vec![
        ("provider", usage.provider.to_string()),
        ("account", usage.account.to_string()),
        ("region", usage.region.to_string()),
        ("instance_id", usage.id.to_string()),
    ]
}

fn card(usage: &InstanceUsage, gpu: &GpuUsage) -> Labels {
    let mut labels = machine(usage);
    labels.push(("gpu", gpu.gpu.to_string()));
    labels
}

fn telemetry(families: &mut Vec<MetricFamily>, snapshot: &Snapshot) {
    let servers = || {
        snapshot
            .telemetry
            .iter()
            .map(|server| (vec![("telemetry", server.name.to_string())], server))
    };
    let up = servers().filter_map(|(labels, server)| Some((labels, f64::from(server.up?))));
    add(families, "gpuwatch_telemetry_up", up);
    let success = servers().filter_map(|(labels, server)| Some((labels, seconds(server.last_success?))));
    add(families, "gpuwatch_telemetry_last_success_timestamp_seconds", success);
    let duration = servers().filter_map(|(labels, server)| Some((labels, server.last_duration?.as_secs_f64())));
    add(families, "gpuwatch_telemetry_duration_seconds", duration);
    let mut by_word = |name: &'static str, label: &'static str, words: Vec<Vec<(String, u64)>>| {
        let series = servers().zip(words).flat_map(|((labels, _), words)| {
            words.into_iter().map(move |(word, count)| {
                let mut labels = labels.clone();
                labels.push((label, word));
                (labels, count as f64)
            })
        });
        add(families, name, series);
    };
    let all = || snapshot.telemetry.iter();
    let errors = all().map(|s| {
        s.errors
            .iter()
            .map(|(reason, count)| (reason.to_string(), *count))
            .collect()
    });
    by_word("gpuwatch_telemetry_errors_total", "reason", errors.collect());
    let joined = all().map(|s| {
        s.joined
            .iter()
            .map(|(method, count)| ((*method).to_owned(), *count))
            .collect()
    });
    by_word("gpuwatch_telemetry_joined_gpus", "method", joined.collect());
    let unjoined = all().map(|s| {
        s.unjoined
            .iter()
            .map(|(reason, count)| ((*reason).to_owned(), *count))
            .collect()
    });
    by_word("gpuwatch_telemetry_unmatched_gpus", "reason", unjoined.collect());
    let families_found = all().map(|s| s.families.iter().map(|family| ((*family).to_owned(), 1)).collect());
    by_word("gpuwatch_telemetry_exporter_info", "exporter", families_found.collect());
    let bad = servers()
        .filter(|(_, server)| server.up.is_some())
        .map(|(l, server)| (l, server.bad_values as f64));
    add(families, "gpuwatch_telemetry_bad_values_total", bad);
}

fn identity(instance: &Instance) -> Labels {
    vec![
        ("provider", instance.provider.to_string()),
        ("account", instance.account.to_string()),
        ("region", instance.region.to_string()),
        ("instance_id", instance.id.to_string()),
    ]
}

fn facts(instance: &Instance) -> Labels {
    let accelerators = &instance.accelerators;
    let mut labels = identity(instance);
    labels.extend([
        ("account_name", instance.account_name.to_string()),
        ("zone", instance.zone.to_string()),
        ("name", instance.name.to_string()),
        ("instance_type", instance.instance_type.to_string()),
        ("kind", instance.kind.to_string()),
        ("state", instance.state.to_string()),
        ("billing_mode", instance.billing.mode.to_string()),
        ("billing_detail", instance.billing.detail.to_string()),
        (
            "gpu_vendor",
            accelerators
                .vendor
                .as_ref()
                .map(|vendor| vendor.as_str().to_owned())
                .unwrap_or_default(),
        ),
        ("gpu_model", accelerators.model.to_string()),
        ("gpu_architecture", accelerators.architecture.to_string()),
        ("owner", instance.owner.to_string()),
        ("cluster", instance.cluster.to_string()),
    ]);
    labels
}

fn commitments(families: &mut Vec<MetricFamily>, snapshot: &Snapshot) {
    let labels = |c: &Commitment| -> Labels {
        vec![
            ("provider", c.provider.to_string()),
            ("account", c.account.to_string()),
            ("region", c.region.to_string()),
            ("commitment_id", c.id.to_string()),
            ("kind", c.kind.to_string()),
            ("instance_type", c.instance_type.to_string()),
        ]
    };
    let all = || snapshot.commitments.iter().map(|commitment| &**commitment);
    add(families, "gpuwatch_commitment_info", all().map(|c| (labels(c), 1.0)));
    let gpus = |units: Option<u32>, c: &Commitment| Some(f64::from(units?) * c.gpus_per_unit?.get());
    let bought = all().filter_map(|c| Some((labels(c), gpus(c.units, c)?)));
    add(families, "gpuwatch_commitment_gpus", bought);
    let used = all().filter_map(|c| Some((labels(c), gpus(c.used_units, c)?)));
    add(families, "gpuwatch_commitment_used_gpus", used);
    let expires = all().filter_map(|c| Some((labels(c), seconds(c.expires?))));
    add(families, "gpuwatch_commitment_expiry_timestamp_seconds", expires);
}

fn tasks(families: &mut Vec<MetricFamily>, snapshot: &Snapshot) {
    let labels = |task: &TaskStatus| -> Labels {
        vec![
            ("provider", task.provider.to_string()),
            ("account", task.account.to_string()),
            ("region", task.region.to_string()),
            ("dataset", task.dataset.to_string()),
        ]
    };
    let all = || snapshot.tasks.iter();
    let up = all().filter_map(|task| Some((labels(task), if task.up? { 1.0 } else { 0.0 })));
    add(families, "gpuwatch_task_up", up);
    let success = all().filter_map(|task| Some((labels(task), seconds(task.last_success?))));
    add(families, "gpuwatch_task_last_success_timestamp_seconds", success);
    let duration = all().filter_map(|task| Some((labels(task), task.last_duration?.as_secs_f64())));
    add(families, "gpuwatch_task_duration_seconds", duration);
    let errors = all().flat_map(|task| {
        Reason::ALL.iter().map(move |reason| {
            let mut labels = labels(task);
            labels.push(("reason", reason.to_string()));
            (labels, task.errors.get(reason).copied().unwrap_or(0) as f64)
        })
    });
    add(families, "gpuwatch_task_errors_total", errors);
}

fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1000.0
}

fn add(families: &mut Vec<MetricFamily>, name: &str, series: impl Iterator<Item = (Labels, f64)>) {
    let declared = FLEET.iter().find(|metric| metric.name == name).expect("declared");
    let is_counter = name.ends_with("_total");
    let metrics: Vec<Metric> = series
        .map(|(labels, value)| metric(labels, value, is_counter))
        .collect();
    if metrics.is_empty() {
        return;
    }
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(declared.help.to_owned());
    family.set_field_type(if is_counter {
        MetricType::COUNTER
    } else {
        MetricType::GAUGE
    });
    family.set_metric(metrics);
    families.push(family);
}

fn metric(labels: Labels, value: f64, is_counter: bool) -> Metric {
    let pairs = labels.into_iter().map(|(name, text)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(text);
        pair
    });
    let mut metric = Metric::from_label(pairs.collect());
    if is_counter {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
    }
    metric
}
