//! The only way to a cloud call: where it goes, how it is signed, and what
//! came back.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    time::Duration,
};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason};
use gpuwatch_collector_rest::{Answer, ExposeSecret as _, Http, Origin, Request};
use http::{HeaderName, Method, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Site, TencentOptions,
    credentials::Credentials,
    errors::{self, ApiError},
    loose,
    sign::{CONTENT_TYPE, Unsigned},
};

/// Names us in the vendor's logs.
const CLIENT: &str = concat!("gpuwatch-", env!("CARGO_PKG_VERSION"));

/// A clock this much off is corrected; the service accepts five minutes.
const TOLERATED_SKEW: u64 = 60;

/// One action of one version of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Action {
    /// Product, action and permission.
    pub call: Call,
    /// `X-TC-Version`.
    pub version: &'static str,
}

impl Action {
    pub(crate) const fn new(call: Call, version: &'static str) -> Self {
        Self { call, version }
    }
}

/// Connections of one section, and the difference of clocks.
pub(crate) struct Api {
    http: Result<Http, CollectError>,
    site: Site,
    endpoint_url: Option<String>,
    /// Server time − local time in seconds, once it is known to matter. It is
    /// the machine's, so all accounts share it.
    skew: AtomicI64,
}

/// Who a request comes from.
#[derive(Clone, Copy)]
pub(crate) enum Signer<'a> {
    /// Signed with these.
    Keys(&'a Credentials),
    /// Not signed: the body proves who it is.
    Body,
}

impl Api {
    pub(crate) fn new(options: &TencentOptions) -> Self {
        Self {
            http: Http::new(),
            site: options.site,
            endpoint_url: options.endpoint_url.clone(),
            skew: AtomicI64::new(0),
        }
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    pub(crate) fn http(&self) -> Result<&Http, CollectError> {
        self.http.as_ref().map_err(Clone::clone)
    }

    fn origin(&self, service: &str, region: &str) -> Result<Origin, CollectError> {
        match &self.endpoint_url {
            Some(url) => Origin::new(url),
            None => Origin::new(&self.site.base_url(service, region)),
        }
    }

    /// Makes one call. The body is serialised once, and signed anew for every
    /// attempt; a signature that was too old is made again by the server's
    /// clock, once.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn send<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        action: Action,
        region: &str,
        signer: Signer<'_>,
        body: &Value,
    ) -> Result<T, CollectError> {
        let origin = self.origin(action.call.service, region)?;
        let attempt = Attempt {
            api: self,
            http: self.http()?,
            origin: &origin,
            action,
            region,
            signer,
            body: body.to_string().into_bytes(),
            garbled: AtomicU32::new(0),
            clock_moved: AtomicBool::new(false),
        };
        match cx.call(action.call, || attempt.make(cx)).await {
            Err(error) if errors::is_skewed_clock(&error) && attempt.clock_moved.load(Ordering::Relaxed) => {
                cx.call(action.call, || attempt.make(cx)).await
            }
            result => result,
        }
    }

    fn server_time(&self, now: Timestamp) -> Timestamp {
        let skew = SignedDuration::from_secs(self.skew.load(Ordering::Relaxed));
        now.checked_add(skew).unwrap_or(now)
    }

    /// Takes over the server's clock from an answer; whether that changed
    /// anything.
    fn learn_clock(&self, answer: &Answer, now: Timestamp) -> bool {
        let date = answer
            .header(header::DATE.as_str())
            .and_then(|text| rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
        let Some(date) = date else { return false };
        let skew = date.as_second().saturating_sub(now.as_second());
        let before = self.skew.swap(skew, Ordering::Relaxed);
        let has_moved = skew.abs_diff(before) > TOLERATED_SKEW;
        if has_moved {
            tracing::warn!(
                provider = "tencent",
                clock_offset_seconds = skew,
                "this machine's clock is off; requests are signed by the server's"
            );
        }
        has_moved
    }
}

/// One call, to be attempted.
struct Attempt<'a> {
    api: &'a Api,
    http: &'a Http,
    origin: &'a Origin,
    action: Action,
    region: &'a str,
    signer: Signer<'a>,
    body: Vec<u8>,
    garbled: AtomicU32,
    clock_moved: AtomicBool,
}

