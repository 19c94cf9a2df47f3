//! What an instance, accelerator, commitment, price, usage sample and spend
//! row *is*, and the catalogue of GPU models and instance types. No I/O.
//!
//! Every other crate speaks in these types. A fact that a cloud did not state
//! is `None`, never a default: unknown is a value.

pub mod accelerator;
pub mod billing;
pub mod bucket;
pub mod catalog;
pub mod commitment;
pub mod instance;
pub mod money;
pub mod price;
pub mod provider;
pub mod spend;
pub mod usage;

pub use accelerator::{Accelerators, GpuCount, Vendor};
pub use billing::{Billing, BillingMode, Certainty};
pub use bucket::{Bucket, Hour, Measure, measures_of, measures_of_host};
pub use commitment::{Commitment, CommitmentKind, CommitmentRate, CommitmentScope};
pub use instance::{Instance, Kind, State, Tag};
pub use money::{Currency, Money, MoneyError};
pub use price::{Basis, PriceQuote};
pub use provider::Provider;
pub use spend::SpendRow;
pub use usage::{Activity, GpuError, GpuUsage, Holder, HostUsage, InstanceUsage, Signal, as_ratio};

/// Shared immutable text: regions, accounts and types repeat a hundred
/// thousand times, and snapshots share records between generations.
pub type Text = std::sync::Arc<str>;

/// A name that is not one of an enumeration's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {given:?}, expected one of: {expected}")]
pub struct UnknownWord {
    /// What was being named, e.g. `provider`.
    pub what: &'static str,
    /// The text that was given.
    pub given: String,
    /// The words that exist, comma separated.
    pub expected: String,
}

/// An enumeration whose variants have one public word each: the same in
/// metrics, configuration, filters and documents.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The public word for this variant.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|v| v.as_str() == s).ok_or_else(|| $crate::UnknownWord {
                    what: $what,
                    given: s.to_owned(),
                    expected: Self::ALL.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{BillingMode, Provider};

    #[test]
    fn every_word_reads_back_as_its_variant() {
        for mode in BillingMode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(*mode));
            assert_eq!(serde_json::to_value(mode).expect("json"), mode.as_str());
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let error = "amazon".parse::<Provider>().expect_err("not a provider");
        assert_eq!(
            error.to_string(),
            r#"unknown provider "amazon", expected one of: aws, gcp, azure, aliyun, tencent"#
        );
        assert!("AWS".parse::<Provider>().is_err(), "words are exact");
    }

    #[test]
    fn words_pad_in_tables() {
        assert_eq!(format!("{:<8}|", Provider::Gcp), "gcp     |");
    }
}
