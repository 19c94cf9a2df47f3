//! Values that products write in more than one way.

use jiff::{Timestamp, civil::DateTime, tz::Offset};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A number, or a text that is one; `None` for anything else.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value.as_ref().and_then(as_number))
}

/// A text, or a number written as one; empty for anything else.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    })
}

/// A flag, or the text of one; `None` for anything else.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        Some(Value::Bool(flag)) => Some(flag),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    })
}

fn as_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

/// A whole number of at least 0.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
pub(crate) fn units(number: Option<f64>) -> Option<u32> {
    let number = number.filter(|n| (0.0..=f64::from(u32::MAX)).contains(n) && n.fract() == 0.0)?;
    Some(number as u32)
}

/// A time in UTC: with or without seconds (`2026-01-01T02:43Z`).
pub(crate) fn utc(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let minutes = text.strip_suffix('Z')?;
        let time = DateTime::strptime("%Y-%m-%dT%H:%M", minutes).ok()?;
        Offset::UTC.to_timestamp(time).ok()
    })
}

/// A time of the billing product: Beijing time without a zone
/// (`2026-01-01 02:43:00`).
pub(crate) fn beijing(text: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y-%m-%d %H:%M:%S", text.trim()).ok()?;
    Offset::constant(8).to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_shape() {
        let expected: Timestamp = "2026-01-01T02:43:00Z".parse().unwrap();
        assert_eq!(utc("2026-01-01T02:43Z"), Some(expected));
        assert_eq!(utc("2026-01-01T02:43:00Z"), Some(expected));
        assert_eq!(beijing("2026-01-01 10:43:00"), Some(expected));
        for bad in ["", "2026-01-01", "never", "2026-13-01T00:00Z"] {
            assert_eq!(utc(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_may_be_texts() {
        for (json, expected) in [
            ("8", Some(8.0)),
            ("\"8\"", Some(8.0)),
            ("null", None),
            ("\"x\"", None),
            ("[]", None),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(as_number(&value), expected, "{json}");
        }
        assert_eq!(
            (units(Some(3.0)), units(Some(-1.0)), units(Some(0.5))),
            (Some(3), None, None)
        );
    }
}
