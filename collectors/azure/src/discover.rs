//! Finds the subscriptions of a section and the regions of each.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use gpuwatch_collector_core::{
    Account, Call, CollectError, Context, Covers, Dataset, Discovery, DiscoveryFailure, Reason, Scope, Target, lock,
};
use gpuwatch_inventory::{Provider, Text};
use serde::Deserialize;

use crate::{
    AzureOptions,
    arm::{Arm, Listing, is_plain_id},
    fleet::Lister,
    vm::region_of,
};

const SUBSCRIPTIONS: Listing = Listing {
    call: Call::new("subscriptions", "list", "Microsoft.Resources/subscriptions/read"),
    versions: &["2022-12-01", "2020-01-01"],
};
const LOCATIONS: Listing = Listing {
    call: Call::new(
        "subscriptions",
        "locations.list",
        "Microsoft.Resources/subscriptions/locations/read",
    ),
    versions: &["2022-12-01", "2020-01-01"],
};

/// The subscriptions that are polled, as of the newest discovery.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<Text, Text>>);

impl Subscriptions {
    fn set(&self, accounts: Vec<Account>) {
        *lock(&self.0) = accounts.into_iter().map(|account| (account.id, account.name)).collect();
    }

    /// Whether one is polled: its machines are all known.
    pub(crate) fn has(&self, id: &str) -> bool {
        lock(&self.0).contains_key(id)
    }

