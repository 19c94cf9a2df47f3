//! `catalog`: the instance types and GPU models that are compiled in.

use std::borrow::Cow;

use gpuwatch_inventory::{
    GpuCount, Provider, Text,
    catalog::{self, GpuModel, InstanceShape},
};
use serde::Serialize;

use super::{
    args::{CatalogArgs, OutputFormat},
    csv_text,
    error::CliError,
    output, table,
};
use crate::filter::any_model;

pub(super) fn run(args: &CatalogArgs) -> Result<(), CliError> {
    let text = if args.models { models(args)? } else { shapes(args)? };
    output::print(&text)
}

const SHAPE_COLUMNS: [table::Column; 9] = [
    table::text("CLOUD", 7),
    table::text("TYPE", 16),
    table::text("VENDOR", 6),
    table::text("MODEL", 10),
    table::number("GPUS"),
    table::number("GIB/GPU"),
    table::number("VCPUS"),
    table::number("GIB"),
    table::number("LIST PRICE/H"),
];

const SHAPE_HEADER: [&str; 11] = [
    "provider",
    "instance_type",
    "gpu_vendor",
    "gpu_model",
    "gpus",
    "gpu_memory_gib",
    "vcpus",
    "memory_gib",
    "list_price_per_hour",
    "currency",
    "price_region",
];

/// An instance type, with its accelerator under the name that the metrics
/// use. What is not known is absent.
#[derive(Serialize)]
struct ShapeRow {
    provider: Provider,
    instance_type: Text,
    gpu_vendor: String,
    gpu_model: Text,
    gpus: Option<f64>,
    gpu_memory_gib: Option<f64>,
    vcpus: Option<f64>,
    memory_gib: Option<f64>,
    list_price_per_hour: Option<String>,
    currency: Option<String>,
    price_region: Option<Text>,
}

impl ShapeRow {
    fn of(shape: &InstanceShape) -> Self {
        let accelerators = catalog::builtin().shape_accelerators(shape);
        let price = shape.reference_price.as_ref();
        Self {
            provider: shape.provider,
            instance_type: Text::clone(&shape.instance_type),
            gpu_vendor: accelerators
                .vendor
                .as_ref()
                .unwrap_or(&shape.vendor)
                .as_str()
                .to_owned(),
            gpu_model: accelerators.model,
            gpus: shape.count.map(GpuCount::get),
            gpu_memory_gib: shape.memory_gib_per_accelerator,
            vcpus: shape.vcpus,
            memory_gib: shape.memory_gib,
            list_price_per_hour: price.map(|price| price.hourly.amount.to_string()),
            currency: price.map(|price| price.hourly.currency.to_string()),
            price_region: price.map(|price| Text::clone(&price.region)),
        }
    }

    fn cells(&self) -> [Cow<'_, str>; 11] {
        [
            self.provider.as_str().into(),
            (*self.instance_type).into(),
            self.gpu_vendor.as_str().into(),
            (*self.gpu_model).into(),
            number(self.gpus),
            number(self.gpu_memory_gib),
            number(self.vcpus),
            number(self.memory_gib),
            self.list_price_per_hour.as_deref().unwrap_or_default().into(),
            self.currency.as_deref().unwrap_or_default().into(),
            self.price_region.as_deref().unwrap_or_default().into(),
        ]
    }
}

fn shapes(args: &CatalogArgs) -> Result<Vec<u8>, CliError> {
    let shapes: Vec<ShapeRow> = catalog::builtin()
        .shapes()
        .iter()
        .filter(|shape| args.provider.is_empty() || args.provider.contains(&shape.provider))
        .map(ShapeRow::of)
        .filter(|shape| any_model(&args.gpu_model, &shape.gpu_model))
        .collect();
    match args.output.output {
        OutputFormat::Json => json(&shapes),
        OutputFormat::Csv => csv_text::render(&SHAPE_HEADER, shapes.iter().map(|shape| shape.cells().to_vec())),
        OutputFormat::Table => {
            let rows: Vec<Vec<String>> = shapes
                .iter()
                .map(|shape| {
                    let [
                        provider,
                        kind,
                        vendor,
                        model,
                        gpus,
                        each,
                        vcpus,
                        memory,
                        price,
                        currency,
                        _,
                    ] = shape.cells();
                    let price = format!("{price} {currency}").trim().to_owned();
                    let cells = [provider, kind, vendor, model, gpus, each, vcpus, memory, price.into()];
                    cells.map(Cow::into_owned).to_vec()
                })
                .collect();
            let table = table::render(&SHAPE_COLUMNS, &rows, table::width(), args.output.bold());
            Ok(format!("{table}\n{} instance types; an empty cell is not known\n", shapes.len()).into_bytes())
        }
    }
}

const MODEL_COLUMNS: [table::Column; 8] = [
    table::text("VENDOR", 6),
    table::text("MODEL", 12),
    table::text("ARCHITECTURE", 8),
    table::number("YEAR"),
    table::number("GIB"),
    table::number("GB/S"),
    table::number("BF16 TFLOPS"),
    table::text("ALSO CALLED", 12),
];

const MODEL_HEADER: [&str; 8] = [
    "vendor",
    "model",
    "architecture",
    "launch_year",
    "memory_gib",
    "memory_bandwidth_gb_s",
    "bf16_tensor_tflops",
    "aliases",
];

fn models(args: &CatalogArgs) -> Result<Vec<u8>, CliError> {
    let models: Vec<&GpuModel> = catalog::builtin()
        .models()
        .iter()
        .filter(|model| any_model(&args.gpu_model, &model.model))
        .collect();
    let rows = models.iter().map(|model| model_cells(model).to_vec());
    match args.output.output {
        OutputFormat::Json => json(&models),
        OutputFormat::Csv => csv_text::render(&MODEL_HEADER, rows),
        OutputFormat::Table => {
            let rows: Vec<Vec<String>> = rows.map(|row| row.into_iter().map(Cow::into_owned).collect()).collect();
            let table = table::render(&MODEL_COLUMNS, &rows, table::width(), args.output.bold());
            Ok(format!("{table}\n{} models; an empty cell is not known\n", models.len()).into_bytes())
        }
    }
}

fn model_cells(model: &GpuModel) -> [Cow<'_, str>; 8] {
    [
        model.vendor.as_str().into(),
        (*model.model).into(),
        (*model.architecture).into(),
        model
            .launch_year
            .map(|year| year.to_string())
            .unwrap_or_default()
            .into(),
        number(model.memory_gib),
        number(model.memory_bandwidth_gb_s),
        number(model.bf16_tensor_tflops),
        model.aliases.join(", ").into(),
    ]
}

fn number(value: Option<f64>) -> Cow<'static, str> {
    value.map(|value| value.to_string()).unwrap_or_default().into()
}

fn json(rows: &impl Serialize) -> Result<Vec<u8>, CliError> {
    let mut text = serde_json::to_vec_pretty(rows).map_err(|error| CliError::failure("writing JSON failed", error))?;
    text.push(b'\n');
    Ok(text)
}
