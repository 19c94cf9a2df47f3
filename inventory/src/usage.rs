//! Measured use of accelerators and of the machines they are in.

use std::time::Duration;

use jiff::Timestamp;

use crate::{Provider, Text};

crate::words! {
    /// Which measurement a utilisation value is, strongest evidence first. Two
    /// signals never mean the same: thresholds differ by signal, and values of
    /// different signals are never compared or averaged.
    Signal, "signal" {
        /// Share of time the streaming multiprocessors had work (DCGM 1002).
        SmActive = "sm_active",
        /// Share of time the compute or graphics engine was active (DCGM 1001).
        GrEngineActive = "gr_engine_active",
        /// What the maker of another accelerator calls utilisation: AMD GFX
        /// activity, the AI cores of an Ascend, the cores of a Gaudi, a Trainium or
        /// a TPU.
        Vendor = "vendor",
        /// Share of time a kernel ran (NVML utilisation): one small kernel
        /// makes 1, so it overstates.
        GpuUtil = "gpu_util",
        /// The cloud's own GPU metric.
        Provider = "provider",
    }
}

/// Utilisation by signal, each 0 to 1; a signal without a reading is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Activity([Option<f64>; Signal::ALL.len()]);

impl Activity {
    /// Only this signal.
    #[must_use]
    pub fn of(signal: Signal, ratio: f64) -> Self {
        let mut activity = Self::default();
        activity.set(signal, ratio);
        activity
    }

    /// Notes a reading; what is not a number from 0 to 1 is brought there when
    /// it is just beside it (1.0001) and ignored otherwise. Says whether it
    /// was taken.
    pub fn set(&mut self, signal: Signal, ratio: f64) -> bool {
        let Some(ratio) = as_ratio(ratio) else { return false };
        if let Some(place) = self.0.get_mut(signal as usize) {
            *place = Some(ratio);
        }
        true
    }

    /// Forgets a signal.
    pub fn clear(&mut self, signal: Signal) {
        if let Some(place) = self.0.get_mut(signal as usize) {
            *place = None;
        }
    }

    /// The reading of a signal.
    #[must_use]
    pub fn get(&self, signal: Signal) -> Option<f64> {
        self.0.get(signal as usize).copied().flatten()
    }

    /// Every reading, strongest first.
    pub fn iter(&self) -> impl Iterator<Item = (Signal, f64)> {
        Signal::ALL
            .iter()
            .copied()
            .zip(self.0)
            .filter_map(|(signal, ratio)| Some((signal, ratio?)))
    }

    /// The reading to judge by.
    #[must_use]
    pub fn strongest(&self) -> Option<(Signal, f64)> {
        self.iter().next()
    }

    /// Whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strongest().is_none()
    }
}

/// Readings a little beside the range are rounding, others are garbage.
#[must_use]
pub fn as_ratio(value: f64) -> Option<f64> {
    const ROUNDING: f64 = 0.01;
    let near = value.is_finite() && (-ROUNDING..=1.0 + ROUNDING).contains(&value);
    near.then(|| value.clamp(0.0, 1.0))
}

/// Who holds an accelerator now; empty text where that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holder {
    /// Kubernetes namespace.
    pub namespace: Text,
    /// Kubernetes pod.
    pub pod: Text,
    /// Container within the pod.
    pub container: Text,
    /// Batch job (Slurm).
    pub job: Text,
}

/// Errors of one code that an accelerator reported (NVIDIA Xid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuError {
    /// The code.
    pub code: u32,
    /// How many since gpuwatch sees this card; a lower bound where the source
    /// shows only the last code.
    pub count: u64,
    /// How many of them within the last hour.
    pub recent: u64,
    /// When the last of them was seen, by the source's clock.
    pub last: Timestamp,
}

