//! What the tenant bought ahead: reservations and savings plans.

use gpuwatch_collector_core::{Account, Call, CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Currency, Money, Provider, Text};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    arm::{Arm, Listing},
    discover::Subscriptions,
    sizes,
    vm::{day_or_time, region_of, time},
};

const RESERVATIONS: Listing = Listing {
    call: Call::new(
        "capacity",
        "reservations.list",
        "Microsoft.Capacity/reservationOrders/reservations/read",
    ),
    versions: &["2022-11-01", "2022-03-01"],
};
const SAVINGS_PLANS: Listing = Listing {
    call: Call::new(
        "billingbenefits",
        "savingsPlans.list",
        "Microsoft.BillingBenefits/savingsPlans/read",
    ),
    versions: &["2022-11-01"],
};

/// What an empty list can mean.
const INVISIBLE: &str = "the list is empty: either nothing was bought, or the identity may not see it; Azure does not \
    say which (see the permission)";

/// `appliedScopeType` of benefits that every subscription of the tenant shares.
pub(crate) const SHARED: &str = "Shared";

#[derive(Deserialize)]
struct Row {
    id: String,
    #[serde(default)]
    location: Option<String>,
    #[serde(default)]
    sku: Option<Sku>,
    #[serde(default)]
    properties: Option<Properties>,
}

#[derive(Deserialize)]
struct Sku {
    #[serde(default)]
    name: Option<String>,
}

#[allow(clippy::struct_field_names, reason = "named as in the answer")]
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Properties {
    reserved_resource_type: Option<String>,
    quantity: Option<u32>,
    provisioning_state: Option<String>,
    applied_scope_type: Option<String>,
    applied_scopes: Option<Vec<String>>,
    applied_scope_properties: Option<AppliedScope>,
    billing_scope_id: Option<String>,
    effective_date_time: Option<String>,
    benefit_start_time: Option<String>,
    expiry_date_time: Option<String>,
    expiry_date: Option<String>,
    archived: Option<bool>,
    commitment: Option<Hourly>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AppliedScope {
    subscription_id: Option<String>,
    resource_group_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Hourly {
    /// Kept as written: money does not pass through binary fractions.
    amount: Option<Box<RawValue>>,
    currency_code: Option<String>,
    grain: Option<String>,
}

/// Active reservations of accelerator machines that the identity may see.
/// Without a role at Microsoft.Capacity the list is empty and no error.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn reservations(
    cx: &Context,
    arm: &Arm,
    scope: &Scope,
    subscriptions: &Subscriptions,
) -> Result<Vec<Commitment>, CollectError> {
    let rows: Vec<Row> = arm
        .list(cx, RESERVATIONS, "/providers/Microsoft.Capacity/reservations")
        .await?;
    if rows.is_empty() {
        cx.unclear(RESERVATIONS.call, INVISIBLE);
    }
    let active = rows.iter().filter(|row| row.is_active(cx.now()));
    let found = active.filter_map(|row| reservation(row, scope, subscriptions));
    Ok(unique(found.collect()))
}

/// Active savings plans that the identity may see. A cloud without the service
/// (China) has none.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn savings_plans(
    cx: &Context,
    arm: &Arm,
    scope: &Scope,
    subscriptions: &Subscriptions,
) -> Result<Vec<Commitment>, CollectError> {
    let path = "/providers/Microsoft.BillingBenefits/savingsPlans";
    let rows: Vec<Row> = match arm.list(cx, SAVINGS_PLANS, path).await {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        result => result?,
    };
    if rows.is_empty() {
        cx.unclear(SAVINGS_PLANS.call, INVISIBLE);
    }
    let active = rows.iter().filter(|row| row.is_active(cx.now()));
    let found = active.filter_map(|row| savings_plan(row, scope, subscriptions));
    Ok(unique(found.collect()))
}

fn is_absent(error: &CollectError) -> bool {
    crate::errors::is_unused(error)
        || matches!(
            error.code.as_deref(),
            Some("NotFound" | "InvalidResourceType" | "NoRegisteredProviderFound" | "ResourceProviderNotFound")
        )
}

