//! Measured use of one accelerator.

use jiff::Timestamp;

crate::words! {
    /// Which measurement a utilisation value is.
    Signal, "signal" {
        /// Share of time the streaming multiprocessors had work (DCGM 1002).
        SmActive = "sm_active",
        /// Share of time the graphics engine was active (DCGM 1001).
        GrEngineActive = "gr_engine_active",
        /// Share of time a kernel ran (NVML utilisation).
        GpuUtil = "gpu_util",
        /// The cloud's own GPU metric.
        Provider = "provider",
    }
}

/// One reading of one accelerator. Absent readings are `None`, never 0.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageSample {
    /// Card within the instance: index or UUID.
    pub gpu: crate::Text,
    /// When the reading was taken, by the source's clock.
    pub at: Timestamp,
    /// Utilisation from 0 to 1, with what it measures.
    pub utilization: Option<(Signal, f64)>,
    /// Occupied share of the card's memory, 0 to 1.
    pub memory_used: Option<f64>,
    /// Tensor pipe active share, 0 to 1.
    pub tensor_active: Option<f64>,
    /// Board power in watts.
    pub power_watts: Option<f64>,
}
