//! Keys, sessions, roles and who they stand for.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};

use super::{Inner, World};
use crate::error::ApiError;

/// Access key id of the base credentials.
pub const ACCESS_KEY_ID: &str = "LTAI5tEXAMPLEfakecloud00";

/// Secret of the base credentials. It opens nothing but this fake.
pub const ACCESS_KEY_SECRET: &str = "fakecloudExampleSecret00000000";

/// The service refuses a nonce that it saw within this time, and signatures
/// that are further from its clock.
pub(crate) const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(15);

/// Credentials in the form in which a client takes them.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Access key id.
    pub access_key_id: String,
    /// Access key secret.
    pub access_key_secret: String,
    /// Security token of temporary credentials.
    pub security_token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// What kind of identity calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Principal {
    RamUser,
    AssumedRole,
}

/// The identity behind a key.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account: String,
    pub(crate) arn: String,
    pub(crate) user_id: String,
    pub(crate) principal: Principal,
}

/// What is known about an access key.
#[derive(Clone)]
pub(crate) struct KeyData {
    pub(crate) keys: Keys,
    /// `None` for keys that live until they are deleted.
    pub(crate) expires: Option<Timestamp>,
    pub(crate) active: bool,
    pub(crate) caller: Caller,
}

impl fmt::Debug for KeyData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyData")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// A request for a session.
pub(crate) struct RoleRequest<'a> {
    pub(crate) role_arn: &'a str,
    pub(crate) session_name: &'a str,
    pub(crate) external_id: Option<&'a str>,
    /// Whether the proof is a token of an identity provider, which trusts
    /// without an external id.
    pub(crate) by_provider: bool,
    pub(crate) lifetime: SignedDuration,
}

/// The machine's own role and how the metadata service tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata {
    /// Account and role name.
    pub(crate) role: Option<(String, String)>,
    pub(crate) tokens_required: bool,
    pub(crate) tokens: Vec<String>,
}

impl World {
    /// The base credentials.
    #[must_use]
    pub fn base_keys(&self) -> Keys {
        Keys {
            access_key_id: ACCESS_KEY_ID.to_owned(),
            access_key_secret: ACCESS_KEY_SECRET.to_owned(),
            security_token: None,
        }
    }

    /// A further access key of a RAM user of an account.
    #[must_use]
    pub fn add_access_key(&self, account: &str) -> Keys {
        let mut inner = self.write();
        let keys = Keys {
            access_key_id: format!("LTAI5t{}", inner.ids.hex(18)),
            access_key_secret: inner.ids.hex(30),
            security_token: None,
        };
        inner.add_key(keys.clone(), user(account), None);
        keys
    }

    /// Temporary keys of a role of an account, as `AssumeRole` gives them out.
    #[must_use]
    pub fn session(&self, account: &str, lifetime: SignedDuration) -> Keys {
        let expires = self.now().checked_add(lifetime).unwrap_or_else(|_| self.now());
        let mut inner = self.write();
        let caller = assumed(account, "gpuwatch", "session");
        inner.add_session(caller, expires).keys
    }

    /// Disables an access key, or enables it again.
    pub fn set_key_active(&self, access_key_id: &str, active: bool) {
        if let Some(key) = self.write().keys.get_mut(access_key_id) {
            key.active = active;
        }
    }

    /// Deletes an access key.
    pub fn remove_key(&self, access_key_id: &str) {
        self.write().keys.remove(access_key_id);
    }

    /// The longest a new session lives, whatever is asked for; a shorter life
    /// than the service's minimum is how tests see credentials expire.
    pub fn set_session_limit(&self, limit: SignedDuration) {
        self.write().session_limit = Some(limit);
    }

    /// Ends all sessions at once: their keys answer as expired.
    pub fn expire_sessions(&self) {
        for key in self.write().keys.values_mut().filter(|key| key.expires.is_some()) {
            key.expires = Some(Timestamp::UNIX_EPOCH);
        }
    }

    /// A token of the identity provider that roles with a service account
    /// trust, valid for `lifetime`.
    #[must_use]
    pub fn oidc_token(&self, lifetime: SignedDuration) -> String {
        let expires = self.now().checked_add(lifetime).unwrap_or_else(|_| self.now());
        let mut inner = self.write();
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let claims = format!(
            "{{\"iss\":\"https://oidc.example.com\",\"aud\":[\"sts.aliyuncs.com\"],\"exp\":{}}}",
            expires.as_second()
        );
        let signature = inner.ids.hex(64);
        let token = format!("{}.{}.{}", part("{\"alg\":\"RS256\"}"), part(&claims), part(&signature));
        inner.oidc_tokens.insert(token.clone(), expires);
        token
    }

    /// Gives the machine that asks the metadata service a role.
    pub fn set_metadata_role(&self, account: &str, role: &str) {
        self.write().metadata.role = Some((account.to_owned(), role.to_owned()));
    }

    /// Makes the metadata service refuse calls without a token.
    pub fn require_metadata_tokens(&self, required: bool) {
        self.write().metadata.tokens_required = required;
    }

    pub(crate) fn metadata(&self) -> Metadata {
        self.read().metadata.clone()
    }

