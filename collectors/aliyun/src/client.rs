//! Sends one signed call and reads its answer.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, Ordering},
};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason};
use gpuwatch_collector_rest::{Answer, Http, Origin, Request};
use http::{HeaderName, Method, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use serde::de::DeserializeOwned;

use crate::{
    AliyunOptions,
    credentials::Environment,
    errors,
    hosts::{Hosts, Product},
    sign::{Keys, Unsigned, nonce, query, sign},
};

/// A clock that is off by less than this is not corrected: the service accepts
/// 15 minutes.
const SKEW_WORTH_CORRECTING: SignedDuration = SignedDuration::from_mins(1);

/// Part of the time left that a listing waits for a detail: 1 / 4. What does
/// not answer must not cost the listing as well.
const SHARE_OF_TIME: u32 = 4;

/// Waits for a detail of a listing, for a part of the time that is left.
///
/// # Errors
/// Those of the detail, and [`Reason::Timeout`] when it takes too long.
pub(crate) async fn detail<T>(
    cx: &Context,
    call: Call,
    fetch: impl Future<Output = Result<T, CollectError>>,
) -> Result<T, CollectError> {
    let limit = cx.remaining() / SHARE_OF_TIME;
    cx.timeout(limit, fetch).await.unwrap_or_else(|| {
        let message = format!("{} did not end within {:.1} s", call.title(), limit.as_secs_f64());
        Err(CollectError::new(Reason::Timeout, message))
    })
}

/// An action of the RPC style, and what it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub product: Product,
    pub call: Call,
}

impl Action {
    pub(crate) const fn new(product: Product, operation: &'static str, permission: &'static str) -> Self {
        let service = match product {
            Product::Ecs => "ecs",
            Product::Sts => "sts",
            Product::Bss => "bssopenapi",
        };
        Self {
            product,
            call: Call::new(service, operation, permission),
        }
    }
}

/// Parameters by name; sorted, as they are signed.
pub(crate) type Parameters = BTreeMap<String, String>;

/// Parameters from pairs.
pub(crate) fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Connections and hosts of one section.
pub(crate) struct Client {
    http: Result<Http, CollectError>,
    hosts: Hosts,
    /// Seconds that the service's clock is ahead of this machine's.
    ahead: AtomicI64,
}

impl Client {
    pub(crate) fn new(options: &AliyunOptions, environment: &Environment) -> Self {
        Self {
            http: Http::new(),
            hosts: Hosts::new(options, environment),
            ahead: AtomicI64::new(0),
        }
    }

    /// The HTTP client.
    ///
    /// # Errors
    /// When TLS could not be set up.
    pub(crate) fn http(&self) -> Result<&Http, CollectError> {
        self.http.as_ref().map_err(Clone::clone)
    }

    /// Where calls of a product go.
    ///
    /// # Errors
    /// When the configured endpoint is no place to send credentials to.
    pub(crate) fn origin(&self, product: Product, region: &str, stated: Option<&str>) -> Result<Origin, CollectError> {
        self.hosts.origin(product, region, stated)
    }

