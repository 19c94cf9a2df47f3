//! Facts of an API and what becomes of them.

use crate::catalog::{AcceleratorFacts, builtin};
use crate::{Accelerators, GpuCount, Provider};

/// Facts as the AWS collector gives them.
fn aws(instance_type: &str) -> AcceleratorFacts<'_> {
    AcceleratorFacts {
        provider: Provider::Aws,
        instance_type,
        vendor: Some("NVIDIA"),
        model: "",
        count: None,
        memory_mib: None,
    }
}

fn cards(count: f64) -> Option<GpuCount> {
    GpuCount::new(count)
}

/// Model, count, MiB.
fn summary(accelerators: &Accelerators) -> (String, Option<f64>, Option<u64>) {
    (
        accelerators.model.to_string(),
        accelerators.count.map(GpuCount::get),
        accelerators.memory_mib,
    )
}

/// Recorded answers of EC2's `DescribeInstanceTypes`, and what becomes of them: instance type, manufacturer, model,
/// count, MiB of all devices; canonical model, GiB.
#[rustfmt::skip]
const EC2_ANSWERS: [(&str, &str, &str, f64, u64, &str, u64); 24] = [
    // P38: the API states the memory a driver can use.
    ("g6.xlarge",        "NVIDIA",   "L4",                  1.0,      22_888, "L4",              24),
    ("g6.12xlarge",      "NVIDIA",   "L4",                  4.0,      91_552, "L4",              96),
    ("g5.xlarge",        "NVIDIA",   "A10G",                1.0,      22_888, "A10G",            24),
    ("g6e.48xlarge",     "NVIDIA",   "L40S",                8.0,     366_208, "L40S",            384),
    ("p6-b200.48xlarge", "NVIDIA",   "B200",                8.0,   1_466_872, "B200",            1440),
    ("p6-b300.48xlarge", "NVIDIA",   "B300",                8.0,   2_200_320, "B300",            2160),
    // Slices state the slice's memory.
    ("g6f.large",        "NVIDIA",   "L4",                  0.125,     2_861, "L4",              3),
    ("g6f.2xlarge",      "NVIDIA",   "L4",                  0.25,      5_722, "L4",              6),
    ("gr6f.4xlarge",     "NVIDIA",   "L4",                  0.5,      11_444, "L4",              12),
    // One name, several models.
    ("p4d.24xlarge",     "NVIDIA",   "A100",                8.0,     327_680, "A100 40GB",       320),
    ("p4de.24xlarge",    "NVIDIA",   "A100",                8.0,     655_360, "A100 80GB SXM",   640),
    ("p5.48xlarge",      "NVIDIA",   "H100",                8.0,     655_360, "H100 80GB SXM",   640),
    ("p5.4xlarge",       "NVIDIA",   "H100",                1.0,      81_920, "H100 80GB SXM",   80),
    ("p5en.48xlarge",    "NVIDIA",   "H200",                8.0,   1_155_072, "H200 141GB SXM",  1128),
    ("p3dn.24xlarge",    "NVIDIA",   "V100",                8.0,     262_144, "V100 32GB",       256),
    // Wrong in the API, which names no manufacturer here.
    ("trn2.48xlarge",    "",         "Trainium2",           16.0,  8_388_608, "Trainium2",       1536),
    ("trn2.3xlarge",     "",         "Trainium2",           1.0,     524_288, "Trainium2",       96),
    // Other makers and spellings.
    ("g4ad.16xlarge",    "AMD",      "Radeon Pro V520",     4.0,      32_768, "Radeon Pro V520", 32),
    ("g5g.xlarge",       "NVIDIA",   "T4g",                 1.0,      16_384, "T4G",             16),
    ("g7e.12xlarge",     "NVIDIA",   "RTX PRO Server 6000", 2.0,     196_608, "RTX PRO 6000 Blackwell Server", 192),
    ("dl1.24xlarge",     "Habana",   "Gaudi HL-205",        8.0,     262_144, "Gaudi",           256),
    ("dl2q.24xlarge",    "Qualcomm", "Qualcomm AI100",      8.0,     128_000, "Cloud AI 100",    128),
    ("inf2.48xlarge",    "AWS",      "Inferentia2",         12.0,    393_216, "Inferentia2",     384),
    ("vt1.24xlarge",     "Xilinx",   "U30",                 8.0,     196_608, "Alveo U30",       192),
];

