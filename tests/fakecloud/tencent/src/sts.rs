//! Identities and sessions.

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::world::{OWNER, World};

/// `GetCallerIdentity`.
pub(crate) fn identity(account: &str) -> Value {
    json!({"AccountId": account, "Type": "CAMUser", "UserId": "100000009999", "Arn": format!("qcs::cam::uin/{account}:uin/1")})
}

/// `AssumeRole`.
pub(crate) fn assume_role(world: &World, body: &Value) -> Result<Value, ApiError> {
    let arn = body["RoleArn"].as_str().unwrap_or_default();
    let mut inner = world.write();
    let owner = arn
        .strip_prefix("qcs::cam::uin/")
        .and_then(|rest| rest.split_once(":roleName/"));
    let Some((owner, _)) = owner.filter(|(owner, _)| inner.accounts.contains_key(*owner)) else {
        return Err(ApiError::new(
            "ResourceNotFound.RoleNotFound",
            "The role does not exist.",
        ));
    };
    if body["RoleSessionName"].as_str().is_none_or(str::is_empty) {
        return Err(ApiError::new(
            "MissingParameter",
            "The request is missing RoleSessionName.",
        ));
    }
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
    let owner = owner.to_owned();
    Ok(granted(&mut inner, &owner))
}

/// `AssumeRoleWithWebIdentity`: the token is the proof.
pub(crate) fn assume_with_token(world: &World, body: &Value) -> Result<Value, ApiError> {
    let mut inner = world.write();
    if body["WebIdentityToken"].as_str().is_none_or(str::is_empty) {
        return Err(ApiError::new(
            "InvalidParameter.WebIdentityTokenError",
            "The token is not valid.",
        ));
    }
    Ok(granted(&mut inner, OWNER))
}

fn granted(inner: &mut crate::world::Inner, account: &str) -> Value {
    let (id, key) = inner.open_session(account);
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
    let (id, key) = inner.open_session(OWNER);
    let answer = json!({
        "TmpSecretId": id, "TmpSecretKey": key.secret, "Token": key.token, "Code": "Success",
        "ExpiredTime": key.ends.map(jiff::Timestamp::as_second),
        "Expiration": key.ends.map(|end| end.to_string()),
    });
    Some(answer.to_string())
}
