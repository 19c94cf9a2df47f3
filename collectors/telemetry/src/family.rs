//! Exporters of accelerator counters: what their metrics are called, what they
//! measure, and which labels name the card.
//!
//! Names and units are those of dcgm-exporter 4.5, `nvidia_gpu_exporter` 1.9,
//! AMD device-metrics-exporter, Ascend npu-exporter 3 to 7, the Gaudi metric
//! exporter, neuron-monitor-prometheus and Google's device plugins.

use gpuwatch_inventory::Signal;

const MIB: f64 = 1024.0 * 1024.0;
const PERCENT: f64 = 0.01;

/// What a metric measures of a card, in base units once scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// A utilisation signal, 0 to 1.
    Signal(Signal),
    /// Bytes of memory in use.
    MemoryUsed,
    /// Bytes of memory free.
    MemoryFree,
    /// Bytes of memory that the driver keeps.
    MemoryReserved,
    /// Bytes of memory there are.
    MemoryTotal,
    /// Share of memory in use.
    MemoryRatio,
    /// Share of time the matrix units were busy.
    Tensor,
    /// Share of time the double-precision units were busy.
    Fp64,
    /// Share of time the memory interface was busy.
    Dram,
    /// Share of time the video encoder was busy.
    Encoder,
    /// Share of time the video decoder was busy.
    Decoder,
    /// Watts.
    Power,
    /// Bytes per second sent over PCI Express.
    PcieSent,
    /// Bytes per second received over PCI Express.
    PcieReceived,
    /// The last error code, for ever; label `err_code` or the value.
    LastError,
    /// Errors within a window that moves, by the label `xid`.
    RecentErrors,
    /// Errors since the driver was loaded, by the label `xid`.
    TotalErrors,
    /// 1 when the card is cut into slices.
    SliceMode,
    /// Nothing but labels: the card's index.
    Info,
}

/// One metric of a family.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name without the family's optional prefix.
    pub name: &'static str,
    /// What it measures.
    pub quantity: Quantity,
    /// What its value is multiplied by.
    pub scale: f64,
}

/// An exporter.
#[derive(Debug)]
pub struct Family {
    /// The word that documents and metrics call it by.
    pub word: &'static str,
    /// A prefix that some installations put before every name.
    pub prefix: &'static str,
    /// A matcher without which its names would match others' metrics.
    pub matcher: &'static str,
    /// What it exports that is of use.
    pub metrics: &'static [Metric],
    /// Labels that may hold the maker's unique id of the card.
    pub uuid: &'static [&'static str],
    /// Labels that may hold the card's index.
    pub index: &'static [&'static str],
    /// Cards that are not whole (a label and the value it must have).
    pub only: Option<(&'static str, &'static str)>,
}

const fn metric(name: &'static str, quantity: Quantity, scale: f64) -> Metric {
    Metric { name, quantity, scale }
}

const fn signal(name: &'static str, signal: Signal, scale: f64) -> Metric {
    metric(name, Quantity::Signal(signal), scale)
}

