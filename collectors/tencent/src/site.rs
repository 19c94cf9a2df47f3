//! The two sites: their hosts, and which calls exist there.

use std::fmt;

/// A site of Tencent Cloud. Accounts of one do not exist on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Site {
    /// cloud.tencent.com; prices are in CNY.
    #[default]
    China,
    /// tencentcloud.com; prices are in USD.
    International,
}

impl Site {
    /// Base URL of a service for calls to a region. The host is an entry
    /// point that serves all regions; only the finance regions have a network
    /// and hosts of their own.
    pub(crate) fn base_url(self, service: &str, region: &str) -> String {
        if is_finance(region) {
            return format!("https://{service}.{region}.tencentcloudapi.com");
        }
        match self {
            Self::China => format!("https://{service}.tencentcloudapi.com"),
            Self::International => format!("https://{service}.intl.tencentcloudapi.com"),
        }
    }

    /// The region named in calls about the account as a whole.
    pub(crate) const fn home_region(self) -> &'static str {
        match self {
            Self::China => "ap-guangzhou",
            Self::International => "ap-singapore",
        }
    }

    /// Whether `DescribeInstanceTypeConfigs` exists.
    pub(crate) const fn has_type_configs(self) -> bool {
        matches!(self, Self::China)
    }

    /// Whether CVM has reserved instances: China sells none any more and took
    /// the call out of its API.
    pub(crate) const fn has_reserved_instances(self) -> bool {
        matches!(self, Self::International)
    }

    /// Whether the savings-plan service exists, and reserved instances of
    /// super nodes.
    pub(crate) const fn has_savings_plans(self) -> bool {
        matches!(self, Self::China)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::China => "china",
            Self::International => "international",
        })
    }
}

/// Whether a region is one of the finance regions.
pub(crate) fn is_finance(region: &str) -> bool {
    region.ends_with("-fsi")
}

#[cfg(test)]
mod tests {
    use super::*;

    // P40, P44
    #[test]
    fn each_site_has_its_own_hosts() {
        assert_eq!(
            Site::China.base_url("cvm", "ap-singapore"),
            "https://cvm.tencentcloudapi.com"
        );
        assert_eq!(
            Site::International.base_url("sts", "ap-guangzhou"),
            "https://sts.intl.tencentcloudapi.com"
        );
        assert_eq!(
            Site::China.base_url("tke", "ap-shanghai-fsi"),
            "https://tke.ap-shanghai-fsi.tencentcloudapi.com"
        );
    }
}
