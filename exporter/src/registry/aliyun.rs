//! `providers.aliyun`.

use std::sync::Arc;

use gpuwatch_collector_aliyun::{AliyunCollector, AliyunOptions, Site};
use gpuwatch_collector_core::Collector;
use gpuwatch_config::{Config, providers::Site as WrittenSite};

use super::{FixedKeys, secret};

/// One collector per section.
pub(super) fn build(config: &Config, _: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    let sections = config.providers.aliyun.iter();
    let collectors = sections.map(|section| {
        let options = AliyunOptions {
            site: match section.site {
                WrittenSite::China => Site::China,
                WrittenSite::International => Site::International,
            },
            access_key_id: secret::source(section.access_key_id.as_ref(), section.access_key_id_file.as_deref()),
            access_key_secret: secret::source(
                section.access_key_secret.as_ref(),
                section.access_key_secret_file.as_deref(),
            ),
            security_token: secret::source(section.security_token.as_ref(), section.security_token_file.as_deref()),
            assume_roles: section.assume_roles.iter().map(ToString::to_string).collect(),
            external_id: section.external_id.clone(),
            session_name: section.session_name.clone(),
            regions: section.regions.listed().map(<[String]>::to_vec),
            exclude_regions: section.exclude_regions.clone(),
            endpoint_url: section.endpoint_url.as_ref().map(|url| url.as_str().to_owned()),
            owner_tags: config.labels.owner_tags.clone(),
            keep_tags: vec![config.findings.exempt_tag.clone()],
            ..AliyunOptions::named(section.name.as_str())
        };
        Arc::new(AliyunCollector::new(options)) as Arc<dyn Collector>
    });
    collectors.collect()
}