#[test]
fn ec2_answers_become_canonical_models_with_nominal_memory() {
    for (instance_type, vendor, model, count, total_mib, expected, expected_gib) in EC2_ANSWERS {
        let facts = AcceleratorFacts {
            vendor: Some(vendor),
            model,
            count: cards(count),
            memory_mib: Some(total_mib),
            ..aws(instance_type)
        };
        let accelerators = builtin().accelerators(&facts);
        let expected = (expected.to_owned(), Some(count), Some(expected_gib * 1024));
        assert_eq!(summary(&accelerators), expected, "{instance_type}");
        assert!(
            accelerators.in_catalog && !accelerators.architecture.is_empty(),
            "{instance_type}"
        );
        let shape = builtin().shape(Provider::Aws, instance_type).expect("shape");
        assert_eq!(accelerators.vendor.as_ref(), Some(&shape.vendor), "{instance_type}");
        assert_eq!(
            builtin().shape_accelerators(shape),
            accelerators,
            "{instance_type}: the catalogue agrees"
        );
    }
}

#[test]
fn slices_say_how_many_make_a_card() {
    let slices = |instance_type| builtin().accelerators(&aws(instance_type)).slices_per_card;
    assert_eq!((slices("g6f.large"), slices("gr6f.4xlarge")), (Some(8), Some(2)));
    assert_eq!((slices("g6.48xlarge"), slices("zz9.large")), (Some(1), None));
}

#[test]
fn a_type_that_nobody_knows_is_unknown_and_not_empty() {
    let facts = AcceleratorFacts {
        vendor: None,
        ..aws("zz9.48xlarge")
    };
    assert_eq!(builtin().accelerators(&facts), Accelerators::default());
}

#[test]
fn an_unknown_model_passes_through_as_spelled() {
    let facts = AcceleratorFacts {
        vendor: Some("Some Maker"),
        model: " Quux X9 ",
        count: cards(2.0),
        memory_mib: Some(300_000),
        ..aws("zz9.48xlarge")
    };
    let accelerators = builtin().accelerators(&facts);
    assert_eq!(summary(&accelerators), ("Quux X9".to_owned(), Some(2.0), Some(300_000)));
    assert_eq!(accelerators.vendor.expect("maker").as_str(), "some maker");
    assert!(accelerators.architecture.is_empty() && !accelerators.in_catalog);
}

#[test]
fn the_catalogue_fills_in_where_the_api_says_nothing_or_zero() {
    // EC2 has no NeuronInfo for this type.
    let silent = AcceleratorFacts {
        vendor: None,
        ..aws("trn2u.48xlarge")
    };
    let expected = ("Trainium2".to_owned(), Some(16.0), Some(16 * 96 * 1024));
    assert_eq!(summary(&builtin().accelerators(&silent)), expected);

    let zero = AcceleratorFacts {
        model: "L4",
        count: Some(GpuCount::ZERO),
        memory_mib: Some(2_861),
        ..aws("g6f.large")
    };
    let expected = ("L4".to_owned(), Some(0.125), Some(3 * 1024));
    assert_eq!(summary(&builtin().accelerators(&zero)), expected);
}

#[test]
fn a_count_of_zero_without_a_catalogue_row_is_unknown() {
    let facts = AcceleratorFacts {
        model: "L4",
        count: Some(GpuCount::ZERO),
        memory_mib: Some(0),
        ..aws("g9f.large")
    };
    assert_eq!(summary(&builtin().accelerators(&facts)), ("L4".to_owned(), None, None));
}

#[test]
fn a_slice_that_the_api_counts_as_one_card_is_a_slice() {
    let facts = AcceleratorFacts {
        provider: Provider::Gcp,
        instance_type: "g4-standard-6",
        vendor: None,
        model: "nvidia-rtx-pro-6000",
        count: cards(1.0),
        memory_mib: None,
    };
    let expected = ("RTX PRO 6000 Blackwell Server".to_owned(), Some(0.125), Some(12 * 1024));
    assert_eq!(summary(&builtin().accelerators(&facts)), expected);
}

