//! `${VAR}` and `${VAR:-default}` in texts.
//!
//! Works on single scalars after the YAML is parsed, so that no value of a
//! variable can add keys, end a quotation or become a comment.

use crate::error::Invalid;

/// Looks a variable up; `None` when it is not set.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A text after expansion.
#[derive(PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// Whether a reference was replaced.
    pub(crate) replaced: bool,
}

/// Replaces the references in `text`. `$$` is a literal dollar; a dollar that
/// starts no reference stays as it is. As in a shell, the default of `:-` also
/// stands in for a variable that is set but empty.
pub(crate) fn expand(text: &str, env: Lookup<'_>) -> Result<Expanded, Invalid> {
    let mut out = String::with_capacity(text.len());
    let mut replaced = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            tail
        } else if let Some(tail) = after.strip_prefix('{') {
            let (reference, tail) = tail.split_once('}').ok_or_else(|| {
                Invalid::new(
                    "a reference that begins with ${ is not closed",
                    "close it with }, or write $$ for a dollar",
                )
            })?;
            out.push_str(&resolve(reference, env)?);
            replaced = true;
            tail
        } else {
            out.push('$');
            after
        };
    }
    out.push_str(rest);
    Ok(Expanded { text: out, replaced })
}

fn resolve(reference: &str, env: Lookup<'_>) -> Result<String, Invalid> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        return Err(Invalid::new(
            format!("not the name of an environment variable: ${{{name}}}"),
            "write ${NAME} or ${NAME:-default}, or $$ for a dollar",
        ));
    }
    match (env(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.replace("$$", "$")),
        (None, None) => Err(Invalid::new(
            format!("the environment variable {name} is not set"),
            format!("set it, or give a default: ${{{name}:-default}}"),
        )),
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<String, Invalid> {
        let env = |name: &str| match name {
            "HOST" => Some("h1".to_owned()),
            "EMPTY" => Some(String::new()),
            "YAML" => Some("a: [1]\n# ${HOST}".to_owned()),
            _ => None,
        };
        expand(text, &env).map(|expanded| expanded.text)
    }

    #[test]
    fn references_are_replaced() {
        assert_eq!(run("http://${HOST}:80/${HOST}"), Ok("http://h1:80/h1".into()));
        assert_eq!(run("${NONE:-d:-e}"), Ok("d:-e".into()));
        assert_eq!(run("${HOST:-d}${EMPTY:-e}${EMPTY}${NONE:-}"), Ok("h1e".into()));
    }

    #[test]
    fn a_doubled_dollar_is_one_and_others_stay() {
        assert_eq!(run("a$$b $c ^p5$ $${HOST} $"), Ok("a$b $c ^p5$ ${HOST} $".into()));
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        assert_eq!(run("${YAML}"), Ok("a: [1]\n# ${HOST}".into()));
    }

    #[test]
    fn bad_references_are_errors() {
        for bad in ["${", "${HOST", "${}", "${1A}", "${HOST-x}", "${NONE}", "${A B}"] {
            assert!(run(bad).is_err(), "{bad}");
        }
    }
}
