//! Lists the instances of a region.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use gpuwatch_collector_core::{CollectError, Context, Interner, Progress, Reason, Scope, TagRules, lock, read_all};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Instance, Text};
use serde::Deserialize;

use crate::{
    account::Account,
    client::{Action, parameters},
    errors,
    hosts::Product,
    record::Record,
    renewal::Renewals,
    shapes::Shapes,
};

const DESCRIBE_INSTANCES: Action = Action::new(Product::Ecs, "DescribeInstances", "ecs:DescribeInstances");

/// Largest page there is; the service's default is 10.
const PAGE_SIZE: &str = "100";

/// How long a region is believed to be empty without asking again whether it
/// may be seen: permissions are withdrawn, too.
const BELIEVED: Duration = Duration::from_hours(1);

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "NextToken", default)]
    next_token: Option<String>,
    #[serde(rename = "Instances", default)]
    instances: Option<InstanceList>,
}

#[derive(Deserialize, Default)]
struct InstanceList {
    #[serde(rename = "Instance", default)]
    rows: Rows<Record>,
}

/// Lists instances, and knows where an empty list is one.
pub(crate) struct Lister {
    rules: TagRules,
    shapes: Shapes,
    renewals: Renewals,
    /// Account and region where an empty list was found to be the truth, with
    /// the monotonic time of that.
    empty: Mutex<HashMap<(Text, Text), Duration>>,
}

#[derive(Default)]
struct Listing {
    records: Vec<Record>,
    seen: HashSet<String>,
    /// Rows of any kind, to tell an empty region from one without GPUs.
    rows: usize,
    malformed: u64,
    duplicate: u64,
}

impl Listing {
    fn take(&mut self, rows: Rows<Record>) -> Progress {
        let records = rows.total();
        self.rows += records;
        self.malformed += rows.bad;
        let mut new = 0;
        for record in rows.good {
            if record.instance_id.is_empty() {
                self.malformed += 1;
            } else if !self.seen.insert(record.instance_id.clone()) {
                self.duplicate += 1;
            } else {
                new += 1;
                // The others are CPU machines: dropped page by page.
                if record.has_accelerators() {
                    self.records.push(record);
                }
            }
        }
        Progress { records, new }
    }
}

impl Lister {
    pub(crate) fn new(rules: TagRules) -> Self {
        Self {
            rules,
            shapes: Shapes::default(),
            renewals: Renewals::default(),
            empty: Mutex::default(),
        }
    }

    /// Facts about types that the catalogue lacks.
    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Every accelerator instance of a region. There is no filter for them, so
    /// all instances are listed.
    ///
    /// # Errors
    /// When the listing is not complete, or is empty because the identity may
    /// not see anything.
    pub(crate) async fn list(
        &self,
        cx: &Context,
        account: &Account,
        scope: &Scope,
    ) -> Result<Vec<Instance>, CollectError> {
        let region: &str = &scope.region;
        let fetch = |token: Option<String>| async move {
            let mut asked = parameters(&[("RegionId", region), ("MaxResults", PAGE_SIZE)]);
            asked.extend(token.map(|token| ("NextToken".to_owned(), token)));
            let page: Page = account.call(cx, DESCRIBE_INSTANCES, region, &asked).await?;
            Ok((page.instances.unwrap_or_default().rows, page.next_token))
        };
        let listing = read_all(DESCRIBE_INSTANCES.call, Listing::default, fetch, Listing::take).await?;
        cx.skip("malformed", listing.malformed);
        cx.skip("duplicate", listing.duplicate);
        let place = (scope.account.id.clone(), scope.region.clone());
        if listing.rows > 0 {
            lock(&self.empty).remove(&place);
        } else if !self.is_known_to_be_empty(cx, &place) {
            self.probe(cx, account, region).await?;
            lock(&self.empty).insert(place, cx.monotonic());
        }
        let types: HashSet<Text> = listing
            .records
            .iter()
            .map(|record| Text::from(record.instance_type.as_str()))
            .collect();
        let facts = self.shapes.of(cx, account, region, &types).await;
        let subscriptions: Vec<Text> = listing
            .records
            .iter()
            .filter(|record| record.is_prepaid())
            .map(|record| Text::from(record.instance_id.as_str()))
            .collect();
        let renewals = self.renewals.of(cx, account, scope, &subscriptions).await;
        let mut interner = Interner::default();
        let instances = listing.records.iter().map(|record| {
            let facts = facts.get(record.instance_type.as_str());
            Instance {
                auto_renew: renewals.get(record.instance_id.as_str()).copied(),
                ..record.read(scope, &self.rules, facts, &mut interner)
            }
        });
        Ok(instances.collect())
    }

    fn is_known_to_be_empty(&self, cx: &Context, place: &(Text, Text)) -> bool {
        lock(&self.empty)
            .get(place)
            .is_some_and(|at| cx.monotonic().saturating_sub(*at) < BELIEVED)
    }

    /// Tells an empty region from one that the identity may not see: without
    /// the permission the service answers with an empty list and no error. A
    /// dry run tells.
    async fn probe(&self, cx: &Context, account: &Account, region: &str) -> Result<(), CollectError> {
        let asked = parameters(&[("RegionId", region), ("MaxResults", "10"), ("DryRun", "true")]);
        match account.exchange(cx, DESCRIBE_INSTANCES, region, &asked).await {
            // An endpoint without dry runs lists again; that is permitted too.
            Ok(_) => Ok(()),
            Err(error)
                if error.reason == Reason::Permission || error.code.as_deref().is_some_and(errors::is_denied) =>
            {
                let message = format!(
                    "{}: the list is empty because this identity may not see instances: {}",
                    DESCRIBE_INSTANCES.call.title(),
                    error.message
                );
                let error = CollectError::new(Reason::Permission, message).code(error.code.unwrap_or_default());
                cx.call_failed(DESCRIBE_INSTANCES.call, &error);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    proptest! {
        #[test]
        fn no_page_can_make_it_panic(text in testing::document(&[
            "NextToken", "Instances", "Instance", "InstanceId", "InstanceType",
        ])) {
            if let Ok(page) = serde_json::from_str::<Page>(&text) {
                let mut listing = Listing::default();
                let rows = page.instances.unwrap_or_default().rows;
                let total = rows.total();
                let progress = listing.take(rows);
                prop_assert_eq!(progress.records, total);
                prop_assert!(progress.new <= total && listing.records.len() <= progress.new);
            }
        }
    }
}
