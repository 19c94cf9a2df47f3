//! `DescribeRegions`.

use super::super::error::AwsError;
use super::super::page::altered;
use super::super::params::Params;
use super::super::service::Call;
use super::super::world::{OptIn, Region};
use super::{Spoilt, any_match, check_filters, document, spoilt};

const FILTERS: &[&str] = &["endpoint", "opt-in-status", "region-name"];

pub(super) fn describe(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let all = params.take_bool("AllRegions")?;
    let names = params.take_list("RegionName");
    let filters = params.take_filters()?;
    params.finish()?;
    check_filters(&filters, FILTERS)?;

    let inner = call.world.read();
    if let Some(unknown) = names
        .iter()
        .find(|name| !inner.regions.iter().any(|region| region.name == **name))
    {
        let message = format!("Invalid region names: [{unknown}]");
        return Err(AwsError::new("InvalidParameterValue", 400, message));
    }
    let mut rows = Vec::new();
    for region in &inner.regions {
        let enabled = inner.opted_in(&call.caller.account, region);
        let status = match (region.opt_in, enabled) {
            (OptIn::NotRequired, _) => "opt-in-not-required",
            (OptIn::Required, true) => "opted-in",
            (OptIn::Required, false) => "not-opted-in",
        };
        let endpoint = endpoint(call, region);
        let mut passes = (all || enabled) && (names.is_empty() || names.contains(&region.name));
        for filter in &filters {
            let value = match filter.name.as_str() {
                "opt-in-status" => status,
                "region-name" => &region.name,
                _ => &endpoint,
            };
            passes &= any_match(filter, &[value]);
        }
        if passes {
            rows.push((region, status, endpoint));
        }
    }
    let rows = altered(rows, call.alteration);
    Ok(document(call, 8192, |xml| {
        xml.tag("regionInfo", |xml| {
            for ((region, status, endpoint), spoilt) in spoilt(&rows, call.alteration) {
                xml.tag("item", |xml| {
                    if spoilt != Spoilt::NoId {
                        xml.text("regionName", &region.name);
                    }
                    xml.text("regionEndpoint", &endpoint);
                    xml.text("optInStatus", if spoilt == Spoilt::Kind { "foo" } else { status });
                });
            }
        });
    }))
}

fn endpoint(call: &Call<'_>, region: &Region) -> String {
    format!("ec2.{}.{}", region.name, call.world.partition().dns_suffix())
}
