//! What can only be decided over the whole fleet: which machines commitments
//! pay for, how much of each commitment is used, and which TPU nodes are
//! machines that are listed already.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gpuwatch_collector_core::Fleet;
use gpuwatch_inventory::{Billing, BillingMode, Commitment, CommitmentKind, Instance, Provider, Text};
use jiff::Timestamp;

use crate::{
    accelerators,
    billing::{CALENDAR, COMMITTED_USE, FLEX_START, RESERVATION_BOUND},
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
    (
        words.next().unwrap_or_default(),
        words.filter(|path| !is_future_reservation(path)),
    )
}

/// Whether a reservation was made in calendar mode: its detail then names the
/// future reservation.
fn is_calendar(reservation: &Commitment) -> bool {
    reservation.detail.split_whitespace().skip(1).any(is_future_reservation)
}

fn is_future_reservation(path: &str) -> bool {
    path.contains("/futureReservations/")
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

/// What a reservation says about the price of the machines in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    /// It is under a commitment, which ends then.
    Committed(Option<Timestamp>),
    /// It was bought for fixed dates.
    Calendar(Option<Timestamp>),
}

/// The terms of reservations, by path. A reservation alone is a place and not
/// a price, and has none.
fn terms(commitments: &[Commitment], expiries: &HashMap<Text, Timestamp>) -> HashMap<Text, Term> {
    let mut terms = HashMap::new();
    for reservation in commitments.iter().filter(|c| is_ours(c, CommitmentKind::Reservation)) {
        let (own, commitments) = paths(reservation);
        let mut commitments = commitments.peekable();
        if is_calendar(reservation) {
            terms.insert(own.into(), Term::Calendar(reservation.expires));
        } else if commitments.peek().is_some() {
            let end = commitments.filter_map(|path| expiries.get(path)).max().copied();
            terms.insert(own.into(), Term::Committed(end));
        }
    }
    terms
}

/// Machines in a reservation that is under a commitment are reserved, and those
/// that are bound to one made in calendar mode say so: the cloud states which
/// reservation a machine consumes, and a reservation states where it is from.
fn mark_reserved(fleet: &mut Fleet, expiries: &HashMap<Text, Timestamp>) {
    let terms = terms(&fleet.commitments, expiries);
    if terms.is_empty() {
        return;
    }
    for instance in &mut fleet.instances {
        if instance.provider != Provider::Gcp || instance.reservation_id.is_empty() {
            continue;
        }
        let (detail, end) = match terms.get(&instance.reservation_id) {
            Some(Term::Committed(end)) if is_payable(instance) => (COMMITTED_USE, *end),
            Some(Term::Calendar(end)) if is_bound(instance) => (CALENDAR, instance.expires.or(*end)),
            _ => continue,
        };
        let instance = Arc::make_mut(instance);
        instance.billing = Billing::exact(BillingMode::Reserved, detail);
        instance.expires = end;
    }
}

/// Whether a machine can only run in a reservation.
fn is_bound(instance: &Instance) -> bool {
    instance.billing.mode == BillingMode::Reserved && &*instance.billing.detail == RESERVATION_BOUND
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
    fn only_machines_bound_to_a_reservation_of_fixed_dates_are_in_calendar_mode() {
        let calendar = format!("{RESERVATION} projects/p/zones/us-central1-a/futureReservations/f");
        let end = "2026-12-24T00:00:00Z".parse().ok();
        let of = |billing: Billing| Instance {
            billing,
            ..in_reservation("1")
        };
        let bound = || Billing::exact(BillingMode::Reserved, "reservation_bound");
        for (instance, detail, expected) in [
            (of(bound()), "calendar", end),
            (of(Billing::estimated(BillingMode::OnDemand, "")), "", None),
            (of(Billing::exact(BillingMode::Spot, "")), "", None),
            (
                Instance {
                    reservation_id: "projects/p/zones/us-central1-a/reservations/other".into(),
                    ..of(bound())
                },
                "reservation_bound",
                None,
            ),
            (
                Instance {
                    expires: "2026-12-20T00:00:00Z".parse().ok(),
                    ..of(bound())
                },
                "calendar",
                "2026-12-20T00:00:00Z".parse().ok(),
            ),
        ] {
            let mode = instance.billing.mode;
            let reservation = Commitment {
                expires: end,
                ..reservation(&calendar, "a3-highgpu-8g", 8, 1, 1)
            };
            let mut fleet = fleet([instance], [reservation]);
            allocate(&mut fleet);
            let found = &fleet.instances[0];
            assert_eq!((found.billing.mode, &*found.billing.detail), (mode, detail));
            assert_eq!(found.expires, expected, "{detail}");
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
