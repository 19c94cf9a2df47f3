//! What one configured AWS section says.

use crate::Partition;

/// How the instance listing is narrowed to accelerator types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TypeFilter {
    /// By family patterns (`p*`, `g*` ...): finds sizes no catalogue knows.
    #[default]
    Wildcard,
    /// By the exact types of the catalogue, for endpoints that do not match
    /// wildcards. A type the catalogue does not know is not found.
    Exact,
}

/// One section under `providers: aws:`.
#[derive(Debug, Clone)]
pub struct AwsOptions {
    /// The section's name, and the `account_name` of configured accounts.
    pub name: String,
    /// Regions to poll; `None` for every enabled region of each account.
    pub regions: Option<Vec<String>>,
    /// Regions never to poll.
    pub exclude_regions: Vec<String>,
    /// Partition; `None` to take it from role ARNs, regions or credentials.
    pub partition: Option<Partition>,
    /// Profile of the shared configuration files.
    pub profile: Option<String>,
    /// Accounts to poll, each as the ARN of the role to assume there, or the
    /// word `self` for the base credentials' own account. Empty: only that.
    pub assume_roles: Vec<String>,
    /// External id that the roles' trust policies ask for.
    pub external_id: Option<String>,
    /// Session name shown in the accounts' own audit logs.
    pub session_name: String,
    /// Whether to add every active member account of the organization.
    pub organization: bool,
    /// Role to assume in discovered member accounts, with its path; `None` for
    /// the role of the first ARN in `assume_roles`, or else `gpuwatch`.
    pub organization_role: Option<String>,
    /// How the instance listing is narrowed.
    pub type_filter: TypeFilter,
    /// One base URL for all services.
    pub endpoint_url: Option<String>,
    /// Tag keys that name the owner, the first with a value wins.
    pub owner_tags: Vec<String>,
    /// Further tag keys to keep on instances.
    pub keep_tags: Vec<String>,
}

impl AwsOptions {
    /// The word for the base credentials' own account in `assume_roles`.
    pub const OWN_ACCOUNT: &'static str = "self";

    /// Defaults of every key: own account, all regions, default credentials.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            regions: None,
            exclude_regions: Vec::new(),
            partition: None,
            profile: None,
            assume_roles: Vec::new(),
            external_id: None,
            session_name: "gpuwatch".to_owned(),
            organization: false,
            organization_role: None,
            type_filter: TypeFilter::default(),
            endpoint_url: None,
            owner_tags: Vec::new(),
            keep_tags: Vec::new(),
        }
    }

    /// Whether the base credentials' own account is polled.
    pub(crate) fn polls_own_account(&self) -> bool {
        self.assume_roles.is_empty() || self.assume_roles.iter().any(|role| role == Self::OWN_ACCOUNT)
    }

    /// The ARNs among `assume_roles`, in their order.
    pub(crate) fn role_arns(&self) -> impl Iterator<Item = &str> {
        self.assume_roles
            .iter()
            .map(String::as_str)
            .filter(|role| *role != Self::OWN_ACCOUNT)
    }

    /// Role name, with its path, for discovered member accounts.
    pub(crate) fn member_role(&self) -> &str {
        self.organization_role
            .as_deref()
            .or_else(|| self.role_arns().find_map(RoleArn::parse).map(|arn| arn.role))
            .unwrap_or("gpuwatch")
    }
}

/// The parts of a role's ARN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoleArn<'a> {
    /// Account the role is in.
    pub account: &'a str,
    /// Role name with its path.
    pub role: &'a str,
}

impl<'a> RoleArn<'a> {
    /// Reads `arn:<partition>:iam::<12 digits>:role/<path and name>`.
    pub(crate) fn parse(arn: &'a str) -> Option<Self> {
        let mut parts = arn.splitn(6, ':');
        let ("arn", _partition, "iam", "", account, resource) = (
            parts.next()?,
            parts.next()?,
            parts.next()?,
            parts.next()?,
            parts.next()?,
            parts.next()?,
        ) else {
            return None;
        };
        let role = resource.strip_prefix("role/").filter(|role| !role.is_empty())?;
        let is_account = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
        is_account.then_some(Self { account, role })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_arn_gives_account_and_role_with_path() {
        let arn = RoleArn::parse("arn:aws-cn:iam::111122223333:role/audit/gpuwatch").expect("arn");
        assert_eq!((arn.account, arn.role), ("111122223333", "audit/gpuwatch"));
        for bad in [
            "",
            "self",
            "arn:aws:iam::1:role/x",
            "arn:aws:iam::111122223333:user/x",
            "arn:aws:iam::111122223333:role/",
        ] {
            assert_eq!(RoleArn::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_own_account_is_polled_when_the_list_is_empty_or_names_it() {
        let mut options = AwsOptions::named("prod");
        assert!(options.polls_own_account());
        options.assume_roles = vec!["arn:aws:iam::111122223333:role/reader".into()];
        assert!(!options.polls_own_account());
        options.assume_roles.push("self".into());
        assert!(options.polls_own_account());
    }

    #[test]
    fn members_use_the_role_of_the_first_arn_unless_one_is_named() {
        let mut options = AwsOptions::named("prod");
        assert_eq!(options.member_role(), "gpuwatch");
        options.assume_roles = vec!["self".into(), "arn:aws:iam::111122223333:role/audit/reader".into()];
        assert_eq!(options.member_role(), "audit/reader");
        options.organization_role = Some("other".into());
        assert_eq!(options.member_role(), "other");
    }
}
