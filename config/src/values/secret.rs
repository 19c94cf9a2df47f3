//! Text that must not be seen.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const REDACTED: &str = "<redacted>";

/// A password, key or token. Every way to print it says `<redacted>`; the
/// memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret {
    text: SecretString,
    from_file: bool,
}

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self {
            text: text.into(),
            from_file: false,
        }
    }

    /// A secret that was read from the file of its `*_file` key.
    pub(crate) fn from_file(text: String) -> Self {
        Self {
            from_file: true,
            ..Self::new(text)
        }
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }

    /// Whether a rendered configuration leaves the key out: it is absent, or
    /// the `*_file` key stands for it.
    #[expect(clippy::ref_option, reason = "the signature that serde's skip_serializing_if calls")]
    pub(crate) fn is_not_written(secret: &Option<Self>) -> bool {
        secret.as_ref().is_none_or(|secret| secret.from_file)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(REDACTED)
    }
}

/// Tells whether a reloaded configuration differs. Not for checking a secret
/// that a stranger sends: it takes longer the more characters agree.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A secret: better a ${VARIABLE} or the `*_file` form of the key than the text itself.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_printing_shows_it() {
        let secret = Secret::new("hunter2".to_owned());
        for text in [
            format!("{secret}"),
            format!("{secret:?}"),
            format!("{:#?}", Some(&secret)),
            serde_json::to_string(&secret).unwrap(),
        ] {
            assert!(text.contains(REDACTED) && !text.contains("hunter2"), "{text}");
        }
        assert_eq!(secret.expose(), "hunter2");
    }
}
