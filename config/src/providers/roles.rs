//! Roles to assume, by their resource names.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::Partition;
use crate::{
    error::Invalid,
    yaml::{Checks, Spot},
};

/// An account to poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssumeRole<R> {
    /// The word `self`: the account of the base credentials.
    Own,
    /// The account this role is in, through this role.
    Role(R),
}

/// The resource name of a role in one cloud.
pub trait RoleArn: FromStr<Err = Invalid> + fmt::Display {
    /// Name of the type in the JSON schema.
    const SCHEMA: &'static str;
    /// A regular expression for it.
    const PATTERN: &'static str;

    /// The account the role is in.
    fn account(&self) -> &str;
}

impl<R: RoleArn> FromStr for AssumeRole<R> {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.trim() {
            "self" => Ok(Self::Own),
            arn => arn.parse().map(Self::Role),
        }
    }
}

impl<R: RoleArn> fmt::Display for AssumeRole<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("self"),
            Self::Role(arn) => arn.fmt(f),
        }
    }
}

impl<R: RoleArn> Serialize for AssumeRole<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, R: RoleArn> Deserialize<'de> for AssumeRole<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<R: RoleArn> JsonSchema for AssumeRole<R> {
    fn schema_name() -> Cow<'static, str> {
        R::SCHEMA.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!("^\\s*(self|{})\\s*$", R::PATTERN),
            "description": "The resource name of a role, or the word self for the account of the credentials.",
        })
    }
}

/// `arn:aws:iam::111122223333:role/path/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsRoleArn {
    text: String,
    partition: Partition,
    account: String,
}

impl AwsRoleArn {
    /// The partition that the role's account is in.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        self.partition
    }

    /// The whole resource name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The role's name, without its path.
    #[must_use]
    pub fn role_name(&self) -> &str {
        self.text.rsplit_once('/').map_or("", |(_, name)| name)
    }
}

impl RoleArn for AwsRoleArn {
    const SCHEMA: &'static str = "AwsRole";
    const PATTERN: &'static str = r"arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+";

    fn account(&self) -> &str {
        &self.account
    }
}

impl FromStr for AwsRoleArn {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = |message: &str| Invalid::new(message, "write arn:aws:iam::111122223333:role/name (aws-cn in China)");
        let mut parts = text.splitn(6, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (arn, partition, service, region, account, resource) = (next(), next(), next(), next(), next(), next());
        if arn != "arn" || service != "iam" || !region.is_empty() {
            return Err(bad("not the ARN of an IAM role"));
        }
        let partition = Partition::ALL
            .into_iter()
            .find(|known| known.as_str() == partition)
            .ok_or_else(|| bad("an ARN of an unknown partition"))?;
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad("an ARN without an account id of 12 digits"));
        }
        let name = resource
            .strip_prefix("role/")
            .ok_or_else(|| bad("an ARN that is not of a role"))?;
        if name.is_empty() || name.ends_with('/') || !name.chars().all(|c| is_name_char(c) || c == '/') {
            return Err(bad("an ARN without a valid role name"));
        }
        Ok(Self {
            text: text.to_owned(),
            partition,
            account: account.to_owned(),
        })
    }
}

impl fmt::Display for AwsRoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// `acs:ram::1234567890123456:role/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliyunRoleArn {
    text: String,
    account: String,
}

impl AliyunRoleArn {
    /// The whole resource name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl RoleArn for AliyunRoleArn {
    const SCHEMA: &'static str = "AliyunRole";
    const PATTERN: &'static str = r"acs:ram::[0-9]+:role/[A-Za-z0-9_+=,.@-]+";

    fn account(&self) -> &str {
        &self.account
    }
}

impl FromStr for AliyunRoleArn {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.strip_prefix("acs:ram::")
            .and_then(|rest| rest.split_once(":role/"))
            .filter(|(account, name)| is_number(account) && is_role_name(name))
            .map(|(account, _)| Self {
                text: text.to_owned(),
                account: account.to_owned(),
            })
            .ok_or_else(|| Invalid::new("not the ARN of a RAM role", "write acs:ram::1234567890123456:role/name"))
    }
}

impl fmt::Display for AliyunRoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// `qcs::cam::uin/100000000001:roleName/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TencentRoleArn {
    text: String,
    account: String,
}