    pub(crate) fn new_metadata_token(&self) -> String {
        let mut inner = self.write();
        let token = STANDARD.encode(inner.ids.hex(24));
        let tokens = &mut inner.metadata.tokens;
        tokens.push(token.clone());
        // Old ones are forgotten, or a fake that runs for days keeps them all.
        let surplus = tokens.len().saturating_sub(100);
        tokens.drain(..surplus);
        token
    }

    /// Keys of the machine's role.
    pub(crate) fn metadata_session(&self, account: &str, role: &str) -> KeyData {
        let now = self.now();
        let mut inner = self.write();
        let lifetime = inner.session_limit.unwrap_or(SignedDuration::from_hours(6));
        let expires = now.checked_add(lifetime).unwrap_or(now);
        inner.add_session(assumed(account, role, "i-bp1fakecloudmachine"), expires)
    }

    pub(crate) fn key(&self, access_key_id: &str) -> Option<KeyData> {
        self.read().keys.get(access_key_id).cloned()
    }

    /// Whether the nonce is new; it is not afterwards.
    pub(crate) fn use_nonce(&self, access_key_id: &str, nonce: &str) -> bool {
        let now = Timestamp::now();
        let mut inner = self.write();
        while let Some((at, _)) = inner.nonce_order.front() {
            if now.duration_since(*at) <= MAX_CLOCK_SKEW {
                break;
            }
            if let Some((_, old)) = inner.nonce_order.pop_front() {
                inner.nonces.remove(&old);
            }
        }
        let nonce = format!("{access_key_id}\n{nonce}");
        let new = inner.nonces.insert(nonce.clone());
        if new {
            inner.nonce_order.push_back((now, nonce));
        }
        new
    }

    /// Whether a token of the identity provider proves anything.
    pub(crate) fn check_oidc_token(&self, token: &str) -> Result<(), ApiError> {
        let now = self.now();
        match self.read().oidc_tokens.get(token) {
            Some(expires) if *expires > now => Ok(()),
            Some(_) => Err(ApiError::new(
                "AuthenticationFail.OIDCToken.Expired",
                400,
                "This JSON Web Token has expired.",
            )),
            None => Err(ApiError::new(
                "AuthenticationFail.OIDCToken.Invalid",
                400,
                "The specified OIDC token is invalid.",
            )),
        }
    }

    /// A session in the role's account.
    pub(crate) fn assume_role(&self, request: &RoleRequest<'_>) -> Result<KeyData, ApiError> {
        let now = self.now();
        let mut inner = self.write();
        let no_role = || {
            let message = format!("The role not exists: {}.", request.role_arn);
            ApiError::new("EntityNotExist.Role", 404, message)
        };
        let parts = request.role_arn.strip_prefix("acs:ram::");
        let (account, role) = parts.and_then(|rest| rest.split_once(":role/")).ok_or_else(no_role)?;
        let data = inner.accounts.get(account).ok_or_else(no_role)?;
        let roles = data.spec.roles.as_ref();
        if role.is_empty() || !roles.is_none_or(|roles| roles.iter().any(|name| name == role)) {
            return Err(no_role());
        }
        let trusted = data.spec.external_id.is_none() || data.spec.external_id.as_deref() == request.external_id;
        if !trusted && !request.by_provider {
            return Err(ApiError::not_trusted());
        }
        let lifetime = inner.session_limit.unwrap_or(request.lifetime).min(request.lifetime);
        let expires = now.checked_add(lifetime).unwrap_or(now);
        Ok(inner.add_session(assumed(account, role, request.session_name), expires))
    }
}

impl Inner {
    pub(crate) fn add_base_key(&mut self, account: &str) {
        let keys = Keys {
            access_key_id: ACCESS_KEY_ID.to_owned(),
            access_key_secret: ACCESS_KEY_SECRET.to_owned(),
            security_token: None,
        };
        self.add_key(keys, user(account), None);
    }

    fn add_session(&mut self, caller: Caller, expires: Timestamp) -> KeyData {
        // Sessions that ended long ago are forgotten, or a fake that runs for
        // days would keep them all; one just ended must still say so.
        let forgotten = expires.checked_sub(SignedDuration::from_hours(48)).unwrap_or(expires);
        self.keys.retain(|_, key| {
            key.expires
                .is_none_or(|at| at == Timestamp::UNIX_EPOCH || at > forgotten)
        });
        let token = STANDARD.encode(format!("CAIS+{}", self.ids.hex(120)));
        let keys = Keys {
            access_key_id: format!("STS.NT{}", self.ids.hex(20)),
            access_key_secret: self.ids.hex(44),
            security_token: Some(token),
        };
        self.add_key(keys, caller, Some(expires))
    }

    fn add_key(&mut self, keys: Keys, caller: Caller, expires: Option<Timestamp>) -> KeyData {
        let data = KeyData {
            keys,
            expires,
            active: true,
            caller,
        };
        self.keys.insert(data.keys.access_key_id.clone(), data.clone());
        data
    }
}

fn user(account: &str) -> Caller {
    Caller {
        account: account.to_owned(),
        arn: format!("acs:ram::{account}:user/gpuwatch"),
        user_id: "216000000000000001".to_owned(),
        principal: Principal::RamUser,
    }
}

fn assumed(account: &str, role: &str, session: &str) -> Caller {
    Caller {
        account: account.to_owned(),
        arn: format!("acs:ram::{account}:assumed-role/{role}/{session}"),
        user_id: format!("316000000000000001:{session}"),
        principal: Principal::AssumedRole,
    }
}
