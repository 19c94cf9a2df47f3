//! The role of the CVM instance this runs on, from its metadata service.

use gpuwatch_collector_core::{Call, CollectError, Context, Reason};
use gpuwatch_collector_rest::{Answer, Http, Origin, Request};
use http::Method;
use serde::Deserialize;

use crate::{
    api::METADATA_LIMIT,
    credentials::{Credentials, SecretText, temporary_keys},
    errors, loose,
};

const METADATA_URL: &str = "http://metadata.tencentyun.com";

const ROLES: &str = "/latest/meta-data/cam/security-credentials/";

/// Roles bound by a service have a path of their own.
const SERVICE_ROLES: &str = "/latest/meta-data/cam/service-role-security-credentials/";

const GET_ROLE: Call = Call::new("metadata", "GetRoleName", "");
const GET_CREDENTIALS: Call = Call::new("metadata", "GetSecurityCredentials", "");

/// What the metadata service says about a role.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleKeys {
    #[serde(default, deserialize_with = "loose::text")]
    code: Option<String>,
    tmp_secret_id: Option<SecretText>,
    tmp_secret_key: Option<SecretText>,
    token: Option<SecretText>,
    #[serde(default, deserialize_with = "loose::number")]
    expired_time: Option<f64>,
}

/// Keys of the machine's role; `None` when the machine has no metadata service
/// or no role.
///
/// # Errors
/// When there is a role whose keys cannot be had.
pub(crate) async fn keys(cx: &Context, http: &Http, url: Option<&str>) -> Result<Option<Credentials>, CollectError> {
    let origin = Origin::metadata(url.unwrap_or(METADATA_URL))?;
    let Ok(answer) = get(cx, http, &origin, GET_ROLE, ROLES).await else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&answer.body);
    let Some(role) = text
        .split_whitespace()
        .next()
        .filter(|role| answer.is_success() && is_role_name(role))
    else {
        return Ok(None);
    };
    let mut answer = get(cx, http, &origin, GET_CREDENTIALS, &format!("{ROLES}{role}")).await?;
    if answer.status == 404 {
        answer = get(cx, http, &origin, GET_CREDENTIALS, &format!("{SERVICE_ROLES}{role}")).await?;
    }
    if !answer.is_success() {
        return Err(answer.failure_by_status(GET_CREDENTIALS));
    }
    let keys: RoleKeys = answer.json(GET_CREDENTIALS)?;
    if keys.code.as_deref() != Some("Success") {
        let message = format!("metadata: no credentials for the CVM role {role}; is the role still there?");
        return Err(CollectError::new(Reason::Credentials, message));
    }
    temporary_keys(keys.tmp_secret_id, keys.tmp_secret_key, keys.token, keys.expired_time)
        .map(Some)
        .ok_or_else(|| errors::decode(GET_CREDENTIALS, "no temporary credentials with an end"))
}

fn is_role_name(text: &str) -> bool {
    text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c))
}

/// One attempt only: most machines that run this have no such service.
async fn get(cx: &Context, http: &Http, origin: &Origin, call: Call, path: &str) -> Result<Answer, CollectError> {
    let url = origin.url(path)?;
    cx.call(call, || async {
        let request = Request::new(Method::GET, url.clone());
        let answer = cx.timeout(METADATA_LIMIT, http.send(call, origin, request)).await;
        answer
            .unwrap_or_else(|| {
                Err(CollectError::new(
                    Reason::Timeout,
                    "the metadata service of the machine did not answer",
                ))
            })
            .map_err(|error| error.retryable(false))
    })
    .await
}
