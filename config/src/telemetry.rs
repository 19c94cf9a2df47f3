//! Servers that hold GPU counters.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HttpUrl, LabelMatcher, Name, Period, Secret,
    check::Check,
    remote::{BasicAuth, ClientTls, Remote, RemoteKeys},
    yaml::{Checks, Spot},
};

/// One Prometheus-compatible server with GPU counters (DCGM and its peers).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySection {
    /// The name shown to people.
    pub name: Name,
    /// Base URL of its HTTP API, without `/api/v1`.
    pub prometheus_url: HttpUrl,
    /// User and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// A bearer token.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub bearer_token: Option<Secret>,
    /// A file that holds the bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<PathBuf>,
    /// Further headers, such as a tenant's. Treated as secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Further headers whose values are in files.
    #[serde(default)]
    pub header_files: BTreeMap<String, PathBuf>,
    #[serde(skip)]
    all_headers: BTreeMap<String, Secret>,
    /// Transport security.
    #[serde(default)]
    pub tls: ClientTls,
    /// A request is given up after this time.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Label matchers added to every query.
    #[serde(rename = "match", default)]
    pub matchers: Vec<LabelMatcher>,
    /// Labels that hold the cloud's instance id, strongest first.
    #[serde(default = "default_instance_id_labels")]
    pub instance_id_labels: Vec<String>,
}

fn default_timeout() -> Period {
    Period::seconds(30)
}

fn default_instance_id_labels() -> Vec<String> {
    ["instance_id", "cloud_instance_id", "ec2_instance_id"]
        .map(str::to_owned)
        .to_vec()
}

impl TelemetrySection {
    /// The server with everything needed to ask it.
    #[must_use]
    pub fn remote(&self) -> Remote<'_> {
        Remote {
            url: &self.prometheus_url,
            basic_auth: self.basic_auth.as_ref(),
            bearer_token: self.bearer_token.as_ref(),
            headers: &self.all_headers,
            tls: &self.tls,
        }
    }
}

impl Check for TelemetrySection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
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
        let labels = spot.key("instance_id_labels");
        checks.unique(&labels, &self.instance_id_labels);
        for (index, label) in self.instance_id_labels.iter().enumerate() {
            if !is_label_name(label) {
                checks.bad_value(
                    &labels.item(index),
                    "not a label name",
                    "write letters, digits and underscores",
                );
            }
        }
    }
}

/// A Prometheus label name: `[a-zA-Z_][a-zA-Z0-9_]*`.
fn is_label_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
