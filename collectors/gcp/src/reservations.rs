//! Reservations of machines with accelerators, in the project that owns them.

use std::{collections::BTreeSet, sync::Arc};

use gpuwatch_collector_core::{Coalesced, CollectError, Context, Scope};
use gpuwatch_inventory::{Accelerators, Commitment, CommitmentKind, CommitmentScope, GpuCount, Provider, Text};
use serde::Deserialize;

use crate::{
    accelerators::{self, Attached, may_have_accelerators},
    api::Api,
    calls::RESERVATIONS,
    future_reservations::FutureReservationLister,
    listing::{ByRegion, Taken, aggregated},
    machine_types::MachineTypes,
    place::{Place, last, path_of},
    value::{Time, Whole},
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    id: Whole,
    name: Option<String>,
    self_link: Option<String>,
    status: Option<String>,
    creation_timestamp: Time,
    delete_at_time: Time,
    specific_reservation: Option<SpecificReservation>,
    aggregate_reservation: Option<AggregateReservation>,
    commitment: Option<String>,
    linked_commitments: Option<Vec<String>>,
}

/// Machines of one shape.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecificReservation {
    count: Whole,
    in_use_count: Whole,
    instance_properties: Option<InstanceProperties>,
    source_instance_template: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InstanceProperties {
    machine_type: Option<String>,
    guest_accelerators: Option<Vec<Attached>>,
}

/// Accelerators of a family, whatever machines they are in (TPUs).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregateReservation {
    vm_family: Option<String>,
    reserved_resources: Option<Vec<ReservedResource>>,
    in_use_resources: Option<Vec<ReservedResource>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReservedResource {
    accelerator: Option<Attached>,
}

/// A reservation whose accelerators may still have to be looked up.
#[derive(Debug, Clone)]
struct Draft {
    commitment: Commitment,
    by_type: bool,
}

/// Lists reservations.
#[derive(Debug)]
pub(crate) struct ReservationLister {
    listings: Coalesced<ByRegion<Draft>>,
    future: FutureReservationLister,
    types: Arc<MachineTypes>,
}

impl ReservationLister {
    pub(crate) fn new(types: Arc<MachineTypes>) -> Self {
        Self {
            listings: Coalesced::default(),
            future: FutureReservationLister::default(),
            types,
        }
    }

