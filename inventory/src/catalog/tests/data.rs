//! What must hold of the compiled-in data, so that no edit of a CSV file
//! changes an answer unseen.

use std::collections::{BTreeMap, BTreeSet};

use crate::Provider;
use crate::catalog::matching::{is_close, pick, reduce};
use crate::catalog::{AcceleratorFacts, Catalog, CatalogError, InstanceShape, MODELS, SHAPES, builtin};

/// `provider type`, for lists.
fn key(shape: &InstanceShape) -> String {
    format!("{} {}", shape.provider, shape.instance_type)
}

fn keys_where(keep: impl Fn(&InstanceShape) -> bool) -> Vec<String> {
    builtin().shapes().iter().filter(|shape| keep(shape)).map(key).collect()
}

#[test]
fn the_compiled_in_files_are_well_formed() {
    let error: Option<CatalogError> = Catalog::from_csv(MODELS, &SHAPES).err();
    assert_eq!(error, None);
    assert!(builtin().models().len() > 120);
}

#[test]
fn every_cloud_has_its_instance_types() {
    let mut per_cloud = BTreeMap::new();
    for shape in builtin().shapes() {
        *per_cloud.entry(shape.provider).or_insert(0) += 1;
    }
    for provider in Provider::ALL {
        assert!(per_cloud.get(provider).is_some_and(|count| *count > 60), "{provider}");
    }
}

#[test]
fn the_shapes_whose_model_is_not_known_are_these() {
    // The documents name no model, or a V100 without its memory.
    let expected = [
        "tencent HCCG5v.24XLARGE384",
        "tencent PNV5b.12XLARGE192",
        "tencent PNV5b.16XLARGE192",
        "tencent PNV5b.24XLARGE384",
        "tencent PNV5b.32XLARGE384",
        "tencent PNV5b.48XLARGE768",
        "tencent PNV5b.64XLARGE768",
        "tencent PNV5b.8XLARGE96",
        "tencent PNV5b.96XLARGE1536",
        "tencent PNV6.16XLARGE640",
        "tencent PNV6.32XLARGE1280",
        "tencent PNV6.4XLARGE160",
        "tencent PNV6.8XLARGE320",
        "tencent PNV6.96XLARGE2304",
        "tencent TI.GN10.10XLARGE160.POST",
        "tencent TI.GN10.20XLARGE320.POST",
        "tencent TI.GN10.2XLARGE40.POST",
        "tencent TI.GN10.5XLARGE80.POST",
    ];
    assert_eq!(keys_where(|shape| builtin().shape_model(shape).is_none()), expected);
}

#[test]
fn a_shape_resolves_to_a_model_of_its_own_maker() {
    for shape in builtin().shapes() {
        if let Some(model) = builtin().shape_model(shape) {
            assert_eq!(model.vendor, shape.vendor, "{}", key(shape));
        }
    }
}

#[test]
fn shapes_state_the_memory_of_one_whole_card() {
    // Azure exposes 24 of the V710's 28 GiB; the rest is within what drivers
    // keep for themselves.
    let expected = [
        "azure Standard_NV4ads_V710_v5",
        "azure Standard_NV8ads_V710_v5",
        "azure Standard_NV12ads_V710_v5",
        "azure Standard_NV24ads_V710_v5",
        "azure Standard_NV28adms_V710_v5",
    ];
    let differs = |shape: &InstanceShape| {
        let nominal = builtin().shape_model(shape).and_then(|model| model.memory_gib);
        let stated = shape.memory_gib_per_accelerator;
        stated
            .zip(nominal)
            .is_some_and(|(stated, nominal)| !is_close(stated, nominal))
    };
    assert_eq!(keys_where(differs), expected);
}

