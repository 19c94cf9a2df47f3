//! What accelerators a machine has, from what Compute Engine says and what the
//! catalogue knows.

use std::{collections::HashSet, sync::LazyLock};

use gpuwatch_inventory::{
    Accelerators, GpuCount, Provider,
    catalog::{self, AcceleratorFacts},
};
use serde::Deserialize;

use crate::{place::last, value::Whole};

/// An entry of `guestAccelerators`, whose type is a link, or of a machine
/// type's `accelerators`, whose type is a name.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attached {
    #[serde(alias = "guestAcceleratorType")]
    accelerator_type: Option<String>,
    #[serde(default, alias = "guestAcceleratorCount")]
    accelerator_count: Whole,
}

/// Suffix of the types that come with a workstation licence: the same card.
const WORKSTATION: &str = "-vws";

/// The accelerators that an API lists for a machine of this type; `None` when
/// it lists none.
///
/// Several entries are added up; the model is that of the first. An entry
/// without a count makes the count unknown to the API.
pub(crate) fn listed(machine_type: &str, entries: &[Attached]) -> Option<Accelerators> {
    let entries: Vec<&Attached> = entries
        .iter()
        .filter(|entry| entry.accelerator_count.0 != Some(0))
        .collect();
    let first = entries.first()?;
    let count = entries.iter().try_fold(0u32, |sum, entry| {
        Some(sum.saturating_add(entry.accelerator_count.count()?))
    });
    let kind = last(first.accelerator_type.as_deref().unwrap_or_default());
    Some(of_type(machine_type, kind, count.map(GpuCount::from)))
}

/// So many accelerators of an accelerator type in a machine of this type.
pub(crate) fn of_type(machine_type: &str, accelerator_type: &str, count: Option<GpuCount>) -> Accelerators {
    let card = accelerator_type.strip_suffix(WORKSTATION).unwrap_or(accelerator_type);
    // The catalogue has the accelerator types too, with the model each means.
    let known = catalog::builtin().shape(Provider::Gcp, card);
    let facts = AcceleratorFacts {
        provider: Provider::Gcp,
        instance_type: machine_type,
        vendor: vendor(card),
        model: known.map_or(card, |shape| &shape.model),
        count,
        memory_mib: known
            .and_then(|shape| shape.memory_gib_per_accelerator)
            .zip(count)
            .and_then(|(gib, count)| memory_mib(machine_type, gib, count)),
    };
    catalog::builtin().accelerators(&facts)
}

/// The memory of whole cards, in MiB. The API counts a slice of a card as one,
/// so the catalogue's own figure is left to it there.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "memory of the catalogue's cards, times at most 2^32"
)]
fn memory_mib(machine_type: &str, gib: f64, count: GpuCount) -> Option<u64> {
    let shape = catalog::builtin().shape(Provider::Gcp, machine_type);
    let is_slice = shape.is_some_and(|shape| shape.count.is_some_and(|count| count < GpuCount::from(1)));
    (!is_slice).then_some((gib * 1024.0 * count.get()) as u64)
}

/// The maker that an accelerator type names.
fn vendor(accelerator_type: &str) -> Option<&'static str> {
    if accelerator_type.starts_with("nvidia-") {
        Some("nvidia")
    } else if accelerator_type.starts_with("ct") || accelerator_type.starts_with("tpu") {
        Some("google")
    } else {
        None
    }
}

/// The accelerators of a machine type by the catalogue alone.
pub(crate) fn of_catalog(machine_type: &str) -> Option<Accelerators> {
    let shape = catalog::builtin().shape(Provider::Gcp, machine_type)?;
    Some(catalog::builtin().shape_accelerators(shape))
}

/// The families of the catalogue's machine types (`a3` of `a3-highgpu-8g`).
static KNOWN_FAMILIES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let shapes = catalog::builtin().shapes().iter();
    shapes
        .filter(|shape| shape.provider == Provider::Gcp)
        .filter_map(|shape| shape.instance_type.split('-').next())
        .filter(|family| may_have_accelerators(family))
        .collect()
});

/// Whether a machine type is of a family that is known to have accelerators.
pub(crate) fn is_known_family(machine_type: &str) -> bool {
    machine_type
        .split('-')
        .next()
        .is_some_and(|family| KNOWN_FAMILIES.contains(family))
}

/// Whether a machine type may come with accelerators: `a` and a number, `g`
/// and a number from 2 (`g1-small` is a small machine), `ct` and a number,
/// `tpu`. No family of plain machines begins so, and a family released
/// tomorrow is found too.
pub(crate) fn may_have_accelerators(machine_type: &str) -> bool {
    let number_after = |prefix: &str, least: u8| {
        let rest = machine_type.strip_prefix(prefix).unwrap_or_default();
        rest.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit() && byte >= least)
    };
    number_after("a", b'0') || number_after("g", b'2') || number_after("ct", b'0') || machine_type.starts_with("tpu")
}

