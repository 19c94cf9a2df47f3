//! What calls are signed with.

use std::fmt;

use gpuwatch_collector_core::{Call, CollectError, Reason};
use gpuwatch_collector_rest::{Expires, ExposeSecret as _, SecretString};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{errors, loose, time};

/// A key, with a token and an end when it is temporary.
pub(crate) struct Credentials {
    pub secret_id: SecretString,
    pub secret_key: SecretString,
    pub token: Option<SecretString>,
    pub expires: Option<Timestamp>,
}

impl Credentials {
    /// Keys as given, without the white space around them.
    ///
    /// # Errors
    /// For white space within: it would only give a wrong signature.
    pub(crate) fn given(
        secret_id: &SecretString,
        secret_key: &SecretString,
        token: Option<&SecretString>,
    ) -> Result<Self, CollectError> {
        Ok(Self {
            secret_id: trimmed(secret_id, "secret_id")?,
            secret_key: trimmed(secret_key, "secret_key")?,
            token: token.map(|token| trimmed(token, "token")).transpose()?,
            expires: None,
        })
    }

    /// Whether these are the same keys.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let token = |keys: &Self| keys.token.as_ref().map(|token| token.expose_secret().to_owned());
        self.secret_id.expose_secret() == other.secret_id.expose_secret()
            && self.secret_key.expose_secret() == other.secret_key.expose_secret()
            && token(self) == token(other)
    }
}

impl Expires for Credentials {
    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

fn trimmed(secret: &SecretString, what: &str) -> Result<SecretString, CollectError> {
    let text = secret.expose_secret().trim();
    if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let message = format!("{what} is empty or has white space within; copy it again");
        return Err(CollectError::new(Reason::Credentials, message));
    }
    Ok(SecretString::from(text))
}

/// The answer to both kinds of `AssumeRole`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Assumed {
    #[serde(default)]
    credentials: Option<Temporary>,
    #[serde(default, deserialize_with = "loose::number")]
    expired_time: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Temporary {
    tmp_secret_id: Option<SecretText>,
    tmp_secret_key: Option<SecretText>,
    token: Option<SecretText>,
}

/// Secret text in an answer.
pub(crate) struct SecretText(pub SecretString);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(SecretString::from(String::deserialize(deserializer)?)))
    }
}

impl Assumed {
    /// The temporary keys.
    ///
    /// # Errors
    /// When one is missing, or their end.
    pub(crate) fn keys(self, call: Call) -> Result<Credentials, CollectError> {
        let missing = || errors::decode(call, "no temporary credentials with an end");
        let temporary = self.credentials.ok_or_else(missing)?;
        temporary_keys(
            temporary.tmp_secret_id,
            temporary.tmp_secret_key,
            temporary.token,
            self.expired_time,
        )
        .ok_or_else(missing)
    }
}

/// Temporary keys, when they are complete.
pub(crate) fn temporary_keys(
    id: Option<SecretText>,
    key: Option<SecretText>,
    token: Option<SecretText>,
    expired_time: Option<f64>,
) -> Option<Credentials> {
    let filled = |secret: Option<SecretText>| secret.map(|s| s.0).filter(|s| !s.expose_secret().is_empty());
    Some(Credentials {
        secret_id: filled(id)?,
        secret_key: filled(key)?,
        token: Some(filled(token)?),
        expires: Some(time::from_seconds(expired_time?)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(id: &str, key: &str) -> Result<Credentials, CollectError> {
        Credentials::given(&id.into(), &key.into(), None)
    }

    #[test]
    fn blanks_around_keys_are_cut_and_blanks_within_are_refused() {
        let keys = given(" AKID\n", "key\r\n").unwrap();
        assert_eq!(keys.secret_id.expose_secret(), "AKID");
        for (id, key) in [("", "key"), ("AKID", " "), ("AKID", "kr3t kr3t"), ("AK\nID", "key")] {
            let error = given(id, key).unwrap_err();
            assert_eq!(error.reason, Reason::Credentials);
            assert!(!error.to_string().contains("kr3t"), "{error}");
        }
    }

    #[test]
    fn keys_are_compared_whole_and_never_shown() {
        let (a, b) = (given("AKID", "s3cret").unwrap(), given("AKID", "0ther").unwrap());
        assert!(a.is_same(&a) && !a.is_same(&b));
        assert!(!format!("{a:?}").contains("s3cret"));
    }

    #[test]
    fn temporary_keys_are_complete_or_none() {
        let call = Call::new("sts", "AssumeRole", "sts:AssumeRole");
        let read = |text: &str| serde_json::from_str::<Assumed>(text).unwrap().keys(call);
        let whole = r#"{"Credentials":{"TmpSecretId":"i","TmpSecretKey":"k","Token":"t"},"ExpiredTime":1767225600}"#;
        assert_eq!(
            read(whole).unwrap().expires.map(Timestamp::as_second),
            Some(1_767_225_600)
        );
        for part in [
            "{}",
            r#"{"Credentials":null,"ExpiredTime":1767225600}"#,
            r#"{"Credentials":{"TmpSecretId":"i","TmpSecretKey":"s3cret"},"ExpiredTime":1767225600}"#,
            r#"{"Credentials":{"TmpSecretId":"i","TmpSecretKey":"s3cret","Token":"t"}}"#,
        ] {
            let error = read(part).unwrap_err();
            assert!(
                error.reason == Reason::Decode && !error.to_string().contains("s3cret"),
                "{error}"
            );
        }
    }
}
