//! The truth of the simulated Tencent Cloud: accounts, machines, what was
//! bought.
//!
//! A [`World`] is a handle: clones share one state, which tests read and
//! change while it is being served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

mod specs;

pub use specs::{ContainerSpec, CouponSpec, HostSpec, MachineSpec, NodeSpec, PlanSpec, ReservedSpec};

/// Id of the base credentials' key.
pub const SECRET_ID: &str = "AKIDfakecloudExample0000000000000000";
/// The key itself; of a simulated cloud, so no secret.
pub const SECRET_KEY: &str = "fakecloudExampleKey0000000000000";
/// Owner of the base credentials.
pub const OWNER: &str = "100000000001";
/// The role that every account has for its observer.
pub const ROLE: &str = "gpuwatch";

/// Instance types with their accelerators; the last is in no catalogue, and
/// the first has none.
const TYPES: [(&str, f64, &str); 12] = [
    ("S5.LARGE8", 0.0, ""),
    ("GN7.LARGE20", 0.25, "NVIDIA T4"),
    ("GN7.2XLARGE40", 0.5, "NVIDIA T4"),
    ("GN7.2XLARGE32", 1.0, "NVIDIA T4"),
    ("GN7.20XLARGE320", 4.0, "NVIDIA T4"),
    ("GN8.7XLARGE224", 4.0, "NVIDIA P40"),
    ("GN10X.2XLARGE40", 1.0, "NVIDIA V100"),
    ("GN10Xp.20XLARGE320", 8.0, "NVIDIA V100"),
    ("PNV4.7XLARGE116", 1.0, "NVIDIA A10"),
    ("GT4.20XLARGE474", 4.0, "NVIDIA A100"),
    ("GT4.41XLARGE948", 8.0, "NVIDIA A100"),
    ("GN99.48XLARGE960", 8.0, "NVIDIA X900"),
];

/// Accelerators and model of an instance type; 0 for a CPU type.
#[must_use]
pub fn gpus_of(instance_type: &str) -> (f64, &'static str) {
    let known = TYPES.iter().find(|(name, _, _)| *name == instance_type);
    known.map_or((0.0, ""), |(_, gpus, model)| (*gpus, model))
}

/// The types there are.
pub(crate) fn types() -> impl Iterator<Item = (&'static str, f64, &'static str)> {
    TYPES.into_iter()
}

/// Which of the two sites the world plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// In China.
    China,
    /// Outside.
    International,
}

/// The simulated Tencent Cloud, readable and changeable at run time.
#[derive(Debug, Clone)]
pub struct World {
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) site: Site,
    pub(crate) created: Timestamp,
    pub(crate) regions: Vec<String>,
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) keys: BTreeMap<String, Key>,
    /// Seconds that this service's clock is ahead.
    pub(crate) clock_offset: i64,
    pub(crate) external_id: Option<String>,
    pub(crate) session_length: SignedDuration,
    pub(crate) machine_role: Option<String>,
    ids: Random,
}

/// A key, or a session.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) account: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
    pub(crate) ends: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) denied: BTreeSet<String>,
    pub(crate) machines: Vec<MachineSpec>,
    pub(crate) hosts: Vec<HostSpec>,
    pub(crate) reserved: Vec<ReservedSpec>,
    pub(crate) plans: Vec<PlanSpec>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) containers: Vec<ContainerSpec>,
    pub(crate) coupons: Vec<CouponSpec>,
}

impl World {
    /// A world of a site, with the account of the base credentials in it.
    #[must_use]
    pub fn empty(site: Site) -> Self {
        let regions = match site {
            Site::China => vec!["ap-guangzhou", "ap-shanghai", "ap-beijing", "ap-singapore"],
            Site::International => vec!["ap-singapore", "ap-tokyo", "na-siliconvalley", "eu-frankfurt"],
        };
        let base = Key {
            account: OWNER.to_owned(),
            secret: SECRET_KEY.to_owned(),
            token: None,
            ends: None,
        };
        let inner = Inner {
            site,
            created: Timestamp::now(),
            regions: regions.into_iter().map(str::to_owned).collect(),
            accounts: BTreeMap::from([(OWNER.to_owned(), Account::default())]),
            keys: BTreeMap::from([(SECRET_ID.to_owned(), base)]),
            clock_offset: 0,
            external_id: None,
            session_length: SignedDuration::from_hours(2),
            machine_role: None,
            ids: Random::stream(0, "tencent ids"),
        };
        Self {
            inner: Arc::new(RwLock::new(inner)),
        }
    }

    /// The moment that ages of the demo fleet relate to.
    #[must_use]
    pub fn created(&self) -> Timestamp {
        self.read().created
    }