impl Row {
    /// Whether it pays for anything now. Those that have ended may be listed as
    /// `Succeeded` for a while, and one can be bought to begin later.
    fn is_active(&self, now: Timestamp) -> bool {
        self.properties.as_ref().is_some_and(|properties| {
            let state = properties.provisioning_state.as_deref().unwrap_or("Succeeded");
            state.eq_ignore_ascii_case("Succeeded")
                && properties.archived != Some(true)
                && start(properties).is_none_or(|start| start <= now)
                && end(properties).is_none_or(|end| end > now)
        })
    }
}

fn reservation(row: &Row, scope: &Scope, subscriptions: &Subscriptions) -> Option<Commitment> {
    let properties = row.properties.as_ref()?;
    let size = row.sku.as_ref()?.name.as_deref()?;
    let of_machines = properties
        .reserved_resource_type
        .as_deref()
        .is_none_or(|kind| kind.eq_ignore_ascii_case("VirtualMachines"));
    if !of_machines || !sizes::has_accelerators(size) {
        return None;
    }
    let region = row
        .location
        .as_deref()
        .map(region_of)
        .filter(|region| !region.is_empty());
    let owner = owner(properties, scope, subscriptions);
    Some(Commitment {
        kind: CommitmentKind::Reservation,
        account: owner.id,
        account_name: owner.name,
        region: region.as_deref().unwrap_or(Scope::GLOBAL).into(),
        instance_type: size.into(),
        scope: CommitmentScope::Region,
        units: properties.quantity,
        gpus_per_unit: sizes::accelerators(size, None).count,
        starts: start(properties),
        expires: end(properties),
        detail: applies_to(properties),
        ..blank(scope, &row.id.to_lowercase())
    })
}

fn savings_plan(row: &Row, scope: &Scope, subscriptions: &Subscriptions) -> Option<Commitment> {
    let properties = row.properties.as_ref()?;
    let owner = owner(properties, scope, subscriptions);
    Some(Commitment {
        kind: CommitmentKind::SavingsPlan,
        account: owner.id,
        account_name: owner.name,
        region: Scope::GLOBAL.into(),
        scope: CommitmentScope::Global,
        hourly: properties.commitment.as_ref().and_then(hourly),
        starts: start(properties),
        expires: end(properties),
        detail: applies_to(properties),
        ..blank(scope, &row.id.to_lowercase())
    })
}

/// The subscription that is billed; where an account of another kind is, the
/// one that the listing was made for.
fn owner(properties: &Properties, scope: &Scope, subscriptions: &Subscriptions) -> Account {
    let billed = properties.billing_scope_id.as_deref().and_then(subscription_of);
    billed.map_or_else(|| scope.account.clone(), |id| subscriptions.account(&id))
}

/// The subscription in an ARM id, in lower case.
pub(crate) fn subscription_of(id: &str) -> Option<String> {
    let lower = id.to_lowercase();
    let rest = lower.strip_prefix("/subscriptions/")?;
    Some(rest.split('/').next().unwrap_or(rest).to_owned()).filter(|id| !id.is_empty())
}

/// Where the benefit applies: the id of a subscription or resource group in
/// lower case, or the cloud's word for anything wider.
fn applies_to(properties: &Properties) -> Text {
    let kind = properties.applied_scope_type.as_deref().unwrap_or(SHARED);
    if !kind.eq_ignore_ascii_case("Single") {
        return kind.into();
    }
    let scope = properties.applied_scope_properties.as_ref();
    let single = scope
        .and_then(|scope| scope.resource_group_id.as_deref().or(scope.subscription_id.as_deref()))
        .or_else(|| properties.applied_scopes.as_ref()?.first().map(String::as_str));
    single.map_or_else(|| kind.into(), |id| id.to_lowercase().trim_end_matches('/').into())
}

fn start(properties: &Properties) -> Option<Timestamp> {
    let stated = properties
        .benefit_start_time
        .as_deref()
        .or(properties.effective_date_time.as_deref());
    stated.and_then(time)
}