impl Attempt<'_> {
    async fn make<T: DeserializeOwned>(&self, cx: &Context) -> Result<T, CollectError> {
        let call = self.action.call;
        let request = self.request(self.api.server_time(cx.now()))?;
        let answer = self.http.send(call, self.origin, request).await?;
        read(call, &self.origin.host_header(), &answer).map_err(|error| {
            if errors::is_skewed_clock(&error) && self.api.learn_clock(&answer, cx.now()) {
                self.clock_moved.store(true, Ordering::Relaxed);
            }
            // What is garbled twice is garbled.
            let is_new = error.reason != Reason::Decode || self.garbled.fetch_add(1, Ordering::Relaxed) == 0;
            let retryable = error.retryable && is_new;
            error.retryable(retryable)
        })
    }

    fn request(&self, at: Timestamp) -> Result<Request, CollectError> {
        let call = self.action.call;
        let host = self.origin.host_header();
        let mut request = Request::new(Method::POST, self.origin.url("/")?)
            .header(header::CONTENT_TYPE, CONTENT_TYPE)?
            .header(HeaderName::from_static("x-tc-action"), call.operation)?
            .header(HeaderName::from_static("x-tc-version"), self.action.version)?
            .header(HeaderName::from_static("x-tc-timestamp"), &at.as_second().to_string())?
            .header(HeaderName::from_static("x-tc-language"), "en-US")?
            .header(HeaderName::from_static("x-tc-requestclient"), CLIENT)?;
        if !self.region.is_empty() {
            request = request.header(HeaderName::from_static("x-tc-region"), self.region)?;
        }
        request = match self.signer {
            Signer::Body => request.header(header::AUTHORIZATION, "SKIP")?,
            Signer::Keys(keys) => {
                let headers = [("content-type", CONTENT_TYPE), ("host", host.as_str())];
                let unsigned = Unsigned {
                    service: call.service,
                    headers: &headers,
                    body: &self.body,
                    at,
                };
                let authorization = unsigned.authorization(&keys.secret_id, &keys.secret_key);
                request = request.secret_header(header::AUTHORIZATION, &authorization)?;
                match &keys.token {
                    Some(token) => {
                        request.secret_header(HeaderName::from_static("x-tc-token"), token.expose_secret())?
                    }
                    None => request,
                }
            }
        };
        Ok(request.body(self.body.clone()))
    }
}

#[derive(Deserialize)]
struct Envelope<T> {
    #[serde(rename = "Response")]
    response: T,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(rename = "Error", default)]
    error: Option<ApiError>,
    #[serde(rename = "RequestId", default, deserialize_with = "loose::text")]
    request_id: Option<String>,
}

/// Reads an answer by its content: errors come with status 200, and JSON
/// sometimes as plain text.
fn read<T: DeserializeOwned>(call: Call, host: &str, answer: &Answer) -> Result<T, CollectError> {
    match answer.json::<Envelope<Outcome>>(call) {
        Ok(Envelope {
            response: Outcome {
                error: Some(error),
                request_id,
            },
        }) => Err(errors::classify(call, host, &error, request_id.as_deref())),
        Ok(_) if answer.is_success() => answer.json::<Envelope<T>>(call).map(|envelope| envelope.response),
        Err(error) if answer.is_success() => Err(error),
        _ => Err(answer.failure_by_status(call)),
    }
}

