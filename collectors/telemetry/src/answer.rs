//! The JSON answers of the Prometheus HTTP API.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A series of an answer, with its samples in the order of time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Series {
    /// Labels, the metric's name among them.
    #[serde(rename = "metric", default)]
    pub labels: Labels,
    /// Samples of a range.
    #[serde(default)]
    pub values: Vec<Sample>,
    /// The sample of an instant vector.
    #[serde(default)]
    value: Option<Sample>,
}

impl Series {
    /// The samples, one of an instant vector.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        self.values.iter().copied().chain(self.value)
    }
}

/// A time and a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Milliseconds since the epoch.
    pub at: i64,
    /// The value; not a number where the server says so.
    pub value: f64,
}

/// Labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// The value of a label; empty when there is none, as Prometheus has it.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(label, _)| label == name);
        found.map_or("", |(_, value)| value)
    }

    /// The first of these labels that has a value.
    #[must_use]
    pub fn first(&self, names: &[&str]) -> &str {
        names
            .iter()
            .map(|name| self.get(name))
            .find(|value| !value.is_empty())
            .unwrap_or("")
    }
}

impl<S: Into<String>> FromIterator<(S, S)> for Labels {
    fn from_iter<T: IntoIterator<Item = (S, S)>>(pairs: T) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

/// An answer's envelope.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) data: Option<Data>,
    #[serde(default, rename = "errorType")]
    pub(crate) error_type: String,
    #[serde(default)]
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
}

/// The data of a query's answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Data {
    #[serde(rename = "resultType")]
    pub(crate) result_type: String,
    /// Absent or null for an empty result in some servers.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(crate) result: Vec<Series>,
}

fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Series>, D::Error> {
    Ok(Option::<Vec<Series>>::deserialize(deserializer)?.unwrap_or_default())
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(16).min(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Labels(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

impl<'de> Deserialize<'de> for Sample {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Sample;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time and a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sample, A::Error> {
                use serde::de::Error as _;
                let time: f64 = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let text: std::borrow::Cow<'de, str> =
                    seq.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
                let value = match &*text {
                    "NaN" => f64::NAN,
                    "+Inf" => f64::INFINITY,
                    "-Inf" => f64::NEG_INFINITY,
                    number => number
                        .parse()
                        .map_err(|_| A::Error::custom(format!("{number:?} is no number")))?,
                };
                let millis = (time * 1000.0).round();
                if !(-1e15..=1e15).contains(&millis) {
                    return Err(A::Error::custom(format!("{time} is no time")));
                }
                #[allow(clippy::cast_possible_truncation, reason = "checked above")]
                let at = millis as i64;
                Ok(Sample { at, value })
            }
        }
        deserializer.deserialize_seq(Pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_result_are_read() {
        let text = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"a","gpu":"0"},"values":[[1.5,"0.25"],[2,"NaN"]]},
            {"metric":{},"value":[1767225600.123,"+Inf"]}]},"warnings":["partial"]}"#;
        let envelope: Envelope = serde_json::from_str(text).expect("valid");
        let data = envelope.data.expect("data");
        let [first, second] = &data.result[..] else {
            panic!("two series")
        };
        assert_eq!((first.labels.get("gpu"), first.labels.get("none")), ("0", ""));
        assert_eq!(first.samples().next(), Some(Sample { at: 1500, value: 0.25 }));
        assert_eq!(
            second.samples().next().map(|s| (s.at, s.value)),
            Some((1_767_225_600_123, f64::INFINITY))
        );
        assert_eq!(envelope.warnings, ["partial"]);
    }

    #[test]
    fn an_empty_result_may_be_null_and_garbage_is_an_error() {
        let empty: Data = serde_json::from_str(r#"{"resultType":"vector","result":null}"#).expect("valid");
        assert!(empty.result.is_empty());
        for garbage in ["[]", "[1]", "[1,2]", r#"[1,"x"]"#, r#"[1e300,"1"]"#, "{}"] {
            assert!(serde_json::from_str::<Sample>(garbage).is_err(), "{garbage}");
        }
    }
}
