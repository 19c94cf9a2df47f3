//! Which actions there are, and who answers them.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::page::page;
use crate::world::{Account, Inner, Site};
use crate::{cvm, svp, tke};

/// What a call is about.
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'a str,
    pub(crate) region: &'a str,
    pub(crate) site: Site,
    pub(crate) body: &'a Value,
    pub(crate) alteration: Option<FaultKind>,
}

impl Asked<'_> {
    /// Whether something of this region is asked for.
    pub(crate) fn is_here(&self, region: &str) -> bool {
        region == self.region
    }

    /// The page of a list, at most `largest` rows.
    pub(crate) fn list(&self, name: &str, total: &str, rows: Vec<Value>, largest: u64) -> Result<Value, ApiError> {
        let (rows, count) = page(rows, self.body, largest, self.alteration)?;
        Ok(json!({name: rows, total: count}))
    }
}

/// Services by action: which product it is of, its version, and whether it
/// needs a region.
pub(crate) fn product(operation: &str, version: &str) -> Option<(&'static str, bool)> {
    Some(match (operation, version) {
        ("GetCallerIdentity" | "AssumeRole" | "AssumeRoleWithWebIdentity", "2018-08-13") => ("sts", false),
        ("DescribeRegions", "2022-06-27") => ("region", false),
        ("DescribeRegions", "2017-03-12") => ("cvm", false),
        (
            "DescribeInstances"
            | "DescribeZones"
            | "DescribeZoneInstanceConfigInfos"
            | "DescribeInstanceTypeConfigs"
            | "DescribeHosts"
            | "DescribeReservedInstances",
            "2017-03-12",
        ) => ("cvm", true),
        ("DescribeClusters" | "DescribeEKSContainerInstances" | "DescribeReservedInstances", "2018-05-25")
        | ("DescribeClusterInstances", "2022-05-01") => ("tke", true),
        ("DescribeSavingPlanOverview" | "DescribeSavingPlanCoverage", "2024-01-25") => ("svp", false),
        _ => return None,
    })
}

/// Whether an action is there on a site.
pub(crate) fn is_on(site: Site, service: &str, operation: &str) -> bool {
    match (service, operation) {
        ("cvm", "DescribeReservedInstances") => site == Site::International,
        ("svp", _) | ("cvm", "DescribeInstanceTypeConfigs") => site == Site::China,
        _ => true,
    }
}

/// The answer of a call that lists or describes something.
pub(crate) fn answer(inner: &Inner, account: &Account, service: &str, asked: &Asked<'_>) -> Result<Value, ApiError> {
    match (service, asked.operation) {
        (_, "DescribeRegions") => regions(inner, service, asked),
        ("cvm", _) => cvm::answer(account, asked),
        ("tke", _) => tke::answer(account, asked),
        ("svp", _) => svp::answer(account, asked),
        _ => Err(ApiError::new("InvalidAction", "The action is not there.")),
    }
}

fn regions(inner: &Inner, service: &str, asked: &Asked<'_>) -> Result<Value, ApiError> {
    if service == "region" && asked.body["Product"].as_str().is_none_or(str::is_empty) {
        return Err(ApiError::new("MissingParameter", "The request is missing Product."));
    }
    let rows: Vec<Value> = inner
        .regions
        .iter()
        .map(|region| json!({"Region": region, "RegionName": region, "RegionState": "AVAILABLE"}))
        .chain([json!({"Region": "ap-chengdu", "RegionName": "closed", "RegionState": "UNAVAILABLE"})])
        .collect();
    Ok(json!({"TotalCount": rows.len(), "RegionSet": rows}))
}
