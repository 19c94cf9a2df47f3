//! `providers.aws`.

use std::sync::Arc;

use gpuwatch_collector_aws::{AwsCollector, AwsOptions, Partition, TypeFilter};
use gpuwatch_collector_core::Collector;
use gpuwatch_config::{self as written, Config};

use super::FixedKeys;

/// One collector per section.
pub(super) fn build(config: &Config, keys: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    let sections = config.providers.aws.iter();
    let collectors = sections.map(|section| {
        let options = AwsOptions {
            regions: section.regions.listed().map(<[String]>::to_vec),
            exclude_regions: section.exclude_regions.clone(),
            partition: section.partition.map(|partition| match partition {
                written::Partition::Aws => Partition::Aws,
                written::Partition::AwsCn => Partition::AwsCn,
                written::Partition::AwsUsGov => Partition::AwsUsGov,
            }),
            profile: section.profile.clone(),
            assume_roles: section.assume_roles.iter().map(ToString::to_string).collect(),
            external_id: section.external_id.clone(),
            session_name: section.session_name.clone(),
            organization: section.organization,
            type_filter: match section.type_filter {
                written::TypeFilter::Wildcard => TypeFilter::Wildcard,
                written::TypeFilter::Exact => TypeFilter::Exact,
            },
            endpoint_url: section.endpoint_url.as_ref().map(|url| url.as_str().to_owned()),
            owner_tags: config.labels.owner_tags.clone(),
            keep_tags: vec![config.findings.exempt_tag.clone()],
            ..AwsOptions::named(section.name.as_str())
        };
        let collector = match keys {
            Some(keys) => AwsCollector::with_fixed_credentials(options, keys.access_key_id, keys.secret_access_key),
            None => AwsCollector::new(options),
        };
        Arc::new(collector) as Arc<dyn Collector>
    });
    collectors.collect()
}
