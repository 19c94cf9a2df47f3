//! Reservations and commitments.

use jiff::{SignedDuration, Timestamp};

use super::{Inner, World, region_of};

/// What a reservation is created with.
#[derive(Debug, Clone)]
pub struct ReservationSpec {
    /// Name; made up unless given.
    pub name: String,
    /// Machine type that it holds.
    pub machine_type: String,
    /// Accelerators attached to each machine, for machine types without any.
    pub accelerators: Vec<(String, u32)>,
    /// Machines that it holds.
    pub count: u32,
    /// Machines of managed services (Vertex AI) in it, which no list of
    /// machines shows.
    pub used_elsewhere: u32,
    /// Machines whose hardware is in order; all unless given.
    pub assured: Option<u32>,
    /// `READY`, `CREATING`, `DELETING` ….
    pub status: String,
    /// Only machines that name it may use it.
    pub specific: bool,
    /// Projects that may use it besides its own.
    pub shared_with: Vec<String>,
    /// Id of the commitment it is attached to.
    pub commitment: Option<String>,
    /// When it is deleted by itself.
    pub delete_at: Option<Timestamp>,
}

impl Default for ReservationSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            machine_type: "a3-highgpu-8g".to_owned(),
            accelerators: Vec::new(),
            count: 1,
            used_elsewhere: 0,
            assured: None,
            status: "READY".to_owned(),
            specific: false,
            shared_with: Vec::new(),
            commitment: None,
            delete_at: None,
        }
    }
}

impl ReservationSpec {
    /// A ready reservation of so many machines of a type.
    pub fn of(machine_type: &str, count: u32) -> Self {
        Self {
            machine_type: machine_type.to_owned(),
            count,
            ..Self::default()
        }
    }
}

/// A reservation that exists.
#[derive(Debug, Clone)]
pub struct Reservation {
    /// Numeric id.
    pub id: String,
    /// Owning project.
    pub project: String,
    /// Zone.
    pub zone: String,
    /// Name, unique in its project and zone.
    pub name: String,
    /// Creation.
    pub created: Timestamp,
    /// What it was created with, and what has changed since.
    pub spec: ReservationSpec,
}

/// One resource of a commitment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitmentResource {
    /// `VCPU`, `MEMORY` (MB), `LOCAL_SSD` (GB), `ACCELERATOR`.
    pub kind: String,
    /// How much of it.
    pub amount: i64,
    /// Accelerator type (`nvidia-h100-80gb`), for accelerators.
    pub accelerator_type: Option<String>,
}

impl CommitmentResource {
    /// So many accelerators of a type.
    pub fn accelerators(accelerator_type: &str, amount: i64) -> Self {
        Self {
            kind: "ACCELERATOR".to_owned(),
            amount,
            accelerator_type: Some(accelerator_type.to_owned()),
        }
    }

    /// So much of anything else.
    pub fn of(kind: &str, amount: i64) -> Self {
        Self {
            kind: kind.to_owned(),
            amount,
            accelerator_type: None,
        }
    }
}

/// What a commitment is bought with.
#[derive(Debug, Clone)]
pub struct CommitmentSpec {
    /// Name; made up unless given.
    pub name: String,
    /// `ACCELERATOR_OPTIMIZED_A3`, `GRAPHICS_OPTIMIZED` ….
    pub commitment_type: String,
    /// `TWELVE_MONTH` or `THIRTY_SIX_MONTH`.
    pub plan: String,
    /// `ACTIVE`, `NOT_YET_ACTIVE`, `EXPIRED`, `CANCELLED`, `CREATING`.
    pub status: String,
    /// `MACHINE` or `LICENSE`.
    pub category: String,
    /// What is committed to.
    pub resources: Vec<CommitmentResource>,
    /// Start; a hundred days before the world's creation unless given.
    pub starts: Option<Timestamp>,
    /// Whether it is renewed by itself.
    pub auto_renew: bool,
}

impl Default for CommitmentSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            commitment_type: "ACCELERATOR_OPTIMIZED_A3".to_owned(),
            plan: "TWELVE_MONTH".to_owned(),
            status: "ACTIVE".to_owned(),
            category: "MACHINE".to_owned(),
            resources: vec![CommitmentResource::accelerators("nvidia-h100-80gb", 8)],
            starts: None,
            auto_renew: false,
        }
    }
}

/// A commitment that exists.
#[derive(Debug, Clone)]
pub struct Commitment {
    /// Numeric id.
    pub id: String,
    /// Owning project.
    pub project: String,
    /// Region.
    pub region: String,
    /// Name, unique in its project and region.
    pub name: String,
    /// Start of the term.
    pub starts: Timestamp,
    /// End of the term.
    pub ends: Timestamp,
    /// What it was bought with, and what has changed since.
    pub spec: CommitmentSpec,
}

