//! `providers.gcp`.

use std::sync::Arc;

use gpuwatch_collector_core::Collector;
use gpuwatch_collector_gcp::{GcpCollector, GcpOptions};
use gpuwatch_config::Config;

use super::FixedKeys;

/// One collector per section.
pub(super) fn build(config: &Config, _: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    let sections = config.providers.gcp.iter();
    let collectors = sections.map(|section| {
        let options = GcpOptions {
            projects: section.projects.clone(),
            organization: section.organization.clone(),
            folder: section.folder.clone(),
            exclude_projects: section.exclude_projects.clone(),
            exclude_regions: section.exclude_regions.clone(),
            credentials_file: section.credentials_file.clone(),
            impersonate_service_account: section.impersonate_service_account.clone(),
            anonymous: section.anonymous,
            endpoint_url: section.endpoint_url.as_ref().map(|url| url.as_str().to_owned()),
            owner_tags: config.labels.owner_tags.clone(),
            keep_tags: vec![config.findings.exempt_tag.clone()],
            ..GcpOptions::named(section.name.as_str())
        };
        Arc::new(GcpCollector::new(options)) as Arc<dyn Collector>
    });
    collectors.collect()
}
