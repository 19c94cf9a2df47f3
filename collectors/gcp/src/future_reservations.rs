//! Future reservations in calendar mode: capacity that was bought for fixed
//! dates, and the reservations in which it is handed out.
//!
//! A future reservation is a place of its own only until its time comes; from
//! then on the reservation that was made from it is listed. So nothing is
//! listed here: what is read tells which reservations end on a date, and
//! that their machines are paid for in calendar mode.

use std::collections::HashMap;

use gpuwatch_collector_core::{Coalesced, CollectError, Context, Reason, Scope};
use gpuwatch_inventory::Text;
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    api::Api,
    calls::FUTURE_RESERVATIONS,
    listing::{ByRegion, Taken, aggregated},
    place::{Place, path_of},
    value::{Time, Whole},
};

/// Part of the time left that this listing may take: 1 / 3. Without it
/// reservations lack a detail, and they must not be lost over it.
const SHARE_OF_TIME: u32 = 3;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    id: Whole,
    name: Option<String>,
    self_link: Option<String>,
    reservation_mode: Option<String>,
    time_window: Option<TimeWindow>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TimeWindow {
    end_time: Time,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    auto_created_reservations: Option<Vec<String>>,
}

/// A future reservation in calendar mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    /// Its path.
    pub path: Text,
    /// End of its time.
    pub ends: Option<Timestamp>,
    /// Paths of the reservations made from it.
    reservations: Vec<Text>,
}

/// Lists future reservations.
#[derive(Debug, Default)]
pub(crate) struct FutureReservationLister {
    listings: Coalesced<ByRegion<Calendar>>,
}

impl FutureReservationLister {
    /// The reservations of a scope that were made in calendar mode, by their
    /// paths.
    ///
    /// # Errors
    /// When the listing failed, took too long or lacks a zone of the region.
    pub(crate) async fn by_reservation(
        &self,
        cx: &Context,
        api: &Api,
        scope: &Scope,
    ) -> Result<HashMap<Text, Calendar>, CollectError> {
        let fetch = || async {
            let listing = aggregated(
                cx,
                api,
                FUTURE_RESERVATIONS,
                "futureReservations",
                None,
                |place, record: Record| read(scope, place, &record),
            );
            let limit = cx.remaining() / SHARE_OF_TIME;
            cx.timeout(limit, listing).await.unwrap_or_else(|| {
                Err(CollectError::new(
                    Reason::Timeout,
                    "the list of future reservations takes too long; which reservations end on a date is not known",
                ))
            })
        };
        let listing = self.listings.get(&scope.account.id, cx, fetch).await?;
        let mut found = HashMap::new();
        for calendar in listing.of(cx, &scope.region)? {
            let made = calendar.reservations.iter();
            found.extend(made.map(|reservation| (reservation.clone(), calendar.clone())));
        }
        Ok(found)
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.listings.retain(keep);
    }
}

fn read(scope: &Scope, place: Place<'_>, record: &Record) -> Taken<Calendar> {
    let Some(id) = record.id.0 else {
        return Taken::Bad("no_id");
    };
    let id = Text::from(id.to_string());
    // The others only promise a place, at the price of the day.
    if record.reservation_mode.as_deref() != Some("CALENDAR") {
        return Taken::Other(id);
    }
    let name = record.name.as_deref().unwrap_or_default();
    let path = record.self_link.as_deref().map_or_else(
        || {
            let (project, zone) = (&scope.account.id, place.zone);
            format!("projects/{project}/zones/{zone}/futureReservations/{name}")
        },
        |link| path_of(link).to_owned(),
    );
    let made = record
        .status
        .as_ref()
        .and_then(|status| status.auto_created_reservations.as_ref());
    let calendar = Calendar {
        path: path.into(),
        ends: record.time_window.as_ref().and_then(|window| window.end_time.0),
        reservations: made.into_iter().flatten().map(|link| path_of(link).into()).collect(),
    };
    Taken::Row(id, calendar)
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::Provider;

    use super::*;

    fn taken(record: serde_json::Value) -> Result<Taken<Calendar>, serde_json::Error> {
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
        Ok(read(&scope, place, &serde_json::from_value(record)?))
    }

    #[test]
    fn calendar_mode_names_its_reservations_and_its_end() {
        let taken = taken(serde_json::json!({
            "id": "7", "name": "f", "reservationMode": "CALENDAR",
            "timeWindow": {"startTime": "2026-11-01T00:00:00Z", "endTime": "2026-12-24T00:00:00.000-08:00"},
            "status": {"procurementStatus": "FULFILLED", "fulfilledCount": "2", "autoCreatedReservations":
                ["https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/reservations/r"]},
        }));
        let Taken::Row(_, found) = taken.unwrap() else {
            panic!("not read")
        };
        let expected = Calendar {
            path: "projects/p/zones/us-central1-a/futureReservations/f".into(),
            ends: "2026-12-24T08:00:00Z".parse().ok(),
            reservations: vec!["projects/p/zones/us-central1-a/reservations/r".into()],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn other_modes_say_nothing_about_a_price() {
        for mode in [
            serde_json::json!("DEFAULT"),
            serde_json::json!("BRAND_NEW"),
            serde_json::Value::Null,
        ] {
            let record = serde_json::json!({"id": "7", "reservationMode": mode,
                "status": {"autoCreatedReservations": ["projects/p/zones/z/reservations/r"]}});
            assert!(matches!(taken(record).unwrap(), Taken::Other(_)), "{mode}");
        }
        assert!(matches!(taken(serde_json::json!({})).unwrap(), Taken::Bad("no_id")));
        let waiting = serde_json::json!({"id": "7", "reservationMode": "CALENDAR", "status": null});
        let Taken::Row(_, waiting) = taken(waiting).unwrap() else {
            panic!("not read")
        };
        assert!(waiting.reservations.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_record_is_read_or_refused(record in crate::samples::any_json()) {
            let _ = taken(record);
        }
    }
}
