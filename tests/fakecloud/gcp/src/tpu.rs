//! The Cloud TPU API.

use gpuwatch_fakecloud_core::FaultKind;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::page::{Cut, page};
use crate::route::Service;
use crate::service::Call;
use crate::world::{Inner, ProjectData, TpuNode};

/// Rows of a page at most; larger requests get this many.
const MAX_PAGE: usize = 1_000;

/// Rows of a page when none are asked for.
const USUAL_PAGE: usize = 100;

/// Answers a call to the Cloud TPU API.
pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    call.with_project(|inner, project| {
        call.params
            .only(&["pageSize", "pageToken", "filter", "returnPartialSuccess"])?;
        match call.route.operation {
            "nodes.list" => nodes(call, inner, project),
            _ => locations(call, inner, project),
        }
    })
}

fn nodes(call: &Call<'_>, inner: &Inner, project: &ProjectData) -> Result<Value, ApiError> {
    let place = call.route.place.as_str();
    if place != "-" && !inner.has_zone(place) {
        let message = format!("Location {place} is not found or access is unauthorized.");
        return Err(ApiError::not_found(message));
    }
    if inner.zones_down.contains(place) {
        return Err(ApiError::unavailable());
    }
    let asked = project.nodes.values().filter(|node| place == "-" || node.zone == place);
    let reachable = asked.filter(|node| !inner.zones_down.contains(&node.zone));
    let keyed = reachable.map(|node| (format!("{}\n{}", node.zone, node.name), node));
    let mut page = page(
        keyed,
        cut(call, inner)?,
        call.params.get("pageToken"),
        &call.token_scope(),
        call.alteration,
    )
    .map_err(|_| ApiError::bad_page_token(Service::Tpu))?;
    let mut lost: Vec<String> = inner.zones_down.iter().cloned().collect();
    if call.alteration == Some(FaultKind::PartialResult)
        && let Some(first) = page.rows.first().map(|node| node.zone.clone())
    {
        page.rows.retain(|node| node.zone != first);
        lost.push(first);
    }
    let mut rows: Vec<Value> = page.rows.iter().map(|node| row(project, node)).collect();
    alter(&mut rows, call.alteration);
    let mut answer = json!({ "nodes": rows });
    if let Some(fields) = answer.as_object_mut() {
        // Empty lists and texts are left out.
        fields.retain(|_, value| value.as_array().is_none_or(|rows| !rows.is_empty()));
        if let Some(next) = page.next {
            fields.insert("nextPageToken".to_owned(), Value::from(next));
        }
        if !lost.is_empty() && place == "-" {
            let names: Vec<String> = lost
                .iter()
                .map(|zone| format!("projects/{}/locations/{zone}", project.id))
                .collect();
            fields.insert("unreachable".to_owned(), json!(names));
        }
    }
    Ok(answer)
}

fn cut(call: &Call<'_>, inner: &Inner) -> Result<Cut, ApiError> {
    let asked = call.params.number("pageSize")?.filter(|size| *size > 0);
    Ok(inner.cut(asked.unwrap_or(USUAL_PAGE).min(MAX_PAGE)))
}

fn alter(rows: &mut Vec<Value>, alteration: Option<FaultKind>) {
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            for fields in rows.iter_mut().take(2).filter_map(Value::as_object_mut) {
                fields.insert("state".to_owned(), Value::from("BRAND_NEW"));
                fields.insert("health".to_owned(), Value::from("BRAND_NEW"));
            }
        }
        Some(FaultKind::MalformedRecord) => {
            if let Some(mut broken) = rows.first().cloned() {
                for field in ["name", "id"] {
                    broken.as_object_mut().map(|fields| fields.remove(field));
                }
                rows.push(broken);
            }
        }
        _ => {}
    }
}

fn row(project: &ProjectData, node: &TpuNode) -> Value {
    let spec = &node.spec;
    let endpoints: Vec<Value> = node
        .addresses
        .iter()
        .map(|address| json!({ "ipAddress": address, "port": 8470 }))
        .collect();
    let labels: Map<String, Value> = spec
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect();
    let config = spec
        .config
        .as_ref()
        .map(|(generation, topology)| json!({ "type": generation, "topology": topology }));
    let name = format!("projects/{}/locations/{}/nodes/{}", project.id, node.zone, node.name);
    let mut row = json!({
        "name": (!spec.without_name).then_some(name),
        "id": node.id,
        "acceleratorType": spec.accelerator_type,
        "acceleratorConfig": config,
        "state": spec.state,
        "health": "HEALTHY",
        "runtimeVersion": "tpu-ubuntu2204-base",
        "createTime": time(node.created),
        "networkEndpoints": endpoints,
        "labels": labels,
        "schedulingConfig": scheduling(node),
        "apiVersion": "V2",
        "multisliceNode": node.addresses.len() > 1,
    });
    // False, empty and unset fields are left out.
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|_, value| {
            let empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
            !(value.is_null() || *value == Value::Bool(false) || empty)
        });
    }
    row
}

fn scheduling(node: &TpuNode) -> Value {
    let spec = &node.spec;
    let set = [
        ("preemptible", spec.preemptible),
        ("spot", spec.spot),
        ("reserved", spec.reserved),
    ];
    let words = set.iter().filter(|(_, value)| *value);
    words
        .map(|(name, _)| ((*name).to_owned(), Value::Bool(true)))
        .collect::<Map<_, _>>()
        .into()
}

fn locations(call: &Call<'_>, inner: &Inner, project: &ProjectData) -> Result<Value, ApiError> {
    let mut zones: Vec<String> = inner.zones().collect();
    zones.sort();
    let keyed = zones.into_iter().map(|zone| (zone.clone(), zone));
    let token = call.params.get("pageToken");
    let page = page(keyed, cut(call, inner)?, token, &call.token_scope(), call.alteration)
        .map_err(|_| ApiError::bad_page_token(Service::Tpu))?;
    let rows: Vec<Value> = page
        .rows
        .iter()
        .map(|zone| {
            json!({
                "name": format!("projects/{}/locations/{zone}", project.id),
                "locationId": zone,
            })
        })
        .collect();
    let mut answer = json!({ "locations": rows });
    if let (Some(fields), Some(next)) = (answer.as_object_mut(), page.next) {
        fields.insert("nextPageToken".to_owned(), Value::from(next));
    }
    Ok(answer)
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()
}
