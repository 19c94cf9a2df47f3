//! `/sd`: every running instance as a scrape target, for Prometheus' HTTP
//! service discovery. A scrape of an exporter on the instance then carries the
//! identity by itself, and nothing has to be guessed to join the two.

use std::collections::BTreeMap;

use axum::{
    extract::{RawQuery, State},
    response::{IntoResponse, Json, Response},
};
use gpuwatch_inventory::{Instance, State as InstanceState};
use http::StatusCode;
use serde::Serialize;
use url::form_urlencoded;

use super::routes::App;
use crate::filter::Filters;

/// Where dcgm-exporter listens.
const DEFAULT_PORT: u16 = 9400;

/// One target group, in the form of `http_sd_configs`.
#[derive(Debug, PartialEq, Serialize)]
pub struct Group<'a> {
    targets: [String; 1],
    /// Labels without `__meta_` stay on the series.
    labels: BTreeMap<&'static str, &'a str>,
}

/// Which targets, and at which port.
#[derive(Debug)]
struct Wanted {
    port: u16,
    filters: Filters,
}

pub(super) async fn targets(State(app): State<App>, RawQuery(query): RawQuery) -> Response {
    let wanted = match wanted(query.as_deref().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(problem) => return (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    };
    let published = app.published.load();
    if let Err(reason) = published.readiness() {
        // An empty list would make Prometheus drop the targets that it has.
        let text = format!("the fleet is not known yet: {reason}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    }
    let instances = published.snapshot.instances.iter().map(|instance| &**instance);
    let groups: Vec<Group<'_>> = instances
        .filter(|instance| instance.state == InstanceState::Running && wanted.filters.matches(instance))
        .filter_map(|instance| group(instance, wanted.port))
        .collect();
    Json(groups).into_response()
}

/// An instance's target; `None` when nobody knows where it is.
fn group(instance: &Instance, port: u16) -> Option<Group<'_>> {
    // Azure does not list addresses with machines; their names resolve inside
    // the network.
    let host = [&instance.private_address, &instance.private_host]
        .into_iter()
        .find(|host| !host.is_empty())?;
    let target = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let accelerators = &instance.accelerators;
    let labels = [
        ("provider", instance.provider.as_str()),
        ("account", &instance.account),
        ("region", &instance.region),
        ("instance_id", &instance.id),
        ("__meta_gpuwatch_account_name", &instance.account_name),
        ("__meta_gpuwatch_zone", &instance.zone),
        ("__meta_gpuwatch_name", &instance.name),
        ("__meta_gpuwatch_instance_type", &instance.instance_type),
        ("__meta_gpuwatch_billing_mode", instance.billing.mode.as_str()),
        (
            "__meta_gpuwatch_gpu_vendor",
            accelerators.vendor.as_ref().map_or("", |vendor| vendor.as_str()),
        ),
        ("__meta_gpuwatch_gpu_model", &accelerators.model),
        ("__meta_gpuwatch_owner", &instance.owner),
        ("__meta_gpuwatch_cluster", &instance.cluster),
        ("__meta_gpuwatch_private_address", &instance.private_address),
        ("__meta_gpuwatch_private_host", &instance.private_host),
    ];
    Some(Group {
        targets: [target],
        labels: labels.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
    })
}

/// Reads `?port=9400&provider=aws&gpu_vendor=…`: the filters of the command
/// line, each of which may be repeated or hold several values.
fn wanted(query: &str) -> Result<Wanted, String> {
    let mut wanted = Wanted {
        port: DEFAULT_PORT,
        filters: Filters::default(),
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        for value in value.split(',').filter(|value| !value.is_empty()) {
            let text = || value.to_owned();
            let filters = &mut wanted.filters;
            match &*name {
                "port" => {
                    let port = value.parse().ok().filter(|port| *port > 0);
                    wanted.port = port.ok_or_else(|| format!("port: {value:?} is not a port, write 1 to 65535"))?;
                }
                "provider" => filters
                    .provider
                    .push(value.parse().map_err(|error| format!("provider: {error}"))?),
                "account" => filters.account.push(text()),
                "region" => filters.region.push(text()),
                "gpu_model" | "gpu-model" => filters.gpu_model.push(text()),
                "billing_mode" | "billing-mode" => {
                    filters
                        .billing_mode
                        .push(value.parse().map_err(|error| format!("billing_mode: {error}"))?);
                }
                "owner" => filters.owner.push(text()),
                "state" => filters
                    .state
                    .push(value.parse().map_err(|error| format!("state: {error}"))?),
                other => {
                    return Err(format!(
                        "{other:?} is not a parameter; there are port, provider, account, region, gpu_model, \
                         billing_mode, owner, state"
                    ));
                }
            }
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_command_line_and_a_wrong_one_is_told() {
        let read = wanted("port=9835&provider=aws,gcp&owner=%E7%AE%97%E6%B3%95&owner=b").expect("valid");
        assert_eq!((read.port, read.filters.provider.len()), (9835, 2));
        assert_eq!(read.filters.owner, ["算法", "b"]);
        for (query, part) in [
            ("port=0", "1 to 65535"),
            ("port=x", "1 to 65535"),
            ("provider=amazon", "expected one of: aws"),
            ("prot=1", "there are port, provider"),
        ] {
            let problem = wanted(query).expect_err("wrong");
            assert!(problem.contains(part), "{problem}");
        }
    }
}
