//! Prometheus label matchers.

use std::{fmt, str::FromStr};

use crate::error::Invalid;

/// One matcher as a query writes it inside braces: `cluster="prod"`,
/// `env=~"a|b"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMatcher(String);

impl LabelMatcher {
    /// The matcher, ready to stand between braces.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LabelMatcher {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if is_matcher(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new(
            "not a label matcher",
            r#"write it in single quotation marks: 'cluster="prod"' or 'env=~"a|b"'"#,
        ))
    }
}

fn is_matcher(text: &str) -> bool {
    let Some(at) = text.find(['=', '!']) else { return false };
    let (label, rest) = text.split_at(at);
    let mut chars = label.trim_end().chars();
    let is_label = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = ["=~", "!~", "!=", "="]
        .iter()
        .find_map(|operator| rest.strip_prefix(operator));
    is_label && value.is_some_and(|value| is_quoted(value.trim_start()))
}

/// A double-quoted text without a bare quotation mark or line break inside.
fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\n' => return false,
            _ => {}
        }
    }
    !escaped
}

impl fmt::Display for LabelMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

super::scalar_type!(
    LabelMatcher,
    pattern: r#"^\s*[A-Za-z_][A-Za-z0-9_]*\s*(=~|!~|!=|=)\s*".*"\s*$"#,
    about: "A label matcher as a query writes it, such as cluster=\"prod\".",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_cannot_leave_their_braces() {
        for good in [r#"a="b""#, r#"env =~ "x|y""#, r#"a!="""#, r#"a!~"\"q\"""#] {
            assert!(good.parse::<LabelMatcher>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "a=b",
            r#"1a="b""#,
            r#"a="b" or up{c="d""#,
            r#"a="b\""#,
            r#"="b""#,
            r#"a=="b""#,
            "a='b'",
        ] {
            assert!(bad.parse::<LabelMatcher>().is_err(), "{bad}");
        }
    }
}
