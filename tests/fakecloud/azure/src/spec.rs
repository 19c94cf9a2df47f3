//! What subscriptions have: machines, scale sets, what was bought; and the ids
//! they have in Resource Manager.

use std::collections::BTreeMap;

use jiff::Timestamp;

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
    /// Whether it sleeps: it is deallocated then, whatever its power.
    pub hibernated: bool,
    /// Creation.
    pub created: Timestamp,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Name of the flexible scale set of its group that it belongs to; empty
    /// for none.
    pub set: String,
    /// Whether it is on a dedicated host.
    pub on_host: bool,
    /// Name of the capacity reservation of its group whose places it uses;
    /// empty for none.
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
            hibernated: false,
            created: Timestamp::UNIX_EPOCH,
            tags: BTreeMap::new(),
            set: String::new(),
            on_host: false,
            capacity: String::new(),
            computer_name: String::new(),
        }
    }
}

impl MachineSpec {
    /// The power state that is shown; empty while it changes.
    pub(crate) fn power(&self) -> &str {
        if self.hibernated { "deallocated" } else { &self.power }
    }

    /// Whether it holds hardware, and a place of its capacity reservation.
    pub(crate) fn is_allocated(&self) -> bool {
        matches!(self.power(), "running" | "starting" | "stopping" | "stopped")
    }

    /// Whether it is in this group, by a reference to something there.
    pub(crate) fn refers(&self, reference: &str, group: &str, name: &str) -> bool {
        reference.eq_ignore_ascii_case(name) && self.group.eq_ignore_ascii_case(group)
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
    /// Tags of the set, and of each member of a uniform one.
    pub tags: BTreeMap<String, String>,
    /// Whether it is of the flexible kind.
    pub flexible: bool,
    /// Power state and creation of each member of a uniform set.
    pub members: Vec<(String, Timestamp)>,
}

/// In what the members of a scale set differ.
#[derive(Debug, Clone, Default)]
pub struct ScaleSetVariety {
    /// Zones that the members of a uniform set have in turn; empty for none.
    pub zones: Vec<String>,
    /// Sizes that the members of a uniform set have in turn, in place of one
    /// for all; the set's own is then `Mix`.
    pub mixed_sizes: Vec<String>,
    /// Of a flexible set with spot and regular members: how many are regular
    /// before any is not, and the percentage of regular ones beyond those.
    pub priority_mix: Option<(u32, u32)>,
}

/// A scale set, with the variety of its members.
#[derive(Debug)]
pub(crate) struct ScaleSet {
    pub(crate) spec: ScaleSetSpec,
    pub(crate) variety: ScaleSetVariety,
}

impl Default for ScaleSetSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            group: "rg-ml".to_owned(),
            location: "eastus".to_owned(),
            size: "Standard_NC4as_T4_v3".to_owned(),
            priority: String::new(),
            tags: BTreeMap::new(),
            flexible: false,
            members: Vec::new(),
        }
    }
}

impl ScaleSet {
    /// Size of the member of this number.
    pub(crate) fn size_of(&self, number: usize) -> &str {
        in_turn(&self.variety.mixed_sizes, number).unwrap_or(&self.spec.size)
    }

    /// Zone of the member of this number; empty for none.
    pub(crate) fn zone_of(&self, number: usize) -> &str {
        in_turn(&self.variety.zones, number).unwrap_or_default()
    }
}

fn in_turn(words: &[String], number: usize) -> Option<&str> {
    let at = number.checked_rem(words.len())?;
    words.get(at).map(String::as_str)
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
    /// Places held by machines of subscriptions that cannot be seen, with
    /// which the group is shared. Machines of the own one hold further places
    /// while they are allocated.
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

/// ARM id of a machine, in mixed case as the service writes it.
pub(crate) fn machine_id(subscription: &str, machine: &MachineSpec) -> String {
    format!(
        "{}/virtualMachines/{}",
        compute_path(subscription, &machine.group),
        machine.name
    )
}

/// ARM id of the dedicated host that a machine is on, which is its own.
pub(crate) fn host_id(subscription: &str, machine: &MachineSpec) -> String {
    let group = compute_path(subscription, &machine.group);
    format!(
        "{group}/hostGroups/hosts-{}/hosts/host-of-{}",
        machine.location, machine.name
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
