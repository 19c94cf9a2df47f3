//! Every metric of the program, declared once: name, type, help and labels.
//! The encoder writes from these declarations and `docs/metrics.md` is
//! generated from them. Names and labels are a public contract.

/// Type of a metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up, until the program restarts or reloads.
    Counter,
    /// Buckets, sum and count.
    Histogram,
}

impl Kind {
    /// The word of the `# TYPE` line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// Declaration of one metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Full name.
    pub name: &'static str,
    /// The `# TYPE`.
    pub kind: Kind,
    /// Label names in the order they are written.
    pub labels: &'static [&'static str],
    /// The `# HELP` line.
    pub help: &'static str,
}

/// The labels that identify an instance: on every series of an instance and,
/// except for the information series, nothing more.
pub const IDENTITY: &[&str] = &["provider", "account", "region", "instance_id"];

/// The labels that identify a poll task.
const TASK: &[&str] = &["provider", "account", "region", "dataset"];

/// The labels of every commitment series.
const COMMITMENT: &[&str] = &[
    "provider",
    "account",
    "region",
    "commitment_id",
    "kind",
    "instance_type",
];

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Gauge,
        labels,
        help,
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Counter,
        labels,
        help,
    }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: Kind::Histogram,
        labels,
        help,
    }
}

/// Facts of an instance, always 1.
pub const INSTANCE_INFO: Metric = gauge(
    "gpuwatch_instance_info",
    &[
        "provider",
        "account",
        "region",
        "instance_id",
        "account_name",
        "zone",
        "name",
        "instance_type",
        "kind",
        "state",
        "billing_mode",
        "billing_detail",
        "gpu_vendor",
        "gpu_model",
        "gpu_architecture",
        "owner",
        "cluster",
    ],
    "Facts of an instance that has accelerators; always 1. An unknown fact is an empty label.",
);

/// Accelerators of an instance.
pub const INSTANCE_GPUS: Metric = gauge(
    "gpuwatch_instance_gpus",
    IDENTITY,
    "Accelerators of the instance; a fraction for a slice of a card. Absent when unknown.",
);

/// Memory of an instance's accelerators.
pub const INSTANCE_GPU_MEMORY: Metric = gauge(
    "gpuwatch_instance_gpu_memory_bytes",
    IDENTITY,
    "Memory of all accelerators of the instance together. Absent when unknown.",
);

/// Launch time.
pub const INSTANCE_LAUNCH: Metric = gauge(
    "gpuwatch_instance_launch_timestamp_seconds",
    IDENTITY,
    "When the instance was last started, or created where the cloud does not say. Absent when unknown.",
);

/// End of a prepaid or reserved term.
pub const INSTANCE_EXPIRY: Metric = gauge(
    "gpuwatch_instance_expiry_timestamp_seconds",
    IDENTITY,
    "End of the instance's prepaid or reserved term. Absent when it has none.",
);

/// What happens at the end of a prepaid term.
pub const INSTANCE_AUTO_RENEW: Metric = gauge(
    "gpuwatch_instance_auto_renew",
    IDENTITY,
    "1 when the instance's prepaid term is renewed by itself at its end, 0 when it is not. Absent without such a term \
     or when unknown.",
);

/// Accelerators that something measures.
pub const INSTANCE_MONITORED_GPUS: Metric = gauge(
    "gpuwatch_instance_monitored_gpus",
    IDENTITY,
    "Accelerators of the running instance whose utilisation is being measured; 0 when nothing measures them, which does \
     not mean that they are idle.",
);

/// Processors in use.
pub const INSTANCE_CPU: Metric = gauge(
    "gpuwatch_instance_cpu_utilization_ratio",
    IDENTITY,
    "Share of the machine's processors in use, 0 to 1. A weak signal: says nothing about the accelerators by itself.",
);

/// Main memory in use.
pub const INSTANCE_MEMORY: Metric = gauge(
    "gpuwatch_instance_memory_used_ratio",
    IDENTITY,
    "Share of the machine's main memory in use, 0 to 1. A weak signal.",
);

/// Network traffic.
pub const INSTANCE_NETWORK: Metric = gauge(
    "gpuwatch_instance_network_bytes_per_second",
    IDENTITY,
    "Network traffic of the machine, both ways, in bytes per second. A weak signal.",
);

/// The labels of every series of a card.
const GPU: &[&str] = &["provider", "account", "region", "instance_id", "gpu"];

