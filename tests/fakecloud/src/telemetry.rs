//! The machines of the simulated clouds as their exporters see them.

use gpuwatch_fakecloud_core::{InstanceTruth, random::fnv1a, workload::Workload};
use gpuwatch_fakecloud_telemetry::{Exporter, Host, Tie};

use crate::FakeCloud;

/// Every running machine, with the workload that its id gives it, the exporter
/// that its accelerators have, and a way to tie the two.
#[must_use]
pub fn hosts(clouds: &FakeCloud) -> Vec<Host> {
    let mut hosts = of_cloud("aws", &clouds.aws().truth());
    hosts.extend(of_cloud("gcp", &clouds.gcp().truth()));
    hosts.extend(of_cloud("azure", &clouds.azure().truth()));
    hosts.extend(of_cloud("aliyun", &clouds.aliyun().truth()));
    hosts.extend(of_cloud("tencent", &clouds.tencent().truth()));
    hosts
}

/// The same of one cloud's truth.
#[must_use]
pub fn of_cloud(provider: &str, truth: &[InstanceTruth]) -> Vec<Host> {
    let running = truth.iter().filter(|instance| instance.state == "running");
    running.filter_map(|instance| of_instance(provider, instance)).collect()
}

fn of_instance(provider: &str, instance: &InstanceTruth) -> Option<Host> {
    let kind = instance.instance_type.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    // The exporters of these are not simulated: TPUs, and cards that have none.
    let is_tpu = provider == "gcp" && kind.starts_with('v') || kind.starts_with("ct");
    if is_tpu || is(&["dl2q", "vt1"]) {
        return None;
    }
    let choice = fnv1a(instance.id.as_bytes());
    let exporter = if is(&["trn", "inf"]) {
        Exporter::Neuron
    } else if is(&["dl1"]) {
        Exporter::Gaudi
    } else if is(&["g4ad", "mi300", "nv4as_v4", "nv8as_v4", "nv16as_v4", "nv32as_v4"]) {
        Exporter::Amd
    } else {
        match choice % 5 {
            0 => Exporter::NvidiaSmi,
            1 | 2 => Exporter::Dcgm,
            _ => Exporter::DcgmNew,
        }
    };
    // Some names of the fleet are hostile texts that no node can have.
    let is_name = !instance.name.contains(['/', ' ']);
    let tie = if (choice / 5).is_multiple_of(3) || !is_name {
        Tie::Labels
    } else {
        Tie::Node
    };
    // A fraction of a card is a card to its driver.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of cards")]
    let cards = instance.gpus.unwrap_or(1.0).ceil().clamp(1.0, 64.0) as u32;
    let mut host = Host::new(
        provider,
        &instance.id,
        exporter,
        tie,
        cards,
        Workload::of_instance(&instance.id),
    );
    host.account.clone_from(&instance.account);
    host.region.clone_from(&instance.region);
    host.zone.clone_from(&instance.zone);
    host.name.clone_from(&instance.name);
    host.instance_type.clone_from(&instance.instance_type);
    Some(host)
}
