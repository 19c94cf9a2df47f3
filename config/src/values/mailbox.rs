//! E-mail addresses.

use std::{fmt, str::FromStr};

use crate::error::Invalid;

/// `user@example.com` or `Display Name <user@example.com>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    address: String,
}

impl Mailbox {
    /// The name before the address, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address alone.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl FromStr for Mailbox {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = || {
            Invalid::new(
                "not an e-mail address",
                "write user@example.com or \"Name <user@example.com>\"",
            )
        };
        let text = text.trim();
        // A line break here would let a value add headers to the mail.
        if text.chars().any(char::is_control) {
            return Err(bad());
        }
        let (name, address) = match text.strip_suffix('>') {
            Some(rest) => {
                let (name, address) = rest.rsplit_once('<').ok_or_else(bad)?;
                (name.trim().trim_matches('"').trim(), address)
            }
            None => ("", text),
        };
        if name.contains(['<', '>', '"', '\\']) || !is_address(address) {
            return Err(bad());
        }
        Ok(Self {
            name: (!name.is_empty()).then(|| name.to_owned()),
            address: address.to_owned(),
        })
    }
}

/// The everyday part of RFC 5321: no quoted local parts, no address literals.
/// Letters outside ASCII pass (RFC 6531).
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_local_char = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let dotted =
        |part: &str, ok: &dyn Fn(char) -> bool| part.split('.').all(|word| !word.is_empty() && word.chars().all(ok));
    let is_label_char = |c: char| !c.is_ascii() && c.is_alphanumeric() || c.is_ascii_alphanumeric() || c == '-';
    local.len() <= 64
        && domain.len() <= 253
        && dotted(local, &is_local_char)
        && dotted(domain, &is_label_char)
        && domain
            .split('.')
            .all(|label| !label.starts_with('-') && !label.ends_with('-'))
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => f.pad(&self.address),
        }
    }
}

super::scalar_type!(
    Mailbox,
    pattern: r"^[^@]*[^\s@]@[^\s@]+$",
    about: "user@example.com or \"Name <user@example.com>\".",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_names_are_read() {
        let plain: Mailbox = "ops+gpu@example.com".parse().unwrap();
        assert_eq!((plain.name(), plain.address()), (None, "ops+gpu@example.com"));
        let named: Mailbox = "平台团队 <platform@example.com>".parse().unwrap();
        assert_eq!(
            (named.name(), named.address()),
            (Some("平台团队"), "platform@example.com")
        );
        assert_eq!(named.to_string().parse(), Ok(named));
        assert!("root@localhost".parse::<Mailbox>().is_ok());
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "ops",
            "@example.com",
            "ops@",
            "a b@example.com",
            "ops@exa mple.com",
            "ops@.com",
            "ops@a..b",
            "a@b@c,d",
            "ops@example.com\nBcc: x@y.z",
            "Name <ops@example.com",
            "Name ops@example.com>",
            "<>",
            "a@-b.com",
        ] {
            assert!(bad.parse::<Mailbox>().is_err(), "{bad}");
        }
    }
}