/// The labels of a card's errors.
const GPU_ERROR: &[&str] = &["provider", "account", "region", "instance_id", "gpu", "xid"];

/// Utilisation.
pub const GPU_UTILIZATION: Metric = gauge(
    "gpuwatch_gpu_utilization_ratio",
    &["provider", "account", "region", "instance_id", "gpu", "signal"],
    "Utilisation of the accelerator, 0 to 1, by what is measured: sm_active, gr_engine_active, vendor, gpu_util, \
     provider. Signals do not compare with one another. Absent when nothing measures it.",
);

/// Memory in use.
pub const GPU_MEMORY_USED: Metric = gauge(
    "gpuwatch_gpu_memory_used_ratio",
    GPU,
    "Share of the accelerator's memory in use, 0 to 1.",
);

/// Matrix units.
pub const GPU_TENSOR_ACTIVE: Metric = gauge(
    "gpuwatch_gpu_tensor_active_ratio",
    GPU,
    "Share of time the accelerator's matrix units were busy, 0 to 1.",
);

/// Memory interface.
pub const GPU_DRAM_ACTIVE: Metric = gauge(
    "gpuwatch_gpu_dram_active_ratio",
    GPU,
    "Share of time the accelerator's memory interface was busy, 0 to 1.",
);

/// Video engines.
pub const GPU_VIDEO_ACTIVE: Metric = gauge(
    "gpuwatch_gpu_video_active_ratio",
    GPU,
    "Share of time the busier of the accelerator's video encoder and decoder was busy, 0 to 1.",
);

/// Power.
pub const GPU_POWER: Metric = gauge("gpuwatch_gpu_power_watts", GPU, "Power that the accelerator draws.");

/// Age of the data.
pub const GPU_TELEMETRY_TIMESTAMP: Metric = gauge(
    "gpuwatch_gpu_telemetry_timestamp_seconds",
    GPU,
    "When the newest of the accelerator's readings was taken, by its source's clock.",
);

/// Errors since start.
pub const GPU_ERRORS: Metric = counter(
    "gpuwatch_gpu_errors_total",
    GPU_ERROR,
    "Errors (NVIDIA Xid) that the accelerator reported since gpuwatch sees it; a lower bound where its exporter shows \
     only the last code.",
);

/// Errors of the last hour.
pub const GPU_RECENT_ERRORS: Metric = gauge(
    "gpuwatch_gpu_recent_errors",
    GPU_ERROR,
    "Errors (NVIDIA Xid) that the accelerator reported within the last hour. Absent when there were none.",
);

/// Time of the last error.
pub const GPU_LAST_ERROR: Metric = gauge(
    "gpuwatch_gpu_last_error_timestamp_seconds",
    GPU_ERROR,
    "When the accelerator last reported the error.",
);

/// Outcome of the last round of a telemetry server.
pub const TELEMETRY_UP: Metric = gauge(
    "gpuwatch_telemetry_up",
    &["telemetry"],
    "Whether the last reading of the telemetry server had no error. Absent before the first.",
);

/// Last complete round.
pub const TELEMETRY_LAST_SUCCESS: Metric = gauge(
    "gpuwatch_telemetry_last_success_timestamp_seconds",
    &["telemetry"],
    "When the telemetry server was last read completely. Absent before the first time.",
);

/// Duration of the last round.
pub const TELEMETRY_DURATION: Metric = gauge(
    "gpuwatch_telemetry_duration_seconds",
    &["telemetry"],
    "How long the last reading of the telemetry server took.",
);

/// Failures by reason.
pub const TELEMETRY_ERRORS: Metric = counter(
    "gpuwatch_telemetry_errors_total",
    &["telemetry", "reason"],
    "Failed queries of the telemetry server, by reason: throttled, credentials, permission, timeout, network, decode, \
     other.",
);

/// Joined cards.
pub const TELEMETRY_JOINED: Metric = gauge(
    "gpuwatch_telemetry_joined_gpus",
    &["telemetry", "method"],
    "Accelerators in the telemetry that were joined to an instance, by method: provider_id, instance_id, node_address, \
     address, hostname.",
);

/// Cards that were not joined.
pub const TELEMETRY_UNMATCHED: Metric = gauge(
    "gpuwatch_telemetry_unmatched_gpus",
    &["telemetry", "reason"],
    "Accelerators in the telemetry that belong to no instance with certainty, by reason: no_instance, ambiguous, \
     too_many_cards.",
);

