//! Finds the projects and regions of a section.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use gpuwatch_collector_core::{
    Account, CollectError, Context, Covers, Dataset, Discovery, DiscoveryFailure, Progress, Reason, Scope, Target,
};
use gpuwatch_inventory::{Provider, Text};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::{
    GcpOptions,
    api::{Api, Resource, Service, project},
    calls::REGIONS,
    listing::{PlainPage, unreachable},
    projects,
};

/// Projects that are looked at at the same time.
const AT_ONCE: usize = 16;

#[derive(Deserialize)]
struct Region {
    name: Option<String>,
}

/// Looks for projects and their regions. What fails for one project is that
/// project's failure.
pub(crate) async fn discover(cx: &Context, options: &GcpOptions, api: &Api) -> Discovery {
    let mut discovery = Discovery::default();
    let section = Account {
        id: options.name.as_str().into(),
        name: options.name.as_str().into(),
    };
    let everything = |error| DiscoveryFailure {
        account: section.clone(),
        covers: Covers::Everything,
        error,
    };
    if let Err(error) = api.check(cx).await {
        discovery.failures.push(everything(error));
        return discovery;
    }
    let look = Look {
        cx,
        options,
        api,
        turns: Semaphore::new(AT_ONCE),
    };
    let configured = configured(options);
    // At the same time as the configured projects, which must not wait for it.
    let (mut looked, found) = tokio::join!(look.at_all(&configured), async {
        let mut found = projects::find(cx, api, options).await;
        let is_excluded = |id: &Text| options.exclude_projects.iter().any(|excluded| **excluded == **id);
        found
            .projects
            .retain(|id, _| !configured.contains_key(id) && !is_excluded(id));
        (look.at_all(&found.projects).await, found.errors)
    });
    let (discovered, errors) = found;
    looked.extend(discovered);
    // Projects found earlier stay: they are still there, for all that is known.
    discovery.failures.extend(errors.into_iter().map(everything));
    for (account, result) in looked {
        match result {
            Ok(targets) => discovery.targets.extend(targets),
            Err(error) => discovery.failures.push(DiscoveryFailure {
                account,
                covers: Covers::Account,
                error,
            }),
        }
    }
    discovery
}

/// The projects that the configuration names, without those it excludes.
fn configured(options: &GcpOptions) -> BTreeMap<Text, Account> {
    let wanted = options
        .projects
        .iter()
        .filter(|id| !options.exclude_projects.contains(id));
    wanted
        .map(|id| {
            let account = Account {
                id: id.as_str().into(),
                name: options.name.as_str().into(),
            };
            (account.id.clone(), account)
        })
        .collect()
}

/// What a look at a project needs.
struct Look<'a> {
    cx: &'a Context,
    options: &'a GcpOptions,
    api: &'a Api,
    turns: Semaphore,
}

impl Look<'_> {
    /// Looks at projects; what is found is announced at once.
    async fn at_all(&self, projects: &BTreeMap<Text, Account>) -> Vec<(Account, Result<Vec<Target>, CollectError>)> {
        let looks = projects.values().map(|account| async move {
            // Never closed, so the permit is always there in the end.
            let _turn = self.turns.acquire().await;
            (account.clone(), self.at(account).await)
        });
        join_all(looks).await
    }

    async fn at(&self, account: &Account) -> Result<Vec<Target>, CollectError> {
        let cx = self.cx.for_account(account.clone());
        let regions = regions(&cx, self.api).await?;
        let targets: Vec<Target> = regions
            .into_iter()
            .filter(|region| !self.options.exclude_regions.contains(region))
            .map(|region| Target {
                scope: Scope {
                    provider: Provider::Gcp,
                    account: account.clone(),
                    region: region.into(),
                },
                datasets: vec![Dataset::Inventory, Dataset::Commitments],
            })
            .collect();
        cx.announce(targets.clone());
        Ok(targets)
    }
}

/// The regions of a project, up or not: what is in a region that is down is
/// not gone.
async fn regions(cx: &Context, api: &Api) -> Result<BTreeSet<String>, CollectError> {
    let project = project(&cx.scope().account.id)?;
    let path = format!("/compute/v1/projects/{project}/regions");
    let resource = Resource {
        service: Service::Compute,
        call: REGIONS,
        path: &path,
        query: &[("maxResults", "500")],
        about: None,
    };
    let mut incomplete = None;
    let regions = api
        .pages(cx, resource, BTreeSet::new, |regions, page: PlainPage<Region>| {
            incomplete = incomplete.take().or(page.incomplete().map(str::to_owned));
            cx.skip("malformed", page.items.bad);
            let (records, before) = (page.items.total(), regions.len());
            let names = page.items.good.into_iter().filter_map(|region| region.name);
            regions.extend(
                names
                    .map(|name| name.to_ascii_lowercase())
                    .filter(|name| !name.is_empty()),
            );
            Progress {
                records,
                new: regions.len().saturating_sub(before),
            }
        })
        .await?;
    if let Some(code) = incomplete {
        return Err(unreachable(REGIONS, &format!("a part ({code})")));
    }
    if regions.is_empty() {
        let message = format!("{}: there is no region in the answer", REGIONS.title());
        return Err(CollectError::new(Reason::Decode, message));
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluded_projects_are_left_out_wherever_they_come_from() {
        let mut options = GcpOptions::named("ml");
        options.projects = vec!["a".into(), "b".into(), "a".into()];
        options.exclude_projects = vec!["b".into()];
        let found = configured(&options);
        assert_eq!(found.keys().map(|id| &**id).collect::<Vec<_>>(), ["a"]);
        assert!(found.values().all(|account| &*account.name == "ml"));
    }
}
