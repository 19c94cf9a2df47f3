//! What accelerators an instance has, from what an API stated and what the
//! catalogue knows.

use super::Catalog;
use super::matching::{is_close, pick};
use super::models::GpuModel;
use super::shapes::{InstanceShape, NVSWITCH_COUNT};
use crate::{Accelerators, GpuCount, Provider, Text, Vendor};

/// MiB in a GiB.
const MIB: f64 = 1024.0;

/// Memory of one accelerator, in MiB, as an API states it though it is not:
/// EC2's `DescribeInstanceTypes` gives Trainium2 512 GiB per device, while the
/// published figure is 1,536 GiB for 16.
const KNOWN_WRONG_MEMORY: [(&str, f64); 1] = [("Trainium2", 524_288.0)];

/// What a cloud's own API states about the accelerators of one instance.
#[derive(Debug, Clone, Copy)]
pub struct AcceleratorFacts<'a> {
    /// The cloud.
    pub provider: Provider,
    /// Instance type; empty when there is none.
    pub instance_type: &'a str,
    /// Maker, where the API names one.
    pub vendor: Option<&'a str>,
    /// Model as the API spells it; empty when it does not name one.
    pub model: &'a str,
    /// Whole cards, or the fraction of one.
    pub count: Option<GpuCount>,
    /// Memory of all accelerators of the instance together, in MiB: for a
    /// slice, the slice's.
    pub memory_mib: Option<u64>,
}

/// What a name came out as.
struct Identity<'c, 'n> {
    /// The name that was looked up.
    spelled: &'n str,
    /// The models that have it.
    candidates: Vec<&'c GpuModel>,
    /// The one it is, when that could be decided.
    model: Option<&'c GpuModel>,
}

impl Catalog {
    /// The accelerators of an instance.
    ///
    /// What the API states comes first; the catalogue gives the model its
    /// canonical name and architecture and fills in what the API leaves out.
    ///
    /// - *Count*: the API's; the catalogue's where the API says nothing, says
    ///   0, or says 1 for a type that has a slice of a card (several APIs
    ///   count the slice as one).
    /// - *Memory*: count × the model's nominal memory, where the stated figure
    ///   is within 8 % of that (APIs state the part a driver can use: EC2 says
    ///   22,888 MiB for the 24 GiB of an L4), is known to be wrong, or is
    ///   missing. Else the stated figure, and else unknown.
    /// - An ambiguous model is decided by memory; the PCI Express and SXM forms of
    ///   one model by the instance type.
    /// - An unknown model passes through as spelled, with `in_catalog` false.
    #[must_use]
    pub fn accelerators(&self, facts: &AcceleratorFacts<'_>) -> Accelerators {
        self.assemble(facts, self.shape(facts.provider, facts.instance_type))
    }

    /// The accelerators of an instance type by the catalogue alone.
    #[must_use]
    pub fn shape_accelerators(&self, shape: &InstanceShape) -> Accelerators {
        let silent = AcceleratorFacts {
            provider: shape.provider,
            instance_type: &shape.instance_type,
            vendor: None,
            model: "",
            count: None,
            memory_mib: None,
        };
        self.assemble(&silent, Some(shape))
    }

    /// The catalogue's model of an instance type's accelerators; `None` when
    /// the catalogue has no such model or cannot tell which.
    #[must_use]
    pub fn shape_model(&self, shape: &InstanceShape) -> Option<&GpuModel> {
        self.identify_shape(shape).model
    }

    fn assemble(&self, facts: &AcceleratorFacts<'_>, shape: Option<&InstanceShape>) -> Accelerators {
        let count = count(facts.count, shape);
        let stated_total = facts.memory_mib.filter(|mib| *mib > 0);
        let stated_card = per_card_gib(stated_total, count);
        let stated_vendor = facts
            .vendor
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(Vendor::new);

        let of_shape = shape.map(|shape| self.identify_shape(shape));
        let shape_model = of_shape.as_ref().and_then(|identity| identity.model);
        let shape_gib = shape.and_then(|shape| shape.memory_gib_per_accelerator);

        let spelled = facts.model.trim();
        let identity = if spelled.is_empty() {
            of_shape.unwrap_or(Identity {
                spelled,
                candidates: Vec::new(),
                model: None,
            })
        } else {
            let candidates = self
                .model_index
                .candidates(&self.models, spelled, stated_vendor.as_ref());
            let memory_gib = stated_card
                .or(shape_gib)
                .or_else(|| shape_model.and_then(|model| model.memory_gib));
            let has_nvswitch = self.has_nvswitch(facts.provider, facts.instance_type, count);
            let model = pick(&candidates, memory_gib, shape_model, has_nvswitch);
            Identity {
                spelled,
                candidates,
                model,
            }
        };

        // The memory of the catalogue's shape is that of the shape's own model
        // and says nothing about another that an API names.
        let is_of_shape = spelled.is_empty() || same_model(identity.model, shape_model);
        let shape_gib = shape_gib.filter(|_| is_of_shape);
        let memory_mib = match count {
            None => stated_total,
            Some(count) => {
                card_gib(identity.model, stated_card.or(shape_gib)).and_then(|gib| whole_mib(gib * count.get()))
            }
        };
        let (vendor, model, architecture) = identity.names();
        Accelerators {
            vendor: vendor
                .or(stated_vendor)
                .or_else(|| shape.map(|shape| shape.vendor.clone())),
            model,
            architecture,
            count,
            memory_mib,
            in_catalog: identity.model.is_some(),
            slices_per_card: count.and_then(slices_per_card),
        }
    }

