//! Which call a request is.

use http::Method;

use crate::world::region_of;

/// The services that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Compute,
    Tpu,
    ResourceManager,
    /// Token endpoint of service accounts and users.
    OAuth,
    /// Token exchange for identities of other providers.
    Sts,
    IamCredentials,
    /// The metadata server of a machine.
    Metadata,
}

impl Service {
    /// The word in fault rules and the log of calls.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Tpu => "tpu",
            Self::ResourceManager => "resourcemanager",
            Self::OAuth => "oauth2",
            Self::Sts => "sts",
            Self::IamCredentials => "iamcredentials",
            Self::Metadata => "metadata",
        }
    }

    /// The name by which the service is switched on.
    pub(crate) const fn host(self) -> &'static str {
        match self {
            Self::Compute => "compute.googleapis.com",
            Self::Tpu => "tpu.googleapis.com",
            Self::ResourceManager => "cloudresourcemanager.googleapis.com",
            Self::OAuth => "oauth2.googleapis.com",
            Self::Sts => "sts.googleapis.com",
            Self::IamCredentials => "iamcredentials.googleapis.com",
            Self::Metadata => "metadata.google.internal",
        }
    }

    /// The name in messages for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Compute => "Compute Engine API",
            Self::Tpu => "Cloud TPU API",
            Self::ResourceManager => "Cloud Resource Manager API",
            Self::OAuth => "Google OAuth2 API",
            Self::Sts => "Security Token Service API",
            Self::IamCredentials => "IAM Service Account Credentials API",
            Self::Metadata => "metadata server",
        }
    }

    /// OAuth scopes of which a token needs one; none for calls without a
    /// bearer token.
    pub(crate) const fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::Compute => &[
                "https://www.googleapis.com/auth/cloud-platform",
                "https://www.googleapis.com/auth/compute",
                "https://www.googleapis.com/auth/compute.readonly",
            ],
            Self::Tpu => &["https://www.googleapis.com/auth/cloud-platform"],
            Self::ResourceManager => &[
                "https://www.googleapis.com/auth/cloud-platform",
                "https://www.googleapis.com/auth/cloud-platform.read-only",
            ],
            Self::IamCredentials => &[
                "https://www.googleapis.com/auth/cloud-platform",
                "https://www.googleapis.com/auth/iam",
            ],
            Self::OAuth | Self::Sts | Self::Metadata => &[],
        }
    }
}

/// A call: what is asked for, of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) service: Service,
    /// The method as the service's own documents spell it.
    pub(crate) operation: &'static str,
    /// The permission it needs.
    pub(crate) permission: &'static str,
    /// Project, service account or path of the metadata server.
    pub(crate) subject: String,
    /// Zone or region; `-` for all of them.
    pub(crate) place: String,
}

/// Method, path after the project, operation and permission. `*` is a place.
const COMPUTE: &[(&str, &str, &str)] = &[
    (
        "aggregated/instances",
        "instances.aggregatedList",
        "compute.instances.list",
    ),
    (
        "aggregated/machineTypes",
        "machineTypes.aggregatedList",
        "compute.machineTypes.list",
    ),
    (
        "aggregated/acceleratorTypes",
        "acceleratorTypes.aggregatedList",
        "compute.acceleratorTypes.list",
    ),
    (
        "aggregated/reservations",
        "reservations.aggregatedList",
        "compute.reservations.list",
    ),
    (
        "aggregated/futureReservations",
        "futureReservations.aggregatedList",
        "compute.futureReservations.list",
    ),
    (
        "aggregated/commitments",
        "regionCommitments.aggregatedList",
        "compute.commitments.list",
    ),
    ("regions", "regions.list", "compute.regions.list"),
    ("zones", "zones.list", "compute.zones.list"),
    ("zones/*/instances", "instances.list", "compute.instances.list"),
    ("zones/*/machineTypes", "machineTypes.list", "compute.machineTypes.list"),
    ("zones/*/reservations", "reservations.list", "compute.reservations.list"),
    (
        "regions/*/commitments",
        "regionCommitments.list",
        "compute.commitments.list",
    ),
    ("", "projects.get", "compute.projects.get"),
];

const TPU: &[(&str, &str, &str)] = &[
    ("locations", "locations.list", "tpu.locations.list"),
    ("locations/*/nodes", "nodes.list", "tpu.nodes.list"),
];

const RESOURCE_MANAGER: &[(&str, &str, &str)] = &[
    ("projects", "projects.list", "resourcemanager.projects.list"),
    ("projects:search", "projects.search", "resourcemanager.projects.get"),
    ("folders", "folders.list", "resourcemanager.folders.list"),
    ("folders:search", "folders.search", "resourcemanager.folders.get"),
    (
        "organizations:search",
        "organizations.search",
        "resourcemanager.organizations.get",
    ),
];

/// Begins of the paths that only this cloud has.
const PREFIXES: &[&str] = &[
    "/compute/v1/projects/",
    "/v2/projects/",
    "/v3/projects",
    "/v3/folders",
    "/v3/organizations",
    "/v1/projects/-/serviceAccounts/",
    "/computeMetadata/",
];

