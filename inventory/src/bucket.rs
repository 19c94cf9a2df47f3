//! Hourly buckets: what usage is folded into. Everything that judges usage
//! works on these, never on single readings.

use jiff::Timestamp;

use crate::{GpuUsage, HostUsage, Signal};

crate::words! {
    /// What a bucket measures. Each utilisation signal is a measure of its own:
    /// they are never mixed.
    Measure, "measure" {
        /// [`Signal::SmActive`].
        SmActive = "sm_active",
        /// [`Signal::GrEngineActive`].
        GrEngineActive = "gr_engine_active",
        /// [`Signal::Vendor`].
        Vendor = "vendor",
        /// [`Signal::GpuUtil`].
        GpuUtil = "gpu_util",
        /// [`Signal::Provider`].
        Provider = "provider",
        /// Occupied share of the card's memory.
        MemoryUsed = "memory_used",
        /// Share of time the matrix units were busy.
        TensorActive = "tensor_active",
        /// Share of time the double-precision units were busy.
        Fp64Active = "fp64_active",
        /// Share of time the memory interface was busy.
        DramActive = "dram_active",
        /// The busier of video encoder and decoder.
        VideoActive = "video_active",
        /// Board power in watts.
        PowerWatts = "power_watts",
        /// Traffic over PCI Express in bytes per second.
        PcieBytes = "pcie_bytes_per_second",
        /// Share of the machine's cores in use; a weak signal.
        HostCpu = "host_cpu",
        /// Share of the machine's main memory in use; a weak signal.
        HostMemory = "host_memory",
        /// Network traffic of the machine in bytes per second; a weak signal.
        HostNetwork = "host_network_bytes_per_second",
    }
}

impl Measure {
    /// The measure of a utilisation signal.
    #[must_use]
    pub const fn of(signal: Signal) -> Self {
        match signal {
            Signal::SmActive => Self::SmActive,
            Signal::GrEngineActive => Self::GrEngineActive,
            Signal::Vendor => Self::Vendor,
            Signal::GpuUtil => Self::GpuUtil,
            Signal::Provider => Self::Provider,
        }
    }

    /// From this value on a reading counts as activity; `None` for measures of
    /// which no value means work. The thresholds differ because the signals
    /// overstate differently.
    #[must_use]
    pub const fn active_from(self) -> Option<f64> {
        match self {
            Self::SmActive => Some(0.01),
            Self::GrEngineActive
            | Self::Vendor
            | Self::VideoActive
            | Self::TensorActive
            | Self::Fp64Active
            | Self::DramActive => Some(0.02),
            Self::GpuUtil | Self::Provider => Some(0.03),
            Self::MemoryUsed
            | Self::PowerWatts
            | Self::PcieBytes
            | Self::HostCpu
            | Self::HostMemory
            | Self::HostNetwork => None,
        }
    }
}

/// An hour of UTC, counted from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

impl Hour {
    /// Seconds of an hour.
    pub const SECONDS: i64 = 3600;

    /// The hour that a time is in.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        Self(at.as_second().div_euclid(Self::SECONDS))
    }

    /// The hour of this number since the epoch.
    #[must_use]
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Its number since the epoch.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Its first moment; `None` beyond the range of timestamps.
    #[must_use]
    pub fn start(self) -> Option<Timestamp> {
        Timestamp::from_second(self.0.checked_mul(Self::SECONDS)?).ok()
    }

    /// The hour this many hours later, or earlier when negative.
    #[must_use]
    pub const fn plus(self, hours: i64) -> Self {
        Self(self.0.saturating_add(hours))
    }
}

/// What was measured within one hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Mean of the readings.
    pub mean: f64,
    /// Highest reading.
    pub max: f64,
    /// Share of the readings that show activity, 0 to 1; 0 for measures
    /// without an activity threshold.
    pub active: f64,
    /// Which of the hour's twelve slots of five minutes have a reading, the
    /// first in the lowest bit.
    pub slots: u16,
    /// How many readings.
    pub samples: u32,
    /// Time of the newest reading.
    pub last: Timestamp,
}

impl Bucket {
    /// Slots of an hour.
    pub const SLOTS: u32 = 12;
    /// Seconds of a slot.
    pub const SLOT_SECONDS: i64 = 300;

