//! The collector the scheduler sees.

use std::sync::Arc;

use async_trait::async_trait;
use gpuwatch_collector_core::{
    Coalesced, CollectError, Collected, Collector, Context, Dataset, Discovery, Fleet, Part, Reason, Scope, TagRules,
};
use gpuwatch_inventory::{Commitment, Instance, Provider, Text};

use crate::{
    TencentOptions,
    access::{AccountAccess, Accounts, Base},
    allocate,
    clusters::{self, ClusterNodes},
    commitments, containers, discover,
    environment::Environment,
    facts::{TypeFacts, TypesInUse},
    instances,
    savings_plans::Coverage,
};

/// CVM instances.
const INSTANCES: Part = "instances";
/// Native nodes of TKE that are no CVM instances.
const CLUSTER_NODES: Part = "cluster_nodes";
const CONTAINER_INSTANCES: Part = "container_instances";
const RESERVED_INSTANCES: Part = "reserved_instances";
const DEDICATED_HOSTS: Part = "dedicated_hosts";
const SUPER_NODE_RESERVATIONS: Part = "super_node_reservations";
const SAVINGS_PLANS: Part = "savings_plans";

/// Part of the time left that the instances wait for their clusters: 1 / 3.
const SHARE_OF_TIME: u32 = 3;

/// Polls one configured section of Tencent Cloud.
pub struct TencentCollector {
    options: Arc<TencentOptions>,
    rules: TagRules,
    base: Arc<Base>,
    accounts: Accounts,
    facts: TypeFacts,
    /// Nodes by account and region, for the two parts that need them.
    clusters: Coalesced<ClusterNodes>,
    coverage: Coverage,
}

impl TencentCollector {
    /// A collector of a section. Nothing is loaded or asked yet, but for the
    /// environment's variables: what fails then is an error of
    /// [`Collector::discover`], which is repeated.
    #[must_use]
    pub fn new(options: TencentOptions) -> Self {
        Self::with_environment(options, &|name| std::env::var(name).ok())
    }

    /// A collector that looks up environment variables through `environment`,
    /// once.
    #[must_use]
    pub fn with_environment(options: TencentOptions, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let options = Arc::new(options);
        Self {
            rules: TagRules {
                owner: options.owner_tags.clone(),
                keep: options.keep_tags.clone(),
            },
            base: Arc::new(Base::new(Arc::clone(&options), Environment::read(environment))),
            accounts: Accounts::default(),
            facts: TypeFacts::default(),
            clusters: Coalesced::default(),
            coverage: Coverage::default(),
            options,
        }
    }

    async fn nodes(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
    ) -> Result<Arc<ClusterNodes>, CollectError> {
        let key: Text = format!("{} {}", scope.account.id, scope.region).into();
        let fetch = || clusters::list(cx, access, &scope.region);
        self.clusters.get(&key, cx, fetch).await
    }

    async fn instances(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
    ) -> Result<Vec<Instance>, CollectError> {
        let records = instances::records(cx, access, &scope.region).await?;
        let decider = self.facts.decider(cx, access, &scope.region, &records.types()).await;
        // Without clusters the instances are the same but for a label; what
        // fails there is the error of the other part.
        let limit = cx.remaining() / SHARE_OF_TIME;
        let nodes = cx.timeout(limit, self.nodes(cx, access, scope)).await;
        let nodes = nodes.and_then(Result::ok);
        let mut instances = records.instances(scope, &self.rules, &decider, nodes.as_deref());
        drop(records);
        self.coverage.apply(cx, access, scope, &mut instances).await;
        instances.shrink_to_fit();
        Ok(instances)
    }

    async fn cluster_nodes(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
    ) -> Result<Vec<Instance>, CollectError> {
        let nodes = self.nodes(cx, access, scope).await?;
        let mut types = TypesInUse::default();
        for (instance_type, stated) in nodes.types() {
            types.note(instance_type, stated);
        }
        let decider = self.facts.decider(cx, access, &scope.region, &types).await;
        Ok(nodes.instances(scope, &self.rules, &decider))
    }

    async fn commitments(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
        part: Part,
    ) -> Result<Vec<Commitment>, CollectError> {
        match part {
            RESERVED_INSTANCES => commitments::reserved_instances(cx, access, scope, &self.facts).await,
            DEDICATED_HOSTS => commitments::dedicated_hosts(cx, access, scope).await,
            SUPER_NODE_RESERVATIONS => commitments::super_node_reservations(cx, access, scope).await,
            SAVINGS_PLANS => self.coverage.plans(cx, access, scope).await,
            _ => Err(no_part(Dataset::Commitments, part)),
        }
    }
}

fn no_part(dataset: Dataset, part: Part) -> CollectError {
    CollectError::new(Reason::Other, format!("tencent has no part {part} of {dataset}"))
}

#[async_trait]
impl Collector for TencentCollector {
    fn provider(&self) -> Provider {
        Provider::Tencent
    }

    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self, cx: &Context) -> Discovery {
        discover::discover(cx, &self.options, &self.base, &self.accounts).await
    }

    fn parts(&self, scope: &Scope, dataset: Dataset) -> Vec<Part> {
        let site = self.options.site;
        match (dataset, &*scope.region) {
            (Dataset::Commitments, Scope::GLOBAL) if site.has_savings_plans() => vec![SAVINGS_PLANS],
            (_, Scope::GLOBAL) => Vec::new(),
            (Dataset::Inventory, _) => vec![INSTANCES, CLUSTER_NODES, CONTAINER_INSTANCES],
            (Dataset::Commitments, _) if site.has_reserved_instances() => vec![RESERVED_INSTANCES, DEDICATED_HOSTS],
            (Dataset::Commitments, _) => vec![DEDICATED_HOSTS, SUPER_NODE_RESERVATIONS],
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
        let instances = match (dataset, part) {
            (Dataset::Inventory, INSTANCES) => self.instances(cx, &access, scope).await,
            (Dataset::Inventory, CLUSTER_NODES) => self.cluster_nodes(cx, &access, scope).await,
            (Dataset::Inventory, CONTAINER_INSTANCES) => containers::list(cx, &access, scope).await,
            (Dataset::Commitments, _) => {
                let commitments = self.commitments(cx, &access, scope, part).await;
                return commitments.map(Collected::Commitments);
            }
            _ => Err(no_part(dataset, part)),
        };
        instances.map(Collected::Instances)
    }

    fn allocate(&self, fleet: &mut Fleet) {
        allocate::allocate(fleet);
    }
}
