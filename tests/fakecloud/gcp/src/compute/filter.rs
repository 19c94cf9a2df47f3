//! The `filter` parameter: the part of it that clients use.
//!
//! `FIELD eq REGEX` and `FIELD ne REGEX` take one field and the whole value;
//! `FIELD = VALUE`, `FIELD != VALUE` and `FIELD:*` can be joined by `AND`.
//! What is not understood is refused, never ignored.

use regex::Regex;
use serde_json::Value;

use crate::error::ApiError;

/// A parsed filter.
#[derive(Debug)]
pub(super) struct Filter {
    terms: Vec<Term>,
}

#[derive(Debug)]
struct Term {
    path: Vec<String>,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Matches(Regex, bool),
    Is(String, bool),
    Present,
}

impl Filter {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let terms: Option<Vec<Term>> = match expression(text) {
            Some(term) => Some(vec![term]),
            None => text.split(" AND ").map(|term| comparison(bare(term))).collect(),
        };
        let terms = terms.ok_or_else(|| {
            let message = format!("Invalid value for field 'filter': '{text}'. Invalid list filter expression.");
            ApiError::new(400, "", "invalid", message)
        })?;
        Ok(Self { terms })
    }

    pub(super) fn accepts(&self, row: &Value) -> bool {
        self.terms.iter().all(|term| term.accepts(row))
    }
}

impl Term {
    fn accepts(&self, row: &Value) -> bool {
        let value = self
            .path
            .iter()
            .try_fold(row, |value, name| value.as_object()?.get(name));
        let text = match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        match &self.test {
            Test::Matches(regex, wanted) => regex.is_match(&text) == *wanted,
            Test::Is(other, wanted) => (text == *other) == *wanted,
            Test::Present => value.is_some(),
        }
    }
}

/// `name eq "(a2|a3)-.*"`.
fn expression(text: &str) -> Option<Term> {
    let (field, rest) = bare(text).split_once(' ')?;
    let (word, pattern) = rest.trim().split_once(' ')?;
    let wanted = match word {
        "eq" => true,
        "ne" => false,
        _ => return None,
    };
    let pattern = unquoted(pattern.trim())?;
    let regex = Regex::new(&format!("^(?:{pattern})$")).ok()?;
    Some(Term {
        path: path(field)?,
        test: Test::Matches(regex, wanted),
    })
}

fn comparison(text: &str) -> Option<Term> {
    if let Some(field) = text.strip_suffix(":*") {
        return Some(Term {
            path: path(field)?,
            test: Test::Present,
        });
    }
    let (field, value, wanted) = match text.split_once("!=") {
        Some((field, value)) => (field, value, false),
        None => text.split_once('=').map(|(field, value)| (field, value, true))?,
    };
    Some(Term {
        path: path(field.trim())?,
        test: Test::Is(unquoted(value.trim())?.to_owned(), wanted),
    })
}

fn path(field: &str) -> Option<Vec<String>> {
    let valid = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let parts: Vec<&str> = field.split('.').collect();
    parts
        .iter()
        .all(valid)
        .then(|| parts.iter().map(|part| (*part).to_owned()).collect())
}

/// Without the brackets around a whole term.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    inner.filter(|inner| !inner.contains(['(', ')'])).unwrap_or(text)
}

fn unquoted(text: &str) -> Option<&str> {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => (!text.is_empty()).then_some(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn accepts(filter: &str) -> bool {
        let row = json!({
            "name": "a3-highgpu-8g",
            "status": "RUNNING",
            "scheduling": { "provisioningModel": "SPOT", "preemptible": true },
            "labels": { "team": "x" },
        });
        Filter::parse(filter).unwrap().accepts(&row)
    }

    #[test]
    fn expressions_take_the_whole_value() {
        assert!(accepts(r#"name eq "(a2|a3|ct.*)-.*""#));
        assert!(accepts("(name ne a2-.*)"));
        assert!(!accepts(r#"name eq "a3""#));
    }

    #[test]
    fn comparisons_reach_into_objects_and_are_joined() {
        assert!(accepts("status = RUNNING AND scheduling.provisioningModel=SPOT"));
        assert!(accepts("(scheduling.preemptible = true) AND (status != TERMINATED)"));
        assert!(accepts("labels.team:*"));
        assert!(!accepts("labels.owner:*"));
        assert!(!accepts("status = STOPPED"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for filter in [
            "nonsense",
            "a b c d",
            "name eq \"(\"",
            "= x",
            "a.b. = x",
            "status = \"x",
        ] {
            assert!(Filter::parse(filter).is_err(), "{filter}");
        }
    }
}