    /// A bucket of one reading; `None` for a value that is no number.
    #[must_use]
    pub fn of(measure: Measure, at: Timestamp, value: f64) -> Option<Self> {
        let slot = at.as_second().rem_euclid(Hour::SECONDS) / Self::SLOT_SECONDS;
        let active = measure.active_from().is_some_and(|from| value >= from);
        value.is_finite().then(|| Self {
            mean: value,
            max: value,
            active: f64::from(u8::from(active)),
            slots: 1 << slot,
            samples: 1,
            last: at,
        })
    }

    /// Adds what another part of the same hour has. The readings of the two
    /// must be different ones.
    pub fn add(&mut self, other: &Self) {
        let (own, others) = (f64::from(self.samples), f64::from(other.samples));
        let total = own + others;
        if total > 0.0 {
            self.mean = (self.mean * own + other.mean * others) / total;
            self.active = (self.active * own + other.active * others) / total;
        }
        self.max = self.max.max(other.max);
        self.slots |= other.slots;
        self.samples = self.samples.saturating_add(other.samples);
        self.last = self.last.max(other.last);
    }

    /// Share of the hour that readings exist for, 0 to 1.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        f64::from(self.slots.count_ones()) / f64::from(Self::SLOTS)
    }
}

/// Every measure that a reading of a card has.
pub fn measures_of(gpu: &GpuUsage) -> impl Iterator<Item = (Measure, f64)> {
    let others = [
        (Measure::MemoryUsed, gpu.memory_used),
        (Measure::TensorActive, gpu.tensor_active),
        (Measure::Fp64Active, gpu.fp64_active),
        (Measure::DramActive, gpu.dram_active),
        (Measure::VideoActive, gpu.video_active),
        (Measure::PowerWatts, gpu.power_watts),
        (Measure::PcieBytes, gpu.pcie_bytes_per_second),
    ];
    let signals = gpu.activity.iter().map(|(signal, ratio)| (Measure::of(signal), ratio));
    signals.chain(
        others
            .into_iter()
            .filter_map(|(measure, value)| Some((measure, value?))),
    )
}

/// Every measure that a reading of a machine has.
pub fn measures_of_host(host: &HostUsage) -> impl Iterator<Item = (Measure, f64)> {
    let all = [
        (Measure::HostCpu, host.cpu),
        (Measure::HostMemory, host.memory_used),
        (Measure::HostNetwork, host.network_bytes_per_second),
    ];
    all.into_iter().filter_map(|(measure, value)| Some((measure, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn readings_of_an_hour_add_up_in_any_order() {
        let readings = [(0, 0.0), (299, 0.5), (300, 1.0), (3599, 0.01)];
        let fold = |readings: &[(i64, f64)]| {
            let parts = readings
                .iter()
                .filter_map(|(s, v)| Bucket::of(Measure::GpuUtil, at(7200 + s), *v));
            parts.reduce(|mut all, part| {
                all.add(&part);
                all
            })
        };
        let bucket = fold(&readings).expect("readings");
        let mut backwards = readings;
        backwards.reverse();
        let other = fold(&backwards).expect("readings");
        assert!((bucket.mean - 0.3775).abs() < 1e-12 && (other.mean - 0.3775).abs() < 1e-12);
        assert_eq!((bucket.max, bucket.active, bucket.samples), (1.0, 0.5, 4));
        assert_eq!((bucket.slots, other.slots), (0b1000_0000_0011, 0b1000_0000_0011));
        assert_eq!((bucket.coverage(), bucket.last), (0.25, at(7200 + 3599)));
    }

    #[test]
    fn hours_are_those_of_utc_also_before_the_epoch() {
        assert_eq!(Hour::of(at(3599)).number(), 0);
        assert_eq!(Hour::of(at(3600)).start(), Some(at(3600)));
        assert_eq!(Hour::of(at(-1)).number(), -1);
        assert_eq!(
            Bucket::of(Measure::GpuUtil, at(-1), 0.0).map(|b| b.slots),
            Some(1 << 11)
        );
    }

    #[test]
    fn what_is_no_number_is_no_reading_and_power_is_no_activity() {
        assert_eq!(Bucket::of(Measure::GpuUtil, at(0), f64::NAN), None);
        assert_eq!(
            Bucket::of(Measure::PowerWatts, at(0), 700.0).map(|b| b.active),
            Some(0.0)
        );
    }
}
