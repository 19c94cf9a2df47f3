//! Machines from the Compute API: exact and live, with more calls. Used where
//! Resource Graph does not answer.

use std::collections::{HashMap, HashSet};

use gpuwatch_collector_core::{Call, CollectError, Context};

use crate::{
    arm::{Arm, Listing, path_of},
    errors,
    graph::Set,
    vm::{Record, region_of},
};

const VERSIONS: &[&str] = &["2024-07-01", "2022-11-01"];

const MACHINES: Listing = Listing {
    call: Call::new(
        "compute",
        "virtualMachines.listAll",
        "Microsoft.Compute/virtualMachines/read",
    ),
    versions: VERSIONS,
};
const SETS: Listing = Listing {
    call: Call::new(
        "compute",
        "virtualMachineScaleSets.listAll",
        "Microsoft.Compute/virtualMachineScaleSets/read",
    ),
    versions: VERSIONS,
};
const MEMBERS: Listing = Listing {
    call: Call::new(
        "compute",
        "virtualMachineScaleSetVMs.list",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
    ),
    versions: VERSIONS,
};

/// What the Compute API has, with the regions of which it has not all.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub machines: Vec<Record>,
    pub failed: HashMap<String, CollectError>,
}

impl Listed {
    /// Lists the members of a uniform set; a failure spoils the set's region.
    pub(crate) async fn add_members(&mut self, cx: &Context, arm: &Arm, set: &Set) {
        let path = format!("{}/virtualMachines?$expand=instanceView", path_of(&set.id));
        match arm.list::<Record>(cx, MEMBERS, &path).await {
            Ok(members) => self.machines.extend(members.into_iter().map(|mut member| {
                member.set = Some(set.facts());
                member
            })),
            // Deleted since it was listed.
            Err(error) if errors::is_gone(&error) => {}
            Err(error) => {
                self.failed.insert(region_of(&set.location), error);
            }
        }
    }
}

/// What an identity may be allowed to read of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Machines,
    Sets,
}

/// Asks for one page, to learn whether it would be refused.
///
/// # Errors
/// The refusal.
pub(crate) async fn probe(cx: &Context, arm: &Arm, subscription: &str, kind: Kind) -> Result<(), CollectError> {
    let (listing, word) = match kind {
        Kind::Machines => (MACHINES, "virtualMachines"),
        Kind::Sets => (SETS, "virtualMachineScaleSets"),
    };
    let path = format!("/subscriptions/{subscription}/providers/Microsoft.Compute/{word}");
    match arm.get::<serde::de::IgnoredAny>(cx, listing, &path).await {
        Err(error) if errors::is_unused(&error) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Accelerator machines of a subscription, members of uniform sets included.
/// A set whose members cannot be listed spoils its own region only.
///
/// # Errors
/// When machines or sets cannot be listed.
pub(crate) async fn machines(cx: &Context, arm: &Arm, subscription: &str) -> Result<Listed, CollectError> {
    let base = format!("/subscriptions/{subscription}/providers/Microsoft.Compute");
    let all: Vec<Record> = match arm.list(cx, MACHINES, &format!("{base}/virtualMachines")).await {
        Err(error) if errors::is_unused(&error) => return Ok(Listed::default()),
        result => result?,
    };
    let mut listed = Listed {
        machines: all.into_iter().filter(Record::has_accelerators).collect(),
        failed: HashMap::new(),
    };
    if !listed.machines.is_empty() {
        add_states(cx, arm, &base, &mut listed.machines).await;
    }
    let sets: Vec<Set> = arm.list(cx, SETS, &format!("{base}/virtualMachineScaleSets")).await?;
    for set in sets.iter().filter(|set| set.has_own_members()) {
        listed.add_members(cx, arm, set).await;
    }
    listed.machines.retain(Record::has_accelerators);
    Ok(listed)
}

/// The plain listing has no power states; a second one has little else.
async fn add_states(cx: &Context, arm: &Arm, base: &str, machines: &mut [Record]) {
    let path = format!("{base}/virtualMachines?statusOnly=true");
    let views: Vec<Record> = match arm.list(cx, MACHINES, &path).await {
        Ok(views) => views,
        Err(error) => {
            cx.degraded(&error);
            return;
        }
    };
    let wanted: HashSet<String> = machines.iter().map(|machine| machine.id.to_lowercase()).collect();
    let views: HashMap<String, Record> = views
        .into_iter()
        .map(|view| (view.id.to_lowercase(), view))
        .filter(|(id, _)| wanted.contains(id))
        .collect();
    for machine in machines {
        if let Some(view) = views.get(&machine.id.to_lowercase()) {
            machine.take_view(view);
        }
    }
}
