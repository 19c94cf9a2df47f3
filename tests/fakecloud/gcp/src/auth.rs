//! Who calls: bearer tokens, and the signed assertions that service accounts
//! send in their place.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gpuwatch_fakecloud_core::Incoming;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::route::Service;
use crate::world::{Caller, Identity, World};

/// How far ahead of the service's clock an assertion may have been issued.
const MAX_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Longest life of an assertion.
const MAX_LIFE: SignedDuration = SignedDuration::from_secs(3_600 + 60);

/// Whether a request comes from somebody who may call the service at all.
///
/// # Errors
/// What the service says to somebody it does not know.
pub(crate) fn check(world: &World, service: Service, request: &Incoming, now: Timestamp) -> Result<(), ApiError> {
    match service {
        // Their callers prove themselves in the body.
        Service::OAuth | Service::Sts => return Ok(()),
        Service::Metadata => {
            return if request.header("metadata-flavor") == Some("Google") {
                Ok(())
            } else {
                Err(ApiError::new(
                    403,
                    "",
                    "forbidden",
                    "Missing Metadata-Flavor:Google header.\n",
                ))
            };
        }
        _ => {}
    }
    let inner = world.read();
    let identity = &inner.identity;
    let Some(header) = request.header("authorization") else {
        return if identity.required {
            Err(ApiError::no_credentials())
        } else {
            Ok(())
        };
    };
    let token = bearer(header).ok_or_else(ApiError::unauthenticated)?;
    let caller = if let Some(known) = identity.tokens.get(token) {
        if known.expires <= now {
            return Err(ApiError::expired_token());
        }
        known.caller.clone()
    } else {
        let assertion = verify(identity, token, now).ok_or_else(ApiError::unauthenticated)?;
        let audience_fits = assertion.aud.as_deref().is_none_or(|aud| aud.contains(service.host()));
        if !audience_fits {
            return Err(ApiError::unauthenticated());
        }
        assertion.caller(service)
    };
    let scopes = service.scopes();
    let allowed = caller.scopes.iter().any(|scope| scopes.contains(&scope.as_str()));
    if allowed {
        Ok(())
    } else {
        Err(ApiError::narrow_scope(service))
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
}

/// The claims of a signed assertion.
#[derive(Debug, Deserialize)]
pub(crate) struct Assertion {
    pub(crate) iss: String,
    sub: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) aud: Option<String>,
    exp: i64,
    iat: i64,
}

impl Assertion {
    /// The account that signed. An assertion for a service has its scopes.
    pub(crate) fn caller(&self, service: Service) -> Caller {
        let scopes = match &self.scope {
            Some(scope) => scope.split(' ').map(str::to_owned).collect(),
            None => service.scopes().iter().map(|scope| (*scope).to_owned()).collect(),
        };
        Caller {
            email: self.iss.clone(),
            scopes,
        }
    }
}

/// An assertion whose signature, key and times are in order.
pub(crate) fn verify(identity: &Identity, token: &str, now: Timestamp) -> Option<Assertion> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let header: Header = part(header)?;
    let claims: Assertion = part(claims)?;
    if header.alg != "RS256" {
        return None;
    }
    let key = identity.accounts.get(&claims.iss)?.get(&header.kid)?;
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key)
        .verify(signed.as_bytes(), &signature)
        .ok()?;
    let issued = Timestamp::from_second(claims.iat).ok()?;
    let expires = Timestamp::from_second(claims.exp).ok()?;
    let timely = expires > now && issued.duration_since(now) < MAX_SKEW && expires.duration_since(issued) <= MAX_LIFE;
    let same = claims.sub.as_ref().is_none_or(|sub| *sub == claims.iss);
    (timely && same).then_some(claims)
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    serde_json::from_slice(&bytes).ok()
}
