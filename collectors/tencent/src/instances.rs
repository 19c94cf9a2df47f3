//! Lists a region's CVM instances that have accelerators.
//!
//! No filter of the call tells accelerators, so the whole fleet of the region
//! is read and decided about here.

use gpuwatch_collector_core::{Call, CollectError, Context, Scope, TagRules};
use gpuwatch_inventory::{Instance, Text};

use crate::{
    access::AccountAccess,
    api::Action,
    clusters::ClusterNodes,
    facts::{Decider, TypesInUse},
    pages::{self, PAGE_SIZE, Query, page},
    record::{CvmRecord, Reader},
};

const DESCRIBE_INSTANCES: Action = Action::new(
    Call::new("cvm", "DescribeInstances", "cvm:DescribeInstances"),
    "2017-03-12",
);

page!(InstancesPage, "InstanceSet": CvmRecord, "TotalCount", instance_id);

/// The records of a region, accelerators or not.
pub(crate) struct Records(Vec<CvmRecord>);

/// Lists all records.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn records(cx: &Context, access: &AccountAccess, region: &Text) -> Result<Records, CollectError> {
    let query = Query {
        access,
        action: DESCRIBE_INSTANCES,
        region,
        limit: PAGE_SIZE,
        parameters: &[],
    };
    let mut records = pages::list::<InstancesPage>(cx, query).await?;
    records.retain(CvmRecord::is_there);
    let before = records.len();
    records.retain(|record| record.instance_type.is_some() || record.stated().count.is_some());
    cx.skip("no_type", u64::try_from(before - records.len()).unwrap_or(u64::MAX));
    Ok(Records(records))
}

impl Records {
    /// The types of the records.
    pub(crate) fn types(&self) -> TypesInUse {
        let mut types = TypesInUse::default();
        for record in &self.0 {
            types.note(record.instance_type.as_deref().unwrap_or_default(), record.stated());
        }
        types
    }

    /// The instances with accelerators.
    pub(crate) fn instances(
        &self,
        scope: &Scope,
        rules: &TagRules,
        decider: &Decider,
        nodes: Option<&ClusterNodes>,
    ) -> Vec<Instance> {
        let mut reader = Reader::new(scope, rules);
        self.0
            .iter()
            .filter_map(|record| {
                let id = record.instance_id.as_deref()?;
                let instance_type = record.instance_type.as_deref().unwrap_or_default();
                let accelerators = decider.accelerators(instance_type, record.stated())?;
                let membership = nodes.and_then(|nodes| nodes.membership(id));
                Some(reader.read(record, id, accelerators, membership))
            })
            .collect()
    }
}
