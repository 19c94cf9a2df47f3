//! A scripted service: answers exactly the records a test puts in, checks
//! signatures by its own reading of them, and shows every fault.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub const OWNER: &str = "100000000001";
pub const SECRET_ID: &str = "AKIDscripted";
pub const SECRET_KEY: &str = "SKscripted";
pub const WEB_TOKEN: &str = "web-identity-token";

/// Name of the list, name of the total, largest page.
fn list_of(service: &str, operation: &str) -> Option<(&'static str, &'static str, u64)> {
    Some(match (service, operation) {
        ("cvm", "DescribeInstances") => ("InstanceSet", "TotalCount", 100),
        ("cvm", "DescribeReservedInstances") => ("ReservedInstancesSet", "TotalCount", 100),
        ("cvm", "DescribeHosts") => ("HostSet", "TotalCount", 100),
        ("tke", "DescribeClusters") => ("Clusters", "TotalCount", 100),
        ("tke", "DescribeClusterInstances") => ("InstanceSet", "TotalCount", 100),
        ("tke", "DescribeEKSContainerInstances") => ("EksCis", "TotalCount", 100),
        ("tke", "DescribeReservedInstances") => ("ReservedInstanceSet", "TotalCount", 100),
        ("svp", "DescribeSavingPlanOverview") => ("Overviews", "Total", 200),
        ("svp", "DescribeSavingPlanCoverage") => ("DetailSet", "TotalCount", 200),
        ("cvm", "DescribeZoneInstanceConfigInfos") => ("InstanceTypeQuotaSet", "", 0),
        ("cvm", "DescribeInstanceTypeConfigs") => ("InstanceTypeConfigSet", "", 0),
        ("cvm" | "region", "DescribeRegions") => ("RegionSet", "TotalCount", 0),
        _ => return None,
    })
}

#[derive(Default)]
pub struct State {
    /// Records by account, region (empty for any) and operation.
    pub tables: HashMap<(String, String, String), Vec<Value>>,
    /// Account and secret key by secret id.
    pub keys: HashMap<String, (String, String, Option<String>)>,
    /// Error code by account (empty for any) and operation.
    pub refused: HashMap<(String, String), &'static str>,
    /// Records to remove after so many pages of `DescribeInstances`.
    pub removals: Vec<(u64, String)>,
    pub pages: u64,
    /// Whether pages have neither list nor total.
    pub hollow: bool,
    /// Listings that have shown an empty page in place of the first.
    pub emptied: HashSet<String>,
    /// Server time − this machine's, in seconds.
    pub skew: i64,
    pub external_id: Option<String>,
    pub session_seconds: i64,
    pub sessions: u64,
    /// The machine's role, as its metadata service knows it.
    pub machine_role: Option<String>,
}

#[derive(Clone)]
pub struct Script(Arc<Mutex<State>>);

impl Script {
    pub fn new() -> Self {
        let mut state = State {
            session_seconds: 7200,
            ..State::default()
        };
        state
            .keys
            .insert(SECRET_ID.into(), (OWNER.into(), SECRET_KEY.into(), None));
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn add(&self, account: &str, region: &str, operation: &str, record: Value) {
        let key = (account.to_owned(), region.to_owned(), operation.to_owned());
        self.state().tables.entry(key).or_default().push(record);
    }

    pub fn refuse(&self, account: &str, operation: &str, code: &'static str) {
        let key = (account.to_owned(), operation.to_owned());
        self.state().refused.insert(key, code);
    }

    /// Every session is no longer accepted.
    pub fn end_sessions(&self) {
        self.state().keys.retain(|_, (_, _, token)| token.is_none());
    }
}

impl State {
    fn session(&mut self, account: &str) -> Value {
        self.sessions += 1;
        let id = format!("AKIDsession{}", self.sessions);
        let (key, token) = (
            format!("SKsession{}", self.sessions),
            format!("token{}==", self.sessions),
        );
        self.keys
            .insert(id.clone(), (account.to_owned(), key.clone(), Some(token.clone())));
        json!({
            "Credentials": {"TmpSecretId": id, "TmpSecretKey": key, "Token": token},
            "ExpiredTime": Timestamp::now().as_second() + self.session_seconds,
        })
    }
}

struct Asked {
    script: Script,
    key: CallKey,
    body: Value,
    refusal: Option<(String, Option<String>)>,
    metadata: Option<String>,
}

impl Cloud for Script {
    fn recognises(&self, _: &Incoming) -> bool {
        true
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        let mut key = CallKey {
            provider: "tencent",
            ..CallKey::default()
        };
        if request.method == http::Method::GET {
            key.service = "metadata".into();
            return Box::new(Asked {
                script: self.clone(),
                key,
                body: Value::Null,
                refusal: None,
                metadata: Some(request.uri.path().to_owned()),
            });
        }
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        key.operation = header("x-tc-action");
        key.region = header("x-tc-region");
        let caller = authenticate(&self.state(), &request);
        let skew = self.state().skew;
        let refusal = match caller {
            Ok((account, service)) => {
                (key.account, key.service) = (account, service);
                None
            }
            Err(code) => Some((code.to_owned(), Some(date(skew)))),
        };
        Box::new(Asked {
            script: self.clone(),
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            key,
            refusal,
            metadata: None,
        })
    }
}

fn date(skew: i64) -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second() + skew).unwrap();
    now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The account and service of a request, or why it is refused.
