//! Acting as a service account: its short-lived token, asked for with the base
//! credentials.

use gpuwatch_collector_core::{CollectError, Context, Reason};
use gpuwatch_collector_rest::{Expires, ExposeSecret as _, Request, SecretString};
use http::{HeaderMap, HeaderValue, Method, header};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    api::{Service, Transport},
    calls::GENERATE_ACCESS_TOKEN,
    credentials::SCOPE,
    errors,
};

/// How long a token is asked to last, in seconds: the most that is allowed
/// without a change to the organization's policy.
const LIFETIME: &str = "3600s";

/// The token of an impersonated account.
#[derive(Debug)]
pub(crate) struct Impersonated {
    token: SecretString,
    expires: Timestamp,
}

impl Expires for Impersonated {
    fn expires(&self) -> Option<Timestamp> {
        Some(self.expires)
    }
}

impl Impersonated {
    /// The headers of a request as that account.
    pub(crate) fn headers(&self) -> Result<HeaderMap, CollectError> {
        let text = format!("Bearer {}", self.token.expose_secret());
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            CollectError::new(
                Reason::Decode,
                "the access token has characters that a header cannot have",
            )
        })?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    access_token: String,
    expire_time: Timestamp,
}

/// Asks for a token of `account`.
///
/// # Errors
/// What the service refused it with; never quotes an answer that was granted.
pub(crate) async fn token(
    cx: &Context,
    transport: &Transport,
    account: &str,
    base: &HeaderMap,
) -> Result<Impersonated, CollectError> {
    let is_address = account
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"@.-_".contains(&byte));
    if !is_address {
        return Err(CollectError::new(
            Reason::Credentials,
            "impersonate_service_account is not the address of a service account",
        ));
    }
    let origin = transport.origin(Service::IamCredentials)?;
    let url = origin.url(&format!("/v1/projects/-/serviceAccounts/{account}:generateAccessToken"))?;
    let body = serde_json::json!({"scope": [SCOPE], "lifetime": LIFETIME}).to_string();
    let mut request = Request::new(Method::POST, url)
        .header(header::CONTENT_TYPE, "application/json")?
        .body(body);
    request.headers.extend(base.clone());
    let answer: Answer = cx
        .call(GENERATE_ACCESS_TOKEN, || {
            let (request, origin) = (request.clone(), &origin);
            async move {
                let answer = transport.http()?.send(GENERATE_ACCESS_TOKEN, origin, request).await?;
                if !answer.is_success() {
                    let asked = errors::Asked {
                        call: GENERATE_ACCESS_TOKEN,
                        about: account,
                        with_page_token: false,
                    };
                    return Err(errors::classify(&asked, &answer, cx.now()));
                }
                answer.json(GENERATE_ACCESS_TOKEN)
            }
        })
        .await?;
    Ok(Impersonated {
        token: SecretString::from(answer.access_token),
        expires: answer.expire_time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_answer_is_a_token_or_refused(answer in crate::samples::any_json(), token in ".{0,40}") {
            let _ = serde_json::from_value::<Answer>(answer);
            let impersonated = Impersonated {
                token: SecretString::from(token.clone()),
                expires: Timestamp::UNIX_EPOCH,
            };
            match impersonated.headers() {
                Ok(headers) => proptest::prop_assert!(headers.values().all(HeaderValue::is_sensitive)),
                Err(error) => proptest::prop_assert!(token.len() < 6 || !error.to_string().contains(&token)),
            }
            let shown = format!("{impersonated:?}");
            proptest::prop_assert!(token.len() < 9 || !shown.contains(&token));
        }
    }
}
