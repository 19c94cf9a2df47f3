//! Organizations: the accounts of the organization.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::AwsError;
use super::json::{add_malformed, set};
use super::page::PageRequest;
use super::service::{Call, Service};
use super::world::{Account, AccountState};
use gpuwatch_fakecloud_core::FaultKind;

/// Largest page, and the default.
const MAX_PAGE: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct ListAccounts {
    next_token: Option<String>,
    max_results: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeOrganization {}

pub(crate) fn answer(call: &Call<'_>, body: &[u8]) -> Result<String, AwsError> {
    let management = call.world.management_account().ok_or_else(|| {
        let message = "Your account is not a member of an organization.";
        AwsError::new("AWSOrganizationsNotInUseException", 400, message)
    })?;
    match call.operation {
        "ListAccounts" => {
            let request: ListAccounts = parse(body)?;
            if management != call.caller.account {
                let action = "organizations:ListAccounts";
                return Err(AwsError::access_denied(
                    Service::Organizations,
                    &call.caller.arn,
                    action,
                ));
            }
            list_accounts(call, &management, &request)
        }
        "DescribeOrganization" => {
            let DescribeOrganization {} = parse(body)?;
            Ok(json!({ "Organization": organization(call, &management) }).to_string())
        }
        other => Err(AwsError::new("UnknownOperationException", 400, other)),
    }
}

fn list_accounts(call: &Call<'_>, management: &str, request: &ListAccounts) -> Result<String, AwsError> {
    let limit = request.max_results.unwrap_or(MAX_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        let message = format!("You specified a value outside of the range 1 to {MAX_PAGE} for MaxResults.");
        return Err(AwsError::new("InvalidInputException", 400, message));
    }
    let paging = PageRequest::new(Some(limit), request.next_token.as_deref(), &call.token_scope("")).map_err(|_| {
        AwsError::new(
            "InvalidInputException",
            400,
            "You specified an invalid value for NextToken.",
        )
    })?;
    let accounts = call.world.accounts();
    // The real service may answer with an empty page and a token; this one
    // does so between any two full pages.
    let page = if paging.turn() % 2 == 1 && call.alteration.is_none() {
        paging.empty_page()
    } else {
        let rows = accounts.iter().filter(|account| account.in_organization);
        paging.page(rows.map(|account| (account.id.as_str(), account)), call.alteration)
    };
    let mut rows: Vec<Value> = page.rows.iter().map(|account| row(call, management, account)).collect();
    match call.alteration {
        Some(FaultKind::UnknownEnum) => {
            if let Some(first) = rows.first_mut() {
                set(first, "State", "bar");
                set(first, "Status", "bar");
            }
        }
        Some(FaultKind::MalformedRecord) => add_malformed(&mut rows, "Id"),
        _ => {}
    }
    let mut answer = json!({ "Accounts": rows });
    if let Some(next) = page.next {
        set(&mut answer, "NextToken", next);
    }
    Ok(answer.to_string())
}

fn row(call: &Call<'_>, management: &str, account: &Account) -> Value {
    let partition = call.world.partition().as_str();
    let organization = call.world.organization_id();
    // `Status` is the older field and knows fewer words than `State`.
    let status = match account.state {
        AccountState::PendingActivation | AccountState::Active => Some("ACTIVE"),
        AccountState::Suspended | AccountState::Closed => Some("SUSPENDED"),
        AccountState::PendingClosure => Some("PENDING_CLOSURE"),
    };
    json!({
        "Id": account.id,
        "Arn": format!("arn:{partition}:organizations::{management}:account/{organization}/{}", account.id),
        "Email": account.email,
        "Name": account.name,
        "Status": status,
        "State": account.state.as_str(),
        "JoinedMethod": "CREATED",
        "JoinedTimestamp": account.joined.as_second(),
    })
}

fn organization(call: &Call<'_>, management: &str) -> Value {
    let partition = call.world.partition().as_str();
    let id = call.world.organization_id();
    let email = call
        .world
        .account(management)
        .map(|account| account.email)
        .unwrap_or_default();
    json!({
        "Id": id,
        "Arn": format!("arn:{partition}:organizations::{management}:organization/{id}"),
        "FeatureSet": "ALL",
        "MasterAccountArn": format!("arn:{partition}:organizations::{management}:account/{id}/{management}"),
        "MasterAccountId": management,
        "MasterAccountEmail": email,
        "AvailablePolicyTypes": [{"Type": "SERVICE_CONTROL_POLICY", "Status": "ENABLED"}],
    })
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, AwsError> {
    serde_json::from_slice(body).map_err(|error| AwsError::new("SerializationException", 400, error.to_string()))
}