fn authenticate(state: &State, request: &Incoming) -> Result<(String, String), &'static str> {
    let header = |name: &str| request.header(name).ok_or("MissingParameter");
    let authorization = header("authorization")?;
    if authorization == "SKIP" {
        return Ok((String::new(), "sts".into()));
    }
    let rest = authorization
        .strip_prefix("TC3-HMAC-SHA256 Credential=")
        .ok_or("AuthFailure.InvalidAuthorization")?;
    let (scope, rest) = rest
        .split_once(", SignedHeaders=content-type;host, Signature=")
        .ok_or("AuthFailure.InvalidAuthorization")?;
    let [id, day, service, "tc3_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
        return Err("AuthFailure.InvalidAuthorization");
    };
    let (account, secret, token) = state.keys.get(id).ok_or(if id.starts_with("AKIDsession") {
        "AuthFailure.TokenFailure"
    } else {
        "AuthFailure.SecretIdNotFound"
    })?;
    if request.header("x-tc-token") != token.as_deref() {
        return Err("AuthFailure.TokenFailure");
    }
    let timestamp: i64 = header("x-tc-timestamp")?.parse().map_err(|_| "InvalidParameter")?;
    if (Timestamp::now().as_second() + state.skew - timestamp).abs() > 300 {
        return Err("AuthFailure.SignatureExpire");
    }
    if Timestamp::from_second(timestamp)
        .unwrap()
        .strftime("%Y-%m-%d")
        .to_string()
        != day
    {
        return Err("AuthFailure.SignatureFailure");
    }
    let hash = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let canonical = format!(
        "POST\n/\n\ncontent-type:{}\nhost:{}\n\ncontent-type;host\n{}",
        header("content-type")?,
        header("host")?,
        hash(&request.body)
    );
    let text = format!(
        "TC3-HMAC-SHA256\n{timestamp}\n{day}/{service}/tc3_request\n{}",
        hash(canonical.as_bytes())
    );
    let mac = |key: &[u8], text: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes()
    };
    let key = mac(format!("TC3{secret}").as_bytes(), day);
    let key = mac(&mac(&key, service), "tc3_request");
    if hex::encode(mac(&key, &text)) != rest {
        return Err("AuthFailure.SignatureFailure");
    }
    Ok((account.clone(), service.to_owned()))
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply {
        status,
        // As some of the real answers are.
        content_type: "text/plain; charset=utf-8",
        headers: Vec::new(),
        body: body.to_string().into(),
        error_code: None,
    }
}

fn success(mut response: Value) -> Reply {
    response["RequestId"] = json!("r-1");
    reply(200, &json!({"Response": response}))
}

fn failure(code: &str) -> Reply {
    let error = json!({"Code": code, "Message": "Refused by the script."});
    let mut reply = reply(200, &json!({"Response": {"Error": error, "RequestId": "r-1"}}));
    reply.error_code = Some(code.to_owned());
    reply
}

impl Exchange for Asked {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        let (code, date) = self.refusal.as_ref()?;
        let mut reply = failure(code);
        reply.headers.extend(date.clone().map(|date| ("date", date)));
        Some(reply)
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        let mut state = self.script.state();
        if let Some(path) = &self.metadata {
            return metadata(&mut state, path);
        }
        let (account, operation) = (&self.key.account, &self.key.operation);
        for account in [account.as_str(), ""] {
            if let Some(code) = state.refused.get(&(account.to_owned(), operation.clone())) {
                return failure(code);
            }
        }
        match operation.as_str() {
            "GetCallerIdentity" => success(json!({"AccountId": account, "Type": "CAMUser"})),
            "AssumeRole" => self.assume(&mut state, "RoleArn"),
            "AssumeRoleWithWebIdentity" if self.body["WebIdentityToken"] != WEB_TOKEN => {
                failure("AuthFailure.TokenFailure")
            }
            "AssumeRoleWithWebIdentity" => self.assume(&mut state, "RoleArn"),
            _ => self.list(&mut state, alteration),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        match kind {
            FaultKind::Throttled { .. } => failure("RequestLimitExceeded.UinLimitExceeded"),
            FaultKind::InternalError => failure("InternalError.GatewayError"),
            FaultKind::ExpiredToken => failure("AuthFailure.TokenFailure"),
            FaultKind::AccessDenied => failure("UnauthorizedOperation.CamNoAuth"),
            FaultKind::AuthFailure => failure("AuthFailure.SecretIdNotFound"),
            FaultKind::OptInRequired => failure("UnsupportedRegion"),
            other => panic!("{other} is no failure"),
        }
    }
}

