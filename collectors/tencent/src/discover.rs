//! Finds the accounts and regions of a section.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use gpuwatch_collector_core::{
    Account, Call, CollectError, Context, Covers, Dataset, Discovery, DiscoveryFailure, Reason, Scope, Target,
};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Provider, Text};
use serde::Deserialize;
use serde_json::json;

use crate::{
    TencentOptions,
    access::{AccountAccess, Accounts, Base},
    api::Action,
    errors, loose,
    options::account_of_role,
    site::is_finance,
};

const REGION_DESCRIBE_REGIONS: Action = Action::new(
    Call::new("region", "DescribeRegions", "region:DescribeRegions"),
    "2022-06-27",
);
/// The older call of CVM, for identities that may not make the newer one.
const CVM_DESCRIBE_REGIONS: Action =
    Action::new(Call::new("cvm", "DescribeRegions", "cvm:DescribeRegions"), "2017-03-12");

/// The regions that CVM has, for identities that may not list them.
const KNOWN_REGIONS: [&str; 17] = [
    "ap-guangzhou",
    "ap-shanghai",
    "ap-nanjing",
    "ap-beijing",
    "ap-chengdu",
    "ap-chongqing",
    "ap-hongkong",
    "ap-singapore",
    "ap-jakarta",
    "ap-bangkok",
    "ap-mumbai",
    "ap-seoul",
    "ap-tokyo",
    "na-siliconvalley",
    "na-ashburn",
    "sa-saopaulo",
    "eu-frankfurt",
];

