//! What one configured section of Tencent Cloud says.

use gpuwatch_collector_rest::SecretSource;

use crate::Site;

/// One section under `providers: tencent:`.
#[derive(Debug, Clone)]
pub struct TencentOptions {
    /// The section's name, and the `account_name` of its accounts.
    pub name: String,
    /// The site that the accounts belong to.
    pub site: Site,
    /// The API key's id; with [`Self::secret_key`], comes before every other
    /// source of credentials.
    pub secret_id: Option<SecretSource>,
    /// The API key.
    pub secret_key: Option<SecretSource>,
    /// The session token of temporary keys.
    pub token: Option<SecretSource>,
    /// Accounts to poll, each by the role to assume there
    /// (`qcs::cam::uin/100000000001:roleName/name`), or the word `self` for the
    /// base credentials' own account. Empty: only that.
    pub assume_roles: Vec<String>,
    /// External id that the roles ask for.
    pub external_id: Option<String>,
    /// Session name shown in the accounts' audit logs.
    pub session_name: String,
    /// Regions to poll; `None` for every available region but the finance
    /// regions, which are polled only when they are named.
    pub regions: Option<Vec<String>>,
    /// Regions never to poll.
    pub exclude_regions: Vec<String>,
    /// One base URL for every service and region.
    pub endpoint_url: Option<String>,
    /// Base URL of the machine's metadata service, for tests; `None` for the
    /// one that CVM has.
    pub metadata_url: Option<String>,
    /// Tag keys that name the owner, the first with a value wins.
    pub owner_tags: Vec<String>,
    /// Further tag keys to keep on instances.
    pub keep_tags: Vec<String>,
}

impl TencentOptions {
    /// The word for the base credentials' own account in `assume_roles`.
    pub const OWN_ACCOUNT: &'static str = "self";

    /// Defaults of every key: own account, all regions, the China site,
    /// credentials from the environment.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            site: Site::default(),
            secret_id: None,
            secret_key: None,
            token: None,
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

    /// Whether the base credentials' own account is polled.
    pub(crate) fn polls_own_account(&self) -> bool {
        self.assume_roles.is_empty() || self.assume_roles.iter().any(|role| role == Self::OWN_ACCOUNT)
    }

    /// The roles among `assume_roles`, in their order.
    pub(crate) fn role_arns(&self) -> impl Iterator<Item = &str> {
        self.assume_roles
            .iter()
            .map(String::as_str)
            .filter(|role| *role != Self::OWN_ACCOUNT)
    }
}

/// The account of `qcs::cam::uin/<uin>:roleName/<name>` (or `:role/`, by id).
pub(crate) fn account_of_role(arn: &str) -> Option<&str> {
    let rest = arn.strip_prefix("qcs::cam::uin/")?;
    let (account, name) = rest.split_once(":roleName/").or_else(|| rest.split_once(":role/"))?;
    let is_number = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.is_empty()).then_some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_names_its_account() {
        assert_eq!(
            account_of_role("qcs::cam::uin/100000000001:roleName/gpuwatch"),
            Some("100000000001")
        );
        assert_eq!(account_of_role("qcs::cam::uin/7:role/4611"), Some("7"));
        for bad in [
            "",
            "self",
            "qcs::cam::uin/:roleName/x",
            "qcs::cam::uin/1:roleName/",
            "qcs::cam::uin/a1:roleName/x",
            "arn:aws:iam::111122223333:role/x",
        ] {
            assert_eq!(account_of_role(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_own_account_is_polled_when_the_list_is_empty_or_names_it() {
        let mut options = TencentOptions::named("cn");
        assert!(options.polls_own_account());
        options.assume_roles = vec!["qcs::cam::uin/1:roleName/reader".into()];
        assert!(!options.polls_own_account());
        options.assume_roles.push("self".into());
        assert!(options.polls_own_account());
        assert_eq!(options.role_arns().count(), 1);
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let mut options = TencentOptions::named("cn");
        options.secret_key = Some(SecretSource::value("s3cret"));
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
