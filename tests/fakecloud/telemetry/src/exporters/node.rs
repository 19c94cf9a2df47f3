//! `node_exporter`: what gpuwatch reads of it.

use crate::{
    host::{Counter, Host},
    source::{Source, labels},
};

/// Main memory of every machine.
const MEMORY: f64 = 512.0 * 1024.0 * 1024.0 * 1024.0;

pub(super) fn series(host: &Host) -> Vec<Source> {
    let mut all = Vec::new();
    let cores = host.cores;
    for cpu in 0..cores {
        let name = cpu.to_string();
        all.push(Source::counter(
            "node_cpu_seconds_total",
            labels([("cpu", &name), ("mode", "user")]),
            move |host, at| Some(host.counted(Counter::Busy, at) / f64::from(cores)),
        ));
        all.push(Source::counter(
            "node_cpu_seconds_total",
            labels([("cpu", &name), ("mode", "idle")]),
            move |host, at| {
                // Whatever was not busy since the same moment.
                #[allow(clippy::cast_precision_loss, reason = "seconds fit")]
                let seconds = (at.as_second() - 1_700_000_000) as f64;
                Some(seconds - host.counted(Counter::Busy, at) / f64::from(cores))
            },
        ));
    }
    all.push(Source::gauge("node_memory_MemTotal_bytes", labels([]), |_, _| {
        Some(MEMORY)
    }));
    all.push(Source::gauge(
        "node_memory_MemAvailable_bytes",
        labels([]),
        |host, at| Some(MEMORY * (1.0 - host.workload.host(at).memory_used)),
    ));
    // The bridge carries the same bytes again.
    for device in ["eth0", "docker0"] {
        let own = || labels([("device", device)]);
        all.push(Source::counter(
            "node_network_receive_bytes_total",
            own(),
            |host, at| Some(host.counted(Counter::Received, at)),
        ));
        all.push(Source::counter(
            "node_network_transmit_bytes_total",
            own(),
            |host, at| Some(host.counted(Counter::Sent, at)),
        ));
    }
    all
}
