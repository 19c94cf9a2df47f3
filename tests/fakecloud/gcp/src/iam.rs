//! Acting as a service account.

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::service::Call;
use crate::world::Caller;

/// Null stands for an empty list, as everywhere in Google's JSON.
#[derive(Deserialize)]
struct Request {
    scope: Option<Vec<String>>,
    lifetime: Option<String>,
    delegates: Option<Vec<String>>,
}

/// `serviceAccounts.generateAccessToken`.
pub(crate) fn generate_access_token(call: &Call<'_>) -> Result<Value, ApiError> {
    let request: Request = serde_json::from_slice(call.body)
        .map_err(|error| ApiError::invalid(format!("Invalid JSON payload received. {error}")))?;
    let scopes = request.scope.unwrap_or_default();
    let delegates = request.delegates.unwrap_or_default();
    if scopes.is_empty() {
        return Err(ApiError::invalid("Scope required."));
    }
    if let Some(bad) = delegates
        .iter()
        .find(|name| !name.starts_with("projects/-/serviceAccounts/"))
    {
        return Err(ApiError::invalid(format!("Invalid delegate: {bad}")));
    }
    let seconds = lifetime(request.lifetime.as_deref())?;
    let email = &call.route.subject;
    let mut inner = call.world.write();
    let resource = format!("projects/-/serviceAccounts/{email}");
    let unknown = !inner.identity.accounts.contains_key(email);
    if unknown {
        return Err(ApiError::not_found(format!(
            "Not found; Gaia id not found for email {email}"
        )));
    }
    let asked = [email.as_str()].into_iter().chain(delegates.iter().map(String::as_str));
    let refused = asked
        .map(|name| name.rsplit('/').next().unwrap_or(name))
        .any(|name| inner.identity.denies(name, call.route.permission));
    if refused {
        return Err(ApiError::denied(call.route.service, &resource, call.route.permission));
    }
    let caller = Caller {
        email: email.clone(),
        scopes,
    };
    let (token, seconds) = inner.identity.issue(caller, call.now, Some(seconds));
    let expires = call.now + SignedDuration::from_secs(seconds);
    let expires = expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Ok(json!({ "accessToken": token, "expireTime": expires }))
}

/// `3600s`; an hour unless given, and at most.
fn lifetime(text: Option<&str>) -> Result<i64, ApiError> {
    let Some(text) = text else { return Ok(3_600) };
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
    #[allow(clippy::cast_possible_truncation, reason = "within an hour")]
    match seconds {
        Some(seconds @ 1.0..=3_600.0) => Ok(seconds as i64),
        _ => Err(ApiError::invalid(format!("Invalid value for lifetime: {text}"))),
    }
}