impl World {
    /// Adds a reservation. Returns its id; `None` when there is no such
    /// project or zone.
    pub fn add_reservation(&self, project: &str, zone: &str, mut spec: ReservationSpec) -> Option<String> {
        let mut inner = self.write();
        if !inner.has_zone(zone) {
            return None;
        }
        let id = inner.fresh_id().to_string();
        let created = inner.created - SignedDuration::from_hours(24 * 30);
        let data = inner.projects.get_mut(project)?;
        if spec.name.is_empty() {
            spec.name = format!("reservation-{}", data.reservations.len() + 1);
        }
        let reservation = Reservation {
            id: id.clone(),
            project: project.to_owned(),
            zone: zone.to_owned(),
            name: spec.name.clone(),
            created,
            spec,
        };
        let key = (zone.to_owned(), reservation.name.clone());
        data.reservations.insert(key, reservation);
        Some(id)
    }

    /// Adds a commitment. Returns its id; `None` when there is no such project
    /// or region.
    pub fn add_commitment(&self, project: &str, region: &str, mut spec: CommitmentSpec) -> Option<String> {
        let mut inner = self.write();
        if !inner.regions.iter().any(|known| known.name == region) {
            return None;
        }
        let id = inner.fresh_id().to_string();
        let starts = spec
            .starts
            .unwrap_or_else(|| inner.created - SignedDuration::from_hours(24 * 100));
        let days = if spec.plan == "THIRTY_SIX_MONTH" { 1_095 } else { 365 };
        let data = inner.projects.get_mut(project)?;
        if spec.name.is_empty() {
            spec.name = format!("commitment-{}", data.commitments.len() + 1);
        }
        let commitment = Commitment {
            id: id.clone(),
            project: project.to_owned(),
            region: region.to_owned(),
            name: spec.name.clone(),
            starts,
            ends: starts + SignedDuration::from_hours(24 * days),
            spec,
        };
        let key = (region.to_owned(), commitment.name.clone());
        data.commitments.insert(key, commitment);
        Some(id)
    }

    /// The reservations of a project, by zone and name.
    pub fn reservations(&self, project: &str) -> Vec<Reservation> {
        let inner = self.read();
        let data = inner.projects.get(project);
        data.map(|data| data.reservations.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Changes a reservation.
    pub fn change_reservation(&self, id: &str, change: impl FnOnce(&mut ReservationSpec)) {
        let mut inner = self.write();
        let mut all = inner
            .projects
            .values_mut()
            .flat_map(|data| data.reservations.values_mut());
        if let Some(found) = all.find(|reservation| reservation.id == id) {
            change(&mut found.spec);
        }
    }

    /// Changes a commitment.
    pub fn change_commitment(&self, id: &str, change: impl FnOnce(&mut CommitmentSpec)) {
        let mut inner = self.write();
        let mut all = inner
            .projects
            .values_mut()
            .flat_map(|data| data.commitments.values_mut());
        if let Some(found) = all.find(|commitment| commitment.id == id) {
            change(&mut found.spec);
        }
    }
}

impl Inner {
    /// A reservation by its id, in any project.
    pub(crate) fn reservation(&self, id: &str) -> Option<&Reservation> {
        let mut all = self.projects.values().flat_map(|data| data.reservations.values());
        all.find(|reservation| reservation.id == id)
    }

    /// A commitment by its id, in any project.
    pub(crate) fn commitment(&self, id: &str) -> Option<&Commitment> {
        let mut all = self.projects.values().flat_map(|data| data.commitments.values());
        all.find(|commitment| commitment.id == id)
    }

    /// `inUseCount`: machines of every project, and those of managed services.
    pub(crate) fn in_use(&self, reservation: &Reservation) -> u32 {
        let machines = self.projects.values().flat_map(|data| data.instances.values());
        let users = machines.filter(|instance| {
            let consumes = instance.spec.reservation.as_deref() == Some(reservation.id.as_str());
            consumes && instance.spec.status.holds_capacity()
        });
        let count = u32::try_from(users.count()).unwrap_or(u32::MAX);
        count.saturating_add(reservation.spec.used_elsewhere)
    }

    /// The reservations that are attached to a commitment.
    pub(crate) fn attached_to<'a>(&'a self, commitment: &'a Commitment) -> impl Iterator<Item = &'a Reservation> {
        let all = self.projects.values().flat_map(|data| data.reservations.values());
        all.filter(|reservation| {
            let attached = reservation.spec.commitment.as_deref() == Some(commitment.id.as_str());
            attached && region_of(&reservation.zone) == commitment.region
        })
    }
}
