//! `node_exporter`: processors, memory and network of the machines. Weak
//! signals: they explain what a GPU does, they never say that it is idle.

use gpuwatch_inventory::{HostUsage, as_ratio};
use jiff::Timestamp;

use crate::{answer::Sample, select::selector};

/// The metric by which the exporter is known to be there. Others are not
/// counted: a machine has hundreds of series of its processors.
pub const PROBE: &str = "node_memory_MemAvailable_bytes";

/// Interfaces that carry the same bytes again, or none that left the machine.
const VIRTUAL: &str = "device!~\"lo|veth.*|docker.*|cni.*|cali.*|flannel.*|cilium.*|lxc.*|br-.*|virbr.*|tun.*|kube.*\"";

/// A weak signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weak {
    /// Share of all cores in use.
    Cpu,
    /// Share of main memory in use.
    Memory,
    /// Bytes per second, both ways.
    Network,
}

impl Weak {
    /// Notes a reading.
    pub fn set(self, host: &mut HostUsage, sample: Sample) {
        let ratio = as_ratio(sample.value);
        let place = match self {
            Self::Cpu => &mut host.cpu,
            Self::Memory => &mut host.memory_used,
            Self::Network => &mut host.network_bytes_per_second,
        };
        let value = if self == Self::Network {
            (sample.value >= 0.0).then_some(sample.value)
        } else {
            ratio
        };
        if let (Some(value), Ok(at)) = (
            value.filter(|value| value.is_finite()),
            Timestamp::from_millisecond(sample.at),
        ) {
            *place = Some(value);
            host.at = host.at.max(Some(at));
        }
    }
}

/// What to ask. The answers keep every label that a join can use.
#[must_use]
pub fn queries(matchers: &[&str]) -> [(Weak, String); 3] {
    let select = |name: &str, more: &[&str]| selector(name, matchers.iter().copied().chain(more.iter().copied()));
    let rate = |name: &str, more: &[&str]| format!("rate({}[5m])", select(name, more));
    let cpu = rate("node_cpu_seconds_total", &["mode=\"idle\""]);
    let (available, total) = (
        select("node_memory_MemAvailable_bytes", &[]),
        select("node_memory_MemTotal_bytes", &[]),
    );
    let received = rate("node_network_receive_bytes_total", &[VIRTUAL]);
    let sent = rate("node_network_transmit_bytes_total", &[VIRTUAL]);
    [
        (Weak::Cpu, format!("1 - avg without (cpu, mode) ({cpu})")),
        (Weak::Memory, format!("1 - {available} / {total}")),
        (
            Weak::Network,
            format!("sum without (device) ({received}) + sum without (device) ({sent})"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_matchers_are_in_every_selector() {
        for (weak, query) in queries(&["cluster=\"a\""]) {
            let selectors = query.matches('{').count();
            assert_eq!(query.matches("{cluster=\"a\"").count(), selectors, "{weak:?} {query}");
            assert!(selectors > 0);
        }
    }

    #[test]
    fn what_is_no_ratio_is_no_reading() {
        let mut host = HostUsage::default();
        Weak::Cpu.set(&mut host, Sample { at: 1000, value: 40.0 });
        Weak::Network.set(
            &mut host,
            Sample {
                at: 1000,
                value: f64::NAN,
            },
        );
        assert_eq!(host, HostUsage::default());
        Weak::Cpu.set(&mut host, Sample { at: 1000, value: 0.4 });
        assert_eq!(
            (host.cpu, host.at.map(Timestamp::as_millisecond)),
            (Some(0.4), Some(1000))
        );
    }
}
