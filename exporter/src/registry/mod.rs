//! From a configuration to collectors. The only place that knows which clouds
//! there are: a new one is one line in [`support`] and one file.

#[cfg(feature = "aliyun")]
mod aliyun;
#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "gcp")]
mod gcp;
mod secret;
mod telemetry;
#[cfg(feature = "tencent")]
mod tencent;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_core::{Collector, Dataset, DatasetOptions, Options};
use gpuwatch_config::{Config, Intervals};
use gpuwatch_inventory::Provider;

use crate::serve::{Plan, Refused};

/// Keys of a simulated AWS, used in place of the credentials chain: the
/// configuration has no keys for AWS.
#[derive(Debug, Clone, Copy)]
pub struct FixedKeys {
    /// Access key id.
    pub access_key_id: &'static str,
    /// Secret access key; of a simulated cloud, so no secret.
    pub secret_access_key: &'static str,
}

/// Makes the collectors of one cloud's sections.
type Build = fn(&Config, Option<FixedKeys>) -> Vec<Arc<dyn Collector>>;

/// One line per cloud: how to build its collectors, `None` in a program that
/// was compiled without it.
fn support(provider: Provider) -> Option<Build> {
    match provider {
        #[cfg(feature = "aws")]
        Provider::Aws => Some(aws::build),
        #[cfg(feature = "gcp")]
        Provider::Gcp => Some(gcp::build),
        #[cfg(feature = "azure")]
        Provider::Azure => Some(azure::build),
        #[cfg(feature = "aliyun")]
        Provider::Aliyun => Some(aliyun::build),
        #[cfg(feature = "tencent")]
        Provider::Tencent => Some(tencent::build),
        #[allow(unreachable_patterns, reason = "reached in a build that leaves clouds out")]
        _ => None,
    }
}

/// Whether this program was compiled with a cloud.
#[must_use]
pub fn is_built_in(provider: Provider) -> bool {
    support(provider).is_some()
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
            Some(build) => collectors.extend(build(config, keys)),
            None => problems.push(format!(
                "providers.{provider}: this gpuwatch was built without it; build it with --features {provider}, or \
                 remove the section"
            )),
        }
    }
    let readers = telemetry::readers(config, &mut problems);
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
        telemetry: readers,
        options: options(config),
    })
}

/// Sections of the configuration that this version reads and does not use.
#[must_use]
pub fn without_effect(config: &Config) -> Vec<&'static str> {
    let default = Config::default();
    let sections = [
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
