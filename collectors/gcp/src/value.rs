//! Values in answers that come in more than one form.

use serde::{Deserialize, Deserializer};

/// A whole number that JSON carries as text, because it may be larger than a
/// number of JSON can be; plain numbers are read too. What is no whole number
/// of at least 0 is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Whole(pub Option<u64>);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            serde_json::Value::Number(number) => number.as_u64(),
            _ => None,
        }))
    }
}

impl Whole {
    /// The number, at most `u32::MAX`.
    pub(crate) fn count(self) -> Option<u32> {
        self.0.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }
}

/// A time of RFC 3339 with any offset; text that is none is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Time(pub Option<jiff::Timestamp>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self(text.and_then(|text| text.parse().ok())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_text_or_as_numbers() {
        let whole = |json: &str| serde_json::from_str::<Whole>(json).unwrap().0;
        assert_eq!(whole("\"18446744073709551615\""), Some(u64::MAX), "above i64");
        assert_eq!(whole("8"), Some(8));
        for json in ["null", "\"\"", "\"x\"", "-1", "1.5", "[]"] {
            assert_eq!(whole(json), None, "{json}");
        }
    }

    #[test]
    fn times_are_read_with_their_offset() {
        let time = |json: &str| serde_json::from_str::<Time>(json).unwrap().0;
        let expected = "2026-11-30T20:00:00Z".parse().ok();
        assert_eq!(time("\"2026-11-30T12:00:00.000-08:00\""), expected);
        assert_eq!(time("\"soon\""), None);
        assert_eq!(time("null"), None);
    }
}