#[test]
fn every_shape_has_a_maker_and_a_count_and_nearly_every_one_its_memory() {
    let expected = [
        "tencent HCCG5v.24XLARGE384",
        "tencent TI.GN10.10XLARGE160.POST",
        "tencent TI.GN10.20XLARGE320.POST",
        "tencent TI.GN10.2XLARGE40.POST",
        "tencent TI.GN10.5XLARGE80.POST",
    ];
    let mut without_memory = Vec::new();
    for shape in builtin().shapes() {
        let accelerators = builtin().shape_accelerators(shape);
        assert_eq!(accelerators.vendor.as_ref(), Some(&shape.vendor), "{}", key(shape));
        assert_eq!(accelerators.count, shape.count, "{}", key(shape));
        assert!(accelerators.count.is_some(), "{}", key(shape));
        if accelerators.memory_mib.is_none() {
            without_memory.push(key(shape));
        }
    }
    assert_eq!(without_memory, expected);
}

#[test]
fn slices_add_up_to_whole_cards() {
    for shape in builtin().shapes() {
        let accelerators = builtin().shape_accelerators(shape);
        let slices = accelerators
            .slices_per_card
            .expect("a whole number of slices makes a card");
        let count = accelerators.count.expect("count").get();
        if count < 1.0 {
            assert!((count * f64::from(slices) - 1.0).abs() < 1e-12, "{}", key(shape));
        } else {
            assert_eq!((slices, count.fract()), (1, 0.0), "{}", key(shape));
        }
    }
}

#[test]
fn every_name_of_a_model_leads_to_it_and_to_no_other_maker() {
    for model in builtin().models() {
        for name in std::iter::once(&model.model).chain(&model.aliases) {
            let candidates = builtin()
                .model_index
                .candidates(builtin().models(), name, Some(&model.vendor));
            assert!(candidates.iter().any(|other| other.model == model.model), "{name}");

            let anywhere = builtin().model_index.candidates(builtin().models(), name, None);
            assert!(anywhere.iter().all(|other| other.vendor == model.vendor), "{name}");
        }
    }
}

#[test]
fn every_name_of_a_model_is_decided_once_its_memory_is_known() {
    for model in builtin().models() {
        for name in std::iter::once(&model.model).chain(&model.aliases) {
            let candidates = builtin()
                .model_index
                .candidates(builtin().models(), name, Some(&model.vendor));
            let found = pick(&candidates, model.memory_gib, None, false)
                .unwrap_or_else(|| panic!("{name} at {:?} GiB", model.memory_gib));
            assert_eq!(
                (&found.vendor, &found.architecture, found.memory_gib),
                (&model.vendor, &model.architecture, model.memory_gib),
                "{name}"
            );
        }
    }
}

#[test]
fn the_ambiguous_names_are_these() {
    let mut ambiguous = BTreeMap::new();
    for model in builtin().models() {
        for name in &model.aliases {
            let candidates = builtin()
                .model_index
                .candidates(builtin().models(), name, Some(&model.vendor));
            if candidates.len() > 1 {
                let names: Vec<&str> = candidates.iter().map(|model| &*model.model).collect();
                ambiguous.insert(reduce(name), names);
            }
        }
    }
    let expected = BTreeMap::from([
        ("a100", vec!["A100 40GB", "A100 80GB SXM", "A100 80GB PCIe"]),
        ("h100", vec!["H100 80GB SXM", "H100 80GB PCIe", "H100 NVL 94GB"]),
        ("h20", vec!["H20 96GB", "H20 141GB"]),
        ("h200", vec!["H200 141GB SXM", "H200 NVL"]),
        ("m40", vec!["M40 12GB", "M40 24GB"]),
        ("v100", vec!["V100 16GB", "V100 32GB"]),
        ("910b", vec!["Ascend 910B3", "Ascend 910B4"]),
        ("ascend910b", vec!["Ascend 910B3", "Ascend 910B4"]),
    ]);
    let expected: BTreeMap<String, Vec<&str>> = expected
        .into_iter()
        .map(|(name, models)| (name.to_owned(), models))
        .collect();
    assert_eq!(ambiguous, expected);
}

