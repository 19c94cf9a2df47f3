//! One section of `providers.tencent`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AssumeRole, Regions, Site, TencentRoleArn,
    regions::{RegionNames, is_hyphenated},
    roles::{check_roles, default_session_name},
};
use crate::{
    HttpUrl, Name, Secret,
    check::Check,
    yaml::{Checks, Spot},
};

/// A set of Tencent Cloud accounts that one set of base credentials reaches.
/// Without keys: the environment, the CLI's profile or the CVM role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TencentSection {
    /// The name shown to people.
    pub name: Name,
    /// The site the account belongs to: `china` (default) or `international`.
    #[serde(default)]
    pub site: Site,
    /// The API key's id.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub secret_id: Option<Secret>,
    /// A file that holds the API key's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_id_file: Option<PathBuf>,
    /// The API key itself.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub secret_key: Option<Secret>,
    /// A file that holds the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_file: Option<PathBuf>,
    /// The session token of temporary keys.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub token: Option<Secret>,
    /// A file that holds the session token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The accounts to poll, each by the ARN of a role in it; `self` is the
    /// account of the base credentials. Empty: that account alone.
    #[serde(default)]
    pub assume_roles: Vec<AssumeRole<TencentRoleArn>>,
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
    /// One base URL for every service and region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<HttpUrl>,
}

const REGION_NAMES: RegionNames = RegionNames {
    cloud: "Tencent Cloud",
    is_valid: is_hyphenated,
    known: &[
        "ap-guangzhou",
        "ap-shanghai",
        "ap-nanjing",
        "ap-beijing",
        "ap-chengdu",
        "ap-chongqing",
        "ap-hongkong",
        "ap-singapore",
        "ap-jakarta",
        "ap-bangkok",
        "ap-mumbai",
        "ap-seoul",
        "ap-tokyo",
        "na-siliconvalley",
        "na-ashburn",
        "sa-saopaulo",
        "eu-frankfurt",
        "ap-shanghai-fsi",
        "ap-shenzhen-fsi",
        "ap-beijing-fsi",
    ],
    example: "ap-guangzhou",
};

impl Check for TencentSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.secret(spot, "secret_id", &mut self.secret_id, &mut self.secret_id_file);
        checks.secret(spot, "secret_key", &mut self.secret_key, &mut self.secret_key_file);
        checks.pair_of_keys(spot, "secret_id", "secret_key");
        checks.secret(spot, "token", &mut self.token, &mut self.token_file);
        checks.needs_key(spot, "token", "secret_key");
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
