//! Small changes to JSON rows.

use serde_json::Value;

/// Sets a member of an object; other values stay as they are.
pub(crate) fn set(row: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(fields) = row.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// One more row: a copy of the first without its id.
pub(crate) fn add_malformed(rows: &mut Vec<Value>, id: &str) {
    let Some(mut extra) = rows.first().cloned() else { return };
    if let Some(fields) = extra.as_object_mut() {
        fields.remove(id);
    }
    rows.push(extra);
}