    /// The account of an id: its name, where that is known.
    pub(crate) fn account(&self, id: &str) -> Account {
        Account {
            id: id.into(),
            name: lock(&self.0).get(id).cloned().unwrap_or_else(|| id.into()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    #[serde(rename = "subscriptionId")]
    id: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    state: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Location {
    name: String,
    #[serde(default)]
    metadata: Option<LocationMetadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocationMetadata {
    #[serde(default)]
    region_type: Option<String>,
}

/// Discovers every subscription of a section; each is announced at once.
pub(crate) async fn discover(
    cx: &Context,
    options: &AzureOptions,
    arm: &Arm,
    lister: &Lister,
    known: &Subscriptions,
) -> Discovery {
    let found = match subscriptions(cx, options, arm).await {
        Ok(found) => found,
        Err(error) => {
            let failure = DiscoveryFailure {
                account: Account {
                    id: options.name.as_str().into(),
                    name: options.name.as_str().into(),
                },
                covers: Covers::Everything,
                error,
            };
            return Discovery {
                targets: Vec::new(),
                failures: vec![failure],
            };
        }
    };
    let mut discovery = Discovery::default();
    // What belongs to the tenant and to no region is polled once.
    // Whatever becomes of the subscription that it is booked under.
    if let Some(first) = found.accounts.iter().min_by_key(|account| &account.id) {
        let tenant = vec![target(first, Scope::GLOBAL, &[Dataset::Commitments])];
        cx.announce(tenant.clone());
        discovery.targets.extend(tenant);
    }
    let searches = found.accounts.iter().map(|account| {
        let cx = cx.for_account(account.clone());
        async move {
            let targets = targets(&cx, options, arm, lister, account).await;
            if let Ok(targets) = &targets {
                cx.announce(targets.clone());
            }
            (account, targets)
        }
    });
    for (account, targets) in futures::future::join_all(searches).await {
        match targets {
            Ok(targets) => discovery.targets.extend(targets),
            Err(error) => discovery.failures.push(DiscoveryFailure {
                account: account.clone(),
                covers: Covers::Account,
                error,
            }),
        }
    }
    for (id, error) in found.missing {
        discovery.failures.push(DiscoveryFailure {
            account: Account {
                name: options.name.as_str().into(),
                id,
            },
            covers: Covers::Account,
            error,
        });
    }
    lister.retain(|subscription| found.accounts.iter().any(|account| account.id == *subscription));
    known.set(found.accounts);
    discovery
}

struct Found {
    accounts: Vec<Account>,
    /// Configured ones that are not there.
    missing: Vec<(Text, CollectError)>,
}

async fn subscriptions(cx: &Context, options: &AzureOptions, arm: &Arm) -> Result<Found, CollectError> {
    let visible: Vec<Subscription> = arm.list(cx, SUBSCRIPTIONS, "/subscriptions").await?;
    let excluded = |id: &str| {
        options
            .exclude_subscriptions
            .iter()
            .any(|other| other.eq_ignore_ascii_case(id))
    };
    let is_named = |id: &str| {
        options.subscriptions.is_empty()
            || options
                .subscriptions
                .iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(id))
    };
    let mut accounts: Vec<Account> = visible
        .iter()
        .filter(|s| is_plain_id(&s.id))
        .filter(|s| !matches!(s.state.as_deref(), Some("Disabled" | "Deleted")))
        .filter(|s| is_named(&s.id) && !excluded(&s.id))
        .map(|s| Account {
            id: s.id.to_lowercase().into(),
            // Of its own, where it was discovered and not configured.
            name: match &s.display_name {
                Some(name) if options.subscriptions.is_empty() && !name.is_empty() => name.as_str().into(),
                _ => options.name.as_str().into(),
            },
        })
        .collect();
    accounts.sort();
    accounts.dedup_by(|a, b| a.id == b.id);
    let missing: Vec<(Text, CollectError)> = options
        .subscriptions
        .iter()
        .filter(|id| !excluded(id))
        .filter(|id| !accounts.iter().any(|account| account.id.eq_ignore_ascii_case(id)))
        .map(|id| {
            let message = format!(
                "subscription {id} is not visible, or disabled: give the identity the Reader role on it, or remove it"
            );
            (
                Text::from(id.to_lowercase()),
                CollectError::new(Reason::Permission, message),
            )
        })
        .collect();
    if accounts.is_empty() && missing.is_empty() {
        let error = CollectError::new(
            Reason::Permission,
            "no subscription is visible to this identity: give it the Reader role on a subscription or management group \
             (an identity without any role gets an empty list, not a refusal)",
        );
        cx.call_failed(SUBSCRIPTIONS.call, &error);
        return Err(error);
    }
    Ok(Found { accounts, missing })
}

async fn targets(
    cx: &Context,
    options: &AzureOptions,
    arm: &Arm,
    lister: &Lister,
    account: &Account,
) -> Result<Vec<Target>, CollectError> {
    let path = format!("/subscriptions/{}/locations", account.id);
    let mut regions: BTreeSet<String> = match arm.list::<Location>(cx, LOCATIONS, &path).await {
        Ok(locations) => locations
            .iter()
            .filter(|location| is_physical(location))
            .map(|location| region_of(&location.name))
            .collect(),
        Err(error) => {
            tracing::warn!(
                provider = "azure", account = %account.id, reason = %error.reason, error = %error,
                "locations cannot be listed; polling the regions that have machines"
            );
            BTreeSet::new()
        }
    };
    if regions.is_empty() {
        lister.regions(cx, arm, &account.id).await?;
    }
    regions.extend(lister.inhabited(&account.id));
    regions.retain(|region| !options.exclude_regions.iter().any(|other| region_of(other) == *region));
    let datasets = [Dataset::Inventory, Dataset::Commitments];
    Ok(regions
        .iter()
        .map(|region| target(account, region, &datasets))
        .collect())
}

fn target(account: &Account, region: &str, datasets: &[Dataset]) -> Target {
    Target {
        scope: Scope {
            provider: Provider::Azure,
            account: account.clone(),
            region: region.into(),
        },
        datasets: datasets.to_vec(),
    }
}

/// Logical locations (`europe`) hold no machines; a kind that nobody knows may.
fn is_physical(location: &Location) -> bool {
    let kind = location
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.region_type.as_deref());
    !location.name.is_empty() && kind.is_none_or(|kind| !kind.eq_ignore_ascii_case("Logical"))
}
