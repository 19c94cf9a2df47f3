//! Machines with accelerators, and what measures them.

use std::{collections::BTreeMap, sync::Mutex};

use gpuwatch_fakecloud_core::{
    random::{Random, fnv1a},
    workload::{SLOT_SECONDS, Shape, Workload},
};
use jiff::Timestamp;

/// The exporter on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exporter {
    /// dcgm-exporter up to 4.5, with the label `Hostname`.
    Dcgm,
    /// dcgm-exporter after that, with the label `hostname`.
    DcgmNew,
    /// `nvidia_gpu_exporter`.
    NvidiaSmi,
    /// AMD device-metrics-exporter in a virtual machine.
    Amd,
    /// Ascend npu-exporter 5 and later.
    Ascend,
    /// Intel Gaudi metric exporter.
    Gaudi,
    /// neuron-monitor-prometheus.
    Neuron,
}

/// How a scrape of the machine's exporter can be tied to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// A Kubernetes node with a provider id; the exporter runs in a pod.
    Node,
    /// Scraped at the machine's own address.
    Address,
    /// Labels of the target name the instance.
    Labels,
}

/// One machine.
#[derive(Debug)]
pub struct Host {
    /// The cloud's word.
    pub provider: String,
    /// Account.
    pub account: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// The id as the cloud's API shows it.
    pub id: String,
    /// Machine name.
    pub name: String,
    /// Private address; empty when unknown.
    pub address: String,
    /// Accelerator model.
    pub model: String,
    /// Instance type.
    pub instance_type: String,
    /// Cards.
    pub cards: u32,
    /// Memory of a card in bytes.
    pub memory: f64,
    /// Power limit of a card in watts.
    pub power_limit: f64,
    /// Processors.
    pub cores: u32,
    /// The exporter.
    pub exporter: Exporter,
    /// How it can be tied to its instance.
    pub tie: Tie,
    /// What runs on it.
    pub workload: Workload,
    /// Integrals of rates by slot, so that counters cost one addition a slot.
    integrals: Mutex<BTreeMap<(Counter, i64), f64>>,
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Seconds that all cores together were busy.
    Busy,
    /// Bytes received.
    Received,
    /// Bytes sent.
    Sent,
}

/// Counters start so many slots before the first time that is asked for.
const COUNTED_SLOTS: i64 = 16 * 24 * 12;

impl Host {
    /// A machine without anything that is not said here.
    #[must_use]
    pub fn new(provider: &str, id: &str, exporter: Exporter, tie: Tie, cards: u32, workload: Workload) -> Self {
        Self {
            provider: provider.to_owned(),
            account: String::new(),
            region: String::new(),
            zone: String::new(),
            id: id.to_owned(),
            name: id.to_owned(),
            address: String::new(),
            model: "NVIDIA H100 80GB HBM3".to_owned(),
            instance_type: String::new(),
            cards,
            memory: 80.0 * 1024.0 * 1024.0 * 1024.0,
            power_limit: 700.0,
            cores: 8,
            exporter,
            tie,
            workload,
            integrals: Mutex::default(),
        }
    }

    /// The maker's id of a card, the same for the same machine and card.
    #[must_use]
    pub fn uuid(&self, card: u32) -> String {
        let mut random = Random::stream(u64::from(card), &self.id);
        let mut part = |digits| random.hex(digits);
        format!("{}-{}-{}-{}-{}", part(8), part(4), part(4), part(4), part(12))
    }

    /// Name of its Kubernetes node.
    #[must_use]
    pub fn node(&self) -> String {
        format!("node-{:012x}", fnv1a(self.id.as_bytes()) & 0xffff_ffff_ffff)
    }

    /// `spec.providerID` of its node.
    #[must_use]
    pub fn provider_id(&self) -> String {
        match self.provider.as_str() {
            "aws" => format!("aws:///{}/{}", self.zone, self.id),
            "gcp" => format!("gce://{}/{}/{}", self.account, self.zone, self.name),
            "azure" => format!("azure://{}", self.id),
            "aliyun" => format!("{}.{}", self.region, self.id),
            _ => format!("qcloud:///100003/{}", self.id),
        }
    }

    /// The address of the exporter's pod, or of the machine.
    #[must_use]
    pub fn scraped_at(&self) -> String {
        if self.tie == Tie::Address && !self.address.is_empty() {
            return self.address.clone();
        }
        let hash = fnv1a(self.id.as_bytes());
        format!("100.{}.{}.{}", 64 + hash % 64, hash >> 8 & 255, hash >> 16 & 255)
    }

    /// Whether the cards are cut into slices.
    #[must_use]
    pub fn is_sliced(&self) -> bool {
        self.workload.shape == Shape::MigShared
    }

    /// A counter's value at a time.
    pub fn counted(&self, counter: Counter, at: Timestamp) -> f64 {
        let second = at.as_second();
        let slot = second.div_euclid(SLOT_SECONDS);
        #[allow(clippy::cast_precision_loss, reason = "seconds of a slot")]
        let into = (second - slot * SLOT_SECONDS) as f64;
        self.integral(counter, slot) + self.rate(counter, slot) * into
    }

    fn rate(&self, counter: Counter, slot: i64) -> f64 {
        let Ok(at) = Timestamp::from_second(slot * SLOT_SECONDS) else {
            return 0.0;
        };
        let truth = self.workload.host(at);
        match counter {
            Counter::Busy => truth.cpu * f64::from(self.cores),
            Counter::Received => truth.received,
            Counter::Sent => truth.sent,
        }
    }

    /// The integral up to the beginning of a slot.
    fn integral(&self, counter: Counter, slot: i64) -> f64 {
        let mut integrals = self.integrals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let known = integrals
            .range((counter, i64::MIN)..=(counter, slot))
            .next_back()
            .map(|((_, slot), sum)| (*slot, *sum));
        let (mut at, mut sum) = known.unwrap_or((slot - COUNTED_SLOTS, 0.0));
        #[allow(clippy::cast_precision_loss, reason = "seconds of a slot")]
        let seconds = SLOT_SECONDS as f64;
        while at < slot {
            sum += self.rate(counter, at) * seconds;
            at += 1;
        }
        integrals.insert((counter, slot), sum);
        sum
    }
}
