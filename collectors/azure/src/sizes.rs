//! Which sizes have accelerators, and which.
//!
//! The catalogue comes first here, before Azure's own list of SKUs: that list
//! has no model and no memory, and its number of GPUs is wrong for several
//! sizes (12 for one with 8, 1 for an eighth of a card).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
    time::Duration,
};

use gpuwatch_collector_core::{CollectError, Context, Scope, lock};
use gpuwatch_inventory::{
    Accelerators, GpuCount, Provider, Text,
    catalog::{self, AcceleratorFacts},
};
use serde::Deserialize;

use crate::arm::{Arm, Listing};

const SKUS: Listing = Listing {
    call: gpuwatch_collector_core::Call::new("compute", "skus.list", "Microsoft.Compute/skus/read"),
    versions: &["2021-07-01", "2019-04-01"],
};

/// Facts are asked for anew after this time.
const KEPT: Duration = Duration::from_hours(24);

/// Models by a part of a size's name, for sizes that are newer than the
/// catalogue. The first that is in the name counts.
const MODELS: [(&str, &str); 12] = [
    ("_gb300_", "GB300"),
    ("_gb200_", "GB200"),
    ("_b300_", "B300"),
    ("_b200_", "B200"),
    ("_h200_", "H200"),
    ("_mi300x_", "MI300X"),
    ("_h100_", "H100"),
    ("_a100_", "A100"),
    ("_a10_", "A10"),
    ("_t4_", "T4"),
    ("_v710_", "V710"),
    ("_v620_", "V620"),
];

/// The name that the catalogue has: promotional sizes are the same hardware.
fn plain(size: &str) -> &str {
    let end = size.len().saturating_sub("_Promo".len());
    match size.get(end..) {
        Some(suffix) if suffix.eq_ignore_ascii_case("_Promo") => size.get(..end).unwrap_or(size),
        _ => size,
    }
}

fn in_catalog(size: &str) -> bool {
    catalog::builtin().shape(Provider::Azure, plain(size)).is_some()
}

/// Whether a size has accelerators: those of the catalogue, and the `N` series
/// but for `NP`, whose cards are FPGAs.
pub(crate) fn has_accelerators(size: &str) -> bool {
    if let Some(shape) = catalog::builtin().shape(Provider::Azure, plain(size)) {
        return shape.count.is_none_or(|count| count.get() > 0.0);
    }
    let lower = size.to_lowercase();
    let Some(series) = lower.strip_prefix("standard_n") else {
        return false;
    };
    series.starts_with(|c: char| c.is_ascii_lowercase()) && !series.starts_with('p')
}

/// The accelerators of a size: by the catalogue, else the number that the list
/// of SKUs states.
pub(crate) fn accelerators(size: &str, stated: Option<f64>) -> Accelerators {
    let catalog = catalog::builtin();
    if let Some(shape) = catalog.shape(Provider::Azure, plain(size)) {
        return catalog.shape_accelerators(shape);
    }
    let lower = size.to_lowercase();
    let model = MODELS
        .iter()
        .find(|(part, _)| lower.contains(part))
        .map_or("", |(_, model)| *model);
    catalog.accelerators(&AcceleratorFacts {
        provider: Provider::Azure,
        instance_type: size,
        vendor: None,
        model,
        count: stated.filter(|count| *count > 0.0).and_then(GpuCount::new),
        memory_mib: None,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sku {
    name: String,
    #[serde(default)]
    resource_type: String,
    #[serde(default)]
    capabilities: Option<Vec<Capability>>,
}

#[derive(Deserialize)]
struct Capability {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

/// Numbers of GPUs by lower-case size, of one location.
type Counts = HashMap<String, f64>;

/// Answers by subscription and region, with the time they were asked for.
type Kept = HashMap<(Text, Text), (Duration, Counts)>;

/// Numbers of GPUs of sizes that the catalogue lacks.
#[derive(Default)]
pub(crate) struct Sizes {
    kept: Mutex<Kept>,
}

impl Sizes {
    /// What the list of SKUs says of these sizes. It is asked only for those
    /// that the catalogue lacks; what fails costs detail, not the listing.
    pub(crate) async fn stated<'a>(
        &self,
        cx: &Context,
        arm: &Arm,
        scope: &Scope,
        sizes: impl Iterator<Item = &'a str>,
    ) -> Counts {
        let unknown: BTreeSet<String> = sizes.filter(|size| !in_catalog(size)).map(str::to_lowercase).collect();
        if unknown.is_empty() {
            return Counts::new();
        }
        let key = (scope.account.id.clone(), scope.region.clone());
        let fresh = |at: Duration| cx.monotonic().saturating_sub(at) < KEPT;
        if let Some((at, counts)) = lock(&self.kept).get(&key)
            && fresh(*at)
        {
            return counts.clone();
        }
        match ask(cx, arm, scope).await {
            Ok(counts) => {
                lock(&self.kept).insert(key, (cx.monotonic(), counts.clone()));
                counts
            }
            Err(error) => {
                cx.degraded(&error);
                Counts::new()
            }
        }
    }
}

async fn ask(cx: &Context, arm: &Arm, scope: &Scope) -> Result<Counts, CollectError> {
    let path = format!(
        "/subscriptions/{}/providers/Microsoft.Compute/skus?$filter=location%20eq%20%27{}%27",
        scope.account.id, scope.region
    );
    let skus: Vec<Sku> = arm.list(cx, SKUS, &path).await?;
    let of_machines = skus
        .into_iter()
        .filter(|sku| sku.resource_type.eq_ignore_ascii_case("virtualMachines"));
    let counts = of_machines.filter_map(|sku| {
        let stated = sku
            .capabilities?
            .into_iter()
            .find(|capability| capability.name == "GPUs")?;
        Some((sku.name.to_lowercase(), stated.value.trim().parse().ok()?))
    });
    Ok(counts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_with_accelerators() {
        for yes in [
            "Standard_ND96isr_H100_v5",
            "standard_nc4as_t4_v3",
            "Standard_NV6ads_A10_v5",
            "Standard_ND128isr_X900_v9",
            "Standard_NC6s_v3_Promo",
        ] {
            assert!(has_accelerators(yes), "{yes}");
        }
        // P32
        for no in [
            "Standard_NP10s",
            "Standard_D4s_v5",
            "Standard_HB120rs_v3",
            "Standard_N",
            "",
            "Mix",
        ] {
            assert!(!has_accelerators(no), "{no}");
        }
    }

    // P36
    #[test]
    fn slices_are_exact_and_wrong_counts_are_corrected() {
        let sixth = accelerators("Standard_NV6ads_A10_v5", Some(1.0));
        assert!((sixth.count.unwrap().get() - 1.0 / 6.0).abs() < 1e-9);
        let eight = accelerators("Standard_ND96isr_H100_v5", Some(12.0));
        assert_eq!(eight.count, Some(GpuCount::from(8)));
    }

    // P34
    #[test]
    fn a_future_size_has_the_stated_number_or_none() {
        let future = accelerators("Standard_ND128isr_X900_v9", Some(8.0));
        assert_eq!((future.count, future.in_catalog), (Some(GpuCount::from(8)), false));
        assert_eq!(accelerators("Standard_ND128isr_X900_v9", None).count, None);
    }
}
