//! The headers that prove who calls: from application default credentials, a
//! credentials file, or a service account that is impersonated.

use std::{path::PathBuf, time::Duration};

use google_cloud_auth::{
    build_errors,
    credentials::{
        self as google, CacheableResource, Credentials as Google, external_account, external_account_authorized_user,
        impersonated, service_account, user_account,
    },
    errors::CredentialsError,
};
use gpuwatch_collector_core::{CollectError, Context, Reason};
use gpuwatch_collector_rest::{ExposeSecret, Renewing, SecretSource, SecretString};
use http::{HeaderMap, header};
use tokio::sync::Mutex;

use crate::{
    GcpOptions,
    api::Transport,
    impersonate::{self, Impersonated},
};

/// The one scope that every service called here accepts; what may be done is
/// decided by roles.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where the services that are called belong to.
const UNIVERSE: &str = "googleapis.com";

/// How long a token is waited for. Outside Google Cloud the metadata service
/// may not answer at all.
const TOKEN_LIMIT: Duration = Duration::from_secs(10);

/// Words of OAuth error answers that help and are no secret. The answers
/// themselves are never shown.
const OAUTH_ERRORS: [&str; 8] = [
    "invalid_grant",
    "invalid_client",
    "unauthorized_client",
    "invalid_scope",
    "invalid_target",
    "invalid_request",
    "access_denied",
    "invalid_rapt",
];

/// Where the base credentials come from.
#[derive(Debug)]
enum Source {
    /// None are sent.
    Anonymous,
    /// Application default credentials: environment, gcloud, metadata service.
    Default,
    /// A file, read again each time, so that a rotated key is used.
    File(PathBuf, SecretSource),
}

/// Base credentials with the text they were built from.
struct Held {
    text: Option<SecretString>,
    google: Google,
}

/// The identity of one section.
pub(crate) struct Credentials {
    source: Source,
    acts_as: Option<String>,
    base: Mutex<Option<Held>>,
    impersonated: Renewing<Impersonated>,
}

impl Credentials {
    pub(crate) fn new(options: &GcpOptions) -> Self {
        let source = match &options.credentials_file {
            _ if options.anonymous => Source::Anonymous,
            Some(path) => Source::File(path.clone(), SecretSource::File(path.clone())),
            None => Source::Default,
        };
        Self {
            source,
            acts_as: options.impersonate_service_account.clone(),
            base: Mutex::default(),
            impersonated: Renewing::default(),
        }
    }

    /// The headers of one request.
    ///
    /// # Errors
    /// [`Reason::Credentials`] with what to set, or what the impersonation
    /// was refused with.
    pub(crate) async fn headers(&self, cx: &Context, transport: &Transport) -> Result<HeaderMap, CollectError> {
        let Some(account) = &self.acts_as else {
            return self.base_headers(cx).await;
        };
        let fetch = || async {
            let base = self.base_headers(cx).await?;
            impersonate::token(cx, transport, account, &base).await
        };
        self.impersonated.get(cx.now(), fetch).await?.headers()
    }

    /// Gives up what a call was refused with, so that the next one begins with
    /// fresh credentials. False when there is nothing to renew.
    pub(crate) async fn renew(&self, cx: &Context) -> bool {
        if matches!(self.source, Source::Anonymous) {
            return false;
        }
        if self.acts_as.is_some() {
            let unavailable = || async { Err(CollectError::new(Reason::Credentials, "renewing")) };
            if let Ok(old) = self.impersonated.get(cx.now(), unavailable).await {
                self.impersonated.forget(&old).await;
            }
        }
        *self.base.lock().await = None;
        true
    }

    async fn base_headers(&self, cx: &Context) -> Result<HeaderMap, CollectError> {
        if matches!(self.source, Source::Anonymous) {
            return Ok(HeaderMap::new());
        }
        let google = self.google().await?;
        let limit = TOKEN_LIMIT.min(cx.remaining() / 2);
        let result = match cx.timeout(limit, google.headers(http::Extensions::new())).await {
            Some(Ok(CacheableResource::New { data, .. })) => Ok(data),
            Some(Ok(CacheableResource::NotModified)) => Err(self.unavailable("no token was given")),
            Some(Err(error)) => Err(self.unavailable(why(&error))),
            None => Err(self.unavailable("the token service did not answer")),
        };
        match result {
            Ok(mut headers) => {
                if let Some(token) = headers.get_mut(header::AUTHORIZATION) {
                    token.set_sensitive(true);
                }
                Ok(headers)
            }
            Err(error) => {
                // Failed credentials may stay failed for ever; the file or
                // login that was missing may be there next time.
                *self.base.lock().await = None;
                Err(error)
            }
        }
    }

    async fn google(&self) -> Result<Google, CollectError> {
        let text = match &self.source {
            Source::File(_, file) => Some(file.read().await?),
            Source::Default | Source::Anonymous => None,
        };
        let mut held = self.base.lock().await;
        let same = |held: &&Held| is_same_text(held.text.as_ref(), text.as_ref());
        if let Some(held) = held.as_ref().filter(same) {
            return Ok(held.google.clone());
        }
        let google = match &text {
            Some(text) => from_file(text).map_err(|what| self.unavailable(what))?,
            None => google::Builder::default()
                .with_scopes([SCOPE])
                .build()
                .map_err(|error| self.unavailable(what_is_wrong(&error)))?,
        };
        *held = Some(Held {
            text,
            google: google.clone(),
        });
        Ok(google)
    }

