//! TC3-HMAC-SHA256: what proves who sent exactly these bytes to this host.

use gpuwatch_collector_rest::{ExposeSecret as _, SecretString};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{Timestamp, tz::TimeZone};
use sha2::{Digest as _, Sha256};

/// The one content type that is sent, and therefore signed.
pub(crate) const CONTENT_TYPE: &str = "application/json";

const ALGORITHM: &str = "TC3-HMAC-SHA256";

/// One POST request to be signed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsigned<'a> {
    /// The product: the first label of its real host, whatever host is used.
    pub service: &'a str,
    /// Headers to sign, names in lower case and in ASCII order, values exactly
    /// as they are sent.
    pub headers: &'a [(&'a str, &'a str)],
    /// Exactly the bytes that are sent.
    pub body: &'a [u8],
    /// The time that `X-TC-Timestamp` states.
    pub at: Timestamp,
}

impl Unsigned<'_> {
    /// The `Authorization` header.
    pub(crate) fn authorization(&self, secret_id: &SecretString, secret_key: &SecretString) -> String {
        let signature = self.signature(secret_key);
        format!(
            "{ALGORITHM} Credential={}/{}, SignedHeaders={}, Signature={signature}",
            secret_id.expose_secret(),
            self.scope(),
            self.signed_names(),
        )
    }

    fn signature(&self, secret_key: &SecretString) -> String {
        let key = [b"TC3", secret_key.expose_secret().as_bytes()].concat();
        let by_date = hmac(&key, self.date().as_bytes());
        let by_service = hmac(&by_date, self.service.as_bytes());
        let signing = hmac(&by_service, b"tc3_request");
        hex::encode(hmac(&signing, self.string_to_sign().as_bytes()))
    }

    fn string_to_sign(&self) -> String {
        let canonical = sha256(self.canonical_request().as_bytes());
        format!("{ALGORITHM}\n{}\n{}\n{canonical}", self.at.as_second(), self.scope())
    }

    fn canonical_request(&self) -> String {
        use std::fmt::Write as _;

        let mut headers = String::new();
        for (name, value) in self.headers {
            // Writing to a string does not fail.
            let _ = writeln!(headers, "{name}:{}", value.trim());
        }
        format!("POST\n/\n\n{headers}\n{}\n{}", self.signed_names(), sha256(self.body))
    }

    fn signed_names(&self) -> String {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        names.join(";")
    }

    fn scope(&self) -> String {
        format!("{}/{}/tc3_request", self.date(), self.service)
    }

    /// The date in UTC: by a local date, calls fail from midnight to eight in
    /// Beijing.
    fn date(&self) -> String {
        TimeZone::UTC.to_datetime(self.at).date().to_string()
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[allow(clippy::expect_used, reason = "HMAC takes a key of any length")]
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests;