impl TencentRoleArn {
    /// The whole resource name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl RoleArn for TencentRoleArn {
    const SCHEMA: &'static str = "TencentRole";
    const PATTERN: &'static str = r"qcs::cam::uin/[0-9]+:(roleName|role)/[A-Za-z0-9_+=,.@-]+";

    fn account(&self) -> &str {
        &self.account
    }
}

impl FromStr for TencentRoleArn {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.strip_prefix("qcs::cam::uin/")
            .and_then(|rest| rest.split_once(":roleName/").or_else(|| rest.split_once(":role/")))
            .filter(|(account, name)| is_number(account) && is_role_name(name))
            .map(|(account, _)| Self {
                text: text.to_owned(),
                account: account.to_owned(),
            })
            .ok_or_else(|| {
                Invalid::new(
                    "not the ARN of a CAM role",
                    "write qcs::cam::uin/100000000001:roleName/name",
                )
            })
    }
}

impl fmt::Display for TencentRoleArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_role_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_+=,.@-".contains(c)
}

/// The session name that the clouds' audit logs show.
pub(crate) fn default_session_name() -> String {
    "gpuwatch".to_owned()
}

/// Checks what goes with assumed roles, by the rules all three token services
/// share, and that no account is polled twice.
pub(crate) fn check_roles<R: RoleArn>(
    roles: &[AssumeRole<R>],
    session_name: &str,
    external_id: Option<&str>,
    spot: &Spot<'_>,
    checks: &Checks<'_>,
) {
    if !(2..=64).contains(&session_name.len()) || !session_name.chars().all(is_name_char) {
        let fix = "write 2 to 64 letters, digits or _ + = , . @ -";
        checks.bad_value(&spot.key("session_name"), "not a session name", fix);
    }
    let is_external_id =
        |id: &str| (2..=1224).contains(&id.len()) && id.chars().all(|c| is_name_char(c) || matches!(c, ':' | '/'));
    if external_id.is_some_and(|id| !is_external_id(id)) {
        let fix = "write 2 to 1224 letters, digits or _ + = , . @ : / -";
        checks.bad_value(&spot.key("external_id"), "not an external id", fix);
    }
    let list = spot.key("assume_roles");
    let mut seen = std::collections::HashSet::new();
    for (index, role) in roles.iter().enumerate() {
        let account = match role {
            AssumeRole::Own => "self",
            AssumeRole::Role(arn) => arn.account(),
        };
        if !seen.insert(account) {
            checks.bad_value(
                &list.item(index),
                "this account is listed twice",
                "keep one role per account",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_names_are_taken_apart() {
        let arn: AwsRoleArn = "arn:aws-cn:iam::111122223333:role/team/gpuwatch".parse().unwrap();
        assert_eq!(
            (arn.partition(), arn.account(), arn.role_name()),
            (Partition::AwsCn, "111122223333", "gpuwatch")
        );
        let arn: AliyunRoleArn = "acs:ram::1234567890123456:role/gpuwatch".parse().unwrap();
        assert_eq!(arn.account(), "1234567890123456");
        let arn: TencentRoleArn = "qcs::cam::uin/100000000001:roleName/gpuwatch".parse().unwrap();
        assert_eq!(arn.account(), "100000000001");
        assert_eq!("self".parse::<AssumeRole<AwsRoleArn>>(), Ok(AssumeRole::Own));
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "gpuwatch",
            "arn:aws:iam::111122223333:user/x",
            "arn:aws:iam::11112222333:role/x",
            "arn:aws:iam::111122223333:role/",
            "arn:aws:iam::111122223333:role/a b",
            "arn:aws-xx:iam::111122223333:role/x",
            "arn:aws:sts::111122223333:assumed-role/x/y",
            "arn:aws:iam:us-east-1:111122223333:role/x",
        ] {
            assert!(bad.parse::<AwsRoleArn>().is_err(), "{bad}");
        }
        for bad in [
            "",
            "acs:ram::x:role/y",
            "acs:ram::1:role/",
            "acs:ram::1:user/y",
            "acs:ram:cn:1:role/y",
        ] {
            assert!(bad.parse::<AliyunRoleArn>().is_err(), "{bad}");
        }
        for bad in [
            "",
            "qcs::cam::uin/x:roleName/y",
            "qcs::cam::uin/1:roleName/",
            "qcs::cam::uin/1:user/y",
        ] {
            assert!(bad.parse::<TencentRoleArn>().is_err(), "{bad}");
        }
    }
}
