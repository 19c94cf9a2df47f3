//! Future reservations: capacity that was asked for ahead of its time.

use jiff::{SignedDuration, Timestamp};

use super::{Inner, Reservation, World};

/// What a future reservation is asked for with.
#[derive(Debug, Clone)]
pub struct FutureReservationSpec {
    /// Name; made up unless given.
    pub name: String,
    /// Machine type that it will hold.
    pub machine_type: String,
    /// Machines that it will hold.
    pub count: u32,
    /// `reservationMode`: `CALENDAR` for fixed dates, `DEFAULT` else.
    pub mode: String,
    /// `status.procurementStatus`.
    pub status: String,
    /// Begin of its time; ten days before the world's creation unless given.
    pub starts: Option<Timestamp>,
    /// End of its time; twenty days after the world's creation unless given.
    pub ends: Option<Timestamp>,
    /// Ids of the reservations made from it, in its own project.
    pub reservations: Vec<String>,
}

impl Default for FutureReservationSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            machine_type: "a3-highgpu-8g".to_owned(),
            count: 1,
            mode: "CALENDAR".to_owned(),
            status: "FULFILLED".to_owned(),
            starts: None,
            ends: None,
            reservations: Vec::new(),
        }
    }
}

/// A future reservation that exists.
#[derive(Debug, Clone)]
pub struct FutureReservation {
    /// Numeric id.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Name, unique in its project and zone.
    pub name: String,
    /// Begin of its time.
    pub starts: Timestamp,
    /// End of its time.
    pub ends: Timestamp,
    /// What it was asked for with.
    pub spec: FutureReservationSpec,
}

impl World {
    /// Adds a future reservation. Returns its id; `None` when there is no such
    /// project or zone.
    pub fn add_future_reservation(&self, project: &str, zone: &str, mut spec: FutureReservationSpec) -> Option<String> {
        let mut inner = self.write();
        if !inner.has_zone(zone) {
            return None;
        }
        let day = SignedDuration::from_hours(24);
        let starts = spec.starts.unwrap_or(inner.created - day * 10);
        let ends = spec.ends.unwrap_or(inner.created + day * 20);
        let number = inner.projects.get(project)?.future_reservations.len() + 1;
        if spec.name.is_empty() {
            spec.name = format!("future-{number}");
        }
        let id = inner.fresh_id().to_string();
        let row = FutureReservation {
            id: id.clone(),
            zone: zone.to_owned(),
            name: spec.name.clone(),
            starts,
            ends,
            spec,
        };
        let data = inner.projects.get_mut(project)?;
        data.future_reservations
            .insert((zone.to_owned(), row.name.clone()), row);
        Some(id)
    }
}

impl Inner {
    /// Whether a reservation was made for fixed dates.
    pub(crate) fn is_calendar(&self, reservation: &Reservation) -> bool {
        let all = self
            .projects
            .values()
            .flat_map(|data| data.future_reservations.values());
        let mut made = all.filter(|row| row.spec.reservations.contains(&reservation.id));
        made.any(|row| row.spec.mode == "CALENDAR")
    }
}
