//! Machines and scale sets as the Compute API shows them, and what is true of
//! them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::collections::BTreeMap;

use gpuwatch_fakecloud_azure::{InstanceTruth, MachineSpec, ScaleSetSpec, ScaleSetVariety, World};
use jiff::Timestamp;
use serde_json::json;
use support::{COMPUTE, SUBSCRIPTION, get, rows, serve};

fn set(group: &str) -> ScaleSetSpec {
    ScaleSetSpec {
        name: "pool".into(),
        group: group.into(),
        priority: "Spot".into(),
        members: vec![("running".into(), Timestamp::UNIX_EPOCH); 3],
        ..ScaleSetSpec::default()
    }
}

fn members_of(group: &str) -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool\
         /virtualMachines?$expand=instanceView&{COMPUTE}"
    )
}

fn machines_at(query: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines?{query}{COMPUTE}")
}

fn facts(row: &InstanceTruth) -> (&str, &str, &str, &str) {
    (&row.zone, &row.instance_type, row.state, row.billing_mode)
}

#[tokio::test]
async fn members_have_zones_tags_and_sizes_in_turn() {
    let world = World::empty();
    let server = serve(&world).await;
    world.add_varied_scale_set(
        SUBSCRIPTION,
        ScaleSetSpec {
            tags: BTreeMap::from([("team".to_owned(), "vision".to_owned())]),
            ..set("rg-1")
        },
        ScaleSetVariety {
            zones: vec!["1".into(), "2".into()],
            mixed_sizes: vec!["Standard_NC4as_T4_v3".into(), "Standard_NC8as_T4_v3".into()],
            priority_mix: None,
        },
    );
    let (_, sets) = get(
        &server,
        &format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachineScaleSets?{COMPUTE}"),
    )
    .await;
    assert_eq!(sets["value"][0]["sku"]["name"], "Mix");
    assert_eq!(sets["value"][0]["sku"]["capacity"], 3);
    let offered = &sets["value"][0]["properties"]["skuProfile"]["vmSizes"];
    assert_eq!(offered[1]["name"], "Standard_NC8as_T4_v3");

    let (status, body) = get(&server, &members_of("RG-1")).await;
    assert_eq!(status, 200);
    for (member, (zone, size)) in body["value"].as_array().unwrap().iter().zip([
        ("1", "Standard_NC4as_T4_v3"),
        ("2", "Standard_NC8as_T4_v3"),
        ("1", "Standard_NC4as_T4_v3"),
    ]) {
        assert_eq!(
            (&member["zones"], &member["sku"]["name"]),
            (&json!([zone]), &json!(size))
        );
        assert_eq!(member["tags"]["team"], "vision");
        assert!(member["properties"].get("priority").is_none(), "the set has it");
    }
    let truth = world.truth();
    assert_eq!(facts(&truth[1]), ("2", "Standard_NC8as_T4_v3", "running", "spot"));
}

#[tokio::test]
async fn sets_of_one_name_in_two_groups_are_two_sets() {
    let world = World::empty();
    let server = serve(&world).await;
    world.add_scale_set(SUBSCRIPTION, set("rg-1"));
    world.add_scale_set(
        SUBSCRIPTION,
        ScaleSetSpec {
            members: vec![("stopped".into(), Timestamp::UNIX_EPOCH)],
            ..set("rg-2")
        },
    );
    assert_eq!(rows(&get(&server, &members_of("rg-1")).await.1), 3);
    assert_eq!(rows(&get(&server, &members_of("rg-2")).await.1), 1);
    assert_eq!(get(&server, &members_of("rg-3")).await.0, 404);
    assert_eq!(world.truth().len(), 4);

    world.set_members_fail(SUBSCRIPTION, "RG-1", "pool", true);
    let (status, body) = get(&server, &members_of("rg-1")).await;
    assert_eq!((status, &body["error"]["code"]), (500, &json!("InternalServerError")));
    assert_eq!(get(&server, &members_of("rg-2")).await.0, 200);
    assert_eq!(world.truth().len(), 4, "they are there all the same");
    world.set_members_fail(SUBSCRIPTION, "rg-1", "pool", false);
    assert_eq!(get(&server, &members_of("rg-1")).await.0, 200);
}

