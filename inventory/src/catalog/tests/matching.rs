//! Names from the outside and the models they mean.

use proptest::prelude::*;

use crate::catalog::builtin;
use crate::catalog::matching::reduce;
use crate::{Provider, Vendor};

fn named(name: &str, memory_gib: Option<f64>) -> Option<&'static str> {
    builtin().model(name, memory_gib).map(|model| &*model.model)
}

#[test]
fn spellings_of_apis_exporters_and_bills_are_recognised() {
    for (name, model) in [
        ("NVIDIA L4", "L4"),
        ("nvidia-l4-vws", "L4"),
        ("Tesla T4", "T4"),
        ("Tesla-T4", "T4"),
        ("nvidia-tesla-t4", "T4"),
        ("GRID T4-16Q", "T4"),
        ("NVidia K2", "K2"),
        ("NVIDIA A10-24Q", "A10"),
        ("A40-48Q", "A40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA-L40S-48C", "L40S"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "A100 80GB SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB SXM"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "H100 80GB SXM"),
        ("H100-80GB-MEGA", "H100 80GB SXM"),
        ("NVIDIA H100 NVL", "H100 NVL 94GB"),
        ("RTX PRO Server 6000", "RTX PRO 6000 Blackwell Server"),
        ("RTX-PRO-6000-VWS", "RTX PRO 6000 Blackwell Server"),
        ("Radeon Pro V520", "Radeon Pro V520"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("Gaudi HL-205", "Gaudi"),
        ("Qualcomm AI100", "Cloud AI 100"),
        ("TPU-v5e", "TPU v5e"),
        ("tpu-v6e-slice", "TPU v6e"),
        ("Ada Lovelace (vGPU)", "Ada Lovelace vGPU 48GB"),
        ("A16 (GA107 chip)", "A16"),
        ("L20(GN8IS)", "L20"),
        ("P16EN", "PPU 810E"),
        ("含光800", "Hanguang 800"),
        ("  nvidia   b200 GPU ", "B200"),
    ] {
        assert_eq!(named(name, None), Some(model), "{name}");
    }
}

#[test]
fn a_part_of_a_name_is_not_a_match() {
    for name in [
        "",
        "NVIDIA",
        "NVIDIA Corporation",
        "MIG 1g.10gb",
        "L4X",
        "NVIDIA L40T",
        "H2000",
        "A100X",
        "RTX 4090 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "Ascend910B2C",
        "xv100",
    ] {
        assert_eq!(named(name, None), None, "{name}");
    }
}

#[test]
fn memory_decides_an_ambiguous_name() {
    for (name, memory_gib, model) in [
        ("A100", 40.0, "A100 40GB"),
        ("V100", 16.0, "V100 16GB"),
        ("NVIDIA V100", 31.7, "V100 32GB"),
        ("M40", 22.4, "M40 24GB"),
        ("H20", 95.6, "H20 96GB"),
        ("H20", 141.0, "H20 141GB"),
        ("H100", 93.6, "H100 NVL 94GB"),
        ("Ascend910B", 32.0, "Ascend 910B4"),
    ] {
        assert_eq!(named(name, Some(memory_gib)), Some(model), "{name} {memory_gib}");
    }
}

#[test]
fn an_ambiguous_name_stays_unknown_without_a_memory_that_fits() {
    assert_eq!(named("A100", None), None);
    assert_eq!(named("V100", Some(24.0)), None);
    // 8.1 % below 96.
    assert_eq!(named("H20", Some(88.2)), None);
    assert_eq!(named("H20", Some(88.4)), Some("H20 96GB"));
}

#[test]
fn a_model_that_states_its_memory_is_not_a_card_with_another() {
    assert_eq!(named("P100", Some(16.0)), Some("P100 16GB"));
    assert_eq!(named("P100", Some(12.0)), None);
    // This one does not: a slice, or a figure that is wrong.
    assert_eq!(named("L4", Some(3.0)), Some("L4"));
}

#[test]
fn forms_alike_in_memory_get_the_lower_figures() {
    assert_eq!(named("H100", Some(80.0)), Some("H100 80GB PCIe"));
    assert_eq!(named("A100", Some(79.6)), Some("A100 80GB PCIe"));
    assert_eq!(named("H200", None), Some("H200 NVL"));
}

#[test]
fn tpu_versions_mean_a_tpu_only_in_a_tpu_api() {
    for version in ["v2", "v3", "v4", "v5p", "v5e", "v6e", "v7x"] {
        assert_eq!(named(version, None), None, "{version}");
        let google = Vendor::new("google");
        let found = builtin()
            .model_index
            .candidates(builtin().models(), version, Some(&google));
        assert_eq!(found.len(), 1, "{version}");
    }
}

#[test]
fn another_maker_is_another_model() {
    let of = |maker: &str| {
        let maker = Vendor::new(maker);
        builtin()
            .model_index
            .candidates(builtin().models(), "C500", Some(&maker))
            .len()
    };
    assert_eq!((of("MetaX"), of("NVIDIA"), of("a maker nobody knows")), (1, 0, 1));
}

/// Text made of what names are made of, so that matches happen often.
fn name_like() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("NVIDIA".to_owned()),
        Just("tesla".to_owned()),
        Just("ra".to_owned()),
        Just("deon".to_owned()),
        Just("MIG".to_owned()),
        Just("1g.10gb".to_owned()),
        Just("vGPU".to_owned()),
        Just("-".to_owned()),
        Just(" ".to_owned()),
        Just("İΣß".to_owned()),
        Just("A100".to_owned()),
        Just("80GB".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_survived(name in name_like(), memory in any::<Option<f64>>(), vendor in any::<Option<String>>()) {
        let _ = builtin().model(&name, memory);
        let facts = crate::catalog::AcceleratorFacts {
            provider: Provider::Aliyun,
            instance_type: &name,
            vendor: vendor.as_deref(),
            model: &name,
            count: memory.and_then(crate::GpuCount::new),
            memory_mib: memory.map(f64::to_bits),
        };
        let accelerators = builtin().accelerators(&facts);
        prop_assert!(accelerators.in_catalog || *accelerators.model == *name.trim());
        prop_assert_ne!(accelerators.memory_mib, Some(0));
    }

    #[test]
    fn reducing_twice_changes_nothing(name in name_like()) {
        let once = reduce(&name);
        prop_assert_eq!(reduce(&once), once.clone());
    }

    #[test]
    fn case_and_separators_do_not_matter(
        at in 0..builtin().models().len(),
        separator in prop_oneof![Just("-"), Just("_"), Just("  "), Just(" (")],
        upper in any::<bool>(),
    ) {
        let model = &builtin().models()[at];
        for name in std::iter::once(&model.model).chain(&model.aliases) {
            let cased = if upper { name.to_uppercase() } else { name.to_lowercase() };
            let changed = cased.replace([' ', '-', '_'], separator);
            let found = builtin().model_index.candidates(builtin().models(), &changed, Some(&model.vendor));
            prop_assert!(found.iter().any(|other| other.model == model.model), "{}", changed);
        }
    }
}