#[test]
fn a_stated_memory_that_contradicts_the_model_is_kept() {
    // No nominal memory of an L4 explains 48 GiB; the API is asked first.
    let facts = AcceleratorFacts {
        model: "L4",
        count: cards(1.0),
        memory_mib: Some(49_152),
        ..aws("g6.xlarge")
    };
    let expected = ("L4".to_owned(), Some(1.0), Some(49_152));
    assert_eq!(summary(&builtin().accelerators(&facts)), expected);
}

#[test]
fn memory_without_a_count_is_kept_as_stated() {
    let facts = AcceleratorFacts {
        model: "T4",
        memory_mib: Some(16_384),
        ..aws("zz9.large")
    };
    assert_eq!(
        summary(&builtin().accelerators(&facts)),
        ("T4".to_owned(), None, Some(16_384))
    );
}

#[test]
fn the_api_outranks_the_catalogue_on_the_model() {
    let facts = AcceleratorFacts {
        model: "Quux X9",
        count: cards(1.0),
        ..aws("g6.xlarge")
    };
    let accelerators = builtin().accelerators(&facts);
    // The memory of the L4 that the catalogue expects says nothing about it.
    assert_eq!(summary(&accelerators), ("Quux X9".to_owned(), Some(1.0), None));
    assert!(!accelerators.in_catalog);
}

#[test]
fn the_catalogue_decides_an_ambiguous_name_that_comes_without_memory() {
    let facts = AcceleratorFacts {
        model: "A100",
        count: cards(8.0),
        ..aws("p4de.24xlarge")
    };
    let expected = ("A100 80GB SXM".to_owned(), Some(8.0), Some(640 * 1024));
    assert_eq!(summary(&builtin().accelerators(&facts)), expected);
}

#[test]
fn an_undecided_name_keeps_what_its_models_have_in_common() {
    let facts = AcceleratorFacts {
        vendor: None,
        model: "V100",
        count: cards(2.0),
        ..aws("zz9.large")
    };
    let accelerators = builtin().accelerators(&facts);
    assert_eq!(summary(&accelerators), ("V100".to_owned(), Some(2.0), None));
    assert_eq!((&*accelerators.architecture, accelerators.in_catalog), ("Volta", false));
    assert_eq!(accelerators.vendor.expect("maker").as_str(), "nvidia");
}

#[test]
fn types_that_the_catalogue_lacks_are_sxm_in_a_family_or_a_node_with_switches() {
    let model = |instance_type, count| {
        let facts = AcceleratorFacts {
            model: "H100",
            count: cards(count),
            memory_mib: Some(81_920)
                .filter(|_| count > 0.5)
                .map(|mib| if count > 1.5 { mib * 8 } else { mib }),
            ..aws(instance_type)
        };
        builtin().accelerators(&facts).model.to_string()
    };
    assert_eq!(model("p5.12xlarge", 1.0), "H100 80GB SXM");
    assert_eq!(model("zz9.96xlarge", 8.0), "H100 80GB SXM");
    assert_eq!(model("zz9.4xlarge", 1.0), "H100 80GB PCIe");
}

#[test]
fn azure_slices_and_exposed_memory_come_from_the_catalogue() {
    let of = |instance_type| {
        let shape = builtin().shape(Provider::Azure, instance_type).expect("shape");
        summary(&builtin().shape_accelerators(shape))
    };
    assert_eq!(
        of("Standard_NV6ads_A10_v5"),
        ("A10".to_owned(), Some(1.0 / 6.0), Some(4 * 1024))
    );
    // Azure exposes 24 of 28 GiB.
    assert_eq!(
        of("Standard_NV24ads_V710_v5"),
        ("Radeon Pro V710".to_owned(), Some(1.0), Some(24 * 1024))
    );
    assert_eq!(
        of("Standard_NC40ads_H100_v5"),
        ("H100 NVL 94GB".to_owned(), Some(1.0), Some(94 * 1024))
    );
}

#[test]
fn a_tpu_api_may_use_bare_versions() {
    let facts = AcceleratorFacts {
        provider: Provider::Gcp,
        instance_type: "v4-8",
        vendor: Some("Google"),
        model: "v4",
        count: cards(4.0),
        memory_mib: None,
    };
    let expected = ("TPU v4".to_owned(), Some(4.0), Some(128 * 1024));
    assert_eq!(summary(&builtin().accelerators(&facts)), expected);
}
