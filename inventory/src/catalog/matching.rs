//! Which model a name means.
//!
//! Names come from APIs, exporters and bills: `NVIDIA A100-SXM4-80GB`,
//! `nvidia-tesla-t4`, `NVidia K2`, `GRID T4-16Q`. A name is reduced to its
//! letters and digits and compared as a whole with the reduced names of the
//! catalogue, never as a part: `L40` is in `L40S` and `H20` in `H200`.

use std::collections::{HashMap, HashSet};

use super::models::GpuModel;
use crate::Vendor;

/// Words of makers and brands, which some sources write and others leave out.
const MAKER_WORDS: [&str; 6] = ["nvidia", "tesla", "geforce", "amd", "instinct", "radeon"];

/// Words that say nothing about the model. They are dropped only from a name
/// that does not match with them, because a few aliases contain one.
const NEUTRAL_WORDS: [&str; 11] = [
    "accelerator",
    "card",
    "core",
    "corporation",
    "gpu",
    "gpus",
    "graphics",
    "grid",
    "tensor",
    "vgpu",
    "vws",
];

/// Longer text is not a model's name.
const LONGEST_NAME: usize = 128;

/// How far a reported memory may be from the nominal one, as a share of it:
/// drivers keep a part for themselves, and a few clouds count GB as GiB.
const MEMORY_TOLERANCE: f64 = 0.08;

/// Reduced names of all models.
#[derive(Debug)]
pub(super) struct ModelIndex {
    /// Positions of the models that have a name, in the order of the table.
    by_name: HashMap<String, Vec<usize>>,
    /// `v4` and its like: TPU versions, which only a TPU API means by it.
    tpu_versions: HashMap<String, Vec<usize>>,
    /// Makers that the catalogue has models of.
    vendors: HashSet<Vendor>,
}

impl ModelIndex {
    pub fn new(models: &[GpuModel]) -> Self {
        let mut index = Self {
            by_name: HashMap::new(),
            tpu_versions: HashMap::new(),
            vendors: models.iter().map(|model| model.vendor.clone()).collect(),
        };
        for (at, model) in models.iter().enumerate() {
            for name in std::iter::once(&model.model).chain(&model.aliases) {
                let name = reduce(name);
                let names = if is_google(&model.vendor) && is_version(&name) {
                    &mut index.tpu_versions
                } else {
                    &mut index.by_name
                };
                let positions = names.entry(name).or_default();
                if !positions.contains(&at) {
                    positions.push(at);
                }
            }
        }
        index
    }

    /// The models that have this name: none when it is unknown, several when
    /// it is ambiguous. A maker that the catalogue has models of rules out
    /// those of other makers; a maker it does not know is no reason to doubt
    /// the name.
    pub fn candidates<'m>(&self, models: &'m [GpuModel], name: &str, vendor: Option<&Vendor>) -> Vec<&'m GpuModel> {
        if name.len() > LONGEST_NAME {
            return Vec::new();
        }
        let maker = vendor.filter(|vendor| self.vendors.contains(vendor));
        self.positions(name, maker.is_some_and(is_google))
            .iter()
            .filter_map(|at| models.get(*at))
            .filter(|model| maker.is_none_or(|maker| model.vendor == *maker))
            .collect()
    }

    fn positions(&self, name: &str, in_tpu_api: bool) -> &[usize] {
        let reduced = reduce(name);
        if in_tpu_api && let Some(positions) = self.tpu_versions.get(&reduced) {
            return positions;
        }
        self.by_name
            .get(&reduced)
            .or_else(|| self.by_name.get(&without_neutral_words(name)))
            .map_or(&[], Vec::as_slice)
    }
}

