//! The metadata service of a machine: the keys of its role.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{CallKey, Exchange, FaultKind, Incoming, Reply};
use http::Method;
use serde_json::json;

use crate::world::World;

const TOKEN: &str = "/latest/api/token";
const ROLES: &str = "/latest/meta-data/ram/security-credentials/";
const LIFETIME_HEADER: &str = "x-aliyun-ecs-metadata-token-ttl-seconds";
const TOKEN_HEADER: &str = "x-aliyun-ecs-metadata-token";

/// The longest life of a token in seconds.
const MAX_LIFETIME: u32 = 21_600;

/// Another cloud has the same path for its tokens, with headers of its own.
pub(crate) fn recognises(request: &Incoming) -> bool {
    let path = request.uri.path();
    let has_header = request.header(LIFETIME_HEADER).is_some() || request.header(TOKEN_HEADER).is_some();
    path.starts_with(ROLES.trim_end_matches('/')) || (path.starts_with("/latest/") && has_header)
}

pub(crate) fn begin(world: &World, request: Incoming) -> Box<dyn Exchange> {
    let operation = if request.uri.path() == TOKEN {
        "token"
    } else {
        "security-credentials"
    };
    let key = CallKey {
        provider: "aliyun",
        service: "metadata".to_owned(),
        operation: operation.to_owned(),
        account: world.metadata().role.map(|(account, _)| account).unwrap_or_default(),
        ..CallKey::default()
    };
    Box::new(MetadataExchange {
        world: world.clone(),
        request,
        key,
    })
}

struct MetadataExchange {
    world: World,
    request: Incoming,
    key: CallKey,
}

impl Exchange for MetadataExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        None
    }

    fn answer(&self, _alteration: Option<FaultKind>) -> Reply {
        if self.request.uri.path() == TOKEN {
            return self.token();
        }
        self.credentials()
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        match kind {
            FaultKind::Throttled { .. } => page(429, "Too Many Requests"),
            FaultKind::ExpiredToken | FaultKind::AccessDenied | FaultKind::AuthFailure => page(403, "Forbidden"),
            FaultKind::OptInRequired => page(404, "Not Found"),
            _ => page(500, "Internal Server Error"),
        }
    }
}

impl MetadataExchange {
    fn token(&self) -> Reply {
        if self.request.method != Method::PUT {
            return page(405, "Method Not Allowed");
        }
        let lifetime = self.request.header(LIFETIME_HEADER).and_then(|text| text.parse().ok());
        if lifetime.is_none_or(|seconds: u32| !(1..=MAX_LIFETIME).contains(&seconds)) {
            return page(400, "Bad Request");
        }
        text(self.world.new_metadata_token())
    }

    fn credentials(&self) -> Reply {
        let metadata = self.world.metadata();
        let given = self.request.header(TOKEN_HEADER);
        let refused = match given {
            Some(token) => !metadata.tokens.iter().any(|known| known == token),
            None => metadata.tokens_required,
        };
        if refused {
            return page(403, "Forbidden");
        }
        let Some((account, role)) = metadata.role else {
            return page(404, "Not Found");
        };
        let asked = self.request.uri.path().strip_prefix(ROLES).unwrap_or_default();
        if asked.is_empty() {
            return text(role);
        }
        // A role that is not the machine's is a page for people, not JSON.
        if asked != role {
            return page(404, "Not Found");
        }
        let session = self.world.metadata_session(&account, &role);
        let time = |time: jiff::Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let body = json!({
            "Code": "Success",
            "AccessKeyId": session.keys.access_key_id,
            "AccessKeySecret": session.keys.access_key_secret,
            "SecurityToken": session.keys.security_token,
            "Expiration": session.expires.map(time),
            "LastUpdated": time(self.world.now()),
        });
        text(body.to_string())
    }
}

fn text(body: String) -> Reply {
    Reply {
        status: 200,
        content_type: "text/plain",
        headers: Vec::new(),
        body: Bytes::from(body),
        error_code: None,
    }
}

fn page(status: u16, title: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\">\n\
         <head><title>{status} - {title}</title></head>\n<body><h1>{status} - {title}</h1></body>\n</html>\n"
    );
    Reply {
        status,
        content_type: "text/html",
        headers: Vec::new(),
        body: Bytes::from(body),
        error_code: Some(status.to_string()),
    }
}
