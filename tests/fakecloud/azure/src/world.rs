//! The truth of the simulated Azure: subscriptions, machines, what was bought.
//!
//! A [`World`] is a handle: clones share one state, which tests read and
//! change while it is being served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

use crate::graph::Quota;
use crate::spec::{
    CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, ScaleSet, ScaleSetSpec, ScaleSetVariety, machine_id,
    set_id,
};

/// A token that is always accepted.
pub const ACCESS_TOKEN: &str = "fakecloud-access-token";

/// The tenant that everything is in.
pub const TENANT: &str = "72f988bf-0000-4000-8000-fakecloud0000";

/// Audience of tokens for Resource Manager in the public cloud.
pub(crate) const PUBLIC: &str = "https://management.azure.com";

/// The simulated Azure, readable and changeable at run time.
#[derive(Debug, Clone)]
pub struct World {
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) audience: String,
    pub(crate) created: Timestamp,
    pub(crate) subscriptions: BTreeMap<String, Subscription>,
    pub(crate) reservations: Vec<(String, ReservationSpec)>,
    pub(crate) plans: Vec<(String, SavingsPlanSpec)>,
    pub(crate) locations: Vec<String>,
    /// Secrets by client id.
    pub(crate) clients: BTreeMap<String, String>,
    /// Issued tokens.
    pub(crate) tokens: BTreeMap<String, Issued>,
    pub(crate) token_lifetime: SignedDuration,
    /// Status with which Resource Graph refuses every query.
    pub(crate) graph_refusal: Option<u16>,
    pub(crate) graph_quota: Quota,
    pub(crate) has_machine_identity: bool,
    /// Versions of the API by operation, where they are not the usual ones.
    pub(crate) versions: BTreeMap<String, Vec<String>>,
    /// Whether the links to next pages lead elsewhere.
    pub(crate) foreign_links: bool,
    /// Actions of the tenant that the caller may not do, with the status of
    /// the answer.
    pub(crate) denied: BTreeMap<String, u16>,
    ids: Random,
}

/// What is known of a token.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) audience: String,
    pub(crate) ends: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) denied: BTreeSet<String>,
    pub(crate) machines: Vec<MachineSpec>,
    pub(crate) sets: Vec<ScaleSet>,
    /// Ids of sets, in lower case, whose members cannot be listed.
    pub(crate) broken_sets: BTreeSet<String>,
    pub(crate) capacity: Vec<CapacitySpec>,
}

impl Subscription {
    /// Whether its machines can be listed at all.
    pub(crate) fn is_polled(&self) -> bool {
        self.is_visible() && !matches!(self.state.as_str(), "Disabled" | "Deleted")
    }

    /// Whether the caller has any role in it.
    pub(crate) fn is_visible(&self) -> bool {
        self.allows("Microsoft.Resources/subscriptions/read")
    }

    pub(crate) fn allows(&self, action: &str) -> bool {
        !self.denied.contains(action)
    }
}

impl World {
    /// A world of the public cloud without subscriptions.
    #[must_use]
    pub fn empty() -> Self {
        Self::with_audience(PUBLIC)
    }

