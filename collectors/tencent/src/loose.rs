//! Reading fields that may be missing, null or of another type than
//! documented, without losing the record they are in.

use gpuwatch_collector_rest::Rows;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// Text, or a number as text; `None` for anything else and for blanks.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if !text.trim().is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// A number, or text that is one; `None` for anything else.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number: &f64| number.is_finite()))
}

/// A part of a record; `None` when it does not have the expected shape.
pub(crate) fn part<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// The usable entries of a list within a record; empty when it is no list.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(part::<D, Rows<T>>(deserializer)?.unwrap_or_default().good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Record {
        #[serde(default, deserialize_with = "text")]
        text: Option<String>,
        #[serde(default, deserialize_with = "number")]
        number: Option<f64>,
        #[serde(default, deserialize_with = "list")]
        list: Vec<String>,
    }

    #[test]
    fn fields_of_another_type_cost_themselves() {
        let read = |text: &str| serde_json::from_str::<Record>(text).unwrap();
        let full = read(r#"{"text": "a", "number": 0.25, "list": ["x", 1, null, "y"]}"#);
        assert_eq!((full.text.as_deref(), full.number), (Some("a"), Some(0.25)));
        assert_eq!(full.list, ["x", "y"]);
        let odd = read(r#"{"text": 7, "number": "0.5", "list": {}}"#);
        assert_eq!((odd.text.as_deref(), odd.number), (Some("7"), Some(0.5)));
        for empty in [
            "{}",
            r#"{"text": null, "number": null, "list": null}"#,
            r#"{"text": " ", "number": "-", "list": "x"}"#,
            r#"{"text": [], "number": {}, "list": 1}"#,
        ] {
            let record = read(empty);
            assert_eq!(
                (record.text, record.number, record.list.len()),
                (None, None, 0),
                "{empty}"
            );
        }
    }
}