/// Exporters found.
pub const TELEMETRY_EXPORTER: Metric = gauge(
    "gpuwatch_telemetry_exporter_info",
    &["telemetry", "exporter"],
    "An exporter whose metrics the telemetry server has; always 1.",
);

/// Values that cannot be.
pub const TELEMETRY_BAD_VALUES: Metric = counter(
    "gpuwatch_telemetry_bad_values_total",
    &["telemetry"],
    "Readings that were out of their range and were left out.",
);

/// Facts of a commitment, always 1.
pub const COMMITMENT_INFO: Metric = gauge(
    "gpuwatch_commitment_info",
    COMMITMENT,
    "An active commitment (reserved instance, savings plan, capacity reservation or block ...); always 1.",
);

/// Accelerators bought.
pub const COMMITMENT_GPUS: Metric = gauge(
    "gpuwatch_commitment_gpus",
    COMMITMENT,
    "Accelerators the commitment holds. Absent for commitments of money and when unknown.",
);

/// Accelerators of it in use.
pub const COMMITMENT_USED_GPUS: Metric = gauge(
    "gpuwatch_commitment_used_gpus",
    COMMITMENT,
    "Accelerators of the commitment that running instances use. Absent for commitments of money and when unknown.",
);

/// End of the term.
pub const COMMITMENT_EXPIRY: Metric = gauge(
    "gpuwatch_commitment_expiry_timestamp_seconds",
    COMMITMENT,
    "End of the commitment's term. Absent when it has none.",
);

/// Coverage by savings plans.
pub const SAVINGS_PLAN_COVERAGE: Metric = gauge(
    "gpuwatch_savings_plan_coverage_ratio",
    &["provider", "account"],
    "Share of the account's eligible on-demand accelerator use that its savings plans can cover: an upper estimate, \
     because the plans also apply to other use.",
);

/// Instances whose model the catalogue lacks.
pub const UNKNOWN_ACCELERATORS: Metric = gauge(
    "gpuwatch_unknown_accelerators",
    &["provider", "account", "region"],
    "Instances whose accelerator model is unknown or not in the catalogue.",
);

/// Outcome of a task's last run.
pub const TASK_UP: Metric = gauge(
    "gpuwatch_task_up",
    TASK,
    "Whether the last run of the poll task had no error. Absent before its first run.",
);

/// Last complete answer.
pub const TASK_LAST_SUCCESS: Metric = gauge(
    "gpuwatch_task_last_success_timestamp_seconds",
    TASK,
    "When the poll task last had a complete answer. Absent before the first.",
);

/// Duration of a task's last run.
pub const TASK_DURATION: Metric = gauge(
    "gpuwatch_task_duration_seconds",
    TASK,
    "How long the last run of the poll task took. Absent before its first run.",
);

/// Failures by reason.
pub const TASK_ERRORS: Metric = counter(
    "gpuwatch_task_errors_total",
    &["provider", "account", "region", "dataset", "reason"],
    "Failed attempts and runs of the poll task, by reason: throttled, credentials, permission, timeout, network, \
     decode, not_enabled, other.",
);

/// Records that could not be used.
pub const SKIPPED_RECORDS: Metric = counter(
    "gpuwatch_skipped_records_total",
    &["provider", "account", "region", "reason"],
    "Records of a cloud's answers that could not be used, by reason.",
);

/// Age of the page's data.
pub const SNAPSHOT_TIMESTAMP: Metric = gauge(
    "gpuwatch_snapshot_timestamp_seconds",
    &[],
    "When the fleet's part of this page was put together from the last good answers.",
);

/// The families of the fleet, in the order of the page.
pub const FLEET: &[&Metric] = &[
    &INSTANCE_INFO,
    &INSTANCE_GPUS,
    &INSTANCE_GPU_MEMORY,
    &INSTANCE_LAUNCH,
    &INSTANCE_EXPIRY,
    &INSTANCE_AUTO_RENEW,
    &INSTANCE_MONITORED_GPUS,
    &INSTANCE_CPU,
    &INSTANCE_MEMORY,
    &INSTANCE_NETWORK,
    &GPU_UTILIZATION,
    &GPU_MEMORY_USED,
    &GPU_TENSOR_ACTIVE,
    &GPU_DRAM_ACTIVE,
    &GPU_VIDEO_ACTIVE,
    &GPU_POWER,
    &GPU_TELEMETRY_TIMESTAMP,
    &GPU_ERRORS,
    &GPU_RECENT_ERRORS,
    &GPU_LAST_ERROR,
    &TELEMETRY_UP,
    &TELEMETRY_LAST_SUCCESS,
    &TELEMETRY_DURATION,
    &TELEMETRY_ERRORS,
    &TELEMETRY_JOINED,
    &TELEMETRY_UNMATCHED,
    &TELEMETRY_EXPORTER,
    &TELEMETRY_BAD_VALUES,
    &COMMITMENT_INFO,
    &COMMITMENT_GPUS,
    &COMMITMENT_USED_GPUS,
    &COMMITMENT_EXPIRY,
    &SAVINGS_PLAN_COVERAGE,
    &UNKNOWN_ACCELERATORS,
    &TASK_UP,
    &TASK_LAST_SUCCESS,
    &TASK_DURATION,
    &TASK_ERRORS,
    &SKIPPED_RECORDS,
    &SNAPSHOT_TIMESTAMP,
];

