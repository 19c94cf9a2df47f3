//! The collector the scheduler sees.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use gpuwatch_collector_core::{
    CollectError, Collected, Collector, Context, Covers, Dataset, Discovery, Fleet, Part, Reason, Scope, TagRules,
};
use gpuwatch_inventory::{Provider, Text};

use crate::{
    GcpOptions, allocate, api::Api, commitments::CommitmentLister, discover, instances::InstanceLister,
    machine_types::MachineTypes, reservations::ReservationLister, tpu::TpuLister,
};

const INSTANCES: Part = "instances";
const TPU_NODES: Part = "tpu_nodes";
const RESERVATIONS: Part = "reservations";
const COMMITMENTS: Part = "commitments";

/// Polls one configured section of Google Cloud.
pub struct GcpCollector {
    options: GcpOptions,
    api: Api,
    types: Arc<MachineTypes>,
    instances: InstanceLister,
    nodes: TpuLister,
    reservations: ReservationLister,
    commitments: CommitmentLister,
}

impl GcpCollector {
    /// A collector. Nothing is loaded or asked yet: what fails then is an
    /// error of [`Collector::discover`], which is repeated.
    #[must_use]
    pub fn new(options: GcpOptions) -> Self {
        let rules = TagRules {
            owner: options.owner_tags.clone(),
            keep: options.keep_tags.clone(),
        };
        let types = Arc::<MachineTypes>::default();
        Self {
            api: Api::new(&options),
            instances: InstanceLister::new(rules.clone(), Arc::clone(&types)),
            nodes: TpuLister::new(rules),
            reservations: ReservationLister::new(Arc::clone(&types)),
            commitments: CommitmentLister::default(),
            types,
            options,
        }
    }

    /// Forgets what is known of projects that are no longer polled.
    fn retain(&self, discovery: &Discovery) {
        if discovery
            .failures
            .iter()
            .any(|failure| failure.covers == Covers::Everything)
        {
            return;
        }
        let failed = discovery.failures.iter().map(|failure| &failure.account.id);
        let polled = discovery.targets.iter().map(|target| &target.scope.account.id);
        let known: HashSet<&Text> = failed.chain(polled).collect();
        let keep = |project: &Text| known.contains(project);
        self.types.retain(keep);
        self.instances.retain(keep);
        self.nodes.retain(keep);
        self.reservations.retain(keep);
        self.commitments.retain(keep);
    }
}

#[async_trait]
impl Collector for GcpCollector {
    fn provider(&self) -> Provider {
        Provider::Gcp
    }

    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self, cx: &Context) -> Discovery {
        let discovery = discover::discover(cx, &self.options, &self.api).await;
        self.retain(&discovery);
        discovery
    }

    fn parts(&self, _scope: &Scope, dataset: Dataset) -> Vec<Part> {
        match dataset {
            Dataset::Inventory => vec![INSTANCES, TPU_NODES],
            Dataset::Commitments => vec![RESERVATIONS, COMMITMENTS],
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
        match (dataset, part) {
            (Dataset::Inventory, INSTANCES) => {
                let instances = self.instances.list(cx, &self.api, scope).await?;
                Ok(Collected::Instances(instances))
            }
            (Dataset::Inventory, TPU_NODES) => {
                let nodes = self.nodes.list(cx, &self.api, scope).await?;
                Ok(Collected::Instances(nodes))
            }
            (Dataset::Commitments, RESERVATIONS) => {
                let reservations = self.reservations.list(cx, &self.api, scope).await?;
                Ok(Collected::Commitments(reservations))
            }
            (Dataset::Commitments, COMMITMENTS) => {
                let commitments = self.commitments.list(cx, &self.api, scope).await?;
                Ok(Collected::Commitments(commitments))
            }
            _ => Err(CollectError::new(
                Reason::Other,
                format!("gcp has no part {part} of {dataset}"),
            )),
        }
    }

    fn allocate(&self, fleet: &mut Fleet) {
        allocate::allocate(fleet);
    }
}
