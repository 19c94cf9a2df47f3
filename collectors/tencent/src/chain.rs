//! Where the base credentials of a section come from, in this order: the
//! configuration, the environment, the pod's identity in TKE, the profile
//! file, the role of the CVM instance.
//!
//! Keys in files are read anew for every use, so that a rotated key counts at
//! once; temporary ones are renewed before they end.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason};
use gpuwatch_collector_rest::{ExposeSecret as _, Renewing, SecretSource, SecretString};
use serde_json::json;

use crate::{
    TencentOptions,
    api::{Action, Api, Signer},
    credentials::{Assumed, Credentials},
    environment::{Environment, Pod},
    machine,
};

const STS_VERSION: &str = "2018-08-13";

const ASSUME_ROLE: Action = Action::new(Call::new("sts", "AssumeRole", "sts:AssumeRole"), STS_VERSION);

/// Needs no permission: the token is the proof.
const ASSUME_ROLE_WITH_WEB_IDENTITY: Action =
    Action::new(Call::new("sts", "AssumeRoleWithWebIdentity", ""), STS_VERSION);

/// The profile file for all users; the user's own comes before it.
const SYSTEM_FILE: &str = "/etc/tencentcloud/credentials";

/// Base credentials of one section.
pub(crate) struct Chain {
    options: Arc<TencentOptions>,
    environment: Environment,
    pod: Renewing<Credentials>,
    machine: Renewing<Credentials>,
    /// The role that the environment or the profile file names.
    role: Renewing<Credentials>,
}

/// Keys from a source that does not renew them.
struct Fixed {
    keys: Credentials,
    /// Role to assume with them.
    role: Option<String>,
}

/// What is asked of a role.
#[derive(Clone, Copy)]
pub(crate) struct RoleRequest<'a> {
    pub arn: &'a str,
    pub session_name: &'a str,
    pub external_id: Option<&'a str>,
}

impl Chain {
    pub(crate) fn new(options: Arc<TencentOptions>, environment: Environment) -> Self {
        Self {
            options,
            environment,
            pod: Renewing::default(),
            machine: Renewing::default(),
            role: Renewing::default(),
        }
    }

    /// The credentials of the first source that has any.
    ///
    /// # Errors
    /// When no source has any, with what to set; or what is wrong with the
    /// first that should have.
    pub(crate) async fn get(&self, cx: &Context, api: &Api) -> Result<Arc<Credentials>, CollectError> {
        if let Some(keys) = self.configured().await? {
            return Ok(Arc::new(keys));
        }
        if let Some(fixed) = self.environment()? {
            return self.with_role(cx, api, fixed).await;
        }
        if let Some(pod) = &self.environment.pod {
            return self.pod.get(cx.now(), || self.pod_keys(cx, api, pod)).await;
        }
        if let Some(fixed) = self.file().await? {
            return self.with_role(cx, api, fixed).await;
        }
        let url = self.options.metadata_url.as_deref();
        let machine = || async { machine::keys(cx, api.http()?, url).await?.ok_or_else(missing) };
        self.machine.get(cx.now(), machine).await
    }

    /// Gives up credentials that were refused; whether the next ones may be
    /// others.
    pub(crate) async fn renew(&self, cx: &Context, api: &Api, refused: &Arc<Credentials>) -> bool {
        for renewing in [&self.pod, &self.machine, &self.role] {
            renewing.forget(refused).await;
        }
        self.get(cx, api).await.is_ok_and(|keys| !keys.is_same(refused))
    }

    async fn configured(&self) -> Result<Option<Credentials>, CollectError> {
        let options = &self.options;
        let (id, key) = match (&options.secret_id, &options.secret_key) {
            (Some(id), Some(key)) => (id.read().await?, key.read().await?),
            (None, None) => return Ok(None),
            _ => {
                let message = "secret_id and secret_key go together: one of them is missing";
                return Err(CollectError::new(Reason::Credentials, message));
            }
        };
        let token = match &options.token {
            Some(token) => Some(token.read().await?),
            None => None,
        };
        Credentials::given(&id, &key, token.as_ref()).map(Some)
    }

    fn environment(&self) -> Result<Option<Fixed>, CollectError> {
        let environment = &self.environment;
        let (Some(id), Some(key)) = (&environment.secret_id, &environment.secret_key) else {
            return Ok(None);
        };
        Ok(Some(Fixed {
            keys: Credentials::given(id, key, environment.token.as_ref())?,
            role: environment.role_arn.clone(),
        }))
    }

