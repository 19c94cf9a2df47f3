//! Names people give to sections.

use std::{fmt, str::FromStr};

use crate::error::Invalid;

/// The longest name, in characters: it becomes a metric label.
const LONGEST: usize = 128;

/// A name that is shown to people and becomes the `account_name` label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let name = text.trim();
        if name.is_empty() || name.chars().any(char::is_control) || name.chars().count() > LONGEST {
            return Err(Invalid::new(
                "not a name",
                format!("write 1 to {LONGEST} printable characters"),
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

super::scalar_type!(Name, pattern: r"\S", about: "A name that is shown to people.");
