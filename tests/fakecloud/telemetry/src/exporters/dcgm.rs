//! dcgm-exporter.

use gpuwatch_fakecloud_core::workload::{CardTruth, Shape};
use jiff::{SignedDuration, Timestamp};

use crate::{
    host::{Host, Tie},
    source::{Labels, Source},
};

const MIB: f64 = 1024.0 * 1024.0;

/// Pods that share a card when it is shared.
const SHARING_PODS: u32 = 3;

type Figure = fn(&Host, &CardTruth) -> f64;

/// What is shown of a whole card.
const WHOLE: [(&str, Figure); 12] = [
    ("DCGM_FI_DEV_GPU_UTIL", |_, card| (card.gpu_util * 100.0).round()),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", |_, card| card.engine_active),
    ("DCGM_FI_PROF_SM_ACTIVE", |_, card| card.sm_active),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", |_, card| card.tensor_active),
    ("DCGM_FI_PROF_DRAM_ACTIVE", |_, card| card.dram_active),
    ("DCGM_FI_DEV_ENC_UTIL", |_, card| (card.encoder * 100.0).round()),
    ("DCGM_FI_DEV_DEC_UTIL", |_, card| (card.decoder * 100.0).round()),
    ("DCGM_FI_DEV_FB_USED", |host, card| {
        (card.memory_used * host.memory / MIB).round()
    }),
    ("DCGM_FI_DEV_FB_FREE", |host, card| {
        (host.memory / MIB).round() - (card.memory_used * host.memory / MIB).round() - RESERVED_MIB
    }),
    ("DCGM_FI_DEV_FB_RESERVED", |_, _| RESERVED_MIB),
    ("DCGM_FI_DEV_POWER_USAGE", |host, card| card.power * host.power_limit),
    ("DCGM_FI_PROF_PCIE_TX_BYTES", |_, card| card.pcie_bytes_per_second),
];

/// Framebuffer that the driver keeps.
const RESERVED_MIB: f64 = 500.0;

/// Utilisation that NVML does not have for slices.
const NOT_OF_SLICES: &str = "DCGM_FI_DEV_GPU_UTIL";

/// Every series; `host_label` is the generation's name of the host label.
pub(super) fn series(host: &Host, host_label: &str) -> Vec<Source> {
    let mut all = Vec::new();
    for card in 0..host.cards {
        let own = labels(host, card, host_label);
        for (name, figure) in WHOLE {
            if host.is_sliced() && (name == NOT_OF_SLICES || name.starts_with("DCGM_FI_PROF") || name.contains("_FB_"))
            {
                continue;
            }
            for pod in pods(host, card) {
                let mut labels = own.clone();
                labels.extend(pod);
                all.push(Source::gauge(name, labels, move |host, at| {
                    Some(figure(host, &host.workload.card(card, at)))
                }));
            }
        }
        if host.is_sliced() {
            all.extend(slices(host, card, &own));
        }
        all.extend(errors(card, &own));
    }
    all
}

fn labels(host: &Host, card: u32, host_label: &str) -> Labels {
    let mut labels = crate::source::labels([
        ("gpu", &card.to_string()),
        ("UUID", &format!("GPU-{}", host.uuid(card))),
        ("pci_bus_id", &format!("00000000:{card:02X}:00.0")),
        ("device", &format!("nvidia{card}")),
        ("modelName", &host.model),
        ("DCGM_FI_DRIVER_VERSION", "580.95.05"),
    ]);
    let name = if host.tie == Tie::Node {
        host.node()
    } else {
        host.name.clone()
    };
    labels.insert(host_label.to_owned(), name);
    labels
}

/// The labels of whoever holds the card: none, one pod, or several.
fn pods(host: &Host, card: u32) -> Vec<Labels> {
    if host.tie != Tie::Node || host.workload.shape == Shape::Empty {
        return vec![Labels::new()];
    }
    let count = if host.workload.shape == Shape::TimeSliced {
        SHARING_PODS
    } else {
        1
    };
    let pod = |number: u32| {
        crate::source::labels([
            ("namespace", "ml"),
            ("pod", &format!("work-{card}-{number}")),
            ("container", "main"),
        ])
    };
    (0..count).map(pod).collect()
}

fn slices(host: &Host, card: u32, own: &Labels) -> Vec<Source> {
    let mut all = Vec::new();
    let names = [
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
    ];
    for (number, (profile, size, _)) in host
        .workload
        .slices(card, Timestamp::UNIX_EPOCH)
        .into_iter()
        .enumerate()
    {
        let mut labels = own.clone();
        labels.insert("GPU_I_PROFILE".to_owned(), profile.to_owned());
        labels.insert("GPU_I_ID".to_owned(), (number + 1).to_string());
        for name in names {
            all.push(Source::gauge(name, labels.clone(), move |host, at| {
                let busy = host.workload.slices(card, at).get(number).map(|(_, _, busy)| *busy)?;
                let memory = host.memory / MIB * f64::from(size) / 8.0;
                let used = (memory * if busy > 0.0 { 0.5 } else { 0.01 }).round();
                Some(match name {
                    "DCGM_FI_DEV_FB_USED" => used,
                    "DCGM_FI_DEV_FB_FREE" => memory.round() - used,
                    _ => busy,
                })
            }));
        }
    }
    all
}

fn errors(card: u32, own: &Labels) -> Vec<Source> {
    let mut last = own.clone();
    last.insert("err_code".to_owned(), "31".to_owned());
    let mut window = own.clone();
    window.insert("xid".to_owned(), "31".to_owned());
    window.insert("window_size_in_ms".to_owned(), "300000".to_owned());
    vec![
        Source::gauge("DCGM_FI_DEV_XID_ERRORS", last, move |host, at| {
            Some(if host.workload.card(card, at).xids > 0 {
                31.0
            } else {
                0.0
            })
        }),
        Source::gauge("DCGM_EXP_XID_ERRORS_COUNT", window, move |host, at| {
            if host.workload.shape != Shape::XidErrors {
                return None;
            }
            let before = at.checked_sub(SignedDuration::from_mins(5)).ok()?;
            let count = host.workload.card(card, at).xids - host.workload.card(card, before).xids;
            Some(f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
        }),
    ]
}
