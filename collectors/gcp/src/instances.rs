//! Machines with accelerators, region by region, from one listing of the whole
//! project.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::try_join_all;
use gpuwatch_collector_core::{Coalesced, CollectError, Context, Progress, Reason, Scope, TagRules};
use gpuwatch_inventory::{Instance, Text};
use serde::Deserialize;

use crate::{
    api::{Api, Resource, Service, project},
    calls::{INSTANCES, INSTANCES_OF_ZONE, ZONES},
    listing::{ByRegion, PlainPage, aggregated, unreachable, zonal},
    machine_types::MachineTypes,
    place::{last, region_of_zone},
    record::{Draft, Reader, VmRecord},
};

/// Part of the time left that the listing of a whole project may take; the
/// rest is for its zones, should that fail: 1 / 2.
const SHARE_OF_TIME: u32 = 2;

/// Lists machines.
#[derive(Debug)]
pub(crate) struct InstanceLister {
    rules: TagRules,
    listings: Coalesced<ByRegion<Draft>>,
    zones: Coalesced<BTreeSet<Text>>,
    types: Arc<MachineTypes>,
}

#[derive(Deserialize)]
struct Zone {
    name: Option<String>,
    region: Option<String>,
}

impl Zone {
    /// Its name. A zone whose name does not begin like its region is none that
    /// can be told apart.
    fn name(self) -> Option<Text> {
        let name = self.name.filter(|name| region_of_zone(name).is_some())?;
        let region = self.region.as_deref().map(last);
        (region.is_none() || region == region_of_zone(&name)).then(|| Text::from(name))
    }
}

impl InstanceLister {
    pub(crate) fn new(rules: TagRules, types: Arc<MachineTypes>) -> Self {
        Self {
            rules,
            listings: Coalesced::default(),
            zones: Coalesced::default(),
            types,
        }
    }

