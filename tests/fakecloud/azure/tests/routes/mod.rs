//! Every route of a full world, and a client that follows pages.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use gpuwatch_fakecloud_azure::{
    ACCESS_TOKEN, CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, ScaleSetSpec, TENANT, World,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::support::{COMPUTE, SUBSCRIPTION};

/// More than a page of every listing that has pages.
pub const ROWS: usize = 205;

/// Those of the catalogue, two newer ones, two without GPUs, and a disk.
const SIZES: usize = count_lines(include_str!("../../../../../inventory/catalog/azure_vm_sizes.csv")) - 1 + 5;

const fn count_lines(text: &str) -> usize {
    let (bytes, mut at, mut lines) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        lines += (bytes[at] == b'\n') as usize;
        at += 1;
    }
    lines
}

/// A route, and what it has.
pub struct Route {
    pub operation: &'static str,
    pub request: Request,
    /// All rows of a listing; `None` for what is no listing.
    pub rows: Option<usize>,
}

#[derive(Clone)]
pub enum Request {
    Get(String),
    Query(&'static str),
    SignIn,
    Machine,
}

pub fn world() -> World {
    let world = World::empty();
    world.add_client("app", "secret");
    world.set_machine_identity(true);
    for number in 0..ROWS - 1 {
        world.add_subscription(&format!("00000000-0000-4000-8000-{:012}", number + 1000), "other");
    }
    world
}

pub fn fill(world: &World) {
    for number in 0..ROWS {
        world.add_machine(
            SUBSCRIPTION,
            MachineSpec {
                name: format!("vm-{number:03}"),
                ..MachineSpec::default()
            },
        );
        world.add_scale_set(
            SUBSCRIPTION,
            ScaleSetSpec {
                name: format!("set-{number:03}"),
                members: vec![("running".into(), Timestamp::UNIX_EPOCH); if number == 0 { ROWS } else { 0 }],
                ..ScaleSetSpec::default()
            },
        );
        world.add_capacity(
            SUBSCRIPTION,
            CapacitySpec {
                name: format!("crg-{number:03}"),
                group: "rg-ml".into(),
                location: "eastus".into(),
                size: "Standard_NC4as_T4_v3".into(),
                capacity: 2,
                allocated: 1,
            },
        );
        world.add_reservation(ReservationSpec {
            location: "eastus".into(),
            size: "Standard_NC4as_T4_v3".into(),
            quantity: 1,
            applies_to: String::new(),
            billed_to: SUBSCRIPTION.into(),
            state: "Succeeded".into(),
            expires: Timestamp::MAX,
        });
        world.add_savings_plan(SavingsPlanSpec {
            hourly: "1".into(),
            billed_to: SUBSCRIPTION.into(),
            expires: Timestamp::MAX,
        });
    }
}

pub fn routes() -> Vec<Route> {
    let compute = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute");
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-ml/providers/Microsoft.Compute");
    let capacity = format!("{group}/capacityReservationGroups/crg-000");
    let get = |operation, rows, path: String| Route {
        operation,
        request: Request::Get(path),
        rows,
    };
    let query = |rows, query| Route {
        operation: "resources",
        request: Request::Query(query),
        rows: Some(rows),
    };
    let token = |request| Route {
        operation: "token",
        request,
        rows: None,
    };
    vec![
        get("list", Some(ROWS), "/subscriptions?api-version=2022-12-01".into()),
        get(
            "locations.list",
            Some(6),
            format!("/subscriptions/{SUBSCRIPTION}/locations?api-version=2022-12-01"),
        ),
        get(
            "virtualMachines.listAll",
            Some(ROWS),
            format!("{compute}/virtualMachines?{COMPUTE}"),
        ),
        get(
            "virtualMachines.listAll",
            Some(ROWS),
            format!("{compute}/virtualMachines?statusOnly=true&{COMPUTE}"),
        ),
        get(
            "virtualMachineScaleSets.listAll",
            Some(ROWS),
            format!("{compute}/virtualMachineScaleSets?{COMPUTE}"),
        ),
        get(
            "virtualMachineScaleSetVMs.list",
            Some(ROWS),
            format!("{group}/virtualMachineScaleSets/set-000/virtualMachines?$expand=instanceView&{COMPUTE}"),
        ),
        get(
            "skus.list",
            Some(SIZES),
            format!("{compute}/skus?$filter=location%20eq%20'eastus'&api-version=2021-07-01"),
        ),
        get(
            "capacityReservationGroups.list",
            Some(ROWS),
            format!("{compute}/capacityReservationGroups?{COMPUTE}"),
        ),
        get(
            "capacityReservationGroups.get",
            None,
            format!("{capacity}?$expand=instanceView&{COMPUTE}"),
        ),
        get(
            "capacityReservations.list",
            Some(1),
            format!("{capacity}/capacityReservations?{COMPUTE}"),
        ),
        get(
            "reservations.list",
            Some(ROWS),
            "/providers/Microsoft.Capacity/reservations?api-version=2022-11-01".into(),
        ),
        get(
            "savingsPlans.list",
            Some(ROWS),
            "/providers/Microsoft.BillingBenefits/savingsPlans?api-version=2022-11-01".into(),
        ),
        query(
            ROWS,
            "Resources | where type =~ 'Microsoft.Compute/virtualMachines' | order by id asc",
        ),
        query(ROWS, "ComputeResources | order by id asc"),
        token(Request::SignIn),
        token(Request::Machine),
    ]
}

pub struct Answer {
    pub status: u16,
    pub retry_after: Option<String>,
    pub quota: Option<String>,
    /// Null where it is no JSON.
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> &str {
        let error = &self.body["error"];
        error["code"].as_str().or_else(|| error.as_str()).unwrap_or_default()
    }