    /// Makes one call, signed anew for every attempt.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn call<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        action: Action,
        origin: &Origin,
        parameters: &Parameters,
        keys: &Keys,
    ) -> Result<T, CollectError> {
        let answer = self.exchange(cx, action, origin, parameters, keys).await?;
        answer.json(action.call)
    }

    /// As [`Client::call`], with the answer as it came. A dry run is refused
    /// even where the call is permitted; that refusal is a success.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(crate) async fn exchange(
        &self,
        cx: &Context,
        action: Action,
        origin: &Origin,
        parameters: &Parameters,
        keys: &Keys,
    ) -> Result<Answer, CollectError> {
        let http = self.http()?;
        let query = query(parameters);
        let url = origin.url(&format!("/?{query}"))?;
        let host = origin.host_header();
        cx.call(action.call, || {
            let ahead = self.ahead.load(Ordering::Relaxed);
            let request = Self::signed(cx, action, &url, &query, &host, keys, ahead);
            async move {
                let answer = http.send(action.call, origin, request?).await?;
                if !answer.is_success() {
                    let error = errors::classify(action.call, &answer, cx.now());
                    if errors::is_permitted_dry_run(&error) {
                        return Ok(answer);
                    }
                    return Err(self.correct_clock(error, &answer, cx.now(), ahead));
                }
                // Read here, so that a garbled answer is asked for again.
                answer.json::<serde::de::IgnoredAny>(action.call)?;
                if action.product == Product::Bss
                    && let Some(error) = errors::refusal_within(action.call, &answer)
                {
                    return Err(error);
                }
                Ok(answer)
            }
        })
        .await
    }

    #[allow(clippy::too_many_arguments, reason = "what a request is made of")]
    fn signed(
        cx: &Context,
        action: Action,
        url: &url::Url,
        query: &str,
        host: &str,
        keys: &Keys,
        ahead: i64,
    ) -> Result<Request, CollectError> {
        let ahead = SignedDuration::from_secs(ahead);
        let date = cx.now().checked_add(ahead).unwrap_or_else(|_| cx.now());
        let unsigned = Unsigned {
            method: "POST",
            path: "/",
            query,
            host,
            action: action.call.operation,
            version: action.product.version(),
            date: &date.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            nonce: &nonce(),
            content_type: None,
            body: b"",
        };
        let mut request = Request::new(Method::POST, url.clone()).header(header::ACCEPT, "application/json")?;
        for (name, value) in sign(&unsigned, keys) {
            request = request.secret_header(HeaderName::from_static(name), &value)?;
        }
        Ok(request)
    }

    /// When a call was refused for its date, the answer's own date tells how
    /// far this machine's clock is off; the next attempt takes that into
    /// account, once.
    fn correct_clock(&self, error: CollectError, answer: &Answer, now: Timestamp, signed_with: i64) -> CollectError {
        if !errors::is_skewed(&error) {
            return error;
        }
        let theirs = answer
            .header(header::DATE.as_str())
            .and_then(|text| rfc2822::DateTimeParser::new().parse_timestamp(text).ok());
        let Some(theirs) = theirs else { return error };
        let ahead = theirs.duration_since(now);
        self.ahead.store(ahead.as_secs(), Ordering::Relaxed);
        // Compared with what this attempt was dated by: another call may have
        // found out in the meantime.
        let is_news = (ahead - SignedDuration::from_secs(signed_with)).abs() > SKEW_WORTH_CORRECTING;
        if is_news {
            tracing::warn!(
                seconds = ahead.as_secs(),
                "this machine's clock differs from the service's; requests are dated by the service's"
            );
        }
        error.retryable(is_news)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use gpuwatch_collector_rest::{ExposeSecret as _, SecretString};
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::testing::context;

    const ACTION: Action = Action::new(Product::Ecs, "DescribeInstances", "ecs:DescribeInstances");

    /// Signs a request as the service would check it: from what arrives.
    fn expected(request: &Request, keys: &Keys) -> String {
        let url = &request.url;
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str().unwrap()),
            None => url.host_str().unwrap().to_owned(),
        };
        let mut headers: BTreeMap<&str, &str> = BTreeMap::from([("host", host.as_str())]);
        for (name, value) in &request.headers {
            if name.as_str().starts_with("x-acs-") || name == header::CONTENT_TYPE {
                headers.insert(name.as_str(), value.to_str().unwrap());
            }
        }
        let digest = hex::encode(Sha256::digest(&request.body));
        assert_eq!(headers["x-acs-content-sha256"], digest);
        let mut canonical = format!(
            "{}\n{}\n{}\n",
            request.method,
            url.path(),
            url.query().unwrap_or_default()
        );
        for (name, value) in &headers {
            writeln!(canonical, "{name}:{value}").unwrap();
        }
        let names = headers.keys().copied().collect::<Vec<_>>().join(";");
        write!(canonical, "\n{names}\n{digest}").unwrap();
        let message = format!("ACS3-HMAC-SHA256\n{}", hex::encode(Sha256::digest(canonical)));
        let mac = Hmac::<Sha256>::new_from_slice(keys.secret.expose_secret().as_bytes()).unwrap();
        let signature = hex::encode(mac.chain_update(message).finalize().into_bytes());
        format!(
            "ACS3-HMAC-SHA256 Credential={},SignedHeaders={names},Signature={signature}",
            keys.id
        )
    }

    proptest! {
        #[test]
        fn what_is_signed_is_what_is_sent(
            pairs in prop::collection::btree_map("[A-Za-z.0-9]{1,12}", "\\PC{0,20}", 0..6),
            base in prop::sample::select(vec!["https://ecs.cn-beijing.aliyuncs.com", "http://127.0.0.1:18080"]),
            token in prop::option::of("[A-Za-z0-9+/=]{1,80}"),
            ahead in -90_000_i64..90_000,
        ) {
            let origin = Origin::new(base).unwrap();
            let query = query(&pairs);
            let url = origin.url(&format!("/?{query}")).unwrap();
            // No byte of it changes on its way into the URL.
            prop_assert_eq!(url.query().unwrap(), query.as_str());
            let back: Parameters = url.query_pairs().into_owned().collect();
            prop_assert_eq!(&back, &pairs);
            let keys = Keys {
                id: "LTAI5tTESTonlyNotARealKey".into(),
                secret: SecretString::from("gpuwatchTestSecretNotReal0123"),
                token: token.map(SecretString::from),
            };
            let host = origin.host_header();
            let request = Client::signed(&context(), ACTION, &url, &query, &host, &keys, ahead).unwrap();
            let sent = request.headers[header::AUTHORIZATION].to_str().unwrap();
            prop_assert_eq!(sent, expected(&request, &keys));
            prop_assert!(request.headers[header::AUTHORIZATION].is_sensitive());
        }
    }
}
