//! Tokens: who gets one, and who is let in with one.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::Incoming;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::world::{ACCESS_TOKEN, Inner, PUBLIC, TENANT, World};

/// Versions of a machine's metadata service that have tokens.
const METADATA_VERSIONS: [&str; 4] = ["2018-02-01", "2019-08-01", "2020-09-01", "2021-02-01"];

/// Resources beside Resource Manager; their tokens do not open it.
const OTHERS: [&str; 3] = [
    "https://graph.microsoft.com",
    "https://metrics.monitor.azure.com",
    "https://vault.azure.net",
];

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
    let Some(issued) = inner.tokens.get(token) else {
        return Err(ArmError::token(
            "InvalidAuthenticationToken",
            "The access token is invalid.",
        ));
    };
    let allowed = audiences(inner);
    if !allowed.contains(&issued.audience) {
        let message = format!(
            "The access token has been obtained for wrong audience or resource '{}'. It should exactly match with one \
             of the allowed audiences '{}'.",
            issued.audience,
            allowed.join("','")
        );
        return Err(ArmError::token("InvalidAuthenticationTokenAudience", &message));
    }
    if issued.ends < Timestamp::now() {
        return Err(ArmError::token(
            "ExpiredAuthenticationToken",
            "The access token expiry has passed.",
        ));
    }
    Ok(())
}

/// The audiences that Resource Manager accepts, with and without a slash at
/// the end.
fn audiences(inner: &Inner) -> Vec<String> {
    let mut all = vec![inner.audience.clone()];
    if inner.audience == PUBLIC {
        all.push("https://management.core.windows.net".to_owned());
    }
    all.iter().flat_map(|own| [own.clone(), format!("{own}/")]).collect()
}

/// Whether anybody in this cloud has tokens for a resource.
fn is_resource(inner: &Inner, resource: &str) -> bool {
    audiences(inner).iter().any(|own| own == resource) || OTHERS.contains(&resource.trim_end_matches('/'))
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
    // Another cloud's Resource Manager is not known here.
    let audience = get("scope").strip_suffix("/.default").unwrap_or_default();
    if !is_resource(&inner, audience) {
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
        Some(true) => Ok(granted(&mut inner, audience)),
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
    let get = |name: &str| query.get(name).map_or("", String::as_str);
    let mut inner = world.write();
    if request.header("metadata") != Some("true") {
        return Err(ArmError::of_machine("Required metadata header not specified"));
    }
    if !METADATA_VERSIONS.contains(&get("api-version")) {
        return Err(ArmError::of_machine("api-version is invalid or was not specified"));
    }
    let resource = get("resource");
    if !is_resource(&inner, resource) {
        return Err(ArmError::sign_in(
            500_011,
            "invalid_resource",
            "The resource principal was not found in the tenant.",
        ));
    }
    if !inner.has_machine_identity {
        return Err(ArmError::of_machine("Identity not found"));
    }
    let mut granted = granted(&mut inner, resource);
    // This service writes its numbers as texts.
    let seconds = inner.token_lifetime.as_secs();
    granted["expires_in"] = json!(seconds.to_string());
    granted["expires_on"] = json!((Timestamp::now().as_second() + seconds).to_string());
    granted["resource"] = json!(resource);
    Ok(granted)
}

fn granted(inner: &mut Inner, audience: &str) -> Value {
    let seconds = inner.token_lifetime.as_secs();
    json!({
        "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": inner.issue(audience),
    })
}