    /// Adds an account (owner uin) with a role that may be assumed.
    pub fn add_account(&self, owner: &str) {
        self.write().accounts.entry(owner.to_owned()).or_default();
    }

    /// Roles of the accounts other than the base credentials' own.
    #[must_use]
    pub fn role_arns(&self) -> Vec<String> {
        let inner = self.read();
        let others = inner.accounts.keys().filter(|owner| *owner != OWNER);
        others
            .map(|owner| format!("qcs::cam::uin/{owner}:roleName/{ROLE}"))
            .collect()
    }

    /// Adds a machine; the result is its id.
    pub fn add_machine(&self, owner: &str, mut spec: MachineSpec) -> String {
        let mut inner = self.write();
        if spec.id.is_empty() {
            spec.id = format!("ins-{}", inner.ids.hex(8));
        }
        let id = spec.id.clone();
        if let Some(account) = inner.accounts.get_mut(owner) {
            account.machines.push(spec);
        }
        id
    }

    /// Changes a machine.
    pub fn change_machine(&self, owner: &str, id: &str, change: impl FnOnce(&mut MachineSpec)) {
        self.change(owner, |account| {
            if let Some(machine) = account.machines.iter_mut().find(|machine| machine.id == id) {
                change(machine);
            }
        });
    }

    /// Removes a machine.
    pub fn remove_machine(&self, owner: &str, id: &str) {
        self.change(owner, |account| account.machines.retain(|machine| machine.id != id));
    }

    /// Adds a dedicated host.
    pub fn add_host(&self, owner: &str, spec: HostSpec) {
        self.change(owner, |account| account.hosts.push(spec));
    }

    /// Adds a reserved instance.
    pub fn add_reserved(&self, owner: &str, spec: ReservedSpec) {
        self.change(owner, |account| account.reserved.push(spec));
    }

    /// Adds a savings plan.
    pub fn add_plan(&self, owner: &str, spec: PlanSpec) {
        self.change(owner, |account| account.plans.push(spec));
    }

    /// Adds a native node of a cluster, which no listing of CVM has.
    pub fn add_node(&self, owner: &str, spec: NodeSpec) {
        self.change(owner, |account| account.nodes.push(spec));
    }

    /// Adds a container instance.
    pub fn add_container(&self, owner: &str, spec: ContainerSpec) {
        self.change(owner, |account| account.containers.push(spec));
    }

    /// Adds a reserved instance of a super node.
    pub fn add_coupon(&self, owner: &str, spec: CouponSpec) {
        self.change(owner, |account| account.coupons.push(spec));
    }

    /// Takes a permission (`cvm:DescribeInstances`) away.
    pub fn deny(&self, owner: &str, permission: &str) {
        self.change(owner, |account| {
            account.denied.insert(permission.to_owned());
        });
    }

    /// What roles ask for.
    pub fn set_external_id(&self, id: Option<&str>) {
        self.write().external_id = id.map(str::to_owned);
    }

    /// How far the service's clock is ahead of this machine's, in seconds.
    pub fn set_clock_offset(&self, seconds: i64) {
        self.write().clock_offset = seconds;
    }

    /// The role that the metadata service gives keys of.
    pub fn set_machine_role(&self, name: Option<&str>) {
        self.write().machine_role = name.map(str::to_owned);
    }

    /// Ends every session.
    pub fn expire_sessions(&self) {
        for key in self.write().keys.values_mut().filter(|key| key.ends.is_some()) {
            key.ends = Some(Timestamp::UNIX_EPOCH);
        }
    }

    fn change(&self, owner: &str, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.write().accounts.get_mut(owner) {
            change(account);
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The service's time.
    pub(crate) fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_secs(self.clock_offset);
        let now = Timestamp::now();
        now.checked_add(offset).unwrap_or(now)
    }

    /// Opens a session of an account: id, key and token.
    ///
    /// Not for longer than the world's own sessions.
    pub(crate) fn open_session(&mut self, account: &str, seconds: Option<i64>) -> (String, Key) {
        let length = seconds.map_or(self.session_length, |seconds| {
            self.session_length.min(SignedDuration::from_secs(seconds))
        });
        let id = format!("AKIDz{}", self.ids.hex(31));
        let ends = self.now().checked_add(length).unwrap_or(Timestamp::MAX);
        let key = Key {
            account: account.to_owned(),
            secret: self.ids.hex(32),
            token: Some(format!("{}==", self.ids.hex(64))),
            ends: Some(ends),
        };
        self.keys.insert(id.clone(), key.clone());
        (id, key)
    }
}
