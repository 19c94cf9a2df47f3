//! The truth of the simulated Alibaba Cloud: accounts, fleets, commitments, keys.
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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

pub use account::{Account, AccountSpec, Site};
pub use commitment::{Pool, PoolKind, PoolSpec, ReservedInstance, ReservedInstanceSpec, SavingsPlan, SavingsPlanSpec};
pub use identity::{ACCESS_KEY_ID, ACCESS_KEY_SECRET, Keys};
pub use instance::{Charge, Instance, InstanceSpec, Renewal, Status, StoppedMode};
pub use region::RegionAccess;

pub(crate) use account::RegionData;
pub(crate) use identity::{Caller, MAX_CLOCK_SKEW, Principal, RoleRequest};
pub(crate) use region::Region;
pub(crate) use region::zone_id;
pub(crate) use truth::Covered;

use account::AccountData;
use identity::KeyData;

/// The simulated Alibaba Cloud, readable and changeable at run time.
#[derive(Debug, Clone)]
pub struct World {
    created: Timestamp,
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    created: Timestamp,
    clock_offset: SignedDuration,
    regions: Vec<Region>,
    /// The first account owns the base credentials.
    base_account: Option<String>,
    accounts: BTreeMap<String, AccountData>,
    keys: BTreeMap<String, KeyData>,
    session_limit: Option<SignedDuration>,
    /// Whether lists of the billing product are in an object around them.
    bill_items_wrapped: bool,
    /// Tokens that the identity provider of a role has issued.
    oidc_tokens: BTreeMap<String, Timestamp>,
    metadata: identity::Metadata,
    /// Nonces of the last quarter of an hour, by access key.
    nonces: BTreeSet<String>,
    nonce_order: VecDeque<(Timestamp, String)>,
    ids: Random,
    addresses: u32,
}

impl World {
    /// A world without accounts, with the regions of the real service. The
    /// first account added owns the base credentials [`ACCESS_KEY_ID`].
    #[must_use]
    pub fn empty() -> Self {
        Self::seeded(region::all(), 0, Timestamp::now())
    }

    /// As [`World::empty`], with these regions only.
    #[must_use]
    pub fn with_regions(regions: &[(&str, RegionAccess)]) -> Self {
        let regions = regions.iter().map(|(id, access)| Region::new(id, *access)).collect();
        Self::seeded(regions, 0, Timestamp::now())
    }

    pub(crate) fn seeded(regions: Vec<Region>, seed: u64, now: Timestamp) -> Self {
        let inner = Inner {
            created: now,
            clock_offset: SignedDuration::ZERO,
            regions,
            base_account: None,
            accounts: BTreeMap::new(),
            keys: BTreeMap::new(),
            session_limit: None,
            bill_items_wrapped: false,
            oidc_tokens: BTreeMap::new(),
            metadata: identity::Metadata::default(),
            nonces: BTreeSet::new(),
            nonce_order: VecDeque::new(),
            ids: Random::stream(seed, "aliyun ids"),
            addresses: 0,
        };
        Self {
            created: now,
            inner: Arc::new(RwLock::new(inner)),
        }
    }

    /// The moment that creation times and terms of the demo fleet relate to.
    #[must_use]
    pub fn created(&self) -> Timestamp {
        self.created
    }

    /// Sets how far the service's clock is ahead of this machine's.
    pub fn set_clock_offset(&self, offset: SignedDuration) {
        self.write().clock_offset = offset;
    }

    /// The service's time.
    pub(crate) fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(self.read().clock_offset).unwrap_or(now)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    /// A fresh id such as `i-bp1…`.
    fn fresh_id(&mut self, prefix: &str) -> String {
        format!("{prefix}-bp1{}", self.ids.hex(17))
    }
}
