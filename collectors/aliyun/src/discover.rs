//! Finds the accounts of a section and the regions of each.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gpuwatch_collector_core::{
    Account as Label, CollectError, Context, Covers, Dataset, Discovery, DiscoveryFailure, Reason, Scope, Target,
};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Provider, Text};
use serde::Deserialize;

use crate::{
    AliyunOptions,
    account::{Account, Accounts, Base},
    client::{Action, parameters},
    hosts::Product,
    options::account_of_role,
};

const DESCRIBE_REGIONS: Action = Action::new(Product::Ecs, "DescribeRegions", "ecs:DescribeRegions");

/// The word for the base credentials' own account among the roles.
const OWN: &str = "self";

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "Regions", default)]
    regions: RegionList,
}

#[derive(Deserialize, Default)]
struct RegionList {
    #[serde(rename = "Region", default)]
    region: Rows<Region>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Region {
    region_id: String,
    #[serde(default)]
    region_endpoint: Option<String>,
}

/// Discovers every account of a section; each is announced at once.
pub(crate) async fn discover(
    cx: &Context,
    options: &Arc<AliyunOptions>,
    base: &Arc<Base>,
    accounts: &Accounts,
) -> Discovery {
    let mut roles: Vec<Option<&str>> = options
        .assume_roles
        .iter()
        .map(|role| (role != OWN).then_some(role.as_str()))
        .collect();
    if roles.is_empty() {
        roles.push(None);
    }
    let searches = roles.into_iter().map(|role| async move {
        let found = account(cx, options, base, accounts, role).await;
        if let Ok((_, targets)) = &found {
            cx.announce(targets.clone());
        }
        (role, found)
    });
    let mut discovery = Discovery::default();
    let mut known = HashSet::new();
    for (role, found) in futures::future::join_all(searches).await {
        match found {
            Ok((id, targets)) => {
                // Two roles in one account are one account.
                if known.insert(id) {
                    discovery.targets.extend(targets);
                }
            }
            Err(error) => {
                let id: Text = role.and_then(account_of_role).unwrap_or(&options.name).into();
                known.insert(id.clone());
                discovery.failures.push(DiscoveryFailure {
                    account: Label {
                        id,
                        name: options.name.as_str().into(),
                    },
                    // Whose the own account is, is not known until it answers.
                    covers: if role.is_some() {
                        Covers::Account
                    } else {
                        Covers::Everything
                    },
                    error,
                });
            }
        }
    }
    let blind = discovery
        .failures
        .iter()
        .any(|failure| failure.covers == Covers::Everything);
    if !blind {
        accounts.retain(&known);
    }
    discovery
}

async fn account(
    cx: &Context,
    options: &AliyunOptions,
    base: &Arc<Base>,
    accounts: &Accounts,
    role: Option<&str>,
) -> Result<(Text, Vec<Target>), CollectError> {
    let account = accounts
        .with_role(role)
        .unwrap_or_else(|| Arc::new(Account::new(Arc::clone(base), role.map(str::to_owned))));
    let id = match role.and_then(account_of_role) {
        Some(id) => Text::from(id),
        None => account.identify(cx).await?,
    };
    let label = Label {
        id: id.clone(),
        name: options.name.as_str().into(),
    };
    let cx = cx.for_account(label.clone());
    let regions = regions(&cx, options, &account).await?;
    accounts.add(&id, account);
    let target = |region: Text, datasets: &[Dataset]| Target {
        scope: Scope {
            provider: Provider::Aliyun,
            account: label.clone(),
            region,
        },
        datasets: datasets.to_vec(),
    };
    let mut targets: Vec<Target> = regions
        .into_iter()
        .map(|region| target(region, &[Dataset::Inventory, Dataset::Commitments]))
        .collect();
    targets.push(target(Scope::GLOBAL.into(), &[Dataset::Commitments]));
    Ok((id, targets))
}

/// The regions to poll: those listed, or every one that the account sees.
/// Listed ones are asked for too, because the answer says which host serves
/// them; when it cannot be had, the usual host names do.
async fn regions(cx: &Context, options: &AliyunOptions, account: &Account) -> Result<Vec<Text>, CollectError> {
    let asked: Result<Answer, CollectError> = account
        .call(cx, DESCRIBE_REGIONS, "", &parameters(&[("AcceptLanguage", "en-US")]))
        .await;
    let (seen, failure) = match asked {
        Ok(answer) => {
            cx.skip("no_id", answer.regions.region.bad);
            (answer.regions.region.good, None)
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    let endpoints: HashMap<Text, String> = seen
        .iter()
        .filter_map(|region| Some((Text::from(region.region_id.as_str()), region.region_endpoint.clone()?)))
        .collect();
    if failure.is_none() {
        account.set_endpoints(endpoints);
    }
    let name = |text: &str| text.trim().to_ascii_lowercase();
    let excluded: HashSet<String> = options.exclude_regions.iter().map(|region| name(region)).collect();
    let wanted: Vec<String> = match (&options.regions, failure) {
        (Some(listed), None) => listed.iter().map(|region| name(region)).collect(),
        // Without any answer nothing shows that the credentials work.
        (Some(listed), Some(error)) if error.reason == Reason::Permission => {
            listed.iter().map(|region| name(region)).collect()
        }
        (_, Some(error)) => return Err(error),
        (None, None) => seen.into_iter().map(|region| region.region_id).collect(),
    };
    let mut regions: Vec<Text> = wanted
        .iter()
        .filter(|region| !region.is_empty() && !excluded.contains(*region))
        .map(|region| Text::from(region.as_str()))
        .collect();
    regions.sort();
    regions.dedup();
    if regions.is_empty() {
        return Err(CollectError::new(
            Reason::Permission,
            "ecs DescribeRegions lists no region: add ecs:DescribeRegions to the RAM policy, or list regions in the \
             configuration",
        ));
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(
            text in testing::record(&["RegionId", "RegionEndpoint", "LocalName", "Status"]),
            other in testing::document(&["Regions", "Region", "RegionId"]),
        ) {
            let answer: Answer = serde_json::from_str(&format!(r#"{{"Regions": {{"Region": [{text}]}}}}"#)).unwrap();
            prop_assert_eq!(answer.regions.region.total(), 1);
            let _ = serde_json::from_str::<Answer>(&other);
        }
    }
}
