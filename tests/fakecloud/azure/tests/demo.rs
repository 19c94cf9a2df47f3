//! The demo fleet has one of everything.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeSet;

use gpuwatch_fakecloud_azure::{InstanceTruth, World};

fn all(of: impl Fn(&InstanceTruth) -> String) -> BTreeSet<String> {
    World::demo(1, 120).truth().iter().map(of).collect()
}

// P24
#[test]
fn it_has_every_state_and_mode() {
    let states = all(|row| row.state.to_owned());
    let expected = [
        "running",
        "starting",
        "stopped",
        "stopped_billed",
        "stopping",
        "unknown",
    ];
    assert!(states.iter().eq(expected), "{states:?}");
    let modes = all(|row| format!("{} {}", row.billing_mode, row.billing_detail));
    for mode in [
        "on_demand ",
        "on_demand dedicated_host",
        "reserved reservation",
        "spot ",
        "spot spot_plus",
        "unknown Barter",
    ] {
        assert!(modes.contains(mode), "{mode}: {modes:?}");
    }
    assert!(all(|row| row.account.clone()).len() >= 2 && all(|row| row.region.clone()).len() >= 3);
}

// P32, P34, P36
#[test]
fn it_has_parts_of_cards_and_an_unknown_number() {
    let truth = World::demo(1, 120).truth();
    assert!(truth.iter().any(|row| row.gpus.is_some_and(|gpus| gpus < 0.2)));
    let unknown: Vec<&str> = truth
        .iter()
        .filter(|row| row.gpus.is_none())
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(unknown, ["silent"]);
    let names: Vec<&str> = truth.iter().map(|row| row.name.as_str()).collect();
    for absent in ["cpu-1", "fpga"] {
        assert!(!names.contains(&absent));
    }
}

// P28
#[test]
fn what_was_bought_is_partly_used() {
    let world = World::demo(1, 120);
    let held: Vec<InstanceTruth> = world.truth().into_iter().filter(|row| row.name == "held").collect();
    assert_eq!(held[0].billing_mode, "reserved");
    let bought = world.commitments();
    let of = |size: &str, kind: &str| {
        let mut found = bought.iter().filter(|b| b.instance_type == size && b.kind == kind);
        found.next().map(|bought| (bought.units, bought.used))
    };
    // A resource group's own reservation has one machine to pay for.
    assert_eq!(of("Standard_NC16as_T4_v3", "reservation"), Some((Some(2), Some(1))));
    // A machine of this tenant and one of another hold places.
    assert_eq!(
        of("Standard_ND96isr_H100_v5", "capacity_reservation"),
        Some((Some(4), Some(2)))
    );
    assert!(bought.iter().any(|bought| bought.kind == "savings_plan"));
    // Ended ones, and those of machines without accelerators, are not there.
    assert_eq!(of("Standard_D4s_v5", "reservation"), None);
    assert_eq!(of("Standard_NC4as_T4_v3", "reservation"), None);
}

#[test]
fn the_same_seed_gives_the_same_fleet() {
    let facts = |seed: u64| -> Vec<(String, String)> {
        let truth = World::demo(seed, 120).truth();
        truth.into_iter().map(|row| (row.id, row.state.to_owned())).collect()
    };
    assert_eq!(facts(5), facts(5));
    assert_ne!(facts(5), facts(6));
    let count = facts(5).len();
    assert!((100..=140).contains(&count), "{count}");
}
