//! Which card, on which machine, a series is about.

use gpuwatch_inventory::Provider;

use crate::{answer::Labels, family::Family};

/// Labels under which exporters and scrape configurations name the host.
const HOSTS: [&str; 8] = [
    "Hostname",
    "hostname",
    "node",
    "NodeName",
    "kubernetes_node",
    "node_name",
    "nodename",
    "host",
];

/// Where an exporter says it runs; everything a join can use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Target {
    /// Values of the labels that hold instance ids, strongest first.
    pub ids: Vec<String>,
    /// Account that an explicit label names; empty without one.
    pub account: String,
    /// Host and node names, in lower case.
    pub hosts: Vec<String>,
    /// The scraped address without its port.
    pub address: String,
    /// Whether the exporter runs in a pod, whose address says nothing about
    /// the machine's.
    pub in_pod: bool,
    /// The cluster, where a label says it.
    pub cluster: String,
    /// The scrape target as Prometheus names it.
    pub instance: String,
}

impl Target {
    /// The target of a series.
    #[must_use]
    pub fn of(labels: &Labels, id_labels: &[String]) -> Self {
        let mut ids: Vec<String> = Vec::new();
        for label in id_labels.iter().map(String::as_str).chain(["provider_id"]) {
            let value = labels.get(label);
            if !value.is_empty() && !ids.iter().any(|id| id == value) {
                ids.push(value.to_owned());
            }
        }
        let mut hosts: Vec<String> = Vec::new();
        for label in HOSTS {
            let value = labels.get(label).to_lowercase();
            if !value.is_empty() && !hosts.contains(&value) {
                hosts.push(value);
            }
        }
        let instance = labels.get("instance");
        Self {
            ids,
            account: account(labels).to_owned(),
            hosts,
            address: without_port(instance).to_lowercase(),
            in_pod: !labels.first(&["pod", "exported_pod"]).is_empty(),
            cluster: labels.first(&["cluster", "cluster_name"]).to_owned(),
            instance: instance.to_owned(),
        }
    }

    /// How people find it.
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.ids.first().or(self.hosts.first()).unwrap_or(&self.instance);
        if *name == self.instance || self.instance.is_empty() {
            name.clone()
        } else {
            format!("{name} ({})", self.instance)
        }
    }
}

/// The account that identity labels name: those of service discovery.
fn account(labels: &Labels) -> &str {
    let explicit = labels.get("cloud_account");
    if explicit.is_empty() && labels.get("provider").parse::<Provider>().is_ok() {
        // Elsewhere `account` can mean anything.
        return labels.get("account");
    }
    explicit
}

/// A hardware slice of a card.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slice {
    /// The instance of the slice on its card.
    pub id: String,
    /// Compute slices it has.
    pub size: u32,
    /// Compute slices the whole card has.
    pub of: u32,
}

/// A card, and the slice of it, that a series is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The maker's unique id, in lower case and without a maker's prefix; empty
    /// without one.
    pub uuid: String,
    /// Index within its machine; empty when unknown.
    pub index: String,
    /// The slice, for a series of one.
    pub slice: Option<Slice>,
}

impl Device {
    /// The card of a series; `None` when no label names one, or it is part of
    /// a card that is not to be read.
    #[must_use]
    pub fn of(labels: &Labels, family: &Family) -> Option<Self> {
        if let Some((label, value)) = family.only {
            let found = labels.get(label);
            if !found.is_empty() && found != value {
                return None;
            }
        }
        let full = labels.first(family.uuid);
        let mut index = labels.first(family.index).to_owned();
        if family.word == "tpu" {
            // `<id of the machine>-<number of the chip>`
            full.rsplit_once('-')
                .map_or("", |(_, number)| number)
                .clone_into(&mut index);
        }
        let uuid = full.to_lowercase();
        let uuid = uuid.strip_prefix("gpu-").unwrap_or(&uuid).to_owned();
        if uuid.is_empty() && index.is_empty() {
            return None;
        }
        let profile = labels.first(&["GPU_I_PROFILE", "gpu_i_profile"]);
        let slice = (!profile.is_empty()).then(|| Slice {
            id: labels.first(&["GPU_I_ID", "gpu_i_id"]).to_owned(),
            size: compute_slices(profile),
            of: slices_of_card(labels.first(&["modelName", "model_name"])),
        });
        Some(Self { uuid, index, slice })
    }
}

