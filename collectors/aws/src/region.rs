//! Which region the base credentials are used in: the one STS, `DescribeRegions`
//! and services that exist once per partition are asked in.
//!
//! `AWS_REGION` need not be set. What the configuration says about the
//! partition decides first, so that no China or government credentials are
//! sent to the commercial STS.

use std::time::Duration;

use aws_config::{
    environment::EnvironmentVariableRegionProvider,
    imds::{self, region::ImdsRegionProvider},
    meta::region::RegionProviderChain,
    profile::ProfileFileRegionProvider,
};

use crate::{AwsOptions, Partition};

/// Regions to try for the base credentials, best first: more than one only
/// where nothing tells the partition.
pub(crate) async fn candidates(options: &AwsOptions, ask_metadata: bool) -> Vec<String> {
    let environment = from_environment(options.profile.as_deref()).await;
    let known = choose(options, environment.as_deref());
    if let Some(region) = known {
        return vec![region];
    }
    if ask_metadata && let Some(region) = from_metadata().await {
        return vec![region];
    }
    [Partition::Aws, Partition::AwsCn, Partition::AwsUsGov]
        .map(|p| p.home_region().to_owned())
        .to_vec()
}

/// The region by configuration and environment, if they say.
fn choose(options: &AwsOptions, environment: Option<&str>) -> Option<String> {
    let configured = options
        .regions
        .as_ref()
        .and_then(|regions| regions.first())
        .map(String::as_str);
    let partition = options
        .partition
        .or_else(|| options.role_arns().find_map(Partition::of_arn))
        .or_else(|| configured.map(Partition::of_region));
    let fits = |region: &&str| partition.is_none_or(|p| p == Partition::of_region(region));
    configured
        .filter(fits)
        .or_else(|| environment.filter(fits))
        .or_else(|| partition.map(Partition::home_region))
        .map(str::to_owned)
}

/// `AWS_REGION`, `AWS_DEFAULT_REGION`, then the profile.
async fn from_environment(profile: Option<&str>) -> Option<String> {
    let file = match profile {
        Some(name) => ProfileFileRegionProvider::builder().profile_name(name).build(),
        None => ProfileFileRegionProvider::new(),
    };
    let chain = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new()).or_else(file);
    chain.region().await.map(|region| region.to_string())
}

/// The region of the machine, if it is one of AWS.
async fn from_metadata() -> Option<String> {
    let provider = ImdsRegionProvider::builder().imds_client(metadata_client()).build();
    provider.region().await.map(|region| region.to_string())
}

/// A client for the instance metadata service that gives up within two
/// seconds: most machines that run this have none, and must not wait for it.
pub(crate) fn metadata_client() -> imds::Client {
    imds::Client::builder()
        .max_attempts(1)
        .connect_timeout(Duration::from_secs(1))
        .read_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_secs(1))
        .operation_timeout(Duration::from_secs(2))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_for(edit: impl FnOnce(&mut AwsOptions), environment: Option<&str>) -> Option<String> {
        let mut options = AwsOptions::named("prod");
        edit(&mut options);
        choose(&options, environment)
    }

    // P40
    #[test]
    fn the_region_always_belongs_to_the_known_partition() {
        let cn_role = |o: &mut AwsOptions| o.assume_roles = vec!["arn:aws-cn:iam::111122223333:role/r".into()];
        assert_eq!(
            choose_for(cn_role, Some("us-east-1")).as_deref(),
            Some("cn-northwest-1")
        );
        assert_eq!(choose_for(cn_role, Some("cn-north-1")).as_deref(), Some("cn-north-1"));
        let gov = |o: &mut AwsOptions| o.partition = Some(Partition::AwsUsGov);
        assert_eq!(choose_for(gov, Some("eu-west-1")).as_deref(), Some("us-gov-west-1"));
        let cn_region = |o: &mut AwsOptions| o.regions = Some(vec!["cn-north-1".into()]);
        assert_eq!(choose_for(cn_region, None).as_deref(), Some("cn-north-1"));
    }

    #[test]
    fn without_any_hint_the_environment_decides_or_nothing() {
        assert_eq!(choose_for(|_| {}, Some("eu-west-1")).as_deref(), Some("eu-west-1"));
        assert_eq!(choose_for(|_| {}, None), None);
    }
}
