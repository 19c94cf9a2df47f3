//! One section of `providers.aws`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AssumeRole, AwsRoleArn, Regions,
    regions::RegionNames,
    roles::{check_roles, default_session_name},
};
use crate::{
    HttpUrl, Name,
    check::Check,
    yaml::{Checks, Spot},
};

/// A set of AWS accounts that one set of base credentials reaches. The file
/// takes no keys: credentials come from the SDK's default chain (environment,
/// profile, web identity, container or instance role).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsSection {
    /// The name shown to people. Account ids are discovered.
    pub name: Name,
    /// Regions to poll: `all` (every enabled one, the default) or a list.
    #[serde(default)]
    pub regions: Regions,
    /// Regions to leave out.
    #[serde(default)]
    pub exclude_regions: Vec<String>,
    /// The partition, by default that of the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// A profile of the shared AWS configuration files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The accounts to poll, each by the ARN of a role in it; `self` is the
    /// account of the base credentials. Empty: that account alone.
    #[serde(default)]
    pub assume_roles: Vec<AssumeRole<AwsRoleArn>>,
    /// External id that the roles ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Session name of the assumed roles, as the audit log shows it.
    #[serde(default = "default_session_name")]
    pub session_name: String,
    /// Discover the member accounts of the organization.
    #[serde(default)]
    pub organization: bool,
    /// How instance types are asked for: `wildcard`, or `exact` for endpoints
    /// that do not match wildcards.
    #[serde(default)]
    pub type_filter: TypeFilter,
    /// One base URL for every service and region: tests, proxies, private endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<HttpUrl>,
}

/// A group of AWS regions with accounts and credentials of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Partition {
    /// The commercial regions outside China.
    #[serde(rename = "aws")]
    Aws,
    /// Beijing and Ningxia.
    #[serde(rename = "aws-cn")]
    AwsCn,
    /// GovCloud of the United States.
    #[serde(rename = "aws-us-gov")]
    AwsUsGov,
}

impl Partition {
    /// Every partition.
    pub const ALL: [Self; 3] = [Self::Aws, Self::AwsCn, Self::AwsUsGov];

    /// The public word, as in ARNs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::AwsCn => "aws-cn",
            Self::AwsUsGov => "aws-us-gov",
        }
    }

    /// The partition that a region belongs to by its name. `None` for the
    /// isolated and sovereign partitions, which gpuwatch does not cover.
    #[must_use]
    pub fn of_region(region: &str) -> Option<Self> {
        match region.split_once('-').map_or(region, |(first, _)| first) {
            "cn" => Some(Self::AwsCn),
            "eusc" => None,
            _ if region.starts_with("us-gov-") => Some(Self::AwsUsGov),
            _ if region.starts_with("us-iso") || region.starts_with("eu-iso") => None,
            _ => Some(Self::Aws),
        }
    }
}

/// How GPU instance types are selected in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TypeFilter {
    /// By family, `p5.*`, which also finds types that no catalogue knows.
    #[default]
    Wildcard,
    /// By the full list of known types.
    Exact,
}

const REGION_NAMES: RegionNames = RegionNames {
    cloud: "AWS",
    is_valid: is_region,
    known: &[
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
        "af-south-1",
        "ap-east-1",
        "ap-east-2",
        "ap-south-1",
        "ap-south-2",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-northeast-3",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
        "ap-southeast-4",
        "ap-southeast-5",
        "ap-southeast-6",
        "ap-southeast-7",
        "ca-central-1",
        "ca-west-1",
        "eu-central-1",
        "eu-central-2",
        "eu-north-1",
        "eu-south-1",
        "eu-south-2",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
        "il-central-1",
        "me-central-1",
        "me-south-1",
        "mx-central-1",
        "sa-east-1",
        "cn-north-1",
        "cn-northwest-1",
        "us-gov-east-1",
        "us-gov-west-1",
    ],
    example: "us-east-1",
};

/// Two or more words of letters and a number: `us-gov-west-1`.
fn is_region(region: &str) -> bool {
    let Some((words, number)) = region.rsplit_once('-') else {
        return false;
    };
    let is_word = |word: &str| word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.contains('-')
        && words.split('-').all(is_word)
        && (1..=2).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl AwsSection {
    /// The partition that the keys of this section agree on: the configured
    /// one, else that of the regions or roles. `None` when nothing tells.
    #[must_use]
    pub fn known_partition(&self) -> Option<Partition> {
        self.partition
            .or_else(|| self.named_partitions().next().map(|(_, _, partition)| partition))
    }

    /// What names a partition by itself: key, index in its list, partition.
    fn named_partitions(&self) -> impl Iterator<Item = (&'static str, usize, Partition)> {
        let of_regions = |key, regions: &[String]| -> Vec<_> {
            let found = regions.iter().enumerate();
            found
                .filter_map(|(index, region)| Some((key, index, Partition::of_region(region)?)))
                .collect()
        };
        let roles = self
            .assume_roles
            .iter()
            .enumerate()
            .filter_map(|(index, role)| match role {
                AssumeRole::Own => None,
                AssumeRole::Role(arn) => Some(("assume_roles", index, arn.partition())),
            });
        of_regions("regions", self.regions.listed().unwrap_or_default())
            .into_iter()
            .chain(of_regions("exclude_regions", &self.exclude_regions))
            .chain(roles)
    }

    fn check_partitions(&self, spot: &Spot<'_>, checks: &Checks<'_>) {
        for (index, region) in self.regions.listed().unwrap_or_default().iter().enumerate() {
            if Partition::of_region(region).is_none() {
                let fix = "remove it: the partitions are aws, aws-cn and aws-us-gov";
                checks.bad_value(
                    &spot.key("regions").item(index),
                    "of a partition that is not covered",
                    fix,
                );
            }
        }
        let Some(partition) = self.known_partition() else {
            return;
        };
        for (key, index, other) in self.named_partitions().filter(|(_, _, other)| *other != partition) {
            let message = format!(
                "of partition {}, but this section is of {}",
                other.as_str(),
                partition.as_str()
            );
            let fix = "credentials never cross partitions: write one section per partition";
            checks.bad_value(&spot.key(key).item(index), &message, fix);
        }
    }
}

impl Check for AwsSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        if REGION_NAMES.check_selection(&self.regions, &self.exclude_regions, spot, checks) {
            self.check_partitions(spot, checks);
        }
        if self.profile.as_deref().is_some_and(|profile| profile.trim().is_empty()) {
            checks.problem(
                &spot.key("profile"),
                "an empty profile name",
                "write a name, or remove the key",
            );
        }
        check_roles(
            &self.assume_roles,
            &self.session_name,
            self.external_id.as_deref(),
            spot,
            checks,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_names_have_words_and_a_number() {
        for good in REGION_NAMES.known {
            assert!(is_region(good), "{good}");
        }
        for bad in [
            "",
            "us-east",
            "us_east-1",
            "us-east-1a",
            "US-EAST-1",
            "us-east-*",
            "east-1",
            "us-east-123",
            "us--east-1",
        ] {
            assert!(!is_region(bad), "{bad}");
        }
    }

    #[test]
    fn regions_tell_their_partition() {
        for (region, partition) in [
            ("us-east-1", Some(Partition::Aws)),
            ("cn-north-1", Some(Partition::AwsCn)),
            ("us-gov-west-1", Some(Partition::AwsUsGov)),
            ("us-iso-east-1", None),
            ("eusc-de-east-1", None),
        ] {
            assert_eq!(Partition::of_region(region), partition, "{region}");
        }
    }
}
