//! Keys, sessions and who they stand for.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::{AccountState, World};

/// Access key id of the base credentials.
pub const ACCESS_KEY_ID: &str = "AKIDEXAMPLEFAKECLOUD";

/// Secret of the base credentials. It opens nothing but this fake.
pub const SECRET_ACCESS_KEY: &str = "fakecloud/example/secret/access/key";

/// Credentials in the form in which a client takes them.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// The identity behind a key.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account: String,
    pub(crate) arn: String,
    pub(crate) user_id: String,
    pub(crate) is_session: bool,
}

/// What is known about an access key.
#[derive(Clone)]
pub(crate) struct AccessKey {
    pub(crate) secret: String,
    pub(crate) session_token: Option<String>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) caller: Caller,
}

/// Temporary credentials that were given out.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) keys: Keys,
    pub(crate) expires: Timestamp,
    pub(crate) caller: Caller,
}

/// A request for a session.
pub(crate) struct AssumeRole<'a> {
    pub(crate) role_arn: &'a str,
    pub(crate) session_name: &'a str,
    pub(crate) external_id: Option<&'a str>,
    pub(crate) lifetime: SignedDuration,
    pub(crate) now: Timestamp,
}

impl World {
    /// The base credentials.
    pub fn base_keys(&self) -> Keys {
        Keys {
            access_key_id: ACCESS_KEY_ID.to_owned(),
            secret_access_key: SECRET_ACCESS_KEY.to_owned(),
            session_token: None,
        }
    }

    /// The longest a new session lives, whatever its role allows; a shorter
    /// life than AWS's minimum is how tests see credentials expire.
    pub fn set_session_limit(&self, limit: SignedDuration) {
        self.write().session_limit = Some(limit);
    }

    /// Ends all sessions at once: their keys answer as expired.
    pub fn expire_sessions(&self) {
        for session in self.write().sessions.values_mut() {
            session.expires = Timestamp::UNIX_EPOCH;
        }
    }

    pub(crate) fn access_key(&self, access_key_id: &str) -> Option<AccessKey> {
        let inner = self.read();
        if access_key_id == ACCESS_KEY_ID {
            let account = inner.base_account.clone()?;
            let arn = format!("arn:{}:iam::{account}:user/gpuwatch", inner.partition);
            let caller = Caller {
                account,
                arn,
                user_id: "AIDAEXAMPLEFAKECLOUD".to_owned(),
                is_session: false,
            };
            let secret = SECRET_ACCESS_KEY.to_owned();
            return Some(AccessKey {
                secret,
                session_token: None,
                expires: None,
                caller,
            });
        }
        let session = inner.sessions.get(access_key_id)?;
        Some(AccessKey {
            secret: session.keys.secret_access_key.clone(),
            session_token: session.keys.session_token.clone(),
            expires: Some(session.expires),
            caller: session.caller.clone(),
        })
    }

    /// A session in the role's account; `None` when the role does not exist or
    /// does not trust the caller, which AWS does not tell apart.
    pub(crate) fn assume_role(&self, request: &AssumeRole<'_>) -> Option<Session> {
        let mut inner = self.write();
        let prefix = format!("arn:{}:iam::", inner.partition);
        let (account, role) = request.role_arn.strip_prefix(&prefix)?.split_once(":role/")?;
        let role_name = role.rsplit('/').next().filter(|name| !name.is_empty())?;
        let data = inner.accounts.get(account)?;
        let exists = data
            .spec
            .roles
            .as_ref()
            .is_none_or(|roles| roles.iter().any(|name| name == role_name));
        let trusted = data.spec.external_id.is_none() || data.spec.external_id.as_deref() == request.external_id;
        if data.account.state != AccountState::Active || !exists || !trusted {
            return None;
        }
        let caller = Caller {
            account: account.to_owned(),
            arn: format!(
                "arn:{}:sts::{account}:assumed-role/{role_name}/{}",
                inner.partition, request.session_name
            ),
            user_id: format!("AROAEXAMPLEFAKECLOUD:{}", request.session_name),
            is_session: true,
        };
        let lifetime = inner
            .session_limit
            .map_or(request.lifetime, |limit| limit.min(request.lifetime));
        let session = Session {
            keys: Keys {
                access_key_id: format!("ASIA{}", inner.ids.hex(16).to_uppercase()),
                secret_access_key: inner.ids.hex(40),
                session_token: Some(format!("fakecloud/{}", inner.ids.hex(120))),
            },
            expires: request.now.checked_add(lifetime).unwrap_or(request.now),
            caller,
        };
        // Sessions that ended long ago are forgotten, or a fake that runs for
        // days would keep them all; one just ended must still say so.
        let forgotten = request
            .now
            .checked_sub(SignedDuration::from_hours(1))
            .unwrap_or(request.now);
        inner
            .sessions
            .retain(|_, session| session.expires == Timestamp::UNIX_EPOCH || session.expires > forgotten);
        inner
            .sessions
            .insert(session.keys.access_key_id.clone(), session.clone());
        Some(session)
    }
}