    fn unavailable(&self, what: &str) -> CollectError {
        let message = match &self.source {
            Source::File(path, _) => format!(
                "no access token with credentials_file {}: {what}; check that its key is complete and not revoked, \
                 and this machine's clock",
                path.display()
            ),
            Source::Default | Source::Anonymous => format!(
                "no application default credentials: {what}; set credentials_file or GOOGLE_APPLICATION_CREDENTIALS, \
                 run on a machine or pod with a service account, or run `gcloud auth application-default login`"
            ),
        };
        CollectError::new(Reason::Credentials, message)
    }
}

fn is_same_text(a: Option<&SecretString>, b: Option<&SecretString>) -> bool {
    a.map(ExposeSecret::expose_secret) == b.map(ExposeSecret::expose_secret)
}

/// Builds credentials from a file's text, by the `type` it states.
fn from_file(text: &SecretString) -> Result<Google, &'static str> {
    let json: serde_json::Value = serde_json::from_str(text.expose_secret()).map_err(|_| "it is not JSON")?;
    // A token of another universe is of no use here, and not for Google to see.
    let universe = json.get("universe_domain").and_then(serde_json::Value::as_str);
    if universe.is_some_and(|universe| universe != UNIVERSE) {
        return Err("its `universe_domain` is not googleapis.com, the only one whose services are called");
    }
    let kind = json.get("type").and_then(serde_json::Value::as_str).map(str::to_owned);
    let built = match kind.as_deref() {
        Some("service_account") => service_account::Builder::new(json)
            .with_access_specifier(service_account::AccessSpecifier::from_scopes([SCOPE]))
            .build(),
        Some("authorized_user") => user_account::Builder::new(json).with_scopes([SCOPE]).build(),
        Some("external_account") => external_account::Builder::new(json).with_scopes([SCOPE]).build(),
        Some("external_account_authorized_user") => external_account_authorized_user::Builder::new(json).build(),
        Some("impersonated_service_account") => impersonated::Builder::new(json).with_scopes([SCOPE]).build(),
        Some(_) => return Err("its `type` is not supported"),
        None => return Err("it has no `type`, so it is no credentials file"),
    };
    built.map_err(|error| what_is_wrong(&error))
}

/// The class of a failure to build credentials; its text may quote the file.
fn what_is_wrong(error: &build_errors::Error) -> &'static str {
    if error.is_loading() {
        "the file cannot be read"
    } else if error.is_unknown_type() || error.is_not_supported() {
        "its `type` is not supported"
    } else if error.is_missing_field() {
        "a field is missing"
    } else {
        "it does not have the form of a credentials file"
    }
}

/// What is known about a token that was not given; the answer of the token
/// service may hold secrets.
fn why(error: &CredentialsError) -> &'static str {
    let text = format!("{error:?}");
    let known = OAUTH_ERRORS.iter().copied().find(|word| text.contains(word));
    known.unwrap_or(if error.is_transient() {
        "the token service cannot be reached or failed"
    } else {
        "the token service refused"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Result<(), &'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { from_file(&SecretString::from(text)).map(|_| ()) })
    }

    // P52
    #[test]
    fn a_file_that_is_no_credentials_file_says_so() {
        assert_eq!(from("key"), Err("it is not JSON"));
        assert!(from("{}").unwrap_err().contains("type"));
        assert!(
            from(r#"{"type": "gdch_service_account"}"#)
                .unwrap_err()
                .contains("not supported")
        );
        assert!(from(r#"{"type": "service_account", "private_key": "s3cret"}"#).is_err());
    }

    // P40, P44
    #[test]
    fn credentials_of_another_universe_are_not_used() {
        let login = |universe: &str| {
            let login = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r""#;
            from(&format!(r#"{login}, "universe_domain": "{universe}"}}"#))
        };
        assert_eq!(login("googleapis.com"), Ok(()));
        assert!(login("apis.example").unwrap_err().contains("universe_domain"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]
        #[test]
        fn any_file_is_used_or_refused(
            text in ".{0,80}",
            mut json in crate::samples::any_json(),
            kind in proptest::sample::select(vec![
                "service_account", "authorized_user", "external_account", "impersonated_service_account",
                "external_account_authorized_user",
            ]),
        ) {
            let _ = from(&text);
            if let Some(fields) = json.as_object_mut() {
                fields.insert("type".into(), kind.into());
                fields.insert("private_key".into(), text.clone().into());
                fields.insert("source_credentials".into(), serde_json::json!({"type": kind, "refresh_token": text}));
                fields.insert("credential_source".into(), serde_json::json!({"file": text}));
            }
            let _ = from(&json.to_string());
        }
    }

    #[test]
    fn a_user_login_can_be_used() {
        let login = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}"#;
        assert_eq!(from(login), Ok(()));
        let federated = r#"{"type": "external_account_authorized_user", "token_url": "https://sts.googleapis.com/v1/t",
            "client_id": "i", "client_secret": "s", "refresh_token": "r",
            "audience": "//iam.googleapis.com/locations/global/workforcePools/p/providers/o"}"#;
        assert_eq!(from(federated), Ok(()));
    }

    #[test]
    fn answers_of_the_token_service_are_not_shown() {
        let error = CredentialsError::from_msg(false, "failed, body=<{\"error\":\"invalid_grant\",\"x\":\"s3cret\"}>");
        assert_eq!(why(&error), "invalid_grant");
        let error = CredentialsError::from_msg(true, "failed, body=<s3cret>");
        assert!(!why(&error).contains("s3cret"));
    }
}
