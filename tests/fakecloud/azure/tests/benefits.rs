//! What the tenant bought: reservations, savings plans, capacity.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod support;

use gpuwatch_fakecloud_azure::{CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, World};
use jiff::Timestamp;
use serde_json::json;
use support::{COMPUTE, SUBSCRIPTION, get, rows, serve};

const RESERVATIONS: &str = "/providers/Microsoft.Capacity/reservations?api-version=2022-11-01";
const PLANS: &str = "/providers/Microsoft.BillingBenefits/savingsPlans?api-version=2022-11-01";

const MAY_LIST: [(&str, &str); 2] = [
    (RESERVATIONS, "Microsoft.Capacity/reservationOrders/reservations/read"),
    (PLANS, "Microsoft.BillingBenefits/savingsPlans/read"),
];

/// A machine that a reservation pays for, and a savings plan.
fn bought() -> World {
    let world = World::empty();
    world.add_subscription(SUBSCRIPTION, "corp");
    world.add_reservation(ReservationSpec {
        location: "eastus".into(),
        size: "Standard_NC4as_T4_v3".into(),
        quantity: 2,
        applies_to: format!("/subscriptions/{SUBSCRIPTION}"),
        billed_to: SUBSCRIPTION.into(),
        state: "Succeeded".into(),
        expires: Timestamp::MAX,
    });
    world.add_savings_plan(SavingsPlanSpec {
        hourly: "12.5".into(),
        billed_to: SUBSCRIPTION.into(),
        expires: Timestamp::MAX,
    });
    world
}

fn with_machine(world: &World) {
    world.add_machine(
        SUBSCRIPTION,
        MachineSpec {
            name: "vm".into(),
            ..MachineSpec::default()
        },
    );
}

#[tokio::test]
async fn reservations_and_plans_are_listed_with_scope_size_and_money() {
    let world = bought();
    let server = serve(&world).await;
    with_machine(&world);
    let (status, body) = get(&server, RESERVATIONS).await;
    let row = &body["value"][0];
    assert_eq!((status, &row["sku"]["name"]), (200, &json!("Standard_NC4as_T4_v3")));
    let properties = &row["properties"];
    assert_eq!(properties["appliedScopeType"], "Single");
    assert_eq!(
        properties["appliedScopes"],
        json!([format!("/subscriptions/{SUBSCRIPTION}")])
    );
    assert_eq!(properties["quantity"], 2);
    assert_eq!(properties["utilization"]["aggregates"][0]["value"], 50, "of two");
    let (_, body) = get(&server, PLANS).await;
    let commitment = &body["value"][0]["properties"]["commitment"];
    assert_eq!(
        commitment,
        &json!({"amount": 12.5, "currencyCode": "USD", "grain": "Hourly"})
    );
}

#[tokio::test]
async fn a_caller_without_a_role_is_refused_or_sees_nothing() {
    for (status, code) in [
        (401, json!("Unauthorized")),
        (403, json!("AuthorizationFailed")),
        (200, json!(null)),
    ] {
        let world = bought();
        let server = serve(&world).await;
        with_machine(&world);
        assert_eq!(world.truth()[0].billing_mode, "reserved");
        for (path, action) in MAY_LIST {
            world.deny_tenant(action, status);
            let (got, body) = get(&server, path).await;
            assert_eq!((got, &body["error"]["code"]), (status, &code), "{path}");
            if status == 200 {
                assert_eq!(rows(&body), 0);
            }
            if status == 403 {
                assert!(body["error"]["message"].as_str().unwrap().contains(action));
            }
        }
        // Nobody can tell then that a reservation pays for it.
        assert_eq!(world.truth()[0].billing_mode, "on_demand");
        assert!(world.commitments().is_empty());
    }
}

#[tokio::test]
async fn capacity_reservations_tell_their_places_and_who_holds_them() {
    let world = World::empty();
    let server = serve(&world).await;
    for group in ["rg-a", "rg-b"] {
        world.add_capacity(
            SUBSCRIPTION,
            CapacitySpec {
                name: "crg".into(),
                group: group.into(),
                location: "eastus".into(),
                size: "Standard_NC4as_T4_v3".into(),
                capacity: 4,
                allocated: u32::from(group == "rg-a"),
            },
        );
    }
    for (name, power) in [("on", "running"), ("off", "deallocated"), ("shut", "stopped")] {
        world.add_machine(
            SUBSCRIPTION,
            MachineSpec {
                name: name.into(),
                group: "rg-a".into(),
                power: power.into(),
                capacity: "crg".into(),
                ..MachineSpec::default()
            },
        );
    }
    let base = format!("/subscriptions/{SUBSCRIPTION}");
    let groups = format!("{base}/providers/Microsoft.Compute/capacityReservationGroups?{COMPUTE}");
    let (_, body) = get(&server, &groups).await;
    assert_eq!(rows(&body), 2);
    assert!(body["value"][0]["properties"].get("instanceView").is_none());
    for (group, holders) in [("RG-A", 3), ("rg-b", 0)] {
        let group = format!("{base}/resourceGroups/{group}/providers/Microsoft.Compute/capacityReservationGroups/CRG");
        let (_, plain) = get(&server, &format!("{group}?{COMPUTE}")).await;
        assert!(
            plain["properties"].get("instanceView").is_none(),
            "only where it is asked for"
        );
        let (_, body) = get(&server, &format!("{group}?$expand=instanceView&{COMPUTE}")).await;
        let used = &body["properties"]["instanceView"]["capacityReservations"][0]["utilizationInfo"];
        assert_eq!(used["currentCapacity"], 4);
        assert_eq!(used["virtualMachinesAllocated"].as_array().unwrap().len(), holders);
        let (_, body) = get(&server, &format!("{group}/capacityReservations?{COMPUTE}")).await;
        assert_eq!(
            body["value"][0]["sku"],
            json!({"name": "Standard_NC4as_T4_v3", "capacity": 4})
        );
    }
    let used: Vec<_> = world
        .commitments()
        .iter()
        .map(|bought| (bought.units, bought.used))
        .collect();
    assert_eq!(used, [(Some(4), Some(3)), (Some(4), Some(0))]);
}
