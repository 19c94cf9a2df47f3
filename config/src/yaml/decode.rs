//! Fills typed sections from nodes through serde, and goes on after a problem.
//!
//! serde ends at its first error. So each value that fails is reported with
//! its place, marked as refused and passed over in the next attempt, until an
//! attempt succeeds. Scalars are read by the type that is asked for, never
//! guessed: `000123456789` stays a text where a text is wanted, and `"${PORT}"`
//! can stand for a number.

use std::fmt;

use serde::{
    Deserialize,
    de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor, value::StrDeserializer},
    forward_to_deserialize_any,
};

use super::{
    Node, Scalar, Value,
    tree::{Entry, key_path},
};
use crate::error::{Problems, nearest};

/// Decodes a whole document. Problems are reported; refused values and what
/// hangs on them have their defaults in the result.
pub(crate) fn decode<T: Default + for<'de> Deserialize<'de>>(root: &Node, problems: &Problems) -> T {
    let context = Context { problems };
    while !problems.is_full() && !root.is_refused() {
        match T::deserialize(Decoder { node: root, context }) {
            Ok(value) => return value,
            Err(error) => drop(context.record(root, error)),
        }
    }
    T::default()
}

/// Why a value could not be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// Already among the problems.
    Reported,
    /// A required key is absent.
    Missing(&'static str),
    /// The value is wrong.
    Invalid {
        message: String,
        fix: Option<String>,
        quote: bool,
    },
}

impl DecodeError {
    fn kind(expected: &str, node: &Node, fix: &str) -> Self {
        Self::Invalid {
            message: format!("expected {expected}, found {}", node.kind()),
            fix: Some(fix.to_owned()),
            quote: false,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported => f.write_str("already reported"),
            Self::Missing(key) => write!(f, "the key {key:?} is missing"),
            Self::Invalid { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    /// Takes an [`crate::error::Invalid`] apart again: the fix is on the second line.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        let (message, fix) = match text.split_once('\n') {
            Some((message, fix)) => (message.to_owned(), Some(fix.to_owned())),
            None => (text, None),
        };
        Self::Invalid {
            message,
            fix,
            quote: true,
        }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match unexpected {
            Unexpected::Seq => "a list",
            Unexpected::Map => "a map",
            Unexpected::Unit => "nothing",
            _ => "a single value",
        };
        Self::Invalid {
            message: format!("expected {expected}, found {found}"),
            fix: None,
            quote: false,
        }
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::Invalid {
            message: format!("expected {expected}"),
            fix: None,
            quote: false,
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let all = expected.join(", ");
        let fix = match nearest(variant, expected.iter().copied()) {
            Some(word) => format!("did you mean {word}? One of: {all}"),
            None => format!("write one of: {all}"),
        };
        Self::Invalid {
            message: "not a known word".to_owned(),
            fix: Some(fix),
            quote: true,
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}

#[derive(Clone, Copy)]
struct Context<'a> {
    problems: &'a Problems,
}

impl Context<'_> {
    /// Reports an error of `node` unless that was done deeper down.
    fn record(self, node: &Node, error: DecodeError) -> DecodeError {
        match error {
            DecodeError::Reported => {}
            DecodeError::Missing(key) => {
                node.refuse();
                // A key that was refused is not missing.
                if !has_refused(node, key) {
                    let message = "required, but missing";
                    let fix = format!("add `{key}:` here");
                    self.problems
                        .report(node.place, &key_path(&node.path, key), message, Some(fix));
                }
            }
            DecodeError::Invalid { message, fix, quote } => {
                node.refuse();
                let message = match &node.value {
                    Value::Scalar(scalar) if quote => format!("{}{message}", scalar.quoted()),
                    _ => message,
                };
                self.problems.report(node.place, &node.path, message, fix);
            }
        }
        DecodeError::Reported
    }
}

impl Scalar {
    /// The text as written, ready to begin a message; empty when it may hold
    /// a password, as `user:password@host` does.
    pub(crate) fn quoted(&self) -> String {
        const LONGEST: usize = 80;
        if self.written.contains('@') && self.written.contains(':') {
            return String::new();
        }
        let mut text: String = self.written.chars().take(LONGEST).collect();
        if text.len() < self.written.len() {
            text.push('…');
        }
        format!("{text:?}: ")
    }
}

fn has_refused(node: &Node, key: &str) -> bool {
    match &node.value {
        Value::Map(entries) => entries.iter().any(|entry| entry.key == key && entry.value.is_refused()),
        _ => false,
    }
}

struct Decoder<'a> {
    node: &'a Node,
    context: Context<'a>,
}

impl<'a> Decoder<'a> {
    fn scalar(&self, expected: &str, fix: &str) -> Result<&'a str, DecodeError> {
        match &self.node.value {
            Value::Scalar(scalar) if !self.node.is_null() => Ok(&scalar.text),
            _ => Err(DecodeError::kind(expected, self.node, fix)),
        }
    }

