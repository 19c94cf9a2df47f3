//! Identities and sessions.

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::world::{Inner, OWNER, ROLE, World};

/// `GetCallerIdentity`.
pub(crate) fn identity(account: &str) -> Value {
    json!({"AccountId": account, "Type": "CAMUser", "UserId": "100000009999", "Arn": format!("qcs::cam::uin/{account}:uin/1")})
}

/// Longest session that can be asked for, in seconds.
const LONGEST: i64 = 43_200;

/// `AssumeRole`.
pub(crate) fn assume_role(world: &World, body: &Value) -> Result<Value, ApiError> {
    let mut inner = world.write();
    let session = Session::read(&inner, body)?;
    if inner
        .external_id
        .as_deref()
        .is_some_and(|id| body["ExternalId"].as_str() != Some(id))
    {
        return Err(ApiError::new(
            "UnauthorizedOperation",
            "not authorized to assume this role: sts:AssumeRole",
        ));
    }
    Ok(granted(&mut inner, &session))
}

/// `AssumeRoleWithWebIdentity`: the token is the proof.
pub(crate) fn assume_with_token(world: &World, body: &Value) -> Result<Value, ApiError> {
    let mut inner = world.write();
    if body["ProviderId"].as_str().is_none_or(str::is_empty) {
        return Err(ApiError::new("MissingParameter", "The request is missing ProviderId."));
    }
    let is_token = |token: &str| token.split('.').filter(|part| !part.is_empty()).count() == 3;
    if !body["WebIdentityToken"].as_str().is_some_and(is_token) {
        return Err(ApiError::new(
            "InvalidParameter.WebIdentityTokenError",
            "The token is not valid.",
        ));
    }
    let session = Session::read(&inner, body)?;
    Ok(granted(&mut inner, &session))
}

/// What a role is assumed for.
struct Session {
    owner: String,
    seconds: Option<i64>,
}

impl Session {
    fn read(inner: &Inner, body: &Value) -> Result<Self, ApiError> {
        let arn = body["RoleArn"].as_str().unwrap_or_default();
        let owner = arn
            .strip_prefix("qcs::cam::uin/")
            .and_then(|rest| rest.split_once(":roleName/"));
        let Some((owner, _)) = owner.filter(|(owner, role)| *role == ROLE && inner.accounts.contains_key(*owner))
        else {
            return Err(ApiError::new(
                "ResourceNotFound.RoleNotFound",
                "The role does not exist.",
            ));
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
        let name = body["RoleSessionName"].as_str().unwrap_or_default();
        if !(2..=128).contains(&name.len()) || !name.chars().all(is_plain) {
            return Err(ApiError::new(
                "InvalidParameter.ParamError",
                "RoleSessionName is not valid.",
            ));
        }
        let seconds = match &body["DurationSeconds"] {
            Value::Null => None,
            value => Some(
                value
                    .as_i64()
                    .filter(|seconds| (1..=LONGEST).contains(seconds))
                    .ok_or_else(|| ApiError::new("InvalidParameter.OverTimeError", "DurationSeconds is not valid."))?,
            ),
        };
        Ok(Self {
            owner: owner.to_owned(),
            seconds,
        })
    }
}

fn granted(inner: &mut Inner, session: &Session) -> Value {
    let (id, key) = inner.open_session(&session.owner, session.seconds);
    let end = key.ends.map(jiff::Timestamp::as_second);
    json!({
        "Credentials": {"TmpSecretId": id, "TmpSecretKey": key.secret, "Token": key.token},
        "ExpiredTime": end,
        "Expiration": key.ends.map(|end| end.to_string()),
    })
}

/// The metadata service: the name of the role, or its keys.
pub(crate) fn metadata(world: &World, path: &str) -> Option<String> {
    let name = path
        .strip_prefix("/latest/meta-data/cam/security-credentials")?
        .trim_matches('/');
    let mut inner = world.write();
    let role = inner.machine_role.clone()?;
    if name.is_empty() {
        return Some(role);
    }
    if name != role {
        return None;
    }
    let (id, key) = inner.open_session(OWNER, None);
    let answer = json!({
        "TmpSecretId": id, "TmpSecretKey": key.secret, "Token": key.token, "Code": "Success",
        "ExpiredTime": key.ends.map(jiff::Timestamp::as_second),
        "Expiration": key.ends.map(|end| end.to_string()),
    });
    Some(answer.to_string())
}
