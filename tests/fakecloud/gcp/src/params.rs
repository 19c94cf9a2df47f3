//! Query parameters, the ones that every call shares.

use std::collections::BTreeMap;

use crate::error::ApiError;

/// Parameters that select nothing and are accepted by every call.
const SYSTEM: &[&str] = &[
    "$alt",
    "$apiVersion",
    "$fields",
    "$prettyPrint",
    "alt",
    "fields",
    "key",
    "prettyPrint",
    "quotaUser",
    "userIp",
];

/// The parameters of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    values: BTreeMap<String, String>,
}

impl Params {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self {
            values: pairs.into_owned().collect(),
        }
    }

    /// A parameter's value; `None` when it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Refuses parameters that the call does not have.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), ApiError> {
        let unknown = self
            .values
            .keys()
            .find(|name| !names.contains(&name.as_str()) && !SYSTEM.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(ApiError::invalid(format!(
                "Invalid JSON payload received. Unknown name \"{name}\": Cannot bind query parameter."
            ))),
            None => Ok(()),
        }
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text
            .parse()
            .map_err(|_| ApiError::invalid(format!("Invalid value at '{name}' (TYPE_INT32), \"{text}\"")))?;
        Ok(Some(number))
    }

    /// Everything that must stay the same from page to page.
    pub(crate) fn without_paging(&self) -> String {
        let kept = self
            .values
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "pageToken" | "maxResults" | "pageSize"));
        kept.flat_map(|(name, value)| [name, "=", value, "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn empty_values_are_absent_and_system_parameters_are_tolerated() {
        let params = Params::parse(Some("pageToken=&maxResults=7&%24alt=json%3Benum-encoding%3Dint"));
        assert_eq!(params.get("pageToken"), None);
        assert_eq!(params.number("maxResults").unwrap(), Some(7));
        assert!(params.only(&["pageToken", "maxResults"]).is_ok());
        assert!(params.only(&["pageToken"]).is_err());
        assert!(Params::parse(Some("maxResults=x")).number("maxResults").is_err());
    }

    #[test]
    fn page_size_may_change_between_pages_and_the_filter_may_not() {
        let scope = |query| Params::parse(Some(query)).without_paging();
        assert_eq!(
            scope("filter=a&maxResults=1"),
            scope("maxResults=2&filter=a&pageToken=t")
        );
        assert_ne!(scope("filter=a"), scope("filter=b"));
    }
}
