//! Accelerator models: the rows of `gpu_models.csv`.

use std::collections::HashSet;

use serde::Serialize;

use super::csv_file::{CatalogError, CsvFile, Table};
use crate::{Text, Vendor};

crate::words! {
    /// How well the figures of a model are supported. A rule that compares two
    /// models makes no claim of money when either side is `low`.
    Confidence, "confidence" {
        /// Two independent sources agree, or one agrees with the arithmetic of
        /// cores and clocks.
        High = "high",
        /// One source, and nothing that contradicts it.
        Medium = "medium",
        /// Unverified, contradictory, or nothing but the memory is known.
        Low = "low",
    }
}

crate::words! {
    /// The work a model is mostly rented for.
    TypicalClass, "typical class" {
        /// Training of large models.
        Training = "training",
        /// Inference.
        Inference = "inference",
        /// Remote desktops, rendering, video.
        Graphics = "graphics",
        /// Double-precision computing.
        Hpc = "hpc",
        /// No one of these.
        Mixed = "mixed",
    }
}

/// One accelerator model: what one unit, as the clouds count it, can do.
///
/// The clouds count GPUs, not boards: a K80 or M60 row is one of the board's
/// two, an A16 row one of its four. An MI250 or Ascend 910C row is the whole
/// package, of which the operating system sees two. Throughput is dense, in
/// the unit of the field's name. `None` is not known, never zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuModel {
    /// Maker.
    pub vendor: Vendor,
    /// The name gpuwatch uses; unique.
    pub model: Text,
    /// Other names of it. An alias of several models is ambiguous, and the
    /// memory decides.
    pub aliases: Vec<Text>,
    /// Generation (`Hopper`); empty when not known.
    pub architecture: Text,
    /// Year of the announcement.
    pub launch_year: Option<u16>,
    /// Nominal memory in GiB. Drivers and some APIs report a little less.
    pub memory_gib: Option<f64>,
    /// Memory bandwidth in GB/s.
    pub memory_bandwidth_gb_s: Option<f64>,
    /// FP64, outside tensor cores, in TFLOPS.
    pub fp64_tflops: Option<f64>,
    /// FP32, outside tensor cores, in TFLOPS.
    pub fp32_tflops: Option<f64>,
    /// TF32 in tensor cores, in TFLOPS.
    pub tf32_tensor_tflops: Option<f64>,
    /// FP16 in tensor cores, in TFLOPS; Volta and Turing have no BF16.
    pub fp16_tensor_tflops: Option<f64>,
    /// BF16 in tensor cores, in TFLOPS.
    pub bf16_tensor_tflops: Option<f64>,
    /// FP8 in tensor cores, in TFLOPS.
    pub fp8_tensor_tflops: Option<f64>,
    /// INT8, in TOPS.
    pub int8_tops: Option<f64>,
    /// Board power in watts, divided by the GPUs on the board.
    pub tdp_w: Option<f64>,
    /// Most MIG instances one card is cut into. 0: the product has no MIG;
    /// `None`: not an NVIDIA product, or not known.
    pub mig_max_instances: Option<u32>,
    /// Whether it has NVLink; `None` also where an optional bridge decides.
    pub nvlink: Option<bool>,
    /// Whether it renders.
    pub graphics_capable: Option<bool>,
    /// What it is mostly rented for.
    pub typical_class: TypicalClass,
    /// Where the figures come from.
    pub source: Text,
    /// How well they are supported.
    pub confidence: Confidence,
}

const COLUMNS: [&str; 21] = [
    "vendor",
    "model",
    "aliases",
    "architecture",
    "launch_year",
    "memory_gib",
    "memory_bandwidth_gb_s",
    "fp64_tflops",
    "fp32_tflops",
    "tf32_tensor_tflops",
    "bf16_tensor_tflops",
    "fp8_tensor_tflops",
    "int8_tops",
    "tdp_w",
    "mig_max_instances",
    "nvlink",
    "graphics_capable",
    "typical_class",
    "source",
    "fp16_tensor_tflops",
    "confidence",
];

/// Reads `gpu_models.csv`.
pub(super) fn read(file: CsvFile<'_>) -> Result<Vec<GpuModel>, CatalogError> {
    let table = Table::read(file, &COLUMNS, None)?;
    let mut names = HashSet::new();
    let mut models = Vec::new();
    for row in table.rows() {
        let model = row.required("model")?;
        if !names.insert(model) {
            return Err(row.duplicate("model"));
        }
        models.push(GpuModel {
            vendor: Vendor::new(row.required("vendor")?),
            model: model.into(),
            aliases: row
                .text("aliases")
                .split('|')
                .map(str::trim)
                .filter(|alias| !alias.is_empty())
                .map(Text::from)
                .collect(),
            architecture: row.text("architecture").into(),
            launch_year: row.optional("launch_year", "a year, or nothing", |text| {
                text.parse().ok().filter(|year: &u16| (2000..2100).contains(year))
            })?,
            memory_gib: row.positive("memory_gib")?,
            memory_bandwidth_gb_s: row.positive("memory_bandwidth_gb_s")?,
            fp64_tflops: row.positive("fp64_tflops")?,
            fp32_tflops: row.positive("fp32_tflops")?,
            tf32_tensor_tflops: row.positive("tf32_tensor_tflops")?,
            fp16_tensor_tflops: row.positive("fp16_tensor_tflops")?,
            bf16_tensor_tflops: row.positive("bf16_tensor_tflops")?,
            fp8_tensor_tflops: row.positive("fp8_tensor_tflops")?,
            int8_tops: row.positive("int8_tops")?,
            tdp_w: row.positive("tdp_w")?,
            mig_max_instances: row.optional("mig_max_instances", "a whole number, or nothing", |text| {
                text.parse().ok()
            })?,
            nvlink: row.flag("nvlink")?,
            graphics_capable: row.flag("graphics_capable")?,
            typical_class: row.word("typical_class", "training, inference, graphics, hpc or mixed")?,
            source: row.required("source")?.into(),
            confidence: row.word("confidence", "high, medium or low")?,
        });
    }
    Ok(models)
}
