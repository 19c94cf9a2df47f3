//! What can only be decided over the whole fleet: which machines commitments
//! pay for, how much of each commitment is used, and which TPU nodes are
//! machines that are listed already.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{Billing, BillingMode, Certainty, Commitment, CommitmentKind, Instance, Provider, Text};
use jiff::Timestamp;

use crate::{
    accelerators,
    billing::{COMMITTED_USE, FLEX_START},
    cover,
};

/// Allocates over the whole fleet. The result does not depend on the order of
/// its records.
pub(crate) fn allocate(fleet: &mut Fleet) {
    drop_nodes_of_machines(fleet);
    let expiries = expiries(&fleet.commitments);
    mark_reserved(fleet, &expiries);
    cover::cover(fleet);
}

pub(crate) fn is_ours(commitment: &Commitment, kind: CommitmentKind) -> bool {
    commitment.provider == Provider::Gcp && commitment.kind == kind
}

/// The paths in a record's detail: its own, and those of the commitments that
/// a reservation is under.
pub(crate) fn paths(commitment: &Commitment) -> (&str, impl Iterator<Item = &str>) {
    let mut words = commitment.detail.split_whitespace();
    (words.next().unwrap_or_default(), words)
}

/// Nodes of the TPU API whose hosts are machines of Compute Engine come from
/// both APIs; the machines are what is rented. Addresses tell, names do not.
fn drop_nodes_of_machines(fleet: &mut Fleet) {
    let is_tpu = |instance: &Instance| {
        instance.provider == Provider::Gcp
            && instance
                .accelerators
                .vendor
                .as_ref()
                .is_some_and(|vendor| vendor.as_str() == "google")
            && !instance.private_address.is_empty()
    };
    let key = |instance: &Instance| {
        (
            instance.account.clone(),
            instance.zone.clone(),
            instance.private_address.clone(),
        )
    };
    let is_machine = |instance: &Instance| accelerators::may_have_accelerators(&instance.instance_type);
    let machines: HashSet<_> = fleet
        .instances
        .iter()
        .filter(|instance| is_tpu(instance) && is_machine(instance))
        .map(|instance| key(instance))
        .collect();
    if !machines.is_empty() {
        fleet
            .instances
            .retain(|instance| !is_tpu(instance) || is_machine(instance) || !machines.contains(&key(instance)));
    }
}

/// Ends of commitments, by path.
fn expiries(commitments: &[Commitment]) -> HashMap<Text, Timestamp> {
    commitments
        .iter()
        .filter(|commitment| is_ours(commitment, CommitmentKind::CommittedUse))
        .filter_map(|commitment| Some((paths(commitment).0.into(), commitment.expires?)))
        .collect()
}

/// Machines in a reservation that is under a commitment are reserved: the
/// cloud states which reservation a machine consumes, and a reservation states
/// its commitments. A reservation alone is a place and not a price.
fn mark_reserved(fleet: &mut Fleet, expiries: &HashMap<Text, Timestamp>) {
    // Path of the reservation → end of its term.
    let mut committed: HashMap<Text, Option<Timestamp>> = HashMap::new();
    for reservation in fleet
        .commitments
        .iter()
        .filter(|c| is_ours(c, CommitmentKind::Reservation))
    {
        let (own, commitments) = paths(reservation);
        let mut commitments = commitments.peekable();
        if commitments.peek().is_some() {
            let end = commitments.filter_map(|path| expiries.get(path)).max().copied();
            committed.insert(own.into(), end);
        }
    }
    if committed.is_empty() {
        return;
    }
    let detail: Text = COMMITTED_USE.into();
    for instance in &mut fleet.instances {
        if !is_payable(instance) || instance.reservation_id.is_empty() {
            continue;
        }
        let Some(end) = committed.get(&instance.reservation_id) else {
            continue;
        };
        let instance = Arc::make_mut(instance);
        instance.billing = Billing {
            mode: BillingMode::Reserved,
            detail: detail.clone(),
            certainty: Certainty::Exact,
        };
        instance.expires = *end;
    }
}

/// Whether a commitment can pay for a machine at all: never for spot, flex-start
/// and what is reserved otherwise.
pub(crate) fn is_payable(instance: &Instance) -> bool {
    instance.provider == Provider::Gcp
        && instance.billing.mode == BillingMode::OnDemand
        && &*instance.billing.detail != FLEX_START
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{committed_use, fleet, machine, reservation};

    const RESERVATION: &str = "projects/p/zones/us-central1-a/reservations/r";

    fn in_reservation(id: &str) -> Instance {
        Instance {
            reservation_id: RESERVATION.into(),
            ..machine(id, "a3-highgpu-8g", 8)
        }
    }

    #[test]
    fn a_reservation_is_a_price_only_under_a_commitment() {
        let commitment = committed_use("c", "nvidia-h100-80gb", 8);
        for (under, mode, expires) in [
            ("", BillingMode::OnDemand, None),
            (
                " projects/p/regions/us-central1/commitments/c",
                BillingMode::Reserved,
                commitment.expires,
            ),
            (
                " projects/q/regions/us-central1/commitments/other",
                BillingMode::Reserved,
                None,
            ),
        ] {
            let reservation = reservation(&format!("{RESERVATION}{under}"), "a3-highgpu-8g", 8, 1, 1);
            let mut fleet = fleet([in_reservation("1")], [reservation]);
            if under.ends_with("/c") {
                fleet.commitments.push(commitment.clone());
            }
            allocate(&mut fleet);
            let found = &fleet.instances[0];
            assert_eq!((found.billing.mode, found.expires), (mode, expires), "{under}");
            if mode == BillingMode::Reserved {
                assert_eq!(found.billing, Billing::exact(BillingMode::Reserved, COMMITTED_USE));
            }
        }
    }

    #[test]
    fn spot_and_flex_start_are_never_paid_for_by_a_commitment() {
        for billing in [
            Billing::exact(BillingMode::Spot, ""),
            Billing::exact(BillingMode::OnDemand, FLEX_START),
            Billing::exact(BillingMode::Unknown, "BRAND_NEW"),
            Billing::exact(BillingMode::Reserved, "reservation_bound"),
        ] {
            let instance = Instance {
                billing: billing.clone(),
                ..in_reservation("1")
            };
            let under = format!("{RESERVATION} projects/p/regions/us-central1/commitments/c");
            let mut fleet = fleet(
                [instance],
                [
                    reservation(&under, "a3-highgpu-8g", 8, 1, 1),
                    committed_use("c", "nvidia-h100-80gb", 64),
                ],
            );
            allocate(&mut fleet);
            assert_eq!(fleet.instances[0].billing, billing);
        }
    }

    #[test]
    fn a_tpu_node_on_listed_machines_is_not_counted_twice() {
        let at = |instance: Instance, zone: &str, address: &str| Instance {
            zone: zone.into(),
            private_address: address.into(),
            ..instance
        };
        let host = at(machine("1", "ct5lp-hightpu-4t", 4), "us-central1-a", "10.0.0.1");
        let node = at(machine("2", "v5litepod-4", 4), "us-central1-a", "10.0.0.1");
        let elsewhere = at(machine("3", "v5litepod-4", 4), "us-central1-b", "10.0.0.1");
        let nameless = at(machine("4", "v5litepod-4", 4), "us-central1-a", "");
        let mut fleet = fleet([host, node, elsewhere, nameless], []);
        allocate(&mut fleet);
        let ids: Vec<&str> = fleet.instances.iter().map(|instance| &*instance.id).collect();
        assert_eq!(ids, ["1", "3", "4"]);
    }
}