/// Whether a path is one of this cloud.
pub(crate) fn is_ours(method: &Method, path: &str) -> bool {
    let endpoint = method == Method::POST && matches!(path, "/token" | "/v1/token");
    endpoint || PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

impl Route {
    /// The call behind a method and path; `None` for one that is not
    /// simulated.
    pub(crate) fn parse(method: &Method, path: &str) -> Option<Self> {
        if method == Method::POST {
            return Self::parse_post(path);
        }
        if method != Method::GET {
            return None;
        }
        if let Some(rest) = path.strip_prefix("/computeMetadata/") {
            return Some(Self::of(Service::Metadata, "get", "", rest, ""));
        }
        if let Some(rest) = path.strip_prefix("/compute/v1/projects/") {
            return Self::of_project(Service::Compute, COMPUTE, rest);
        }
        if let Some(rest) = path.strip_prefix("/v2/projects/") {
            return Self::of_project(Service::Tpu, TPU, rest);
        }
        let rest = path.strip_prefix("/v3/")?;
        let listed = RESOURCE_MANAGER.iter().find(|(path, ..)| *path == rest);
        if let Some((_, operation, permission)) = listed {
            return Some(Self::of(Service::ResourceManager, operation, permission, "", ""));
        }
        let project = rest.strip_prefix("projects/").filter(|id| !id.contains('/'))?;
        let permission = "resourcemanager.projects.get";
        Some(Self::of(
            Service::ResourceManager,
            "projects.get",
            permission,
            project,
            "",
        ))
    }

    fn parse_post(path: &str) -> Option<Self> {
        match path {
            "/token" => return Some(Self::of(Service::OAuth, "token", "", "", "")),
            "/v1/token" => return Some(Self::of(Service::Sts, "token", "", "", "")),
            _ => {}
        }
        let account = path.strip_prefix("/v1/projects/-/serviceAccounts/")?;
        let account = account.strip_suffix(":generateAccessToken")?;
        let permission = "iam.serviceAccounts.getAccessToken";
        Some(Self::of(
            Service::IamCredentials,
            "generateAccessToken",
            permission,
            account,
            "",
        ))
    }

    fn of_project(service: Service, table: &[(&str, &'static str, &'static str)], rest: &str) -> Option<Self> {
        let (project, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let mut found = table.iter().filter_map(|(pattern, operation, permission)| {
            let place = matches(pattern, rest)?;
            Some(Self::of(service, operation, permission, project, place))
        });
        found.next().filter(|_| !project.is_empty())
    }

    fn of(service: Service, operation: &'static str, permission: &'static str, subject: &str, place: &str) -> Self {
        Self {
            service,
            operation,
            permission,
            subject: percent_decoded(subject),
            place: place.to_owned(),
        }
    }

    /// The region of the call; empty when it is about all of them.
    pub(crate) fn region(&self) -> &str {
        match self.operation {
            _ if self.place == "-" => "",
            "regionCommitments.list" => &self.place,
            _ => region_of(&self.place),
        }
    }
}

/// What `*` stands for; empty where the pattern has none.
fn matches<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('*') else {
        return (pattern == path).then_some("");
    };
    let place = path.strip_prefix(before)?.strip_suffix(after)?;
    (!place.is_empty() && !place.contains('/')).then_some(place)
}

/// Clients may escape the `@` of an account and the `:` of an old project id.
fn percent_decoded(text: &str) -> String {
    let pair = format!("x={}", text.replace('+', "%2B"));
    let mut decoded = url::form_urlencoded::parse(pair.as_bytes());
    decoded
        .next()
        .map_or_else(|| text.to_owned(), |(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn get(path: &str) -> Option<(Service, &'static str, String, String)> {
        let route = Route::parse(&Method::GET, path)?;
        Some((route.service, route.operation, route.subject, route.place))
    }

    #[test]
    fn paths_name_their_calls() {
        for (path, service, operation, subject, place) in [
            (
                "/compute/v1/projects/p/aggregated/instances",
                Service::Compute,
                "instances.aggregatedList",
                "p",
                "",
            ),
            (
                "/compute/v1/projects/p/zones/us-central1-a/instances",
                Service::Compute,
                "instances.list",
                "p",
                "us-central1-a",
            ),
            (
                "/compute/v1/projects/example.com%3Ap",
                Service::Compute,
                "projects.get",
                "example.com:p",
                "",
            ),
            ("/v2/projects/p/locations/-/nodes", Service::Tpu, "nodes.list", "p", "-"),
            ("/v3/projects", Service::ResourceManager, "projects.list", "", ""),
            (
                "/v3/projects:search",
                Service::ResourceManager,
                "projects.search",
                "",
                "",
            ),
            ("/v3/projects/p", Service::ResourceManager, "projects.get", "p", ""),
        ] {
            let expected = (service, operation, subject.to_owned(), place.to_owned());
            assert_eq!(get(path), Some(expected), "{path}");
        }
        for path in [
            "/compute/v1/projects//regions",
            "/compute/v1/projects/p/aggregated/disks",
            "/compute/v1/projects/p/zones//instances",
            "/v2/projects/p/locations/a/b/nodes",
            "/v3/projects/p/more",
            "/v3/folders/1/x",
        ] {
            assert_eq!(get(path), None, "{path}");
        }
    }

    #[test]
    fn only_paths_of_this_cloud_are_claimed() {
        let ours = |method, path| is_ours(&method, path);
        assert!(ours(Method::POST, "/token") && ours(Method::POST, "/v1/token"));
        assert!(ours(Method::GET, "/computeMetadata/v1/instance/zone"));
        for (method, path) in [
            (Method::POST, "/"),
            (Method::GET, "/token"),
            (Method::GET, "/subscriptions"),
            (Method::GET, "/latest/meta-data/"),
            (Method::POST, "/tenant/oauth2/v2.0/token"),
            (Method::GET, "/metadata/identity/oauth2/token"),
        ] {
            assert!(!ours(method, path), "{path}");
        }
    }

    #[test]
    fn account_of_an_impersonation_may_be_escaped() {
        let path = "/v1/projects/-/serviceAccounts/a%40p.iam.gserviceaccount.com:generateAccessToken";
        let route = Route::parse(&Method::POST, path).unwrap();
        assert_eq!(route.subject, "a@p.iam.gserviceaccount.com");
        assert!(Route::parse(&Method::GET, path).is_none());
    }
}
