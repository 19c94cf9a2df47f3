//! Instance types: the rows of the clouds' CSV files.

use std::collections::{HashMap, HashSet};

use rust_decimal::Decimal;
use serde::Serialize;

use super::csv_file::{CatalogError, CsvFile, Row, Table, positive_number};
use crate::{Currency, GpuCount, Money, Provider, Text, Vendor};

/// A published on-demand price, from the time the catalogue was made. Prices
/// change: a price from the cloud's own price list comes before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferencePrice {
    /// Per instance and hour, Linux; for an attachable accelerator type, per
    /// accelerator and hour without the machine.
    pub hourly: Money,
    /// Region of the price.
    pub region: Text,
}

/// What is known about one instance type. `None` is not known, never zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceShape {
    /// The cloud.
    pub provider: Provider,
    /// Instance type as the cloud spells it.
    pub instance_type: Text,
    /// Maker of the accelerators.
    pub vendor: Vendor,
    /// Model as the cloud's documents spell it; empty when they do not name
    /// it. `Catalog::shape_model` gives the catalogue's model.
    pub model: Text,
    /// Accelerators in the instance, fractional for slices of one.
    pub count: Option<GpuCount>,
    /// Memory in GiB of one whole accelerator, also where the instance has
    /// only a slice of it; as the cloud states it, which may be less than the
    /// model's nominal memory.
    pub memory_gib_per_accelerator: Option<f64>,
    /// Virtual CPUs.
    pub vcpus: Option<f64>,
    /// Main memory in GiB.
    pub memory_gib: Option<f64>,
    /// On-demand price in one region, where one is known.
    pub reference_price: Option<ReferencePrice>,
    /// Where the facts come from.
    pub source: Text,
}

const COLUMNS: [&str; 9] = [
    "provider",
    "instance_type",
    "accelerator_vendor",
    "accelerator_model",
    "accelerator_count",
    "accelerator_memory_gib",
    "vcpus",
    "memory_gib",
    "source",
];

/// Begin of the header cell that names the price's currency and region:
/// `on_demand_usd_per_hour_us_east_1`.
const PRICE_PREFIX: &str = "on_demand_";

/// Accelerators from which on a node has switches between its GPUs, so that
/// they are the SXM form of their model.
pub(super) const NVSWITCH_COUNT: f64 = 8.0;

