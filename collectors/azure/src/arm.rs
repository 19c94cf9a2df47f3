//! The only way to a call of Azure Resource Manager.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use gpuwatch_collector_core::{Call, CollectError, Context, lock, read_rows};
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
}

impl Arm {
    pub(crate) fn new(options: &AzureOptions, variables: Variables) -> Self {
        let environment = Arc::new(Environment::new(options));
        Self {
            credentials: Credentials::new(options, Arc::clone(&environment), variables),
            environment,
            versions: Mutex::default(),
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
                None => self.get_versioned(cx, listing, origin, path).await?,
            };
            let page: Page<T> = answer.json(listing.call)?;
            Ok((vec![page.value], page.next_link))
        };
        let pages: Vec<Rows<T>> = read_rows(listing.call, fetch).await?;
        cx.skip("malformed", pages.iter().map(|page| page.bad).sum());
        Ok(pages.into_iter().flat_map(|page| page.good).collect())
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
        let origin = self.environment.manager()?;
        self.get_versioned(cx, listing, &origin, path).await?.json(listing.call)
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
        let origin = self.environment.manager()?;
        let mut request = Request::new(Method::POST, origin.url(&self.versioned(listing, path))?)
            .header(header::CONTENT_TYPE, "application/json")?;
        request.body = body.to_string().into();
        self.exchange(cx, listing.call, &origin, request)
            .await?
            .json(listing.call)
    }

    async fn get_versioned(
        &self,
        cx: &Context,
        listing: Listing,
        origin: &Origin,
        path: &str,
    ) -> Result<Answer, CollectError> {
        loop {
            let request = get(origin.url(&self.versioned(listing, path))?);
            match self.exchange(cx, listing.call, origin, request).await {
                Err(error) if errors::is_unknown_version(&error) && self.try_older(listing) => {
                    tracing::info!(
                        operation = listing.call.operation,
                        "asking for an older version of the API"
                    );
                }
                result => return result,
            }
        }
    }

    fn versioned(&self, listing: Listing, path: &str) -> String {
        let at = lock(&self.versions).get(&listing.call).copied().unwrap_or_default();
        let version = listing
            .versions
            .get(at)
            .or(listing.versions.last())
            .copied()
            .unwrap_or_default();
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("{path}{sign}api-version={version}")
    }

    /// Goes on to the next older version; false when there is none.
    fn try_older(&self, listing: Listing) -> bool {
        let mut versions = lock(&self.versions);
        let at = versions.entry(listing.call).or_default();
        *at += 1;
        *at < listing.versions.len()
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
        cx.call(call, || async {
            let answer = http.send(call, origin, request.clone()).await?;
            if !answer.is_success() {
                return Err(errors::classify(call, &answer, cx.now()));
            }
            // Read here, so that a garbled answer is asked for again.
            answer.json::<serde::de::IgnoredAny>(call)?;
            Ok(answer)
        })
        .await
    }
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
