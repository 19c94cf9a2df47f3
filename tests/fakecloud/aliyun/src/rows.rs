//! Small changes to JSON rows.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

/// Sets a member of an object; other values stay as they are.
pub(crate) fn set(row: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(fields) = row.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The alterations that need to know what a row is: the field that holds its
/// id, and those whose words no client knows, one in each of the first rows.
pub(crate) fn spoilt(mut rows: Vec<Value>, alteration: Option<FaultKind>, id: &str, words: &[&str]) -> Vec<Value> {
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            for (row, word) in rows.iter_mut().zip(words) {
                set(row, word, "Foo");
            }
        }
        Some(FaultKind::MalformedRecord) => {
            let mut extra = rows.first().cloned().unwrap_or_else(|| json!({}));
            if let Some(fields) = extra.as_object_mut() {
                fields.remove(id);
            }
            rows.push(extra);
        }
        _ => {}
    }
    rows
}

/// Tags as the API writes them.
pub(crate) fn tags(tags: &[(String, String)]) -> Value {
    let rows: Vec<Value> = tags
        .iter()
        .map(|(key, value)| json!({"TagKey": key, "TagValue": value}))
        .collect();
    json!({ "Tag": rows })
}
