//! Tokens for Resource Manager: from Microsoft's credentials library, over
//! gpuwatch's own connections.

mod transport;

use std::{path::PathBuf, sync::Arc, time::Duration};

use azure_core::{
    credentials::{Secret, TokenCredential},
    http::{ClientOptions, FixedRetryOptions, RetryOptions, Transport},
};
use azure_identity::{
    AzureCliCredential, AzureCliCredentialOptions, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
    WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};
use gpuwatch_collector_core::{Call, CollectError, Context, Reason, one_line};
use gpuwatch_collector_rest::{Expires, ExposeSecret as _, Http, Origin, Renewing, SecretSource, SecretString};
use jiff::Timestamp;
use transport::{OwnTransport, Trouble};

use crate::{AzureOptions, environment::Environment};

const TOKEN: Call = Call::new("login", "token", "");

/// The metadata service answers at once or is not there.
const IDENTITY_PATIENCE: Duration = Duration::from_secs(3);

/// A token with its end.
#[derive(Debug)]
pub(crate) struct Token {
    pub secret: SecretString,
    expires: Option<Timestamp>,
}

impl Expires for Token {
    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

/// Variables of the environment that decide how to sign in, taken once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    tenant_id: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SecretSource>,
    token_file: Option<PathBuf>,
}

impl Variables {
    /// The process's own.
    pub(crate) fn of_process() -> Self {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            tenant_id: get("AZURE_TENANT_ID"),
            client_id: get("AZURE_CLIENT_ID"),
            client_secret: get("AZURE_CLIENT_SECRET").map(|secret| SecretSource::value(&secret)),
            token_file: get("AZURE_FEDERATED_TOKEN_FILE").map(PathBuf::from),
        }
    }
}

/// How to sign in.
#[derive(Debug)]
enum Way {
    /// A fixed token, for an endpoint on this machine.
    Fixed(SecretSource),
    Secret {
        tenant: String,
        client: String,
        secret: SecretSource,
    },
    Federated {
        tenant: String,
        client: String,
        file: PathBuf,
    },
    /// The machine's identity, else whoever is signed in to the CLI.
    Machine {
        tenant: Option<String>,
        client: Option<String>,
    },
    /// The options contradict themselves.
    Unusable(&'static str),
}

/// The identity of one section.
pub(crate) struct Credentials {
    way: Way,
    environment: Arc<Environment>,
    http: Result<Http, CollectError>,
    token: Renewing<Token>,
}

impl Credentials {
    pub(crate) fn new(options: &AzureOptions, environment: Arc<Environment>, variables: Variables) -> Self {
        Self {
            way: way(options, variables),
            environment,
            http: Http::new(),
            token: Renewing::default(),
        }
    }

    /// The HTTP client.
    ///
    /// # Errors
    /// When TLS could not be set up.
    pub(crate) fn http(&self) -> Result<&Http, CollectError> {
        self.http.as_ref().map_err(Clone::clone)
    }

    /// A token that lasts.
    ///
    /// # Errors
    /// [`Reason::Credentials`] with what to set or to correct.
    pub(crate) async fn token(&self, cx: &Context) -> Result<Arc<Token>, CollectError> {
        self.token.get(cx.now(), || Box::pin(self.sign_in(cx))).await
    }

    /// Gives up a token that was refused.
    pub(crate) async fn forget(&self, token: &Arc<Token>) {
        self.token.forget(token).await;
    }

