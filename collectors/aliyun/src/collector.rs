//! The collector the scheduler sees.

use std::sync::Arc;

use async_trait::async_trait;
use gpuwatch_collector_core::{
    CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Part, Reason, Scope,
};
use gpuwatch_inventory::Provider;

use crate::{
    AliyunOptions,
    account::{Account, Accounts, Base},
    allocate,
    bss::Bss,
    commitments,
    coverage::{Coverage, Payer},
    credentials::Environment,
    discover,
    instances::Lister,
    savings_plans,
};

const INSTANCES: Part = "instances";
const RESERVED_INSTANCES: Part = "reserved_instances";
const ELASTICITY_ASSURANCES: Part = "elasticity_assurances";
const CAPACITY_RESERVATIONS: Part = "capacity_reservations";
const SAVINGS_PLANS: Part = "savings_plans";

/// Polls one configured section of Alibaba Cloud.
pub struct AliyunCollector {
    options: Arc<AliyunOptions>,
    base: Arc<Base>,
    accounts: Accounts,
    lister: Lister,
    bss: Bss,
    coverage: Coverage,
}

impl AliyunCollector {
    /// A collector. Nothing is loaded or asked yet: what fails then is an
    /// error of [`Collector::discover`], which is repeated. The environment is
    /// read here, once.
    #[must_use]
    pub fn new(options: AliyunOptions) -> Self {
        Self::build(options, Environment::of_process())
    }

    /// A collector that knows these environment variables instead of the
    /// process's own.
    #[must_use]
    pub fn with_environment(options: AliyunOptions, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::build(options, Environment::new(variables))
    }

    fn build(options: AliyunOptions, environment: Environment) -> Self {
        let options = Arc::new(options);
        Self {
            base: Arc::new(Base::new(Arc::clone(&options), environment)),
            accounts: Accounts::default(),
            lister: Lister::new(options.tag_rules()),
            bss: Bss::default(),
            coverage: Coverage::default(),
            options,
        }
    }
}

impl AliyunCollector {
    async fn refresh(&self, cx: &Context, account: &Account, scope: &Scope, payer: Payer) {
        self.coverage.refresh(cx, &self.bss, account, scope, payer).await;
    }
}

#[async_trait]
impl Collector for AliyunCollector {
    fn provider(&self) -> Provider {
        Provider::Aliyun
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
            (Dataset::Commitments, _) => vec![RESERVED_INSTANCES, ELASTICITY_ASSURANCES, CAPACITY_RESERVATIONS],
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
        let account = self.accounts.get(&scope.account.id)?;
        let shapes = self.lister.shapes();
        let commitments = match (dataset, part) {
            (Dataset::Inventory, INSTANCES) => {
                return self.lister.list(cx, &account, scope).await.map(Collected::Instances);
            }
            (Dataset::Commitments, RESERVED_INSTANCES) => {
                let found = commitments::reserved_instances(cx, &account, scope, shapes).await?;
                if !found.is_empty() {
                    self.refresh(cx, &account, scope, Payer::ReservedInstances).await;
                }
                Ok(found)
            }
            (Dataset::Commitments, ELASTICITY_ASSURANCES) => {
                commitments::elasticity_assurances(cx, &account, scope, shapes).await
            }
            (Dataset::Commitments, CAPACITY_RESERVATIONS) => {
                commitments::capacity_reservations(cx, &account, scope, shapes).await
            }
            (Dataset::Commitments, SAVINGS_PLANS) => {
                let plans = savings_plans::savings_plans(cx, &account, scope);
                let found = self.bss.ask(cx, &scope.account.id, plans).await?;
                if !found.is_empty() {
                    self.refresh(cx, &account, scope, Payer::SavingsPlans).await;
                }
                Ok(found)
            }
            _ => {
                return Err(CollectError::new(
                    Reason::Other,
                    format!("aliyun has no part {part} of {dataset}"),
                ));
            }
        };
        commitments.map(Collected::Commitments)
    }

    fn allocate(&self, fleet: &mut Fleet) {
        allocate::allocate(fleet, |account, payer| self.coverage.day(account, payer));
    }
}