/// How long the metadata service of the machine is waited for.
pub(crate) const METADATA_LIMIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    const CALL: Call = Call::new("cvm", "DescribeZones", "cvm:DescribeZones");

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    fn reason(status: u16, body: &'static str) -> Reason {
        read::<Value>(CALL, "h", &answer(status, body)).unwrap_err().reason
    }

    #[test]
    fn an_error_with_status_200_is_an_error() {
        let refused = r#"{"Response":{"Error":{"Code":"UnauthorizedOperation","Message":"no"},"RequestId":"r"}}"#;
        assert_eq!(reason(200, refused), Reason::Permission);
        assert_eq!(reason(200, r#"{"Response":{"Error":{}}}"#), Reason::Other);
        assert_eq!(reason(200, "<html>"), Reason::Decode);
        assert_eq!(reason(200, "{}"), Reason::Decode);
        assert_eq!(reason(502, "<html>"), Reason::Other);
        assert_eq!(reason(500, r#"{"Response":{"RequestId":"r"}}"#), Reason::Other);
        assert!(read::<Value>(CALL, "h", &answer(200, r#"{"Response":{"Error":null,"ZoneSet":[]}}"#)).is_ok());
    }

    fn attempt_of(site: Site, endpoint: Option<&str>, region: &str, keys: &Credentials) -> Request {
        let mut options = TencentOptions::named("cn");
        options.site = site;
        options.endpoint_url = endpoint.map(str::to_owned);
        let api = Api::new(&options);
        let origin = api.origin("cvm", region).unwrap();
        let attempt = Attempt {
            api: &api,
            http: api.http().unwrap(),
            origin: &origin,
            action: Action::new(CALL, "2017-03-12"),
            region,
            signer: Signer::Keys(keys),
            body: b"{}".to_vec(),
            garbled: AtomicU32::new(0),
            clock_moved: AtomicBool::new(false),
        };
        attempt.request(Timestamp::from_second(1_767_225_600).unwrap()).unwrap()
    }

    // P40, P44
    #[test]
    fn requests_go_to_the_hosts_of_their_own_site() {
        let keys = Credentials::given(&"AKIDEXAMPLE".into(), &"SKEXAMPLE".into(), None).unwrap();
        for (site, region, host) in [
            (Site::China, "ap-singapore", "cvm.tencentcloudapi.com"),
            (Site::International, "ap-guangzhou", "cvm.intl.tencentcloudapi.com"),
            (
                Site::China,
                "ap-shenzhen-fsi",
                "cvm.ap-shenzhen-fsi.tencentcloudapi.com",
            ),
        ] {
            let request = attempt_of(site, None, region, &keys);
            assert_eq!(request.url.as_str(), format!("https://{host}/"));
            assert_eq!(request.headers["x-tc-region"], region);
        }
    }

    #[test]
    fn an_endpoint_changes_the_signed_host_and_not_the_scope() {
        let (id, key) = (
            "AKIDEXAMPLEgpuwatch0000000000000000",
            "SKEXAMPLEgpuwatch0000000000000000",
        );
        let mut keys = Credentials::given(&id.into(), &key.into(), None).unwrap();
        keys.token = Some("TOKENEXAMPLE==".into());
        let request = attempt_of(Site::China, Some("http://127.0.0.1:8080"), "ap-guangzhou", &keys);
        let signed = request.headers[header::AUTHORIZATION].to_str().unwrap();
        assert!(signed.contains("/2026-01-01/cvm/tc3_request"), "{signed}");
        let signature = "d29b004daf387794a742a0490b83677504003fb4ad34c81ffbdce93ada257015";
        assert!(signed.ends_with(signature), "{signed}");
        assert_eq!(request.headers["x-tc-token"], "TOKENEXAMPLE==");
        assert!(!format!("{:?}", request.headers).contains("TOKENEXAMPLE"));
    }

    #[test]
    fn the_servers_clock_is_learnt_from_its_date() {
        let api = Api::new(&TencentOptions::named("cn"));
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let mut late = answer(200, "");
        assert!(!api.learn_clock(&late, now), "no date");
        late.headers.insert(
            header::DATE,
            http::HeaderValue::from_static("Tue, 01 Dec 2026 01:00:00 GMT"),
        );
        assert!(api.learn_clock(&late, now));
        assert_eq!(api.server_time(now).to_string(), "2026-12-01T01:00:00Z");
        assert!(!api.learn_clock(&late, now), "already known, so no reason to try again");
    }
}
