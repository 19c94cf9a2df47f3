//! What a correct reader must make of a machine's exporter.

use jiff::Timestamp;

use crate::host::{Exporter, Host};

/// The strongest signal of a card and its value, and its memory in use where
/// the exporter says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The `gpu` label.
    pub gpu: String,
    /// The `signal` label.
    pub signal: &'static str,
    /// 0 to 1.
    pub ratio: f64,
    /// Share of memory in use; slices report theirs in their own way.
    pub memory: Option<f64>,
}

/// The cards of a machine as they must be read of samples taken at a time.
#[must_use]
pub fn expected(host: &Host, at: Timestamp) -> Vec<Expected> {
    if host.exporter == Exporter::Neuron {
        let busy = (0..host.cards).map(|card| host.workload.card(card, at));
        let sum: f64 = busy
            .filter(|card| card.memory_used > 0.0)
            .map(|card| card.engine_active)
            .sum();
        return vec![Expected {
            gpu: "all".to_owned(),
            signal: "vendor",
            ratio: sum / f64::from(host.cards.max(1)),
            memory: None,
        }];
    }
    let of_card = |card: u32| {
        let truth = host.workload.card(card, at);
        let (signal, ratio) = match host.exporter {
            Exporter::Dcgm | Exporter::DcgmNew if host.is_sliced() => {
                let slices = host.workload.slices(card, at);
                let busy: f64 = slices.iter().map(|(_, size, busy)| f64::from(*size) * busy).sum();
                ("gr_engine_active", busy / 7.0)
            }
            Exporter::Dcgm | Exporter::DcgmNew => ("sm_active", truth.sm_active),
            Exporter::NvidiaSmi => ("gpu_util", truth.gpu_util),
            Exporter::Amd | Exporter::Ascend | Exporter::Gaudi | Exporter::Neuron => ("vendor", truth.engine_active),
        };
        Expected {
            gpu: card.to_string(),
            signal,
            ratio,
            memory: (!host.is_sliced()).then_some(truth.memory_used),
        }
    };
    (0..host.cards).map(of_card).collect()
}
