//! Accounts and what they may do.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::commitment::{CapacityBlock, CapacityReservation, ReservedInstances, SavingsPlan};
use super::instance::Instance;
use super::{Inner, OptIn, World};

/// An account's state in its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccountState {
    /// Created, not usable yet.
    PendingActivation,
    /// In use.
    #[default]
    Active,
    /// Suspended; no role in it can be assumed.
    Suspended,
    /// About to be closed.
    PendingClosure,
    /// Closed.
    Closed,
}

impl AccountState {
    /// The API's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingActivation => "PENDING_ACTIVATION",
            Self::Active => "ACTIVE",
            Self::Suspended => "SUSPENDED",
            Self::PendingClosure => "PENDING_CLOSURE",
            Self::Closed => "CLOSED",
        }
    }
}

/// What an account is created with.
#[derive(Debug, Clone)]
pub struct AccountSpec {
    /// Name in the organization.
    pub name: String,
    /// State in the organization.
    pub state: AccountState,
    /// Regions that need opting in and are enabled.
    pub opted_in: Vec<String>,
    /// The external id that its roles demand.
    pub external_id: Option<String>,
    /// Role names that exist; `None` for any name.
    pub roles: Option<Vec<String>>,
    /// Whether it is a member of the organization.
    pub in_organization: bool,
}

impl Default for AccountSpec {
    fn default() -> Self {
        Self {
            name: "test".to_owned(),
            state: AccountState::Active,
            opted_in: Vec::new(),
            external_id: None,
            roles: None,
            in_organization: true,
        }
    }
}

/// An account, as tests read it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Account {
    /// Twelve digits.
    pub id: String,
    /// Name in the organization.
    pub name: String,
    /// Root e-mail address.
    pub email: String,
    /// State in the organization.
    #[serde(serialize_with = "state_word")]
    pub state: AccountState,
    /// Whether `ListAccounts` shows it.
    pub in_organization: bool,
    /// When it joined.
    pub joined: Timestamp,
    /// A role that can be assumed, if the account is active.
    pub role_arn: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn state_word<S: serde::Serializer>(state: &AccountState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

/// Everything that belongs to one account.
#[derive(Debug)]
pub(crate) struct AccountData {
    pub(crate) account: Account,
    pub(crate) spec: AccountSpec,
    pub(crate) regions: BTreeMap<String, RegionData>,
    pub(crate) savings_plans: Vec<SavingsPlan>,
}

/// One account's things in one region.
#[derive(Debug, Default)]
pub(crate) struct RegionData {
    /// By launch reservation and instance id, the order of listings.
    pub(crate) instances: BTreeMap<String, Instance>,
    pub(crate) reserved: Vec<ReservedInstances>,
    pub(crate) capacity: Vec<CapacityReservation>,
    pub(crate) blocks: Vec<CapacityBlock>,
}

impl World {
    /// Adds an account. The first one owns the base credentials and manages
    /// the organization, unless it is not in one.
    pub fn add_account(&self, id: &str, spec: AccountSpec) {
        let mut inner = self.write();
        let joined = inner
            .created
            .checked_sub(SignedDuration::from_hours(24 * 400))
            .unwrap_or(inner.created);
        let role = spec
            .roles
            .as_ref()
            .and_then(|roles| roles.first())
            .map_or("gpuwatch", String::as_str);
        let account = Account {
            id: id.to_owned(),
            name: spec.name.clone(),
            email: format!("aws+{id}@example.com"),
            state: spec.state,
            in_organization: spec.in_organization,
            joined,
            role_arn: format!("arn:{}:iam::{id}:role/{role}", inner.partition),
        };
        if inner.base_account.is_none() {
            inner.base_account = Some(id.to_owned());
            inner.management_account = spec.in_organization.then(|| id.to_owned());
        }
        let data = AccountData {
            account,
            spec,
            regions: BTreeMap::new(),
            savings_plans: Vec::new(),
        };
        inner.accounts.insert(id.to_owned(), data);
    }

    /// All accounts, by id.
    pub fn accounts(&self) -> Vec<Account> {
        self.read().accounts.values().map(|data| data.account.clone()).collect()
    }

    /// One account.
    pub fn account(&self, id: &str) -> Option<Account> {
        self.read().accounts.get(id).map(|data| data.account.clone())
    }

    /// The account of the base credentials; empty in a world without accounts.
    pub fn base_account(&self) -> String {
        self.read().base_account.clone().unwrap_or_default()
    }

    /// The account that manages the organization, if there is one.
    pub fn management_account(&self) -> Option<String> {
        self.read().management_account.clone()
    }

    /// Ends the organization: its API then says that it is not in use.
    pub fn leave_organization(&self) {
        self.write().management_account = None;
    }

    pub(crate) fn organization_id(&self) -> String {
        let management = self.management_account().unwrap_or_default();
        format!(
            "o-{:010x}",
            gpuwatch_fakecloud_core::random::fnv1a(management.as_bytes()) >> 24
        )
    }

    /// Enables a region that needs opting in, or disables it again.
    pub fn set_opted_in(&self, account: &str, region: &str, opted_in: bool) {
        if let Some(data) = self.write().accounts.get_mut(account) {
            data.spec.opted_in.retain(|name| name != region);
            if opted_in {
                data.spec.opted_in.push(region.to_owned());
            }
        }
    }

    /// Whether an account can use a region.
    pub fn region_enabled(&self, account: &str, region: &str) -> bool {
        let inner = self.read();
        let found = inner.regions.iter().find(|known| known.name == region);
        found.is_some_and(|known| inner.opted_in(account, known))
    }

    /// Switches STS off in a region, for all accounts.
    pub fn disable_sts(&self, region: &str) {
        self.write().sts_disabled.push(region.to_owned());
    }

    pub(crate) fn sts_disabled(&self, region: &str) -> bool {
        self.read().sts_disabled.iter().any(|name| name == region)
    }

    /// Names of the regions that an account can use.
    pub fn enabled_regions(&self, account: &str) -> BTreeSet<String> {
        let inner = self.read();
        let enabled = inner.regions.iter().filter(|region| inner.opted_in(account, region));
        enabled.map(|region| region.name.clone()).collect()
    }
}

impl Inner {
    pub(crate) fn opted_in(&self, account: &str, region: &super::Region) -> bool {
        let opted_in = || {
            self.accounts
                .get(account)
                .is_some_and(|data| data.spec.opted_in.contains(&region.name))
        };
        region.opt_in == OptIn::NotRequired || opted_in()
    }

    pub(crate) fn region(&self, account: &str, region: &str) -> Option<&RegionData> {
        self.accounts.get(account)?.regions.get(region)
    }

    /// The data of an account in a region; `None` when there is no such account.
    pub(crate) fn region_mut(&mut self, account: &str, region: &str) -> Option<&mut RegionData> {
        Some(
            self.accounts
                .get_mut(account)?
                .regions
                .entry(region.to_owned())
                .or_default(),
        )
    }
}
