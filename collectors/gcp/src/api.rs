//! The only way to a cloud call: where it goes, as whom, and what came back.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason, lock, read_all};
use gpuwatch_collector_rest::{Http, Origin, Request};
use gpuwatch_inventory::Text;
use http::Method;
use serde::de::DeserializeOwned;

use crate::{GcpOptions, credentials::Credentials, errors};

/// A service, by the host that answers for it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    Compute,
    ResourceManager,
    Tpu,
    IamCredentials,
}

impl Service {
    const fn base(self) -> &'static str {
        match self {
            Self::Compute => "https://compute.googleapis.com",
            Self::ResourceManager => "https://cloudresourcemanager.googleapis.com",
            Self::Tpu => "https://tpu.googleapis.com",
            Self::IamCredentials => "https://iamcredentials.googleapis.com",
        }
    }
}

/// Connections, and the places they may go to.
pub(crate) struct Transport {
    http: Result<Http, CollectError>,
    endpoint_url: Option<String>,
}

impl Transport {
    /// The client.
    ///
    /// # Errors
    /// When TLS could not be set up.
    pub(crate) fn http(&self) -> Result<&Http, CollectError> {
        self.http.as_ref().map_err(Clone::clone)
    }

    /// Where a service is.
    ///
    /// # Errors
    /// When the configured endpoint is no place to send credentials to.
    pub(crate) fn origin(&self, service: Service) -> Result<Origin, CollectError> {
        Origin::new(self.endpoint_url.as_deref().unwrap_or(service.base()))
    }
}

/// What to list or get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource<'a> {
    pub service: Service,
    pub call: Call,
    /// Path below the service's host, already encoded.
    pub path: &'a str,
    /// Query without the page token.
    pub query: &'a [(&'a str, &'a str)],
    /// What error messages name; the project unless given.
    pub about: Option<&'a str>,
}

/// A page of a listing.
pub(crate) trait Page: DeserializeOwned + Send {
    /// Takes the token of the next page out; empty or `None` at the end.
    fn take_next(&mut self) -> Option<String>;
}

/// Calls on behalf of one section.
pub(crate) struct Api {
    transport: Transport,
    credentials: Credentials,
    /// What is wrong with the options as such.
    problem: Option<&'static str>,
    /// Whether partial results can no longer be asked for.
    without_partial_success: AtomicBool,
    /// Projects whose machines are read in small pages.
    small_pages: Mutex<HashSet<Text>>,
}

impl Api {
    pub(crate) fn new(options: &GcpOptions) -> Self {
        let problem = (options.anonymous && options.endpoint_url.is_none())
            .then_some("anonymous is only for an endpoint_url: Google itself wants credentials");
        Self {
            transport: Transport {
                http: Http::new(),
                endpoint_url: options.endpoint_url.clone(),
            },
            credentials: Credentials::new(options),
            problem,
            without_partial_success: AtomicBool::new(false),
            small_pages: Mutex::default(),
        }
    }

    /// Whether partial results can be asked for.
    pub(crate) fn takes_partial_success(&self) -> bool {
        !self.without_partial_success.load(Ordering::Relaxed)
    }

    /// Notes that the endpoint has refused to be asked for partial results.
    pub(crate) fn without_partial_success(&self) {
        if !self.without_partial_success.swap(true, Ordering::Relaxed) {
            tracing::info!("partial results cannot be asked for here");
        }
    }

    /// Whether the lists of a project are read in small pages.
    pub(crate) fn has_small_pages(&self, project: &str) -> bool {
        lock(&self.small_pages).contains(project)
    }

    /// Notes that a page of the largest size is too much in a project.
    pub(crate) fn with_small_pages(&self, project: &str) {
        tracing::info!(account = project, "pages are too large; smaller ones are asked for");
        lock(&self.small_pages).insert(project.into());
    }