/// `3g.40gb` has three compute slices. A profile that says nothing counts as
/// one.
fn compute_slices(profile: &str) -> u32 {
    let digits: String = profile.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(1).clamp(1, 7)
}

/// A30 and RTX PRO 6000 are cut into four, all others into seven.
fn slices_of_card(model: &str) -> u32 {
    let model = model.to_uppercase().replace('-', " ");
    let words: Vec<&str> = model.split_whitespace().collect();
    let is_small = words.contains(&"A30") || (words.contains(&"PRO") && words.contains(&"6000"));
    if is_small { 4 } else { 7 }
}

/// The host of `host:port`, `[v6]:port` or a bare host.
fn without_port(instance: &str) -> &str {
    let instance = instance.split_once("://").map_or(instance, |(_, rest)| rest);
    let instance = instance.split_once('/').map_or(instance, |(host, _)| host);
    if let Some(rest) = instance.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(host, _)| host);
    }
    match instance.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => instance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::FAMILIES;

    fn device(family: usize, labels: &[(&str, &str)]) -> Option<Device> {
        Device::of(&labels.iter().copied().collect(), &FAMILIES[family])
    }

    #[test]
    fn both_label_generations_of_dcgm_name_the_same_host() {
        let old: Labels = [("Hostname", "Node-1"), ("UUID", "GPU-AB")].into_iter().collect();
        let new: Labels = [("hostname", "node-1"), ("uuid", "GPU-ab")].into_iter().collect();
        assert_eq!(Target::of(&old, &[]).hosts, Target::of(&new, &[]).hosts);
        assert_eq!(Device::of(&old, &FAMILIES[0]), Device::of(&new, &FAMILIES[0]));
    }

    #[test]
    fn slices_have_the_weight_of_their_profile() {
        let of = |profile, model| {
            let labels = [
                ("UUID", "u"),
                ("GPU_I_PROFILE", profile),
                ("GPU_I_ID", "1"),
                ("modelName", model),
            ];
            let slice = device(0, &labels).and_then(|device| device.slice).expect("a slice");
            (slice.size, slice.of)
        };
        assert_eq!(of("3g.40gb", "NVIDIA H100 80GB HBM3"), (3, 7));
        assert_eq!(of("1g.6gb", "NVIDIA-A30"), (1, 4));
        assert_eq!(of("2g.48gb", "NVIDIA RTX PRO 6000 Blackwell"), (2, 4));
        assert_eq!(of("999g.x", ""), (7, 7));
    }

    #[test]
    fn other_partitions_of_an_amd_card_are_not_read() {
        assert!(device(2, &[("gpu_id", "0"), ("gpu_partition_id", "1")]).is_none());
        assert!(device(2, &[("gpu_id", "0"), ("gpu_partition_id", "0")]).is_some());
        assert!(device(2, &[("gpu_id", "0")]).is_some());
        assert!(device(2, &[]).is_none(), "names no card");
    }

    #[test]
    fn scrape_addresses_lose_their_port() {
        for (instance, host) in [
            ("10.0.0.1:9400", "10.0.0.1"),
            ("[fd00::1]:9400", "fd00::1"),
            ("fd00::1", "fd00::1"),
            ("node-1", "node-1"),
            ("http://node-1:9400/metrics", "node-1"),
            ("", ""),
        ] {
            assert_eq!(without_port(instance), host);
        }
    }
}
