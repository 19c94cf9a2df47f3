//! From an HTTP request to an authenticated call and back.

use bytes::Bytes;
use gpuwatch_fakecloud_core::{CallKey, Cloud, Exchange, FaultKind, Incoming, Reply};
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::page::page;
use crate::world::{Inner, Subscription, World};
use crate::{auth, benefits, compute, graph, sizes, subscriptions};

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

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Token { tenant: String },
    MachineToken,
    Graph,
    Subscriptions,
    Locations,
    Machines,
    ScaleSets,
    Members { set: String },
    Skus,
    CapacityGroups,
    CapacityGroup { name: String },
    CapacityMembers { group: String },
    Reservations,
    SavingsPlans,
    Unknown,
}

impl Operation {
    /// Service, operation and permission.
    const fn words(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Token { .. } | Self::MachineToken => ("login", "token", ""),
            Self::Graph => ("resourcegraph", "resources", "Microsoft.ResourceGraph/resources/read"),
            Self::Subscriptions => ("subscriptions", "list", "Microsoft.Resources/subscriptions/read"),
            Self::Locations => (
                "subscriptions",
                "locations.list",
                "Microsoft.Resources/subscriptions/locations/read",
            ),
            Self::Machines => (
                "compute",
                "virtualMachines.listAll",
                "Microsoft.Compute/virtualMachines/read",
            ),
            Self::ScaleSets => (
                "compute",
                "virtualMachineScaleSets.listAll",
                "Microsoft.Compute/virtualMachineScaleSets/read",
            ),
            Self::Members { .. } => (
                "compute",
                "virtualMachineScaleSetVMs.list",
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
            ),
            Self::Skus => ("compute", "skus.list", "Microsoft.Compute/skus/read"),
            Self::CapacityGroups => (
                "compute",
                "capacityReservationGroups.list",
                "Microsoft.Compute/capacityReservationGroups/read",
            ),
            Self::CapacityGroup { .. } => (
                "compute",
                "capacityReservationGroups.get",
                "Microsoft.Compute/capacityReservationGroups/read",
            ),
            Self::CapacityMembers { .. } => (
                "compute",
                "capacityReservations.list",
                "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
            ),
            Self::Reservations => (
                "capacity",
                "reservations.list",
                "Microsoft.Capacity/reservationOrders/reservations/read",
            ),
            Self::SavingsPlans => (
                "billingbenefits",
                "savingsPlans.list",
                "Microsoft.BillingBenefits/savingsPlans/read",
            ),
            Self::Unknown => ("arm", "unknown", ""),
        }
    }

    fn parse(request: &Incoming) -> (Self, String) {
        let path = request.uri.path().to_lowercase();
        let original: Vec<&str> = request.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = |at: usize| original.get(at).map(|part| (*part).to_owned()).unwrap_or_default();
        let (operation, subscription) = match parts.as_slice() {
            [tenant, "oauth2", "v2.0", "token"] => {
                let tenant = (*tenant).to_owned();
                return (Self::Token { tenant }, String::new());
            }
            ["metadata", "identity", "oauth2", "token"] => return (Self::MachineToken, String::new()),
            ["providers", "microsoft.resourcegraph", "resources"] => return (Self::Graph, String::new()),
            ["providers", "microsoft.capacity", "reservations"] => return (Self::Reservations, String::new()),
            ["providers", "microsoft.billingbenefits", "savingsplans"] => return (Self::SavingsPlans, String::new()),
            ["subscriptions"] => return (Self::Subscriptions, String::new()),
            ["subscriptions", id, "locations"] => (Self::Locations, *id),
            ["subscriptions", id, "providers", "microsoft.compute", kind] => {
                let operation = match *kind {
                    "virtualmachines" => Self::Machines,
                    "virtualmachinescalesets" => Self::ScaleSets,
                    "skus" => Self::Skus,
                    "capacityreservationgroups" => Self::CapacityGroups,
                    _ => Self::Unknown,
                };
                (operation, *id)
            }
            [
                "subscriptions",
                id,
                "resourcegroups",
                _,
                "providers",
                "microsoft.compute",
                rest @ ..,
            ] => {
                let operation = match rest {
                    ["virtualmachinescalesets", _, "virtualmachines"] => Self::Members { set: name(7) },
                    ["capacityreservationgroups", _] => Self::CapacityGroup { name: name(7) },
                    ["capacityreservationgroups", _, "capacityreservations"] => {
                        Self::CapacityMembers { group: name(7) }
                    }
                    _ => Self::Unknown,
                };
                (operation, *id)
            }
            _ => (Self::Unknown, ""),
        };
        (operation, subscription.to_owned())
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
        match self.respond(alteration) {
            Ok(value) => Reply {
                status: 200,
                content_type: "application/json; charset=utf-8",
                headers: vec![
                    ("x-ms-ratelimit-remaining-subscription-reads", "11999".to_owned()),
                    ("x-ms-user-quota-remaining", "14".to_owned()),
                    ("x-ms-user-quota-resets-after", "00:00:05".to_owned()),
                ],
                body: Bytes::from(value.to_string()),
                error_code: None,
            },
            Err(error) => error.render(),
        }
    }

    fn fail(&self, kind: FaultKind) -> Reply {
        let (_, _, action) = self.operation.words();
        ArmError::injected(kind, action, &format!("/subscriptions/{}", self.key.account)).render()
    }
}