    /// Whether there are credentials and a place to send them to.
    ///
    /// # Errors
    /// What is missing, and what to set.
    pub(crate) async fn check(&self, cx: &Context) -> Result<(), CollectError> {
        if let Some(problem) = self.problem {
            return Err(CollectError::new(Reason::Credentials, problem));
        }
        self.transport.http()?;
        self.transport.origin(Service::Compute)?;
        self.credentials.headers(cx, &self.transport).await.map(|_| ())
    }

    /// Reads every page of a listing; see [`read_all`].
    ///
    /// # Errors
    /// Those of a page.
    pub(crate) async fn pages<P: Page, L>(
        &self,
        cx: &Context,
        resource: Resource<'_>,
        begin: impl Fn() -> L,
        take: impl FnMut(&mut L, P) -> Progress,
    ) -> Result<L, CollectError> {
        let fetch = |token: Option<String>| async move {
            let mut page: P = self.get(cx, resource, token.as_deref()).await?;
            let next = page.take_next();
            Ok((page, next))
        };
        // On the heap: the futures around it would be large otherwise.
        Box::pin(read_all(resource.call, begin, fetch, take)).await
    }

    /// One answer that is no listing.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) async fn one<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        resource: Resource<'_>,
    ) -> Result<T, CollectError> {
        self.get(cx, resource, None).await
    }

    /// One answer. Credentials that are refused are renewed once.
    async fn get<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        resource: Resource<'_>,
        token: Option<&str>,
    ) -> Result<T, CollectError> {
        match self.get_once(cx, resource, token).await {
            Err(error) if is_refused_token(&error) && self.credentials.renew(cx).await => {
                self.get_once(cx, resource, token).await
            }
            result => result,
        }
    }

    async fn get_once<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        resource: Resource<'_>,
        token: Option<&str>,
    ) -> Result<T, CollectError> {
        let origin = self.transport.origin(resource.service)?;
        let mut url = origin.url(resource.path)?;
        if !resource.query.is_empty() || token.is_some() {
            let mut query = url.query_pairs_mut();
            query.extend_pairs(resource.query);
            query.extend_pairs(token.map(|token| ("pageToken", token)));
        }
        let mut request = Request::new(Method::GET, url);
        request.headers = self.credentials.headers(cx, &self.transport).await?;
        let http = self.transport.http()?;
        let account = cx.scope().account.id.clone();
        let asked = errors::Asked {
            call: resource.call,
            about: resource.about.unwrap_or(&account),
            with_page_token: token.is_some(),
        };
        cx.call(resource.call, || {
            let (request, origin, asked) = (request.clone(), &origin, &asked);
            async move {
                let answer = http.send(asked.call, origin, request).await?;
                if answer.is_success() {
                    answer.json(asked.call)
                } else {
                    Err(errors::classify(asked, &answer, cx.now()))
                }
            }
        })
        .await
    }
}

/// Whether a call was refused because of its token, and not because there is
/// none to be had.
fn is_refused_token(error: &CollectError) -> bool {
    error.reason == Reason::Credentials && error.code.as_deref().is_some_and(errors::is_token_refusal)
}

/// A project id that can be part of a path: letters, digits, hyphens and, in
/// old projects, a domain. Not a project's number: the cloud takes it too, and the
/// same project would be listed a second time under another name.
///
/// # Errors
/// When it is anything else.
pub(crate) fn project(id: &str) -> Result<&str, CollectError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-:.".contains(&byte);
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number && id.bytes().all(is_plain) && !id.contains("..") {
        return Ok(id);
    }
    Err(CollectError::new(
        Reason::Other,
        format!("{id:?} is not a project id: write the id (lower case), not the name or number"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_project_ids_get_into_a_path() {
        for good in ["ml-prod-1", "example.com:old-project", "3x.example:p"] {
            assert!(project(good).is_ok(), "{good}");
        }
        for bad in ["", "My Project", "a/b", "..", "a?b", "a%2f", "123456789012"] {
            assert!(project(bad).is_err(), "{bad}");
        }
    }
}
