//! One section of `providers.aliyun`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AliyunRoleArn, AssumeRole, Regions, Site,
    regions::{RegionNames, is_hyphenated},
    roles::{check_roles, default_session_name},
};
use crate::{
    HttpUrl, Name, Secret,
    check::Check,
    yaml::{Checks, Spot},
};

/// A set of Alibaba Cloud accounts that one set of base credentials reaches.
/// Without keys: the environment, OIDC, the CLI's profile or the ECS role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AliyunSection {
    /// The name shown to people.
    pub name: Name,
    /// The site the account belongs to: `china` (default) or `international`.
    #[serde(default)]
    pub site: Site,
    /// The access key's id.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub access_key_id: Option<Secret>,
    /// A file that holds the access key's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id_file: Option<PathBuf>,
    /// The access key's secret.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub access_key_secret: Option<Secret>,
    /// A file that holds the access key's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_secret_file: Option<PathBuf>,
    /// The security token of temporary keys.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub security_token: Option<Secret>,
    /// A file that holds the security token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_token_file: Option<PathBuf>,
    /// The accounts to poll, each by the ARN of a role in it; `self` is the
    /// account of the base credentials. Empty: that account alone.
    #[serde(default)]
    pub assume_roles: Vec<AssumeRole<AliyunRoleArn>>,
    /// External id that the roles ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Session name of the assumed roles.
    #[serde(default = "default_session_name")]
    pub session_name: String,
    /// Regions to poll: `all` (default) or a list.
    #[serde(default)]
    pub regions: Regions,
    /// Regions to leave out.
    #[serde(default)]
    pub exclude_regions: Vec<String>,
    /// One base URL for every product and region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<HttpUrl>,
}

const REGION_NAMES: RegionNames = RegionNames {
    cloud: "Alibaba Cloud",
    is_valid: is_hyphenated,
    known: &[
        "cn-qingdao",
        "cn-beijing",
        "cn-zhangjiakou",
        "cn-huhehaote",
        "cn-wulanchabu",
        "cn-hangzhou",
        "cn-shanghai",
        "cn-nanjing",
        "cn-fuzhou",
        "cn-wuhan-lr",
        "cn-shenzhen",
        "cn-heyuan",
        "cn-guangzhou",
        "cn-chengdu",
        "cn-zhongwei",
        "cn-zhengzhou-jva",
        "cn-hongkong",
        "cn-north-2-gov-1",
        "cn-hangzhou-finance",
        "cn-shanghai-finance-1",
        "cn-shenzhen-finance-1",
        "cn-beijing-finance-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
        "ap-southeast-5",
        "ap-southeast-6",
        "ap-southeast-7",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-south-1",
        "eu-central-1",
        "eu-west-1",
        "us-west-1",
        "us-east-1",
        "us-southeast-1",
        "na-south-1",
        "me-east-1",
        "me-central-1",
    ],
    example: "cn-hangzhou",
};

impl Check for AliyunSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.secret(
            spot,
            "access_key_id",
            &mut self.access_key_id,
            &mut self.access_key_id_file,
        );
        checks.secret(
            spot,
            "access_key_secret",
            &mut self.access_key_secret,
            &mut self.access_key_secret_file,
        );
        checks.pair_of_keys(spot, "access_key_id", "access_key_secret");
        checks.secret(
            spot,
            "security_token",
            &mut self.security_token,
            &mut self.security_token_file,
        );
        checks.needs_key(spot, "security_token", "access_key_secret");
        REGION_NAMES.check_selection(&self.regions, &self.exclude_regions, spot, checks);
        check_roles(
            &self.assume_roles,
            &self.session_name,
            self.external_id.as_deref(),
            spot,
            checks,
        );
    }
}