#[tokio::test]
async fn flexible_sets_have_machines_of_both_priorities() {
    let world = World::empty();
    let server = serve(&world).await;
    for group in ["rg-1", "rg-2"] {
        world.add_varied_scale_set(
            SUBSCRIPTION,
            ScaleSetSpec {
                flexible: true,
                members: Vec::new(),
                ..set(group)
            },
            ScaleSetVariety {
                priority_mix: Some((1, 50)),
                ..ScaleSetVariety::default()
            },
        );
    }
    for (name, priority) in [("pool_a", "Regular"), ("pool_b", "Spot")] {
        world.add_machine(
            SUBSCRIPTION,
            MachineSpec {
                name: name.into(),
                group: "rg-1".into(),
                set: "pool".into(),
                priority: priority.into(),
                ..MachineSpec::default()
            },
        );
    }
    let path = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachineScaleSets?{COMPUTE}");
    let (_, sets) = get(&server, &path).await;
    for (set, capacity) in sets["value"].as_array().unwrap().iter().zip([2, 0]) {
        assert_eq!(set["sku"]["capacity"], capacity);
        let mix = &set["properties"]["priorityMixPolicy"];
        assert_eq!(
            mix,
            &json!({"baseRegularPriorityCount": 1, "regularPriorityPercentageAboveBase": 50})
        );
    }
    // Its machines are found by a filter, with their states.
    let set = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-1/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
    );
    let filter = format!("$filter='virtualMachineScaleSet/id'%20eq%20'{set}'&$expand=instanceView&");
    let (_, body) = get(&server, &machines_at(&filter)).await;
    assert_eq!(rows(&body), 2);
    assert!(body["value"][0]["properties"]["instanceView"]["statuses"].is_array());
    assert_eq!(body["value"][0]["properties"]["priority"], "Regular");
    for bad in ["$filter=name%20eq%20'x'&", "$expand=instanceView&"] {
        assert_eq!(get(&server, &machines_at(bad)).await.0, 400, "{bad}");
    }
    // The instance API is for uniform sets.
    let (status, body) = get(&server, &members_of("rg-1")).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("InvalidParameter")));
    let modes: Vec<&str> = world.truth().iter().map(|row| row.billing_mode).collect();
    assert_eq!(modes, ["on_demand", "spot"]);
}

#[tokio::test]
async fn states_come_apart_from_the_model_under_an_id_of_another_case() {
    let world = World::empty();
    let server = serve(&world).await;
    let created: Timestamp = "2026-10-01T08:00:00.1234567Z".parse().unwrap();
    let id = world.add_machine(
        SUBSCRIPTION,
        MachineSpec {
            name: "Asleep".into(),
            group: "rg-a".into(),
            hibernated: true,
            on_host: true,
            created,
            ..MachineSpec::default()
        },
    );
    let (_, model) = get(&server, &machines_at("")).await;
    let (_, status) = get(&server, &machines_at("statusOnly=true&")).await;
    let (model, status) = (&model["value"][0], &status["value"][0]);
    let id_of = |row: &serde_json::Value| row["id"].as_str().unwrap().to_owned();
    assert_ne!(id_of(model), id_of(status));
    assert_eq!(id_of(model).to_lowercase(), id);
    assert_eq!(id_of(status).to_lowercase(), id);
    assert_eq!(model["properties"]["timeCreated"], "2026-10-01T08:00:00.1234567+00:00");
    let host = model["properties"]["host"]["id"].as_str().unwrap();
    assert!(
        host.contains("/hostGroups/") && !host.contains("virtualMachines"),
        "{host}"
    );
    assert!(model["properties"].get("instanceView").is_none());
    assert!(status["properties"].get("hardwareProfile").is_none());
    let codes: Vec<&str> = status["properties"]["instanceView"]["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|status| status["code"].as_str())
        .collect();
    assert_eq!(
        codes,
        [
            "ProvisioningState/succeeded",
            "HibernationState/Hibernated",
            "PowerState/deallocated"
        ]
    );
    let row = world.truth().remove(0);
    assert_eq!((row.state, row.launched), ("stopped", created));
}
