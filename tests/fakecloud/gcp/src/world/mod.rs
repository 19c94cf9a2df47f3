//! The truth of the simulated Google Cloud: the resource hierarchy, machines,
//! commitments, credentials, and what is out of order.
//!
//! A [`World`] is a handle: clones share one state, which tests read and
//! change while it is being served.

mod capacity;
mod change;
mod future;
mod hierarchy;
mod identity;
mod instance;
mod places;
mod tpu;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpuwatch_fakecloud_core::random::Random;
use jiff::Timestamp;

pub use capacity::{Commitment, CommitmentResource, CommitmentSpec, Reservation, ReservationSpec};
pub use future::{FutureReservation, FutureReservationSpec};
pub use hierarchy::{ProjectSpec, ProjectState};
pub use identity::ServiceAccountKey;
pub use instance::{Instance, InstanceSpec, Provisioning, Status};
pub use places::Region;
pub use tpu::{TpuNode, TpuSpec};

use crate::page::Cut;

pub(crate) use hierarchy::{Folder, ProjectData};
pub(crate) use identity::{CLOUD_PLATFORM, Caller, Identity};
pub(crate) use places::{region_of, usual_regions};

/// The simulated Google Cloud, readable and changeable at run time.
#[derive(Debug, Clone)]
pub struct World {
    created: Timestamp,
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) created: Timestamp,
    pub(crate) regions: Vec<Region>,
    /// Number → display name.
    pub(crate) organizations: BTreeMap<String, String>,
    /// By number.
    pub(crate) folders: BTreeMap<String, Folder>,
    /// By project id.
    pub(crate) projects: BTreeMap<String, ProjectData>,
    pub(crate) identity: Identity,
    /// Zones whose machines cannot be listed at the moment.
    pub(crate) zones_down: BTreeSet<String>,
    /// Whether lists over all zones fail as a whole while a zone is down.
    pub(crate) outages_fail: bool,
    /// Pages are no larger than this, whatever is asked for.
    pub(crate) page_limit: Option<usize>,
    ids: Random,
    addresses: u32,
    numbers: u64,
}

impl World {
    /// A world without projects, with a selection of the real regions. It
    /// serves anyone, also without credentials.
    pub fn empty() -> Self {
        Self::seeded(usual_regions(), 0, Timestamp::now())
    }

    /// As [`World::empty`], with these regions only, each with the letters of
    /// its zones.
    pub fn with_regions(regions: &[(&str, &str)]) -> Self {
        let regions = regions.iter().map(|(name, zones)| Region::new(name, zones)).collect();
        Self::seeded(regions, 0, Timestamp::now())
    }

    pub(crate) fn seeded(regions: Vec<Region>, seed: u64, now: Timestamp) -> Self {
        let inner = Inner {
            created: now,
            regions,
            organizations: BTreeMap::new(),
            folders: BTreeMap::new(),
            projects: BTreeMap::new(),
            identity: Identity::new(seed),
            zones_down: BTreeSet::new(),
            outages_fail: false,
            page_limit: None,
            ids: Random::stream(seed, "gcp ids"),
            addresses: 0,
            numbers: 0,
        };
        Self {
            created: now,
            inner: Arc::new(RwLock::new(inner)),
        }
    }

    /// The moment that times of the demo fleet relate to.
    pub fn created(&self) -> Timestamp {
        self.created
    }

    /// The regions, by name.
    pub fn regions(&self) -> Vec<Region> {
        self.read().regions.clone()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A resource id: 64 bits, often above the largest signed number.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.ids.next() | (1 << 60)
    }

    /// A number of a project, folder or organization.
    pub(crate) fn fresh_number(&mut self) -> String {
        self.numbers += 1;
        (100_000_000_000 + self.numbers * 7_919).to_string()
    }

    /// A private address that no other machine has.
    pub(crate) fn fresh_address(&mut self) -> String {
        self.addresses += 1;
        let [_, b, c, d] = (self.addresses + 1).to_be_bytes();
        format!("10.{}.{c}.{d}", 128 + u16::from(b))
    }

    /// How a listing is cut into pages of at most `limit` rows.
    pub(crate) fn cut(&self, limit: usize) -> Cut {
        Cut {
            limit: limit.min(self.page_limit.unwrap_or(limit)),
            pauses: self.page_limit.is_some(),
        }
    }

    /// Whether there is such a zone.
    pub(crate) fn has_zone(&self, zone: &str) -> bool {
        self.zones().any(|known| known == zone)
    }

    /// Every zone's name, by region.
    pub(crate) fn zones(&self) -> impl Iterator<Item = String> {
        self.regions.iter().flat_map(Region::zone_names)
    }
}
