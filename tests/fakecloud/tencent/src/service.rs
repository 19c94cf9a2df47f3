//! From an HTTP request to an authenticated call and back.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::Value;

use crate::actions::{self, Asked};
use crate::error::ApiError;
use crate::sign::{self, Signer};
use crate::sts;
use crate::world::{OWNER, World};

/// The simulated Tencent Cloud behind the shared server.
pub struct Tencent {
    world: World,
}

impl Tencent {
    /// Serves this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world }
    }
}

const METADATA: &str = "/latest/meta-data/cam/";

impl Cloud for Tencent {
    fn recognises(&self, request: &Incoming) -> bool {
        request.header("x-tc-action").is_some() || request.uri.path().starts_with(METADATA)
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        let is_metadata = request.uri.path().starts_with(METADATA);
        let (operation, region) = (header("x-tc-action"), header("x-tc-region"));
        let product = actions::product(&operation, &header("x-tc-version"));
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let admission = if is_metadata {
            Ok(OWNER.to_owned())
        } else {
            self.admit(&request, product)
        };
        let roles = request.uri.path().ends_with("security-credentials/");
        let (service, operation) = match product {
            _ if is_metadata && roles => ("metadata", "GetRoleName".to_owned()),
            _ if is_metadata => ("metadata", "GetSecurityCredentials".to_owned()),
            Some((service, _)) => (service, operation),
            None => ("unknown", operation),
        };
        let key = CallKey {
            provider: "tencent",
            service: service.to_owned(),
            operation,
            account: admission.as_ref().map_or_else(|_| String::new(), Clone::clone),
            region,
            page_token: body["Offset"]
                .as_u64()
                .filter(|offset| *offset > 0)
                .map(|offset| offset.to_string()),
        };
        Box::new(TencentExchange {
            world: self.world.clone(),
            service,
            key,
            admission,
            body,
            path: request.uri.path().to_owned(),
        })
    }
}

impl Tencent {
    /// Lets in a call that exists, from somebody who may make it.
    fn admit(&self, request: &Incoming, product: Option<(&'static str, bool)>) -> Result<String, ApiError> {
        let inner = self.world.read();
        let operation = request.header("x-tc-action").unwrap_or_default();
        let Some((service, regional)) = product.filter(|(service, _)| actions::is_on(inner.site, service, operation))
        else {
            return Err(ApiError::new(
                "InvalidAction",
                format!("The request action={operation} is invalid."),
            ));
        };
        if operation == "AssumeRoleWithWebIdentity" {
            // Proven by the token in the body: a signature is out of place.
            let is_plain = request.header("authorization") == Some("SKIP") && request.header("x-tc-token").is_none();
            return is_plain.then(|| OWNER.to_owned()).ok_or_else(|| {
                ApiError::new(
                    "AuthFailure.InvalidAuthorization",
                    "The Authorization header is not SKIP.",
                )
            });
        }
        let Signer {
            account,
            service: signed,
        } = sign::verify(&inner, request)?;
        if signed != service {
            let message = format!("The service {signed} in the signature is not that of {operation}.");
            return Err(ApiError::new("AuthFailure.SignatureFailure", message));
        }
        let region = request.header("x-tc-region").unwrap_or_default();
        if regional && region.is_empty() {
            return Err(ApiError::new(
                "MissingParameter",
                "The request is missing the region parameter.",
            ));
        }
        if regional && !inner.regions.iter().any(|known| known == region) {
            return Err(ApiError::new(
                "UnsupportedRegion",
                format!("The region {region} is not supported."),
            ));
        }
        let permission = format!("{service}:{operation}");
        if inner
            .accounts
            .get(&account)
            .is_none_or(|account| account.denied.contains(&permission))
        {
            return Err(ApiError::denied(&permission, &account));
        }
        Ok(account)
    }
}

struct TencentExchange {
    world: World,
    service: &'static str,
    key: CallKey,
    admission: Result<String, ApiError>,
    body: Value,
    path: String,
}

impl Exchange for TencentExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        self.admission.as_ref().err().map(|error| self.refuse(error))
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        if self.service == "metadata" {
            return self.metadata();
        }
        match self.respond(alteration) {
            Ok(mut response) => {
                response["RequestId"] = "00000000-0000-4000-8000-000000000000".into();
                self.reply(&serde_json::json!({"Response": response}), None)
            }
            Err(error) => self.refuse(&error),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let action = format!("{}:{}", self.service, self.key.operation);
        self.refuse(&ApiError::injected(kind, &action, &self.key.account))
    }
}

impl TencentExchange {
    fn respond(&self, alteration: Option<FaultKind>) -> Result<Value, ApiError> {
        match self.key.operation.as_str() {
            "GetCallerIdentity" => return Ok(sts::identity(&self.key.account)),
            "AssumeRole" => return sts::assume_role(&self.world, &self.body),
            "AssumeRoleWithWebIdentity" => return sts::assume_with_token(&self.world, &self.body),
            _ => {}
        }
        let inner = self.world.read();
        let Some(account) = inner.accounts.get(&self.key.account) else {
            return Err(ApiError::new(
                "AuthFailure.UnauthorizedOperation",
                "There is no such account.",
            ));
        };
        let asked = Asked {
            operation: &self.key.operation,
            region: &self.key.region,
            site: inner.site,
            body: &self.body,
            alteration,
        };
        actions::answer(&inner, account, self.service, &asked)
    }

    fn refuse(&self, error: &ApiError) -> Reply {
        self.reply(&error.body(), Some(error.code.clone()))
    }

    fn reply(&self, body: &Value, error_code: Option<String>) -> Reply {
        // Its own clock: a client whose clock is off learns it from here.
        let now = self.world.read().now();
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
        Reply {
            status: 200,
            // What refuses is not always the product itself, and says so.
            content_type: if error_code.is_some() {
                "text/plain; charset=utf-8"
            } else {
                "application/json"
            },
            headers: date.map(|date| ("date", date)).into_iter().collect(),
            body: Bytes::from(body.to_string()),
            error_code,
        }
    }

    fn metadata(&self) -> Reply {
        let found = sts::metadata(&self.world, &self.path);
        let status = if found.is_some() { 200 } else { 404 };
        Reply {
            status,
            content_type: "text/plain",
            headers: Vec::new(),
            body: Bytes::from(found.unwrap_or_else(|| "<html><body>404</body></html>".to_owned())),
            error_code: None,
        }
    }
}
