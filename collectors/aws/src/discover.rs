//! Finds the accounts and regions of a section.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aws_sdk_organizations::types::{Account as Member, AccountState, AccountStatus};
use futures::future::join_all;
use gpuwatch_collector_core::{
    Account, Call, CollectError, Context, Covers, Dataset, Discovery, DiscoveryFailure, Progress, Reason, Scope,
    Target, read_all,
};
use gpuwatch_inventory::{Provider, Text};

use crate::{
    AwsOptions, Partition,
    calls::{AccountAccess, Accounts, Base, NO_REGION},
    options::RoleArn,
    session::Identity,
};

const DESCRIBE_REGIONS: Call = Call::new("ec2", "DescribeRegions", "ec2:DescribeRegions");
const LIST_ACCOUNTS: Call = Call::new("organizations", "ListAccounts", "organizations:ListAccounts");

/// Largest page `ListAccounts` gives.
const ACCOUNTS_PER_PAGE: i32 = 20;

/// An account to poll.
struct Wanted {
    account: Account,
    role: Option<String>,
}

/// Looks for accounts and their regions, all accounts at once. What fails for
/// one account is that account's failure.
pub(crate) async fn discover(cx: &Context, options: &AwsOptions, base: &Arc<Base>, accounts: &Accounts) -> Discovery {
    let mut discovery = Discovery::default();
    let section = Account {
        id: options.name.as_str().into(),
        name: options.name.as_str().into(),
    };
    let identity = match base.session(cx).await {
        Ok(session) => session.identity.clone(),
        Err(error) => {
            discovery.failures.push(DiscoveryFailure {
                account: section,
                covers: Covers::Everything,
                error,
            });
            return discovery;
        }
    };

    let look = Look {
        cx,
        options,
        base,
        accounts,
    };
    let (configured, bad_arns) = configured_accounts(options, &identity.account);
    let (mut looked, listed) = tokio::join!(look.at_all(configured.values()), async {
        if !options.organization {
            return Ok((BTreeMap::new(), Vec::new()));
        }
        // At the same time as the configured accounts, which must not wait for it.
        let mut members = members(cx, base).await?;
        members.retain(|member| member.id != identity.account && !configured.contains_key(&member.id));
        let wanted: BTreeMap<Text, Wanted> = members
            .into_iter()
            .map(|m| member_account(m, &identity, options))
            .collect();
        let looked = look.at_all(wanted.values()).await;
        Ok((wanted, looked))
    });
    for error in bad_arns {
        discovery.failures.push(DiscoveryFailure {
            account: section.clone(),
            covers: Covers::Account,
            error,
        });
    }
    match listed {
        Ok((wanted, found)) => {
            looked.extend(found);
            accounts.retain(&configured.keys().chain(wanted.keys()).collect());
        }
        // Members found earlier stay: they are still there, for all that is known.
        Err(error) => discovery.failures.push(DiscoveryFailure {
            account: section,
            covers: Covers::Everything,
            error,
        }),
    }
    for (account, found) in looked {
        match found {
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

/// The accounts that the configuration names, by id, and what is wrong with
/// those it does not name properly.
fn configured_accounts(options: &AwsOptions, own: &Text) -> (BTreeMap<Text, Wanted>, Vec<CollectError>) {
    let account = |id: &str| Account {
        id: id.into(),
        name: options.name.as_str().into(),
    };
    let mut wanted = BTreeMap::new();
    let mut errors = Vec::new();
    if options.polls_own_account() {
        wanted.insert(
            own.clone(),
            Wanted {
                account: account(own),
                role: None,
            },
        );
    }
    for arn in options.role_arns() {
        match RoleArn::parse(arn) {
            Some(parsed) => {
                let entry = Wanted {
                    account: account(parsed.account),
                    role: Some(arn.to_owned()),
                };
                wanted.entry(entry.account.id.clone()).or_insert(entry);
            }
            None => errors.push(CollectError::new(
                Reason::Other,
                format!("assume_roles: {arn} is not the ARN of a role"),
            )),
        }
    }
    (wanted, errors)
}

/// A discovered member account and the role to assume there.
fn member_account(member: Account, identity: &Identity, options: &AwsOptions) -> (Text, Wanted) {
    let role = format!(
        "arn:{}:iam::{}:role/{}",
        identity.partition,
        member.id,
        options.member_role()
    );
    (
        member.id.clone(),
        Wanted {
            account: member,
            role: Some(role),
        },
    )
}

/// What a look at an account needs.
#[derive(Clone, Copy)]
struct Look<'a> {
    cx: &'a Context,
    options: &'a AwsOptions,
    base: &'a Arc<Base>,
    accounts: &'a Accounts,
}

impl Look<'_> {
    /// Looks at accounts, all at once; what is found is announced at once.
    async fn at_all<'w>(
        &self,
        wanted: impl Iterator<Item = &'w Wanted>,
    ) -> Vec<(Account, Result<Vec<Target>, CollectError>)> {
        join_all(wanted.map(|wanted| async move { (wanted.account.clone(), self.at(wanted).await) })).await
    }

    async fn at(&self, wanted: &Wanted) -> Result<Vec<Target>, CollectError> {
        let access = self
            .accounts
            .get_or_add(&wanted.account.id, self.base, wanted.role.as_deref());
        let cx = self.cx.for_account(wanted.account.clone());
        let targets = targets(&cx, self.options, self.base, &access, &wanted.account).await?;
        access.set_regions(targets.iter().map(|target| target.scope.region.clone()));
        cx.announce(targets.clone());
        Ok(targets)
    }
}

