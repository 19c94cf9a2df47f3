//! The machines of a subscription, listed once for all of its regions.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_collector_core::{Coalesced, CollectError, Context, Interner, Reason, Scope, TagRules, lock};
use gpuwatch_inventory::{Instance, Text};

use crate::{
    arm::Arm,
    compute::{self, Kind, Listed},
    graph::{self, Indexed},
    sizes,
    sizes::Sizes,
    vm::{Record, region_of},
};

/// Machines by region, and the regions that could not be listed whole.
struct Fleet {
    regions: HashMap<String, Vec<Record>>,
    failed: HashMap<String, CollectError>,
}

/// Lists instances.
pub(crate) struct Lister {
    rules: TagRules,
    sizes: Sizes,
    fleets: Coalesced<Fleet>,
    /// Regions with machines, by subscription: they are polled even where the
    /// list of locations lacks them.
    inhabited: Mutex<HashMap<Text, BTreeSet<String>>>,
    /// Monotonic time at which it was last asked whether an empty index is the
    /// truth, by subscription.
    believed: Mutex<HashMap<(Text, Kind), Duration>>,
}

/// How long an empty index is believed.
const BELIEVED: Duration = Duration::from_hours(24);

impl Lister {
    pub(crate) fn new(rules: TagRules) -> Self {
        Self {
            rules,
            sizes: Sizes::default(),
            fleets: Coalesced::default(),
            inhabited: Mutex::default(),
            believed: Mutex::default(),
        }
    }

    /// Regions of a subscription where machines have been seen.
    pub(crate) fn inhabited(&self, subscription: &str) -> BTreeSet<String> {
        lock(&self.inhabited).get(subscription).cloned().unwrap_or_default()
    }

    /// Forgets subscriptions that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.fleets.retain(&keep);
        lock(&self.inhabited).retain(|subscription, _| keep(subscription));
        lock(&self.believed).retain(|(subscription, _), _| keep(subscription));
    }

    /// The regions where a subscription has machines, by a listing.
    ///
    /// # Errors
    /// Those of the listing.
    pub(crate) async fn regions(&self, cx: &Context, arm: &Arm, subscription: &Text) -> Result<(), CollectError> {
        self.fleet(cx, arm, subscription).await.map(|_| ())
    }

    /// Every accelerator instance of a region.
    ///
    /// # Errors
    /// When the listing is not complete for this region.
    pub(crate) async fn list(&self, cx: &Context, arm: &Arm, scope: &Scope) -> Result<Vec<Instance>, CollectError> {
        let fleet = self.fleet(cx, arm, &scope.account.id).await?;
        if let Some(error) = fleet.failed.get(&*scope.region) {
            return Err(error.clone());
        }
        let records = fleet.regions.get(&*scope.region).map(Vec::as_slice).unwrap_or_default();
        let stated = self
            .sizes
            .stated(cx, arm, scope, records.iter().map(Record::size))
            .await;
        let mut interner = Interner::default();
        let instances = records.iter().map(|record| {
            let size = record.size();
            let mut accelerators = sizes::accelerators(size, stated.get(&size.to_lowercase()).copied());
            accelerators.model = interner.text(&accelerators.model);
            record.read(&scope.account, &self.rules, accelerators, &mut interner)
        });
        Ok(instances.collect())
    }

    async fn fleet(&self, cx: &Context, arm: &Arm, subscription: &Text) -> Result<Arc<Fleet>, CollectError> {
        self.fleets
            .get(subscription, cx, || async {
                let listed = self.machines(cx, arm, subscription).await?;
                let fleet = sort(cx, listed);
                let regions = fleet.regions.keys().cloned().collect();
                lock(&self.inhabited).insert(subscription.clone(), regions);
                Ok(fleet)
            })
            .await
    }

    /// Resource Graph first; the Compute API where that cannot answer. A
    /// throttled or refused identity gains nothing from the second way.
    async fn machines(&self, cx: &Context, arm: &Arm, subscription: &Text) -> Result<Listed, CollectError> {
        let error = match graph::machines(cx, arm, subscription).await {
            Ok(indexed) => return self.checked(cx, arm, subscription, indexed).await,
            Err(error) if matches!(error.reason, Reason::Credentials | Reason::Throttled) => return Err(error),
            Err(error) => error,
        };
        tracing::info!(
            provider = "azure", account = %subscription, reason = %error.reason, error = %error,
            "resource graph did not answer; asking compute"
        );
        let listed = compute::machines(cx, arm, subscription).await?;
        // The machines are known; that the fast way fails is worth a look.
        cx.degraded(&error);
        Ok(listed)
    }

    /// What the index shows, where it is empty or doubtful checked against the
    /// Compute API.
    async fn checked(
        &self,
        cx: &Context,
        arm: &Arm,
        subscription: &Text,
        indexed: Indexed,
    ) -> Result<Listed, CollectError> {
        for (kind, is_shown) in [
            (Kind::Machines, indexed.shows_machines),
            (Kind::Sets, indexed.shows_sets),
        ] {
            let key = (subscription.clone(), kind);
            let asked = lock(&self.believed).get(&key).copied();
            let is_believed = asked.is_some_and(|at| cx.monotonic().saturating_sub(at) < BELIEVED);
            if !is_shown && !is_believed {
                compute::probe(cx, arm, subscription, kind).await?;
                lock(&self.believed).insert(key, cx.monotonic());
            }
        }
        let mut listed = Listed {
            machines: indexed.machines,
            failed: HashMap::new(),
        };
        for set in &indexed.doubtful {
            listed.add_members(cx, arm, set).await;
        }
        listed.machines.retain(Record::has_accelerators);
        Ok(listed)
    }
}

fn sort(cx: &Context, listed: Listed) -> Fleet {
    let mut seen = HashSet::new();
    let mut regions: HashMap<String, Vec<Record>> = HashMap::new();
    let (mut duplicate, mut malformed) = (0, 0);
    for record in listed.machines {
        if record.id.is_empty() || record.location.is_empty() {
            malformed += 1;
        } else if seen.insert(record.id.to_lowercase()) {
            regions.entry(region_of(&record.location)).or_default().push(record);
        } else {
            duplicate += 1;
        }
    }
    cx.skip("malformed", malformed);
    cx.skip("duplicate", duplicate);
    Fleet {
        regions,
        failed: listed.failed,
    }
}
