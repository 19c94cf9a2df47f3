//! What one configured Google Cloud section says.

use std::path::PathBuf;

/// One section under `providers: gcp:`. Holds no secret: keys are in the
/// credentials file.
#[derive(Debug, Clone)]
pub struct GcpOptions {
    /// The section's name, and the `account_name` of configured projects.
    pub name: String,
    /// Projects to poll, by id.
    pub projects: Vec<String>,
    /// Number of an organization whose projects are polled too.
    pub organization: Option<String>,
    /// Number of a folder whose projects, at any depth, are polled too.
    pub folder: Option<String>,
    /// Projects never to poll, by id.
    pub exclude_projects: Vec<String>,
    /// Regions never to poll.
    pub exclude_regions: Vec<String>,
    /// Credentials file; `None` for application default credentials.
    pub credentials_file: Option<PathBuf>,
    /// Service account to act as, by its e-mail address.
    pub impersonate_service_account: Option<String>,
    /// Whether no credentials are sent, for a simulated cloud.
    pub anonymous: bool,
    /// One base URL for all services.
    pub endpoint_url: Option<String>,
    /// Label keys that name the owner, the first with a value wins.
    pub owner_tags: Vec<String>,
    /// Further label keys to keep on instances.
    pub keep_tags: Vec<String>,
}

impl GcpOptions {
    /// Defaults of every key: application default credentials, and every
    /// project they can see.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            projects: Vec::new(),
            organization: None,
            folder: None,
            exclude_projects: Vec::new(),
            exclude_regions: Vec::new(),
            credentials_file: None,
            impersonate_service_account: None,
            anonymous: false,
            endpoint_url: None,
            owner_tags: Vec::new(),
            keep_tags: Vec::new(),
        }
    }
}
