//! Where keys come from: the configuration, or the chain of the vendor's own
//! SDKs (environment, OIDC, CLI profile, credentials file, instance role,
//! credentials URI).

mod metadata;
mod oidc;
mod profile;

use std::{collections::BTreeMap, path::PathBuf};

use gpuwatch_collector_core::{CollectError, Context, Reason};
use gpuwatch_collector_rest::{Expires, SecretSource, SecretString};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{AliyunOptions, client::Client, options::account_of_role, sign::Keys};

/// Keys with the moment they end.
#[derive(Debug)]
pub(crate) struct Session {
    pub keys: Keys,
    pub expires: Option<Timestamp>,
}

impl Expires for Session {
    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

/// Temporary keys as STS and the metadata service give them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TemporaryKeys {
    access_key_id: String,
    access_key_secret: String,
    security_token: String,
    expiration: Timestamp,
}

impl From<TemporaryKeys> for Session {
    fn from(keys: TemporaryKeys) -> Self {
        Self {
            keys: Keys {
                id: keys.access_key_id,
                secret: SecretString::from(keys.access_key_secret),
                token: Some(SecretString::from(keys.security_token)),
            },
            expires: Some(keys.expiration),
        }
    }
}

/// The variables of the environment that the chain reads, taken once.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The process's own. Variables that are no text are none of these.
    pub(crate) fn of_process() -> Self {
        let pairs = std::env::vars_os();
        Self::new(pairs.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))))
    }

    /// Those of these variables that matter.
    pub(crate) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let relevant =
            |name: &str| name.starts_with("ALIBABA_CLOUD_") || name.starts_with("ALICLOUD_") || name == "HOME";
        Self(variables.into_iter().filter(|(name, _)| relevant(name)).collect())
    }

    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        Self::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }
}

/// The base credentials of a section.
pub(crate) struct Chain {
    configured: Option<[Option<SecretSource>; 3]>,
    environment: Environment,
    metadata_url: Option<String>,
}

impl Chain {
    pub(crate) fn new(options: &AliyunOptions, environment: Environment) -> Self {
        let keys = [
            options.access_key_id.clone(),
            options.access_key_secret.clone(),
            options.security_token.clone(),
        ];
        Self {
            configured: keys.iter().any(Option::is_some).then_some(keys),
            environment,
            metadata_url: options.metadata_url.clone(),
        }
    }

    /// The keys of the first source that is set up. A source that is set up
    /// and fails is an error and not a reason to try the next: its keys would
    /// be somebody else's.
    ///
    /// # Errors
    /// What is wrong with that source, or what can be set up.
    pub(crate) async fn load(&self, cx: &Context, client: &Client) -> Result<Session, CollectError> {
        if let Some([id, secret, token]) = &self.configured {
            return configured(id.as_ref(), secret.as_ref(), token.as_ref()).await;
        }
        if let Some(keys) = self.environment_keys() {
            return Ok(lasting(keys));
        }
        if let Some(role) = oidc::Role::from_environment(&self.environment) {
            return oidc::assume(cx, client, &role).await;
        }
        if let Some(profile) = profile::from_cli(&self.environment).await? {
            return self.of_profile(cx, client, profile).await;
        }
        if let Some(keys) = profile::from_ini(&self.environment).await? {
            return Ok(lasting(keys));
        }
        if let Some(session) = metadata::session(cx, client, &self.metadata()).await? {
            return Ok(session);
        }
        if let Some(url) = self.environment.get("ALIBABA_CLOUD_CREDENTIALS_URI") {
            return metadata::from_uri(cx, client, url).await;
        }
        Err(CollectError::new(
            Reason::Credentials,
            "no credentials found: set access_key_id and access_key_secret, set ALIBABA_CLOUD_ACCESS_KEY_ID and \
             ALIBABA_CLOUD_ACCESS_KEY_SECRET, use a CLI profile, or run with an instance role or RRSA",
        ))
    }

