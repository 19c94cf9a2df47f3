//! Accounts and what they may do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::commitment::{Pool, ReservedInstance, SavingsPlan};
use super::instance::Instance;
use super::{Inner, Region, RegionAccess, World};

/// The site that an account was registered at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Site {
    /// The Chinese site, which bills in CNY.
    #[default]
    China,
    /// The international site, which bills in USD.
    International,
}

impl Site {
    /// The currency of its bills.
    #[must_use]
    pub const fn currency(self) -> &'static str {
        match self {
            Self::China => "CNY",
            Self::International => "USD",
        }
    }

    /// The host of its billing product.
    pub(crate) const fn billing_host(self) -> &'static str {
        match self {
            Self::China => "business.aliyuncs.com",
            Self::International => "business.ap-southeast-1.aliyuncs.com",
        }
    }
}

/// What an account is created with.
#[derive(Debug, Clone)]
pub struct AccountSpec {
    /// Name for people.
    pub name: String,
    /// Where it was registered.
    pub site: Site,
    /// Regions on request that are enabled for it.
    pub enabled_regions: Vec<String>,
    /// The external id that its roles demand.
    pub external_id: Option<String>,
    /// Role names that exist; `None` for any name.
    pub roles: Option<Vec<String>>,
    /// RAM actions that are refused, such as `ecs:DescribeInstances` or `ecs:*`.
    pub denied: Vec<String>,
}

impl Default for AccountSpec {
    fn default() -> Self {
        Self {
            name: "test".to_owned(),
            site: Site::China,
            enabled_regions: Vec::new(),
            external_id: None,
            roles: None,
            denied: Vec::new(),
        }
    }
}

/// An account, as tests read it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The uid, sixteen digits.
    pub uid: String,
    /// Name for people.
    pub name: String,
    /// Where it was registered.
    pub site: Site,
    /// A role that can be assumed.
    pub role_arn: String,
}

/// Everything that belongs to one account.
#[derive(Debug)]
pub(crate) struct AccountData {
    pub(crate) account: Account,
    pub(crate) spec: AccountSpec,
    pub(crate) regions: BTreeMap<String, RegionData>,
    pub(crate) savings_plans: Vec<SavingsPlan>,
    /// By instance, the part of its use that reserved instances paid for, where
    /// that is not what ECS itself would allocate.
    pub(crate) paid_by_reserved: BTreeMap<String, f64>,
    /// By instance, the part of its cost that savings plans paid for.
    pub(crate) paid_by_plans: BTreeMap<String, f64>,
    /// The code with which the billing product refuses inside a status of 200.
    pub(crate) billing_refusal: Option<String>,
    /// Whether calls come to the billing host of the other site.
    pub(crate) wrong_site: bool,
}

/// One account's things in one region.
#[derive(Debug, Default)]
pub(crate) struct RegionData {
    /// By id, the order of listings.
    pub(crate) instances: BTreeMap<String, Instance>,
    pub(crate) reserved: Vec<ReservedInstance>,
    pub(crate) pools: Vec<Pool>,
}

impl World {
    /// Adds an account. The first one owns the base credentials.
    pub fn add_account(&self, uid: &str, spec: AccountSpec) {
        let mut inner = self.write();
        let role = spec
            .roles
            .as_ref()
            .and_then(|roles| roles.first())
            .map_or("gpuwatch", String::as_str);
        let account = Account {
            uid: uid.to_owned(),
            name: spec.name.clone(),
            site: spec.site,
            role_arn: format!("acs:ram::{uid}:role/{role}"),
        };
        if inner.base_account.is_none() {
            inner.base_account = Some(uid.to_owned());
            inner.add_base_key(uid);
        }
        let data = AccountData {
            account,
            spec,
            regions: BTreeMap::new(),
            savings_plans: Vec::new(),
            paid_by_reserved: BTreeMap::new(),
            paid_by_plans: BTreeMap::new(),
            billing_refusal: None,
            wrong_site: false,
        };
        inner.accounts.insert(uid.to_owned(), data);
    }

    /// All accounts, by uid.
    #[must_use]
    pub fn accounts(&self) -> Vec<Account> {
        self.read().accounts.values().map(|data| data.account.clone()).collect()
    }

    /// One account.
    #[must_use]
    pub fn account(&self, uid: &str) -> Option<Account> {
        self.read().accounts.get(uid).map(|data| data.account.clone())
    }

    /// The account of the base credentials; empty in a world without accounts.
    #[must_use]
    pub fn base_account(&self) -> String {
        self.read().base_account.clone().unwrap_or_default()
    }

    /// Refuses a RAM action to every identity of an account. `ecs:*` refuses
    /// all actions of a product.
    pub fn deny(&self, uid: &str, action: &str) {
        self.change_account(uid, |data| data.spec.denied.push(action.to_owned()));
    }

    /// Takes back a refusal.
    pub fn allow(&self, uid: &str, action: &str) {
        self.change_account(uid, |data| data.spec.denied.retain(|denied| denied != action));
    }

