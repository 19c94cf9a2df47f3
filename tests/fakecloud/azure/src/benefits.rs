//! What the tenant bought: reservations and savings plans.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::page::{self, Row};
use crate::truth;
use crate::world::Inner;

/// Every reservation, with how much of it is used.
pub(crate) fn reservations(inner: &Inner) -> Vec<Row<'_>> {
    let used = LazyCell::new(|| truth::used_units(inner).into_iter().collect::<BTreeMap<String, u32>>());
    let used = Rc::new(used);
    page::rows(&inner.reservations, move |(id, spec)| {
        let single = !spec.applies_to.is_empty();
        json!({
            "id": id,
            "type": "Microsoft.Capacity/reservationOrders/reservations",
            "location": spec.location,
            "sku": {"name": spec.size},
            "properties": {
                "reservedResourceType": "VirtualMachines",
                "quantity": spec.quantity,
                "provisioningState": spec.state,
                "appliedScopeType": if single { "Single" } else { "Shared" },
                "appliedScopes": if single { json!([spec.applies_to]) } else { Value::Null },
                "billingScopeId": format!("/subscriptions/{}", spec.billed_to),
                "expiryDateTime": spec.expires.to_string(),
                "term": "P1Y",
                "archived": false,
                "utilization": utilization(used.get(id).copied(), spec.quantity),
            },
        })
    })
}

/// Every savings plan.
pub(crate) fn savings_plans(inner: &Inner) -> Vec<Row<'_>> {
    page::rows(&inner.plans, |(id, spec)| {
        let amount: Value = serde_json::from_str(&spec.hourly).unwrap_or(Value::Null);
        json!({
            "id": id,
            "sku": {"name": "Compute_Savings_Plan"},
            "properties": {
                "provisioningState": "Succeeded",
                "appliedScopeType": "Shared",
                "billingScopeId": format!("/subscriptions/{}", spec.billed_to),
                "commitment": {"amount": amount, "currencyCode": "USD", "grain": "Hourly"},
                "expiryDateTime": spec.expires.to_string(),
                "term": "P1Y",
            },
        })
    })
}

/// The share of the units that is used, in percent; the same for every time
/// span, as the world has no history.
fn utilization(used: Option<u32>, quantity: u32) -> Value {
    let Some(value) = used.and_then(|used| used.saturating_mul(100).checked_div(quantity)) else {
        return Value::Null;
    };
    let over = |days: u32| json!({"grain": days, "grainUnit": "days", "value": value, "valueUnit": "percentage"});
    json!({"trend": "SAME", "aggregates": [over(1), over(7), over(30)]})
}
