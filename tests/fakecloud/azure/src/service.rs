//! From an HTTP request to an authenticated call and back.

use std::collections::BTreeMap;

use bytes::Bytes;
use gpuwatch_fakecloud_core::random::fnv1a;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::page::{self, Listing, Row, page, without_expansions};
use crate::route::Operation;
use crate::rows::View;
use crate::world::{Inner, Subscription, World};
use crate::{auth, benefits, compute, graph, sizes, subscriptions, versions};

/// Headers of an answer.
type Headers = Vec<(&'static str, String)>;

/// Rows of a page of ARM listings.
const PAGE_ROWS: usize = 200;

/// The simulated Azure behind the shared server.
pub struct Azure {
    world: World,
}

impl Azure {
    /// Serves this world.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { world }
    }
}

impl Cloud for Azure {
    fn recognises(&self, request: &Incoming) -> bool {
        let path = request.uri.path().to_lowercase();
        path == "/subscriptions"
            || path.starts_with("/subscriptions/")
            || path.starts_with("/providers/microsoft.")
            || path.ends_with("/oauth2/v2.0/token")
            || path == "/metadata/identity/oauth2/token"
    }

    fn begin(&self, request: Incoming) -> Box<dyn Exchange> {
        let (operation, subscription) = Operation::parse(&request);
        let query = auth::pairs(request.uri.query().unwrap_or_default());
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let (service, word, _) = operation.words();
        let of_graph = body["subscriptions"][0].as_str().map(str::to_owned);
        let token = query.get("$skiptoken").cloned();
        let key = CallKey {
            provider: "azure",
            service: service.to_owned(),
            operation: word.to_owned(),
            account: of_graph.unwrap_or(subscription),
            region: String::new(),
            page_token: token.or_else(|| body["options"]["$skipToken"].as_str().map(str::to_owned)),
        };
        Box::new(AzureExchange {
            world: self.world.clone(),
            operation,
            key,
            body,
            request,
        })
    }
}

/// What an operation in a subscription finds.
enum Found<'a> {
    Rows(Vec<Row<'a>>),
    One(Value),
}

/// The scale set whose machines a filter asks for.
fn set_of_filter(filter: &str) -> Result<&str, ArmError> {
    let key = "virtualMachineScaleSet/id";
    let quoted = filter.strip_prefix(&format!("'{key}' eq '"));
    let id = quoted.or_else(|| filter.strip_prefix(&format!("{key} eq '")));
    id.and_then(|rest| rest.strip_suffix('\''))
        .ok_or_else(|| ArmError::bad_request("Only a filter by the id of a scale set is supported."))
}

struct AzureExchange {
    world: World,
    operation: Operation,
    key: CallKey,
    body: Value,
    request: Incoming,
}

impl Exchange for AzureExchange {
    fn key(&self) -> &CallKey {
        &self.key
    }

    fn refusal(&self) -> Option<Reply> {
        self.admit().err().map(|error| error.render())
    }

    fn answer(&self, alteration: Option<FaultKind>) -> Reply {
        let answered = match self.operation {
            Operation::Graph => self.query(alteration),
            _ => self.respond(alteration).map(|value| (value, Vec::new())),
        };
        match answered {
            Ok((value, headers)) => Reply {
                status: 200,
                content_type: "application/json; charset=utf-8",
                headers,
                body: Bytes::from(value.to_string()),
                error_code: None,
            },
            Err(error) => error.render(),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let scope = self.scope();
        let error = match self.operation {
            Operation::Token { .. } | Operation::MachineToken => ArmError::injected_at_sign_in(kind),
            Operation::Graph => ArmError::injected_in_graph(kind, &scope),
            _ => ArmError::injected(kind, self.operation.words().2, &scope),
        };
        error.render()
    }
}

impl AzureExchange {
    /// What a permission is needed for: the subscription, or the tenant's
    /// provider.
    fn scope(&self) -> String {
        if self.key.account.is_empty() {
            let namespace = self.operation.words().2.split('/').next().unwrap_or_default();
            return format!("/providers/{namespace}");
        }
        format!("/subscriptions/{}", self.key.account)
    }