#[derive(Deserialize)]
struct Regions {
    #[serde(rename = "RegionSet", default)]
    rows: Rows<Region>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Region {
    #[serde(default, deserialize_with = "loose::text")]
    region: Option<String>,
    #[serde(default, deserialize_with = "loose::text")]
    region_state: Option<String>,
}

/// An account to poll.
struct Wanted {
    account: Account,
    role: Option<String>,
}

/// Looks for accounts and their regions, all accounts at once. What fails for
/// one account is that account's failure.
pub(crate) async fn discover(
    cx: &Context,
    options: &TencentOptions,
    base: &Arc<Base>,
    accounts: &Accounts,
) -> Discovery {
    let mut discovery = Discovery::default();
    let section = Account {
        id: options.name.as_str().into(),
        name: options.name.as_str().into(),
    };
    let mut failed = |account: Account, covers: Covers, error: CollectError| {
        discovery.failures.push(DiscoveryFailure { account, covers, error });
    };
    let own = match base.account(cx).await {
        Ok(own) => own,
        Err(error) => {
            failed(section, Covers::Everything, error);
            return discovery;
        }
    };
    let (wanted, bad_roles) = wanted(options, &own);
    for error in bad_roles {
        failed(section.clone(), Covers::Account, error);
    }
    accounts.retain(&wanted.keys().collect());
    let looks = wanted.values().map(|wanted| async move {
        let access = accounts.get_or_add(&wanted.account.id, base, wanted.role.as_deref());
        let cx = cx.for_account(wanted.account.clone());
        (&wanted.account, targets(&cx, options, &access, &wanted.account).await)
    });
    for (account, found) in join_all(looks).await {
        match found {
            Ok(targets) => discovery.targets.extend(targets),
            Err(error) => discovery.failures.push(DiscoveryFailure {
                account: account.clone(),
                covers: Covers::Account,
                error,
            }),
        }
    }
    discovery
}

/// The accounts that the configuration names, by id, and what is wrong with
/// those it does not name properly.
fn wanted(options: &TencentOptions, own: &Text) -> (BTreeMap<Text, Wanted>, Vec<CollectError>) {
    let account = |id: &str, role: Option<&str>| Wanted {
        account: Account {
            id: id.into(),
            name: options.name.as_str().into(),
        },
        role: role.map(str::to_owned),
    };
    let mut wanted = BTreeMap::new();
    let mut errors = Vec::new();
    if options.polls_own_account() {
        wanted.insert(own.clone(), account(own, None));
    }
    for arn in options.role_arns() {
        match account_of_role(arn) {
            Some(id) => {
                wanted.entry(id.into()).or_insert_with(|| account(id, Some(arn)));
            }
            None => errors.push(CollectError::new(
                Reason::Other,
                format!("assume_roles: {arn} is not a role: write qcs::cam::uin/100000000001:roleName/name"),
            )),
        }
    }
    (wanted, errors)
}

/// The targets of one account, announced as soon as they are known.
async fn targets(
    cx: &Context,
    options: &TencentOptions,
    access: &AccountAccess,
    account: &Account,
) -> Result<Vec<Target>, CollectError> {
    let named = |regions: &[String]| -> BTreeSet<String> {
        let names = regions.iter().map(|region| region.trim().to_ascii_lowercase());
        names.filter(|region| !region.is_empty()).collect()
    };
    // Also with configured regions: credentials that do not work are this
    // account's failure here, and not one per region.
    access.check(cx).await?;
    let mut regions = match &options.regions {
        Some(regions) => named(regions),
        None => regions(cx, access).await?,
    };
    let excluded = named(&options.exclude_regions);
    regions.retain(|region| !excluded.contains(region));
    let target = |region: &str, datasets: Vec<Dataset>| Target {
        scope: Scope {
            provider: Provider::Tencent,
            account: account.clone(),
            region: region.into(),
        },
        datasets,
    };
    let mut targets: Vec<Target> = regions
        .iter()
        .map(|region| target(region, vec![Dataset::Inventory, Dataset::Commitments]))
        .collect();
    if options.site.has_savings_plans() {
        targets.push(target(Scope::GLOBAL, vec![Dataset::Commitments]));
    }
    cx.announce(targets.clone());
    Ok(targets)
}

/// The available regions: by the service that lists them, by the older call of
/// CVM, or those that are known, whichever the identity may use first.
async fn regions(cx: &Context, access: &AccountAccess) -> Result<BTreeSet<String>, CollectError> {
    let refused = match describe_regions(cx, access, REGION_DESCRIBE_REGIONS).await {
        Err(error) if may_be_refused(&error) => error,
        result => return result,
    };
    match describe_regions(cx, access, CVM_DESCRIBE_REGIONS).await {
        Err(error) if may_be_refused(&error) => {
            cx.degraded(&refused);
            tracing::warn!(
                provider = "tencent", account = %cx.scope().account.id,
                "regions cannot be listed; those known to this version are polled"
            );
            Ok(KNOWN_REGIONS.map(str::to_owned).into())
        }
        result => result,
    }
}

fn may_be_refused(error: &CollectError) -> bool {
    error.reason == Reason::Permission || errors::is_absent(error)
}

async fn describe_regions(
    cx: &Context,
    access: &AccountAccess,
    action: Action,
) -> Result<BTreeSet<String>, CollectError> {
    let body = if action == REGION_DESCRIBE_REGIONS {
        json!({"Product": "cvm"})
    } else {
        json!({})
    };
    let answer: Regions = access.call(cx, action, access.site().home_region(), &body).await?;
    cx.skip("malformed", answer.rows.bad);
    let available = answer
        .rows
        .good
        .into_iter()
        .filter(|row| row.region_state.as_deref() == Some("AVAILABLE"));
    let regions: BTreeSet<String> = available
        .filter_map(|row| row.region)
        .map(|region| region.to_ascii_lowercase())
        .filter(|region| !is_finance(region))
        .collect();
    if regions.is_empty() {
        return Err(errors::decode(action.call, "there is no available region in it"));
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_is_polled_once_and_a_bad_role_is_told() {
        let mut options = TencentOptions::named("cn");
        options.assume_roles = vec![
            "self".into(),
            "qcs::cam::uin/1:roleName/gpuwatch".into(),
            "qcs::cam::uin/2:roleName/gpuwatch".into(),
            "nonsense".into(),
        ];
        let (wanted, errors) = wanted(&options, &"1".into());
        let accounts: Vec<_> = wanted.values().map(|w| (&*w.account.id, w.role.is_some())).collect();
        assert_eq!(accounts, [("1", false), ("2", true)]);
        assert!(errors.len() == 1 && errors[0].to_string().contains("nonsense"));
    }
}
