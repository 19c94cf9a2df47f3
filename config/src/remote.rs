//! How to reach a Prometheus-compatible server: the keys that `telemetry` and
//! `history` share.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HttpUrl, Secret,
    check::Check,
    yaml::{Checks, Spot},
};

/// User and password of HTTP basic authentication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BasicAuth {
    /// The user.
    pub username: String,
    /// The password.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub password: Option<Secret>,
    /// A file that holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
}

/// Transport security of a client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTls {
    /// Certificate authorities to trust instead of the system's, in PEM form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The client's own certificate, in PEM form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The key of the client's certificate, in PEM form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The name the server's certificate must have, if not the URL's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Accept any certificate.
    pub insecure_skip_verify: bool,
}

impl ClientTls {
    /// Whether nothing is set.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A server with everything needed to ask it.
#[derive(Debug, Clone, Copy)]
pub struct Remote<'a> {
    /// The base URL; `/api/v1/query` comes after it.
    pub url: &'a HttpUrl,
    /// Basic authentication, if any.
    pub basic_auth: Option<&'a BasicAuth>,
    /// A bearer token, if any.
    pub bearer_token: Option<&'a Secret>,
    /// Further headers, those read from files included.
    pub headers: &'a BTreeMap<String, Secret>,
    /// Transport security.
    pub tls: &'a ClientTls,
}

/// The keys of a section that name a server, in the form the checks fill in.
pub(crate) struct RemoteKeys<'a> {
    pub(crate) basic_auth: &'a mut Option<BasicAuth>,
    pub(crate) bearer_token: &'a mut Option<Secret>,
    pub(crate) bearer_token_file: &'a mut Option<PathBuf>,
    pub(crate) headers: &'a mut BTreeMap<String, Secret>,
    pub(crate) header_files: &'a mut BTreeMap<String, PathBuf>,
    pub(crate) all_headers: &'a mut BTreeMap<String, Secret>,
    pub(crate) tls: &'a mut ClientTls,
}

impl RemoteKeys<'_> {
    pub(crate) fn check(self, spot: &Spot<'_>, checks: &Checks<'_>) {
        if let Some(basic_auth) = self.basic_auth {
            let spot = spot.key("basic_auth");
            if basic_auth.username.contains(':') {
                checks.problem(&spot.key("username"), "a user name with a colon", "remove the colon");
            }
            checks.secret(
                &spot,
                "password",
                &mut basic_auth.password,
                &mut basic_auth.password_file,
            );
        }
        checks.secret(spot, "bearer_token", self.bearer_token, self.bearer_token_file);
        let bearer = ["bearer_token", "bearer_token_file"]
            .into_iter()
            .find(|key| spot.key(key).is_given());
        if let Some(key) = bearer {
            checks.exclusive(spot, "basic_auth", key);
        }
        let authenticates = bearer.is_some() || spot.key("basic_auth").is_given();
        check_header_names(&spot.key("headers"), self.headers.keys(), authenticates, checks);
        check_header_names(
            &spot.key("header_files"),
            self.header_files.keys(),
            authenticates,
            checks,
        );
        for (name, value) in self.headers.iter() {
            if value.expose().chars().any(char::is_control) {
                let fix = "remove line breaks and other control characters";
                checks.problem(&spot.key("headers").key(name), "not a header value", fix);
            }
        }
        self.all_headers.clone_from(self.headers);
        for (name, path) in self.header_files.iter_mut() {
            let file = spot.key("header_files").key(name);
            if self.headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
                checks.problem(&file, "this header is given in headers too", "keep one of the two");
            }
            if let Some(secret) = checks.secret_file(&file, Some(path)) {
                self.all_headers.insert(name.clone(), secret);
            }
        }
        self.tls.check(&spot.key("tls"), checks);
    }
}

fn check_header_names<'a>(
    spot: &Spot<'_>,
    names: impl Iterator<Item = &'a String>,
    authenticates: bool,
    checks: &Checks<'_>,
) {
    for name in names {
        // The characters of a token, RFC 9110 section 5.6.2.
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            checks.problem(
                &spot.key(name),
                "not a header name",
                "write letters, digits and hyphens",
            );
        } else if authenticates && name.eq_ignore_ascii_case("authorization") {
            let fix = "keep the header, or basic_auth, or bearer_token";
            checks.problem(&spot.key(name), "the server would be sent two authorizations", fix);
        }
    }
}

impl Check for ClientTls {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        checks.file(&spot.key("ca_file"), self.ca_file.as_mut());
        checks.file(&spot.key("cert_file"), self.cert_file.as_mut());
        checks.file(&spot.key("key_file"), self.key_file.as_mut());
        for (present, missing) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
            if spot.key(present).is_given() && !spot.key(missing).is_given() {
                checks.problem(
                    &spot.key(present),
                    format!("given without {missing}"),
                    format!("add {missing}"),
                );
            }
        }
        if self.insecure_skip_verify {
            let spot = spot.key("insecure_skip_verify");
            checks.warn(
                &spot,
                "anybody on the way can read and change the answers",
                "set ca_file instead",
            );
        }
    }
}
