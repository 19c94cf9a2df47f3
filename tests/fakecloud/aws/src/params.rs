//! Parameters of the query protocols (EC2 and STS).

use std::collections::BTreeMap;

use super::error::AwsError;

/// EC2 takes at most this many filter values in one call.
const MAX_FILTER_VALUES: usize = 200;

/// The form fields of a call. Every parameter is taken once; what is left
/// over at the end is a parameter that the operation does not know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    fields: BTreeMap<String, String>,
}

/// `Filter.n.Name` with its `Filter.n.Value.m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

impl Params {
    pub(crate) fn parse(body: &[u8]) -> Self {
        Self {
            fields: url::form_urlencoded::parse(body).into_owned().collect(),
        }
    }

    /// Looks at a parameter without taking it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.fields.remove(name)
    }

    pub(crate) fn take_bool(&mut self, name: &str) -> Result<bool, AwsError> {
        match self.take(name).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(AwsError::invalid_value(name, other, "must be true or false")),
        }
    }

    /// A whole number within the limits that the API documents.
    pub(crate) fn take_number(&mut self, name: &str, least: usize, most: usize) -> Result<Option<usize>, AwsError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse::<usize>() {
            Ok(number) if number < least => Err(AwsError::invalid_value(
                name,
                &text,
                &format!("Expecting a value greater than {least}"),
            )),
            Ok(number) if number > most => Err(AwsError::invalid_value(
                name,
                &text,
                &format!("Expecting a value less than {most}"),
            )),
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(AwsError::invalid_value(name, &text, "Expecting an integer")),
        }
    }

    /// `Name.1`, `Name.2` … in order.
    pub(crate) fn take_list(&mut self, name: &str) -> Vec<String> {
        self.take_indexed(name)
            .into_values()
            .filter_map(|mut fields| fields.remove(""))
            .collect()
    }

    pub(crate) fn take_filters(&mut self) -> Result<Vec<Filter>, AwsError> {
        let mut filters = Vec::new();
        for (number, mut fields) in self.take_indexed("Filter") {
            let name = fields.remove("Name").ok_or_else(|| {
                AwsError::new(
                    "MissingParameter",
                    400,
                    format!("The filter {number} must contain the parameter Name"),
                )
            })?;
            let mut values: Vec<(usize, String)> = Vec::new();
            for (rest, value) in fields {
                let index = rest.strip_prefix("Value.").and_then(|index| index.parse().ok());
                let index = index.ok_or_else(|| AwsError::unknown_parameter(&format!("Filter.{number}.{rest}")))?;
                values.push((index, value));
            }
            if values.is_empty() {
                let message = format!("The filter '{name}' must have at least one value");
                return Err(AwsError::new("InvalidParameterValue", 400, message));
            }
            values.sort();
            filters.push(Filter {
                name,
                values: values.into_iter().map(|(_, value)| value).collect(),
            });
        }
        let values: usize = filters.iter().map(|filter| filter.values.len()).sum();
        if values > MAX_FILTER_VALUES {
            let message =
                format!("The maximum number of filter values specified on a single call is {MAX_FILTER_VALUES}");
            return Err(AwsError::new("FilterLimitExceeded", 400, message));
        }
        Ok(filters)
    }

    /// Everything that decides about the rows of a listing: what its page
    /// tokens are bound to.
    pub(crate) fn fingerprint(&self) -> String {
        let fields = self
            .fields
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "NextToken" | "MaxResults"));
        let lines: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
        lines.join("\n")
    }

    /// Refuses parameters that nothing has taken.
    pub(crate) fn finish(&self) -> Result<(), AwsError> {
        self.fields
            .keys()
            .next()
            .map_or(Ok(()), |name| Err(AwsError::unknown_parameter(name)))
    }

    /// Takes `name.N` and `name.N.rest`, grouped by N in numeric order.
    fn take_indexed(&mut self, name: &str) -> BTreeMap<usize, BTreeMap<String, String>> {
        let mut groups: BTreeMap<usize, BTreeMap<String, String>> = BTreeMap::new();
        self.fields.retain(|field, value| {
            let Some(tail) = field.strip_prefix(name).and_then(|tail| tail.strip_prefix('.')) else {
                return true;
            };
            let (index, rest) = tail.split_once('.').unwrap_or((tail, ""));
            let Ok(index) = index.parse() else { return true };
            groups
                .entry(index)
                .or_default()
                .insert(rest.to_owned(), std::mem::take(value));
            false
        });
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_filters_come_in_numeric_order() {
        let mut params = Params::parse(
            b"InstanceId.10=j&InstanceId.2=b&InstanceId.1=a&Filter.1.Name=instance-type&Filter.1.Value.2=g*\
              &Filter.1.Value.1=p%2A&Filter.1.Value.11=x&Other=1",
        );
        assert_eq!(params.take_list("InstanceId"), ["a", "b", "j"]);
        let filters = params.take_filters().unwrap();
        assert_eq!(filters.len(), 1);
        assert_eq!(filters[0].values, ["p*", "g*", "x"]);
        assert_eq!(params.finish().unwrap_err().code(), "UnknownParameter");
        params.take("Other");
        assert!(params.finish().is_ok());
    }

    #[test]
    fn numbers_outside_the_documented_limits_are_refused() {
        for (text, fine) in [
            ("4", false),
            ("5", true),
            ("1000", true),
            ("1001", false),
            ("x", false),
            ("-1", false),
        ] {
            let mut params = Params::parse(format!("MaxResults={text}").as_bytes());
            assert_eq!(params.take_number("MaxResults", 5, 1000).is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn more_than_200_filter_values_are_refused() {
        let body = |count: usize| {
            let values: Vec<String> = (1..=count).map(|n| format!("Filter.1.Value.{n}=t{n}")).collect();
            Params::parse(format!("Filter.1.Name=instance-type&{}", values.join("&")).as_bytes()).take_filters()
        };
        assert!(body(200).is_ok());
        assert_eq!(body(201).unwrap_err().code(), "FilterLimitExceeded");
    }
}
