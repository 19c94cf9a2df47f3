//! The `providers` section: one list of sections per cloud, so that one
//! program watches many accounts with different credentials.

pub mod aliyun;
pub mod aws;
pub mod azure;
pub mod gcp;
pub mod regions;
pub mod roles;
pub mod tencent;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use aliyun::AliyunSection;
pub use aws::{AwsSection, Partition, TypeFilter};
pub use azure::{AzureCloud, AzureSection};
pub use gcp::{BigQueryTable, GcpSection};
pub use regions::Regions;
pub use roles::{AliyunRoleArn, AssumeRole, AwsRoleArn, RoleArn, TencentRoleArn};
pub use tencent::TencentSection;

use crate::{
    Name,
    check::Check,
    yaml::{Checks, Spot},
};

/// What to watch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Providers {
    /// Amazon Web Services.
    pub aws: Vec<AwsSection>,
    /// Google Cloud.
    pub gcp: Vec<GcpSection>,
    /// Microsoft Azure.
    pub azure: Vec<AzureSection>,
    /// Alibaba Cloud.
    pub aliyun: Vec<AliyunSection>,
    /// Tencent Cloud.
    pub tencent: Vec<TencentSection>,
}

/// Whether an account belongs to a cloud's site in mainland China or to its
/// international one. The two have separate accounts, bills and currencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The site in mainland China.
    #[default]
    China,
    /// The site for the rest of the world.
    International,
}

impl Providers {
    /// Whether any cloud is to be watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            aws,
            gcp,
            azure,
            aliyun,
            tencent,
        } = self;
        aws.is_empty() && gcp.is_empty() && azure.is_empty() && aliyun.is_empty() && tencent.is_empty()
    }
}

impl Check for Providers {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        check_sections(&mut self.aws, &spot.key("aws"), checks, |section| &section.name);
        check_sections(&mut self.gcp, &spot.key("gcp"), checks, |section| &section.name);
        check_sections(&mut self.azure, &spot.key("azure"), checks, |section| &section.name);
        check_sections(&mut self.aliyun, &spot.key("aliyun"), checks, |section| &section.name);
        check_sections(&mut self.tencent, &spot.key("tencent"), checks, |section| &section.name);
    }
}

/// Checks every section of a list, and that no two have the same name.
pub(crate) fn check_sections<S: Check>(
    sections: &mut [S],
    list: &Spot<'_>,
    checks: &Checks<'_>,
    name: impl Fn(&S) -> &Name,
) {
    checks.unique_by(list, "name", sections.iter().map(|section| name(section).as_str()));
    for (index, section) in sections.iter_mut().enumerate() {
        section.check(&list.item(index), checks);
    }
}