fn end(properties: &Properties) -> Option<Timestamp> {
    let exact = properties.expiry_date_time.as_deref().and_then(time);
    // Older answers have only the day.
    exact.or_else(|| day_or_time(properties.expiry_date.as_deref()?))
}

fn hourly(commitment: &Hourly) -> Option<Money> {
    let is_hourly = commitment
        .grain
        .as_deref()
        .is_none_or(|grain| grain.eq_ignore_ascii_case("Hourly"));
    let currency = Currency::new(commitment.currency_code.as_deref()?).ok()?;
    let amount = commitment.amount.as_ref()?.get().trim_matches('"');
    is_hourly.then(|| Money::parse(amount, currency).ok()).flatten()
}

/// A commitment of a scope of which nothing is known yet.
pub(crate) fn blank(scope: &Scope, id: &str) -> Commitment {
    Commitment {
        provider: Provider::Azure,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: scope.region.clone(),
        id: id.into(),
        kind: CommitmentKind::Reservation,
        instance_type: Text::default(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: None,
        used_units: None,
        gpus_per_unit: None,
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: None,
        detail: Text::default(),
    }
}

/// Each commitment once: pages may repeat rows.
pub(crate) fn unique(mut commitments: Vec<Commitment>) -> Vec<Commitment> {
    commitments.sort_by(|a, b| a.id.cmp(&b.id));
    commitments.dedup_by(|a, b| a.id == b.id);
    commitments
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use serde_json::{Value, json};

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Azure,
            account: Account {
                id: "s0".into(),
                name: "corp".into(),
            },
            region: Scope::GLOBAL.into(),
        }
    }

    fn row(json: &Value) -> Row {
        serde_json::from_str(&json.to_string()).unwrap()
    }

    fn reserved(size: &str, state: &str) -> Row {
        row(
            &json!({"id": "/providers/Microsoft.Capacity/reservationOrders/O/reservations/R", "location": "East US",
                   "sku": {"name": size}, "properties": {"quantity": 3, "provisioningState": state,
                   "reservedResourceType": "VirtualMachines", "appliedScopeType": "Single",
                   "appliedScopes": ["/subscriptions/S1"], "billingScopeId": "/subscriptions/S2",
                   "expiryDateTime": "2027-01-01T00:00:00Z"}}),
        )
    }

    #[test]
    fn only_active_reservations_of_accelerators_count() {
        let subscriptions = Subscriptions::default();
        let read = |row: &Row| reservation(row, &scope(), &subscriptions);
        let found = read(&reserved("Standard_ND96isr_H100_v5", "Succeeded")).unwrap();
        assert_eq!(
            (&*found.account, &*found.account_name, &*found.region, found.units),
            ("s2", "s2", "eastus", Some(3))
        );
        assert_eq!(&*found.detail, "/subscriptions/s1");
        assert!(found.expires.is_some());
        assert!(read(&reserved("Standard_D4s_v5", "Succeeded")).is_none());
    }

    #[test]
    fn a_reservation_pays_from_its_start_to_its_end() {
        let now = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut row = reserved("Standard_ND96isr_H100_v5", "Succeeded");
        assert!(row.is_active(now("2026-12-31T23:59:59Z")));
        assert!(!row.is_active(now("2027-01-01T00:00:00Z")));
        row.properties.as_mut().unwrap().benefit_start_time = Some("2026-06-01T00:00:00Z".into());
        assert!(!row.is_active(now("2026-05-31T00:00:00Z")));
        assert!(!reserved("Standard_ND96isr_H100_v5", "Expired").is_active(now("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn a_plan_is_money_per_hour_as_written() {
        let plan = row(
            &json!({"id": "/p", "sku": {"name": "Compute_Savings_Plan"}, "properties": {
            "commitment": {"amount": 12.34, "currencyCode": "CNY", "grain": "Hourly"}}}),
        );
        let found = savings_plan(&plan, &scope(), &Subscriptions::default()).unwrap();
        assert_eq!(found.hourly, Money::parse("12.34", Currency::cny()).ok());
        assert_eq!((&*found.region, found.units), (Scope::GLOBAL, None));
    }
}