    fn number<N: std::str::FromStr>(&self, expected: &str, fix: &str) -> Result<N, DecodeError> {
        self.scalar(expected, fix)?
            .trim()
            .parse()
            .map_err(|_| DecodeError::Invalid {
                message: format!("expected {expected}"),
                fix: Some(fix.to_owned()),
                quote: true,
            })
    }

    fn items(&self) -> Result<Items<'a>, DecodeError> {
        match &self.node.value {
            Value::List(items) => Ok(Items {
                items: items.iter(),
                context: self.context,
            }),
            _ => Err(DecodeError::kind(
                "a list",
                self.node,
                "write [a, b], or one `- item` per line",
            )),
        }
    }

    fn entries(&self) -> Result<&'a [Entry], DecodeError> {
        match &self.node.value {
            Value::Map(entries) => Ok(entries),
            _ if self.node.is_null() => Ok(&[]),
            _ => Err(DecodeError::kind(
                "a map",
                self.node,
                "write `key: value` lines, indented",
            )),
        }
    }

    /// Reports every key that the section does not have.
    fn refuse_unknown(&self, entries: &[Entry], fields: &'static [&'static str]) {
        for entry in entries {
            if entry.value.is_refused() || fields.contains(&entry.key.as_str()) {
                continue;
            }
            let fix = match nearest(&entry.key, fields.iter().copied()) {
                Some(known) => format!("did you mean {known}?"),
                None if entry.key == "<<" => "merge keys are not supported; write the keys out".to_owned(),
                None => format!("known keys here: {}", fields.join(", ")),
            };
            entry.value.refuse();
            self.context
                .problems
                .report(entry.place, &entry.value.path, "unknown key", Some(fix));
        }
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            let range = match u32::try_from(<$type>::MAX) {
                Ok(max) => format!("a whole number from {} to {max}", <$type>::MIN),
                Err(_) => format!("a whole number from {}", <$type>::MIN),
            };
            visitor.$visit(self.number::<$type>(&range, "write digits only")?)
        })+
    };
}

impl<'de> de::Deserializer<'de> for Decoder<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            _ if self.node.is_null() => visitor.visit_unit(),
            Value::Scalar(scalar) => visitor.visit_str(&scalar.text),
            Value::List(_) => visitor.visit_seq(self.items()?),
            Value::Map(entries) => visitor.visit_map(Entries::all(entries, self.context)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.scalar("true or false", "write true or false")? {
            "true" | "True" | "TRUE" => visitor.visit_bool(true),
            "false" | "False" | "FALSE" => visitor.visit_bool(false),
            _ => Err(DecodeError::Invalid {
                message: "expected true or false".to_owned(),
                fix: Some("write true or false".to_owned()),
                quote: true,
            }),
        }
    }

    whole_numbers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_f64(self.number("a number", "write a number such as 0.5")?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_str(self.scalar("a text", "write one value")?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_map(Entries::all(self.entries()?, self.context))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let entries = self.entries()?;
        self.refuse_unknown(entries, fields);
        visitor.visit_map(Entries::given(entries, self.context))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let word = self.scalar("a word", &format!("write one of: {}", words.join(", ")))?;
        visitor.visit_enum(IntoDeserializer::<DecodeError>::into_deserializer(word))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
    context: Context<'a>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.items.find(|node| !node.is_refused()) else {
            return Ok(None);
        };
        let decoded = seed.deserialize(Decoder {
            node,
            context: self.context,
        });
        decoded.map(Some).map_err(|error| self.context.record(node, error))
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
    /// Whether a key without a value counts as absent, so that its default holds.
    skip_null: bool,
    context: Context<'a>,
}

impl<'a> Entries<'a> {
    fn all(entries: &'a [Entry], context: Context<'a>) -> Self {
        Self {
            rest: entries.iter(),
            current: None,
            skip_null: false,
            context,
        }
    }

    fn given(entries: &'a [Entry], context: Context<'a>) -> Self {
        Self {
            skip_null: true,
            ..Self::all(entries, context)
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        let skip_null = self.skip_null;
        let next = self
            .rest
            .find(|entry| !(entry.value.is_refused() || skip_null && entry.value.is_null()));
        self.current = next;
        let Some(entry) = next else { return Ok(None) };
        let key: StrDeserializer<'_, DecodeError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| {
            entry.value.refuse();
            if let DecodeError::Invalid { message, fix, .. } = error {
                self.context
                    .problems
                    .report(entry.place, &entry.value.path, message, fix);
            }
            DecodeError::Reported
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let Some(entry) = self.current.take() else {
            return Err(DecodeError::Invalid {
                message: "a value without a key".to_owned(),
                fix: None,
                quote: false,
            });
        };
        let decoded = seed.deserialize(Decoder {
            node: &entry.value,
            context: self.context,
        });
        decoded.map_err(|error| self.context.record(&entry.value, error))
    }
}
