//! The truth of the simulated Azure: subscriptions, machines, what was bought.
//!
//! A [`World`] is a handle: clones share one state, which tests read and
//! change while it is being served.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

/// A token that is always accepted.
pub const ACCESS_TOKEN: &str = "fakecloud-access-token";

/// The tenant that everything is in.
pub const TENANT: &str = "72f988bf-0000-4000-8000-fakecloud0000";

/// Audience of tokens for Resource Manager in the public cloud.
const PUBLIC: &str = "https://management.azure.com";

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
    /// Ends of issued tokens.
    pub(crate) tokens: BTreeMap<String, Timestamp>,
    pub(crate) token_lifetime: SignedDuration,
    pub(crate) graph_works: bool,
    pub(crate) has_machine_identity: bool,
    ids: Random,
}

#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) denied: BTreeSet<String>,
    pub(crate) machines: Vec<MachineSpec>,
    pub(crate) sets: Vec<ScaleSetSpec>,
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

/// A virtual machine.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    /// Name.
    pub name: String,
    /// Resource group.
    pub group: String,
    /// Region (`eastus`).
    pub location: String,
    /// Zone; empty for none.
    pub zone: String,
    /// Size.
    pub size: String,
    /// `Regular`, `Spot`, `Low` or anything; empty for a field that is absent.
    pub priority: String,
    /// `running`, `stopped` and so on; empty while it changes.
    pub power: String,
    /// Creation.
    pub created: Timestamp,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Name of the flexible scale set it belongs to; empty for none.
    pub set: String,
    /// Whether it is on a dedicated host.
    pub on_host: bool,
    /// Name of the capacity reservation group it uses; empty for none.
    pub capacity: String,
    /// Host name; empty for a machine without a profile.
    pub computer_name: String,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            group: "rg-ml".to_owned(),
            location: "eastus".to_owned(),
            zone: String::new(),
            size: "Standard_NC4as_T4_v3".to_owned(),
            priority: "Regular".to_owned(),
            power: "running".to_owned(),
            created: Timestamp::UNIX_EPOCH,
            tags: BTreeMap::new(),
            set: String::new(),
            on_host: false,
            capacity: String::new(),
            computer_name: String::new(),
        }
    }
}

/// A scale set. Flexible ones have their members among the machines.
#[derive(Debug, Clone)]
pub struct ScaleSetSpec {
    /// Name.
    pub name: String,
    /// Resource group.
    pub group: String,
    /// Region.
    pub location: String,
    /// Size.
    pub size: String,
    /// Priority of the members; empty for absent.
    pub priority: String,
    /// Tags of the set; members have none of their own.
    pub tags: BTreeMap<String, String>,
    /// Whether it is of the flexible kind.
    pub flexible: bool,
    /// Power state and creation of each member of a uniform set.
    pub members: Vec<(String, Timestamp)>,
}

/// A capacity reservation, in a group of its own name.
#[derive(Debug, Clone)]
pub struct CapacitySpec {
    /// Name of the group and of the reservation.
    pub name: String,
    /// Resource group.
    pub group: String,
    /// Region.
    pub location: String,
    /// Size.
    pub size: String,
    /// Places bought.
    pub capacity: u32,
    /// Places that machines hold.
    pub allocated: u32,
}

/// A reservation of machines.
#[derive(Debug, Clone)]
pub struct ReservationSpec {
    /// Region.
    pub location: String,
    /// Size.
    pub size: String,
    /// Units.
    pub quantity: u32,
    /// Subscription or resource group it is bound to; empty for all.
    pub applies_to: String,
    /// Subscription that is billed.
    pub billed_to: String,
    /// `Succeeded`, `Expired` and so on.
    pub state: String,
    /// End of the term.
    pub expires: Timestamp,
}

/// A savings plan.
#[derive(Debug, Clone)]
pub struct SavingsPlanSpec {
    /// Committed per hour, as a decimal text.
    pub hourly: String,
    /// Subscription that is billed.
    pub billed_to: String,
    /// End of the term.
    pub expires: Timestamp,
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
            graph_works: true,
            has_machine_identity: false,
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
            capacity: Vec::new(),
        };
        self.write().subscriptions.insert(id.to_owned(), subscription);
    }

    /// Sets a subscription's state (`Enabled`, `Disabled`).
    pub fn set_state(&self, subscription: &str, state: &str) {
        self.change(subscription, |s| state.clone_into(&mut s.state));
    }

    /// Takes a permission away in a subscription.
    pub fn deny(&self, subscription: &str, action: &str) {
        self.change(subscription, |s| {
            s.denied.insert(action.to_owned());
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

    /// Adds a scale set.
    pub fn add_scale_set(&self, subscription: &str, spec: ScaleSetSpec) {
        self.change(subscription, |s| s.sets.push(spec));
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
        for end in self.write().tokens.values_mut() {
            *end = Timestamp::UNIX_EPOCH;
        }
    }

    /// Switches Resource Graph on or off.
    pub fn set_graph(&self, works: bool) {
        self.write().graph_works = works;
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
    /// Issues a token.
    pub(crate) fn issue(&mut self) -> String {
        let token = format!("eyJfake.{}", self.ids.hex(32));
        let end = Timestamp::now()
            .checked_add(self.token_lifetime)
            .unwrap_or(Timestamp::MAX);
        self.tokens.insert(token.clone(), end);
        token
    }
}

/// ARM id of a machine, in mixed case as the service writes it.
pub(crate) fn machine_id(subscription: &str, machine: &MachineSpec) -> String {
    format!(
        "{}/virtualMachines/{}",
        compute_path(subscription, &machine.group),
        machine.name
    )
}

pub(crate) fn set_id(subscription: &str, group: &str, name: &str) -> String {
    format!("{}/virtualMachineScaleSets/{name}", compute_path(subscription, group))
}

pub(crate) fn capacity_id(subscription: &str, group: &str, name: &str) -> String {
    format!("{}/capacityReservationGroups/{name}", compute_path(subscription, group))
}

fn compute_path(subscription: &str, group: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute")
}
