//! What accelerators machine types come with: the machine type API first, the
//! catalogue second, the type's name never.
//!
//! Asked for only when there is a machine that does not list its accelerators
//! itself, once a day and project. That is bounded in time and never costs a
//! listing: without it the catalogue answers.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex as PlainMutex},
};

use gpuwatch_collector_core::{CollectError, Context, Reason, lock};
use gpuwatch_inventory::{Accelerators, Text};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::{
    accelerators::{self, Attached, FAMILY_FILTER, may_have_accelerators},
    api::Api,
    calls::MACHINE_TYPES,
    listing::{Taken, aggregated},
};

/// How long a listing of types is kept.
const KEEP: SignedDuration = SignedDuration::from_hours(24);

/// How soon a type that is not in the listing makes it be read anew.
const KEEP_WITHOUT: SignedDuration = SignedDuration::from_hours(1);

/// Part of the time left that fetching types may take: 1 / 3.
const SHARE_OF_TIME: u32 = 3;

#[derive(Deserialize)]
struct MachineType {
    name: Option<String>,
    #[serde(default)]
    accelerators: Option<Vec<Attached>>,
}

/// The types of one project: only those sold to it, so they differ a little.
#[derive(Debug, Default)]
struct Known {
    listed: Option<Timestamp>,
    /// `None` for a type that comes without accelerators.
    types: HashMap<Text, Option<Accelerators>>,
}

#[derive(Debug, Default)]
struct ProjectTypes {
    /// Held while types are fetched, so that they are fetched once.
    fetching: Mutex<()>,
    known: PlainMutex<Known>,
}

/// The types of all projects.
#[derive(Debug, Default)]
pub(crate) struct MachineTypes {
    projects: PlainMutex<HashMap<Text, Arc<ProjectTypes>>>,
}

/// The accelerators of the types that were asked about.
#[derive(Debug, Default)]
pub(crate) struct Accelerated(HashMap<Text, Accelerators>);

impl Accelerated {
    /// The accelerators of a type, `None` when it has none.
    pub(crate) fn of(&self, machine_type: &str) -> Option<&Accelerators> {
        self.0.get(machine_type)
    }
}

impl MachineTypes {
    /// The accelerators of these types of families that may have some. When
    /// they cannot be fetched the run is degraded and the catalogue answers.
    pub(crate) async fn accelerated(&self, cx: &Context, api: &Api, wanted: &BTreeSet<Text>) -> Accelerated {
        if wanted.is_empty() {
            return Accelerated::default();
        }
        let project = cx.scope().account.id.clone();
        let types = Arc::clone(lock(&self.projects).entry(project).or_default());
        let limit = cx.remaining() / SHARE_OF_TIME;
        let failure = match cx.timeout(limit, complete(cx, api, &types, wanted)).await {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(error),
            None => Some(CollectError::new(
                Reason::Timeout,
                "the list of machine types takes too long; the catalogue's are used",
            )),
        };
        if let Some(error) = failure {
            cx.degraded(&error);
        }
        let known = lock(&types.known);
        let decided = wanted
            .iter()
            .filter_map(|name| Some((name.clone(), decide(name, known.types.get(name))?)));
        Accelerated(decided.collect())
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        lock(&self.projects).retain(|project, _| keep(project));
    }
}

/// Lists the types when what is known is too old or lacks one of those wanted.
async fn complete(cx: &Context, api: &Api, types: &ProjectTypes, wanted: &BTreeSet<Text>) -> Result<(), CollectError> {
    let _one_at_a_time = types.fetching.lock().await;
    let keep = {
        let known = lock(&types.known);
        let has_all = wanted.iter().all(|name| known.types.contains_key(name));
        let keep = if has_all { KEEP } else { KEEP_WITHOUT };
        known.listed.is_some_and(|then| cx.now().duration_since(then) < keep)
    };
    if keep {
        return Ok(());
    }
    let mut found = HashMap::new();
    aggregated(
        cx,
        api,
        MACHINE_TYPES,
        "machineTypes",
        Some(FAMILY_FILTER),
        |_, record: MachineType| {
            let Some(name) = record.name.filter(|name| !name.is_empty()) else {
                return Taken::<()>::Bad("no_id");
            };
            if may_have_accelerators(&name) {
                let entries = record.accelerators.unwrap_or_default();
                let accelerators = accelerators::listed(&name, &entries);
                found.entry(Text::from(&*name)).or_insert(accelerators);
            }
            Taken::Other(name.into())
        },
    )
    .await?;
    let mut known = lock(&types.known);
    known.types = found;
    known.listed = Some(cx.now());
    Ok(())
}

/// What counts in the end. A type of a family with accelerators that nobody
/// knows has an unknown number; one that the API knows to have none has none,
/// unless it is of a family that always has some.
fn decide(name: &str, answer: Option<&Option<Accelerators>>) -> Option<Accelerators> {
    match answer {
        Some(Some(accelerators)) => Some(accelerators.clone()),
        Some(None) => {
            accelerators::of_catalog(name).or_else(|| accelerators::is_known_family(name).then(Accelerators::default))
        }
        None => Some(accelerators::of_catalog(name).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_inventory::GpuCount;

    use super::*;

    #[test]
    fn the_api_comes_before_the_catalogue_and_the_name_says_nothing() {
        let count = |found: Option<Accelerators>| found.map(|found| found.count.map(GpuCount::get));
        let api = Accelerators {
            count: Some(GpuCount::from(2)),
            ..Accelerators::default()
        };
        assert_eq!(count(decide("a3-highgpu-8g", Some(&Some(api)))), Some(Some(2.0)));
        assert_eq!(count(decide("a3-highgpu-8g", Some(&None))), Some(Some(8.0)));
        assert_eq!(count(decide("a3-highgpu-8g", None)), Some(Some(8.0)));
        assert_eq!(
            count(decide("a3-newgpu-16g", Some(&None))),
            Some(None),
            "listed, unknown"
        );
        assert_eq!(count(decide("a9-newgpu-16g", None)), Some(None), "listed, unknown");
        assert_eq!(count(decide("a9-standard-4", Some(&None))), None, "known to have none");
    }

    proptest::proptest! {
        #[test]
        fn any_machine_type_is_read_or_refused(record in crate::samples::any_json()) {
            if let Ok(record) = serde_json::from_value::<MachineType>(record) {
                let name = record.name.unwrap_or_default();
                let found = accelerators::listed(&name, &record.accelerators.unwrap_or_default());
                let _ = decide(&name, Some(&found));
            }
        }
    }
}
