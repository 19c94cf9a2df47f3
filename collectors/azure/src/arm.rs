//! The only way to a call of Azure Resource Manager.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason, lock, read_all};
use gpuwatch_collector_rest::{Answer, ExposeSecret as _, Origin, Request, Rows};
use http::{Method, header};
use serde::{Deserialize, de::DeserializeOwned};
use url::Url;

use crate::{
    AzureOptions,
    credentials::{Credentials, Variables},
    environment::Environment,
    errors,
};

/// A listing: where it is, and the versions of the API to ask for, the newest
/// first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    pub call: Call,
    pub versions: &'static [&'static str],
}

/// A page of most listings.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default)]
    value: Rows<T>,
    #[serde(rename = "nextLink", default)]
    next_link: Option<String>,
}

/// Calls on behalf of one section.
pub(crate) struct Arm {
    environment: Arc<Environment>,
    credentials: Credentials,
    /// Position among a call's versions that this cloud is known to have.
    versions: Mutex<HashMap<Call, usize>>,
    /// Monotonic time until which a service's quota is used up.
    exhausted: Mutex<HashMap<&'static str, Duration>>,
}

impl Arm {
    pub(crate) fn new(options: &AzureOptions, variables: Variables) -> Self {
        let environment = Arc::new(Environment::new(options));
        Self {
            credentials: Credentials::new(options, Arc::clone(&environment), variables),
            environment,
            versions: Mutex::default(),
            exhausted: Mutex::default(),
        }
    }

    /// Every row of a listing. `path` is encoded and may have a query.
    ///
    /// # Errors
    /// When a page fails or leads to another host.
    pub(crate) async fn list<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        listing: Listing,
        path: &str,
    ) -> Result<Vec<T>, CollectError> {
        let origin = &self.environment.manager()?;
        let fetch = |link: Option<String>| async move {
            let answer = match link {
                Some(link) => {
                    self.exchange(cx, listing.call, origin, get(origin.link(&link)?))
                        .await?
                }
                None => {
                    self.versioned(listing, |version| {
                        let request = origin.url(&with_version(path, version)).map(get);
                        async move { self.exchange(cx, listing.call, origin, request?).await }
                    })
                    .await?
                }
            };
            let page: Page<T> = answer.json(listing.call)?;
            Ok((page.value, page.next_link))
        };
        let begin = || (Vec::new(), 0);
        let (rows, bad) = read_all(listing.call, begin, fetch, |(rows, bad), page: Rows<T>| {
            let records = page.total();
            *bad += page.bad;
            rows.extend(page.good);
            Progress::all_new(records)
        })
        .await?;
        cx.skip("malformed", bad);
        Ok(rows)
    }

    /// One resource.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn get<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        listing: Listing,
        path: &str,
    ) -> Result<T, CollectError> {
        let origin = &self.environment.manager()?;
        self.versioned(listing, |version| {
            let request = origin.url(&with_version(path, version)).map(get);
            async move { self.exchange(cx, listing.call, origin, request?).await }
        })
        .await?
        .json(listing.call)
    }

    /// A request with a body of JSON.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn post<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        listing: Listing,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<T, CollectError> {
        let origin = &self.environment.manager()?;
        self.versioned(listing, |version| {
            let request = origin.url(&with_version(path, version)).and_then(|url| {
                let mut request = Request::new(Method::POST, url).header(header::CONTENT_TYPE, "application/json")?;
                request.body = body.to_string().into();
                Ok(request)
            });
            async move { self.exchange(cx, listing.call, origin, request?).await }
        })
        .await?
        .json(listing.call)
    }

    /// Asks in the newest version of the API that this cloud has. A version
    /// is given up for good only once an older one has worked.
    async fn versioned<F, Fut>(&self, listing: Listing, mut ask: F) -> Result<Answer, CollectError>
    where
        F: FnMut(&'static str) -> Fut,
        Fut: Future<Output = Result<Answer, CollectError>>,
    {
        let known = lock(&self.versions).get(&listing.call).copied().unwrap_or_default();
        let mut refusal = None;
        for (at, version) in listing.versions.iter().enumerate().skip(known) {
            match ask(version).await {
                Err(error) if errors::is_unknown_version(&error) => {
                    tracing::info!(
                        operation = listing.call.operation,
                        version,
                        error = %error,
                        "this cloud does not know the version of the API"
                    );
                    refusal.get_or_insert(error);
                }
                Ok(answer) => {
                    lock(&self.versions).insert(listing.call, at);
                    return Ok(answer);
                }
                result => return result,
            }
        }
        // Of the newest version: what an older one lacks says less.
        Err(refusal.unwrap_or_else(|| {
            CollectError::new(
                Reason::Other,
                format!("{}: no version of the API to ask for", listing.call.title()),
            )
        }))
    }

    /// One answer. A token that is refused is replaced once.
    async fn exchange(
        &self,
        cx: &Context,
        call: Call,
        origin: &Origin,
        request: Request,
    ) -> Result<Answer, CollectError> {
        let token = self.credentials.token(cx).await?;
        match self
            .send(cx, call, origin, &request, token.secret.expose_secret())
            .await
        {
            Err(error) if errors::is_refused_token(&error) => {
                self.credentials.forget(&token).await;
                let token = self.credentials.token(cx).await?;
                self.send(cx, call, origin, &request, token.secret.expose_secret())
                    .await
            }
            result => result,
        }
    }

    async fn send(
        &self,
        cx: &Context,
        call: Call,
        origin: &Origin,
        request: &Request,
        token: &str,
    ) -> Result<Answer, CollectError> {
        let http = self.credentials.http()?;
        let request = request
            .clone()
            .header(header::ACCEPT, "application/json")?
            .secret_header(header::AUTHORIZATION, &format!("Bearer {token}"))?;
        let until = lock(&self.exhausted).get(call.service).copied().unwrap_or_default();
        cx.pause(until.saturating_sub(cx.monotonic())).await;
        cx.call(call, || async {
            let answer = http.send(call, origin, request.clone()).await?;
            if !answer.is_success() {
                return Err(errors::classify(call, &answer, cx.now()));
            }
            // Read here, so that a garbled answer is asked for again.
            answer.json::<serde::de::IgnoredAny>(call)?;
            if let Some(wait) = errors::quota_wait(&answer) {
                lock(&self.exhausted).insert(call.service, cx.monotonic().saturating_add(wait));
            }
            Ok(answer)
        })
        .await
    }
}

fn with_version(path: &str, version: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}api-version={version}")
}

fn get(url: Url) -> Request {
    Request::new(Method::GET, url)
}

/// A text that is part of a path: ids from answers are not trusted.
pub(crate) fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// An ARM id as a path: as it came, with blanks and the like encoded.
pub(crate) fn path_of(id: &str) -> String {
    let mut path = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/()".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing into a `String` cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}
