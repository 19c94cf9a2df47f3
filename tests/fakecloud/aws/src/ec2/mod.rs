//! EC2: regions, instances, instance types and commitments.

mod capacity;
mod instance_types;
mod instances;
mod regions;
mod reserved;

use jiff::Timestamp;

use super::error::AwsError;
use super::page::PageRequest;
use super::params::{Filter, Params};
use super::service::Call;
use super::wildcard;
use super::xml::Xml;
use gpuwatch_fakecloud_core::FaultKind;

const VERSION: &str = "2016-11-15";
const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

pub(crate) fn answer(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    params.take("Action");
    let version = params.take("Version").unwrap_or_default();
    if version != VERSION {
        return Err(AwsError::new(
            "NoSuchVersion",
            400,
            format!("The requested version ({version}) does not exist."),
        ));
    }
    let dry_run = params.take_bool("DryRun")?;
    let answer = match call.operation {
        "DescribeRegions" => regions::describe(call, params),
        "DescribeInstances" => instances::describe(call, params),
        "DescribeInstanceTypes" => instance_types::describe(call, params),
        "DescribeReservedInstances" => reserved::describe(call, params),
        "DescribeCapacityReservations" => capacity::describe_reservations(call, params),
        "DescribeCapacityBlocks" => capacity::describe_blocks(call, params),
        "DescribeCapacityBlockStatus" => capacity::describe_block_status(call, params),
        other => {
            let message = format!("The action {other} is not valid for this web service.");
            Err(AwsError::new("InvalidAction", 400, message))
        }
    }?;
    if dry_run {
        let message = "Request would have succeeded, but DryRun flag is set.";
        return Err(AwsError::new("DryRunOperation", 412, message));
    }
    Ok(answer)
}

/// `<DescribeXResponse>` around the result's elements.
fn document(call: &Call<'_>, capacity: usize, inside: impl FnOnce(&mut Xml)) -> String {
    let mut xml = Xml::with_capacity(capacity);
    xml.root(&format!("{}Response", call.operation), NAMESPACE, |xml| {
        xml.text("requestId", call.request_id);
        inside(xml);
    });
    xml.finish()
}

/// The paging parameters. Take all other parameters that narrow the listing
/// only afterwards: the token is bound to them.
fn paging(call: &Call<'_>, params: &mut Params, least: usize, most: usize) -> Result<PageRequest, AwsError> {
    let fingerprint = params.fingerprint();
    let limit = params.take_number("MaxResults", least, most)?;
    let token = params.take("NextToken");
    PageRequest::new(limit, token.as_deref(), &call.token_scope(&fingerprint)).map_err(|_| {
        let message = format!("The token '{}' is invalid", token.unwrap_or_default());
        AwsError::new("InvalidNextToken", 400, message)
    })
}

/// Whether one of the filter's values matches one of the record's.
fn any_match(filter: &Filter, values: &[&str]) -> bool {
    filter
        .values
        .iter()
        .any(|pattern| values.iter().any(|value| wildcard::matches(pattern, value)))
}

/// Refuses filters that are not simulated, also where there is nothing to
/// filter, so that a client which relies on one does not pass unnoticed.
fn check_filters(filters: &[Filter], known: &[&str]) -> Result<(), AwsError> {
    let unknown = filters.iter().find(|filter| !known.contains(&filter.name.as_str()));
    unknown.map_or(Ok(()), |filter| {
        let message = format!("The filter '{}' is invalid", filter.name);
        Err(AwsError::new("InvalidParameterValue", 400, message))
    })
}

/// How an injected fault spoils one row of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoilt {
    No,
    /// An unknown word in the field that says what the thing is.
    Kind,
    /// An unknown word in the field that says how it is.
    State,
    /// No id: a row on top of the true ones.
    NoId,
}

/// The rows with what an injected fault makes of each.
fn spoilt<T: Clone>(rows: &[T], alteration: Option<FaultKind>) -> Vec<(T, Spoilt)> {
    let mut spoilt: Vec<(T, Spoilt)> = rows.iter().map(|row| (row.clone(), Spoilt::No)).collect();
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            for ((_, mark), how) in spoilt.iter_mut().zip([Spoilt::Kind, Spoilt::State]) {
                *mark = how;
            }
        }
        Some(FaultKind::MalformedRecord) => spoilt.extend(rows.first().map(|row| (row.clone(), Spoilt::NoId))),
        _ => {}
    }
    spoilt
}

fn time(xml: &mut Xml, name: &str, time: Timestamp) {
    xml.text(name, &time_text(time));
}

fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

fn tag_set(xml: &mut Xml, tags: &[(String, String)]) {
    if tags.is_empty() {
        return;
    }
    xml.list("tagSet", tags, |xml, (key, value)| {
        xml.text("key", key);
        xml.text("value", value);
    });
}
