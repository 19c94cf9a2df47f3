use super::*;

fn stated(count: f64, model: &str) -> Stated<'_> {
    Stated {
        count: GpuCount::new(count).filter(|count| *count > GpuCount::ZERO),
        model,
    }
}

fn fact(count: f64, model: &str, card_gib: Option<f64>) -> TypeFact {
    TypeFact {
        count: GpuCount::new(count).filter(|count| *count > GpuCount::ZERO),
        model: model.to_owned(),
        card_gib,
    }
}

fn decided(name: &str, stated: Stated<'_>) -> Option<(Option<f64>, String, Option<u64>)> {
    decide(name, stated, None, None).map(|a| (a.count.map(GpuCount::get), a.model.to_string(), a.memory_mib))
}

// P36
#[test]
fn slices_are_exact_fractions_with_their_part_of_the_memory() {
    let quarter = decided("GN7.LARGE20", stated(0.25, "NVIDIA T4"));
    assert_eq!(quarter, Some((Some(0.25), "T4".into(), Some(4 * 1024))));
    // A table that counts the slice as a card, or says nothing.
    for count in [0.0, 1.0] {
        let slice = decided("GN7.2XLARGE40", stated(count, ""));
        assert_eq!(slice, Some((Some(0.5), "T4".into(), Some(8 * 1024))), "{count}");
    }
}

#[test]
fn without_a_statement_tables_come_before_the_catalogue_and_names_come_last() {
    let zone = fact(8.0, "NVIDIA T4", None);
    let by_table = decide("NEW1.48XLARGE", Stated::default(), Some(&zone), None).unwrap();
    assert_eq!((by_table.count.map(GpuCount::get), &*by_table.model), (Some(8.0), "T4"));
    let by_catalog = decided("GT4.41XLARGE948", Stated::default());
    assert_eq!(by_catalog, Some((Some(8.0), "A100 40GB".into(), Some(8 * 40 * 1024))));
    let by_name = decided("HCCPNV4ane.58XLARGE1929", Stated::default());
    assert_eq!(by_name, Some((None, String::new(), None)));
    let none = fact(0.0, "", None);
    assert_eq!(decide("S5.LARGE8", Stated::default(), Some(&none), None), None);
}

#[test]
fn a_code_for_a_card_does_not_hide_the_catalogue() {
    let code = fact(1.0, "N88a", Some(40.0));
    let known = decide("GT4.4XLARGE96", Stated::default(), None, Some(&code)).unwrap();
    assert_eq!((&*known.model, known.memory_mib), ("A100 40GB", Some(40 * 1024)));
    let unknown = decide("PNV9.4XLARGE96", Stated::default(), None, Some(&code)).unwrap();
    assert_eq!(
        (&*unknown.model, unknown.in_catalog, unknown.memory_mib),
        ("N88a", false, Some(40 * 1024))
    );
}

#[test]
fn memory_decides_between_cards_of_one_name() {
    let config = fact(8.0, "", Some(80.0));
    let big = decide("PNV9.41XLARGE948", stated(8.0, "NVIDIA A100"), None, Some(&config)).unwrap();
    assert_eq!(big.memory_mib, Some(8 * 80 * 1024));
}

#[test]
fn families_are_told_by_their_names() {
    for name in [
        "GN10Xp.2XLARGE40",
        "GNV4v.XLARGE24",
        "GC49.8XLARGE",
        "BMG5t.24XLARGE",
        "HCCTG5v.1",
        "TI.GN7.1.POST",
    ] {
        assert!(is_gpu_family(name), "{name}");
    }
    for name in [
        "S5.LARGE8",
        "HCCIC5.32XLARGE",
        "M6.LARGE",
        "BMS5.1",
        "FX2.1",
        "CDH_4C8G",
        "",
    ] {
        assert!(!is_gpu_family(name), "{name}");
    }
}

#[test]
fn models_are_read_from_remarks_or_not_at_all() {
    for (remark, model) in [
        ("8 * NVIDIA V100", Some("NVIDIA V100")),
        ("4 颗 NVIDIA T4", Some("NVIDIA T4")),
        ("1/4*NVIDIA T4 (vGPU)", Some("NVIDIA T4")),
        ("8×NVIDIA A100，NVLink", Some("NVIDIA A100")),
        ("", None),
        ("NVIDIA", None),
        ("8", None),
        ("8 * ", None),
        ("适用于推理", None),
    ] {
        assert_eq!(model_of_remark(remark), model, "{remark}");
    }
}

#[test]
fn whole_numbers_count_only_where_the_exact_one_is_missing() {
    let get = |exact, whole| count(exact, whole).map(GpuCount::get);
    assert_eq!(get(Some(0.25), Some(1.0)), Some(0.25));
    assert_eq!(get(Some(0.0), Some(1.0)), Some(1.0));
    assert_eq!(get(None, Some(8.0)), Some(8.0));
    assert_eq!(get(None, Some(-1.0)), None);
}
