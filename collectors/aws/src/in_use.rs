//! Which instance types run on demand, remembered from the inventory so that
//! savings-plan rates are asked for those and no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use gpuwatch_collector_core::lock;
use gpuwatch_inventory::{BillingMode, Instance, State, Text};
use tokio::sync::watch;

use crate::platform;

/// A type in use somewhere: what a savings-plan rate is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    pub region: Text,
    pub instance_type: Text,
    pub platform: Text,
}

/// What runs on demand, by account and region.
#[derive(Debug)]
pub(crate) struct InUse {
    seen: Mutex<BTreeMap<Text, BTreeMap<Text, BTreeSet<Usage>>>>,
    changed: watch::Sender<()>,
}

impl Default for InUse {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }
}

impl InUse {
    /// Takes note of a region's complete listing.
    pub(crate) fn note(&self, account: &Text, region: &Text, instances: &[Instance]) {
        let on_demand = |i: &&Instance| i.state == State::Running && i.billing.mode == BillingMode::OnDemand;
        let usage = instances.iter().filter(on_demand).map(|instance| Usage {
            region: region.clone(),
            instance_type: instance.instance_type.clone(),
            platform: platform::of_instance(&instance.platform).into(),
        });
        let usage: BTreeSet<Usage> = usage.collect();
        lock(&self.seen)
            .entry(account.clone())
            .or_default()
            .insert(region.clone(), usage);
        self.changed.send_replace(());
    }

    /// What an account runs on demand, as far as it has been listed.
    pub(crate) fn of_account(&self, account: &str) -> BTreeSet<Usage> {
        let seen = lock(&self.seen);
        seen.get(account)
            .into_iter()
            .flat_map(BTreeMap::values)
            .flatten()
            .cloned()
            .collect()
    }

    /// Waits until all these regions of an account have been listed once.
    pub(crate) async fn listed(&self, account: &str, regions: &[Text]) {
        let mut changes = self.changed.subscribe();
        loop {
            let complete = {
                let seen = lock(&self.seen);
                let listed = seen.get(account);
                regions
                    .iter()
                    .all(|region| listed.is_some_and(|listed| listed.contains_key(region)))
            };
            if complete || changes.changed().await.is_err() {
                return;
            }
        }
    }
}