    async fn sign_in(&self, cx: &Context) -> Result<Token, CollectError> {
        match &self.way {
            Way::Unusable(what) => Err(CollectError::new(Reason::Credentials, *what)),
            Way::Fixed(token) => self.fixed(token).await,
            Way::Secret { tenant, client, secret } => {
                let secret = Secret::new(secret.read().await?.expose_secret().to_owned());
                let (client_options, trouble) = self.client_options()?;
                let options = ClientSecretCredentialOptions { client_options };
                let built = ClientSecretCredential::new(tenant, client.clone(), secret, Some(options));
                self.ask(cx, built, "the application's secret", &trouble).await
            }
            Way::Federated { tenant, client, file } => {
                let (client_options, trouble) = self.client_options()?;
                let options = WorkloadIdentityCredentialOptions {
                    credential_options: ClientAssertionCredentialOptions { client_options },
                    tenant_id: Some(tenant.clone()),
                    client_id: Some(client.clone()),
                    token_file_path: Some(file.clone()),
                };
                let built = WorkloadIdentityCredential::new(Some(options));
                self.ask(cx, built, "workload identity", &trouble).await
            }
            Way::Machine { tenant, client } => self.of_machine(cx, tenant.as_deref(), client.as_deref()).await,
        }
    }

    async fn fixed(&self, token: &SecretSource) -> Result<Token, CollectError> {
        if !self.environment.manager()?.is_loopback() {
            return Err(CollectError::new(
                Reason::Credentials,
                "access_token is only for an endpoint_url on this machine",
            ));
        }
        Ok(Token {
            secret: token.read().await?,
            expires: None,
        })
    }

    async fn of_machine(
        &self,
        cx: &Context,
        tenant: Option<&str>,
        client: Option<&str>,
    ) -> Result<Token, CollectError> {
        let (client_options, trouble) = self.client_options()?;
        let options = ManagedIdentityCredentialOptions {
            user_assigned_id: client.map(|id| UserAssignedId::ClientId(id.to_owned())),
            client_options,
        };
        let built = ManagedIdentityCredential::new(Some(options));
        let managed = self.ask(cx, built, "managed identity", &trouble);
        let refused = match cx.timeout(IDENTITY_PATIENCE.min(cx.remaining()), managed).await {
            Some(Ok(token)) => return Ok(token),
            Some(Err(error)) => error.message,
            None => "the metadata service did not answer".to_owned(),
        };
        let options = AzureCliCredentialOptions {
            tenant_id: tenant.map(str::to_owned),
            ..AzureCliCredentialOptions::default()
        };
        let built = AzureCliCredential::new(Some(options));
        self.ask(cx, built, "the Azure CLI", &Trouble::default())
            .await
            .map_err(|error| {
                CollectError::new(
                    Reason::Credentials,
                    format!(
                        "no credentials: set tenant_id, client_id and client_secret_file, run with a workload or managed \
                         identity, or sign in with `az login` (managed identity: {refused}; {})",
                        error.message
                    ),
                )
            })
    }

    async fn ask<C: TokenCredential + 'static>(
        &self,
        cx: &Context,
        credential: azure_core::Result<Arc<C>>,
        what: &str,
        trouble: &Trouble,
    ) -> Result<Token, CollectError> {
        let credential = credential.map_err(|error| unusable(what, &error))?;
        let scope = self.environment.scope();
        let scopes = [scope];
        let given = cx
            .call(TOKEN, || {
                // Boxed: rare, and its future is large.
                let asked = credential.get_token(&scopes, None);
                async {
                    asked
                        .await
                        .map_err(|error| trouble.take().unwrap_or_else(|| unusable(what, &error)))
                }
            })
            .await?;
        Ok(Token {
            secret: SecretString::from(given.token.secret().to_owned()),
            expires: Timestamp::from_second(given.expires_on.unix_timestamp()).ok(),
        })
    }

    fn client_options(&self) -> Result<(ClientOptions, Trouble), CollectError> {
        let trouble = Trouble::default();
        let environment = Arc::clone(&self.environment);
        let transport = OwnTransport::new(self.http()?.clone(), environment, TOKEN, trouble.clone());
        let options = ClientOptions {
            cloud: Some(self.environment.credentials_cloud()),
            transport: Some(Transport::new(Arc::new(transport))),
            // Retry is the scheduler's, which counts every attempt.
            retry: RetryOptions::fixed(FixedRetryOptions {
                max_retries: 0,
                ..FixedRetryOptions::default()
            }),
            ..ClientOptions::default()
        };
        Ok((options, trouble))
    }
}