    async fn file(&self) -> Result<Option<Fixed>, CollectError> {
        let own = self
            .environment
            .home
            .as_ref()
            .map(|home| home.join(".tencentcloud/credentials"));
        for path in own.into_iter().chain([PathBuf::from(SYSTEM_FILE)]) {
            if let Some(fixed) = read_file(&path).await? {
                return Ok(Some(fixed));
            }
        }
        Ok(None)
    }

    async fn with_role(&self, cx: &Context, api: &Api, fixed: Fixed) -> Result<Arc<Credentials>, CollectError> {
        let Some(arn) = &fixed.role else {
            return Ok(Arc::new(fixed.keys));
        };
        let named = self.environment.role_session_name.as_deref();
        let request = RoleRequest {
            arn,
            session_name: named.unwrap_or(&self.options.session_name),
            external_id: None,
        };
        self.role
            .get(cx.now(), || assume_role(cx, api, &fixed.keys, request))
            .await
    }

    async fn pod_keys(&self, cx: &Context, api: &Api, pod: &Pod) -> Result<Credentials, CollectError> {
        let token = SecretSource::File(pod.token_file.clone()).read().await?;
        let body = json!({
            "ProviderId": pod.provider_id,
            "WebIdentityToken": token.expose_secret(),
            "RoleArn": pod.role_arn,
            "RoleSessionName": self.options.session_name,
        });
        let action = ASSUME_ROLE_WITH_WEB_IDENTITY;
        let assumed: Assumed = api.send(cx, action, &pod.region, Signer::Body, &body).await?;
        assumed.keys(action.call)
    }
}

/// Assumes a role.
///
/// # Errors
/// Those of the call; its answer is never quoted.
pub(crate) async fn assume_role(
    cx: &Context,
    api: &Api,
    keys: &Credentials,
    request: RoleRequest<'_>,
) -> Result<Credentials, CollectError> {
    let mut body = json!({"RoleArn": request.arn, "RoleSessionName": request.session_name});
    if let (Some(id), Some(fields)) = (request.external_id, body.as_object_mut()) {
        fields.insert("ExternalId".to_owned(), id.into());
    }
    let region = api.site().home_region();
    let assumed: Assumed = api.send(cx, ASSUME_ROLE, region, Signer::Keys(keys), &body).await?;
    assumed.keys(ASSUME_ROLE.call)
}

// P52
fn missing() -> CollectError {
    CollectError::new(
        Reason::Credentials,
        "no Tencent Cloud credentials: set secret_id and secret_key (or secret_id_file and secret_key_file), or \
         TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY, write ~/.tencentcloud/credentials, or run in a TKE pod \
         or on a CVM instance that has a role",
    )
}

/// The keys of the section `[default]`; `None` without such a file or without
/// keys in it.
async fn read_file(path: &Path) -> Result<Option<Fixed>, CollectError> {
    if !matches!(tokio::fs::try_exists(path).await, Ok(true)) {
        return Ok(None);
    }
    let text = SecretSource::File(path.to_owned()).read().await?;
    let value = |name: &str| default_value(text.expose_secret(), name);
    let (Some(id), Some(key)) = (value("secret_id"), value("secret_key")) else {
        return Ok(None);
    };
    let token = value("token").map(SecretString::from);
    Ok(Some(Fixed {
        keys: Credentials::given(&SecretString::from(id), &SecretString::from(key), token.as_ref())?,
        role: value("role_arn").map(str::to_owned),
    }))
}

/// A value of the section `[default]` of an INI file.
fn default_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim();
        } else if section == "default"
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == name
            && !value.trim().is_empty()
        {
            return Some(value.trim());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_section_of_a_profile_file_is_read() {
        let text =
            "secret_id = none\n[other]\nsecret_id=no\n\n[default]\n# secret_id = no\nsecret_id = AKID \nsecret_key=\n";
        assert_eq!(default_value(text, "secret_id"), Some("AKID"));
        assert_eq!(default_value(text, "secret_key"), None, "empty");
        assert_eq!(default_value(text, "role_arn"), None);
    }

    // P52
    #[test]
    fn missing_credentials_say_what_to_set() {
        let text = missing().to_string();
        for word in ["secret_id", "TENCENTCLOUD_SECRET_KEY", "~/.tencentcloud/credentials"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
