//! Parameters of the RPC products.

use std::collections::BTreeMap;

use crate::error::ApiError;

/// The parameters of a call, from its query and its form body. Those that an
/// action does not know are ignored, as the real service does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    fields: BTreeMap<String, String>,
}

impl Params {
    pub(crate) fn parse(query: &str, form: &[u8]) -> Self {
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        let form = url::form_urlencoded::parse(form).into_owned();
        Self {
            fields: query.chain(form).collect(),
        }
    }

    pub(crate) fn fields(&self) -> &BTreeMap<String, String> {
        &self.fields
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// A parameter with a value.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.given(name).ok_or_else(|| ApiError::missing(name))
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<bool, ApiError> {
        match self.given(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::invalid(name)),
        }
    }

    /// A whole number from 1 to the limit that the API documents.
    pub(crate) fn number(&self, name: &str, most: usize) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.given(name) else { return Ok(None) };
        match text.parse::<usize>() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(ApiError::invalid(name)),
        }
    }

    /// `Name.1`, `Name.2` … in order.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        (1..)
            .map_while(|number| self.given(&format!("{name}.{number}")))
            .collect()
    }

    /// A parameter that is a JSON array of texts inside a text.
    pub(crate) fn json_list(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(text) = self.given(name) else { return Ok(None) };
        serde_json::from_str(text)
            .map(Some)
            .map_err(|_| ApiError::invalid(name))
    }

    /// `Tag.N.Key` with its `Tag.N.Value`.
    pub(crate) fn tags(&self) -> Vec<(&str, Option<&str>)> {
        (1..)
            .map_while(|number| {
                let key = self.given(&format!("Tag.{number}.Key"))?;
                Some((key, self.given(&format!("Tag.{number}.Value"))))
            })
            .collect()
    }

    /// Everything that decides about the rows of a listing: what its page
    /// tokens are bound to.
    pub(crate) fn fingerprint(&self) -> String {
        // Common parameters of the older signature differ from call to call.
        const NOT_BOUND: &[&str] = &[
            "NextToken",
            "Token",
            "MaxResults",
            "Signature",
            "SignatureNonce",
            "SignatureMethod",
            "SignatureVersion",
            "SignatureType",
            "Timestamp",
            "AccessKeyId",
            "SecurityToken",
            "Format",
        ];
        let bound = self
            .fields
            .iter()
            .filter(|(name, _)| !NOT_BOUND.contains(&name.as_str()));
        let lines: Vec<String> = bound.map(|(name, value)| format!("{name}={value}")).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_at_the_first_gap() {
        let params = Params::parse(
            "Status.1=Active&Status.2=Expired&Status.4=x&Tag.1.Key=%E5%9B%A2%E9%98%9F&Tag.1.Value=",
            b"",
        );
        assert_eq!(params.list("Status"), ["Active", "Expired"]);
        assert_eq!(params.tags(), [("团队", None)]);
        assert_eq!(params.required("RegionId").unwrap_err().code(), "MissingParameter");
    }

    #[test]
    fn numbers_outside_the_documented_limits_are_refused() {
        for (text, fine) in [
            ("0", false),
            ("1", true),
            ("100", true),
            ("101", false),
            ("x", false),
            ("-1", false),
        ] {
            let params = Params::parse(&format!("PageSize={text}"), b"");
            assert_eq!(params.number("PageSize", 100).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn query_and_form_are_one_set() {
        let params = Params::parse("A=1", b"B=%5B%22i-1%22%5D&Note=a+b");
        assert_eq!(params.get("A"), Some("1"));
        assert_eq!(params.get("Note"), Some("a b"));
        assert_eq!(params.json_list("B").unwrap(), Some(vec!["i-1".to_owned()]));
    }
}