    fn admit(&self) -> Result<(), ArmError> {
        let method = match self.operation {
            Operation::Token { .. } | Operation::Graph => "POST",
            _ => "GET",
        };
        if self.request.method.as_str() != method {
            return Err(ArmError::method(self.request.method.as_str()));
        }
        if matches!(self.operation, Operation::Token { .. } | Operation::MachineToken) {
            return Ok(());
        }
        let inner = self.world.read();
        auth::check(&inner, &self.request)?;
        let path = self.request.uri.path();
        if self.operation == Operation::Unknown {
            return Err(ArmError::not_found(path));
        }
        let (service, operation, _) = self.operation.words();
        let query = auth::pairs(self.request.uri.query().unwrap_or_default());
        let given = query.get("api-version").map(String::as_str);
        match inner.versions.get(operation) {
            Some(known) => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                versions::check(&known, given, path)
            }
            None => versions::check(versions::of(service, operation), given, path),
        }
    }

    /// A query of Resource Graph, counted against the caller's quota.
    fn query(&self, alteration: Option<FaultKind>) -> Result<(Value, Headers), ArmError> {
        let refusal = self.world.read().graph_refusal;
        match refusal {
            None => {}
            Some(404) => return Err(ArmError::no_namespace("Microsoft.ResourceGraph")),
            Some(_) => return Err(ArmError::graph_denied()),
        }
        let left = self.world.write().graph_quota.take(Timestamp::now());
        let left = left.map_err(ArmError::rate)?;
        let value = graph::resources(&self.world.read(), &self.body, alteration)?;
        Ok((value, left.headers().to_vec()))
    }

    fn respond(&self, alteration: Option<FaultKind>) -> Result<Value, ArmError> {
        let form = || auth::pairs(&String::from_utf8_lossy(&self.request.body));
        match &self.operation {
            Operation::Token { tenant } => return auth::token(&self.world, tenant, &form()),
            Operation::MachineToken => return auth::of_machine(&self.world, &self.request),
            _ => {}
        }
        let inner = self.world.read();
        let rows = match &self.operation {
            Operation::Subscriptions => subscriptions::list(&inner),
            Operation::Reservations | Operation::SavingsPlans => self.of_tenant(&inner)?,
            _ => {
                let subscription = self.subscription(&inner)?;
                match self.of_subscription(&inner, subscription)? {
                    Found::Rows(rows) => rows,
                    Found::One(mut one) => {
                        if alteration == Some(FaultKind::PartialResult) {
                            without_expansions(&mut one);
                        }
                        return Ok(one);
                    }
                }
            }
        };
        self.listing(&rows, inner.foreign_links, alteration)
    }

