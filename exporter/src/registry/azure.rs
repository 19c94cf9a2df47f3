//! `providers.azure`.

use std::sync::Arc;

use gpuwatch_collector_azure::{AzureCloud, AzureCollector, AzureOptions};
use gpuwatch_collector_core::Collector;
use gpuwatch_config::{Config, providers::AzureCloud as WrittenCloud};

use super::{FixedKeys, secret};

/// One collector per section.
pub(super) fn build(config: &Config, _: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    let sections = config.providers.azure.iter();
    let collectors = sections.map(|section| {
        let options = AzureOptions {
            cloud: match section.cloud {
                WrittenCloud::Public => AzureCloud::Public,
                WrittenCloud::China => AzureCloud::China,
                WrittenCloud::UsGov => AzureCloud::UsGov,
            },
            tenant_id: section.tenant_id.clone(),
            client_id: section.client_id.clone(),
            client_secret: secret::source(section.client_secret.as_ref(), section.client_secret_file.as_deref()),
            subscriptions: section.subscriptions.clone(),
            exclude_subscriptions: section.exclude_subscriptions.clone(),
            exclude_regions: section.exclude_regions.clone(),
            endpoint_url: section.endpoint_url.as_ref().map(|url| url.as_str().to_owned()),
            authority_url: section.authority_url.as_ref().map(|url| url.as_str().to_owned()),
            access_token: secret::source(section.access_token.as_ref(), section.access_token_file.as_deref()),
            owner_tags: config.labels.owner_tags.clone(),
            keep_tags: vec![config.findings.exempt_tag.clone()],
            ..AzureOptions::named(section.name.as_str())
        };
        Arc::new(AzureCollector::new(options)) as Arc<dyn Collector>
    });
    collectors.collect()
}
