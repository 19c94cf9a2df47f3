//! Subscriptions and their locations.

use serde_json::{Value, json};

use crate::page::{self, Row};
use crate::world::{Inner, TENANT};

/// Every subscription in which the caller has any role.
pub(crate) fn list(inner: &Inner) -> Vec<Row<'_>> {
    let visible = inner
        .subscriptions
        .values()
        .filter(|subscription| subscription.is_visible());
    page::rows(visible, |subscription| {
        json!({
            "id": format!("/subscriptions/{}", subscription.id),
            "subscriptionId": subscription.id,
            "displayName": subscription.name,
            "state": subscription.state,
            "tenantId": TENANT,
        })
    })
}

/// Locations, a logical one among them.
pub(crate) fn locations(inner: &Inner) -> Vec<Value> {
    let location =
        |name: &str, kind: &str| json!({"name": name, "displayName": name, "metadata": {"regionType": kind}});
    let mut all: Vec<Value> = inner.locations.iter().map(|name| location(name, "Physical")).collect();
    all.push(location("europe", "Logical"));
    all
}
