//! One section of `providers.gcp`.

use std::{fmt, path::PathBuf, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HttpUrl, Name,
    check::Check,
    error::Invalid,
    providers::regions::check_excluded_regions,
    values::scalar_type,
    yaml::{Checks, Spot},
};

/// A set of Google Cloud projects that one set of credentials reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GcpSection {
    /// The name shown to people.
    pub name: Name,
    /// Projects to poll, by id.
    #[serde(default)]
    pub projects: Vec<String>,
    /// Discover the projects of this organization (its number).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// Discover the projects below this folder (its number).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Projects to leave out, by id.
    #[serde(default)]
    pub exclude_projects: Vec<String>,
    /// Regions to leave out.
    #[serde(default)]
    pub exclude_regions: Vec<String>,
    /// A credentials file: service account key or workload identity federation.
    /// Application default credentials unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
    /// The service account to act as, by its e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonate_service_account: Option<String>,
    /// Send no credentials at all; only with `endpoint_url`.
    #[serde(default)]
    pub anonymous: bool,
    /// One base URL for every service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<HttpUrl>,
    /// The BigQuery table of the billing export: `project.dataset.table`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_export: Option<BigQueryTable>,
}

/// A table of BigQuery, `project.dataset.table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BigQueryTable {
    project: String,
    dataset: String,
    table: String,
}

impl BigQueryTable {
    /// The project id.
    #[must_use]
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }
}

impl FromStr for BigQueryTable {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = || Invalid::new("not a BigQuery table", "write project.dataset.table");
        // Ids of old projects hold a domain, `example.com:project`, so the dots count from the right.
        let mut parts = text.trim().rsplitn(3, '.');
        let (table, dataset, project) = (
            parts.next().ok_or_else(bad)?,
            parts.next().ok_or_else(bad)?,
            parts.next().ok_or_else(bad)?,
        );
        let is_word =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        if !is_word(table) || !is_word(dataset) || !is_project(project) {
            return Err(bad());
        }
        Ok(Self {
            project: project.to_owned(),
            dataset: dataset.to_owned(),
            table: table.to_owned(),
        })
    }
}

impl fmt::Display for BigQueryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.project, self.dataset, self.table)
    }
}

scalar_type!(BigQueryTable, pattern: r"^\s*[^\s]+\.[^\s.]+\.[^\s.]+\s*$", about: "A BigQuery table: project.dataset.table.");

/// Letters, digits and hyphens, after a domain in old projects. Lengths are
/// left to the cloud.
fn is_project(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-:.".contains(c))
}

/// Accepts `123`, or `organizations/123` as the cloud's own tools print it.
fn number_of(text: &str, prefix: &str) -> Option<String> {
    let number = text.strip_prefix(prefix).unwrap_or(text);
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then(|| number.to_owned())
}

impl Check for GcpSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        for (key, projects) in [
            ("projects", &self.projects),
            ("exclude_projects", &self.exclude_projects),
        ] {
            let list = spot.key(key);
            checks.unique(&list, projects);
            for (index, project) in projects.iter().enumerate() {
                if !is_project(project) {
                    let fix = "write the id (lower case), not the name or number";
                    checks.bad_value(&list.item(index), "not a project id", fix);
                }
            }
        }
        check_excluded_regions(&mut self.exclude_regions, spot, checks);
        if let Some(account) = &self.impersonate_service_account {
            let is_address = account.split_once('@').is_some_and(|(name, host)| {
                !name.is_empty() && host.contains('.') && !account.contains(char::is_whitespace)
            });
            if !is_address {
                let fix = "write name@project.iam.gserviceaccount.com";
                checks.bad_value(&spot.key("impersonate_service_account"), "not a service account", fix);
            }
        }
        for (key, prefix, value) in [
            ("organization", "organizations/", &mut self.organization),
            ("folder", "folders/", &mut self.folder),
        ] {
            let Some(text) = value else { continue };
            match number_of(text.trim(), prefix) {
                Some(number) => *text = number,
                None => checks.bad_value(
                    &spot.key(key),
                    &format!("not the number of the {key}"),
                    "write its digits",
                ),
            }
        }
        checks.file(&spot.key("credentials_file"), self.credentials_file.as_mut());
        if self.anonymous {
            let anonymous = spot.key("anonymous");
            if !spot.key("endpoint_url").is_given() {
                let fix = "set endpoint_url, or remove the key: Google itself wants credentials";
                checks.problem(&anonymous, "only allowed with endpoint_url", fix);
            }
            for key in ["credentials_file", "impersonate_service_account"] {
                if spot.key(key).is_given() {
                    let message = format!("anonymous and {key} are both given");
                    checks.problem(&anonymous, message, "keep one of the two");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_taken_apart_from_the_right() {
        let table: BigQueryTable = "example.com:p-1.billing.gcp_billing_export_resource_v1_0A"
            .parse()
            .unwrap();
        assert_eq!((table.project(), table.dataset()), ("example.com:p-1", "billing"));
        for bad in ["", "a", "a.b", "a..c", ".b.c", "A.b.c", "a.b.c d"] {
            assert!(bad.parse::<BigQueryTable>().is_err(), "{bad}");
        }
    }
}
