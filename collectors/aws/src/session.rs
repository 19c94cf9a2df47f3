//! Credentials and clients of one account.
//!
//! A session is one `SdkConfig` with one set of credentials, from which every
//! region's client is derived once: 100 accounts in 30 regions cost 100
//! credential resolutions and not 3,000. All sessions share one HTTP pool.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, OnceLock},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, SdkConfig, default_provider::credentials::DefaultCredentialsChain};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_smithy_http_client::{Connector, proxy::ProxyConfig, tls};
use aws_smithy_runtime_api::client::http::{SharedHttpClient, SharedHttpConnector, http_client_fn};
use aws_smithy_types::{retry::RetryConfig, timeout::TimeoutConfig};
use gpuwatch_collector_core::lock;
use gpuwatch_inventory::Text;
use jiff::{Timestamp, ToSpan};

use crate::{AwsOptions, Partition, complete::CompleteXml, region::metadata_client};

/// Time to open a connection. The whole attempt is bounded by the caller.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Assumed credentials are renewed this long before they run out, so that no
/// listing begins with credentials that end before it does.
const RENEW_BEFORE_MINUTES: i64 = 5;

/// Whom a session speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Account id.
    pub account: Text,
    /// Partition, from the identity's ARN.
    pub partition: Partition,
}

/// One account's credentials and the clients derived from them.
pub(crate) struct Session {
    pub identity: Identity,
    config: SdkConfig,
    /// When the credentials end; `None` where the SDK refreshes them itself.
    ends: Option<Timestamp>,
    ec2: Mutex<HashMap<Text, aws_sdk_ec2::Client>>,
    accepted_in: Mutex<HashSet<Text>>,
}

impl Session {
    pub(crate) fn new(identity: Identity, config: SdkConfig, ends: Option<Timestamp>) -> Self {
        Self {
            identity,
            config,
            ends,
            ec2: Mutex::default(),
            accepted_in: Mutex::default(),
        }
    }

    /// A session of another account, with credentials assumed there.
    pub(crate) fn assumed(base: &SdkConfig, identity: Identity, credentials: &aws_sdk_sts::types::Credentials) -> Self {
        let ends = crate::text::timestamp(&credentials.expiration);
        // Without an end for the SDK: renewal is ours, so that it is counted,
        // limited and timed as every other call.
        let provided = Credentials::new(
            &credentials.access_key_id,
            &credentials.secret_access_key,
            Some(credentials.session_token.clone()),
            None,
            "gpuwatch-assume-role",
        );
        let config = base
            .to_builder()
            .credentials_provider(SharedCredentialsProvider::new(provided))
            .identity_cache(aws_sdk_ec2::config::IdentityCache::lazy().build())
            .build();
        Self::new(identity, config, ends)
    }

    /// The configuration that other sessions are derived from.
    pub(crate) fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// Whether the credentials last a while yet.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.ends.is_none_or(|end| {
            now.checked_add(RENEW_BEFORE_MINUTES.minutes())
                .is_ok_and(|soon| soon < end)
        })
    }

    /// Whether the credentials have not ended yet.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        self.ends.is_none_or(|end| now < end)
    }

    /// EC2 in a region.
    pub(crate) fn ec2(&self, region: &str) -> aws_sdk_ec2::Client {
        let mut clients = lock(&self.ec2);
        if let Some(client) = clients.get(region) {
            return client.clone();
        }
        let config = aws_sdk_ec2::config::Builder::from(&self.config)
            .region(Region::new(region.to_owned()))
            .interceptor(CompleteXml)
            .build();
        let client = aws_sdk_ec2::Client::from_conf(config);
        clients.insert(region.into(), client.clone());
        client
    }

    /// Savings Plans, which exist once per partition.
    pub(crate) fn savings_plans(&self) -> aws_sdk_savingsplans::Client {
        let config = aws_sdk_savingsplans::config::Builder::from(&self.config)
            .region(self.home())
            .build();
        aws_sdk_savingsplans::Client::from_conf(config)
    }

    /// Organizations, which exist once per partition.
    pub(crate) fn organizations(&self) -> aws_sdk_organizations::Client {
        let config = aws_sdk_organizations::config::Builder::from(&self.config)
            .region(self.home())
            .build();
        aws_sdk_organizations::Client::from_conf(config)
    }

    fn home(&self) -> Region {
        Region::new(self.identity.partition.home_region())
    }

    /// Notes that these credentials are accepted in a region.
    pub(crate) fn note_accepted(&self, region: &str) {
        let mut accepted = lock(&self.accepted_in);
        if !accepted.contains(region) {
            accepted.insert(region.into());
        }
    }

    /// Whether these credentials have been accepted in a region before.
    pub(crate) fn was_accepted(&self, region: &str) -> bool {
        lock(&self.accepted_in).contains(region)
    }
}

/// STS in a region, with the credentials of a configuration.
pub(crate) fn sts(config: &SdkConfig, region: &str) -> aws_sdk_sts::Client {
    let config = aws_sdk_sts::config::Builder::from(config)
        .region(Region::new(region.to_owned()))
        .interceptor(CompleteXml)
        .build();
    aws_sdk_sts::Client::from_conf(config)
}

