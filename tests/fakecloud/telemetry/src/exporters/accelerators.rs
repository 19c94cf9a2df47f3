//! The exporters of other makers, and NVIDIA's without DCGM.

use gpuwatch_fakecloud_core::workload::CardTruth;

use crate::{
    host::{Host, Tie},
    source::{Labels, Source, labels},
};

const MIB: f64 = 1024.0 * 1024.0;

type Figure = fn(&Host, &CardTruth) -> f64;

/// One gauge per figure and card.
fn gauges(host: &Host, of_card: impl Fn(u32) -> Labels, figures: &[(&'static str, Figure)]) -> Vec<Source> {
    let mut all = Vec::new();
    for card in 0..host.cards {
        for (name, figure) in figures {
            let figure = *figure;
            all.push(Source::gauge(name, of_card(card), move |host, at| {
                Some(figure(host, &host.workload.card(card, at)))
            }));
        }
    }
    all
}

pub(super) fn nvidia_smi(host: &Host) -> Vec<Source> {
    let uuids: Vec<String> = (0..host.cards).map(|card| host.uuid(card)).collect();
    let uuid = |card: u32| uuids.get(card as usize).map_or("", String::as_str).to_owned();
    let mut all = gauges(
        host,
        |card| labels([("uuid", &uuid(card))]),
        &[
            ("nvidia_smi_utilization_gpu_ratio", |_, card| card.gpu_util),
            ("nvidia_smi_memory_used_bytes", |host, card| {
                (card.memory_used * host.memory).round()
            }),
            ("nvidia_smi_memory_total_bytes", |host, _| host.memory),
            ("nvidia_smi_utilization_encoder_ratio", |_, card| card.encoder),
            ("nvidia_smi_utilization_decoder_ratio", |_, card| card.decoder),
            ("nvidia_smi_power_draw_watts", |host, card| {
                card.power * host.power_limit
            }),
            ("nvidia_smi_mig_mode_current", |_, _| 0.0),
        ],
    );
    for card in 0..host.cards {
        let info = labels([
            ("uuid", &uuid(card)),
            ("index", &card.to_string()),
            ("name", &host.model),
        ]);
        all.push(Source::gauge("nvidia_smi_gpu_info", info, |_, _| Some(1.0)));
        let errors = labels([("uuid", &uuid(card)), ("xid", "31")]);
        all.push(Source::counter(
            "nvidia_smi_xid_errors_total",
            errors,
            move |host, at| {
                let xids = host.workload.card(card, at).xids;
                (xids > 0).then(|| f64::from(u32::try_from(xids).unwrap_or(u32::MAX)))
            },
        ));
    }
    all
}

pub(super) fn amd(host: &Host) -> Vec<Source> {
    let name = if host.tie == Tie::Node {
        host.node()
    } else {
        host.name.clone()
    };
    let own = |card: u32| {
        // Empty in a virtual machine.
        labels([
            ("gpu_id", &card.to_string()),
            ("hostname", &name),
            ("card_model", ""),
            ("serial_number", ""),
            ("gpu_partition_id", "0"),
        ])
    };
    gauges(
        host,
        own,
        &[
            ("gpu_gfx_activity", |_, card| card.engine_active * 100.0),
            ("gpu_umc_activity", |_, card| card.dram_active * 100.0),
            ("gpu_used_vram", |host, card| {
                (card.memory_used * host.memory / MIB).round()
            }),
            ("gpu_total_vram", |host, _| host.memory / MIB),
        ],
    )
}

pub(super) fn ascend(host: &Host) -> Vec<Source> {
    let ids: Vec<String> = (0..host.cards).map(|card| host.uuid(card).to_uppercase()).collect();
    let own = |card: u32| {
        let id = ids.get(card as usize).map_or("", String::as_str);
        labels([
            ("id", &card.to_string()),
            ("model_name", "910B-Ascend-V1"),
            ("vdie_id", id),
        ])
    };
    gauges(
        host,
        own,
        &[
            ("npu_chip_info_utilization", |_, card| card.engine_active * 100.0),
            ("npu_chip_info_hbm_used_memory", |host, card| {
                (card.memory_used * host.memory / MIB).round()
            }),
            ("npu_chip_info_hbm_total_memory", |host, _| host.memory / MIB),
            ("npu_chip_info_power", |host, card| card.power * host.power_limit),
        ],
    )
}

pub(super) fn gaudi(host: &Host) -> Vec<Source> {
    let ids: Vec<String> = (0..host.cards).map(|card| host.uuid(card)).collect();
    let own = |card: u32| {
        let id = ids.get(card as usize).map_or("", String::as_str);
        labels([("device", &card.to_string()), ("uuid", id)])
    };
    gauges(
        host,
        own,
        &[
            ("habanalabs_utilization", |_, card| card.engine_active * 100.0),
            ("habanalabs_memory_used_bytes", |host, card| {
                (card.memory_used * host.memory).round()
            }),
            ("habanalabs_memory_total_bytes", |host, _| host.memory),
            ("habanalabs_power_mW", |host, card| {
                card.power * host.power_limit * 1000.0
            }),
        ],
    )
}

/// Cores are shown only while something has loaded them.
pub(super) fn neuron(host: &Host) -> Vec<Source> {
    const CORES: u32 = 2;
    let own = |more: &[(&str, &str)]| {
        let mut labels = labels([
            ("instance_id", &host.id),
            ("instance_type", &host.instance_type),
            ("region", &host.region),
        ]);
        labels.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        labels
    };
    let devices = host.cards.to_string();
    let hardware = own(&[
        ("neuron_device_count", &devices),
        ("neuroncore_per_device_count", &CORES.to_string()),
    ]);
    let mut all = vec![
        Source::gauge("instance_info", own(&[("instance_name", &host.name)]), |_, _| Some(1.0)),
        Source::gauge("neuron_hardware_info", hardware, |_, _| Some(1.0)),
    ];
    for core in 0..host.cards * CORES {
        let labels = own(&[("neuroncore", &core.to_string()), ("runtime_tag", "1")]);
        all.push(Source::gauge(
            "neuroncore_utilization_ratio",
            labels,
            move |host, at| {
                let card = host.workload.card(core / CORES, at);
                (card.memory_used > 0.0).then_some(card.engine_active)
            },
        ));
    }
    all
}
