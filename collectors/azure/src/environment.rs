//! The hosts and the audience of one of Azure's clouds, together in one place:
//! a token of one cloud is never sent to another.

use std::sync::Arc;

use azure_core::cloud::CloudConfiguration;
use gpuwatch_collector_core::CollectError;
use gpuwatch_collector_rest::Origin;

use crate::{AzureCloud, AzureOptions};

/// What belongs together.
#[derive(Debug)]
pub(crate) struct Environment {
    cloud: AzureCloud,
    endpoint_url: Option<String>,
    authority_url: Option<String>,
}

impl Environment {
    pub(crate) fn new(options: &AzureOptions) -> Self {
        Self {
            cloud: options.cloud,
            endpoint_url: options.endpoint_url.clone(),
            authority_url: options.authority_url.clone(),
        }
    }

    /// Azure Resource Manager.
    ///
    /// # Errors
    /// When the configured endpoint is no place to send a token to.
    pub(crate) fn manager(&self) -> Result<Origin, CollectError> {
        Origin::new(self.endpoint_url.as_deref().unwrap_or(match self.cloud {
            AzureCloud::Public => "https://management.azure.com",
            AzureCloud::China => "https://management.chinacloudapi.cn",
            AzureCloud::UsGov => "https://management.usgovcloudapi.net",
        }))
    }

    /// The scope of a token for Resource Manager. In the US government's cloud
    /// it is not named after the host.
    pub(crate) const fn scope(&self) -> &'static str {
        match self.cloud {
            AzureCloud::Public => "https://management.azure.com/.default",
            AzureCloud::China => "https://management.chinacloudapi.cn/.default",
            AzureCloud::UsGov => "https://management.core.usgovcloudapi.net/.default",
        }
    }

    /// The cloud for the credentials library, which knows the authority hosts.
    pub(crate) fn credentials_cloud(&self) -> Arc<CloudConfiguration> {
        Arc::new(match self.cloud {
            AzureCloud::Public => CloudConfiguration::AzurePublic,
            AzureCloud::China => CloudConfiguration::AzureChina,
            AzureCloud::UsGov => CloudConfiguration::AzureGovernment,
        })
    }

    /// Where a request of the credentials library really goes: the configured
    /// token endpoint in place of the cloud's, the endpoint that stands in for
    /// everything, or the place it names, which must be the cloud's own.
    ///
    /// # Errors
    /// When the library asks for a host that has no business with tokens.
    pub(crate) fn token_origin(&self, asked: &url::Url) -> Result<Origin, CollectError> {
        let asked = asked.origin().ascii_serialization();
        let is_authority = asked == self.authority();
        let configured = self.authority_url.as_deref().filter(|_| is_authority);
        if let Some(url) = configured.or(self.endpoint_url.as_deref()) {
            return Origin::new(url);
        }
        if is_authority {
            return Origin::new(&asked);
        }
        // The metadata service, or App Service's, which is on the machine itself.
        Origin::metadata(&asked)
    }

    pub(crate) const fn authority(&self) -> &'static str {
        match self.cloud {
            AzureCloud::Public => "https://login.microsoftonline.com",
            AzureCloud::China => "https://login.chinacloudapi.cn",
            AzureCloud::UsGov => "https://login.microsoftonline.us",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(cloud: AzureCloud) -> Environment {
        Environment::new(&AzureOptions {
            cloud,
            ..AzureOptions::named("x")
        })
    }

    // P40, P44
    #[test]
    fn nothing_of_one_cloud_goes_to_another() {
        for (cloud, own) in [
            (
                AzureCloud::Public,
                ["management.azure.com", "login.microsoftonline.com"],
            ),
            (
                AzureCloud::China,
                ["management.chinacloudapi.cn", "login.chinacloudapi.cn"],
            ),
            (
                AzureCloud::UsGov,
                ["management.usgovcloudapi.net", "login.microsoftonline.us"],
            ),
        ] {
            let environment = environment(cloud);
            assert_eq!(environment.manager().unwrap().host_header(), own[0]);
            for host in [
                "login.microsoftonline.com",
                "login.chinacloudapi.cn",
                "login.microsoftonline.us",
            ] {
                let asked = url::Url::parse(&format!("https://{host}/t/oauth2/v2.0/token")).unwrap();
                assert_eq!(
                    environment.token_origin(&asked).is_ok(),
                    host == own[1],
                    "{cloud:?} {host}"
                );
            }
        }
        assert!(environment(AzureCloud::UsGov).scope().contains("core.usgovcloudapi"));
    }

    #[test]
    fn another_authority_does_not_get_the_machines_own_calls() {
        let environment = Environment::new(&AzureOptions {
            authority_url: Some("https://login.partner.example".into()),
            ..AzureOptions::named("x")
        });
        for (asked, host) in [
            ("https://login.microsoftonline.com/t", "login.partner.example"),
            ("http://169.254.169.254/metadata/identity", "169.254.169.254"),
        ] {
            let asked = url::Url::parse(asked).unwrap();
            assert_eq!(environment.token_origin(&asked).unwrap().host_header(), host);
        }
    }

    #[test]
    fn a_local_endpoint_takes_every_call() {
        let environment = Environment::new(&AzureOptions {
            endpoint_url: Some("http://127.0.0.1:8081".into()),
            ..AzureOptions::named("x")
        });
        let asked = url::Url::parse("https://login.microsoftonline.com/t").unwrap();
        assert_eq!(
            environment.token_origin(&asked).unwrap().host_header(),
            "127.0.0.1:8081"
        );
        assert_eq!(environment.manager().unwrap().host_header(), "127.0.0.1:8081");
    }
}
