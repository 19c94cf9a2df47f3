//! Who may call: access tokens, service accounts with their keys, users,
//! workload identities and the machine's own account.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::World;

/// The scope that allows everything.
pub(crate) const CLOUD_PLATFORM: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A caller that has been recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// E-mail address; empty for an anonymous caller.
    pub(crate) email: String,
    /// OAuth scopes of the token.
    pub(crate) scopes: Vec<String>,
}

impl Caller {
    /// Somebody without credentials, where those are not asked for.
    pub(crate) fn anonymous() -> Self {
        Self {
            email: String::new(),
            scopes: vec![CLOUD_PLATFORM.to_owned()],
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) caller: Caller,
    pub(crate) expires: Timestamp,
}

/// Credentials of a user, as the command line tool leaves them behind.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) email: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
}

/// An identity of another provider that may call as a service account.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) audience: String,
    pub(crate) principal: String,
}

#[derive(Debug)]
pub(crate) struct Identity {
    /// Whether calls without a token are refused.
    pub(crate) required: bool,
    pub(crate) tokens: BTreeMap<String, Token>,
    /// Seconds for which new tokens are valid.
    pub(crate) lifetime: i64,
    /// E-mail address → key id → public key.
    pub(crate) accounts: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// By refresh token.
    pub(crate) users: BTreeMap<String, User>,
    /// By subject token.
    pub(crate) subjects: BTreeMap<String, Subject>,
    /// The account and scopes that the metadata server hands out.
    pub(crate) machine: Option<Caller>,
    /// Resource and permission.
    pub(crate) denied: BTreeSet<(String, String)>,
    random: Random,
}

/// A key of a service account, as its owner downloads it.
#[derive(Clone)]
pub struct ServiceAccountKey {
    email: String,
    project: String,
    key_id: String,
    /// PKCS#8 in PEM.
    private_key: String,
}

impl std::fmt::Debug for ServiceAccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccountKey")
            .field("email", &self.email)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

impl ServiceAccountKey {
    /// The account's e-mail address.
    pub fn email(&self) -> &str {
        &self.email
    }

    /// The key file, with tokens to be had from `{base_url}/token`.
    pub fn json(&self, base_url: &str) -> Value {
        json!({
            "type": "service_account",
            "project_id": self.project,
            "private_key_id": self.key_id,
            "private_key": self.private_key,
            "client_email": self.email,
            "client_id": "100000000000000000001",
            "auth_uri": format!("{base_url}/o/oauth2/auth"),
            "token_uri": format!("{base_url}/token"),
            "universe_domain": "googleapis.com",
        })
    }
}

impl Identity {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            required: false,
            tokens: BTreeMap::new(),
            lifetime: 3_600,
            accounts: BTreeMap::new(),
            users: BTreeMap::new(),
            subjects: BTreeMap::new(),
            machine: None,
            denied: BTreeSet::new(),
            random: Random::stream(seed, "gcp tokens"),
        }
    }

    /// A new access token and the seconds for which it is valid.
    pub(crate) fn issue(&mut self, caller: Caller, now: Timestamp, seconds: Option<i64>) -> (String, i64) {
        let seconds = seconds.map_or(self.lifetime, |asked| asked.min(self.lifetime));
        let token = format!("ya29.fake-{}", self.random.hex(32));
        let expires = now + SignedDuration::from_secs(seconds);
        // Tokens that are long gone need not be told from unknown ones.
        self.tokens
            .retain(|_, token| now.duration_since(token.expires) < SignedDuration::from_hours(1));
        self.tokens.insert(token.clone(), Token { caller, expires });
        (token, seconds)
    }

    /// Whether `permission` on `resource` is taken away.
    pub(crate) fn denies(&self, resource: &str, permission: &str) -> bool {
        self.denied.contains(&(resource.to_owned(), permission.to_owned()))
    }
}

impl World {
    /// Whether calls without a token are refused from now on. A token that is
    /// sent is checked in any case.
    pub fn require_token(&self, required: bool) {
        self.write().identity.required = required;
    }

    /// A bearer token that works for so many seconds; one that has expired
    /// already when negative.
    pub fn issue_token(&self, seconds: i64) -> String {
        self.issue_token_with_scopes(seconds, &[CLOUD_PLATFORM])
    }