    /// What the tenant bought, as far as the caller may see it.
    fn of_tenant<'a>(&self, inner: &'a Inner) -> Result<Vec<Row<'a>>, ArmError> {
        let (_, _, action) = self.operation.words();
        match inner.denied.get(action) {
            Some(200) => Ok(Vec::new()),
            Some(status) => Err(ArmError::denied_with(*status, action, &self.scope())),
            None if self.operation == Operation::Reservations => Ok(benefits::reservations(inner)),
            None => Ok(benefits::savings_plans(inner)),
        }
    }

    /// The subscription of the call, in which the caller has the permission.
    fn subscription<'a>(&self, inner: &'a Inner) -> Result<&'a Subscription, ArmError> {
        let id = &self.key.account;
        let found = inner.subscriptions.values().find(|s| s.id.eq_ignore_ascii_case(id));
        let subscription = found.ok_or_else(|| ArmError::no_subscription(id))?;
        let (_, _, action) = self.operation.words();
        if subscription.denied.contains(action) {
            return Err(ArmError::denied(action, &format!("/subscriptions/{id}")));
        }
        Ok(subscription)
    }

    fn of_subscription<'a>(&self, inner: &Inner, subscription: &'a Subscription) -> Result<Found<'a>, ArmError> {
        let query = auth::pairs(self.request.uri.query().unwrap_or_default());
        let is = |name: &str, value: &str| query.get(name).is_some_and(|given| given.eq_ignore_ascii_case(value));
        Ok(Found::Rows(match &self.operation {
            Operation::Locations => page::rows(subscriptions::locations(inner), Value::clone),
            Operation::Machines => {
                let set = query.get("$filter").map(|filter| set_of_filter(filter)).transpose()?;
                let view = match query.get("$expand").map(String::as_str) {
                    None if is("statusOnly", "true") => View::Status,
                    None => View::Model,
                    Some("instanceView") if set.is_some() => View::Expanded,
                    Some(_) => {
                        return Err(ArmError::bad_request("$expand is only valid together with $filter."));
                    }
                };
                compute::machines(subscription, view, set)
            }
            Operation::ScaleSets => compute::scale_sets(subscription),
            Operation::Members(set) => compute::members(subscription, set, is("$expand", "instanceView"))?,
            Operation::Skus => {
                let filter = query.get("$filter").map_or("", String::as_str);
                let location = filter
                    .strip_prefix("location eq '")
                    .and_then(|rest| rest.strip_suffix('\''));
                let location =
                    location.ok_or_else(|| ArmError::bad_request("Only a filter by location is supported."))?;
                page::rows(sizes::skus(location), Value::clone)
            }
            Operation::CapacityGroups => {
                // References to machines only; the use has each group itself.
                if query.get("$expand").is_some_and(|part| !part.ends_with("/$ref")) {
                    return Err(ArmError::bad_request("$expand of a list has references only."));
                }
                compute::capacity_groups(subscription)
            }
            Operation::CapacityGroup(group) => {
                let with_use = is("$expand", "instanceView");
                return compute::capacity_group(subscription, group, with_use).map(Found::One);
            }
            Operation::CapacityMembers(group) => compute::capacity_members(subscription, group)?,
            _ => return Err(ArmError::not_found(self.request.uri.path())),
        }))
    }

    fn listing(&self, rows: &[Row<'_>], foreign: bool, alteration: Option<FaultKind>) -> Result<Value, ArmError> {
        let query = auth::pairs(self.request.uri.query().unwrap_or_default());
        let token = query.get("$skiptoken").map(String::as_str);
        let listing = Listing {
            asked: self.asked(&query),
            limit: PAGE_ROWS,
            token,
        };
        let page =
            page(rows, &listing, alteration).ok_or_else(|| ArmError::bad_request("The skip token is not valid."))?;
        let mut answer = json!({"value": page.rows});
        if let Some(next) = page.next {
            answer["nextLink"] = json!(self.link(&next, foreign));
        }
        Ok(answer)
    }

    /// What a listing's tokens are good for: its path and parameters.
    fn asked(&self, query: &BTreeMap<String, String>) -> u64 {
        let mut asked = self.request.uri.path().to_lowercase();
        for (name, value) in query.iter().filter(|(name, _)| *name != "$skiptoken") {
            asked.extend(["\n", name, "=", value]);
        }
        fnv1a(asked.as_bytes())
    }

    /// The whole address of the next page, on the host that was asked unless
    /// it has to be another.
    fn link(&self, token: &str, foreign: bool) -> String {
        let host = self.request.header("host").unwrap_or("127.0.0.1");
        let origin = if foreign {
            "https://elsewhere.invalid".to_owned()
        } else {
            format!("http://{host}")
        };
        let query = self.request.uri.query().unwrap_or_default();
        let kept: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.starts_with("%24skiptoken="))
            .collect();
        format!(
            "{origin}{}?{}&%24skiptoken={token}",
            self.request.uri.path(),
            kept.join("&")
        )
    }
}
