//! The truth of the simulated AWS: accounts, fleets, commitments, keys.
//!
//! A [`World`] is a handle: clones share one state, which tests read and
//! change while it is being served.

mod account;
mod change;
mod commitment;
mod identity;
mod instance;
mod region;
mod truth;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;

pub use account::{Account, AccountSpec, AccountState};
pub use commitment::{
    CapacityBlock, CapacityBlockSpec, CapacityReservation, CapacityReservationSpec, ReservationScope,
    ReservedInstances, ReservedInstancesSpec, SavingsPlan, SavingsPlanRate, SavingsPlanSpec,
};
pub use gpuwatch_fakecloud_core::{CommitmentTruth, InstanceTruth};
pub use identity::{ACCESS_KEY_ID, Keys, SECRET_ACCESS_KEY};
pub use instance::{Instance, InstanceSpec, InstanceState, Lifecycle, Platform};
pub use region::{OptIn, Partition, Region};

pub(crate) use identity::{AssumeRole, Caller};
pub(crate) use region::{regions_of, zone_id};

use account::AccountData;
use gpuwatch_fakecloud_core::random::Random;
use identity::Session;

/// The simulated AWS, readable and changeable at run time.
#[derive(Debug, Clone)]
pub struct World {
    partition: Partition,
    created: Timestamp,
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) partition: Partition,
    pub(crate) created: Timestamp,
    pub(crate) regions: Vec<Region>,
    /// The first account owns the base credentials.
    pub(crate) base_account: Option<String>,
    pub(crate) accounts: BTreeMap<String, AccountData>,
    management_account: Option<String>,
    sessions: BTreeMap<String, Session>,
    session_limit: Option<jiff::SignedDuration>,
    sts_disabled: Vec<String>,
    ids: Random,
    addresses: u32,
}

impl World {
    /// A world without accounts, with the regions of its partition. The first
    /// account added owns the base credentials [`ACCESS_KEY_ID`].
    pub fn empty(partition: Partition) -> Self {
        Self::seeded(partition, regions_of(partition), 0, Timestamp::now())
    }

    /// As [`World::empty`], with these regions only.
    pub fn with_regions(partition: Partition, regions: &[(&str, OptIn)]) -> Self {
        let regions = regions
            .iter()
            .map(|(name, opt_in)| Region::new(name, *opt_in))
            .collect();
        Self::seeded(partition, regions, 0, Timestamp::now())
    }

    pub(crate) fn seeded(partition: Partition, regions: Vec<Region>, seed: u64, now: Timestamp) -> Self {
        let inner = Inner {
            partition,
            created: now,
            regions,
            base_account: None,
            accounts: BTreeMap::new(),
            management_account: None,
            sessions: BTreeMap::new(),
            session_limit: None,
            sts_disabled: Vec::new(),
            ids: Random::stream(seed, "aws ids"),
            addresses: 0,
        };
        Self {
            partition,
            created: now,
            inner: Arc::new(RwLock::new(inner)),
        }
    }

    /// The partition that all accounts and regions belong to.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The moment that launch times and terms of the demo fleet relate to.
    pub fn created(&self) -> Timestamp {
        self.created
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    /// A fresh id such as `i-0a1b…`: a prefix and 17 hexadecimal digits.
    fn fresh_id(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{}", self.ids.hex(16))
    }
}
