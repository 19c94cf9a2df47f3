//! Sizes of machines: how many accelerators they have, and what the list of
//! SKUs says of that.
//!
//! The numbers are those of the published catalogue, read as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

/// One row per size; columns are found by their names.
const CATALOGUE: &str = include_str!("../../../../inventory/catalog/azure_vm_sizes.csv");

/// A size that no catalogue has, and the number that the list of SKUs states.
pub(crate) const FUTURE_SIZE: (&str, u32) = ("Standard_ND128isr_X900_v9", 8);

/// A size that no catalogue has, and of which the list of SKUs states nothing.
pub(crate) const SILENT_SIZE: &str = "Standard_NC48ads_Q7_v9";

/// Sizes without GPUs; the last has FPGAs.
const OTHERS: [&str; 2] = ["Standard_D4s_v5", "Standard_NP10s"];

struct Known {
    name: String,
    gpus: f64,
    cores: String,
}

/// Accelerators of a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Gpus {
    /// It has none.
    Absent,
    /// It has some, and nothing says how many.
    Unknown,
    /// So many; less than one for a part of a card.
    Count(f64),
}

impl Gpus {
    /// The number, where it has any and the number is known.
    pub(crate) const fn count(self) -> Option<f64> {
        match self {
            Self::Count(gpus) => Some(gpus),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// The catalogue by lower-case name.
static KNOWN: LazyLock<BTreeMap<String, Known>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_reader(CATALOGUE.as_bytes());
    let headers = reader.headers().cloned().unwrap_or_default();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (name, gpus, cores) = (column("instance_type"), column("accelerator_count"), column("vcpus"));
    let rows = reader.into_records().filter_map(|row| {
        let row = row.ok()?;
        let known = Known {
            name: row.get(name?)?.to_owned(),
            gpus: number(row.get(gpus?)?)?,
            cores: row.get(cores?)?.to_owned(),
        };
        Some((known.name.to_lowercase(), known))
    });
    rows.collect()
});

/// `8`, `0.5` or `1/6`.
fn number(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((above, below)) => Some(above.parse::<f64>().ok()? / below.parse::<f64>().ok()?),
        None => text.parse().ok(),
    }
}

/// What a size has. `with_skus` is whether the list of SKUs can be asked about
/// sizes that the catalogue lacks.
pub(crate) fn gpus(size: &str, with_skus: bool) -> Gpus {
    let lower = size.to_lowercase();
    // Promotional sizes are the same hardware.
    let plain = lower.strip_suffix("_promo").unwrap_or(&lower);
    if let Some(known) = KNOWN.get(plain) {
        return if known.gpus > 0.0 {
            Gpus::Count(known.gpus)
        } else {
            Gpus::Absent
        };
    }
    match lower
        .strip_prefix("standard_n")
        .and_then(|series| series.chars().next())
    {
        Some('p') | None => Gpus::Absent,
        Some(series) if !series.is_ascii_lowercase() => Gpus::Absent,
        Some(_) if with_skus && lower == FUTURE_SIZE.0.to_lowercase() => Gpus::Count(f64::from(FUTURE_SIZE.1)),
        Some(_) => Gpus::Unknown,
    }
}

/// What the list of SKUs states as `GPUs`: a wrong number for some sizes, 1
/// for a part of a card, and nothing for some series.
fn stated(known: &Known) -> Option<u32> {
    let lower = known.name.to_lowercase();
    let is_silent = lower.starts_with("standard_ncc") || lower.contains("_v620_") || lower.ends_with("ads_a10_v4");
    if is_silent {
        return None;
    }
    if lower == "standard_nd96isr_h100_v5" {
        return Some(12);
    }
    // Whole numbers below a hundred.
    [1, 2, 4, 8, 16].into_iter().find(|gpus| known.gpus <= f64::from(*gpus))
}

/// The sizes on sale in a location.
pub(crate) fn skus(location: &str) -> Vec<Value> {
    let sku = |name: &str, cores: &str, gpus: Option<u32>| {
        let mut capabilities = vec![json!({"name": "vCPUs", "value": cores})];
        capabilities.extend(gpus.map(|gpus| json!({"name": "GPUs", "value": gpus.to_string()})));
        json!({
            "resourceType": "virtualMachines",
            "name": name,
            "tier": "Standard",
            "size": name.trim_start_matches("Standard_"),
            "locations": [location],
            "locationInfo": [{"location": location, "zones": ["1", "2", "3"]}],
            "capabilities": capabilities,
            "restrictions": [],
        })
    };
    let mut all: Vec<Value> = KNOWN
        .values()
        .map(|known| sku(&known.name, &known.cores, stated(known)))
        .collect();
    all.push(sku(FUTURE_SIZE.0, "128", Some(FUTURE_SIZE.1)));
    all.push(sku(SILENT_SIZE, "48", None));
    all.extend(OTHERS.map(|name| sku(name, "10", None)));
    all.push(json!({"resourceType": "disks", "name": "Premium_LRS", "locations": [location]}));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_catalogue_is_read() {
        let rows = CATALOGUE.lines().count() - 1;
        assert_eq!(KNOWN.len(), rows);
        assert!(rows > 70);
    }

    // P36
    #[test]
    fn sizes_have_what_the_catalogue_says_and_not_what_the_list_states() {
        for (size, expected) in [
            ("standard_ND96isr_H100_v5", Gpus::Count(8.0)),
            ("Standard_NV6ads_A10_v5", Gpus::Count(1.0 / 6.0)),
            ("Standard_NV18ads_A10_v5", Gpus::Count(0.5)),
            ("Standard_NC6s_v3_Promo", Gpus::Count(1.0)),
            (FUTURE_SIZE.0, Gpus::Count(8.0)),
            (SILENT_SIZE, Gpus::Unknown),
            ("Standard_NP10s", Gpus::Absent),
            ("Standard_N2", Gpus::Absent),
            ("Standard_D4s_v5", Gpus::Absent),
            ("", Gpus::Absent),
        ] {
            assert_eq!(gpus(size, true), expected, "{size}");
        }
        assert_eq!(gpus(FUTURE_SIZE.0, false), Gpus::Unknown);
    }

    #[test]
    fn the_list_of_skus_is_wrong_where_the_real_one_is() {
        let all = skus("eastus");
        let stated = |size: &str| {
            let sku = all.iter().find(|sku| sku["name"] == size).expect("on sale");
            let mut capabilities = sku["capabilities"].as_array().expect("a list").iter();
            let gpus = capabilities.find(|capability| capability["name"] == "GPUs");
            gpus.and_then(|gpus| gpus["value"].as_str()).map(str::to_owned)
        };
        for (size, expected) in [
            ("Standard_ND96isr_H100_v5", Some("12")),
            ("Standard_NV6ads_A10_v5", Some("1")),
            ("Standard_NC64as_T4_v3", Some("4")),
            ("Standard_NCC40ads_H100_v5", None),
            ("Standard_NG8ads_V620_v1", None),
            ("Standard_NC32ads_A10_v4", None),
            (SILENT_SIZE, None),
            ("Standard_D4s_v5", None),
        ] {
            assert_eq!(stated(size).as_deref(), expected, "{size}");
        }
    }
}
