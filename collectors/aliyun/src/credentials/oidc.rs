//! A role that the cluster's identity may assume (RRSA): no keys at all.

use std::path::PathBuf;

use gpuwatch_collector_core::{Call, CollectError, Context};
use gpuwatch_collector_rest::{ExposeSecret as _, Request, SecretSource};
use http::{Method, header};
use serde::Deserialize;

use super::{Environment, Session, TemporaryKeys};
use crate::{client::Client, client::parameters, errors, hosts::Product, sign::query};

const ASSUME: Call = Call::new("sts", "AssumeRoleWithOIDC", "sts:AssumeRoleWithOIDC");

/// A role and the token that may assume it.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    pub arn: String,
    pub provider: String,
    /// Read at every renewal: it is rotated.
    pub token_file: PathBuf,
    pub session_name: String,
}

impl Role {
    pub(crate) fn from_environment(environment: &Environment) -> Option<Self> {
        Some(Self {
            arn: environment.get("ALIBABA_CLOUD_ROLE_ARN")?.to_owned(),
            provider: environment.get("ALIBABA_CLOUD_OIDC_PROVIDER_ARN")?.to_owned(),
            token_file: environment.get("ALIBABA_CLOUD_OIDC_TOKEN_FILE")?.into(),
            session_name: environment
                .get("ALIBABA_CLOUD_ROLE_SESSION_NAME")
                .unwrap_or("gpuwatch")
                .to_owned(),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    credentials: TemporaryKeys,
}

/// Assumes the role. The call is not signed: the token is the proof.
///
/// # Errors
/// When the token cannot be read or is refused.
pub(crate) async fn assume(cx: &Context, client: &Client, role: &Role) -> Result<Session, CollectError> {
    let token = SecretSource::File(role.token_file.clone()).read().await?;
    let origin = client.origin(Product::Sts, "", None)?;
    let http = client.http()?;
    let answer: Answer = cx
        .call(ASSUME, || async {
            let mut all = parameters(&[
                ("Action", ASSUME.operation),
                ("Format", "JSON"),
                ("Version", Product::Sts.version()),
                ("RoleArn", &role.arn),
                ("OIDCProviderArn", &role.provider),
                ("RoleSessionName", &role.session_name),
            ]);
            all.insert("Timestamp".into(), cx.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
            all.insert("OIDCToken".into(), token.expose_secret().to_owned());
            // In the body: an address ends up in the logs of proxies.
            let request = Request::new(Method::POST, origin.url("/")?)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")?
                .header(http::HeaderName::from_static("x-acs-action"), ASSUME.operation)?
                .header(http::HeaderName::from_static("x-acs-version"), Product::Sts.version())?
                .body(query(&all));
            let answer = http.send(ASSUME, &origin, request).await?;
            if answer.is_success() {
                answer.json(ASSUME)
            } else {
                Err(errors::classify(ASSUME, &answer, cx.now()))
            }
        })
        .await?;
    Ok(answer.credentials.into())
}