    /// A complete listing of a scope. Where the project cannot be listed as a
    /// whole because the service fails or does not answer, the zones of the
    /// region are listed one by one: one sick zone must not hide the others.
    ///
    /// # Errors
    /// When a zone of the region could not be listed completely.
    pub(crate) async fn list(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<Vec<Instance>, CollectError> {
        let listed = self
            .listings
            .get(&scope.account.id, cx, || self.whole_project(cx, api, scope))
            .await;
        let drafts = match listed {
            Ok(listing) => listing.of(cx, &scope.region)?.to_vec(),
            Err(error) if is_of_the_service(&error) => {
                tracing::info!(
                    account = &*scope.account.id, region = &*scope.region, error = %error,
                    "the project cannot be listed as a whole; its zones are listed one by one"
                );
                self.by_zone(cx, api, scope, error).await?
            }
            Err(error) => return Err(error),
        };
        Ok(self.with_accelerators(cx, api, drafts).await)
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.listings.retain(&keep);
        self.zones.retain(&keep);
    }

    async fn whole_project(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<ByRegion<Draft>, CollectError> {
        let mut reader = Reader::new(scope, &self.rules);
        let listing = aggregated(cx, api, INSTANCES, "instances", None, |place, record: VmRecord| {
            reader.read(place, &record)
        });
        let limit = cx.remaining() / SHARE_OF_TIME;
        cx.timeout(limit, listing).await.unwrap_or_else(|| {
            let message = format!("{} takes longer than {:.1} s", INSTANCES.title(), limit.as_secs_f64());
            Err(CollectError::new(Reason::Timeout, message))
        })
    }

    /// The region's zones, one by one; `why` is what the whole project failed
    /// with.
    async fn by_zone(
        &self,
        cx: &Context,
        api: &Api,
        scope: &Scope,
        why: CollectError,
    ) -> Result<Vec<Draft>, CollectError> {
        let zones = self
            .zones
            .get(&scope.account.id, cx, || zones(cx, api))
            .await
            .map_err(|_| why)?;
        let own = zones.iter().filter(|zone| region_of_zone(zone) == Some(&*scope.region));
        let listings = try_join_all(own.map(|zone| async move {
            let mut reader = Reader::new(scope, &self.rules);
            zonal(
                cx,
                api,
                INSTANCES_OF_ZONE,
                zone,
                "instances",
                |place, record: VmRecord| reader.read(place, &record),
            )
            .await
        }))
        .await?;
        let mut drafts = Vec::new();
        for listing in listings {
            drafts.extend_from_slice(listing.of(cx, &scope.region)?);
        }
        Ok(drafts)
    }

    /// Looks up the accelerators of the machines that do not list them, and
    /// drops those that turn out to have none.
    async fn with_accelerators(&self, cx: &Context, api: &Api, drafts: Vec<Draft>) -> Vec<Instance> {
        let wanted: BTreeSet<Text> = drafts
            .iter()
            .filter(|draft| draft.by_type)
            .map(|draft| draft.instance.instance_type.clone())
            .collect();
        let accelerated = self.types.accelerated(cx, api, &wanted).await;
        let decide = |mut draft: Draft| {
            if draft.by_type {
                draft.instance.accelerators = accelerated.of(&draft.instance.instance_type)?.clone();
            }
            Some(draft.instance)
        };
        drafts.into_iter().filter_map(decide).collect()
    }
}

/// Whether the service failed, so that a smaller question may be answered.
fn is_of_the_service(error: &CollectError) -> bool {
    match error.reason {
        Reason::Timeout => true,
        Reason::Other => error.retryable,
        _ => false,
    }
}

/// The zones of a project.
async fn zones(cx: &Context, api: &Api) -> Result<BTreeSet<Text>, CollectError> {
    let project = project(&cx.scope().account.id)?;
    let path = format!("/compute/v1/projects/{project}/zones");
    let resource = Resource {
        service: Service::Compute,
        call: ZONES,
        path: &path,
        query: &[("maxResults", "500")],
        about: None,
    };
    let mut incomplete = None;
    let zones = api
        .pages(cx, resource, BTreeSet::new, |zones, page: PlainPage<Zone>| {
            incomplete = incomplete.take().or(page.incomplete().map(str::to_owned));
            let (records, before) = (page.items.total(), zones.len());
            zones.extend(page.items.good.into_iter().filter_map(Zone::name));
            Progress {
                records,
                new: zones.len().saturating_sub(before),
            }
        })
        .await?;
    match incomplete {
        Some(code) => Err(unreachable(ZONES, &format!("a part ({code})"))),
        None => Ok(zones),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_questions_are_asked_only_when_the_service_fails() {
        let error = |reason| CollectError::new(reason, "x");
        assert!(is_of_the_service(&error(Reason::Timeout)));
        assert!(is_of_the_service(&error(Reason::Other).retryable(true)));
        for reason in [
            Reason::Other,
            Reason::Permission,
            Reason::Throttled,
            Reason::NotEnabled,
            Reason::Decode,
        ] {
            assert!(!is_of_the_service(&error(reason)), "{reason}");
        }
    }

    #[test]
    fn zones_are_told_by_their_names() {
        let name = |json: &str| serde_json::from_str::<Zone>(json).unwrap().name();
        assert_eq!(name(r#"{"name": "us-central1-a"}"#).as_deref(), Some("us-central1-a"));
        let linked = r#"{"name": "us-central1-a", "region": "https://x/projects/p/regions/us-central1"}"#;
        assert_eq!(name(linked).as_deref(), Some("us-central1-a"));
        for json in [
            "{}",
            r#"{"name": "nowhere"}"#,
            r#"{"name": "us-central1-a", "region": "regions/us-east1"}"#,
        ] {
            assert_eq!(name(json), None, "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_page_of_zones_is_read_or_refused(page in crate::samples::any_json()) {
            if let Ok(page) = serde_json::from_value::<PlainPage<Zone>>(page) {
                let _ = page.incomplete();
                for name in page.items.good.into_iter().filter_map(Zone::name) {
                    proptest::prop_assert!(region_of_zone(&name).is_some());
                }
            }
        }
    }
}