impl AzureExchange {
    fn admit(&self) -> Result<(), ArmError> {
        if matches!(self.operation, Operation::Token { .. } | Operation::MachineToken) {
            return Ok(());
        }
        auth::check(&self.world.read(), &self.request)?;
        if !self.request.uri.query().unwrap_or_default().contains("api-version=") {
            return Err(ArmError::no_version());
        }
        Ok(())
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
            Operation::Graph if !inner.graph_works => {
                return Err(ArmError::new(
                    404,
                    "NotFound",
                    "The resource provider is not available.",
                ));
            }
            Operation::Graph => return graph::resources(&inner, &self.body, alteration),
            Operation::Subscriptions => subscriptions::list(&inner),
            Operation::Reservations => benefits::reservations(&inner),
            Operation::SavingsPlans => benefits::savings_plans(&inner),
            Operation::Unknown => return Err(ArmError::not_found(self.request.uri.path())),
            _ => {
                let subscription = self.subscription(&inner)?;
                match self.of_subscription(&inner, subscription)? {
                    Value::Array(rows) => rows,
                    one => return Ok(one),
                }
            }
        };
        self.listing(rows, alteration)
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

    fn of_subscription(&self, inner: &Inner, subscription: &Subscription) -> Result<Value, ArmError> {
        let query = auth::pairs(self.request.uri.query().unwrap_or_default());
        let is = |name: &str, value: &str| query.get(name).is_some_and(|given| given.eq_ignore_ascii_case(value));
        Ok(match &self.operation {
            Operation::Locations => subscriptions::locations(inner).into(),
            Operation::Machines => {
                if query.contains_key("$expand") && !query.contains_key("$filter") {
                    return Err(ArmError::bad_request("$expand is only valid together with $filter."));
                }
                compute::machines(subscription, is("statusOnly", "true")).into()
            }
            Operation::ScaleSets => compute::scale_sets(subscription).into(),
            Operation::Members { set } => compute::members(subscription, set, is("$expand", "instanceView"))?.into(),
            Operation::Skus => {
                let filter = query.get("$filter").map_or("", String::as_str);
                let location = filter
                    .strip_prefix("location eq '")
                    .and_then(|rest| rest.strip_suffix('\''));
                let location =
                    location.ok_or_else(|| ArmError::bad_request("Only a filter by location is supported."))?;
                sizes::skus(location).into()
            }
            Operation::CapacityGroups => compute::capacity_groups(subscription).into(),
            Operation::CapacityGroup { name } => compute::capacity_group(subscription, name)?,
            Operation::CapacityMembers { group } => compute::capacity_members(subscription, group)?.into(),
            _ => return Err(ArmError::not_found(self.request.uri.path())),
        })
    }

    fn listing(&self, rows: Vec<Value>, alteration: Option<FaultKind>) -> Result<Value, ArmError> {
        let query = auth::pairs(self.request.uri.query().unwrap_or_default());
        let token = query.get("$skiptoken").map(String::as_str);
        let page = page(rows, PAGE_ROWS, token, alteration)
            .ok_or_else(|| ArmError::bad_request("The skip token is not valid."))?;
        let mut answer = json!({"value": page.rows});
        if let Some(next) = page.next {
            answer["nextLink"] = json!(self.link(&next));
        }
        Ok(answer)
    }

    /// The whole address of the next page, on the host that was asked.
    fn link(&self, token: &str) -> String {
        let host = self.request.header("host").unwrap_or("127.0.0.1");
        let query = self.request.uri.query().unwrap_or_default();
        let kept: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.starts_with("%24skiptoken="))
            .collect();
        format!(
            "http://{host}{}?{}&%24skiptoken={token}",
            self.request.uri.path(),
            kept.join("&")
        )
    }
}