    pub fn rows(&self) -> &Vec<Value> {
        let rows = self.body["value"].as_array().or_else(|| self.body["data"].as_array());
        rows.unwrap_or_else(|| panic!("no listing: {}", self.body))
    }

    /// Where the next page is.
    pub fn next(&self, request: &Request) -> Option<(Request, Option<String>)> {
        if let Some(link) = self.body["nextLink"].as_str() {
            return Some((Request::Get(link.to_owned()), None));
        }
        let token = self.body["$skipToken"].as_str()?;
        Some((request.clone(), Some(token.to_owned())))
    }
}

pub struct Client {
    pub http: reqwest::Client,
    pub url: String,
}

impl Client {
    /// Asks; `Err` where no whole answer comes.
    pub async fn send(&self, request: &Request, token: Option<&str>) -> Result<Answer, reqwest::Error> {
        let url = &self.url;
        let request = match request {
            Request::Get(link) if link.starts_with("http") => self.http.get(link).bearer_auth(ACCESS_TOKEN),
            Request::Get(path) => self.http.get(format!("{url}{path}")).bearer_auth(ACCESS_TOKEN),
            Request::Query(query) => {
                let options = json!({"$top": 200, "$skipToken": token});
                let body = json!({"subscriptions": [SUBSCRIPTION], "query": query, "options": options});
                let path = "/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01";
                self.http
                    .post(format!("{url}{path}"))
                    .bearer_auth(ACCESS_TOKEN)
                    .json(&body)
            }
            Request::SignIn => self.http.post(format!("{url}/{TENANT}/oauth2/v2.0/token")).form(&[
                ("grant_type", "client_credentials"),
                ("scope", "https://management.azure.com/.default"),
                ("client_id", "app"),
                ("client_secret", "secret"),
            ]),
            Request::Machine => self
                .http
                .get(format!("{url}/metadata/identity/oauth2/token"))
                .query(&[
                    ("api-version", "2019-08-01"),
                    ("resource", "https://management.azure.com"),
                ])
                .header("metadata", "true"),
        };
        let answer = request.send().await?;
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().unwrap().to_owned());
        let (status, retry_after) = (answer.status().as_u16(), header("retry-after"));
        let quota = header("x-ms-user-quota-remaining");
        let body = answer.bytes().await?;
        Ok(Answer {
            status,
            retry_after,
            quota,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    /// All pages, five at most.
    pub async fn walk(&self, request: &Request) -> Vec<Answer> {
        let (mut pages, mut at) = (Vec::new(), Some((request.clone(), None)));
        while let Some((request, token)) = at.take().filter(|_| pages.len() < 5) {
            let page = self.send(&request, token.as_deref()).await.unwrap();
            assert_eq!(page.status, 200, "{}", page.body);
            at = page.next(&request);
            pages.push(page);
        }
        pages
    }
}
