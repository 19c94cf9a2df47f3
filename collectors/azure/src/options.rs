//! What one configured section says.

use gpuwatch_collector_core::TagRules;
use gpuwatch_collector_rest::SecretSource;

/// A cloud of Azure with directories, subscriptions and hosts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AzureCloud {
    /// Outside China and the US government.
    #[default]
    Public,
    /// In China, operated by 21Vianet.
    China,
    /// Azure Government of the United States.
    UsGov,
}

/// One section under `providers: azure:`.
#[derive(Debug, Clone)]
pub struct AzureOptions {
    /// The section's name.
    pub name: String,
    /// The cloud that the tenant is in.
    pub cloud: AzureCloud,
    /// The tenant, by id or domain.
    pub tenant_id: Option<String>,
    /// The application, or the user-assigned managed identity.
    pub client_id: Option<String>,
    /// The application's secret; without one: workload identity, managed
    /// identity or the CLI.
    pub client_secret: Option<SecretSource>,
    /// Subscriptions to poll, by lower-case id; empty for every visible one.
    pub subscriptions: Vec<String>,
    /// Subscriptions never to poll, by lower-case id.
    pub exclude_subscriptions: Vec<String>,
    /// Regions never to poll (`eastus`).
    pub exclude_regions: Vec<String>,
    /// One base URL for every service, the token endpoint included unless
    /// [`AzureOptions::authority_url`] is given.
    pub endpoint_url: Option<String>,
    /// Base URL of the token endpoint.
    pub authority_url: Option<String>,
    /// A fixed token, for an endpoint on this machine.
    pub access_token: Option<SecretSource>,
    /// Tag keys that name the owner, the first with a value wins.
    pub owner_tags: Vec<String>,
    /// Further tag keys to keep on instances.
    pub keep_tags: Vec<String>,
}

impl AzureOptions {
    /// Defaults of every key.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cloud: AzureCloud::default(),
            tenant_id: None,
            client_id: None,
            client_secret: None,
            subscriptions: Vec::new(),
            exclude_subscriptions: Vec::new(),
            exclude_regions: Vec::new(),
            endpoint_url: None,
            authority_url: None,
            access_token: None,
            owner_tags: Vec::new(),
            keep_tags: Vec::new(),
        }
    }

    pub(crate) fn tag_rules(&self) -> TagRules {
        TagRules {
            owner: self.owner_tags.clone(),
            keep: self.keep_tags.clone(),
        }
    }
}