/// The same as a filter of `machineTypes.aggregatedList`.
pub(crate) const FAMILY_FILTER: &str = r#"name eq "(a[0-9]|g[2-9]|ct[0-9]|tpu).*""#;

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(kind: &str, count: u32) -> Accelerators {
        let json = format!(
            r#"[{{"acceleratorType": "https://www.googleapis.com/compute/v1/projects/p/zones/z/acceleratorTypes/{kind}",
                "acceleratorCount": {count}}}]"#
        );
        listed("n1-standard-8", &serde_json::from_str::<Vec<Attached>>(&json).unwrap()).unwrap()
    }

    #[test]
    fn accelerator_types_have_one_model_each_with_its_memory() {
        for (kind, model, gib) in [
            ("nvidia-tesla-t4", "T4", 16),
            ("nvidia-tesla-t4-vws", "T4", 16),
            ("nvidia-tesla-v100", "V100 16GB", 16),
            ("nvidia-tesla-p100", "P100", 16),
            ("nvidia-tesla-p4", "P4", 8),
            ("nvidia-tesla-k80", "K80", 12),
            ("nvidia-l4", "L4", 24),
            ("nvidia-l4-vws", "L4", 24),
            ("nvidia-tesla-a100", "A100 40GB", 40),
            ("nvidia-a100-80gb", "A100 80GB", 80),
            ("nvidia-h100-80gb", "H100", 80),
            ("nvidia-h100-mega-80gb", "H100", 80),
            ("nvidia-h200-141gb", "H200", 141),
            ("nvidia-b200", "B200", 180),
            ("nvidia-rtx-pro-6000", "RTX PRO 6000", 96),
        ] {
            let found = attached(kind, 2);
            assert!(
                found.in_catalog && found.model.contains(model),
                "{kind}: {}",
                found.model
            );
            assert_eq!(found.memory_mib, Some(2 * gib * 1024), "{kind}");
            assert_eq!(found.count, Some(GpuCount::from(2)), "{kind}");
        }
        let new = attached("nvidia-x900", 4);
        assert_eq!(
            (&*new.model, new.in_catalog, new.memory_mib),
            ("nvidia-x900", false, None)
        );
    }

    // P36
    #[test]
    fn a_slice_that_the_api_counts_as_one_is_a_fraction() {
        let one = serde_json::from_str::<Vec<Attached>>(
            r#"[{"acceleratorType": "nvidia-rtx-pro-6000", "acceleratorCount": 1}]"#,
        )
        .unwrap();
        for (machine_type, share, gib) in [
            ("g4-standard-6", 0.125, 12),
            ("g4-standard-12", 0.25, 24),
            ("g4-standard-24", 0.5, 48),
            ("g4-standard-48", 1.0, 96),
        ] {
            let found = listed(machine_type, &one).unwrap();
            assert_eq!(found.count.map(GpuCount::get), Some(share), "{machine_type}");
            assert_eq!(found.memory_mib, Some(gib * 1024), "{machine_type}");
        }
    }

    #[test]
    fn entries_are_added_up_and_a_missing_count_is_unknown() {
        let read = |json: &str| serde_json::from_str::<Vec<Attached>>(json).unwrap();
        let two = read(
            r#"[{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}, {"acceleratorType": "nvidia-l4", "acceleratorCount": 3}]"#,
        );
        assert_eq!(listed("n1-standard-8", &two).unwrap().count, Some(GpuCount::from(4)));
        let silent = read(r#"[{"acceleratorType": "nvidia-l4"}]"#);
        assert_eq!(listed("n1-standard-8", &silent).unwrap().count, None);
        assert_eq!(
            listed("g2-standard-24", &silent).unwrap().count,
            Some(GpuCount::from(2))
        );
        assert_eq!(listed("n1-standard-8", &read("[]")), None);
        let named = read(r#"[{"guestAcceleratorType": "ct5lp", "guestAcceleratorCount": 4}]"#);
        let tpu = listed("ct5lp-hightpu-4t", &named).unwrap();
        assert_eq!((&*tpu.model, tpu.count), ("TPU v5e", Some(GpuCount::from(4))));
    }

    #[test]
    fn families_with_accelerators_are_told_by_their_begin() {
        for yes in [
            "a2-highgpu-1g",
            "a5-future-8g",
            "g2-standard-4",
            "g5-x",
            "ct6e-standard-4t",
            "tpu7x-standard-4t",
        ] {
            assert!(may_have_accelerators(yes), "{yes}");
        }
        for no in [
            "g1-small",
            "f1-micro",
            "n1-standard-8",
            "c4a-standard-1",
            "e2-medium",
            "custom-8-30720",
            "",
            "t2a-x",
        ] {
            assert!(!may_have_accelerators(no), "{no}");
        }
        assert!(is_known_family("a3-next-16g") && !is_known_family("a9-standard-4") && !is_known_family("nvidia-l4"));
    }

    proptest::proptest! {
        // P36
        #[test]
        fn counts_are_never_negative_nor_more_than_listed(
            machine_type in "(n1-standard-8|g4-standard-6|g2-standard-24|.{0,20})",
            kind in "(nvidia-l4|nvidia-tesla-t4-vws|ct5lp|.{0,20})",
            counts in proptest::collection::vec(proptest::option::of(0u32..), 0..4),
        ) {
            let entries = counts.iter().map(|count| serde_json::json!({"acceleratorType": kind, "acceleratorCount": count}));
            let entries: Vec<Attached> = serde_json::from_value(entries.collect()).unwrap();
            let most: f64 = counts.iter().flatten().fold(0.0, |sum, count| sum + f64::from(*count));
            if let Some(count) = listed(&machine_type, &entries).and_then(|found| found.count)
                && counts.iter().all(Option::is_some)
            {
                proptest::prop_assert!(count.get() >= 0.0 && count.get() <= most, "{} of {most}", count.get());
            }
        }
    }
}