    fn metadata(&self) -> metadata::Settings<'_> {
        metadata::Settings {
            url: self.metadata_url.as_deref(),
            role: self.environment.get("ALIBABA_CLOUD_ECS_METADATA"),
            disabled: self.environment.is_true("ALIBABA_CLOUD_ECS_METADATA_DISABLED"),
            tokens_only: self.environment.is_true("ALIBABA_CLOUD_IMDSV1_DISABLED"),
        }
    }

    fn environment_keys(&self) -> Option<Keys> {
        let pair = |id: &str, secret: &str| Some((self.environment.get(id)?, self.environment.get(secret)?));
        let (id, secret) = pair("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET")
            .or_else(|| pair("ALICLOUD_ACCESS_KEY", "ALICLOUD_SECRET_KEY"))?;
        Some(Keys {
            id: id.trim().to_owned(),
            secret: SecretString::from(secret.trim()),
            token: self
                .environment
                .get("ALIBABA_CLOUD_SECURITY_TOKEN")
                .map(SecretString::from),
        })
    }

    async fn of_profile(
        &self,
        cx: &Context,
        client: &Client,
        profile: profile::Profile,
    ) -> Result<Session, CollectError> {
        let base = match profile.base {
            profile::Base::Keys(keys) => lasting(keys),
            profile::Base::Oidc(role) => oidc::assume(cx, client, &role).await?,
            profile::Base::Metadata(role) => {
                let settings = metadata::Settings {
                    role: role.as_deref(),
                    disabled: false,
                    ..self.metadata()
                };
                metadata::session(cx, client, &settings).await?.ok_or_else(|| {
                    CollectError::new(
                        Reason::Credentials,
                        "the CLI profile wants an instance role, and there is none",
                    )
                })?
            }
        };
        let mut session = base;
        for role in &profile.roles {
            let assume = crate::account::Assume {
                role: &role.arn,
                session_name: role.session_name.as_deref().unwrap_or("gpuwatch"),
                external_id: role.external_id.as_deref(),
                policy: role.policy.as_deref(),
            };
            session = assume.with(cx, client, &session.keys).await?;
        }
        Ok(session)
    }
}

async fn configured(
    id: Option<&SecretSource>,
    secret: Option<&SecretSource>,
    token: Option<&SecretSource>,
) -> Result<Session, CollectError> {
    use gpuwatch_collector_rest::ExposeSecret as _;
    let (Some(id), Some(secret)) = (id, secret) else {
        return Err(CollectError::new(
            Reason::Credentials,
            "access_key_id and access_key_secret go together: one of them is missing",
        ));
    };
    let keys = Keys {
        id: id.read().await?.expose_secret().trim().to_owned(),
        secret: SecretString::from(secret.read().await?.expose_secret().trim()),
        token: match token {
            Some(token) => Some(SecretString::from(token.read().await?.expose_secret().trim())),
            None => None,
        },
    };
    Ok(lasting(keys))
}

/// Keys without a known end.
fn lasting(keys: Keys) -> Session {
    Session { keys, expires: None }
}

/// Whether a text is the ARN of a role.
fn is_role(arn: &str) -> bool {
    account_of_role(arn).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn chain(pairs: &[(&str, &str)]) -> Chain {
        Chain::new(&AliyunOptions::named("x"), Environment::of(pairs))
    }

    #[test]
    fn the_environment_has_keys_when_it_has_both() {
        let both = chain(&[
            ("ALIBABA_CLOUD_ACCESS_KEY_ID", " id "),
            ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "secret"),
            ("ALIBABA_CLOUD_SECURITY_TOKEN", "token"),
        ]);
        let keys = both.environment_keys().unwrap();
        assert_eq!((keys.id.as_str(), keys.token.is_some()), ("id", true));
        assert!(
            chain(&[("ALIBABA_CLOUD_ACCESS_KEY_ID", "id")])
                .environment_keys()
                .is_none()
        );
        let terraform = chain(&[("ALICLOUD_ACCESS_KEY", "id"), ("ALICLOUD_SECRET_KEY", "secret")]);
        assert!(terraform.environment_keys().is_some());
    }

    #[test]
    fn keys_do_not_show_in_debug_output() {
        let session = lasting(Keys {
            id: "id".into(),
            secret: SecretString::from("s3cret"),
            token: Some(SecretString::from("t0ken")),
        });
        let shown = format!("{session:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::record(&[
            "AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration", "Code",
        ])) {
            if let Ok(keys) = serde_json::from_str::<TemporaryKeys>(&text) {
                let shown = format!("{:?}", Session::from(keys));
                prop_assert!(shown.contains("REDACTED") || shown.contains("redacted"), "{}", shown);
            }
        }
    }
}
