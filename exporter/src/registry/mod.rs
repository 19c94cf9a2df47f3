//! From a configuration to collectors. The only place that knows which clouds
//! there are: a new one is one line in [`support`] and one function.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_core::{Collector, Dataset, DatasetOptions, Options};
use gpuwatch_config::{Config, Intervals};
use gpuwatch_inventory::Provider;

use crate::serve::{Plan, Refused};

/// Keys of a simulated cloud, used in place of the credentials chain.
#[derive(Debug, Clone, Copy)]
pub struct FixedKeys {
    /// Access key id.
    pub access_key_id: &'static str,
    /// Secret access key; of a simulated cloud, so no secret.
    pub secret_access_key: &'static str,
}

/// Makes the collectors of one cloud's sections.
type Build = fn(&Config, Option<FixedKeys>) -> Vec<Arc<dyn Collector>>;

/// What this program can do with a cloud.
enum Support {
    /// Poll it.
    #[cfg_attr(not(feature = "aws"), allow(dead_code, reason = "a build without any cloud"))]
    Built(Build),
    /// It was compiled without it.
    #[cfg_attr(feature = "aws", allow(dead_code, reason = "a build with every cloud"))]
    LeftOut,
    /// No version can yet.
    NotYet,
}

/// One line per cloud.
fn support(provider: Provider) -> Support {
    match provider {
        #[cfg(feature = "aws")]
        Provider::Aws => Support::Built(aws),
        #[cfg(not(feature = "aws"))]
        Provider::Aws => Support::LeftOut,
        Provider::Gcp | Provider::Azure | Provider::Aliyun | Provider::Tencent => Support::NotYet,
    }
}

/// Number of sections a cloud has in the configuration.
fn sections(config: &Config, provider: Provider) -> usize {
    let providers = &config.providers;
    match provider {
        Provider::Aws => providers.aws.len(),
        Provider::Gcp => providers.gcp.len(),
        Provider::Azure => providers.azure.len(),
        Provider::Aliyun => providers.aliyun.len(),
        Provider::Tencent => providers.tencent.len(),
    }
}

/// Turns a configuration into what is to run.
///
/// # Errors
/// When it asks for something that this program cannot do: ignoring it would
/// leave a cloud unwatched or a door open.
pub fn plan(config: &Config, keys: Option<FixedKeys>) -> Result<Plan, Refused> {
    let mut problems = Vec::new();
    let mut collectors = Vec::new();
    for provider in Provider::ALL
        .iter()
        .copied()
        .filter(|provider| sections(config, *provider) > 0)
    {
        match support(provider) {
            Support::Built(build) => collectors.extend(build(config, keys)),
            Support::LeftOut => problems.push(format!(
                "providers.{provider}: this gpuwatch was built without it; build it with --features {provider}, or \
                 remove the section"
            )),
            Support::NotYet => problems.push(format!(
                "providers.{provider}: not available in this version of gpuwatch; remove the section"
            )),
        }
    }
    if config.web_config_file.is_some() {
        problems.push(
            "web_config_file: TLS and basic authentication are not available in this version of gpuwatch; remove the \
             key and put a reverse proxy in front"
                .to_owned(),
        );
    }
    if !problems.is_empty() {
        return Err(Refused::new(problems));
    }
    Ok(Plan {
        listen: config.listen.as_str().to_owned(),
        collectors,
        options: options(config),
    })
}

/// Sections of the configuration that this version reads and does not use.
#[must_use]
pub fn without_effect(config: &Config) -> Vec<&'static str> {
    let default = Config::default();
    let sections = [
        ("telemetry", config.telemetry != default.telemetry),
        ("currency", config.currency != default.currency),
        ("prices", config.prices != default.prices),
        ("history", config.history != default.history),
        ("report", config.report != default.report),
    ];
    sections
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| name)
        .collect()
}

fn options(config: &Config) -> Options {
    let datasets: BTreeMap<Dataset, DatasetOptions> = Dataset::ALL
        .iter()
        .filter_map(|dataset| Some((*dataset, timing(config, *dataset)?)))
        .collect();
    let defaults = Options::default();
    // Accounts and regions change as rarely as commitments do.
    let commitments = datasets.get(&Dataset::Commitments).map(|timing| timing.interval);
    Options {
        discovery_interval: commitments.map_or(defaults.discovery_interval, |i| i.min(defaults.discovery_interval)),
        datasets,
        budgets: config.budgets.by_provider(),
        ..defaults
    }
}

fn timing(config: &Config, dataset: Dataset) -> Option<DatasetOptions> {
    let word = dataset.as_str();
    let interval: Option<Duration> = Intervals::get(&config.intervals, word);
    let derived = DatasetOptions::every(interval?);
    Some(DatasetOptions {
        interval: derived.interval,
        deadline: config.deadlines.get(word).unwrap_or(derived.deadline),
        time_to_live: config.time_to_live.get(word).unwrap_or(derived.time_to_live),
    })
}

#[cfg(feature = "aws")]
fn aws(config: &Config, keys: Option<FixedKeys>) -> Vec<Arc<dyn Collector>> {
    use gpuwatch_collector_aws::{AwsCollector, AwsOptions, Partition, TypeFilter};
    use gpuwatch_config as written;

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
