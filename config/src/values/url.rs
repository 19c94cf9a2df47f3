//! Base addresses of servers.

use std::{fmt, net::IpAddr, str::FromStr};

use url::{Host, Url};

use crate::error::Invalid;

/// An `http` or `https` address with a host and perhaps a path, without user,
/// password, query or fragment, and without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    url: Url,
    text: String,
}

impl HttpUrl {
    /// The address, ready to append a path that begins with a slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address in parts.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the host is this machine by its very name: `localhost` or a
    /// loopback address. No name is resolved.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            None => false,
        }
    }
}

impl FromStr for HttpUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let fix = "write https://host[:port][/path]";
        let text = text.trim();
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(Invalid::new("not a URL that begins with http:// or https://", fix));
        }
        let url = Url::parse(text).map_err(|error| Invalid::new(format!("not a URL: {error}"), fix))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Invalid::new(
                "a URL with a user or password in it",
                "take them out; servers that want them have keys of their own (basic_auth)",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(Invalid::new("a URL with a query or fragment", "end it before ? or #"));
        }
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, text })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

super::scalar_type!(
    HttpUrl,
    pattern: r"^\s*https?://[^?#]+$",
    about: "An address of http or https without user, password, query and fragment.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_the_slash_at_their_end() {
        let url: HttpUrl = "http://127.0.0.1:5000/".parse().unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:5000");
        assert_eq!(
            "https://host/select/0/prometheus".parse::<HttpUrl>().unwrap().as_str(),
            "https://host/select/0/prometheus"
        );
    }

    #[test]
    fn loopback_is_told_from_other_hosts() {
        for (text, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:80", true),
            ("http://localhost:8080", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
            ("https://management.azure.com", false),
        ] {
            assert_eq!(text.parse::<HttpUrl>().unwrap().is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "host:80",
            "ftp://h",
            "http://",
            "http://u:p@h",
            "http://h/?q=1",
            "http://h/#f",
            "http://h:99999",
        ] {
            assert!(bad.parse::<HttpUrl>().is_err(), "{bad}");
        }
    }
}
