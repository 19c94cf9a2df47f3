//! Errors in the words and formats of each AWS service.

use bytes::Bytes;
use serde_json::json;

use super::Service;
use super::xml::Xml;
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::Reply;

/// An error as AWS reports it.
#[derive(Debug, Clone)]
pub(crate) struct AwsError {
    code: String,
    status: u16,
    message: String,
    retry_after: Option<u32>,
}

impl AwsError {
    pub(crate) fn new(code: &str, status: u16, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            status,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn invalid_value(name: &str, value: &str, why: &str) -> Self {
        let message = format!("Value ( {value} ) for parameter {name} is invalid. {why}.");
        Self::new("InvalidParameterValue", 400, message)
    }

    pub(crate) fn unknown_parameter(name: &str) -> Self {
        Self::new(
            "UnknownParameter",
            400,
            format!("The parameter {name} is not recognized"),
        )
    }

    /// The keys are not known here, or not in this region.
    pub(crate) fn unknown_key(service: Service) -> Self {
        let message = "The security token included in the request is invalid.";
        match service {
            Service::Ec2 => Self::auth_failure(),
            Service::Sts => Self::new("InvalidClientTokenId", 403, message),
            Service::Organizations => Self::new("UnrecognizedClientException", 400, message),
            Service::SavingsPlans => Self::new("UnrecognizedClientException", 403, message),
        }
    }

    /// The signature is not that of the key's secret.
    pub(crate) fn bad_signature(service: Service) -> Self {
        let message = "The request signature we calculated does not match the signature you provided. \
                       Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";
        match service {
            Service::Ec2 => Self::auth_failure(),
            Service::Sts => Self::new("SignatureDoesNotMatch", 403, message),
            Service::Organizations => Self::new("InvalidSignatureException", 400, message),
            Service::SavingsPlans => Self::new("InvalidSignatureException", 403, message),
        }
    }

    /// The credential scope names another service, region or day.
    pub(crate) fn bad_scope(service: Service, why: &str) -> Self {
        match service {
            Service::Ec2 => Self::auth_failure(),
            Service::Sts => Self::new("SignatureDoesNotMatch", 403, why),
            Service::Organizations => Self::new("InvalidSignatureException", 400, why),
            Service::SavingsPlans => Self::new("InvalidSignatureException", 403, why),
        }
    }

    /// The Authorization header is missing or not understood.
    pub(crate) fn unsigned(service: Service) -> Self {
        match service {
            Service::Ec2 => Self::auth_failure(),
            Service::Sts | Service::SavingsPlans => Self::new(
                "MissingAuthenticationToken",
                403,
                "Request is missing Authentication Token",
            ),
            Service::Organizations => Self::new(
                "MissingAuthenticationTokenException",
                400,
                "Missing Authentication Token",
            ),
        }
    }

    /// The request's time is further from ours than AWS allows.
    pub(crate) fn clock_skew(service: Service) -> Self {
        match service {
            Service::Ec2 => Self::new("RequestExpired", 400, "Request has expired."),
            Service::Sts => Self::new("SignatureDoesNotMatch", 403, "Signature expired"),
            Service::Organizations => Self::new("InvalidSignatureException", 400, "Signature expired"),
            Service::SavingsPlans => Self::new("InvalidSignatureException", 403, "Signature expired"),
        }
    }

    /// The session of the temporary credentials is over.
    pub(crate) fn expired_session(service: Service) -> Self {
        let message = "The security token included in the request is expired";
        match service {
            Service::Ec2 => Self::new("RequestExpired", 400, "Request has expired."),
            Service::Sts => Self::new("ExpiredToken", 403, message),
            Service::Organizations => Self::new("ExpiredTokenException", 400, message),
            Service::SavingsPlans => Self::new("ExpiredTokenException", 403, message),
        }
    }

    /// Wrong keys, or a region that the account has not enabled: EC2 does not
    /// tell which.
    pub(crate) fn auth_failure() -> Self {
        Self::new(
            "AuthFailure",
            401,
            "AWS was not able to validate the provided access credentials",
        )
    }

    pub(crate) fn access_denied(service: Service, caller: &str, action: &str) -> Self {
        let message = format!("User: {caller} is not authorized to perform: {action}");
        match service {
            Service::Ec2 => {
                let encoded = hex::encode(format!("{{\"allowed\":false,\"action\":\"{action}\"}}").repeat(4));
                let message = format!(
                    "You are not authorized to perform this operation. {message} because no identity-based policy \
                     allows the {action} action. Encoded authorization failure message: {encoded}"
                );
                Self::new("UnauthorizedOperation", 403, message)
            }
            Service::Sts => Self::new("AccessDenied", 403, message),
            Service::Organizations => Self::new("AccessDeniedException", 400, message),
            Service::SavingsPlans => Self::new("AccessDeniedException", 403, message),
        }
    }

    /// The service's own words for an injected fault.
    pub(crate) fn injected(kind: FaultKind, service: Service, caller: &str, action: &str) -> Self {
        match kind {
            FaultKind::Throttled { retry_after } => {
                let mut error = match service {
                    Service::Ec2 => Self::new("RequestLimitExceeded", 503, "Request limit exceeded."),
                    Service::Sts => Self::new("Throttling", 400, "Rate exceeded"),
                    Service::Organizations => Self::new("TooManyRequestsException", 400, "Rate exceeded"),
                    Service::SavingsPlans => Self::new("ThrottlingException", 429, "Rate exceeded"),
                };
                error.retry_after = retry_after;
                error
            }
            FaultKind::ExpiredToken => Self::expired_session(service),
            FaultKind::AccessDenied => Self::access_denied(service, caller, action),
            FaultKind::AuthFailure => Self::unknown_key(service),
            FaultKind::OptInRequired => {
                let message =
                    "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.";
                Self::new(
                    "OptInRequired",
                    if service == Service::Ec2 { 401 } else { 403 },
                    message,
                )
            }
            _ => {
                let message = "An internal error has occurred";
                match service {
                    Service::Ec2 => Self::new("InternalError", 500, message),
                    Service::Sts => Self::new("InternalFailure", 500, message),
                    Service::Organizations => Self::new("ServiceException", 500, message),
                    Service::SavingsPlans => Self::new("InternalServerException", 500, message),
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The error in the format of `service`.
    pub(crate) fn render(&self, service: Service, request_id: &str) -> Reply {
        let body = match service {
            Service::Ec2 => self.ec2_body(request_id),
            Service::Sts => self.sts_body(request_id),
            Service::Organizations => json!({"__type": self.code, "Message": self.message}).to_string(),
            Service::SavingsPlans => json!({"message": self.message}).to_string(),
        };
        let mut headers = vec![("x-amzn-requestid", request_id.to_owned())];
        if service == Service::SavingsPlans {
            headers.push(("x-amzn-errortype", self.code.clone()));
        }
        if let Some(seconds) = self.retry_after {
            headers.push(("retry-after", seconds.to_string()));
        }
        Reply {
            status: self.status,
            content_type: service.content_type(),
            headers,
            body: Bytes::from(body),
            error_code: Some(self.code.clone()),
        }
    }

    fn ec2_body(&self, request_id: &str) -> String {
        let mut xml = Xml::with_capacity(512);
        xml.tag("Response", |xml| {
            xml.tag("Errors", |xml| {
                xml.tag("Error", |xml| {
                    xml.text("Code", &self.code);
                    xml.text("Message", &self.message);
                });
            });
            xml.text("RequestID", request_id);
        });
        xml.finish()
    }

    fn sts_body(&self, request_id: &str) -> String {
        let mut xml = Xml::with_capacity(512);
        xml.root("ErrorResponse", super::sts::NAMESPACE, |xml| {
            xml.tag("Error", |xml| {
                xml.text("Type", if self.status >= 500 { "Receiver" } else { "Sender" });
                xml.text("Code", &self.code);
                xml.text("Message", &self.message);
            });
            xml.text("RequestId", request_id);
        });
        xml.finish()
    }
}