/// What was read of one accelerator at one time. Absent readings are `None`,
/// never 0.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuUsage {
    /// Card within the instance, the `gpu` label: its index where the source
    /// says it, else its UUID; [`GpuUsage::ALL_CARDS`] where the source only
    /// has an average over the cards.
    pub gpu: Text,
    /// The maker's unique id; empty where the source does not say.
    pub uuid: Text,
    /// When the newest of these readings was taken, by the source's clock; the
    /// end of the period where it is an average over one.
    pub at: Timestamp,
    /// Utilisation.
    pub activity: Activity,
    /// Memory in use, in bytes.
    pub memory_used_bytes: Option<f64>,
    /// Memory there is, in bytes.
    pub memory_total_bytes: Option<f64>,
    /// Occupied share of the memory, 0 to 1.
    pub memory_used: Option<f64>,
    /// Share of time the matrix units were busy, 0 to 1.
    pub tensor_active: Option<f64>,
    /// Share of time the double-precision units were busy, 0 to 1.
    pub fp64_active: Option<f64>,
    /// Share of time the memory interface was busy, 0 to 1.
    pub dram_active: Option<f64>,
    /// The busier of the video encoder and decoder, 0 to 1.
    pub video_active: Option<f64>,
    /// Board power in watts.
    pub power_watts: Option<f64>,
    /// Traffic over PCI Express, both ways, in bytes per second.
    pub pcie_bytes_per_second: Option<f64>,
    /// Hardware slices (MIG) that readings exist for; `None` when not sliced.
    pub slices: Option<u32>,
    /// Who holds it; several when it is shared.
    pub holders: Vec<Holder>,
    /// Errors, by code.
    pub errors: Vec<GpuError>,
}

impl GpuUsage {
    /// The `gpu` of an average over all cards of an instance.
    pub const ALL_CARDS: &'static str = "all";

    /// Nothing read yet of this card.
    #[must_use]
    pub fn new(gpu: Text, at: Timestamp) -> Self {
        Self {
            gpu,
            uuid: Text::default(),
            at,
            activity: Activity::default(),
            memory_used_bytes: None,
            memory_total_bytes: None,
            memory_used: None,
            tensor_active: None,
            fp64_active: None,
            dram_active: None,
            video_active: None,
            power_watts: None,
            pcie_bytes_per_second: None,
            slices: None,
            holders: Vec::new(),
            errors: Vec::new(),
        }
    }
}

/// What was read of the machine around the accelerators: weak signals, never
/// enough to call an accelerator idle.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostUsage {
    /// When the newest of these readings was taken; `None` when there is none.
    pub at: Option<Timestamp>,
    /// Share of all cores in use, 0 to 1.
    pub cpu: Option<f64>,
    /// Share of main memory in use, 0 to 1.
    pub memory_used: Option<f64>,
    /// Network traffic, both ways, in bytes per second.
    pub network_bytes_per_second: Option<f64>,
}

/// What one source says about one instance.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceUsage {
    /// The cloud.
    pub provider: Provider,
    /// The instance's account.
    pub account: Text,
    /// The instance's region.
    pub region: Text,
    /// The instance's id.
    pub id: Text,
    /// Readings of its cards, oldest first; the same card may be there at
    /// several times. The newest is shown, all count for the history.
    pub gpus: Vec<GpuUsage>,
    /// Readings of the machine.
    pub host: HostUsage,
    /// How late this source usually is; data of this age are still fresh.
    pub lag: Duration,
}

impl InstanceUsage {
    /// The instance's identity within the fleet.
    #[must_use]
    pub fn key(&self) -> (Provider, &str, &str, &str) {
        (self.provider, &self.account, &self.region, &self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_signal_comes_first() {
        let mut activity = Activity::of(Signal::GpuUtil, 1.0);
        activity.set(Signal::SmActive, 0.2);
        assert_eq!(activity.strongest(), Some((Signal::SmActive, 0.2)));
        activity.clear(Signal::SmActive);
        assert_eq!(activity.iter().collect::<Vec<_>>(), [(Signal::GpuUtil, 1.0)]);
    }

    #[test]
    fn rounding_is_mended_and_garbage_is_not_a_reading() {
        assert_eq!(as_ratio(1.0004), Some(1.0));
        assert_eq!(as_ratio(-0.0), Some(0.0));
        for garbage in [f64::NAN, f64::INFINITY, -1.0, 1.2, 100.0, 1e18] {
            assert_eq!(as_ratio(garbage), None, "{garbage}");
            assert!(!Activity::default().set(Signal::GpuUtil, garbage));
        }
        assert!(Activity::default().is_empty());
    }
}
