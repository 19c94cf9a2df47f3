//! What unit tests share: a scope, and answers that nobody expects.

use std::time::Duration;

use gpuwatch_collector_core::{Account, Context, Scope};
use gpuwatch_inventory::Provider;
use proptest::prelude::*;
use serde_json::Value;

/// A place of an account.
pub(crate) fn scope(region: &str) -> Scope {
    Scope {
        provider: Provider::Aliyun,
        account: Account {
            id: "1001".into(),
            name: "cn".into(),
        },
        region: region.into(),
    }
}

/// A run in that account.
pub(crate) fn context() -> Context {
    Context::detached(scope("cn-hangzhou"), Duration::from_secs(10))
}

/// Values of any shape, with objects that often have these names.
fn value(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "PrePaid",
            "PostPaid",
            "Stopped",
            "Active",
            "NORMAL",
            "Zone",
            "2026-01-01T02:43Z",
            "2026-01-01 02:43:00",
            "1e308",
            "-0.5",
            "CNY",
            "HOUR"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let name =
            prop_oneof![3 => prop::sample::select(names.to_vec()).prop_map(str::to_owned), 1 => "[A-Za-z]{1,10}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// The text of any document, with objects that often have these names.
pub(crate) fn document(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    value(names).prop_map(|value| value.to_string())
}

/// The text of an object of these names, each with any value or none, and an
/// id under the first of them more often than not.
pub(crate) fn record(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    let (id, rest) = names.split_first().expect("an id");
    let id = prop::option::weighted(
        0.9,
        prop_oneof![9 => "[a-z0-9-]{1,12}".prop_map(Value::from), 1 => value(names)],
    )
    .prop_map(move |value| value.map(|value| ((*id).to_owned(), value)));
    let rest: Vec<_> = rest
        .iter()
        .map(|name| {
            prop::option::of(value(names)).prop_map(move |value| value.map(|value| ((*name).to_owned(), value)))
        })
        .collect();
    (id, rest).prop_map(|(id, rest)| Value::Object(rest.into_iter().chain([id]).flatten().collect()).to_string())
}
