//! Where hourly and daily roll-ups are kept.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HttpUrl, Period, Secret,
    check::Check,
    remote::{BasicAuth, ClientTls, Remote, RemoteKeys},
    yaml::{Checks, Spot},
};

/// The history: an embedded database, or a Prometheus-compatible server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySection {
    /// The database's file; `gpuwatch.db` unless `prometheus_url` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How long daily figures are kept in the database.
    pub retention: Period,
    /// How long hourly figures are kept in the database.
    pub hourly_retention: Period,
    /// Base URL of a server that keeps the history instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus_url: Option<HttpUrl>,
    /// User and password of that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// A bearer token for that server.
    #[serde(skip_serializing_if = "Secret::is_not_written")]
    pub bearer_token: Option<Secret>,
    /// A file that holds the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<PathBuf>,
    /// Further headers, such as a tenant's. Treated as secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// Further headers whose values are in files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header_files: BTreeMap<String, PathBuf>,
    #[serde(skip)]
    all_headers: BTreeMap<String, Secret>,
    /// Transport security.
    #[serde(skip_serializing_if = "ClientTls::is_default")]
    pub tls: ClientTls,
}

/// Where the history is.
#[derive(Debug, Clone, Copy)]
pub enum HistoryStore<'a> {
    /// In this database file.
    Database(&'a Path),
    /// On this server.
    Prometheus(Remote<'a>),
}

const DEFAULT_PATH: &str = "gpuwatch.db";

/// The keys that only make sense with a server.
const SERVER_KEYS: [&str; 6] = [
    "basic_auth",
    "bearer_token",
    "bearer_token_file",
    "headers",
    "header_files",
    "tls",
];

impl Default for HistorySection {
    fn default() -> Self {
        Self {
            path: None,
            retention: Period::days(400),
            hourly_retention: Period::days(14),
            prometheus_url: None,
            basic_auth: None,
            bearer_token: None,
            bearer_token_file: None,
            headers: BTreeMap::new(),
            header_files: BTreeMap::new(),
            all_headers: BTreeMap::new(),
            tls: ClientTls::default(),
        }
    }
}

impl HistorySection {
    /// Where the history is.
    #[must_use]
    pub fn store(&self) -> HistoryStore<'_> {
        match &self.prometheus_url {
            Some(url) => HistoryStore::Prometheus(Remote {
                url,
                basic_auth: self.basic_auth.as_ref(),
                bearer_token: self.bearer_token.as_ref(),
                headers: &self.all_headers,
                tls: &self.tls,
            }),
            None => HistoryStore::Database(self.path.as_deref().unwrap_or(Path::new(DEFAULT_PATH))),
        }
    }
}

impl Check for HistorySection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.exclusive(spot, "path", "prometheus_url");
        if spot.key("prometheus_url").is_given() {
            RemoteKeys {
                basic_auth: &mut self.basic_auth,
                bearer_token: &mut self.bearer_token,
                bearer_token_file: &mut self.bearer_token_file,
                headers: &mut self.headers,
                header_files: &mut self.header_files,
                all_headers: &mut self.all_headers,
                tls: &mut self.tls,
            }
            .check(spot, checks);
        } else {
            checks.resolve(&spot.key("path"), self.path.get_or_insert_with(|| DEFAULT_PATH.into()));
            for key in SERVER_KEYS {
                let spot = spot.key(key);
                if spot.is_given() {
                    checks.problem(
                        &spot,
                        "given without prometheus_url",
                        "add prometheus_url, or remove the key",
                    );
                }
            }
        }
        if self.hourly_retention > self.retention {
            let fix = format!("write at most {}", self.retention);
            checks.bad_value(&spot.key("hourly_retention"), "longer than retention", fix);
        }
    }
}