/// Every family, those with the stronger signals first.
pub const FAMILIES: &[Family] = &[
    Family {
        word: "dcgm",
        prefix: "",
        matcher: "",
        metrics: &[
            signal("DCGM_FI_PROF_SM_ACTIVE", Signal::SmActive, 1.0),
            signal("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Signal::GrEngineActive, 1.0),
            signal("DCGM_FI_DEV_GPU_UTIL", Signal::GpuUtil, PERCENT),
            metric("DCGM_FI_DEV_FB_USED", Quantity::MemoryUsed, MIB),
            metric("DCGM_FI_DEV_FB_FREE", Quantity::MemoryFree, MIB),
            metric("DCGM_FI_DEV_FB_RESERVED", Quantity::MemoryReserved, MIB),
            metric("DCGM_FI_DEV_FB_TOTAL", Quantity::MemoryTotal, MIB),
            metric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Quantity::Tensor, 1.0),
            metric("DCGM_FI_PROF_PIPE_FP64_ACTIVE", Quantity::Fp64, 1.0),
            metric("DCGM_FI_PROF_DRAM_ACTIVE", Quantity::Dram, 1.0),
            metric("DCGM_FI_DEV_ENC_UTIL", Quantity::Encoder, PERCENT),
            metric("DCGM_FI_DEV_DEC_UTIL", Quantity::Decoder, PERCENT),
            metric("DCGM_FI_DEV_POWER_USAGE", Quantity::Power, 1.0),
            metric("DCGM_FI_PROF_PCIE_TX_BYTES", Quantity::PcieSent, 1.0),
            metric("DCGM_FI_PROF_PCIE_RX_BYTES", Quantity::PcieReceived, 1.0),
            metric("DCGM_FI_DEV_XID_ERRORS", Quantity::LastError, 1.0),
            metric("DCGM_EXP_XID_ERRORS_COUNT", Quantity::RecentErrors, 1.0),
        ],
        uuid: &["UUID", "uuid", "gpu_uuid"],
        index: &["gpu"],
        only: None,
    },
    Family {
        word: "nvidia_smi",
        prefix: "",
        matcher: "",
        metrics: &[
            metric("nvidia_smi_gpu_info", Quantity::Info, 1.0),
            metric("nvidia_smi_mig_mode_current", Quantity::SliceMode, 1.0),
            signal("nvidia_smi_utilization_gpu_ratio", Signal::GpuUtil, 1.0),
            metric("nvidia_smi_memory_used_bytes", Quantity::MemoryUsed, 1.0),
            metric("nvidia_smi_memory_total_bytes", Quantity::MemoryTotal, 1.0),
            metric("nvidia_smi_utilization_encoder_ratio", Quantity::Encoder, 1.0),
            metric("nvidia_smi_utilization_decoder_ratio", Quantity::Decoder, 1.0),
            metric("nvidia_smi_power_draw_watts", Quantity::Power, 1.0),
            metric("nvidia_smi_xid_errors_total", Quantity::TotalErrors, 1.0),
        ],
        uuid: &["uuid"],
        index: &["index"],
        only: None,
    },
    Family {
        word: "amd",
        prefix: "amd_",
        matcher: "",
        metrics: &[
            signal("gpu_gfx_activity", Signal::Vendor, PERCENT),
            metric("gpu_umc_activity", Quantity::Dram, PERCENT),
            metric("gpu_used_vram", Quantity::MemoryUsed, MIB),
            metric("gpu_total_vram", Quantity::MemoryTotal, MIB),
            metric("gpu_prof_tensor_active_percent", Quantity::Tensor, PERCENT),
            metric("gpu_package_power", Quantity::Power, 1.0),
            metric("gpu_average_package_power", Quantity::Power, 1.0),
            metric("gpu_power_usage", Quantity::Power, 1.0),
        ],
        uuid: &["gpu_uuid"],
        index: &["gpu_id"],
        // In partitioned mode only the first partition carries the activity;
        // the others show zero or nothing.
        only: Some(("gpu_partition_id", "0")),
    },
    Family {
        word: "ascend",
        prefix: "",
        matcher: "",
        metrics: &[
            signal("npu_chip_info_utilization", Signal::Vendor, PERCENT),
            metric("npu_chip_info_hbm_used_memory", Quantity::MemoryUsed, MIB),
            metric("npu_chip_info_hbm_total_memory", Quantity::MemoryTotal, MIB),
            metric("npu_chip_info_power", Quantity::Power, 1.0),
        ],
        uuid: &["vdie_id"],
        index: &["id"],
        only: None,
    },
    Family {
        word: "gaudi",
        prefix: "",
        matcher: "",
        metrics: &[
            signal("habanalabs_utilization", Signal::Vendor, PERCENT),
            metric("habanalabs_memory_used_bytes", Quantity::MemoryUsed, 1.0),
            metric("habanalabs_memory_total_bytes", Quantity::MemoryTotal, 1.0),
            metric("habanalabs_power_mW", Quantity::Power, 0.001),
        ],
        uuid: &["uuid", "UUID"],
        index: &["device"],
        only: None,
    },
    Family {
        word: "tpu",
        prefix: "",
        matcher: "make=\"cloud-tpu\"",
        metrics: &[
            signal("tensorcore_utilization", Signal::Vendor, PERCENT),
            signal("duty_cycle", Signal::GpuUtil, PERCENT),
            metric("memory_bandwidth_utilization", Quantity::Dram, PERCENT),
            metric("memory_used", Quantity::MemoryUsed, 1.0),
            metric("memory_total", Quantity::MemoryTotal, 1.0),
        ],
        uuid: &["accelerator_id"],
        index: &[],
        only: None,
    },
    Family {
        word: "gke",
        prefix: "",
        matcher: "",
        metrics: &[
            signal("duty_cycle_gpu_node", Signal::GpuUtil, PERCENT),
            metric("memory_used_gpu_node", Quantity::MemoryUsed, 1.0),
            metric("memory_total_gpu_node", Quantity::MemoryTotal, 1.0),
        ],
        uuid: &["accelerator_id"],
        index: &[],
        only: None,
    },
];

impl Family {
    /// The metric of this name, if it is one of the family's.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        let plain = name.strip_prefix(self.prefix).unwrap_or(name);
        self.metrics.iter().find(|metric| metric.name == plain)
    }

    /// A regular expression for its names.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.metrics.iter().map(|metric| metric.name).collect();
        if self.prefix.is_empty() {
            names.join("|")
        } else {
            format!("(?:{})?(?:{})", self.prefix, names.join("|"))
        }
    }

    /// The label that series are divided by when there are too many for one
    /// query: random hexadecimal ids where there are any.
    #[must_use]
    pub fn shard_label(&self) -> &'static str {
        self.uuid.first().copied().unwrap_or("instance")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_family_with_or_without_its_prefix() {
        let of = |name: &str| {
            let families = FAMILIES.iter().filter(|family| family.metric(name).is_some());
            families.map(|family| family.word).collect::<Vec<_>>()
        };
        assert_eq!(of("DCGM_FI_DEV_GPU_UTIL"), ["dcgm"]);
        assert_eq!(of("gpu_gfx_activity"), ["amd"]);
        assert_eq!(of("amd_gpu_gfx_activity"), ["amd"]);
        assert!(of("amd_DCGM_FI_DEV_GPU_UTIL").is_empty());
        for family in FAMILIES {
            for metric in family.metrics {
                assert_eq!(of(metric.name), [family.word], "{}", metric.name);
            }
        }
    }
}
