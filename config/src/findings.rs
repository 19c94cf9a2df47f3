//! Thresholds of the findings. Those without a cited source are gpuwatch's own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Amount, Factor, Period, Ratio,
    check::Check,
    error::nearest,
    yaml::{Checks, Spot},
};

/// The names of the findings.
pub const FINDINGS: [&str; 28] = [
    "idle-gpu",
    "mostly-idle-hours",
    "too-many-gpus",
    "low-utilisation",
    "oversized-memory",
    "oversized-class",
    "fp64-mismatch",
    "old-generation",
    "mig-candidate",
    "data-starved",
    "oversized-host",
    "managed-idle",
    "on-demand-commit",
    "spot-candidate",
    "spot-risk",
    "underused-commitment",
    "expiring-commitment",
    "stopped-but-billed",
    "leftovers",
    "price-outlier",
    "unmonitored-gpu",
    "missing-owner",
    "hardware-errors",
    "compliance-hint",
    "surprise-gpus",
    "commitment-mix",
    "concentration",
    "lock-in",
];

/// Makes the section: each key with its description, type and default in one
/// place, because there are many.
macro_rules! thresholds {
    ($($(#[$meta:meta])* $key:ident: $type:ty = $default:expr,)+) => {
        /// When something is worth a finding, and how sure it is.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct FindingsSection {
            $($(#[$meta])* pub $key: $type,)+
        }

        impl Default for FindingsSection {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }
    };
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

thresholds! {
    // Exemptions
    /// Tag that exempts an instance; followed by a hyphen and a finding's name, from that finding.
    exempt_tag: String = "gpuwatch-ignore".to_owned(),
    /// Tag that marks an instance as kept warm on purpose.
    warm_standby_tag: String = "gpuwatch-warm-standby".to_owned(),
    /// Findings that are switched off.
    disabled: Vec<String> = Vec::new(),
    /// Tags, as `key=value`, that mark production: more headroom, less confidence.
    production_tags: Vec<String> = texts(["env=prod", "env=production", "environment=prod", "environment=production"]),
    /// Kubernetes namespaces that are production.
    production_namespaces: Vec<String> = texts(["prod", "production"]),

    // Windows and evidence
    /// What usage findings look back on.
    usage_window: Period = Period::days(7),
    /// What right-sizing looks back on.
    right_sizing_window: Period = Period::days(14),
    /// What commitment findings look back on.
    commitment_window: Period = Period::days(30),
    /// The longer window that commitment findings are checked against.
    commitment_check_window: Period = Period::days(90),
    /// Hours with data per hour of running, below which nothing but `unmonitored-gpu` is found.
    minimum_coverage: Ratio = Ratio::new(0.5),
    /// Coverage below which confidence is low, and right-sizing is not done.
    sufficient_coverage: Ratio = Ratio::new(0.8),
    /// Coverage from which confidence can be high.
    high_coverage: Ratio = Ratio::new(0.9),
    /// Hours an instance must have run in the window (AWS Compute Optimizer: 30 hours).
    minimum_running_time: Period = Period::hours(30),
    /// Age below which an instance gets no usage finding.
    new_instance_grace: Period = Period::hours(24),
    /// The same for clusters and managed endpoints.
    new_cluster_grace: Period = Period::hours(72),
    /// Percentile, as a share, that stands for peak demand.
    peak_percentile: Ratio = Ratio::new(0.995),

    // Severity
    /// Share of the owner's monthly spend from which a saving is of high severity.
    severity_high_share: Ratio = Ratio::new(0.05),
    /// Share from which it is medium.
    severity_medium_share: Ratio = Ratio::new(0.01),
    /// Saving a month, in USD or its equivalent, from which severity is high.
    severity_high_usd: Amount = Amount::whole(5_000),
    /// Saving a month, in USD or its equivalent, from which it is medium.
    severity_medium_usd: Amount = Amount::whole(500),

    // Idle
    /// Hourly mean of SM activity below which an hour is idle.
    idle_sm: Ratio = Ratio::new(0.01),
    /// The same for graphics-engine activity.
    idle_engine: Ratio = Ratio::new(0.02),
    /// The same for kernel time (`GPU_UTIL`), which overstates.
    idle_kernel_time: Ratio = Ratio::new(0.03),
    /// The same for other vendors' utilisation.
    idle_vendor: Ratio = Ratio::new(0.02),
    /// The same for video encoders and decoders.
    idle_video: Ratio = Ratio::new(0.02),
    /// An idle hour's maximum stays below its threshold times this.
    idle_peak_factor: Factor = Factor::new(5.0),
    /// Share of the window's hours that must be idle.
    idle_hours: Ratio = Ratio::new(0.98),
    /// Recent time that must be idle throughout.
    idle_recent: Period = Period::hours(24),
    /// Idle time after which the owner may be told, without a claim of savings.
    idle_notice_after: Period = Period::hours(6),
    /// Idle time after which severity rises one step.
    idle_escalate_after: Period = Period::days(14),
    /// CPU peak below which an instance without GPU telemetry looks idle.
    idle_cpu: Ratio = Ratio::new(0.05),
    /// Network traffic in megabytes a day below which it looks idle.
    idle_network_megabytes_per_day: Factor = Factor::new(5.0),
    /// Share of GPU memory in use from which a process holds the card.
    held_memory: Ratio = Ratio::new(0.03),

    // Idle at regular hours
    /// Active share of the week from which it is not simply idle.
    mostly_idle_minimum_active: Ratio = Ratio::new(0.05),
    /// Active share of the week up to which a schedule pays.
    mostly_idle_maximum_active: Ratio = Ratio::new(0.60),
    /// Consecutive idle time that counts.
    mostly_idle_block: Period = Period::hours(6),
    /// Days a week with such a block.
    mostly_idle_days: u8 = 4,
    /// Shortest block that a schedule would switch off.
    schedule_block: Period = Period::hours(4),
    /// Time lost to a start.
    schedule_start_up: Period = Period::minutes(30),
    /// Share of the schedulable hours that is claimed as saving.
    schedule_yield: Ratio = Ratio::new(0.8),

    // Low use
    /// Mean SM activity over the window below which use is low.
    low_sm: Ratio = Ratio::new(0.15),
    /// The same for graphics-engine activity.
    low_engine: Ratio = Ratio::new(0.20),
    /// The same for kernel time.
    low_kernel_time: Ratio = Ratio::new(0.30),
    /// The same for other vendors' utilisation.
    low_vendor: Ratio = Ratio::new(0.20),
    /// Active share from which low use is judged at all.
    low_minimum_active: Ratio = Ratio::new(0.20),

    // Right size
    /// Utilisation that a smaller choice is planned for.
    target_utilization: Ratio = Ratio::new(0.7),
    /// Share of memory that packing may fill.
    target_memory: Ratio = Ratio::new(0.85),
    /// Headroom over peak compute.
    headroom: Ratio = Ratio::new(0.2),
    /// Headroom over peak compute for production.
    production_headroom: Ratio = Ratio::new(0.4),
    /// Headroom over peak memory.
    memory_headroom: Ratio = Ratio::new(0.25),
    /// Headroom over the host's peak CPU.
    cpu_headroom: Ratio = Ratio::new(0.3),
    /// Mean tensor activity below which a training GPU is oversized.
    oversized_tensor: Ratio = Ratio::new(0.05),
    /// Peak tensor activity below which it is.
    oversized_tensor_peak: Ratio = Ratio::new(0.25),
    /// Mean SM activity below which it is, where tensor activity is not known.
    oversized_compute: Ratio = Ratio::new(0.15),
    /// Share of NVLink bandwidth from which the GPUs of a machine belong together.
    nvlink_in_use: Ratio = Ratio::new(0.01),
    /// FP64 activity from which double precision matters.
    fp64_active: Ratio = Ratio::new(0.05),
    /// FP64 activity below which it does not.
    fp64_unused: Ratio = Ratio::new(0.005),
    /// Tensor activity below which FP32 bounds the work.
    fp64_tensor_unused: Ratio = Ratio::new(0.02),
    /// TFLOPS of FP64 below which a model is without it.
    fp64_weak_tflops: Factor = Factor::new(3.0),
    /// TFLOPS of FP64 from which a model is made for it.
    fp64_strong_tflops: Factor = Factor::new(5.0),
    /// Work per money of a newer model, against the current one, from which to move.
    new_generation_gain: Factor = Factor::new(1.3),
    /// Peak compute below which a card can be cut into slices.
    mig_compute: Ratio = Ratio::new(0.4),
    /// Peak memory below which it can.
    mig_memory: Ratio = Ratio::new(0.5),

    // Starved of data
    /// Mean activity from which a GPU may be waiting for data.
    starved_minimum_active: Ratio = Ratio::new(0.1),
    /// Mean activity up to which it may.
    starved_maximum_active: Ratio = Ratio::new(0.6),
    /// Pressure (share of time waiting) that shows it.
    starved_pressure: Ratio = Ratio::new(0.2),
    /// Host CPU utilisation that shows it.
    starved_cpu: Ratio = Ratio::new(0.85),
    /// Share of the network limit that shows it.
    starved_network: Ratio = Ratio::new(0.80),
    /// Share of hours in which it shows.
    starved_hours: Ratio = Ratio::new(0.5),

    // Managed platforms
    /// Time without a request after which an endpoint is idle.
    managed_endpoint_idle: Period = Period::days(7),
    /// Time after which a notebook is idle.
    managed_notebook_idle: Period = Period::minutes(60),
    /// GPU utilisation below which a notebook is idle (Alibaba PAI: 10 %).
    managed_notebook_gpu: Ratio = Ratio::new(0.10),
    /// CPU utilisation below which a notebook is idle (Alibaba PAI: 20 %).
    managed_notebook_cpu: Ratio = Ratio::new(0.20),
    /// Time without a job after which a pool is idle.
    managed_pool_idle: Period = Period::hours(24),

    // Commitments and spot
    /// Run share above the break-even from which a commitment is suggested.
    commit_margin: Ratio = Ratio::new(0.1),
    /// Difference of the optima of both windows up to which confidence is high.
    commit_agreement: Ratio = Ratio::new(0.10),
    /// Utilisation of a discount commitment below which it is underused.
    commitment_utilization: Ratio = Ratio::new(0.80),
    /// Utilisation of a capacity reservation below which it is underused.
    capacity_utilization: Ratio = Ratio::new(0.95),
    /// What capacity reservations look back on.
    capacity_window: Period = Period::days(7),
    /// Times before an end date at which it is announced.
    expiry_notice: Vec<Period> = [60, 30, 14, 7].map(Period::days).to_vec(),
    /// Time before the end of a prepaid instance in use from which severity is high.
    expiry_urgent: Period = Period::days(14),
    /// Values of the workload tag that mark interruptible work.
    spot_workloads: Vec<String> = texts(["batch", "training", "ci", "dev"]),
    /// Share of spot work lost to interruptions.
    spot_lost_work: Ratio = Ratio::new(0.15),
    /// Spot price, lost work included, against on-demand, up to which to move.
    spot_price: Ratio = Ratio::new(0.7),
    /// Interruptions a month above which not to.
    spot_interruptions: Ratio = Ratio::new(0.20),
    /// Age of a spot instance from which it is a risk to something.
    spot_risk_after: Period = Period::days(7),
    /// Share of a service's replicas on one spot pool that is a risk.
    spot_risk_replicas: Ratio = Ratio::new(0.5),

    // Stopped and left over
    /// Time stopped after which compute that is still billed is a finding.
    stopped_after: Period = Period::hours(24),
    /// Time stopped after which billed disks are.
    stopped_disks_after: Period = Period::days(7),
    /// Age of an unused address, load balancer or disk (Google: 15 days).
    leftover_after: Period = Period::days(15),
    /// Time a disk must have been unattached (AWS Compute Optimizer: 32 days).
    leftover_disks_after: Period = Period::days(32),
    /// Age of a snapshot whose source is gone.
    leftover_snapshots_after: Period = Period::days(90),

    // Prices, risk and hygiene
    /// Price against the median of the allowed regions that is an outlier.
    price_outlier: Factor = Factor::new(1.15),
    /// Regions instances may run in. Empty: not judged.
    allowed_regions: Vec<String> = Vec::new(),
    /// Running time without telemetry after which it is a finding.
    unmonitored_after: Period = Period::hours(24),
    /// Share of the fleet's spend from which that is of high severity.
    unmonitored_high_share: Ratio = Ratio::new(0.10),
    /// Age below which an owner may be missing.
    owner_grace: Period = Period::hours(24),
    /// NVIDIA Xid codes that call for a reset, reboot or replacement.
    hardware_xids: Vec<u32> = vec![46, 48, 62, 64, 74, 79, 95, 119, 120],
    /// Hourly spend, against the maximum of 30 days, that is a surprise.
    surprise_factor: Factor = Factor::new(3.0),
    /// Herfindahl index by region that is a warning.
    concentration_region: Ratio = Ratio::new(0.5),
    /// Herfindahl index by end month of commitments that is a warning.
    concentration_month: Ratio = Ratio::new(0.4),
    /// Months of committed spend above which only one year more is suggested.
    lock_in_months: Factor = Factor::new(18.0),
}

impl Check for FindingsSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let disabled = spot.key("disabled");
        checks.unique(&disabled, &self.disabled);
        for (index, name) in self.disabled.iter().enumerate() {
            if !FINDINGS.contains(&name.as_str()) {
                let fix = match nearest(name, FINDINGS) {
                    Some(known) => format!("did you mean {known}?"),
                    None => format!("one of: {}", FINDINGS.join(", ")),
                };
                checks.bad_value(&disabled.item(index), "not the name of a finding", fix);
            }
        }
        for (key, tag) in [
            ("exempt_tag", &self.exempt_tag),
            ("warm_standby_tag", &self.warm_standby_tag),
        ] {
            if tag.trim().is_empty() {
                checks.problem(&spot.key(key), "an empty tag", "write a tag's name, or remove the key");
            }
        }
        let tags = spot.key("production_tags");
        for (index, tag) in self.production_tags.iter().enumerate() {
            if tag
                .split_once('=')
                .is_none_or(|(key, value)| key.is_empty() || value.is_empty())
            {
                checks.bad_value(&tags.item(index), "not a tag with a value", "write key=value");
            }
        }
        if !(1..=7).contains(&self.mostly_idle_days) {
            checks.bad_value(
                &spot.key("mostly_idle_days"),
                "not a number of days in a week",
                "write 1 to 7",
            );
        }
        self.check_order(spot, checks);
    }
}

impl FindingsSection {
    /// Pairs of thresholds that make no sense the wrong way round.
    fn check_order(&self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let ordered = [
            (
                "minimum_coverage",
                self.minimum_coverage,
                "sufficient_coverage",
                self.sufficient_coverage,
            ),
            (
                "sufficient_coverage",
                self.sufficient_coverage,
                "high_coverage",
                self.high_coverage,
            ),
            (
                "severity_medium_share",
                self.severity_medium_share,
                "severity_high_share",
                self.severity_high_share,
            ),
            (
                "mostly_idle_minimum_active",
                self.mostly_idle_minimum_active,
                "mostly_idle_maximum_active",
                self.mostly_idle_maximum_active,
            ),
            (
                "starved_minimum_active",
                self.starved_minimum_active,
                "starved_maximum_active",
                self.starved_maximum_active,
            ),
            ("idle_sm", self.idle_sm, "low_sm", self.low_sm),
            ("idle_engine", self.idle_engine, "low_engine", self.low_engine),
            (
                "idle_kernel_time",
                self.idle_kernel_time,
                "low_kernel_time",
                self.low_kernel_time,
            ),
            ("idle_vendor", self.idle_vendor, "low_vendor", self.low_vendor),
        ];
        for (low_key, low, high_key, high) in ordered {
            if low > high {
                let key = if spot.key(low_key).is_given() {
                    low_key
                } else {
                    high_key
                };
                let message = format!("{low_key} ({}) is above {high_key} ({})", low.get(), high.get());
                checks.problem(&spot.key(key), message, "lower the one or raise the other");
            }
        }
        if self.severity_medium_usd.get() > self.severity_high_usd.get() {
            let fix = "lower the one or raise the other";
            checks.problem(&spot.key("severity_medium_usd"), "above severity_high_usd", fix);
        }
    }
}
