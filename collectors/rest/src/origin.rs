//! Where requests may go.

use std::{fmt, net::IpAddr};

use gpuwatch_collector_core::{CollectError, Reason};
use url::{Host, Url};

/// Scheme, host and port that a client talks to, and a path under which it
/// does. Requests to any other place are refused before they are sent, so that
/// a link in an answer cannot carry a token elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    base: Url,
}

impl Origin {
    /// A service that is sent credentials: `https`, or plain `http` on this
    /// machine.
    ///
    /// # Errors
    /// When `url` is not such a URL.
    pub fn new(url: &str) -> Result<Self, CollectError> {
        let origin = Self::parse(url)?;
        if origin.base.scheme() == "https" || origin.is_loopback() {
            return Ok(origin);
        }
        Err(refused(format!(
            "credentials are not sent to {origin} over plain http: use https, or an address of this machine"
        )))
    }

    /// A metadata service of the machine, which is sent nothing secret and has
    /// no certificate: plain `http` to a link-local or loopback address, or to
    /// one of the names under which clouds offer it.
    ///
    /// # Errors
    /// When `url` is anything else.
    pub fn metadata(url: &str) -> Result<Self, CollectError> {
        let origin = Self::parse(url)?;
        let is_link_local = match origin.base.host() {
            // 100.100.100.200 is Alibaba Cloud's, in the range for carriers.
            Some(Host::Ipv4(address)) => address.is_link_local() || address.octets() == [100, 100, 100, 200],
            Some(Host::Ipv6(address)) => address.is_unicast_link_local() || address.is_unique_local(),
            Some(Host::Domain(name)) => matches!(
                name,
                "metadata.google.internal" | "metadata.tencentyun.com" | "metadata" | "169.254.169.254"
            ),
            None => false,
        };
        if is_link_local || origin.is_loopback() {
            return Ok(origin);
        }
        Err(refused(format!("{origin} is not a metadata service of this machine")))
    }

    fn parse(url: &str) -> Result<Self, CollectError> {
        let base = Url::parse(url).map_err(|error| refused(format!("not a URL: {error}")))?;
        let plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        if !matches!(base.scheme(), "https" | "http") || base.host().is_none() || !plain {
            return Err(refused(
                "not the base URL of a service: write https://host[:port][/path]".to_owned(),
            ));
        }
        Ok(Self { base })
    }

    /// Whether it is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.base.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// The value of the `Host` header: the port only where it is not the
    /// scheme's own.
    #[must_use]
    pub fn host_header(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        match self.base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// A path below this origin's, with an optional query. `path` begins with
    /// a slash and is already encoded.
    ///
    /// # Errors
    /// When the result is not below this origin.
    pub fn url(&self, path_and_query: &str) -> Result<Url, CollectError> {
        let base = self.base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{base}{path_and_query}"))
            .map_err(|error| refused(format!("not a path of {self}: {error}")))?;
        self.allow(&url)?;
        Ok(url)
    }

    /// A link from an answer, such as the next page.
    ///
    /// # Errors
    /// When it leads to another place.
    pub fn link(&self, link: &str) -> Result<Url, CollectError> {
        let url = Url::parse(link).map_err(|error| refused(format!("a link that is not a URL: {error}")))?;
        self.allow(&url)?;
        Ok(url)
    }

    /// Checks that a URL has this scheme, host and port.
    ///
    /// # Errors
    /// When it has not.
    pub fn allow(&self, url: &Url) -> Result<(), CollectError> {
        if url.origin() == self.base.origin() {
            return Ok(());
        }
        Err(refused(format!(
            "refused to follow a link from {self} to {}",
            url.origin().ascii_serialization()
        )))
    }
}

fn refused(message: String) -> CollectError {
    CollectError::new(Reason::Other, message).retryable(false)
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base.origin().ascii_serialization())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_over_tls_or_stay_on_this_machine() {
        for good in [
            "https://management.azure.com",
            "https://ecs.cn-hangzhou.aliyuncs.com/",
            "http://127.0.0.1:8080",
            "http://[::1]:1/x",
            "http://localhost",
        ] {
            assert!(Origin::new(good).is_ok(), "{good}");
        }
        for bad in [
            "http://management.azure.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://169.254.169.254",
            "ftp://127.0.0.1",
            "https://user:secret@host",
            "https://host?x=1",
            "host",
            "",
        ] {
            let error = Origin::new(bad).expect_err(bad);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn metadata_services_are_on_the_link_only() {
        for good in [
            "http://169.254.169.254",
            "http://100.100.100.200",
            "http://metadata.tencentyun.com",
            "http://127.0.0.1:9",
        ] {
            assert!(Origin::metadata(good).is_ok(), "{good}");
        }
        for bad in ["http://10.0.0.1", "http://100.100.100.201", "http://example.com"] {
            assert!(Origin::metadata(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn links_to_other_places_are_refused() {
        let origin = Origin::new("https://management.azure.com").unwrap();
        assert!(origin.link("https://management.azure.com/x?$skiptoken=1").is_ok());
        assert!(origin.link("https://management.azure.com:443/x").is_ok());
        for bad in [
            "http://management.azure.com/x",
            "https://management.azure.com.evil.example/x",
            "https://management.azure.com:444/x",
            "https://evil.example/?https://management.azure.com",
            "/x",
        ] {
            assert!(origin.link(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_stay_below_the_base_and_the_host_is_as_sent() {
        let origin = Origin::new("http://127.0.0.1:8080/gateway/").unwrap();
        assert_eq!(
            origin.url("/a/b?c=d").unwrap().as_str(),
            "http://127.0.0.1:8080/gateway/a/b?c=d"
        );
        assert_eq!(origin.host_header(), "127.0.0.1:8080");
        let tls = Origin::new("https://cvm.tencentcloudapi.com:443").unwrap();
        assert_eq!(tls.host_header(), "cvm.tencentcloudapi.com");
        assert!(tls.url("@evil.example/").is_err());
    }
}
