//! Where the program listens.

use std::{fmt, str::FromStr};

use crate::error::Invalid;

/// A host (name or address, IPv6 in brackets) and a port; port 0 lets the
/// operating system choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress(String);

impl ListenAddress {
    /// `host:port`, as the standard library's and tokio's `bind` take it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ListenAddress {
    fn default() -> Self {
        Self("127.0.0.1:9836".to_owned())
    }
}

impl FromStr for ListenAddress {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const FIX: &str = "write host:port, such as 127.0.0.1:9836, or 0.0.0.0:9836 for every interface";
        let bad = |message: &str| Invalid::new(message, FIX);
        let text = text.trim();
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| bad("not an address of the form host:port"))?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<u16>().is_err() {
            return Err(bad("the port is not a number from 0 to 65535"));
        }
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        let is_host = match host.strip_prefix('[') {
            Some(rest) => rest
                .strip_suffix(']')
                .is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
            None => host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
        };
        if !is_host {
            return Err(Invalid::new(
                "not a host name or address",
                format!("{FIX}; IPv6 stands in brackets: [::1]:9836"),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

super::scalar_type!(
    ListenAddress,
    pattern: r"^\s*(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}\s*$",
    about: "host:port, such as 127.0.0.1:9836 or [::1]:9836.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_checked() {
        for good in ["127.0.0.1:9836", "[::1]:0", "localhost:65535", "0.0.0.0:80"] {
            assert_eq!(good.parse::<ListenAddress>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "9836",
            ":9836",
            "host",
            "host:",
            "host:65536",
            "host:+1",
            "::1:9836",
            "[::1:9836",
            "a b:1",
            "http://h:1",
        ] {
            assert!(bad.parse::<ListenAddress>().is_err(), "{bad}");
        }
    }
}
