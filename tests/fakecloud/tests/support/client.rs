//! A minimal signing HTTP client, written without the fake's own code.

use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use gpuwatch_fakecloud::FakeCloud;
use gpuwatch_fakecloud::aws::Keys;

/// Calls the fake with given keys, in a given region.
#[derive(Clone)]
pub struct Client {
    pub host: String,
    pub keys: Keys,
    pub region: String,
    /// How far the client's clock is ahead.
    pub skew: SignedDuration,
    /// The service in the credential scope, when it is not the one called.
    pub scope_service: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// Whether as many bytes came as were announced.
    pub whole: bool,
}

impl Client {
    pub fn new(fake: &FakeCloud, region: &str) -> Self {
        Self {
            host: fake.url().trim_start_matches("http://").to_owned(),
            keys: fake.aws().base_keys(),
            region: region.to_owned(),
            skew: SignedDuration::ZERO,
            scope_service: None,
        }
    }

    pub async fn ec2(&self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        self.query("ec2", "2016-11-15", action, parameters)
            .await
            .expect("an answer")
    }

    pub async fn sts(&self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        self.query("sts", "2011-06-15", action, parameters)
            .await
            .expect("an answer")
    }

    pub async fn organizations(&self, operation: &str, body: &str) -> Answer {
        let target = format!("AWSOrganizationsV20161128.{operation}");
        let headers = [
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", target.as_str()),
        ];
        self.send("organizations", "/", &headers, body)
            .await
            .expect("an answer")
    }

    pub async fn savings_plans(&self, operation: &str, body: &str) -> Answer {
        let path = format!("/{operation}");
        self.send("savingsplans", &path, &[("content-type", "application/json")], body)
            .await
            .expect("an answer")
    }

    /// A query call; `None` when the connection closes without an answer.
    pub async fn query(
        &self,
        service: &str,
        version: &str,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Option<Answer> {
        let body = form(action, version, parameters);
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        self.send(service, "/", &headers, &body).await
    }

    async fn send(&self, service: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
        let now = Timestamp::now().checked_add(self.skew).unwrap();
        let date = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut signed: Vec<(&str, &str)> = headers.to_vec();
        signed.extend([("host", self.host.as_str()), ("x-amz-date", date.as_str())]);
        signed.extend(
            self.keys
                .session_token
                .as_deref()
                .map(|token| ("x-amz-security-token", token)),
        );
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let canonical_headers = lines(&signed, ":", "\n");
        let canonical = format!("POST\n{path}\n\n{canonical_headers}\n{names}\n{}", sha256(body));
        let scope_service = self.scope_service.as_deref().unwrap_or(service);
        let scope = format!("{}/{}/{scope_service}/aws4_request", &date[..8], self.region);
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(&canonical));
        let mut key = format!("AWS4{}", self.keys.secret_access_key).into_bytes();
        for part in scope.split('/') {
            key = hmac(&key, part);
        }
        let signature = hex::encode(hmac(&key, &to_sign));
        let headers = lines(&signed, ": ", "\r\n");
        let request = format!(
            "POST {path} HTTP/1.1\r\n{headers}authorization: AWS4-HMAC-SHA256 Credential={}/{scope}, \
             SignedHeaders={names}, Signature={signature}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.keys.access_key_id,
            body.len()
        );
        exchange(&self.host, &request).await
    }
}

/// Sends a request as it is; `None` when nothing comes back.
pub async fn exchange(host: &str, request: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut may end in an error after some bytes.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let head = head.to_lowercase();
    let announced: usize = head.split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
    Some(Answer {
        status,
        whole: announced == body.len(),
        body: body.to_owned(),
        head,
    })
}

impl Answer {
    /// The texts of all elements of this name that hold only text.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let open = format!("<{name}>");
        self.body
            .split(&open)
            .skip(1)
            .filter_map(|rest| rest.split('<').next())
            .collect()
    }

    /// The only text of this name; fails unless there is exactly one.
    pub fn text(&self, name: &str) -> &str {
        let texts = self.texts(name);
        assert_eq!(texts.len(), 1, "{name} in {}", self.body);
        texts[0]
    }

    /// The error code, in XML or JSON.
    pub fn code(&self) -> String {
        if let Some(code) = self.texts("Code").first() {
            return (*code).to_owned();
        }
        if let Some(code) = self.head.split("x-amzn-errortype: ").nth(1) {
            return code.lines().next().unwrap_or_default().to_owned();
        }
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["__type"].as_str().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn lines(headers: &[(&str, &str)], between: &str, end: &str) -> String {
    let mut lines = String::new();
    for (name, value) in headers {
        lines.extend([name, between, value, end]);
    }
    lines
}

fn form(action: &str, version: &str, parameters: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", action)
        .append_pair("Version", version)
        .extend_pairs(parameters);
    form.finish()
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
