//! The collector the scheduler sees.

use std::sync::Arc;

use async_trait::async_trait;
use aws_credential_types::Credentials;
use gpuwatch_collector_core::{
    CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Part, Reason, Scope, TagRules,
};
use gpuwatch_inventory::{Commitment, Provider};

use crate::{
    AwsOptions, allocate,
    calls::{AccountAccess, Accounts, Base},
    commitments, discover,
    facts::TypeFacts,
    in_use::InUse,
    inventory::InstanceLister,
    savings_plans, session,
};

const INSTANCES: Part = "instances";
const RESERVED_INSTANCES: Part = "reserved_instances";
/// One listing has both capacity reservations and capacity blocks.
const CAPACITY_RESERVATIONS: Part = "capacity_reservations";
const SAVINGS_PLANS: Part = "savings_plans";

/// Part of the time left that a first inventory is waited for: 1 / 4.
const SHARE_OF_TIME: u32 = 4;

/// Polls one configured section of AWS.
pub struct AwsCollector {
    options: Arc<AwsOptions>,
    base: Arc<Base>,
    accounts: Accounts,
    facts: TypeFacts,
    lister: InstanceLister,
    in_use: InUse,
}

impl AwsCollector {
    /// A collector with the SDK's own credentials chain. Nothing is loaded or
    /// asked yet: what fails then is an error of [`Collector::discover`], which
    /// is repeated.
    #[must_use]
    pub fn new(options: AwsOptions) -> Self {
        Self::build(options, None)
    }

    /// A collector with fixed base credentials, for a simulated cloud; real
    /// keys belong into the credentials chain.
    #[must_use]
    pub fn with_fixed_credentials(options: AwsOptions, access_key_id: &str, secret_access_key: &str) -> Self {
        let credentials = Credentials::new(access_key_id, secret_access_key, None, None, "gpuwatch-fixed");
        Self::build(options, Some(credentials))
    }

    fn build(options: AwsOptions, fixed: Option<Credentials>) -> Self {
        let options = Arc::new(options);
        let rules = TagRules {
            owner: options.owner_tags.clone(),
            keep: options.keep_tags.clone(),
        };
        Self {
            base: Arc::new(Base::new(Arc::clone(&options), fixed, session::http_client())),
            accounts: Accounts::default(),
            facts: TypeFacts::new(options.type_filter),
            lister: InstanceLister::new(options.type_filter, rules),
            in_use: InUse::default(),
            options,
        }
    }

    /// Savings plans with the rates of what runs. Without an inventory there
    /// is nothing to ask rates for, so the first one is waited for, a while.
    async fn savings_plans(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
    ) -> Result<Vec<Commitment>, CollectError> {
        let mut plans = savings_plans::plans(cx, access, scope).await?;
        if plans.is_empty() {
            return Ok(plans);
        }
        let account = &scope.account.id;
        cx.timeout(
            cx.remaining() / SHARE_OF_TIME,
            self.in_use.listed(account, &access.regions()),
        )
        .await;
        let usage = self.in_use.of_account(account);
        for plan in &mut plans {
            match savings_plans::rates(cx, access, plan, &usage).await {
                Ok(rates) => plan.rates = rates,
                // The plan itself is known; only the coverage estimate suffers.
                Err(error) => {
                    cx.degraded(&error);
                    if error.reason == Reason::Permission {
                        break;
                    }
                }
            }
        }
        Ok(plans)
    }
}

#[async_trait]
impl Collector for AwsCollector {
    fn provider(&self) -> Provider {
        Provider::Aws
    }

    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self, cx: &Context) -> Discovery {
        discover::discover(cx, &self.options, &self.base, &self.accounts).await
    }

    fn parts(&self, scope: &Scope, dataset: Dataset) -> Vec<Part> {
        match (dataset, &*scope.region) {
            (Dataset::Commitments, Scope::GLOBAL) => vec![SAVINGS_PLANS],
            (Dataset::Commitments, _) => vec![RESERVED_INSTANCES, CAPACITY_RESERVATIONS],
            (Dataset::Inventory, region) if region != Scope::GLOBAL => vec![INSTANCES],
            _ => Vec::new(),
        }
    }

    async fn collect(
        &self,
        scope: &Scope,
        dataset: Dataset,
        part: Part,
        cx: &Context,
    ) -> Result<Collected, CollectError> {
        let access = self.accounts.get(&scope.account.id)?;
        match (dataset, part) {
            (Dataset::Inventory, INSTANCES) => {
                let instances = self.lister.list(cx, &access, scope, &self.facts).await?;
                self.in_use.note(&scope.account.id, &scope.region, &instances);
                Ok(Collected::Instances(instances))
            }
            (Dataset::Commitments, RESERVED_INSTANCES) => {
                commitments::reserved_instances(cx, &access, scope, &self.facts)
                    .await
                    .map(Collected::Commitments)
            }
            (Dataset::Commitments, CAPACITY_RESERVATIONS) => {
                commitments::capacity_reservations(cx, &access, scope, &self.facts)
                    .await
                    .map(Collected::Commitments)
            }
            (Dataset::Commitments, SAVINGS_PLANS) => {
                self.savings_plans(cx, &access, scope).await.map(Collected::Commitments)
            }
            _ => Err(CollectError::new(
                Reason::Other,
                format!("aws has no part {part} of {dataset}"),
            )),
        }
    }

    fn allocate(&self, fleet: &mut Fleet) {
        allocate::allocate(fleet);
    }
}
