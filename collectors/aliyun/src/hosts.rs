//! Which host answers for a product in a region.

use gpuwatch_collector_core::CollectError;
use gpuwatch_collector_rest::Origin;

use crate::{AliyunOptions, Site, credentials::Environment};

/// A product, by the word that calls are counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    /// Elastic Compute Service.
    Ecs,
    /// Security Token Service.
    Sts,
    /// Billing and cost.
    Bss,
}

impl Product {
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Ecs => "2014-05-26",
            Self::Sts => "2015-04-01",
            Self::Bss => "2017-12-14",
        }
    }
}

/// Hosts of one section: by the rules of the vendor's SDKs, or one endpoint
/// for everything.
#[derive(Debug)]
pub(crate) struct Hosts {
    site: Site,
    endpoint_url: Option<String>,
    /// The host of STS.
    sts: String,
}

impl Hosts {
    /// By the configuration, and by the variables that tell the vendor's SDKs
    /// where STS is.
    pub(crate) fn new(options: &AliyunOptions, environment: &Environment) -> Self {
        Self {
            sts: sts(environment),
            site: options.site,
            endpoint_url: options.endpoint_url.clone(),
        }
    }

    /// Where to send a call. `stated` is the endpoint that `DescribeRegions`
    /// gave for the region.
    ///
    /// # Errors
    /// When the configured endpoint is no place to send credentials to.
    pub(crate) fn origin(&self, product: Product, region: &str, stated: Option<&str>) -> Result<Origin, CollectError> {
        if let Some(url) = &self.endpoint_url {
            return Origin::new(url);
        }
        let host = match product {
            Product::Ecs => stated
                .filter(|host| is_host_of_vendor(host))
                .map_or_else(|| ecs(region), str::to_owned),
            Product::Sts => self.sts.clone(),
            Product::Bss => match self.site {
                Site::China => "business.aliyuncs.com".to_owned(),
                Site::International => "business.ap-southeast-1.aliyuncs.com".to_owned(),
            },
        };
        Origin::new(&format!("https://{host}"))
    }
}

/// Keys go to the vendor's own hosts only, whatever an answer says.
fn is_host_of_vendor(host: &str) -> bool {
    host.ends_with(".aliyuncs.com") && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
}

/// STS is the same everywhere; a network without a way out has one of its own.
fn sts(environment: &Environment) -> String {
    let region = environment.get("ALIBABA_CLOUD_STS_REGION").map(str::trim);
    let is_region =
        |region: &&str| !region.is_empty() && region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match region.filter(is_region) {
        Some(region) if environment.is_true("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED") => {
            format!("sts-vpc.{region}.aliyuncs.com")
        }
        Some(region) => format!("sts.{region}.aliyuncs.com"),
        None => "sts.aliyuncs.com".to_owned(),
    }
}

fn ecs(region: &str) -> String {
    match region {
        "" | "cn-hangzhou" | "cn-shanghai-finance-1" | "cn-shenzhen-finance-1" => {
            "ecs-cn-hangzhou.aliyuncs.com".to_owned()
        }
        "cn-north-2-gov-1" | "cn-hangzhou-finance" | "cn-beijing-gov-1" => "ecs.aliyuncs.com".to_owned(),
        region => format!("ecs.{region}.aliyuncs.com"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(site: Site, product: Product, region: &str, stated: Option<&str>) -> String {
        let options = AliyunOptions {
            site,
            ..AliyunOptions::named("x")
        };
        Hosts::new(&options, &Environment::default())
            .origin(product, region, stated)
            .unwrap()
            .host_header()
    }

    #[test]
    fn ecs_is_asked_in_the_region_itself() {
        for (region, expected) in [
            ("cn-beijing", "ecs.cn-beijing.aliyuncs.com"),
            ("ap-southeast-1", "ecs.ap-southeast-1.aliyuncs.com"),
            ("cn-hangzhou", "ecs-cn-hangzhou.aliyuncs.com"),
            ("cn-north-2-gov-1", "ecs.aliyuncs.com"),
        ] {
            assert_eq!(host(Site::China, Product::Ecs, region, None), expected);
        }
        let stated = Some("ecs.eu-west-1.aliyuncs.com");
        assert_eq!(
            host(Site::China, Product::Ecs, "eu-west-1", stated),
            "ecs.eu-west-1.aliyuncs.com"
        );
    }

    // P44
    #[test]
    fn keys_go_to_no_host_that_is_not_the_vendors() {
        for bad in [
            "ecs.evil.example",
            "aliyuncs.com.evil.example",
            "x@evil.example/.aliyuncs.com",
        ] {
            assert_eq!(
                host(Site::China, Product::Ecs, "eu-west-1", Some(bad)),
                "ecs.eu-west-1.aliyuncs.com"
            );
        }
    }

    #[test]
    fn sts_is_asked_where_the_environment_says() {
        let host = |variables: &[(&str, &str)]| {
            let hosts = Hosts::new(&AliyunOptions::named("x"), &Environment::of(variables));
            hosts.origin(Product::Sts, "", None).unwrap().host_header()
        };
        let region = ("ALIBABA_CLOUD_STS_REGION", "cn-beijing");
        assert_eq!(host(&[]), "sts.aliyuncs.com");
        assert_eq!(host(&[region]), "sts.cn-beijing.aliyuncs.com");
        let inside = ("ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED", "true");
        assert_eq!(host(&[region, inside]), "sts-vpc.cn-beijing.aliyuncs.com");
        assert_eq!(host(&[inside]), "sts.aliyuncs.com");
        assert_eq!(
            host(&[("ALIBABA_CLOUD_STS_REGION", "x.evil.example/")]),
            "sts.aliyuncs.com"
        );
    }

    // P40
    #[test]
    fn the_bill_is_asked_at_the_site_of_the_account() {
        assert_eq!(host(Site::China, Product::Bss, "", None), "business.aliyuncs.com");
        assert_eq!(
            host(Site::International, Product::Bss, "", None),
            "business.ap-southeast-1.aliyuncs.com"
        );
    }
}