    /// Makes the billing product refuse with `code`, inside an answer of
    /// status 200; `None` ends that.
    pub fn set_billing_refusal(&self, uid: &str, code: Option<&str>) {
        self.change_account(uid, |data| data.billing_refusal = code.map(str::to_owned));
    }

    /// Lets the billing product put an object around its lists
    /// (`Items.Item`), as some of its answers do.
    pub fn wrap_bill_items(&self, wrapped: bool) {
        self.write().bill_items_wrapped = wrapped;
    }

    /// Lets the billing product answer as the host of the other site does.
    pub fn set_wrong_site(&self, uid: &str, wrong: bool) {
        self.change_account(uid, |data| data.wrong_site = wrong);
    }

    /// Lets the bill say that savings plans paid for a part of an instance's
    /// cost, from 0 to 1, every day.
    pub fn set_paid_by_savings_plans(&self, uid: &str, instance: &str, share: f64) {
        self.change_account(uid, |data| {
            data.paid_by_plans.insert(instance.to_owned(), share);
        });
    }

    /// Lets the bill say that reserved instances paid for a part of an
    /// instance's use, from 0 to 1, every day, whatever their types are.
    /// [`World::truth`] does not take notice of it.
    pub fn set_paid_by_reserved_instances(&self, uid: &str, instance: &str, share: f64) {
        self.change_account(uid, |data| {
            data.paid_by_reserved.insert(instance.to_owned(), share);
        });
    }

    /// Enables a region on request for an account, or takes it away again.
    pub fn set_region_enabled(&self, uid: &str, region: &str, enabled: bool) {
        self.change_account(uid, |data| {
            data.spec.enabled_regions.retain(|id| id != region);
            if enabled {
                data.spec.enabled_regions.push(region.to_owned());
            }
        });
    }

    /// Opens, restricts or closes a region for everybody.
    pub fn set_region_access(&self, region: &str, access: RegionAccess) {
        for known in self.write().regions.iter_mut().filter(|known| known.id == region) {
            known.access = access;
        }
    }

    /// Ids of the regions that an account sees.
    #[must_use]
    pub fn visible_regions(&self, uid: &str) -> BTreeSet<String> {
        let inner = self.read();
        let visible = inner.regions.iter().filter(|region| inner.sees(uid, region));
        visible.map(|region| region.id.clone()).collect()
    }

    pub(crate) fn denies(&self, uid: &str, action: &str) -> bool {
        let inner = self.read();
        let product = action.split(':').next().unwrap_or_default();
        let denied = inner.accounts.get(uid).map(|data| data.spec.denied.as_slice());
        denied
            .unwrap_or_default()
            .iter()
            .any(|denied| denied.eq_ignore_ascii_case(action) || *denied == "*" || *denied == format!("{product}:*"))
    }

    pub(crate) fn billing_state(&self, uid: &str) -> (Site, bool, Option<String>) {
        let inner = self.read();
        let Some(data) = inner.accounts.get(uid) else {
            return (Site::China, false, None);
        };
        (data.spec.site, data.wrong_site, data.billing_refusal.clone())
    }

    fn change_account(&self, uid: &str, change: impl FnOnce(&mut AccountData)) {
        if let Some(data) = self.write().accounts.get_mut(uid) {
            change(data);
        }
    }
}

impl Inner {
    pub(crate) fn sees(&self, uid: &str, region: &Region) -> bool {
        let enabled = || {
            self.accounts
                .get(uid)
                .is_some_and(|data| data.spec.enabled_regions.contains(&region.id))
        };
        match region.access {
            RegionAccess::Open => true,
            RegionAccess::OnRequest => enabled(),
            RegionAccess::Closed => false,
        }
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub(crate) fn sees_id(&self, uid: &str, region: &str) -> bool {
        let found = self.regions.iter().find(|known| known.id == region);
        found.is_some_and(|known| self.sees(uid, known))
    }

    pub(crate) fn region(&self, uid: &str, region: &str) -> Option<&RegionData> {
        self.accounts.get(uid)?.regions.get(region)
    }

    /// The data of an account in a region; `None` when there is no such account.
    pub(crate) fn region_mut(&mut self, uid: &str, region: &str) -> Option<&mut RegionData> {
        let data = self.accounts.get_mut(uid)?;
        Some(data.regions.entry(region.to_owned()).or_default())
    }

    /// A list of the billing product, in the shape that it has now.
    pub(crate) fn bill_items(&self, rows: &[Value]) -> Value {
        if self.bill_items_wrapped {
            json!({ "Item": rows })
        } else {
            json!(rows)
        }
    }

    pub(crate) fn savings_plans(&self, uid: &str) -> &[SavingsPlan] {
        self.accounts
            .get(uid)
            .map(|data| data.savings_plans.as_slice())
            .unwrap_or_default()
    }

    pub(crate) fn add_savings_plan(&mut self, uid: &str, plan: SavingsPlan) -> bool {
        let data = self.accounts.get_mut(uid);
        data.map(|data| data.savings_plans.push(plan)).is_some()
    }
}