/// Version of the program, always 1.
pub const BUILD_INFO: Metric = gauge("gpuwatch_build_info", &["version"], "Version of gpuwatch; always 1.");

/// Outcome of the last configuration (re)load.
pub const CONFIG_RELOAD_SUCCESSFUL: Metric = gauge(
    "gpuwatch_config_last_reload_successful",
    &[],
    "Whether the last attempt to load the configuration was successful; 0 means that the one before is still in use.",
);

/// When the configuration in use was loaded.
pub const CONFIG_RELOAD_TIMESTAMP: Metric = gauge(
    "gpuwatch_config_last_reload_success_timestamp_seconds",
    &[],
    "When the configuration in use was loaded.",
);

/// Requests to the HTTP server.
pub const HTTP_REQUESTS: Metric = counter(
    "gpuwatch_http_requests_total",
    &["handler", "code"],
    "Requests answered by gpuwatch's own HTTP server, by handler and status code.",
);

/// Size of the page.
pub const PAGE_SIZE: Metric = gauge(
    "gpuwatch_page_size_bytes",
    &["encoding"],
    "Size of the fleet's part of the metrics page, by encoding: identity or gzip.",
);

/// Time to encode the page.
pub const PAGE_ENCODE_DURATION: Metric = histogram(
    "gpuwatch_page_encode_duration_seconds",
    &[],
    "Time to encode and compress the fleet's part of the metrics page, once per published snapshot.",
);

/// Calls to cloud APIs.
pub const API_REQUESTS: Metric = counter(
    "gpuwatch_api_requests_total",
    &["provider", "service", "operation", "outcome"],
    "Calls made to cloud APIs, each attempt counted, by outcome (ok or the reason of failure).",
);

/// Billable use of cloud APIs.
pub const API_BILLABLE_UNITS: Metric = counter(
    "gpuwatch_api_billable_units_total",
    &["provider", "service", "operation", "outcome"],
    "Units of cloud API use that the cloud charges for (Cost Explorer requests, CloudWatch metrics).",
);

/// The families about the program itself.
pub const PROGRAM: &[&Metric] = &[
    &API_REQUESTS,
    &API_BILLABLE_UNITS,
    &BUILD_INFO,
    &CONFIG_RELOAD_SUCCESSFUL,
    &CONFIG_RELOAD_TIMESTAMP,
    &HTTP_REQUESTS,
    &PAGE_SIZE,
    &PAGE_ENCODE_DURATION,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_follow_the_naming_guide() {
        let mut names = BTreeSet::new();
        for metric in FLEET.iter().chain(PROGRAM) {
            assert!(names.insert(metric.name), "{} is declared twice", metric.name);
            assert!(metric.name.starts_with("gpuwatch_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{}",
                metric.name
            );
            assert!(
                metric.help.ends_with('.') && !metric.help.contains('\n'),
                "{}",
                metric.name
            );
        }
    }

    // P55
    #[test]
    fn value_series_have_at_most_eight_labels() {
        for metric in FLEET
            .iter()
            .chain(PROGRAM)
            .filter(|metric| !metric.name.ends_with("_info"))
        {
            assert!(metric.labels.len() <= 8, "{}", metric.name);
        }
    }

    #[test]
    fn instance_series_carry_the_identity_and_only_the_information_series_more() {
        for metric in FLEET
            .iter()
            .filter(|metric| metric.name.starts_with("gpuwatch_instance_"))
        {
            assert!(metric.labels.starts_with(IDENTITY), "{}", metric.name);
            assert!(
                *metric == &INSTANCE_INFO || metric.labels == IDENTITY,
                "{}",
                metric.name
            );
        }
    }
}
