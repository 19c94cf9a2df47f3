//! Partitions, regions and availability zones.

use std::fmt;

/// A partition: a set of regions that shares no credentials with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partition {
    /// The commercial regions.
    Aws,
    /// Beijing and Ningxia.
    AwsCn,
    /// GovCloud.
    AwsUsGov,
}

impl Partition {
    /// The partition's name in ARNs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::AwsCn => "aws-cn",
            Self::AwsUsGov => "aws-us-gov",
        }
    }

    /// The domain of its endpoints.
    pub const fn dns_suffix(self) -> &'static str {
        match self {
            Self::AwsCn => "amazonaws.com.cn",
            Self::Aws | Self::AwsUsGov => "amazonaws.com",
        }
    }

    /// The region of the partition's global services.
    pub const fn home_region(self) -> &'static str {
        match self {
            Self::Aws => "us-east-1",
            Self::AwsCn => "cn-northwest-1",
            Self::AwsUsGov => "us-gov-west-1",
        }
    }

    /// The currency of its prices.
    pub const fn currency(self) -> &'static str {
        match self {
            Self::AwsCn => "CNY",
            Self::Aws | Self::AwsUsGov => "USD",
        }
    }

    /// The regions that answer for Savings Plans.
    pub(crate) const fn savings_plans_regions(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &["us-east-1"],
            Self::AwsCn => &["cn-north-1", "cn-northwest-1"],
            Self::AwsUsGov => &["us-gov-west-1", "us-gov-east-1"],
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether an account must enable a region before use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptIn {
    /// Enabled for every account.
    NotRequired,
    /// Only for accounts that opted in.
    Required,
}

/// A region of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Name, e.g. `us-east-1`.
    pub name: String,
    /// Whether accounts must enable it.
    pub opt_in: OptIn,
}

impl Region {
    pub(crate) fn new(name: &str, opt_in: OptIn) -> Self {
        Self {
            name: name.to_owned(),
            opt_in,
        }
    }
}

/// The regions of the commercial partition that need no opting in, and those
/// that do. Source: the service's own endpoint rules and `DescribeRegions`.
const COMMERCIAL: &[&str] = &[
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ca-central-1",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
];
const COMMERCIAL_OPT_IN: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-south-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-west-1",
    "eu-central-2",
    "eu-south-1",
    "eu-south-2",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
];

pub(crate) fn regions_of(partition: Partition) -> Vec<Region> {
    let (open, opt_in): (&[&str], &[&str]) = match partition {
        Partition::Aws => (COMMERCIAL, COMMERCIAL_OPT_IN),
        Partition::AwsCn => (&["cn-north-1", "cn-northwest-1"], &[]),
        Partition::AwsUsGov => (&["us-gov-east-1", "us-gov-west-1"], &[]),
    };
    let open = open.iter().map(|name| Region::new(name, OptIn::NotRequired));
    open.chain(opt_in.iter().map(|name| Region::new(name, OptIn::Required)))
        .collect()
}

/// `us-east-1`, `a` → `use1-az1`: the zone id that is the same for every
/// account. Names and ids agree in this world; in old real regions they are
/// shuffled per account.
pub(crate) fn zone_id(region: &str, zone: char) -> String {
    let mut parts = region.split('-');
    let mut id = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let short = match part {
            "northeast" => "ne",
            "northwest" => "nw",
            "southeast" => "se",
            "southwest" => "sw",
            "central" => "c",
            other if other.chars().all(|c| c.is_ascii_digit()) => other,
            other => other.get(..1).unwrap_or_default(),
        };
        id.push_str(short);
    }
    let number = u32::from(zone).saturating_sub(u32::from('a')).saturating_add(1);
    format!("{id}-az{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_ids_follow_the_region() {
        for (region, zone, id) in [
            ("us-east-1", 'a', "use1-az1"),
            ("ap-northeast-1", 'c', "apne1-az3"),
            ("eu-central-1", 'b', "euc1-az2"),
            ("cn-north-1", 'a', "cnn1-az1"),
            ("cn-northwest-1", 'a', "cnnw1-az1"),
            ("us-gov-west-1", 'b', "usgw1-az2"),
        ] {
            assert_eq!(zone_id(region, zone), id);
        }
    }
}
