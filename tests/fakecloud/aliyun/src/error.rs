//! Errors in the shape and with the words of the RPC products.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{FaultKind, Reply};
use serde_json::json;

use crate::request::Product;
use crate::rows::set;
use crate::world::{Caller, Principal};

/// An error answer.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: String,
    status: u16,
    message: String,
    /// Milliseconds.
    retry_after: Option<u64>,
    /// The RAM action that was refused, and who asked for it.
    denied: Option<Box<(String, Caller)>>,
    /// Sent with a status of 200, as the billing product does.
    inside_success: bool,
}

impl ApiError {
    pub(crate) fn new(code: &str, status: u16, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            status,
            message: message.into(),
            retry_after: None,
            denied: None,
            inside_success: false,
        }
    }

    /// A refusal of the billing product: an error in an answer of status 200.
    pub(crate) fn inside_success(code: &str) -> Self {
        Self {
            inside_success: true,
            ..Self::new(code, 200, "This API is not authorized for caller.")
        }
    }

    pub(crate) fn missing(name: &str) -> Self {
        let message =
            format!("The input parameter \"{name}\" that is mandatory for processing this request is not supplied.");
        Self::new("MissingParameter", 400, message)
    }

    pub(crate) fn invalid(name: &str) -> Self {
        let message = format!("The specified parameter \"{name}\" is not valid.");
        Self::new(&format!("InvalidParameter.{name}"), 400, message)
    }

    pub(crate) fn unknown_key() -> Self {
        Self::new("InvalidAccessKeyId.NotFound", 404, "Specified access key is not found.")
    }

    pub(crate) fn expired_token() -> Self {
        Self::new(
            "InvalidSecurityToken.Expired",
            400,
            "Specified SecurityToken is expired.",
        )
    }

    /// The signature is wrong; the message shows what should have been signed.
    pub(crate) fn bad_signature(string_to_sign: &str) -> Self {
        let message =
            format!("Specified signature does not match our calculation. server string to sign is:{string_to_sign}");
        Self::new("SignatureDoesNotMatch", 400, message)
    }

    pub(crate) fn incomplete_signature(why: &str) -> Self {
        let message = format!("The request signature does not conform to Aliyun standards. {why}");
        Self::new("IncompleteSignature", 400, message)
    }

    pub(crate) fn region_not_found(region: &str) -> Self {
        let message = format!("The specified RegionId does not exist: {region}");
        Self::new("InvalidRegionId.NotFound", 404, message)
    }

    pub(crate) fn unknown_action(action: &str) -> Self {
        let message = format!("Specified api is not found, please check your url and method. ({action})");
        Self::new("InvalidApi.NotFound", 404, message)
    }

    pub(crate) fn dry_run() -> Self {
        let message = "Request validation has been passed with DryRun flag set.";
        Self::new("DryRunOperation", 400, message)
    }

    /// Wrong site: this host serves the accounts of the other one.
    pub(crate) fn wrong_site() -> Self {
        let message = "This API is not applicable for caller: the caller's site does not match the API domain.";
        Self::new("NotApplicable", 400, message)
    }

    /// The role does not trust the caller, or not with this external id.
    pub(crate) fn not_trusted() -> Self {
        let message = "You are not authorized to do this action. You should be authorized by RAM.";
        Self::new("NoPermission", 403, message)
    }

    /// The caller lacks a RAM permission, in the product's own words.
    pub(crate) fn denied(product: Product, action: &str, caller: Option<&Caller>) -> Self {
        let error = match product {
            Product::Ecs => Self::new(
                "Forbidden.RAM",
                403,
                "User not authorized to operate on the specified resource, or this API doesn't support RAM.",
            ),
            Product::Sts => Self::not_trusted(),
            Product::Bss => Self::new("NotAuthorized", 403, "This API is not authorized for caller."),
        };
        Self {
            denied: caller.map(|caller| Box::new((action.to_owned(), caller.clone()))),
            ..error
        }
    }

    /// The product's own words for an injected fault.
    pub(crate) fn injected(kind: FaultKind, product: Product, action: &str, caller: Option<&Caller>) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let (code, message) = match product {
                    Product::Bss => ("Throttling", "Request was denied due to request throttling."),
                    Product::Ecs | Product::Sts => ("Throttling.User", "Request was denied due to user flow control."),
                };
                Self {
                    retry_after: retry_after.map(|seconds| u64::from(seconds) * 1000),
                    ..Self::new(code, 400, message)
                }
            }
            FaultKind::ExpiredToken => Self::expired_token(),
            FaultKind::AccessDenied => Self::denied(product, action, caller),
            FaultKind::AuthFailure => Self::unknown_key(),
            FaultKind::OptInRequired => match product {
                Product::Ecs => Self::region_not_found("of this request"),
                Product::Sts => Self::new(
                    "InvalidOperation.NotSupportedEndpoint",
                    404,
                    "The specified endpoint cannot operate this region.",
                ),
                Product::Bss => Self::wrong_site(),
            },
            _ => Self::new(
                "InternalError",
                500,
                "The request processing has failed due to some unknown error, exception or failure.",
            ),
        }
    }

    /// The error as an answer of a host.
    pub(crate) fn render(&self, host: &str, request_id: &str) -> Reply {
        let mut body = json!({
            "RequestId": request_id,
            "Code": self.code,
            "Message": self.message,
        });
        if self.inside_success {
            set(&mut body, "Success", false);
        } else {
            let code = &self.code;
            set(&mut body, "HostId", host);
            set(
                &mut body,
                "Recommend",
                format!("https://api.aliyun.com/troubleshoot?q={code}&requestId={request_id}"),
            );
        }
        if let Some((action, caller)) = self.denied.as_deref() {
            let principal = match caller.principal {
                Principal::RamUser => "SubUser",
                Principal::AssumedRole => "AssumedRoleUser",
            };
            set(
                &mut body,
                "AccessDeniedDetail",
                json!({
                    "AuthAction": action,
                    "AuthPrincipalType": principal,
                    "AuthPrincipalDisplayName": caller.user_id,
                    "AuthPrincipalOwnerId": caller.account,
                    "NoPermissionType": "ImplicitDeny",
                    "PolicyType": "AccountLevelIdentityBasedPolicy",
                }),
            );
        }
        let mut headers = vec![("x-acs-request-id", request_id.to_owned())];
        if let Some(millis) = self.retry_after {
            headers.push(("x-acs-retry-after", millis.to_string()));
        }
        Reply {
            status: self.status,
            content_type: "application/json;charset=utf-8",
            headers,
            body: Bytes::from(body.to_string()),
            error_code: Some(self.code.clone()),
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}
