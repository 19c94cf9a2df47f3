//! Lists whose records may be bad one by one.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// A list in an answer. A record that does not have the expected shape costs
/// that record and not the list; `null` is an empty list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T> {
    /// Records that could be read.
    pub good: Vec<T>,
    /// Number of records that could not, to be counted as skipped.
    pub bad: u64,
}

impl<T> Rows<T> {
    /// Records, usable or not.
    #[must_use]
    pub fn total(&self) -> usize {
        self.good
            .len()
            .saturating_add(usize::try_from(self.bad).unwrap_or(usize::MAX))
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self {
            good: Vec::new(),
            bad: 0,
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Option::<Vec<Box<RawValue>>>::deserialize(deserializer)?.unwrap_or_default();
        let mut rows = Self {
            good: Vec::with_capacity(raw.len()),
            bad: 0,
        };
        for record in raw {
            match serde_json::from_str(record.get()) {
                Ok(record) => rows.good.push(record),
                Err(_) => rows.bad += 1,
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Page {
        #[serde(default)]
        items: Rows<Item>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Item {
        id: String,
    }

    // P48
    #[test]
    fn a_malformed_record_costs_itself() {
        let page: Page = serde_json::from_str(r#"{"items": [{"id": "a"}, {}, null, 7, {"id": "b"}]}"#).unwrap();
        let ids: Vec<&str> = page.items.good.iter().map(|item| item.id.as_str()).collect();
        assert_eq!((ids, page.items.bad, page.items.total()), (vec!["a", "b"], 3, 5));
    }

    #[test]
    fn an_absent_or_null_list_is_empty() {
        for text in ["{}", r#"{"items": null}"#, r#"{"items": []}"#] {
            assert_eq!(serde_json::from_str::<Page>(text).unwrap().items.total(), 0, "{text}");
        }
        assert!(serde_json::from_str::<Page>(r#"{"items": {}}"#).is_err());
    }
}