    /// A world of the cloud whose Resource Manager has this audience.
    #[must_use]
    pub fn with_audience(audience: &str) -> Self {
        let locations = ["eastus", "westeurope", "southeastasia", "westus3", "chinanorth3"];
        let inner = Inner {
            audience: audience.to_owned(),
            created: Timestamp::now(),
            subscriptions: BTreeMap::new(),
            reservations: Vec::new(),
            plans: Vec::new(),
            locations: locations.map(str::to_owned).to_vec(),
            clients: BTreeMap::new(),
            tokens: BTreeMap::new(),
            token_lifetime: SignedDuration::from_hours(1),
            graph_refusal: None,
            graph_quota: Quota::new(10_000, SignedDuration::from_secs(5)),
            has_machine_identity: false,
            versions: BTreeMap::new(),
            foreign_links: false,
            denied: BTreeMap::new(),
            ids: Random::stream(0, "azure ids"),
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

    /// Adds a subscription.
    pub fn add_subscription(&self, id: &str, name: &str) {
        let subscription = Subscription {
            id: id.to_owned(),
            name: name.to_owned(),
            state: "Enabled".to_owned(),
            denied: BTreeSet::new(),
            machines: Vec::new(),
            sets: Vec::new(),
            broken_sets: BTreeSet::new(),
            capacity: Vec::new(),
        };
        self.write().subscriptions.insert(id.to_owned(), subscription);
    }

    /// Sets a subscription's state (`Enabled`, `Disabled`).
    pub fn set_state(&self, subscription: &str, state: &str) {
        self.change(subscription, |s| state.clone_into(&mut s.state));
    }

    /// Takes a permission away in a subscription. Machines that cannot be
    /// listed are there all the same, unless the subscription itself
    /// (`Microsoft.Resources/subscriptions/read`) is out of sight; without the
    /// list of SKUs (`Microsoft.Compute/skus/read`) new sizes have no known
    /// number of GPUs.
    pub fn deny(&self, subscription: &str, action: &str) {
        self.change(subscription, |s| {
            s.denied.insert(action.to_owned());
        });
    }

    /// Takes a permission of the tenant away
    /// (`Microsoft.Capacity/reservationOrders/reservations/read`). Calls are
    /// then refused with status 401 or 403, or answered with an empty list
    /// where it is 200: both are seen of the real service.
    pub fn deny_tenant(&self, action: &str, status: u16) {
        self.write().denied.insert(action.to_owned(), status);
    }

    /// Sets the versions of the API that an operation has
    /// (`virtualMachines.listAll`), as clouds that lag behind have fewer.
    pub fn set_api_versions(&self, operation: &str, versions: &[&str]) {
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        self.write().versions.insert(operation.to_owned(), versions);
    }

    /// Lets links to next pages lead to a host that is none of Azure's, or to
    /// the one that was asked.
    pub fn set_foreign_links(&self, foreign: bool) {
        self.write().foreign_links = foreign;
    }

    /// Lets the listing of one uniform scale set's members fail, or work.
    pub fn set_members_fail(&self, subscription: &str, group: &str, set: &str, fail: bool) {
        let id = set_id(subscription, group, set).to_lowercase();
        self.change(subscription, |s| {
            if fail {
                s.broken_sets.insert(id);
            } else {
                s.broken_sets.remove(&id);
            }
        });
    }

    /// Adds a machine; its id is the one that instances are known by.
    pub fn add_machine(&self, subscription: &str, spec: MachineSpec) -> String {
        let id = machine_id(subscription, &spec).to_lowercase();
        self.change(subscription, |s| s.machines.push(spec));
        id
    }

    /// Changes the machine of this name.
    pub fn change_machine(&self, subscription: &str, name: &str, change: impl FnOnce(&mut MachineSpec)) {
        self.change(subscription, |s| {
            if let Some(machine) = s.machines.iter_mut().find(|machine| machine.name == name) {
                change(machine);
            }
        });
    }

    /// Removes the machine of this name.
    pub fn remove_machine(&self, subscription: &str, name: &str) {
        self.change(subscription, |s| s.machines.retain(|machine| machine.name != name));
    }

    /// Adds a scale set whose members are alike.
    pub fn add_scale_set(&self, subscription: &str, spec: ScaleSetSpec) {
        self.add_varied_scale_set(subscription, spec, ScaleSetVariety::default());
    }

    /// Adds a scale set whose members differ.
    pub fn add_varied_scale_set(&self, subscription: &str, spec: ScaleSetSpec, variety: ScaleSetVariety) {
        self.change(subscription, |s| s.sets.push(ScaleSet { spec, variety }));
    }

    /// Adds a capacity reservation.
    pub fn add_capacity(&self, subscription: &str, spec: CapacitySpec) {
        self.change(subscription, |s| s.capacity.push(spec));
    }

    /// Adds a reservation; the result is its id.
    pub fn add_reservation(&self, spec: ReservationSpec) -> String {
        let mut inner = self.write();
        let (order, name) = (inner.ids.hex(8), inner.ids.hex(8));
        let id = format!("/providers/Microsoft.Capacity/reservationOrders/{order}/reservations/{name}");
        inner.reservations.push((id.clone(), spec));
        id
    }

    /// Adds a savings plan.
    pub fn add_savings_plan(&self, spec: SavingsPlanSpec) {
        let mut inner = self.write();
        let name = inner.ids.hex(8);
        let id = format!("/providers/Microsoft.BillingBenefits/savingsPlanOrders/{name}/savingsPlans/{name}");
        inner.plans.push((id, spec));
    }

    /// Registers an application that may sign in with this secret.
    pub fn add_client(&self, client_id: &str, secret: &str) {
        self.write().clients.insert(client_id.to_owned(), secret.to_owned());
    }

    /// Gives the machine that asks the metadata service an identity.
    pub fn set_machine_identity(&self, there: bool) {
        self.write().has_machine_identity = there;
    }

    /// Ends every token that was issued.
    pub fn expire_tokens(&self) {
        for issued in self.write().tokens.values_mut() {
            issued.ends = Timestamp::UNIX_EPOCH;
        }
    }

    /// Switches Resource Graph on, or off as in a cloud without it (404).
    pub fn set_graph(&self, works: bool) {
        self.write().graph_refusal = (!works).then_some(404);
    }

    /// Lets Resource Graph refuse the caller (403).
    pub fn deny_graph(&self) {
        self.write().graph_refusal = Some(403);
    }

    /// Bounds the queries of Resource Graph, which by default are as many as
    /// anybody makes. Every answer tells how many are left; one too many is
    /// refused.
    pub fn set_graph_quota(&self, queries: u32, window: SignedDuration) {
        self.write().graph_quota = Quota::new(queries, window);
    }

    fn change(&self, subscription: &str, change: impl FnOnce(&mut Subscription)) {
        if let Some(subscription) = self.write().subscriptions.get_mut(subscription) {
            change(subscription);
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
    /// Whether the caller may do what has no subscription.
    pub(crate) fn allows(&self, action: &str) -> bool {
        !self.denied.contains_key(action)
    }

    /// Issues a token.
    pub(crate) fn issue(&mut self, audience: &str) -> String {
        let token = format!("eyJfake.{}", self.ids.hex(32));
        let ends = Timestamp::now()
            .checked_add(self.token_lifetime)
            .unwrap_or(Timestamp::MAX);
        let audience = audience.to_owned();
        self.tokens.insert(token.clone(), Issued { audience, ends });
        token
    }
}
