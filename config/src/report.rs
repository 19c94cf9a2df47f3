//! The weekly digest: when, to whom and how it is sent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Language, Mailbox, Period, Schedule, Secret, Zone,
    check::Check,
    yaml::{Checks, Spot},
};

/// The weekly digest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportSection {
    /// The language: `en` (default) or `zh-CN`.
    pub language: Language,
    /// The zone of its weeks and of its schedule.
    pub timezone: Zone,
    /// When it is sent.
    pub schedule: Schedule,
    /// Who receives the whole fleet's digest. Empty: it is not sent.
    pub to: Vec<Mailbox>,
    /// The sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Mailbox>,
    /// Where answers go, if not to the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Mailbox>,
    /// Owners who receive a digest of their own instances.
    pub routes: Vec<Route>,
    /// Who receives the digest of instances whose owner has no route.
    pub fallback_to: Vec<Mailbox>,
    /// The mail server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smtp: Option<Smtp>,
}

/// Recipients of one owner's digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The owner, as the `owner` label has it.
    pub owner: String,
    /// Who receives it.
    pub to: Vec<Mailbox>,
    /// The language, if not the report's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

/// A mail server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// Its name or address.
    pub host: String,
    /// Its port: 587 with `starttls`, 465 with `tls`, 25 with `none`, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How the connection is secured.
    #[serde(default)]
    pub tls: SmtpTls,
    /// The user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Secret::is_not_written")]
    pub password: Option<Secret>,
    /// A file that holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// A mail that the server does not take within this time has failed.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
}

/// How a connection to a mail server is secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SmtpTls {
    /// In the clear first, then secured; refused if the server cannot.
    #[default]
    StartTls,
    /// Secured from the first byte.
    Tls,
    /// In the clear.
    None,
}

fn default_timeout() -> Period {
    Period::seconds(30)
}

impl Smtp {
    /// The port to connect to.
    #[must_use]
    pub fn effective_port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            SmtpTls::StartTls => 587,
            SmtpTls::Tls => 465,
            SmtpTls::None => 25,
        })
    }
}

impl ReportSection {
    /// Whether anybody is to receive a digest.
    #[must_use]
    pub fn has_recipients(&self) -> bool {
        !(self.to.is_empty() && self.routes.is_empty() && self.fallback_to.is_empty())
    }
}

impl Check for ReportSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        for key in ["to", "routes", "fallback_to"] {
            let recipients = spot.key(key);
            if recipients.is_given() && !recipients.is_empty_list() {
                if !spot.key("from").is_given() {
                    checks.problem(
                        &recipients,
                        "recipients without a sender",
                        "add from: \"gpuwatch <gpuwatch@example.com>\"",
                    );
                    break;
                }
                if !spot.key("smtp").is_given() {
                    checks.warn_of(
                        &recipients,
                        "the digest cannot be sent without a mail server",
                        "add smtp",
                    );
                    break;
                }
            }
        }
        let routes = spot.key("routes");
        checks.unique_by(&routes, "owner", self.routes.iter().map(|route| route.owner.trim()));
        for (index, route) in self.routes.iter().enumerate() {
            let spot = routes.item(index);
            if route.owner.trim().is_empty() {
                checks.problem(&spot.key("owner"), "an empty owner", "write a value of the owner label");
            }
            if spot.key("to").is_empty_list() {
                checks.problem(
                    &spot.key("to"),
                    "a route without recipients",
                    "add an address, or remove the route",
                );
            }
        }
        if let Some(smtp) = &mut self.smtp {
            smtp.check(&spot.key("smtp"), checks);
        }
    }
}

impl Check for Smtp {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let is_host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        if self.host.is_empty() || !self.host.chars().all(is_host) {
            checks.bad_value(
                &spot.key("host"),
                "not a host name",
                "write the server's name alone, and its port under port",
            );
        }
        if self.port == Some(0) {
            checks.bad_value(&spot.key("port"), "not a port", "write a number from 1 to 65535");
        }
        checks.secret(spot, "password", &mut self.password, &mut self.password_file);
        let username = spot.key("username");
        let password = ["password", "password_file"]
            .into_iter()
            .map(|key| spot.key(key))
            .find(Spot::is_given);
        match password {
            Some(password) if !username.is_given() => {
                checks.problem(&password, "a password without username", "add username");
            }
            None if username.is_given() => {
                checks.problem(
                    &username,
                    "a username without password",
                    "add password_file or password",
                );
            }
            Some(_) if self.tls == SmtpTls::None => {
                let fix = "write starttls or tls, unless the server is on this machine";
                checks.warn_of(&spot.key("tls"), "the password is sent in the clear", fix);
            }
            _ => {}
        }
    }
}
