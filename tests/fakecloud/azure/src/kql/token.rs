//! Words, texts and signs of a query.

use crate::kql::Failure;

/// A part of a query.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Word(String),
    /// A text, without its quotes.
    Text(String),
    /// A whole number.
    Number(u64),
    /// An operator or bracket.
    Sign(&'static str),
}

/// A part with its position in the query, in bytes.
pub(super) type Placed = (usize, Token);

/// The longer ones first.
const SIGNS: [&str; 14] = ["==", "=~", "!=", "!~", "|", ",", ".", "(", ")", "[", "]", "=", "~", "!"];

/// Splits a query into its parts. Comments run to the end of their line.
pub(super) fn tokens(query: &str) -> Result<Vec<Placed>, Failure> {
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let at = query.len() - rest.len();
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if rest.starts_with("//") {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
        } else if first.is_ascii_alphabetic() || first == '_' {
            let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_');
            found.push((at, Token::Word(word.to_owned())));
            rest = rest.get(word.len()..).unwrap_or_default();
        } else if first.is_ascii_digit() {
            let digits = leading(rest, |c| c.is_ascii_digit());
            let number = digits.parse().map_err(|_| Failure::at(query, at, digits))?;
            found.push((at, Token::Number(number)));
            rest = rest.get(digits.len()..).unwrap_or_default();
        } else if let Some((text, left)) = text(rest) {
            found.push((at, Token::Text(text)));
            rest = left;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            found.push((at, Token::Sign(sign)));
            rest = rest.get(sign.len()..).unwrap_or_default();
        } else {
            return Err(Failure::at(query, at, rest));
        }
    }
    Ok(found)
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// A quoted text at the beginning, and what follows it: with escapes, or as it
/// stands with doubled quotes behind an `@`.
fn text(rest: &str) -> Option<(String, &str)> {
    let verbatim = rest.starts_with('@');
    let quoted = rest.strip_prefix('@').unwrap_or(rest);
    let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut text = String::new();
    let mut chars = quoted.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if !verbatim => match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            c if c == quote && verbatim && chars.peek().is_some_and(|(_, next)| *next == quote) => {
                chars.next();
                text.push(quote);
            }
            c if c == quote => return Some((text, quoted.get(at + 1..)?)),
            c => text.push(c),
        }
    }
    None
}
