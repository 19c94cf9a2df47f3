//! The collector the scheduler sees.

use async_trait::async_trait;
use gpuwatch_collector_core::{
    CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Part, Reason, Scope,
};
use gpuwatch_inventory::Provider;

use crate::{
    AzureOptions, allocate, arm::Arm, benefits, capacity::Capacity, credentials::Variables, discover,
    discover::Subscriptions, fleet::Lister,
};

const INSTANCES: Part = "instances";
const CAPACITY_RESERVATIONS: Part = "capacity_reservations";
const RESERVATIONS: Part = "reservations";
const SAVINGS_PLANS: Part = "savings_plans";

/// Polls one configured section of Azure.
pub struct AzureCollector {
    options: AzureOptions,
    arm: Arm,
    lister: Lister,
    capacity: Capacity,
    subscriptions: Subscriptions,
}

impl AzureCollector {
    /// A collector. Nothing is loaded or asked yet: what fails then is an
    /// error of [`Collector::discover`], which is repeated. The environment is
    /// read here, once.
    #[must_use]
    pub fn new(options: AzureOptions) -> Self {
        Self {
            arm: Arm::new(&options, Variables::of_process()),
            lister: Lister::new(options.tag_rules()),
            capacity: Capacity::default(),
            subscriptions: Subscriptions::default(),
            options,
        }
    }
}

#[async_trait]
impl Collector for AzureCollector {
    fn provider(&self) -> Provider {
        Provider::Azure
    }

    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self, cx: &Context) -> Discovery {
        discover::discover(cx, &self.options, &self.arm, &self.lister, &self.subscriptions).await
    }

    fn parts(&self, scope: &Scope, dataset: Dataset) -> Vec<Part> {
        match (dataset, &*scope.region) {
            (Dataset::Commitments, Scope::GLOBAL) => vec![RESERVATIONS, SAVINGS_PLANS],
            (Dataset::Commitments, _) => vec![CAPACITY_RESERVATIONS],
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
        let commitments = match (dataset, part) {
            (Dataset::Inventory, INSTANCES) => {
                return self.lister.list(cx, &self.arm, scope).await.map(Collected::Instances);
            }
            (Dataset::Commitments, CAPACITY_RESERVATIONS) => self.capacity.list(cx, &self.arm, scope).await,
            (Dataset::Commitments, RESERVATIONS) => {
                benefits::reservations(cx, &self.arm, scope, &self.subscriptions).await
            }
            (Dataset::Commitments, SAVINGS_PLANS) => {
                benefits::savings_plans(cx, &self.arm, scope, &self.subscriptions).await
            }
            _ => {
                return Err(CollectError::new(
                    Reason::Other,
                    format!("azure has no part {part} of {dataset}"),
                ));
            }
        };
        commitments.map(Collected::Commitments)
    }

    fn allocate(&self, fleet: &mut Fleet) {
        allocate::allocate(fleet, |subscription| self.subscriptions.has(subscription));
    }
}
