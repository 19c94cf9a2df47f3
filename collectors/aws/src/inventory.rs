//! Lists a region's instances that have accelerators, without reading the
//! rest of the fleet.

use std::collections::{BTreeSet, HashSet};

use aws_sdk_ec2::{
    operation::describe_instances::DescribeInstancesOutput,
    types::{Filter, Reservation},
};
use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Scope, TagRules, lock, read_all};
use gpuwatch_inventory::{Instance, Text};

use crate::{
    Partition, TypeFilter,
    calls::AccountAccess,
    errors::is_bad_parameter,
    facts::{FAMILY_PATTERNS, FILTER_VALUES, TypeFacts, catalog_types, may_have_accelerators},
    record::{Reader, Unusable},
};

const DESCRIBE_INSTANCES: Call = Call::new("ec2", "DescribeInstances", "ec2:DescribeInstances");

/// Every state but terminated.
const STATES: [&str; 5] = ["pending", "running", "stopping", "stopped", "shutting-down"];

/// Largest page `DescribeInstances` gives.
const PAGE_SIZE: i32 = 1000;

/// Lists instances, and remembers what partitions have refused.
#[derive(Debug)]
pub(crate) struct InstanceLister {
    filter: TypeFilter,
    rules: TagRules,
    /// Partitions whose EC2 does not know `IncludeManagedResources` yet.
    without_managed: std::sync::Mutex<HashSet<Partition>>,
}

/// A listing while it is read.
struct Listing<'a> {
    reader: Reader<'a>,
    instances: Vec<Instance>,
    ids: HashSet<Text>,
    skipped: Skipped,
}

/// Records that could not be used.
#[derive(Debug, Default, Clone, Copy)]
struct Skipped {
    no_id: u64,
    no_type: u64,
    duplicate: u64,
}

impl InstanceLister {
    pub(crate) fn new(filter: TypeFilter, rules: TagRules) -> Self {
        Self {
            filter,
            rules,
            without_managed: std::sync::Mutex::default(),
        }
    }

    /// A complete listing of a scope.
    ///
    /// # Errors
    /// When any page is missing.
    pub(crate) async fn list(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
        facts: &TypeFacts,
    ) -> Result<Vec<Instance>, CollectError> {
        let partition = access.session(cx).await?.identity.partition;
        let mut instances = Vec::new();
        for types in self.type_filters() {
            instances.append(&mut self.list_types(cx, access, scope, partition, types).await?);
        }
        let types: BTreeSet<Text> = instances
            .iter()
            .map(|instance| instance.instance_type.clone())
            .collect();
        let accelerated = facts.accelerated(cx, access, partition, &scope.region, &types).await;
        instances.retain_mut(|instance| match accelerated.of(&instance.instance_type) {
            Some(accelerators) => {
                instance.accelerators = accelerators.clone();
                true
            }
            None => false,
        });
        instances.shrink_to_fit();
        Ok(instances)
    }

    /// Values of the `instance-type` filter, one set per listing.
    fn type_filters(&self) -> Vec<Vec<String>> {
        match self.filter {
            TypeFilter::Wildcard => vec![FAMILY_PATTERNS.map(str::to_owned).to_vec()],
            TypeFilter::Exact => {
                let types: Vec<String> = catalog_types().map(str::to_owned).collect();
                types.chunks(FILTER_VALUES).map(<[String]>::to_vec).collect()
            }
        }
    }

    /// Instances that services run on the account's behalf (EKS Auto Mode,
    /// ECS managed instances) are hidden unless asked for, yet billed. Where
    /// the parameter is refused it is left out from then on.
    async fn list_types(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
        partition: Partition,
        types: Vec<String>,
    ) -> Result<Vec<Instance>, CollectError> {
        if lock(&self.without_managed).contains(&partition) {
            return self.list_pages(cx, access, scope, &types, None).await;
        }
        match self.list_pages(cx, access, scope, &types, Some(true)).await {
            Err(error) if is_bad_parameter(&error) => {
                let listed = self.list_pages(cx, access, scope, &types, None).await?;
                tracing::info!(%partition, region = &*scope.region, "managed instances cannot be asked for here");
                lock(&self.without_managed).insert(partition);
                Ok(listed)
            }
            result => result,
        }
    }

    async fn list_pages(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
        types: &[String],
        managed: Option<bool>,
    ) -> Result<Vec<Instance>, CollectError> {
        let by_type = Filter::builder()
            .name("instance-type")
            .set_values(Some(types.to_vec()))
            .build();
        let by_state = Filter::builder()
            .name("instance-state-name")
            .set_values(Some(STATES.map(str::to_owned).to_vec()))
            .build();
        let filters = vec![by_type, by_state];
        let filters = &filters;
        let region = &*scope.region;
        let fetch = |token: Option<String>| async move {
            let page = access
                .call(cx, DESCRIBE_INSTANCES, region, |session| {
                    session
                        .ec2(region)
                        .describe_instances()
                        .set_filters(Some(filters.clone()))
                        .max_results(PAGE_SIZE)
                        .set_include_managed_resources(managed)
                        .set_next_token(token.clone())
                        .send()
                })
                .await?;
            let next = page.next_token().map(str::to_owned);
            Ok((page, next))
        };
        let begin = || Listing {
            reader: Reader::new(scope, &self.rules),
            instances: Vec::new(),
            ids: HashSet::new(),
            skipped: Skipped::default(),
        };
        let listing = read_all(DESCRIBE_INSTANCES, begin, fetch, |listing: &mut Listing<'_>, page| {
            listing.take(&page)
        })
        .await?;
        cx.skip(Unusable::NoId.as_str(), listing.skipped.no_id);
        cx.skip(Unusable::NoType.as_str(), listing.skipped.no_type);
        cx.skip("duplicate", listing.skipped.duplicate);
        Ok(listing.instances)
    }
}

impl Listing<'_> {
    fn take(&mut self, page: &DescribeInstancesOutput) -> Progress {
        let mut progress = Progress { records: 0, new: 0 };
        for record in page.reservations().iter().flat_map(Reservation::instances) {
            progress.records += 1;
            match self.reader.read(record) {
                Err(Unusable::NoId) => self.skipped.no_id += 1,
                Err(Unusable::NoType) => self.skipped.no_type += 1,
                // Gone, or not asked for.
                Ok(None) => progress.new += 1,
                Ok(Some(instance)) if !may_have_accelerators(&instance.instance_type) => progress.new += 1,
                Ok(Some(instance)) => {
                    if self.ids.insert(instance.id.clone()) {
                        progress.new += 1;
                        self.instances.push(instance);
                    } else {
                        self.skipped.duplicate += 1;
                    }
                }
            }
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(filter: TypeFilter) -> Vec<Vec<String>> {
        InstanceLister::new(
            filter,
            TagRules {
                owner: vec![],
                keep: vec![],
            },
        )
        .type_filters()
    }

    #[test]
    fn wildcards_name_families_and_exact_filters_name_types() {
        assert_eq!(
            filters(TypeFilter::Wildcard),
            [["p*", "g*", "inf*", "trn*", "dl*", "vt*"]]
        );
        let exact = filters(TypeFilter::Exact);
        assert!(exact.iter().flatten().any(|name| name == "p5.48xlarge"));
        assert!(
            exact
                .iter()
                .all(|set| !set.is_empty() && set.len() + STATES.len() <= 200)
        );
        assert!(exact.iter().flatten().all(|name| !name.contains('*')));
    }
}