/// Loads the base configuration. Nothing here fails: credentials that are
/// missing are noticed by the first call.
pub(crate) async fn load(
    options: &AwsOptions,
    region: &str,
    fixed: Option<&Credentials>,
    http: SharedHttpClient,
) -> SdkConfig {
    let region = Region::new(region.to_owned());
    let credentials = if let Some(credentials) = fixed {
        SharedCredentialsProvider::new(credentials.clone())
    } else {
        let mut chain = DefaultCredentialsChain::builder()
            .region(region.clone())
            .imds_client(metadata_client());
        if let Some(profile) = &options.profile {
            chain = chain.profile_name(profile);
        }
        SharedCredentialsProvider::new(chain.build().await)
    };
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .region(region)
        .credentials_provider(credentials)
        .http_client(http)
        // Retries and attempt times are the scheduler's, which counts them.
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build());
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(url) = &options.endpoint_url {
        loader = loader.endpoint_url(url);
    }
    loader.load().await
}

/// One connection pool for all clients: the SDK's default is one per client,
/// each with its own copy of the root certificates.
pub(crate) fn http_client() -> SharedHttpClient {
    let shared: OnceLock<SharedHttpConnector> = OnceLock::new();
    http_client_fn(move |settings, components| {
        // All clients have the same settings: those of `load`.
        shared
            .get_or_init(|| {
                let mut builder = Connector::builder()
                    .connector_settings(settings.clone())
                    .proxy_config(ProxyConfig::from_env());
                builder.set_sleep_impl(components.sleep_impl());
                let tls = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::AwsLc);
                SharedHttpConnector::new(builder.tls_provider(tls).build())
            })
            .clone()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aws_smithy_runtime_api::client::{
        http::{HttpConnector, HttpConnectorFuture},
        orchestrator::HttpRequest,
        result::ConnectorError,
    };

    use super::*;

    /// Remembers where requests go, and answers none.
    #[derive(Debug, Clone, Default)]
    struct Recorder(Arc<Mutex<Vec<(String, String)>>>);

    impl HttpConnector for Recorder {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let signed = request.headers().get("authorization").unwrap_or_default().to_owned();
            lock(&self.0).push((request.uri().to_owned(), signed));
            HttpConnectorFuture::ready(Err(ConnectorError::io("recorded".into())))
        }
    }

    // P40
    #[tokio::test]
    async fn every_partition_has_its_own_hosts_and_signing_regions() {
        let expected = [
            (
                Partition::AwsCn,
                "sts.cn-northwest-1.amazonaws.com.cn",
                "ec2.cn-northwest-1.amazonaws.com.cn",
            ),
            (
                Partition::AwsUsGov,
                "sts.us-gov-west-1.amazonaws.com",
                "ec2.us-gov-west-1.amazonaws.com",
            ),
            (
                Partition::Aws,
                "sts.us-east-1.amazonaws.com",
                "ec2.us-east-1.amazonaws.com",
            ),
        ];
        for (partition, sts_host, ec2_host) in expected {
            let recorder = Recorder::default();
            let connector = SharedHttpConnector::new(recorder.clone());
            let http = http_client_fn(move |_, _| connector.clone());
            let keys = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
            let region = partition.home_region();
            let config = load(&AwsOptions::named("prod"), region, Some(&keys), http).await;
            assert!(sts(&config, region).get_caller_identity().send().await.is_err());
            let identity = Identity {
                account: "111122223333".into(),
                partition,
            };
            let session = Session::new(identity, config, None);
            assert!(session.ec2(region).describe_regions().send().await.is_err());
            assert!(session.savings_plans().describe_savings_plans().send().await.is_err());
            let requests = lock(&recorder.0).clone();
            // One request per call: retries are not the SDK's.
            assert_eq!(requests.len(), 3, "{requests:?}");
            assert!(
                requests[0].0.starts_with(&format!("https://{sts_host}/")),
                "{requests:?}"
            );
            assert!(
                requests[1].0.starts_with(&format!("https://{ec2_host}/")),
                "{requests:?}"
            );
            for (_, signed) in &requests {
                let scope = signed.split('/').nth(2).unwrap_or_default();
                assert_eq!(Partition::of_region(scope), partition, "{signed}");
            }
        }
    }

    #[test]
    fn sessions_are_renewed_before_they_end() {
        let config = SdkConfig::builder().build();
        let identity = Identity {
            account: "111122223333".into(),
            partition: Partition::Aws,
        };
        let ends: Timestamp = "2026-11-30T12:00:00Z".parse().expect("time");
        let session = Session::new(identity, config, Some(ends));
        let at = |time: &str| time.parse::<Timestamp>().expect("time");
        assert!(session.is_fresh(at("2026-11-30T11:54:00Z")));
        assert!(!session.is_fresh(at("2026-11-30T11:56:00Z")));
        assert!(session.is_alive(at("2026-11-30T11:59:59Z")));
        assert!(!session.is_alive(at("2026-11-30T12:00:00Z")));
    }
}
