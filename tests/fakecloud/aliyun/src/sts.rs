//! STS: who is calling, and sessions in other accounts.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::request::Product;
use crate::service::{Call, UNSIGNED_ACTION};
use crate::world::{Principal, RoleRequest};

/// Shortest and, for roles that do not allow more, longest life of a session.
const LIFETIME: std::ops::RangeInclusive<i64> = 900..=3600;

pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    match call.action {
        "GetCallerIdentity" => caller_identity(call),
        "AssumeRole" => {
            call.authorize(Product::Sts)?;
            assume_role(call)
        }
        UNSIGNED_ACTION => {
            let provider = call.params.required("OIDCProviderArn")?;
            let (role_account, _) = call
                .params
                .required("RoleArn")?
                .split_once(":role/")
                .unwrap_or_default();
            if provider.split_once(":oidc-provider/").map(|(account, _)| account) != Some(role_account) {
                let message = "The OIDC provider does not exist.";
                return Err(ApiError::new("EntityNotExist.OIDCProvider", 404, message));
            }
            call.world.check_oidc_token(call.params.required("OIDCToken")?)?;
            assume_role(call)
        }
        other => Err(ApiError::unknown_action(other)),
    }
}

/// Needs no permission: whoever has keys may ask whose they are.
fn caller_identity(call: &Call<'_>) -> Result<Value, ApiError> {
    let caller = call.caller.ok_or_else(ApiError::unknown_key)?;
    let (kind, id) = match caller.principal {
        Principal::RamUser => ("RAMUser", "UserId"),
        Principal::AssumedRole => ("AssumedRoleUser", "RoleId"),
    };
    let (role, _) = caller.user_id.split_once(':').unwrap_or((&caller.user_id, ""));
    Ok(json!({
        "AccountId": caller.account,
        "Arn": caller.arn,
        "IdentityType": kind,
        "PrincipalId": caller.user_id,
        id: role,
    }))
}

fn assume_role(call: &Call<'_>) -> Result<Value, ApiError> {
    let params = call.params;
    let role_arn = params.required("RoleArn")?;
    let session_name = params.required("RoleSessionName")?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".@-_".contains(c);
    if !(2..=64).contains(&session_name.len()) || !session_name.chars().all(is_allowed) {
        return Err(ApiError::invalid("RoleSessionName"));
    }
    let external_id = params.given("ExternalId");
    if external_id.is_some_and(|id| !(2..=1224).contains(&id.chars().count())) {
        return Err(ApiError::invalid("ExternalId"));
    }
    let seconds = match params.given("DurationSeconds") {
        None => *LIFETIME.end(),
        Some(text) => text
            .parse()
            .ok()
            .filter(|seconds| LIFETIME.contains(seconds))
            .ok_or_else(|| ApiError::invalid("DurationSeconds"))?,
    };
    let session = call.world.assume_role(&RoleRequest {
        role_arn,
        session_name,
        external_id,
        by_provider: call.action == UNSIGNED_ACTION,
        lifetime: SignedDuration::from_secs(seconds),
    })?;
    let expires = session
        .expires
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Ok(json!({
        "Credentials": {
            "AccessKeyId": session.keys.access_key_id,
            "AccessKeySecret": session.keys.access_key_secret,
            "SecurityToken": session.keys.security_token,
            "Expiration": expires,
        },
        "AssumedRoleUser": {
            "Arn": session.caller.arn,
            "AssumedRoleId": session.caller.user_id,
        },
    }))
}
