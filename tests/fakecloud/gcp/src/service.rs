//! From an HTTP request to an authenticated call and back.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use jiff::Timestamp;
use serde_json::Value;

use crate::error::ApiError;
use crate::params::Params;
use crate::route::{Route, Service, is_ours};
use crate::world::{Inner, ProjectData, ProjectState, World};
use crate::{auth, compute, iam, metadata, oauth, resource_manager, tpu};

/// The simulated Google Cloud behind the shared server.
pub struct Gcp {
    world: World,
}

impl Gcp {
    /// Serves this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world }
    }
}

impl Cloud for Gcp {
    fn recognises(&self, request: &Incoming) -> bool {
        is_ours(&request.method, request.uri.path())
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        let route = Route::parse(&request.method, request.uri.path());
        let params = Params::parse(request.uri.query());
        let admission = admit(&self.world, route, &request);
        let route = admission.as_ref().map_or_else(|refused| refused.route.as_ref(), Some);
        let service = route.map_or(Service::Compute, |route| route.service);
        let key = CallKey {
            provider: "gcp",
            service: service.as_str().to_owned(),
            operation: route.map_or("unknown", |route| route.operation).to_owned(),
            account: route.map(|route| project_of(&self.world, route)).unwrap_or_default(),
            region: route.map(|route| route.region().to_owned()).unwrap_or_default(),
            page_token: params.get("pageToken").map(str::to_owned),
        };
        Box::new(GcpExchange {
            world: self.world.clone(),
            service,
            key,
            params,
            admission,
            body: request.body,
        })
    }
}

/// The project id that a call is about, also where it gives the number.
fn project_of(world: &World, route: &Route) -> String {
    match route.service {
        Service::Compute | Service::Tpu | Service::ResourceManager => {
            let inner = world.read();
            let known = inner.project(&route.subject).map(|project| project.id.clone());
            known.unwrap_or_else(|| route.subject.clone())
        }
        _ => String::new(),
    }
}

/// A call that is not let in.
struct Refused {
    route: Option<Route>,
    error: ApiError,
}

/// Lets in a call that exists, from somebody who may call at all.
fn admit(world: &World, route: Option<Route>, request: &Incoming) -> Result<Route, Box<Refused>> {
    let Some(route) = route else {
        let path = request.uri.path();
        let error = ApiError::not_found(format!("The requested URL {path} was not found on this server."));
        return Err(Box::new(Refused { route: None, error }));
    };
    match auth::check(world, route.service, request, Timestamp::now()) {
        Ok(()) => Ok(route),
        Err(error) => Err(Box::new(Refused {
            route: Some(route),
            error,
        })),
    }
}

/// One call that was let in.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a World,
    pub(crate) route: &'a Route,
    pub(crate) params: &'a Params,
    pub(crate) body: &'a Bytes,
    pub(crate) alteration: Option<FaultKind>,
    pub(crate) now: Timestamp,
}

impl Call<'_> {
    /// What page tokens are bound to.
    pub(crate) fn token_scope(&self) -> String {
        let route = self.route;
        format!(
            "{} {} {}\n{}",
            route.operation,
            route.subject,
            route.place,
            self.params.without_paging()
        )
    }

    /// Does something with the project of the call, in which the service is
    /// switched on and the caller has the permission.
    pub(crate) fn with_project<T>(
        &self,
        answer: impl FnOnce(&Inner, &ProjectData) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let (service, subject) = (self.route.service, &self.route.subject);
        let inner = self.world.read();
        let Some(project) = inner.project(subject) else {
            return Err(ApiError::no_such_project(service, subject));
        };
        if project.spec.state != ProjectState::Active {
            return Err(ApiError::shut_down(service, &project.number));
        }
        if project.disabled.contains(service.host()) {
            return Err(ApiError::disabled(service, &project.number));
        }
        if inner.identity.denies(&project.id, self.route.permission) {
            let resource = format!("projects/{}", project.id);
            return Err(ApiError::denied(service, &resource, self.route.permission));
        }
        answer(&inner, project)
    }
}

/// What a call answers with.
pub(crate) enum Answer {
    Json(Value),
    Text(String),
}

struct GcpExchange {
    world: World,
    service: Service,
    key: CallKey,
    params: Params,
    admission: Result<Route, Box<Refused>>,
    body: Bytes,
}

impl Exchange for GcpExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        let refused = self.admission.as_ref().err()?;
        Some(refused.error.render(self.service))
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        let Ok(route) = &self.admission else {
            return self.fail(FaultKind::AuthFailure);
        };
        let call = Call {
            world: &self.world,
            route,
            params: &self.params,
            body: &self.body,
            alteration,
            now: Timestamp::now(),
        };
        let answer = match self.service {
            Service::Compute => compute::answer(&call).map(Answer::Json),
            Service::Tpu => tpu::answer(&call).map(Answer::Json),
            Service::ResourceManager => resource_manager::answer(&call).map(Answer::Json),
            Service::OAuth => oauth::token(&call).map(Answer::Json),
            Service::Sts => oauth::exchange(&call).map(Answer::Json),
            Service::IamCredentials => iam::generate_access_token(&call).map(Answer::Json),
            Service::Metadata => metadata::answer(&call),
        };
        match answer {
            Ok(answer) => reply(self.service, answer),
            Err(error) => error.render(self.service),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let (resource, permission, subject) = match &self.admission {
            Ok(route) => (
                resource_of(route, &self.params),
                route.permission,
                route.subject.as_str(),
            ),
            Err(_) => (String::new(), "", ""),
        };
        let consumer = consumer(&self.world, subject);
        ApiError::injected(kind, self.service, &resource, permission, &consumer).render(self.service)
    }
}

/// What a permission is needed on, as refusals name it.
fn resource_of(route: &Route, params: &Params) -> String {
    match route.service {
        Service::IamCredentials => format!("projects/-/serviceAccounts/{}", route.subject),
        Service::ResourceManager if route.subject.is_empty() => params.get("parent").unwrap_or_default().to_owned(),
        _ => format!("projects/{}", route.subject),
    }
}

/// Number of the project whose quota and services a call uses: its own, else
/// the one that the caller's credentials belong to.
fn consumer(world: &World, subject: &str) -> String {
    let inner = world.read();
    let own = inner.project(subject);
    let known = own.or_else(|| inner.projects.values().next());
    known.map(|project| project.number.clone()).unwrap_or_default()
}

fn reply(service: Service, answer: Answer) -> Reply {
    let (content_type, body) = match answer {
        Answer::Json(value) => ("application/json; charset=UTF-8", value.to_string()),
        Answer::Text(text) => ("application/text", text),
    };
    let headers = match service {
        Service::Metadata => vec![("metadata-flavor", "Google".to_owned())],
        _ => Vec::new(),
    };
    Reply {
        status: 200,
        content_type,
        headers,
        body: Bytes::from(body),
        error_code: None,
    }
}