#[test]
fn makers_are_single_words() {
    let makers: BTreeSet<&str> = builtin().models().iter().map(|model| model.vendor.as_str()).collect();
    for maker in &makers {
        let is_word = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        assert!(maker.chars().all(is_word), "{maker}");
    }
    for maker in ["nvidia", "amd", "aws", "google", "intel", "huawei", "t-head"] {
        assert!(makers.contains(maker), "{maker}");
    }
}

#[test]
fn prices_carry_currency_and_region() {
    let price = |provider, instance_type| {
        let shape = builtin().shape(provider, instance_type).expect("shape");
        shape
            .reference_price
            .clone()
            .map(|price| (price.hourly.to_string(), price.region.to_string()))
    };
    let text = |amount: &str, region: &str| Some((amount.to_owned(), region.to_owned()));
    assert_eq!(price(Provider::Aws, "g6.xlarge"), text("0.8048 USD", "us-east-1"));
    assert_eq!(price(Provider::Gcp, "a3-highgpu-8g"), text("88.49 USD", "us-central1"));
    assert_eq!(
        price(Provider::Azure, "Standard_NV36ads_A10_v5"),
        text("3.2 USD", "eastus")
    );
    assert_eq!(price(Provider::Aws, "p5e.48xlarge"), None);
    // Not sold in the region of the column.
    assert_eq!(price(Provider::Gcp, "ct4p-hightpu-4t"), None);
}

#[test]
fn instance_types_are_found_in_any_case_but_only_in_their_cloud() {
    let found = builtin().shape(Provider::Azure, "standard_nc6S_V3").expect("shape");
    assert_eq!(&*found.instance_type, "Standard_NC6s_v3");
    assert!(builtin().shape(Provider::Aws, "Standard_NC6s_v3").is_none());
    assert!(builtin().shape(Provider::Aws, "").is_none());
}

#[test]
fn blank_cells_are_unknown_and_not_zero() {
    let v100 = builtin().model("V100", Some(16.0)).expect("model");
    assert_eq!((v100.bf16_tensor_tflops, v100.fp16_tensor_tflops), (None, Some(125.0)));
    assert_eq!(v100.mig_max_instances, Some(0));
    let mi308x = builtin().model("MI308X", None).expect("model");
    assert_eq!((mi308x.memory_gib, mi308x.mig_max_instances), (None, None));
    let attachable = builtin().shape(Provider::Gcp, "nvidia-tesla-t4").expect("shape");
    assert_eq!((attachable.vcpus, attachable.memory_gib), (None, None));
}

#[test]
fn models_and_shapes_can_be_written_as_documents() {
    let l4 = serde_json::to_value(builtin().model("L4", None)).expect("json");
    assert_eq!(l4["vendor"], "nvidia");
    assert_eq!(l4["confidence"], "high");
    let shape = builtin().shape(Provider::Aws, "g6f.large");
    let g6f = serde_json::to_value(shape).expect("json");
    assert_eq!(g6f["count"], 0.125);
    assert_eq!(g6f["reference_price"]["hourly"]["amount"], "0.202");
}

#[test]
fn masked_product_codes_are_known_but_have_no_figures() {
    for code in [
        "GU8TF", "GU8TEF", "L20X", "GX8SF", "G49E", "G59", "G28Ti", "L20N", "L20NE",
    ] {
        let facts = AcceleratorFacts {
            provider: Provider::Aliyun,
            instance_type: "",
            vendor: Some("NVIDIA"),
            model: code,
            count: None,
            memory_mib: None,
        };
        assert!(builtin().accelerators(&facts).in_catalog, "{code}");
        let model = builtin().model(code, None).expect("model");
        assert_eq!((model.memory_gib, model.bf16_tensor_tflops), (None, None), "{code}");
    }
}
