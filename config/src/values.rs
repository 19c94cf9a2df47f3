//! Single values: each type parses one text, says what is wrong with it and
//! how to write it, and knows its JSON schema.

mod address;
mod language;
mod mailbox;
mod matcher;
mod money;
mod name;
mod period;
mod ratio;
mod schedule;
mod secret;
mod url;
mod zone;

pub use address::ListenAddress;
pub use language::Language;
pub use mailbox::Mailbox;
pub use matcher::LabelMatcher;
pub use money::{Amount, CurrencyCode, Percent, Rate};
pub use name::Name;
pub use period::Period;
pub use ratio::{Factor, Ratio};
pub use schedule::Schedule;
pub use secret::Secret;
pub use url::HttpUrl;
pub use zone::Zone;

/// Makes a type with `FromStr<Err = Invalid>` and `Display` readable from and
/// writable to a scalar, with a JSON schema. `pattern` is a regular expression
/// that accepts at least everything the parser accepts.
macro_rules! scalar_type {
    ($type:ident, pattern: $pattern:expr, about: $about:expr $(,)?) => {
        $crate::values::scalar_type!(@serde $type);

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": $about })
            }
        }
    };
    // Without the schema, for types that are no plain string there.
    (@serde $type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}
pub(crate) use scalar_type;