    /// The reservations of a scope that hold accelerators and are in force.
    /// When it cannot be had which of them are in calendar mode the run is
    /// degraded, and they are listed without.
    ///
    /// # Errors
    /// When a zone of the region could not be reached.
    pub(crate) async fn list(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<Vec<Commitment>, CollectError> {
        let fetch = || {
            aggregated(cx, api, RESERVATIONS, "reservations", None, |place, record| {
                read(scope, place, &record)
            })
        };
        let listing = self.listings.get(&scope.account.id, cx, fetch).await?;
        let drafts = listing.of(cx, &scope.region)?;
        let wanted: BTreeSet<Text> = drafts
            .iter()
            .filter(|draft| draft.by_type)
            .map(|draft| draft.commitment.instance_type.clone())
            .collect();
        let accelerated = self.types.accelerated(cx, api, &wanted).await;
        let decide = |draft: &Draft| {
            let mut commitment = draft.commitment.clone();
            if draft.by_type {
                commitment.gpus_per_unit = accelerated.of(&commitment.instance_type)?.count;
            }
            Some(commitment)
        };
        let mut found: Vec<Commitment> = drafts.iter().filter_map(decide).collect();
        if !found.is_empty() {
            self.note_calendar(cx, api, scope, &mut found).await;
        }
        Ok(found)
    }

    /// Notes on reservations made in calendar mode from which future
    /// reservation they come, and when they end.
    async fn note_calendar(&self, cx: &Context, api: &Api, scope: &Scope, found: &mut [Commitment]) {
        let calendars = match self.future.by_reservation(cx, api, scope).await {
            Ok(calendars) => calendars,
            Err(error) => {
                cx.degraded(&error);
                return;
            }
        };
        for reservation in found {
            let own = reservation.detail.split_whitespace().next().unwrap_or_default();
            let Some(calendar) = calendars.get(own) else {
                continue;
            };
            reservation.detail = format!("{} {}", reservation.detail, calendar.path).into();
            reservation.expires = reservation.expires.or(calendar.ends);
        }
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.listings.retain(&keep);
        self.future.retain(&keep);
    }
}

/// What a reservation holds.
struct Holds {
    instance_type: Text,
    units: Option<u32>,
    used: Option<u32>,
    /// `None` when it is that of the machine type.
    each: Option<Accelerators>,
}

fn read(scope: &Scope, place: Place<'_>, record: &Record) -> Taken<Draft> {
    let Some(id) = record.id.0 else {
        return Taken::Bad("no_id");
    };
    let id = Text::from(id.to_string());
    // One that is being made or deleted, or is invalid, holds nothing.
    if matches!(record.status.as_deref(), Some("CREATING" | "DELETING" | "INVALID")) {
        return Taken::Other(id);
    }
    let holds = match (&record.specific_reservation, &record.aggregate_reservation) {
        (Some(specific), _) => match machines(specific) {
            Ok(Some(holds)) => holds,
            Ok(None) => return Taken::Other(id),
            Err(reason) => return Taken::Bad(reason),
        },
        (None, Some(aggregate)) => match chips(aggregate) {
            Some(holds) => holds,
            None => return Taken::Other(id),
        },
        (None, None) => return Taken::Other(id),
    };
    let commitment = Commitment {
        provider: Provider::Gcp,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: place.region.into(),
        id: id.clone(),
        kind: CommitmentKind::Reservation,
        instance_type: holds.instance_type,
        scope: if place.zone.is_empty() {
            CommitmentScope::Region
        } else {
            CommitmentScope::Zone(place.zone.into())
        },
        platform: Text::default(),
        tenancy: Text::default(),
        units: holds.units,
        used_units: holds.used,
        gpus_per_unit: holds.each.as_ref().and_then(|each| each.count),
        hourly: None,
        rates: Vec::new(),
        starts: record.creation_timestamp.0,
        expires: record.delete_at_time.0,
        detail: paths(scope, place, record).into(),
    };
    let by_type = holds.each.is_none();
    Taken::Row(id, Draft { commitment, by_type })
}

/// The reservation's own path, which machines name, and then those of the
/// commitments it is under: what `allocate` joins by.
fn paths(scope: &Scope, place: Place<'_>, record: &Record) -> String {
    let name = record.name.as_deref().unwrap_or_default();
    let own = record.self_link.as_deref().map_or_else(
        || format!("projects/{}/zones/{}/reservations/{name}", scope.account.id, place.zone),
        |link| path_of(link).to_owned(),
    );
    let linked = record.linked_commitments.iter().flatten();
    let mut commitments: Vec<&str> = record
        .commitment
        .iter()
        .chain(linked)
        .map(|link| path_of(link))
        .filter(|path| !path.is_empty())
        .collect();
    commitments.sort_unstable();
    commitments.dedup();
    std::iter::once(own.as_str())
        .chain(commitments)
        .collect::<Vec<_>>()
        .join(" ")
}

/// `None` for machines without accelerators.
fn machines(specific: &SpecificReservation) -> Result<Option<Holds>, &'static str> {
    let properties = specific.instance_properties.as_ref();
    let machine_type = last(properties.and_then(|p| p.machine_type.as_deref()).unwrap_or_default());
    let each = properties
        .and_then(|properties| properties.guest_accelerators.as_deref())
        .and_then(|entries| accelerators::listed(machine_type, entries));
    if each.is_none() && machine_type.is_empty() {
        // Of a template in another project, which does not show what it holds.
        let is_template = specific.source_instance_template.is_some();
        return Err(if is_template { "template_only" } else { "no_type" });
    }
    if each.is_none() && !may_have_accelerators(machine_type) {
        return Ok(None);
    }
    Ok(Some(Holds {
        instance_type: machine_type.into(),
        units: specific.count.count(),
        used: specific.in_use_count.count(),
        each,
    }))
}

