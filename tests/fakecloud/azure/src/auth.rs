//! Tokens: who gets one, and who is let in with one.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::Incoming;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::world::{ACCESS_TOKEN, Inner, TENANT, World};

/// Checks the bearer token of a call.
pub(crate) fn check(inner: &Inner, request: &Incoming) -> Result<(), ArmError> {
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let Some(token) = token else {
        return Err(ArmError::token(
            "AuthenticationFailed",
            "Authentication failed. The 'Authorization' header is missing.",
        ));
    };
    if token == ACCESS_TOKEN {
        return Ok(());
    }
    match inner.tokens.get(token) {
        None => Err(ArmError::token(
            "InvalidAuthenticationToken",
            "The access token is invalid.",
        )),
        Some(end) if *end < Timestamp::now() => Err(ArmError::token(
            "ExpiredAuthenticationToken",
            "The access token expiry has passed.",
        )),
        Some(_) => Ok(()),
    }
}

/// Pairs of a query or form.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// `POST /{tenant}/oauth2/v2.0/token`.
pub(crate) fn token(world: &World, tenant: &str, form: &BTreeMap<String, String>) -> Result<Value, ArmError> {
    let get = |name: &str| form.get(name).map_or("", String::as_str);
    let mut inner = world.write();
    if !tenant.eq_ignore_ascii_case(TENANT) {
        return Err(ArmError::sign_in(90002, "invalid_request", "Tenant not found."));
    }
    if get("grant_type") != "client_credentials" {
        return Err(ArmError::sign_in(
            70003,
            "unsupported_grant_type",
            "The grant type is not supported.",
        ));
    }
    // A token for another cloud's Resource Manager does not open this one.
    if get("scope") != format!("{}/.default", inner.audience) {
        return Err(ArmError::sign_in(
            500_011,
            "invalid_resource",
            "The resource principal was not found in the tenant.",
        ));
    }
    let Some(secret) = inner.clients.get(get("client_id")) else {
        return Err(ArmError::sign_in(
            700_016,
            "unauthorized_client",
            "Application was not found in the directory.",
        ));
    };
    let by_secret = form.get("client_secret").map(|given| given == secret);
    let by_assertion = form.get("client_assertion").map(|given| {
        let is_jwt = get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        is_jwt && !given.is_empty()
    });
    match by_secret.or(by_assertion) {
        Some(true) => Ok(granted(&mut inner)),
        Some(false) => Err(ArmError::sign_in(
            7_000_215,
            "invalid_client",
            "Invalid client secret provided.",
        )),
        None => Err(ArmError::sign_in(
            7_000_216,
            "invalid_request",
            "client_assertion or client_secret is required.",
        )),
    }
}

/// `GET /metadata/identity/oauth2/token`.
pub(crate) fn of_machine(world: &World, request: &Incoming) -> Result<Value, ArmError> {
    let query = pairs(request.uri.query().unwrap_or_default());
    let mut inner = world.write();
    if request.header("metadata") != Some("true") {
        return Err(ArmError::bad_request("Required metadata header not specified"));
    }
    let resource = query.get("resource").map_or("", String::as_str);
    if resource.trim_end_matches('/') != inner.audience {
        return Err(ArmError::sign_in(
            500_011,
            "invalid_resource",
            "The resource principal was not found in the tenant.",
        ));
    }
    if !inner.has_machine_identity {
        return Err(ArmError::new(400, "invalid_request", "Identity not found"));
    }
    let mut granted = granted(&mut inner);
    // This service writes its numbers as texts.
    granted["expires_in"] = json!("3599");
    granted["expires_on"] = json!((Timestamp::now().as_second() + 3599).to_string());
    granted["resource"] = json!(resource);
    Ok(granted)
}

fn granted(inner: &mut Inner) -> Value {
    let seconds = inner.token_lifetime.as_secs();
    json!({
        "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": inner.issue(),
    })
}
