//! Lists of regions.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use crate::{
    error::{Invalid, nearest},
    yaml::{Checks, Spot},
};

/// The regions to poll: every enabled one, or those listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Regions {
    /// Every region that is enabled for the account.
    #[default]
    All,
    /// These, under the provider's own names. Never empty.
    Listed(Vec<String>),
}

impl Regions {
    /// The list, `None` for every region.
    #[must_use]
    pub fn listed(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::Listed(regions) => Some(regions),
        }
    }
}

impl Serialize for Regions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Listed(regions) => regions.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Regions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RegionsVisitor;

        impl<'de> Visitor<'de> for RegionsVisitor {
            type Value = Regions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of regions, or the word all")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Regions, E> {
                if text == "all" {
                    return Ok(Regions::All);
                }
                Err(E::custom(Invalid::new(
                    "neither a list of regions nor the word all",
                    "write a list with brackets, [us-east-1], or the word all",
                )))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Regions, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Regions::Listed)
            }
        }

        deserializer.deserialize_any(RegionsVisitor)
    }
}

impl JsonSchema for Regions {
    fn schema_name() -> Cow<'static, str> {
        "Regions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The word all (every enabled region), or a list of regions.",
            "anyOf": [
                { "const": "all" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ],
        })
    }
}

/// How a cloud names its regions.
pub(crate) struct RegionNames {
    /// The cloud, for messages.
    pub(crate) cloud: &'static str,
    pub(crate) is_valid: fn(&str) -> bool,
    /// Regions to suggest. Not a limit: clouds open new ones.
    pub(crate) known: &'static [&'static str],
    pub(crate) example: &'static str,
}

impl RegionNames {
    /// Checks `regions`, and says whether every name in it is well formed.
    pub(crate) fn check(&self, regions: &Regions, spot: &Spot<'_>, checks: &Checks<'_>) -> bool {
        match regions.listed() {
            None => true,
            Some([]) => {
                // A list whose items were all refused has been reported already.
                if spot.is_empty_list() {
                    checks.problem(spot, "an empty list of regions", "list regions, or write all");
                }
                false
            }
            Some(listed) => self.check_list(listed, spot, checks),
        }
    }

    /// Checks the keys `regions` and `exclude_regions` of a section together,
    /// and says whether every name in them is well formed.
    pub(crate) fn check_selection(
        &self,
        regions: &Regions,
        excluded: &[String],
        section: &Spot<'_>,
        checks: &Checks<'_>,
    ) -> bool {
        let exclude_spot = section.key("exclude_regions");
        let listed_valid = self.check(regions, &section.key("regions"), checks);
        let excluded_valid = self.check_list(excluded, &exclude_spot, checks);
        let listed = regions.listed().unwrap_or_default();
        if !listed.is_empty() && listed.iter().all(|region| excluded.contains(region)) {
            let fix = "list fewer excluded regions";
            checks.problem(&exclude_spot, "every listed region is excluded", fix);
        }
        listed_valid && excluded_valid
    }

    /// Checks a list that may be empty.
    pub(crate) fn check_list(&self, regions: &[String], spot: &Spot<'_>, checks: &Checks<'_>) -> bool {
        checks.unique(spot, regions);
        let mut valid = true;
        for (index, region) in regions.iter().enumerate() {
            valid &= self.check_one(region, &spot.item(index), checks);
        }
        valid
    }

    fn check_one(&self, region: &str, spot: &Spot<'_>, checks: &Checks<'_>) -> bool {
        let suggestion = nearest(region, self.known.iter().copied()).map(|known| format!("did you mean {known}?"));
        if (self.is_valid)(region) {
            if !self.known.contains(&region) {
                let fix = suggestion.unwrap_or_else(|| "check the spelling".to_owned());
                checks.warn(
                    spot,
                    &format!("not a region of {} that this version knows", self.cloud),
                    fix,
                );
            }
            return true;
        }
        let fix = || suggestion.unwrap_or_else(|| format!("write a name such as {}", self.example));
        match region {
            "" => checks.problem(spot, "an empty region name", fix()),
            "all" => checks.bad_value(
                spot,
                "stands for every region only outside a list",
                "write `all` without brackets",
            ),
            wildcard if wildcard.contains(['*', '?']) => {
                checks.bad_value(spot, "wildcards are not supported", "list the regions, or write all");
            }
            _ => checks.bad_value(spot, &format!("not a region name of {}", self.cloud), fix()),
        }
        false
    }
}

/// Checks the key `exclude_regions` where the cloud's regions are not known to
/// this version, and writes the names as the cloud's APIs do.
pub(crate) fn check_excluded_regions(regions: &mut [String], section: &Spot<'_>, checks: &Checks<'_>) {
    let list = section.key("exclude_regions");
    for region in regions.iter_mut() {
        *region = region.trim().to_ascii_lowercase();
    }
    checks.unique(&list, regions);
    checks.not_blank(&list, regions);
    for (index, region) in regions.iter().enumerate() {
        if !region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let fix = "write the name that the cloud's API uses, such as us-central1 or eastus";
            checks.bad_value(&list.item(index), "not a region name", fix);
        }
    }
}

/// Words of letters and digits joined by hyphens, the first of letters alone:
/// what Alibaba Cloud and Tencent Cloud call their regions.
pub(crate) fn is_hyphenated(region: &str) -> bool {
    let mut words = region.split('-');
    let is_first = |word: &str| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    words.next().is_some_and(is_first) && region.contains('-') && words.all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphenated_names() {
        for good in [
            "cn-hangzhou",
            "cn-shanghai-finance-1",
            "ap-guangzhou",
            "ap-shenzhen-fsi",
            "us-west-1",
        ] {
            assert!(is_hyphenated(good), "{good}");
        }
        for bad in [
            "",
            "gz",
            "cn_hangzhou",
            "cn-",
            "-cn",
            "CN-hangzhou",
            "cn--x",
            "cn-*",
            "1-cn",
        ] {
            assert!(!is_hyphenated(bad), "{bad}");
        }
    }
}
