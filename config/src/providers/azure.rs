//! One section of `providers.azure`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HttpUrl, Name, Secret,
    check::Check,
    providers::regions::check_excluded_regions,
    yaml::{Checks, Spot},
};

/// The subscriptions of one Azure tenant that one set of credentials reaches.
/// Without a client secret: workload identity, managed identity or the CLI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AzureSection {
    /// The name shown to people.
    pub name: Name,
    /// The cloud: `public` (default), `china` (21Vianet) or `usgov`.
    #[serde(default)]
    pub cloud: AzureCloud,
    /// The tenant, by id or domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The application, or the user-assigned managed identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The application's secret.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub client_secret: Option<Secret>,
    /// A file that holds the application's secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// Subscriptions to poll, by id. Empty: every visible one.
    #[serde(default)]
    pub subscriptions: Vec<String>,
    /// Subscriptions to leave out, by id.
    #[serde(default)]
    pub exclude_subscriptions: Vec<String>,
    /// Regions to leave out, as in `eastus`.
    #[serde(default)]
    pub exclude_regions: Vec<String>,
    /// One base URL for resource manager, price list and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_url: Option<HttpUrl>,
    /// The base URL of the token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority_url: Option<HttpUrl>,
    /// A fixed token, only with an `endpoint_url` on this machine.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub access_token: Option<Secret>,
    /// A file that holds the fixed token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token_file: Option<PathBuf>,
}

/// A cloud of Azure with directories, subscriptions and hosts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AzureCloud {
    /// Azure outside China and the US government.
    #[default]
    Public,
    /// Azure in China, operated by 21Vianet.
    China,
    /// Azure Government of the United States.
    UsGov,
}

/// Eight, four, four, four and twelve hexadecimal digits.
fn is_guid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    groups.len() == lengths.len()
        && groups
            .iter()
            .zip(lengths)
            .all(|(group, length)| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_domain(text: &str) -> bool {
    text.contains('.')
        && text
            .split('.')
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'))
}

impl AzureSection {
    /// Ids are checked only where the real service is asked: what stands in
    /// for it may use shorter ones. Their text is not shown, because secrets
    /// are pasted into the wrong one of these keys easily.
    fn check_ids(&self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let fix = "write it as 00000000-0000-0000-0000-000000000000";
        if self
            .tenant_id
            .as_deref()
            .is_some_and(|id| !is_guid(id) && !is_domain(id))
        {
            checks.problem(&spot.key("tenant_id"), "not a tenant id or domain", fix);
        }
        if self.client_id.as_deref().is_some_and(|id| !is_guid(id)) {
            checks.problem(&spot.key("client_id"), "not a client id", fix);
        }
        for (key, ids) in [
            ("subscriptions", &self.subscriptions),
            ("exclude_subscriptions", &self.exclude_subscriptions),
        ] {
            for (index, id) in ids.iter().enumerate() {
                if !is_guid(id) {
                    checks.bad_value(&spot.key(key).item(index), "not a subscription id", fix);
                }
            }
        }
    }
}

impl Check for AzureSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.secret(
            spot,
            "client_secret",
            &mut self.client_secret,
            &mut self.client_secret_file,
        );
        checks.secret(
            spot,
            "access_token",
            &mut self.access_token,
            &mut self.access_token_file,
        );
        for (key, ids) in [
            ("subscriptions", &mut self.subscriptions),
            ("exclude_subscriptions", &mut self.exclude_subscriptions),
        ] {
            for id in ids.iter_mut() {
                *id = id.trim().to_ascii_lowercase();
            }
            let list = spot.key(key);
            checks.unique(&list, ids);
            checks.not_blank(&list, ids);
        }
        check_excluded_regions(&mut self.exclude_regions, spot, checks);
        if !spot.key("endpoint_url").is_given() {
            self.check_ids(spot, checks);
        }
        for key in ["client_secret", "client_secret_file"] {
            for needed in ["tenant_id", "client_id"] {
                if spot.key(key).is_given() && !spot.key(needed).is_given() {
                    checks.problem(
                        &spot.key(key),
                        format!("given without {needed}"),
                        format!("add {needed}"),
                    );
                }
            }
        }
        let on_loopback = self.endpoint_url.as_ref().is_some_and(HttpUrl::is_loopback);
        for key in ["access_token", "access_token_file"] {
            if spot.key(key).is_given() && !on_loopback {
                let fix = "use client_secret_file, or a managed identity; a fixed token ends within the hour";
                checks.problem(
                    &spot.key(key),
                    "only allowed with an endpoint_url on a loopback address",
                    fix,
                );
            }
        }
    }
}