fn way(options: &AzureOptions, variables: Variables) -> Way {
    if let Some(token) = &options.access_token {
        return Way::Fixed(token.clone());
    }
    let tenant = options.tenant_id.clone().or_else(|| variables.tenant_id.clone());
    let client = options.client_id.clone().or_else(|| variables.client_id.clone());
    if let Some(secret) = options.client_secret.clone() {
        return match (tenant, client) {
            (Some(tenant), Some(client)) => Way::Secret { tenant, client, secret },
            _ => Way::Unusable("client_secret needs tenant_id and client_id beside it"),
        };
    }
    match (tenant, client, variables.token_file, variables.client_secret) {
        (Some(tenant), Some(client), Some(file), _) => Way::Federated { tenant, client, file },
        (Some(tenant), Some(client), None, Some(secret)) => Way::Secret { tenant, client, secret },
        (tenant, _, _, _) => Way::Machine {
            tenant,
            client: options.client_id.clone(),
        },
    }
}

/// What the directory refused, in its own error numbers, which say more than
/// its prose. The library's error texts hold no secrets of ours; they are cut
/// all the same.
fn unusable(what: &str, error: &azure_core::Error) -> CollectError {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    let advice = [
        ("AADSTS7000215", "the client secret is wrong"),
        ("AADSTS7000222", "the client secret has expired"),
        (
            "AADSTS700016",
            "the application is not in this tenant; is `cloud` right?",
        ),
        ("AADSTS90002", "there is no such tenant; is `cloud` right?"),
        ("AADSTS70021", "the federated credential's subject does not match"),
        ("AADSTS700213", "the federated credential's subject does not match"),
    ];
    let advice = advice
        .iter()
        .find(|(code, _)| text.contains(code))
        .map(|(_, advice)| *advice);
    let text = advice.map_or_else(|| one_line(&text, 200), str::to_owned);
    CollectError::new(Reason::Credentials, format!("no token from {what}: {text}"))
}

/// Where tokens may be asked for, for the transport.
pub(crate) fn origin_of(environment: &Environment, url: &url::Url) -> Result<Origin, CollectError> {
    environment.token_origin(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AzureOptions {
        AzureOptions::named("x")
    }

    fn variables() -> Variables {
        Variables {
            tenant_id: Some("t".into()),
            client_id: Some("c".into()),
            ..Variables::default()
        }
    }

    #[test]
    fn what_is_configured_comes_before_the_environment() {
        let configured = AzureOptions {
            tenant_id: Some("t1".into()),
            client_id: Some("c1".into()),
            client_secret: Some(SecretSource::value("s")),
            ..options()
        };
        let federated = Variables {
            token_file: Some("/token".into()),
            ..variables()
        };
        assert!(matches!(way(&configured, federated.clone()), Way::Secret { tenant, .. } if tenant == "t1"));
        assert!(matches!(way(&options(), federated), Way::Federated { .. }));
        let secret = Variables {
            client_secret: Some(SecretSource::value("s")),
            ..variables()
        };
        assert!(matches!(way(&options(), secret), Way::Secret { .. }));
        assert!(matches!(way(&options(), Variables::default()), Way::Machine { .. }));
        let alone = AzureOptions {
            client_secret: Some(SecretSource::value("s")),
            ..options()
        };
        assert!(matches!(way(&alone, Variables::default()), Way::Unusable(_)));
    }

    #[tokio::test]
    async fn a_fixed_token_stays_on_this_machine() {
        for (url, allowed) in [
            (Some("http://127.0.0.1:1"), true),
            (Some("https://proxy.example"), false),
            (None, false),
        ] {
            let options = AzureOptions {
                access_token: Some(SecretSource::value("t")),
                endpoint_url: url.map(str::to_owned),
                ..options()
            };
            let environment = Arc::new(Environment::new(&options));
            let credentials = Credentials::new(&options, environment, Variables::default());
            let token = credentials.fixed(&SecretSource::value("t")).await;
            assert_eq!(token.is_ok(), allowed, "{url:?}");
        }
    }
}
