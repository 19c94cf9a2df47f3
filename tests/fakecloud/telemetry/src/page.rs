//! An exporter's page in the Prometheus text format.

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::Timestamp;

use crate::{
    source::{Kind, Labels},
    storage::Target,
};

/// Series of one family with their values.
type Family<'a> = (Kind, Vec<(&'a Labels, f64)>);

/// The page of a target as it is at a time.
#[must_use]
pub fn text(target: &Target, at: Timestamp) -> String {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    for (host, source) in &target.series {
        if let Some(value) = source.value(host, at) {
            families
                .entry(source.name)
                .or_insert((source.kind, Vec::new()))
                .1
                .push((&source.labels, value));
        }
    }
    let mut page = String::new();
    for (name, (kind, series)) in families {
        let word = if kind == Kind::Counter { "counter" } else { "gauge" };
        // Writing into a `String` cannot fail.
        let _ = writeln!(page, "# HELP {name} As the exporter has it.\n# TYPE {name} {word}");
        for (labels, value) in series {
            let _ = writeln!(page, "{} {value}", series_text(name, labels));
        }
    }
    page
}

/// `name{label="value"}`.
#[must_use]
pub fn series_text(name: &str, labels: &Labels) -> String {
    let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
        .collect();
    if labels.is_empty() {
        name.to_owned()
    } else {
        format!("{name}{{{}}}", labels.join(","))
    }
}
