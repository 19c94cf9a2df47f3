//! `providers.tencent`.

use std::sync::Arc;

use gpuwatch_collector_core::Collector;
use gpuwatch_collector_tencent::{Site, TencentCollector, TencentOptions};
use gpuwatch_config::{Config, providers::Site as WrittenSite};

use super::{FixedKeys, secret};

/// One collector per section.
pub(super) fn build(config: &Config, _: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    let sections = config.providers.tencent.iter();
    let collectors = sections.map(|section| {
        let options = TencentOptions {
            site: match section.site {
                WrittenSite::China => Site::China,
                WrittenSite::International => Site::International,
            },
            secret_id: secret::source(section.secret_id.as_ref(), section.secret_id_file.as_deref()),
            secret_key: secret::source(section.secret_key.as_ref(), section.secret_key_file.as_deref()),
            token: secret::source(section.token.as_ref(), section.token_file.as_deref()),
            assume_roles: section.assume_roles.iter().map(ToString::to_string).collect(),
            external_id: section.external_id.clone(),
            session_name: section.session_name.clone(),
            regions: section.regions.listed().map(<[String]>::to_vec),
            exclude_regions: section.exclude_regions.clone(),
            endpoint_url: section.endpoint_url.as_ref().map(|url| url.as_str().to_owned()),
            owner_tags: config.labels.owner_tags.clone(),
            keep_tags: vec![config.findings.exempt_tag.clone()],
            ..TencentOptions::named(section.name.as_str())
        };
        Arc::new(TencentCollector::new(options)) as Arc<dyn Collector>
    });
    collectors.collect()
}
