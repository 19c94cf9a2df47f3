//! A minimal signing client, written without the fake's own code.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use gpuwatch_fakecloud_aliyun::{AccountSpec, Aliyun, Keys, RegionAccess, World};
use gpuwatch_fakecloud_core::{Server, ServerOptions};
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub const UID: &str = "1234567890123456";
pub const OTHER: &str = "5600000000000002";
pub const REGION: &str = "cn-hangzhou";

static NONCE: AtomicU64 = AtomicU64::new(0);

/// One account, two open regions, one on request, one closed.
pub fn world() -> World {
    let world = World::with_regions(&[
        (REGION, RegionAccess::Open),
        ("ap-southeast-1", RegionAccess::Open),
        ("cn-shanghai-finance-1", RegionAccess::OnRequest),
        ("ap-south-1", RegionAccess::Closed),
    ]);
    world.add_account(UID, AccountSpec::default());
    world
}

pub async fn serve(world: &World) -> Server {
    let clouds = vec![Box::new(Aliyun::new(world.clone())) as _];
    Server::start(&ServerOptions::default(), clouds).await.unwrap()
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.body["Code"].as_str().unwrap_or_default()
    }

    pub fn outcome(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    V3,
    V3Form,
    V1,
}

#[derive(Clone)]
pub struct Client {
    pub url: String,
    pub host: Option<String>,
    pub keys: Keys,
    pub scheme: Scheme,
    /// How far the client's clock is ahead.
    pub skew: SignedDuration,
    pub nonce: Option<String>,
    pub leave_unsigned: Option<&'static str>,
}

impl Client {
    pub fn new(server: &Server, world: &World) -> Self {
        Self {
            url: server.url(),
            host: None,
            keys: world.base_keys(),
            scheme: Scheme::V3,
            skew: SignedDuration::ZERO,
            nonce: None,
            leave_unsigned: None,
        }
    }

    pub async fn ecs(&self, action: &str, params: &[(&str, &str)]) -> Answer {
        self.call("2014-05-26", action, params).await
    }

    pub async fn sts(&self, action: &str, params: &[(&str, &str)]) -> Answer {
        self.call("2015-04-01", action, params).await
    }

    pub async fn bss(&self, action: &str, params: &[(&str, &str)]) -> Answer {
        self.call("2017-12-14", action, params).await
    }

    /// Rows of every page of `DescribeInstances`, and the number of pages.
    pub async fn instances(&self, region: &str) -> (Vec<Value>, usize) {
        let (mut rows, mut pages, mut token) = (Vec::new(), 0, String::new());
        loop {
            let params = [("RegionId", region), ("MaxResults", "100"), ("NextToken", &token)];
            let answer = self.ecs("DescribeInstances", &params).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            rows.extend(answer.body["Instances"]["Instance"].as_array().unwrap().clone());
            pages += 1;
            answer.body["NextToken"].as_str().unwrap().clone_into(&mut token);
            if token.is_empty() || pages > 50 {
                return (rows, pages);
            }
        }
    }

    pub async fn call(&self, version: &str, action: &str, params: &[(&str, &str)]) -> Answer {
        let params: BTreeMap<String, String> = params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let date = Timestamp::now().checked_add(self.skew).unwrap();
        let date = date.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let number = NONCE.fetch_add(1, Ordering::Relaxed);
        let nonce = self.nonce.clone().unwrap_or_else(|| format!("nonce-{number}"));
        match self.scheme {
            Scheme::V1 => self.v1(version, action, params, &date, &nonce).await,
            Scheme::V3 | Scheme::V3Form => self.v3(version, action, &params, &date, &nonce).await,
        }
    }

    async fn v3(
        &self,
        version: &str,
        action: &str,
        params: &BTreeMap<String, String>,
        date: &str,
        nonce: &str,
    ) -> Answer {
        let query = query(params);
        let (query, body) = match self.scheme {
            Scheme::V3Form => (String::new(), query),
            _ => (query, String::new()),
        };
        let digest = hex::encode(Sha256::digest(&body));
        let host = self
            .host
            .clone()
            .unwrap_or_else(|| self.url.trim_start_matches("http://").to_owned());
        let mut headers: BTreeMap<&str, &str> = BTreeMap::from([
            ("host", host.as_str()),
            ("x-acs-action", action),
            ("x-acs-content-sha256", &digest),
            ("x-acs-date", date),
            ("x-acs-signature-nonce", nonce),
            ("x-acs-version", version),
        ]);
        if self.scheme == Scheme::V3Form {
            headers.insert("content-type", "application/x-www-form-urlencoded");
        }
        if let Some(token) = &self.keys.security_token {
            headers.insert("x-acs-accesskey-id", &self.keys.access_key_id);
            headers.insert("x-acs-security-token", token);
        }
        let mut canonical = format!("POST\n/\n{query}\n");
        let signed = headers.iter().filter(|(name, _)| Some(**name) != self.leave_unsigned);
        let mut names = Vec::new();
        for (name, value) in signed {
            writeln!(canonical, "{name}:{value}").unwrap();
            names.push(*name);
        }
        let names = names.join(";");
        write!(canonical, "\n{names}\n{digest}").unwrap();
        let message = format!("ACS3-HMAC-SHA256\n{}", hex::encode(Sha256::digest(canonical)));
        let mut mac = Hmac::<Sha256>::new_from_slice(self.keys.access_key_secret.as_bytes()).unwrap();
        mac.update(message.as_bytes());
        let authorization = format!(
            "ACS3-HMAC-SHA256 Credential={},SignedHeaders={names},Signature={}",
            self.keys.access_key_id,
            hex::encode(mac.finalize().into_bytes())
        );
        let mut request = http().post(format!("{}/?{query}", self.url)).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        answer(request.header("authorization", authorization)).await
    }

    async fn v1(
        &self,
        version: &str,
        action: &str,
        mut params: BTreeMap<String, String>,
        date: &str,
        nonce: &str,
    ) -> Answer {
        let mut set = |name: &str, value: &str| params.insert(name.to_owned(), value.to_owned());
        set("Action", action);
        set("Version", version);
        set("Format", "JSON");
        set("AccessKeyId", &self.keys.access_key_id);
        set("SignatureMethod", "HMAC-SHA1");
        set("SignatureVersion", "1.0");
        set("SignatureNonce", nonce);
        set("Timestamp", date);
        if let Some(token) = &self.keys.security_token {
            set("SecurityToken", token);
        }
        let canonical = query(&params);
        let key = format!("{}&", self.keys.access_key_secret);
        let mut mac = Hmac::<sha1::Sha1>::new_from_slice(key.as_bytes()).unwrap();
        mac.update(format!("GET&%2F&{}", encode(&canonical)).as_bytes());
        let signature = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
        let url = format!("{}/?{canonical}&Signature={}", self.url, encode(&signature));
        answer(http().get(url)).await
    }
}

pub fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or_default();
    Answer {
        status,
        headers,
        text,
        body,
    }
}

fn query(params: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = params
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    pairs.join("&")
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
        .replace('*', "%2A")
        .replace("%7E", "~")
}
