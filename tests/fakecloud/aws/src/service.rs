//! From an HTTP request to an authenticated AWS call and back.

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use super::error::AwsError;
use super::params::Params;
use super::sigv4::{Authorization, parse_amz_date, sha256};
use super::world::{Caller, World};
use super::{ec2, organizations, savings_plans, sts};
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, Incoming, Reply};

/// AWS accepts a signature this far from its own clock.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(15);

/// The services that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Ec2,
    Sts,
    Organizations,
    SavingsPlans,
}

impl Service {
    /// The service's name in a credential scope and in IAM actions.
    pub(crate) const fn signing_name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Sts => "sts",
            Self::Organizations => "organizations",
            Self::SavingsPlans => "savingsplans",
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Ec2 => "text/xml;charset=UTF-8",
            Self::Sts => "text/xml",
            Self::Organizations => "application/x-amz-json-1.1",
            Self::SavingsPlans => "application/json",
        }
    }

    /// A successful answer.
    pub(crate) fn reply(self, request_id: &str, body: String) -> Reply {
        Reply {
            status: 200,
            content_type: self.content_type(),
            headers: vec![("x-amzn-requestid", request_id.to_owned())],
            body: Bytes::from(body),
            error_code: None,
        }
    }
}

/// The simulated AWS behind the shared server.
pub struct Aws {
    world: World,
}

impl Aws {
    /// Serves this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world }
    }
}

impl Cloud for Aws {
    fn recognises(&self, request: &Incoming) -> bool {
        let signed = request
            .header("authorization")
            .is_some_and(|header| header.starts_with("AWS4-HMAC-SHA256"));
        signed || addressed_service(request).is_some()
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        let (service, operation) = addressed_service(&request).unwrap_or((Service::Ec2, String::new()));
        let request_id = request_id(&request);
        let caller = authenticate(&self.world, service, &request);
        let scope = request.header("authorization").and_then(Authorization::parse);
        let key = CallKey {
            provider: "aws",
            service: service.signing_name().to_owned(),
            operation: operation.clone(),
            account: caller.as_ref().map(|caller| caller.account.clone()).unwrap_or_default(),
            region: scope.map(|scope| scope.region).unwrap_or_default(),
            page_token: page_token(service, &request),
        };
        let world = self.world.clone();
        Box::new(AwsExchange {
            world,
            service,
            operation,
            key,
            caller,
            request_id,
            body: request.body,
        })
    }
}

/// One authenticated call.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a World,
    pub(crate) caller: &'a Caller,
    pub(crate) region: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) alteration: Option<FaultKind>,
}

impl Call<'_> {
    /// What page tokens are bound to.
    pub(crate) fn token_scope(&self, parameters: &str) -> String {
        format!(
            "{}\n{}\n{}\n{parameters}",
            self.operation, self.caller.account, self.region
        )
    }
}

struct AwsExchange {
    world: World,
    service: Service,
    operation: String,
    key: CallKey,
    caller: Result<Caller, AwsError>,
    request_id: String,
    body: Bytes,
}

impl Exchange for AwsExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        let error = self.caller.as_ref().err()?;
        Some(error.render(self.service, &self.request_id))
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        let Ok(caller) = &self.caller else {
            return self.fail(FaultKind::AuthFailure);
        };
        let call = Call {
            world: &self.world,
            caller,
            region: &self.key.region,
            operation: &self.operation,
            request_id: &self.request_id,
            alteration,
        };
        let answer = match self.service {
            Service::Ec2 => ec2::answer(&call, Params::parse(&self.body)),
            Service::Sts => sts::answer(&call, Params::parse(&self.body)),
            Service::Organizations => organizations::answer(&call, &self.body),
            Service::SavingsPlans => savings_plans::answer(&call, &self.body),
        };
        match answer {
            Ok(body) => self.service.reply(&self.request_id, body),
            Err(error) => error.render(self.service, &self.request_id),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let caller = self
            .caller
            .as_ref()
            .map(|caller| caller.arn.as_str())
            .unwrap_or_default();
        let action = format!("{}:{}", self.service.signing_name(), self.operation);
        AwsError::injected(kind, self.service, caller, &action).render(self.service, &self.request_id)
    }
}

