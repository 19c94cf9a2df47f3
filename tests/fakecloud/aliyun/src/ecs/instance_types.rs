//! `DescribeInstanceTypes`.

use serde_json::{Value, json};

use super::MAX_PAGE;
use crate::error::ApiError;
use crate::page::by_token;
use crate::rows::{set, spoilt};
use crate::service::Call;
use crate::types::{self, InstanceTypeFacts};

/// The service takes at most so many names in one list.
const MAX_NAMES: usize = 10;

pub(super) fn describe(call: &Call<'_>) -> Result<Value, ApiError> {
    let params = call.params;
    let names = params.list("InstanceTypes");
    let mut families = params.list("InstanceTypeFamilies");
    families.extend(params.given("InstanceTypeFamily"));
    for (name, list) in [("InstanceTypes", &names), ("InstanceTypeFamilies", &families)] {
        if list.len() > MAX_NAMES {
            return Err(ApiError::invalid(name));
        }
    }
    let least = params.number("MinimumGPUAmount", 1000)?.unwrap_or(0);
    let size = params.number("MaxResults", MAX_PAGE)?.unwrap_or(MAX_PAGE);
    let found = types::all().iter().filter(|facts| {
        (names.is_empty() || names.contains(&facts.name.as_str()))
            && (families.is_empty() || families.contains(&facts.family.as_str()))
            && usize::try_from(facts.gpu_amount).is_ok_and(|amount| amount >= least)
    });
    let mut found: Vec<(&str, &InstanceTypeFacts)> = found.map(|facts| (facts.name.as_str(), facts)).collect();
    found.sort_by_key(|(name, _)| *name);
    let token = params.given("NextToken");
    let page = by_token(found.into_iter(), size, token, &call.token_scope(), call.alteration)?;
    let rows = page.rows.into_iter().map(row).collect();
    let rows = spoilt(
        rows,
        call.alteration,
        "InstanceTypeId",
        &["CpuArchitecture", "InstanceCategory"],
    );
    let mut body = json!({"InstanceTypes": {"InstanceType": rows}});
    // Absent on the last page; the listing of instances has an empty text.
    if let Some(next) = page.next {
        set(&mut body, "NextToken", next);
    }
    Ok(body)
}

fn row(facts: &InstanceTypeFacts) -> Value {
    let category = match facts.cards {
        Some(cards) if cards < 1.0 => "Visual Compute-optimized",
        Some(_) => "Compute-optimized with GPU",
        None => "General-purpose",
    };
    let mut row = json!({
        "InstanceTypeId": facts.name,
        "InstanceTypeFamily": facts.family,
        "InstanceCategory": category,
        "InstanceFamilyLevel": "EnterpriseLevel",
        "CpuArchitecture": facts.architecture,
        "CpuCoreCount": facts.vcpus,
        "MemorySize": facts.memory_gib,
        "GPUAmount": facts.gpu_amount,
        "GPUSpec": facts.gpu_spec,
        "EniQuantity": 8,
        "LocalStorageCategory": "",
        "NvmeSupport": "unsupported",
    });
    if let Some(memory) = facts.gpu_memory_gib {
        set(&mut row, "GPUMemorySize", memory);
    }
    row
}