impl Asked {
    fn assume(&self, state: &mut State, field: &str) -> Reply {
        let arn = self.body[field].as_str().unwrap_or_default();
        let account = arn
            .trim_start_matches("qcs::cam::uin/")
            .split(':')
            .next()
            .unwrap()
            .to_owned();
        if state.external_id.is_some() && self.body["ExternalId"].as_str() != state.external_id.as_deref() {
            return failure("UnauthorizedOperation");
        }
        success(state.session(&account))
    }

    fn list(&self, state: &mut State, alteration: Option<FaultKind>) -> Reply {
        let CallKey {
            service,
            operation,
            account,
            region,
            ..
        } = &self.key;
        let Some((list, total, limit)) = list_of(service, operation) else {
            return failure("InvalidAction");
        };
        let named = format!("{service} {operation}");
        let find = |region: &str| {
            state
                .tables
                .get(&(account.clone(), region.to_owned(), named.clone()))
                .cloned()
        };
        let mut rows = find(region).or_else(|| find("")).unwrap_or_default();
        if let Some(cluster) = self.body["ClusterId"].as_str() {
            rows.retain(|row| row["_cluster"] == cluster);
        }
        if operation == "DescribeZoneInstanceConfigInfos" {
            let wanted: HashSet<&str> = self.body["Filters"][0]["Values"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_str)
                .collect();
            if wanted.len() > 100 {
                return failure("InvalidParameterValue.LimitExceeded");
            }
            rows.retain(|row| row["InstanceType"].as_str().is_some_and(|name| wanted.contains(name)));
        }
        let mut count = rows.len() as u64;
        if limit > 0 {
            let (Some(asked), Some(mut offset)) = (self.body["Limit"].as_u64(), self.body["Offset"].as_u64()) else {
                return failure("MissingParameter");
            };
            if asked > limit {
                return failure("InvalidParameterValue.LimitExceeded");
            }
            match alteration {
                Some(FaultKind::EndlessToken) => count = offset + 2 * asked,
                Some(FaultKind::RepeatedToken) => (count, offset) = (offset + 2 * asked, 0),
                Some(FaultKind::EmptyPage)
                    if offset == 0 && state.emptied.insert(format!("{account} {region} {named}")) =>
                {
                    rows.clear();
                }
                _ => {}
            }
            rows = rows.into_iter().skip(offset as usize).take(asked as usize).collect();
        }
        alter(&mut rows, alteration);
        if state.hollow && limit > 0 {
            return success(json!({}));
        }
        let mut response = Map::new();
        response.insert(list.to_owned(), rows.into());
        if !total.is_empty() {
            response.insert(total.to_owned(), count.into());
        }
        if operation == "DescribeInstances" {
            state.pages += 1;
            let pages = state.pages;
            let gone: Vec<String> = state
                .removals
                .iter()
                .filter(|(at, _)| *at == pages)
                .map(|(_, id)| id.clone())
                .collect();
            for rows in state.tables.values_mut() {
                rows.retain(|row| !gone.iter().any(|id| row["InstanceId"] == *id));
            }
        }
        success(Value::Object(response))
    }
}

fn alter(rows: &mut Vec<Value>, alteration: Option<FaultKind>) {
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            for row in rows.iter_mut().take(2).filter(|row| row.get("InstanceState").is_some()) {
                row["InstanceState"] = json!("BRAND_NEW_STATE");
                row["InstanceChargeType"] = json!("BRAND_NEW_MODE");
            }
        }
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => *rows = rows.iter().flat_map(|row| [row.clone(), row.clone()]).collect(),
        Some(FaultKind::MalformedRecord) => rows.extend([json!({"InstanceName": "no id"}), json!("no record")]),
        _ => {}
    }
}

fn metadata(state: &mut State, path: &str) -> Reply {
    let Some(role) = state.machine_role.clone() else {
        return reply(404, &Value::Null);
    };
    if path.ends_with("/security-credentials/") {
        let mut reply = reply(200, &Value::Null);
        reply.body = role.into_bytes().into();
        return reply;
    }
    let session = state.session(OWNER);
    let mut answer = session["Credentials"].clone();
    answer["Code"] = json!("Success");
    answer["ExpiredTime"] = session["ExpiredTime"].clone();
    reply(200, &answer)
}
