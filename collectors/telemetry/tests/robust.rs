//! Whatever a server answers, and whatever labels say, is data to survive.

#![allow(clippy::expect_used, reason = "a test may fail")]

use gpuwatch_collector_telemetry::{
    answer::{Labels, Series},
    device::{Device, Target},
    family::FAMILIES,
    join::{JoinTable, Node},
};
use proptest::prelude::*;

const NAMES: [&str; 12] = [
    "instance",
    "Hostname",
    "node",
    "UUID",
    "gpu",
    "GPU_I_PROFILE",
    "GPU_I_ID",
    "modelName",
    "accelerator_id",
    "provider_id",
    "cloud_account",
    "provider",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z]{1,8}://[^ ]{0,30}",
        "[0-9g.]{0,12}",
        "(GPU-)?[0-9a-f-]{0,40}",
        "\\[?[0-9a-f:.]{0,20}\\]?:?[0-9]{0,6}",
        "(i-|ins-|iz|ip-)[0-9a-z-]{0,20}",
    ]
}

proptest! {
    #[test]
    fn labels_of_any_kind_are_joined_or_refused(values in prop::collection::vec(text(), NAMES.len()), node in text(), id in text()) {
        let labels: Labels = NAMES.iter().map(|name| (*name).to_owned()).zip(values).collect();
        let node = Node { name: node.to_lowercase(), provider_id: id, address: String::new(), cluster: String::new() };
        let table = JoinTable::new(&[], vec![node]);
        let target = Target::of(&labels, &["instance_id".to_owned()]);
        prop_assert!(table.join(&target).is_err(), "there is no instance");
        let _ = target.title();
        for family in FAMILIES {
            if let Some(slice) = Device::of(&labels, family).and_then(|device| device.slice) {
                prop_assert!(slice.size >= 1 && slice.size <= 7 && slice.of >= 4);
            }
        }
    }

    #[test]
    fn answers_of_any_kind_are_read_or_refused(text in any::<String>(), time in any::<f64>(), value in any::<String>()) {
        let _ = serde_json::from_str::<Series>(&text);
        let series = serde_json::json!({"metric": {"a": text}, "values": [[time, value]]});
        if let Ok(series) = serde_json::from_value::<Series>(series) {
            prop_assert!(series.samples().count() <= 1);
        }
    }
}