/// The targets of one account.
async fn targets(
    cx: &Context,
    options: &AwsOptions,
    base: &Base,
    access: &AccountAccess,
    account: &Account,
) -> Result<Vec<Target>, CollectError> {
    // Also with configured regions: credentials that do not work are this
    // account's failure here, and not one per region.
    let partition = access.session(cx).await?.identity.partition;
    let found = match &options.regions {
        Some(regions) => regions
            .iter()
            .map(|region| region.trim().to_ascii_lowercase())
            .collect(),
        None => regions(cx, base, access, partition).await?,
    };
    let excluded: BTreeSet<String> = options
        .exclude_regions
        .iter()
        .map(|region| region.trim().to_ascii_lowercase())
        .collect();
    let scope = |region: &str| Scope {
        provider: Provider::Aws,
        account: account.clone(),
        region: region.into(),
    };
    let mut targets: Vec<Target> = found
        .iter()
        .filter(|region| !region.is_empty() && !excluded.contains(*region))
        .map(|region| Target {
            scope: scope(region),
            datasets: vec![Dataset::Inventory, Dataset::Commitments],
        })
        .collect();
    if partition.has_savings_plans() {
        targets.push(Target {
            scope: scope(Scope::GLOBAL),
            datasets: vec![Dataset::Commitments],
        });
    }
    Ok(targets)
}

/// The regions enabled for an account: it opts in to the newer ones itself.
async fn regions(
    cx: &Context,
    base: &Base,
    access: &AccountAccess,
    partition: Partition,
) -> Result<BTreeSet<String>, CollectError> {
    let region = base.region(partition);
    let home = partition.home_region();
    let answer = match describe_regions(cx, access, &region).await {
        // The base credentials' region need not be enabled, or allowed, in
        // every account.
        Err(error) if matches!(error.reason, Reason::NotEnabled | Reason::Permission) && region != home => {
            describe_regions(cx, access, home).await.map_err(|_| error)?
        }
        result => result?,
    };
    if answer.is_empty() {
        return Err(CollectError::new(
            Reason::Decode,
            "ec2 DescribeRegions: there is no region in the answer",
        ));
    }
    Ok(answer)
}

async fn describe_regions(
    cx: &Context,
    access: &AccountAccess,
    region: &str,
) -> Result<BTreeSet<String>, CollectError> {
    let answer = access
        .call(cx, DESCRIBE_REGIONS, region, |session| {
            session.ec2(region).describe_regions().send()
        })
        .await?;
    let enabled = answer
        .regions()
        .iter()
        .filter(|region| region.opt_in_status() != Some("not-opted-in"));
    Ok(enabled
        .filter_map(|region| region.region_name())
        .map(str::to_ascii_lowercase)
        .collect())
}

/// Active member accounts of the organization; none where there is no
/// organization.
async fn members(cx: &Context, base: &Arc<Base>) -> Result<Vec<Account>, CollectError> {
    let access = AccountAccess::new(Arc::clone(base), None);
    let access = &access;
    let fetch = |token: Option<String>| async move {
        let page = access
            .call(cx, LIST_ACCOUNTS, NO_REGION, |session| {
                session
                    .organizations()
                    .list_accounts()
                    .max_results(ACCOUNTS_PER_PAGE)
                    .set_next_token(token.clone())
                    .send()
            })
            .await?;
        let next = page.next_token().map(str::to_owned);
        Ok((page, next))
    };
    let listed = read_all(LIST_ACCOUNTS, BTreeMap::new, fetch, |members, page| {
        let before = members.len();
        let records = page.accounts();
        members.extend(
            records
                .iter()
                .filter_map(active_member)
                .map(|member| (member.id.clone(), member)),
        );
        // Inactive accounts are no repeats.
        let inactive = records.iter().filter(|record| active_member(record).is_none()).count();
        Progress {
            records: records.len(),
            new: members.len() - before + inactive,
        }
    })
    .await;
    match listed {
        Ok(members) => Ok(members.into_values().collect()),
        Err(error) if error.code.as_deref() == Some("AWSOrganizationsNotInUseException") => {
            tracing::info!("the account is in no organization; only configured accounts are polled");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// An account that can be polled. `State` is the newer field; older answers
/// have only `Status`.
fn active_member(record: &Member) -> Option<Account> {
    let state = record.state().map(AccountState::as_str).or_else(|| {
        #[allow(deprecated, reason = "the older field is all that some endpoints answer")]
        record.status().map(AccountStatus::as_str)
    });
    let id = record.id().filter(|id| !id.is_empty())?;
    let name = record.name().filter(|name| !name.is_empty()).unwrap_or(id);
    (state == Some("ACTIVE")).then(|| Account {
        id: id.into(),
        name: name.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_members_are_polled_by_the_newer_field_first() {
        let member = || Member::builder().id("111122223333").name("研究院");
        let active = active_member(&member().state(AccountState::Active).build()).expect("active");
        assert_eq!(&*active.name, "研究院");
        #[allow(deprecated, reason = "the older field is what is tested")]
        let (old, both) = (
            member().status(AccountStatus::Active).build(),
            member()
                .state(AccountState::PendingClosure)
                .status(AccountStatus::Active)
                .build(),
        );
        assert!(active_member(&old).is_some());
        assert_eq!(active_member(&both), None);
        assert_eq!(active_member(&member().build()), None);
        assert_eq!(
            active_member(&Member::builder().state(AccountState::Active).build()),
            None
        );
    }
}
