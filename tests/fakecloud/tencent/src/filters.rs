//! The filters of listings, as strict as the real ones.

use serde_json::Value;

use crate::error::ApiError;

/// Name and values of each filter.
pub(crate) struct Filters<'a>(Vec<(&'a str, Vec<&'a str>)>);

/// Most filters of a call.
const MOST: usize = 10;

impl<'a> Filters<'a> {
    /// The filters of a body; each has at most `values` values, and a name that
    /// `is_known`.
    pub(crate) fn read(body: &'a Value, values: usize, is_known: impl Fn(&str) -> bool) -> Result<Self, ApiError> {
        let Some(list) = body["Filters"].as_array() else {
            return match &body["Filters"] {
                Value::Null => Ok(Self(Vec::new())),
                _ => Err(ApiError::new("InvalidParameter", "Filters is not a list.")),
            };
        };
        if list.len() > MOST {
            return Err(ApiError::new(
                "InvalidFilterValue.LimitExceeded",
                format!("At most {MOST} filters."),
            ));
        }
        let mut filters = Vec::new();
        for filter in list {
            let name = filter["Name"].as_str().unwrap_or_default();
            if !is_known(name) {
                return Err(ApiError::new("InvalidFilter", format!("There is no filter `{name}`.")));
            }
            let wanted: Vec<&str> = filter["Values"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if wanted.is_empty() || wanted.len() > values {
                return Err(ApiError::new(
                    "InvalidFilterValue.LimitExceeded",
                    format!("The filter `{name}` takes 1 to {values} values."),
                ));
            }
            filters.push((name, wanted));
        }
        Ok(Self(filters))
    }

    /// Whether a row passes every filter, given its value for each; `None` for
    /// a filter that the row has no value for.
    pub(crate) fn pass<'r>(&self, value: impl Fn(&str) -> Option<&'r str>) -> bool {
        self.0
            .iter()
            .all(|(name, wanted)| value(name).is_some_and(|value| wanted.contains(&value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(body: &Value) -> Option<String> {
        let known = |name: &str| name == "zone" || name.starts_with("tag:");
        Filters::read(body, 2, known).err().map(|error| error.code)
    }

    #[test]
    fn unknown_names_and_too_many_values_are_refused() {
        let one = |name: &str, values: &[&str]| json!({"Filters": [{"Name": name, "Values": values}]});
        assert_eq!(code(&json!({})), None);
        assert_eq!(code(&one("zone", &["a", "b"])), None);
        assert_eq!(code(&one("tag:team", &["a"])), None);
        assert_eq!(code(&one("instance-type", &["a"])).as_deref(), Some("InvalidFilter"));
        for bad in [one("zone", &["a", "b", "c"]), one("zone", &[])] {
            assert_eq!(code(&bad).as_deref(), Some("InvalidFilterValue.LimitExceeded"));
        }
        let many: Vec<Value> = (0..11).map(|_| json!({"Name": "zone", "Values": ["a"]})).collect();
        assert_eq!(
            code(&json!({"Filters": many})).as_deref(),
            Some("InvalidFilterValue.LimitExceeded")
        );
    }

    #[test]
    fn a_row_has_to_pass_every_filter() {
        let body =
            json!({"Filters": [{"Name": "zone", "Values": ["a", "b"]}, {"Name": "tag:team", "Values": ["research"]}]});
        let filters = Filters::read(&body, 5, |_| true).unwrap_or_else(|_| panic!("refused"));
        let row = |zone: &'static str, team: Option<&'static str>| {
            filters.pass(move |name| if name == "zone" { Some(zone) } else { team })
        };
        assert!(row("a", Some("research")) && row("b", Some("research")));
        assert!(!row("c", Some("research")) && !row("a", Some("web")) && !row("a", None));
    }
}