/// `None` for resources that are no accelerators.
fn chips(aggregate: &AggregateReservation) -> Option<Holds> {
    let listed = |resources: &Option<Vec<ReservedResource>>| {
        let attached: Vec<Attached> = resources
            .iter()
            .flatten()
            .filter_map(|resource| resource.accelerator.clone())
            .collect();
        accelerators::listed("", &attached)
    };
    let whole = |found: Option<&Accelerators>| whole_number(found?.count?);
    let reserved = listed(&aggregate.reserved_resources)?;
    let in_use = listed(&aggregate.in_use_resources);
    let family = aggregate.vm_family.as_deref().unwrap_or_default();
    Some(Holds {
        instance_type: if family.is_empty() {
            reserved.model.clone()
        } else {
            family.into()
        },
        units: whole(Some(&reserved)),
        used: match &aggregate.in_use_resources {
            Some(_) => whole(in_use.as_ref()).or(Some(0)),
            None => None,
        },
        each: Some(Accelerators {
            count: Some(GpuCount::from(1)),
            ..reserved
        }),
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn whole_number(count: GpuCount) -> Option<u32> {
    (count.get() <= f64::from(u32::MAX)).then_some(count.get() as u32)
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;

    use super::*;

    fn taken(json: &str) -> Taken<Draft> {
        let scope = Scope {
            provider: Provider::Gcp,
            account: Account {
                id: "p".into(),
                name: "P".into(),
            },
            region: "us-central1".into(),
        };
        let place = Place {
            region: "us-central1",
            zone: "us-central1-a",
        };
        read(&scope, place, &serde_json::from_str(json).unwrap())
    }

    fn row(json: &str) -> Draft {
        match taken(json) {
            Taken::Row(_, draft) => draft,
            Taken::Other(_) => panic!("not listed: {json}"),
            Taken::Bad(reason) => panic!("{reason}: {json}"),
        }
    }

    #[test]
    fn counts_are_text_and_accelerators_may_be_attached() {
        let found = row(
            r#"{"id": "7", "name": "r", "status": "READY", "deleteAtTime": "2026-12-31T00:00:00Z",
            "commitment": "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/commitments/c",
            "linkedCommitments": ["projects/p/regions/us-central1/commitments/c"],
            "specificReservation": {"count": "4", "inUseCount": "3", "instanceProperties": {"machineType": "n1-standard-8",
            "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}]}}}"#,
        );
        let commitment = &found.commitment;
        assert_eq!((commitment.units, commitment.used_units), (Some(4), Some(3)));
        assert_eq!(commitment.gpus().map(GpuCount::get), Some(8.0));
        assert_eq!(
            &*commitment.detail,
            "projects/p/zones/us-central1-a/reservations/r projects/p/regions/us-central1/commitments/c"
        );
        assert!(!found.by_type && commitment.expires.is_some());
    }

    #[test]
    fn machine_types_are_looked_up_and_plain_ones_left_out() {
        let of = |machine_type: &str, status: &str| {
            format!(
                r#"{{"id": "7", "status": "{status}", "specificReservation": {{"count": "1",
                "instanceProperties": {{"machineType": "{machine_type}"}}}}}}"#
            )
        };
        let found = row(&of("a3-highgpu-8g", "READY"));
        assert!(found.by_type);
        assert_eq!(found.commitment.used_units, None, "not stated is unknown");
        for (machine_type, status) in [
            ("n2-standard-8", "READY"),
            ("a3-highgpu-8g", "DELETING"),
            ("a3-highgpu-8g", "CREATING"),
            ("a3-highgpu-8g", "INVALID"),
        ] {
            assert!(
                matches!(taken(&of(machine_type, status)), Taken::Other(_)),
                "{machine_type} {status}"
            );
        }
        for status in ["UPDATING", "BRAND_NEW"] {
            assert!(
                row(&of("a3-highgpu-8g", status)).by_type,
                "still holds what it held: {status}"
            );
        }
        let ailing = r#"{"id": "7", "status": "READY", "specificReservation": {"count": "4", "inUseCount": "1",
            "assuredCount": "3", "instanceProperties": {"machineType": "a3-highgpu-8g"}}}"#;
        assert_eq!(
            row(ailing).commitment.units,
            Some(4),
            "capacity out of order is bought all the same"
        );
        let template = r#"{"id": "7", "specificReservation": {"count": "1", "sourceInstanceTemplate": "x"}}"#;
        assert!(matches!(taken(template), Taken::Bad("template_only")));
    }

    #[test]
    fn reservations_of_chips_count_chips() {
        let found = row(
            r#"{"id": "7", "aggregateReservation": {"vmFamily": "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P",
            "reservedResources": [{"accelerator": {"acceleratorCount": 64, "acceleratorType": "projects/p/zones/z/acceleratorTypes/ct5p"}}],
            "inUseResources": [{"accelerator": {"acceleratorCount": 16, "acceleratorType": "ct5p"}}]}}"#,
        );
        let commitment = found.commitment;
        assert_eq!((commitment.units, commitment.used_units), (Some(64), Some(16)));
        assert_eq!(commitment.gpus().map(GpuCount::get), Some(64.0));
    }

    proptest::proptest! {
        #[test]
        fn any_record_is_read_or_refused(record in crate::samples::any_json()) {
            let _ = serde_json::from_value::<Record>(record.clone()).map(|_| taken(&record.to_string()));
        }
    }
}
