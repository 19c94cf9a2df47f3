//! What a telemetry server is and how it is asked.

use std::{path::PathBuf, time::Duration};

use gpuwatch_collector_rest::SecretSource;
use gpuwatch_inventory::Text;

/// How gpuwatch identifies itself to a server.
#[derive(Debug, Clone, Default)]
pub enum Authentication {
    /// Not at all.
    #[default]
    None,
    /// HTTP basic authentication.
    Basic {
        /// The user.
        username: String,
        /// The password; none is an empty one.
        password: Option<SecretSource>,
    },
    /// A bearer token; a file is read for every round, because tokens of
    /// service accounts are replaced every hour.
    Bearer(SecretSource),
}

/// Transport security of a client.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Authorities to trust instead of the system's, in PEM form.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate and key, in PEM form.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Accept any certificate.
    pub insecure_skip_verify: bool,
}

/// One server.
#[derive(Debug, Clone)]
pub struct TelemetryOptions {
    /// The configured section's name.
    pub name: Text,
    /// Base URL; `/api/v1/query` comes after it.
    pub url: String,
    /// Authentication.
    pub authentication: Authentication,
    /// Further headers, such as a tenant's.
    pub headers: Vec<(String, SecretSource)>,
    /// Transport security.
    pub tls: Tls,
    /// A request is given up after this time.
    pub timeout: Duration,
    /// Label matchers added to every selector, e.g. `cluster="prod"`.
    pub matchers: Vec<String>,
    /// Labels that hold the cloud's instance id, strongest first.
    pub instance_id_labels: Vec<String>,
    /// Time from start to start of rounds.
    pub interval: Duration,
    /// Series that one query may bring; more are asked for in parts.
    pub series_per_query: usize,
}

impl TelemetryOptions {
    /// Defaults for a server.
    #[must_use]
    pub fn new(name: &str, url: &str) -> Self {
        Self {
            name: name.into(),
            url: url.to_owned(),
            authentication: Authentication::None,
            headers: Vec::new(),
            tls: Tls::default(),
            timeout: Duration::from_secs(30),
            matchers: Vec::new(),
            instance_id_labels: ["instance_id", "cloud_instance_id", "ec2_instance_id"]
                .map(str::to_owned)
                .to_vec(),
            interval: Duration::from_mins(5),
            series_per_query: 10_000,
        }
    }
}