/// Decides between the models of one name.
///
/// `memory_gib` is the reported memory of one whole card. Among models alike
/// in memory, `preferred` wins, then the SXM form on a node with switches, and
/// otherwise the lower figures, so that nothing is promised that the card may
/// not have.
pub(super) fn pick<'m>(
    candidates: &[&'m GpuModel],
    memory_gib: Option<f64>,
    preferred: Option<&GpuModel>,
    has_nvswitch: bool,
) -> Option<&'m GpuModel> {
    let alike = alike_in_memory(candidates, memory_gib);
    let of_shape = alike
        .iter()
        .find(|model| preferred.is_some_and(|other| std::ptr::eq(other, **model)));
    let with_switches = || alike.iter().find(|model| has_nvswitch && is_sxm(model));
    let lowest = || {
        alike.iter().min_by(|a, b| {
            let figures = |model: &GpuModel| {
                (
                    model.bf16_tensor_tflops.unwrap_or(f64::INFINITY),
                    model.memory_bandwidth_gb_s.unwrap_or(f64::INFINITY),
                )
            };
            let ((a_bf16, a_bandwidth), (b_bf16, b_bandwidth)) = (figures(a), figures(b));
            a_bf16.total_cmp(&b_bf16).then(a_bandwidth.total_cmp(&b_bandwidth))
        })
    };
    of_shape.or_else(with_switches).or_else(lowest).copied()
}

/// Whether a reported memory is the usable part of a nominal one.
pub(super) fn is_close(reported_gib: f64, nominal_gib: f64) -> bool {
    (reported_gib - nominal_gib).abs() <= MEMORY_TOLERANCE * nominal_gib
}

/// The candidates that the reported memory leaves, all of one nominal memory.
fn alike_in_memory<'m>(candidates: &[&'m GpuModel], memory_gib: Option<f64>) -> Vec<&'m GpuModel> {
    let Some(first) = candidates.first() else {
        return Vec::new();
    };
    let Some(reported) = memory_gib else {
        let same = candidates.iter().all(|model| model.memory_gib == first.memory_gib);
        return if same { candidates.to_vec() } else { Vec::new() };
    };
    if candidates.len() == 1 && !states_its_memory(first) {
        return candidates.to_vec();
    }
    let distance = |model: &GpuModel| {
        let nominal = model.memory_gib?;
        is_close(reported, nominal).then(|| (reported - nominal).abs())
    };
    let nearest = candidates
        .iter()
        .filter_map(|model| distance(model))
        .min_by(f64::total_cmp);
    let Some(nearest) = nearest else { return Vec::new() };
    candidates
        .iter()
        .copied()
        .filter(|model| distance(model).is_some_and(|own| own <= nearest))
        .collect()
}

/// Letters and digits of a name in lower case, without the makers' words.
/// Reducing twice changes nothing.
pub(super) fn reduce(name: &str) -> String {
    let lower = name.to_lowercase();
    let joined: String = words(&lower).collect();
    let mut rest = joined.as_str();
    while let Some(shorter) = MAKER_WORDS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    rest.to_owned()
}

/// [`reduce`] of a name without its MIG slice, vGPU profile and words that say
/// nothing.
fn without_neutral_words(name: &str) -> String {
    let lower = name.to_lowercase();
    let joined: String = words(&lower)
        .take_while(|word| *word != "mig")
        .filter(|word| !NEUTRAL_WORDS.contains(word) && !is_vgpu_profile(word))
        .collect();
    reduce(&joined)
}

fn words(lower: &str) -> impl Iterator<Item = &str> {
    lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && !MAKER_WORDS.contains(word))
}

/// The profile in `A40-48Q`: the slice's GB and the kind of its licence.
fn is_vgpu_profile(word: &str) -> bool {
    word.strip_suffix(['a', 'b', 'c', 'q'])
        .is_some_and(|size| (1..=2).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the model's name says how much memory it has (`V100 16GB`), so that
/// a card with another amount is not this model.
fn states_its_memory(model: &GpuModel) -> bool {
    model.model.split(' ').any(|word| {
        word.strip_suffix("GB")
            .is_some_and(|size| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn is_sxm(model: &GpuModel) -> bool {
    model.model.split(' ').any(|word| word == "SXM")
}

fn is_google(vendor: &Vendor) -> bool {
    vendor.as_str() == "google"
}

fn is_version(reduced: &str) -> bool {
    reduced
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}