/// The service and operation that a request is shaped for.
fn addressed_service(request: &Incoming) -> Option<(Service, String)> {
    if let Some(target) = request.header("x-amz-target") {
        let operation = target.strip_prefix("AWSOrganizationsV20161128.")?;
        return Some((Service::Organizations, operation.to_owned()));
    }
    let path = request.uri.path().trim_start_matches('/');
    if !path.is_empty() {
        return savings_plans::PATHS
            .contains(&path)
            .then(|| (Service::SavingsPlans, path.to_owned()));
    }
    let params = Params::parse(&request.body);
    let action = params.get("Action")?.to_owned();
    let service = match params.get("Version") {
        Some(sts::VERSION) => Service::Sts,
        _ => Service::Ec2,
    };
    Some((service, action))
}

fn page_token(service: Service, request: &Incoming) -> Option<String> {
    match service {
        Service::Ec2 | Service::Sts => Params::parse(&request.body).get("NextToken").map(str::to_owned),
        Service::Organizations | Service::SavingsPlans => {
            let body: serde_json::Value = serde_json::from_slice(&request.body).ok()?;
            let token = body.get("NextToken").or_else(|| body.get("nextToken"))?;
            token.as_str().map(str::to_owned)
        }
    }
}

fn request_id(request: &Incoming) -> String {
    let signature = request.header("authorization").unwrap_or_default();
    let digest = sha256(format!("{signature}{}", Timestamp::now()).as_bytes());
    let part = |range: std::ops::Range<usize>| digest.get(range).unwrap_or_default().to_owned();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0..8),
        part(8..12),
        part(13..16),
        part(17..20),
        part(20..32)
    )
}

fn authenticate(world: &World, service: Service, request: &Incoming) -> Result<Caller, AwsError> {
    let header = request
        .header("authorization")
        .ok_or_else(|| AwsError::unsigned(service))?;
    let authorization = Authorization::parse(header).ok_or_else(|| AwsError::unsigned(service))?;
    let amz_date = request.header("x-amz-date").unwrap_or_default();
    let signed_at = parse_amz_date(amz_date).ok_or_else(|| AwsError::unsigned(service))?;
    let now = Timestamp::now();

    let token = request.header("x-amz-security-token");
    let key = world
        .access_key(&authorization.access_key_id)
        .ok_or_else(|| AwsError::unknown_key(service))?;
    if key.session_token.as_deref() != token {
        return Err(AwsError::unknown_key(service));
    }
    if !authorization.signs_what_it_must(request) || !authorization.verifies(request, amz_date, &key.secret) {
        return Err(AwsError::bad_signature(service));
    }
    if authorization.service != service.signing_name() {
        let why = format!(
            "Credential should be scoped to correct service: '{}'.",
            service.signing_name()
        );
        return Err(AwsError::bad_scope(service, &why));
    }
    if !amz_date.starts_with(&authorization.date) {
        return Err(AwsError::bad_scope(
            service,
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP.",
        ));
    }
    if now.duration_since(signed_at).abs() > MAX_CLOCK_SKEW {
        return Err(AwsError::clock_skew(service));
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        return Err(AwsError::expired_session(service));
    }
    check_region(world, service, &key.caller.account, &authorization.region)?;
    Ok(key.caller)
}

/// Whether the account may call the service in the region of its signature.
fn check_region(world: &World, service: Service, account: &str, region: &str) -> Result<(), AwsError> {
    let partition = world.partition();
    match service {
        // A region of another partition, and one that is not enabled, look
        // alike to the caller.
        Service::Ec2 => {
            if world.region_enabled(account, region) {
                Ok(())
            } else {
                Err(AwsError::auth_failure())
            }
        }
        Service::Sts => {
            if world.sts_disabled(region) {
                let message = format!("STS is not activated in this region for account:{account}.");
                return Err(AwsError::new("RegionDisabledException", 403, message));
            }
            let known = world.region_enabled(account, region) || region == partition.home_region();
            if known {
                Ok(())
            } else {
                Err(AwsError::unknown_key(service))
            }
        }
        Service::Organizations | Service::SavingsPlans => {
            let valid = if service == Service::Organizations {
                region == partition.home_region()
            } else {
                partition.savings_plans_regions().contains(&region)
            };
            let why = "Credential should be scoped to a valid region.";
            if valid {
                Ok(())
            } else {
                Err(AwsError::bad_scope(service, why))
            }
        }
    }
}
