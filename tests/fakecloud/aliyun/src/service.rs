//! From an HTTP request to an authenticated call and back.

use bytes::Bytes;
use gpuwatch_fakecloud_core::random::fnv1a;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use jiff::Timestamp;
use serde_json::Value;

use crate::error::ApiError;
use crate::metadata;
use crate::params::Params;
use crate::request::{Address, Product, Scheme};
use crate::rows::set;
use crate::sign::Claim;
use crate::world::{Caller, MAX_CLOCK_SKEW, World};
use crate::{bss, ecs, sts};

/// The one action whose proof is a token among its parameters.
pub(crate) const UNSIGNED_ACTION: &str = "AssumeRoleWithOIDC";

/// The simulated Alibaba Cloud behind the shared server.
pub struct Aliyun {
    world: World,
}

impl Aliyun {
    /// Serves this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world }
    }
}

impl Cloud for Aliyun {
    fn recognises(&self, request: &Incoming) -> bool {
        metadata::recognises(request) || Address::of(request).is_some()
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        if metadata::recognises(&request) {
            return metadata::begin(&self.world, request);
        }
        // Not of any cloud: answered as a call of no known action.
        let address = Address::of(&request).unwrap_or_else(|| Address {
            product: None,
            action: String::new(),
            scheme: Scheme::Unsigned,
            params: Params::default(),
        });
        let caller = authenticate(&self.world, &address, &request);
        let key = CallKey {
            provider: "aliyun",
            service: address.product.map_or("unknown", Product::name).to_owned(),
            operation: address.action.clone(),
            account: caller
                .as_ref()
                .ok()
                .and_then(Option::as_ref)
                .map(|caller| caller.account.clone())
                .unwrap_or_default(),
            region: region(&address),
            page_token: page_token(&address),
        };
        Box::new(AliyunExchange {
            world: self.world.clone(),
            product: address.product.unwrap_or(Product::Ecs),
            params: address.params,
            host: request.header("host").unwrap_or_default().to_owned(),
            request_id: request_id(&request),
            key,
            caller,
        })
    }
}

/// One authenticated call.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a World,
    /// `None` for the unsigned action.
    pub(crate) caller: Option<&'a Caller>,
    pub(crate) region: &'a str,
    pub(crate) action: &'a str,
    pub(crate) host: &'a str,
    pub(crate) params: &'a Params,
    pub(crate) alteration: Option<FaultKind>,
}

impl Call<'_> {
    /// The uid of the caller's account.
    pub(crate) fn account(&self) -> &str {
        self.caller.map(|caller| caller.account.as_str()).unwrap_or_default()
    }

    /// What page tokens are bound to.
    pub(crate) fn token_scope(&self) -> String {
        format!(
            "{}\n{}\n{}\n{}",
            self.action,
            self.account(),
            self.region,
            self.params.fingerprint()
        )
    }

    /// Whether RAM refuses the action to the caller.
    pub(crate) fn is_denied(&self, product: Product) -> bool {
        self.world.denies(self.account(), &ram_action(product, self.action))
    }

    /// Refuses what RAM refuses.
    pub(crate) fn authorize(&self, product: Product) -> Result<(), ApiError> {
        if self.is_denied(product) {
            return Err(self.denial(product));
        }
        Ok(())
    }

    pub(crate) fn denial(&self, product: Product) -> ApiError {
        ApiError::denied(product, &ram_action(product, self.action), self.caller)
    }
}

fn ram_action(product: Product, action: &str) -> String {
    format!("{}:{action}", product.ram_code())
}

struct AliyunExchange {
    world: World,
    product: Product,
    params: Params,
    host: String,
    request_id: String,
    key: CallKey,
    caller: Result<Option<Caller>, ApiError>,
}

impl AliyunExchange {
    /// With the time of the service's own clock.
    fn dated(&self, mut reply: Reply) -> Reply {
        let date = self.world.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        reply.headers.push(("date", date));
        reply
    }

    fn render(&self, error: &ApiError) -> Reply {
        self.dated(error.render(&self.host, &self.request_id))
    }
}

