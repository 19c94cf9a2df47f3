//! AWS partitions: separate clouds with their own accounts, regions, endpoints
//! and currency. Credentials never cross from one to another.

use std::{fmt, str::FromStr};

use gpuwatch_inventory::{Currency, UnknownWord};

/// A partition, by the word in its ARNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Partition {
    /// The commercial regions.
    Aws,
    /// Beijing and Ningxia.
    AwsCn,
    /// The US government regions.
    AwsUsGov,
    /// The European sovereign cloud.
    AwsEusc,
}

impl Partition {
    /// Every partition gpuwatch knows the endpoints of.
    pub const ALL: &'static [Self] = &[Self::Aws, Self::AwsCn, Self::AwsUsGov, Self::AwsEusc];

    /// The word in ARNs: `aws`, `aws-cn`, `aws-us-gov`, `aws-eusc`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::AwsCn => "aws-cn",
            Self::AwsUsGov => "aws-us-gov",
            Self::AwsEusc => "aws-eusc",
        }
    }

    /// Where services that exist once per partition live, and the region whose
    /// STS serves every account.
    #[must_use]
    pub const fn home_region(self) -> &'static str {
        match self {
            Self::Aws => "us-east-1",
            Self::AwsCn => "cn-northwest-1",
            Self::AwsUsGov => "us-gov-west-1",
            Self::AwsEusc => "eusc-de-east-1",
        }
    }

    /// The partition a region belongs to, by its prefix.
    #[must_use]
    pub fn of_region(region: &str) -> Self {
        match region {
            r if r.starts_with("cn-") => Self::AwsCn,
            r if r.starts_with("us-gov-") => Self::AwsUsGov,
            r if r.starts_with("eusc-") => Self::AwsEusc,
            _ => Self::Aws,
        }
    }

    /// The partition an ARN names, if it is one gpuwatch knows.
    #[must_use]
    pub fn of_arn(arn: &str) -> Option<Self> {
        arn.strip_prefix("arn:")?.split(':').next()?.parse().ok()
    }

    /// What prices are in where an answer does not say. `DescribeReservedInstances`
    /// prints US dollars in China although the amounts are yuan.
    pub(crate) fn currency(self) -> Currency {
        match self {
            Self::AwsCn => Currency::cny(),
            _ => Currency::usd(),
        }
    }

    /// Whether savings plans are bought in this partition. The plans for the
    /// US government regions belong to the linked commercial account.
    pub(crate) const fn has_savings_plans(self) -> bool {
        matches!(self, Self::Aws | Self::AwsCn)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Partition {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|p| p.as_str() == word)
            .ok_or_else(|| UnknownWord {
                what: "partition",
                given: word.to_owned(),
                expected: Self::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", "),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_told_from_regions_and_arns() {
        assert_eq!(Partition::of_region("cn-north-1"), Partition::AwsCn);
        assert_eq!(Partition::of_region("us-gov-east-1"), Partition::AwsUsGov);
        assert_eq!(Partition::of_region("ap-southeast-7"), Partition::Aws);
        assert_eq!(
            Partition::of_arn("arn:aws-cn:iam::111122223333:role/x"),
            Some(Partition::AwsCn)
        );
        assert_eq!(Partition::of_arn("arn:aws-moon:iam::1:role/x"), None);
        assert_eq!(Partition::of_arn("nonsense"), None);
    }

    #[test]
    fn every_home_region_is_in_its_own_partition() {
        for partition in Partition::ALL {
            assert_eq!(Partition::of_region(partition.home_region()), *partition);
            assert_eq!(partition.as_str().parse(), Ok(*partition));
        }
    }
}
