//! What one configured section says.

use gpuwatch_collector_core::TagRules;
use gpuwatch_collector_rest::SecretSource;

/// The site an account belongs to; the two have separate accounts and bills.
/// Regions do not tell the site: an account of either site can use both
/// Chinese regions and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Site {
    /// aliyun.com.
    #[default]
    China,
    /// alibabacloud.com.
    International,
}

/// One section under `providers: aliyun:`.
#[derive(Debug, Clone)]
pub struct AliyunOptions {
    /// The section's name, and the accounts' `account_name`.
    pub name: String,
    /// The accounts' site.
    pub site: Site,
    /// Access key id; without keys the chain of the vendor's SDKs is used.
    pub access_key_id: Option<SecretSource>,
    /// Access key secret.
    pub access_key_secret: Option<SecretSource>,
    /// Token of temporary keys.
    pub security_token: Option<SecretSource>,
    /// Accounts to poll by the ARN of a role in each, or `self`; empty for the
    /// account of the base credentials alone.
    pub assume_roles: Vec<String>,
    /// External id that the roles ask for.
    pub external_id: Option<String>,
    /// Session name of assumed roles.
    pub session_name: String,
    /// Regions to poll; `None` for every one that the account sees.
    pub regions: Option<Vec<String>>,
    /// Regions never to poll.
    pub exclude_regions: Vec<String>,
    /// One base URL for all products and regions.
    pub endpoint_url: Option<String>,
    /// Base URL of the instance metadata service, when it is not the usual one.
    pub metadata_url: Option<String>,
    /// Tag keys that name the owner, the first with a value wins.
    pub owner_tags: Vec<String>,
    /// Further tag keys to keep on instances.
    pub keep_tags: Vec<String>,
}

impl AliyunOptions {
    /// Defaults of every key.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            site: Site::default(),
            access_key_id: None,
            access_key_secret: None,
            security_token: None,
            assume_roles: Vec::new(),
            external_id: None,
            session_name: "gpuwatch".to_owned(),
            regions: None,
            exclude_regions: Vec::new(),
            endpoint_url: None,
            metadata_url: None,
            owner_tags: Vec::new(),
            keep_tags: Vec::new(),
        }
    }

    pub(crate) fn tag_rules(&self) -> TagRules {
        TagRules {
            owner: self.owner_tags.clone(),
            keep: self.keep_tags.clone(),
        }
    }
}

/// The account of a role ARN, `acs:ram::1234567890123456:role/name`.
pub(crate) fn account_of_role(arn: &str) -> Option<&str> {
    let (account, name) = arn.strip_prefix("acs:ram::")?.split_once(":role/")?;
    let is_number = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.is_empty()).then_some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let mut options = AliyunOptions::named("cn");
        options.access_key_secret = Some(SecretSource::value("s3cret"));
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[test]
    fn roles_name_their_account() {
        assert_eq!(
            account_of_role("acs:ram::1234567890123456:role/gpuwatch"),
            Some("1234567890123456")
        );
        for bad in ["self", "acs:ram::x:role/y", "acs:ram::1:user/y", "acs:ram::1:role/"] {
            assert_eq!(account_of_role(bad), None, "{bad}");
        }
    }
}