impl Exchange for AliyunExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        self.caller.as_ref().err().map(|error| self.render(error))
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        let call = Call {
            world: &self.world,
            caller: self.caller.as_ref().ok().and_then(Option::as_ref),
            region: &self.key.region,
            action: &self.key.operation,
            host: &self.host,
            params: &self.params,
            alteration,
        };
        let answer = match self.product {
            Product::Ecs => ecs::answer(&call),
            Product::Sts => sts::answer(&call),
            Product::Bss => bss::answer(&call),
        };
        match answer {
            Ok(body) => self.dated(success(body, &self.request_id)),
            Err(error) => self.render(&error),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let caller = self.caller.as_ref().ok().and_then(Option::as_ref);
        let action = ram_action(self.product, &self.key.operation);
        self.render(&ApiError::injected(kind, self.product, &action, caller))
    }
}

fn success(mut body: Value, request_id: &str) -> Reply {
    set(&mut body, "RequestId", request_id);
    Reply {
        status: 200,
        content_type: "application/json;charset=utf-8",
        headers: vec![("x-acs-request-id", request_id.to_owned())],
        body: Bytes::from(body.to_string()),
        error_code: None,
    }
}

/// `None` for the call that is proven otherwise.
fn authenticate(world: &World, address: &Address, request: &Incoming) -> Result<Option<Caller>, ApiError> {
    if address.product.is_none() {
        return Err(ApiError::new(
            "InvalidVersion",
            404,
            "Specified parameter Version is not valid.",
        ));
    }
    if address.product == Some(Product::Sts) && address.action == UNSIGNED_ACTION {
        return Ok(None);
    }
    let claim = match address.scheme {
        Scheme::V3 => Claim::v3(request)?,
        Scheme::V1 => Claim::v1(request, &address.params)?,
        Scheme::Unsigned => {
            let message = "AccessKeyId is mandatory for this action.";
            return Err(ApiError::new("MissingAccessKeyId", 400, message));
        }
    };
    let key = world.key(&claim.access_key_id).ok_or_else(ApiError::unknown_key)?;
    if !key.active {
        let message = "Specified access key is disabled.";
        return Err(ApiError::new("InvalidAccessKeyId.Inactive", 400, message));
    }
    let now = world.now();
    if now.duration_since(claim.signed_at).abs() > MAX_CLOCK_SKEW {
        let message = "Specified time stamp or date value is expired.";
        return Err(ApiError::new("InvalidTimeStamp.Expired", 400, message));
    }
    claim.verify(&key.keys.access_key_secret)?;
    match (&key.keys.security_token, &claim.security_token) {
        // Temporary keys are found only together with their token.
        (Some(_), None) => return Err(ApiError::unknown_key()),
        (expected, given) if expected != given => {
            let message = "Specified SecurityToken mismatch with the AccessKey.";
            return Err(ApiError::new(
                "InvalidSecurityToken.MismatchWithAccessKey",
                400,
                message,
            ));
        }
        _ => {}
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        return Err(ApiError::expired_token());
    }
    if !world.use_nonce(&claim.access_key_id, &claim.nonce) {
        let message = "Specified signature nonce was used already.";
        return Err(ApiError::new("SignatureNonceUsed", 400, message));
    }
    Ok(Some(key.caller))
}

/// The region that a call is about, where its product has regions.
fn region(address: &Address) -> String {
    match address.product {
        Some(Product::Ecs) if address.action != "DescribeRegions" => {
            address.params.get("RegionId").unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// The token, or the number of a page that is not the first.
fn page_token(address: &Address) -> Option<String> {
    let params = &address.params;
    let number = params
        .given("PageNumber")
        .or_else(|| params.given("PageNum"))
        .filter(|number| *number != "1");
    let token = params.given("NextToken").or_else(|| params.given("Token"));
    token.or(number).map(str::to_owned)
}

fn request_id(request: &Incoming) -> String {
    let now = Timestamp::now();
    let first = fnv1a(format!("{now}{}", request.uri).as_bytes());
    let second = fnv1a(format!("{first}{:?}", request.header("authorization")).as_bytes());
    let digits = format!("{first:016X}{second:016X}");
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    format!(
        "{}-{}-5{}-8{}-{}",
        part(0..8),
        part(8..12),
        part(13..16),
        part(17..20),
        part(20..32)
    )
}
