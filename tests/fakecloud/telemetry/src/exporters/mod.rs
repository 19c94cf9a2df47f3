//! What each exporter shows. Names, units and labels are those of the real
//! ones, their traps included.

mod accelerators;
mod dcgm;
mod kubernetes;
mod node;

use crate::{
    host::{Exporter, Host},
    source::Source,
};

pub use kubernetes::nodes;

/// The series of a machine's GPU exporter.
#[must_use]
pub fn gpu(host: &Host) -> Vec<Source> {
    match host.exporter {
        Exporter::Dcgm => dcgm::series(host, "Hostname"),
        Exporter::DcgmNew => dcgm::series(host, "hostname"),
        Exporter::NvidiaSmi => accelerators::nvidia_smi(host),
        Exporter::Amd => accelerators::amd(host),
        Exporter::Ascend => accelerators::ascend(host),
        Exporter::Gaudi => accelerators::gaudi(host),
        Exporter::Neuron => accelerators::neuron(host),
    }
}

/// The series of a machine's `node_exporter`.
#[must_use]
pub fn machine(host: &Host) -> Vec<Source> {
    node::series(host)
}

/// The job and port of a GPU exporter.
#[must_use]
pub const fn job(exporter: Exporter) -> (&'static str, u16) {
    match exporter {
        Exporter::Dcgm | Exporter::DcgmNew => ("dcgm-exporter", 9400),
        Exporter::NvidiaSmi => ("nvidia-gpu-exporter", 9835),
        Exporter::Amd => ("device-metrics-exporter", 5000),
        Exporter::Ascend => ("npu-exporter", 8082),
        Exporter::Gaudi => ("metric-exporter", 41611),
        Exporter::Neuron => ("neuron-monitor", 8000),
    }
}

/// Whether the exporter's own labels name the machine it runs on.
#[must_use]
pub const fn names_its_host(exporter: Exporter) -> bool {
    matches!(
        exporter,
        Exporter::Dcgm | Exporter::DcgmNew | Exporter::Amd | Exporter::Neuron
    )
}
