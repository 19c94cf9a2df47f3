//! What the tenant bought: reservations and savings plans.

use serde_json::{Value, json};

use crate::world::Inner;

/// Every reservation.
pub(crate) fn reservations(inner: &Inner) -> Vec<Value> {
    let rows = inner.reservations.iter().map(|(id, spec)| {
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
            },
        })
    });
    rows.collect()
}

/// Every savings plan.
pub(crate) fn savings_plans(inner: &Inner) -> Vec<Value> {
    let rows = inner.plans.iter().map(|(id, spec)| {
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
    });
    rows.collect()
}