    fn identify_shape<'n>(&self, shape: &'n InstanceShape) -> Identity<'_, 'n> {
        let candidates = self
            .model_index
            .candidates(&self.models, &shape.model, Some(&shape.vendor));
        let has_nvswitch = self.has_nvswitch(shape.provider, &shape.instance_type, shape.count);
        let model = pick(&candidates, shape.memory_gib_per_accelerator, None, has_nvswitch);
        Identity {
            spelled: &shape.model,
            candidates,
            model,
        }
    }

    /// Whether the instance is a node, or a part of a node, whose GPUs are
    /// joined by switches.
    fn has_nvswitch(&self, provider: Provider, instance_type: &str, count: Option<GpuCount>) -> bool {
        count.is_some_and(|count| count.get() >= NVSWITCH_COUNT)
            || self.shape_index.is_nvswitch_family(provider, instance_type)
    }
}

impl Identity<'_, '_> {
    /// Maker, model and architecture. When the name stayed ambiguous, what all
    /// of its models have in common is still known.
    fn names(&self) -> (Option<Vendor>, Text, Text) {
        if let Some(model) = self.model {
            return (
                Some(model.vendor.clone()),
                model.model.clone(),
                model.architecture.clone(),
            );
        }
        let first = self.candidates.first().filter(|first| {
            self.candidates
                .iter()
                .all(|other| other.vendor == first.vendor && other.architecture == first.architecture)
        });
        let vendor = first.map(|model| model.vendor.clone());
        let architecture = first.map(|model| model.architecture.clone()).unwrap_or_default();
        (vendor, self.spelled.into(), architecture)
    }
}

fn same_model(a: Option<&GpuModel>, b: Option<&GpuModel>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if std::ptr::eq(a, b))
}

fn count(stated: Option<GpuCount>, shape: Option<&InstanceShape>) -> Option<GpuCount> {
    let known = shape.and_then(|shape| shape.count);
    let stated = stated.filter(|count| *count > GpuCount::ZERO);
    let is_slice_counted_as_one =
        stated == Some(GpuCount::from(1)) && known.is_some_and(|known| known < GpuCount::from(1));
    if is_slice_counted_as_one {
        known
    } else {
        stated.or(known)
    }
}

/// The memory of one whole card, in GiB.
fn card_gib(model: Option<&GpuModel>, stated_gib: Option<f64>) -> Option<f64> {
    let nominal = model.and_then(|model| model.memory_gib);
    match (nominal, stated_gib) {
        (Some(nominal), Some(stated)) if is_close(stated, nominal) || is_known_wrong(model, stated) => Some(nominal),
        (nominal, stated) => stated.or(nominal),
    }
}

fn is_known_wrong(model: Option<&GpuModel>, stated_gib: f64) -> bool {
    KNOWN_WRONG_MEMORY
        .iter()
        .any(|(name, mib)| model.is_some_and(|model| *model.model == **name) && is_close(stated_gib, mib / MIB))
}

/// How many slices of this size one card makes; 1 for whole cards.
fn slices_per_card(count: GpuCount) -> Option<u32> {
    if count >= GpuCount::from(1) {
        return Some(1);
    }
    (2..=64).find(|slices| (count.get() * f64::from(*slices) - 1.0).abs() < 1e-4)
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53 MiB")]
fn per_card_gib(total_mib: Option<u64>, count: Option<GpuCount>) -> Option<f64> {
    let gib = total_mib? as f64 / MIB / count?.get();
    gib.is_finite().then_some(gib)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn whole_mib(gib: f64) -> Option<u64> {
    let mib = (gib * MIB).round();
    (1.0..=9_007_199_254_740_992.0).contains(&mib).then_some(mib as u64)
}
