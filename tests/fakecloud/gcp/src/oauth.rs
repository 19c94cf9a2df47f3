//! The token endpoints: for service accounts and users, and the exchange for
//! identities of other providers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::auth::verify;
use crate::error::{ApiError, oauth};
use crate::route::Service;
use crate::service::Call;
use crate::world::{Caller, Inner};

const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

type Form = BTreeMap<String, String>;

/// `POST /token`.
pub(crate) fn token(call: &Call<'_>) -> Result<Value, ApiError> {
    let form = form(call);
    let mut inner = call.world.write();
    let caller = match field(&form, "grant_type")? {
        JWT_GRANT => signed(call, &inner, &form)?,
        "refresh_token" => refreshed(&inner, &form)?,
        other => {
            let why = format!("Invalid grant_type: {other}");
            return Err(oauth("unsupported_grant_type", &why));
        }
    };
    let (token, seconds) = inner.identity.issue(caller, call.now, None);
    Ok(json!({ "access_token": token, "expires_in": seconds, "token_type": "Bearer" }))
}

fn signed(call: &Call<'_>, inner: &Inner, form: &Form) -> Result<Caller, ApiError> {
    let assertion = verify(&inner.identity, field(form, "assertion")?, call.now)
        .ok_or_else(|| oauth("invalid_grant", "Invalid JWT Signature."))?;
    if assertion.scope.is_none() {
        return Err(oauth(
            "invalid_scope",
            "Invalid OAuth scope or ID token audience provided.",
        ));
    }
    if !assertion.aud.as_deref().is_some_and(|aud| aud.ends_with("/token")) {
        return Err(oauth("invalid_grant", "Invalid JWT: Failed audience check."));
    }
    Ok(assertion.caller(Service::OAuth))
}

fn refreshed(inner: &Inner, form: &Form) -> Result<Caller, ApiError> {
    let expired = || oauth("invalid_grant", "Token has been expired or revoked.");
    let user = inner
        .identity
        .users
        .get(field(form, "refresh_token")?)
        .ok_or_else(expired)?;
    let client = (field(form, "client_id")?, field(form, "client_secret")?);
    if client != (user.client_id.as_str(), user.client_secret.as_str()) {
        return Err(ApiError::new(401, "", "invalid_client", "Unauthorized"));
    }
    Ok(Caller {
        email: user.email.clone(),
        ..Caller::anonymous()
    })
}

/// `POST /v1/token` of the security token service.
pub(crate) fn exchange(call: &Call<'_>) -> Result<Value, ApiError> {
    let form = form(call);
    if field(&form, "grant_type")? != EXCHANGE_GRANT {
        return Err(oauth("unsupported_grant_type", "Invalid grant type."));
    }
    if field(&form, "requested_token_type")? != ACCESS_TOKEN {
        return Err(oauth("invalid_request", "Invalid requested token type."));
    }
    let scope = field(&form, "scope")?;
    field(&form, "subject_token_type")?;
    let mut inner = call.world.write();
    let subject = inner.identity.subjects.get(field(&form, "subject_token")?);
    let subject = subject.ok_or_else(|| oauth("invalid_grant", "The given credential is rejected."))?;
    if field(&form, "audience")? != subject.audience {
        return Err(oauth(
            "invalid_target",
            "The target service indicated by the \"audience\" parameters is invalid.",
        ));
    }
    let caller = Caller {
        email: subject.principal.clone(),
        scopes: scope.split(' ').map(str::to_owned).collect(),
    };
    let (token, seconds) = inner.identity.issue(caller, call.now, None);
    Ok(json!({
        "access_token": token,
        "issued_token_type": ACCESS_TOKEN,
        "token_type": "Bearer",
        "expires_in": seconds,
    }))
}

/// The body, as a form or, from clients that prefer it, as JSON.
fn form(call: &Call<'_>) -> Form {
    let json: Option<Form> = serde_json::from_slice(call.body).ok();
    json.unwrap_or_else(|| url::form_urlencoded::parse(call.body).into_owned().collect())
}

fn field<'a>(form: &'a Form, name: &str) -> Result<&'a str, ApiError> {
    let value = form.get(name).map(String::as_str).filter(|value| !value.is_empty());
    value.ok_or_else(|| oauth("invalid_request", &format!("Missing required parameter: {name}")))
}