    /// As [`World::issue_token`], for these OAuth scopes only.
    pub fn issue_token_with_scopes(&self, seconds: i64, scopes: &[&str]) -> String {
        let caller = Caller {
            email: "tester@example.com".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        };
        let now = Timestamp::now();
        let mut inner = self.write();
        let (token, _) = inner.identity.issue(caller, now, None);
        if let Some(issued) = inner.identity.tokens.get_mut(&token) {
            issued.expires = now + SignedDuration::from_secs(seconds);
        }
        token
    }

    /// Seconds for which tokens are valid that the token endpoints and the
    /// metadata server hand out; an hour unless set.
    pub fn set_token_lifetime(&self, seconds: i64) {
        self.write().identity.lifetime = seconds;
    }

    /// Every token handed out so far has expired. Keys still work.
    pub fn expire_tokens(&self) {
        let now = Timestamp::now();
        for token in self.write().identity.tokens.values_mut() {
            token.expires = now;
        }
    }

    /// A service account with a new key; `None` when no key can be made.
    /// An account may have several keys.
    pub fn add_service_account(&self, email: &str, project: &str) -> Option<ServiceAccountKey> {
        let pair = KeyPair::generate(KeySize::Rsa2048).ok()?;
        let der: Pkcs8V1Der<'_> = pair.as_der().ok()?;
        let mut inner = self.write();
        let key_id = inner.identity.random.hex(40);
        let keys = inner.identity.accounts.entry(email.to_owned()).or_default();
        keys.insert(key_id.clone(), pair.public_key().as_ref().to_vec());
        Some(ServiceAccountKey {
            email: email.to_owned(),
            project: project.to_owned(),
            key_id,
            private_key: pem(der.as_ref()),
        })
    }

    /// Revokes every key of a service account, which stays.
    pub fn revoke_keys(&self, email: &str) {
        if let Some(keys) = self.write().identity.accounts.get_mut(email) {
            keys.clear();
        }
    }

    /// A service account that can be acted as, without a key.
    pub fn add_keyless_service_account(&self, email: &str) {
        self.write().identity.accounts.entry(email.to_owned()).or_default();
    }

    /// A user's credentials file, with tokens to be had from `{base_url}/token`.
    pub fn add_user(&self, email: &str, base_url: &str) -> Value {
        let identity = &mut self.write().identity;
        let user = User {
            email: email.to_owned(),
            client_id: "fake-client.apps.googleusercontent.com".to_owned(),
            client_secret: identity.random.hex(24),
        };
        let refresh_token = format!("1//fake-{}", identity.random.hex(24));
        let file = json!({
            "type": "authorized_user",
            "client_id": user.client_id,
            "client_secret": user.client_secret,
            "refresh_token": refresh_token,
            "token_uri": format!("{base_url}/token"),
            "universe_domain": "googleapis.com",
        });
        identity.users.insert(refresh_token, user);
        file
    }

    /// A workload of another provider: `subject_token` is what that provider
    /// hands out. Returns the credentials file, which reads the subject token
    /// from `token_file` and acts as `impersonate`, if given.
    pub fn add_workload(
        &self,
        subject_token: &str,
        token_file: &str,
        base_url: &str,
        impersonate: Option<&str>,
    ) -> Value {
        let audience =
            "//iam.googleapis.com/projects/100000007919/locations/global/workloadIdentityPools/pool/providers/oidc";
        let subject = Subject {
            audience: audience.to_owned(),
            principal: "principal://iam.googleapis.com/pool/subject/gpuwatch".to_owned(),
        };
        self.write().identity.subjects.insert(subject_token.to_owned(), subject);
        let mut file = json!({
            "type": "external_account",
            "audience": audience,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": format!("{base_url}/v1/token"),
            "credential_source": { "file": token_file },
            "universe_domain": "googleapis.com",
        });
        if let (Some(email), Some(fields)) = (impersonate, file.as_object_mut()) {
            let url = format!("{base_url}/v1/projects/-/serviceAccounts/{email}:generateAccessToken");
            fields.insert("service_account_impersonation_url".to_owned(), Value::from(url));
        }
        file
    }

    /// The metadata server hands out tokens of this service account, with no
    /// other scopes than these; all when empty.
    pub fn set_machine_account(&self, email: &str, scopes: &[&str]) {
        let scopes = if scopes.is_empty() { &[CLOUD_PLATFORM] } else { scopes };
        let caller = Caller {
            email: email.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        };
        self.write().identity.machine = Some(caller);
    }
}

fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while let Some((line, tail)) = rest.split_at_checked(64) {
        pem.extend([line, "\n"]);
        rest = tail;
    }
    if !rest.is_empty() {
        pem.extend([rest, "\n"]);
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}
