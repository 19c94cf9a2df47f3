//! Keys of the machine's own role, from the metadata service, and keys from a
//! local credentials service.

use std::time::Duration;

use gpuwatch_collector_core::{Call, CollectError, Context, Reason};
use gpuwatch_collector_rest::{Answer, Http, Origin, Request};
use http::{HeaderName, Method};
use serde::Deserialize;

use super::{Session, TemporaryKeys};
use crate::client::Client;

const SERVICE: &str = "http://100.100.100.200";
const ROLES: &str = "/latest/meta-data/ram/security-credentials/";
const TOKEN: Call = Call::new("metadata", "token", "");
const KEYS: Call = Call::new("metadata", "security-credentials", "");
const URI: Call = Call::new("metadata", "credentials-uri", "");

/// The service is on the machine's own link: it answers at once or is not there.
const PATIENCE: Duration = Duration::from_secs(1);

/// How to ask the service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// Where it is, if not at its usual address.
    pub url: Option<&'a str>,
    /// The role, if it need not be asked for.
    pub role: Option<&'a str>,
    pub disabled: bool,
    /// Never ask without a token.
    pub tokens_only: bool,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(rename = "Code", default)]
    code: String,
    #[serde(flatten)]
    keys: Option<TemporaryKeys>,
}

/// The keys of the machine's role; `None` when there is no metadata service,
/// which is so everywhere but on a machine of the cloud, or no role.
///
/// # Errors
/// When there is a service and a role, and yet no keys.
pub(crate) async fn session(
    cx: &Context,
    client: &Client,
    settings: &Settings<'_>,
) -> Result<Option<Session>, CollectError> {
    if settings.disabled {
        return Ok(None);
    }
    let service = Service {
        cx,
        http: client.http()?,
        origin: Origin::metadata(settings.url.unwrap_or(SERVICE))?,
        tokens_only: settings.tokens_only,
    };
    let token = service.token().await;
    if token.is_none() && settings.tokens_only {
        return Ok(None);
    }
    let role = match settings.role {
        Some(role) => role.to_owned(),
        None => match service.get(ROLES, token.as_deref()).await {
            Ok(answer) => first_line(&answer),
            Err(_) => return Ok(None),
        },
    };
    if !is_role_name(&role) {
        return Ok(None);
    }
    let missing = |why: &str| {
        let message =
            format!("the metadata service has no keys of the role {role}: {why}; is it attached to this machine?");
        CollectError::new(Reason::Credentials, message)
    };
    let answer = service.get(&format!("{ROLES}{role}"), token.as_deref()).await;
    let answer = answer.map_err(|error| missing(&error.message))?;
    let granted: Granted = answer.json(KEYS)?;
    match granted.keys {
        Some(keys) if granted.code == "Success" => Ok(Some(keys.into())),
        _ => Err(missing("it does not say Success")),
    }
}

/// Keys from the service that `ALIBABA_CLOUD_CREDENTIALS_URI` names.
///
/// # Errors
/// When it gives none.
pub(crate) async fn from_uri(cx: &Context, client: &Client, url: &str) -> Result<Session, CollectError> {
    let parsed = url::Url::parse(url)
        .map_err(|_| CollectError::new(Reason::Credentials, "ALIBABA_CLOUD_CREDENTIALS_URI is not a URL"))?;
    let origin = Origin::metadata(&parsed.origin().ascii_serialization())
        .or_else(|_| Origin::new(&parsed.origin().ascii_serialization()))?;
    let http = client.http()?;
    let answer = cx
        .call(URI, || {
            http.send(URI, &origin, Request::new(Method::GET, parsed.clone()))
        })
        .await?;
    if !answer.is_success() {
        return Err(CollectError::new(
            Reason::Credentials,
            format!("ALIBABA_CLOUD_CREDENTIALS_URI answers with status {}", answer.status),
        ));
    }
    let keys: TemporaryKeys = answer.json(URI)?;
    Ok(keys.into())
}

struct Service<'a> {
    cx: &'a Context,
    http: &'a Http,
    origin: Origin,
    tokens_only: bool,
}

impl Service<'_> {
    async fn token(&self) -> Option<String> {
        let request = Request::new(Method::PUT, self.origin.url("/latest/api/token").ok()?)
            .header(
                HeaderName::from_static("x-aliyun-ecs-metadata-token-ttl-seconds"),
                "21600",
            )
            .ok()?;
        let answer = self.send(TOKEN, request).await.ok()?;
        Some(first_line(&answer))
    }

    /// Asks with the token, and without it where that is refused.
    async fn get(&self, path: &str, token: Option<&str>) -> Result<Answer, CollectError> {
        let request = Request::new(Method::GET, self.origin.url(path)?);
        let Some(token) = token else {
            return self.send(KEYS, request).await;
        };
        let name = HeaderName::from_static("x-aliyun-ecs-metadata-token");
        match self.send(KEYS, request.clone().secret_header(name, token)?).await {
            Err(_) if !self.tokens_only => self.send(KEYS, request).await,
            result => result,
        }
    }

    /// One attempt within a second: elsewhere than in the cloud nobody answers.
    /// What is wrong with a role is told by a page for people.
    async fn send(&self, call: Call, request: Request) -> Result<Answer, CollectError> {
        let limit = PATIENCE.min(self.cx.remaining());
        let attempt = || async {
            let sent = self.http.send(call, &self.origin, request.clone());
            let answer = self.cx.timeout(limit, sent).await.unwrap_or_else(|| {
                let message = format!("{} did not answer within {:.1} s", call.title(), limit.as_secs_f64());
                Err(CollectError::new(Reason::Timeout, message))
            });
            let answer = answer.map_err(|error| error.retryable(false))?;
            if !answer.is_success() || answer.is_html() {
                return Err(answer.failure_by_status(call).retryable(false));
            }
            Ok(answer)
        };
        self.cx.call(call, attempt).await
    }
}

fn first_line(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn is_role_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.@+=,".contains(&b))
}