/// Reads the clouds' files.
pub(super) fn read(files: &[CsvFile<'_>]) -> Result<(Vec<InstanceShape>, ShapeIndex), CatalogError> {
    let mut shapes = Vec::new();
    let mut index = ShapeIndex::default();
    for file in files {
        let table = Table::read(*file, &COLUMNS, Some(PRICE_PREFIX))?;
        let price_column = PriceColumn::find(&table)?;
        for row in table.rows() {
            let shape = read_row(&row, &price_column)?;
            if !index.insert(&shape, shapes.len()) {
                return Err(row.duplicate("instance_type"));
            }
            shapes.push(shape);
        }
    }
    Ok((shapes, index))
}

fn read_row(row: &Row<'_>, price: &PriceColumn) -> Result<InstanceShape, CatalogError> {
    let hourly = row.optional(&price.header, "an amount above 0, or nothing", |text| {
        Money::parse(text, price.currency.clone())
            .ok()
            .filter(|money| money.amount > Decimal::ZERO)
    })?;
    Ok(InstanceShape {
        provider: row.word("provider", "a provider")?,
        instance_type: row.required("instance_type")?.into(),
        vendor: Vendor::new(row.required("accelerator_vendor")?),
        model: row.text("accelerator_model").into(),
        count: row.optional(
            "accelerator_count",
            "a number above 0, a fraction such as 1/6, or nothing",
            count,
        )?,
        memory_gib_per_accelerator: row.positive("accelerator_memory_gib")?,
        vcpus: row.positive("vcpus")?,
        memory_gib: row.positive("memory_gib")?,
        reference_price: hourly.map(|hourly| ReferencePrice {
            hourly,
            region: price.region.clone(),
        }),
        source: row.required("source")?.into(),
    })
}

/// `8`, `0.125` or `1/6`; sixths and thirds are written as fractions, so that
/// six of them make one.
fn count(text: &str) -> Option<GpuCount> {
    let count = match text.split_once('/') {
        Some((part, whole)) => f64::from(part.parse::<u16>().ok()?) / f64::from(whole.parse::<u16>().ok()?),
        None => positive_number(text)?,
    };
    GpuCount::new(count).filter(|count| count.get() > 0.0)
}

/// The price column of a file: its header says which currency and region.
struct PriceColumn {
    header: String,
    currency: Currency,
    region: Text,
}

impl PriceColumn {
    fn find(table: &Table<'_>) -> Result<Self, CatalogError> {
        let mut headers = table.columns().filter(|name| name.starts_with(PRICE_PREFIX));
        let header = headers.next().ok_or_else(|| CatalogError::MissingColumn {
            file: table.file().to_owned(),
            column: "on_demand_<currency>_per_hour_<region>".to_owned(),
        })?;
        let unknown = |column: &str| CatalogError::UnknownColumn {
            file: table.file().to_owned(),
            column: column.to_owned(),
        };
        if let Some(second) = headers.next() {
            return Err(unknown(second));
        }
        let (currency, region) = header
            .strip_prefix(PRICE_PREFIX)
            .and_then(|rest| rest.split_once("_per_hour_"))
            .and_then(|(currency, region)| Some((Currency::new(currency).ok()?, region)))
            .ok_or_else(|| unknown(header))?;
        Ok(Self {
            header: header.to_owned(),
            currency,
            region: region.replace('_', "-").into(),
        })
    }
}

/// Where each instance type stands in the list of shapes.
#[derive(Debug, Default)]
pub(super) struct ShapeIndex {
    /// By the cloud's own spelling, which is what an API returns.
    exact: HashMap<Provider, HashMap<Text, usize>>,
    /// In lower case, for people, bills and Azure, which is not strict.
    folded: HashMap<Provider, HashMap<String, usize>>,
    /// Families of which some type has switches between its GPUs.
    nvswitch: HashMap<Provider, HashSet<String>>,
}

impl ShapeIndex {
    /// Adds a shape; false when the provider has the type already.
    fn insert(&mut self, shape: &InstanceShape, at: usize) -> bool {
        if shape.count.is_some_and(|count| count.get() >= NVSWITCH_COUNT) {
            self.nvswitch
                .entry(shape.provider)
                .or_default()
                .insert(family(&shape.instance_type).to_owned());
        }
        self.exact
            .entry(shape.provider)
            .or_default()
            .insert(shape.instance_type.clone(), at);
        let folded = shape.instance_type.to_lowercase();
        self.folded
            .entry(shape.provider)
            .or_default()
            .insert(folded, at)
            .is_none()
    }

    /// Position of an instance type.
    pub fn position(&self, provider: Provider, instance_type: &str) -> Option<usize> {
        let exact = self.exact.get(&provider).and_then(|types| types.get(instance_type));
        let found = exact.or_else(|| {
            self.folded
                .get(&provider)
                .and_then(|types| types.get(&instance_type.to_lowercase()))
        });
        found.copied()
    }

    /// Whether types of this family are cut from nodes whose GPUs are joined
    /// by switches: `p5.4xlarge` is an eighth of `p5.48xlarge`.
    pub fn is_nvswitch_family(&self, provider: Provider, instance_type: &str) -> bool {
        self.nvswitch
            .get(&provider)
            .is_some_and(|families| families.contains(family(instance_type)))
    }
}

/// `p5` of `p5.4xlarge`, `gn7e-c16g1` of `ecs.gn7e-c16g1.4xlarge`; the whole
/// type for clouds whose types have no dots.
fn family(instance_type: &str) -> &str {
    let name = instance_type.strip_prefix("ecs.").unwrap_or(instance_type);
    name.split_once('.').map_or(name, |(family, _)| family)
}
