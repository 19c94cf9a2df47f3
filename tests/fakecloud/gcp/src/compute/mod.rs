//! Compute Engine: lists of one place, and aggregated lists of a project.

mod capacity;
mod filter;
mod instances;
mod places;
mod types;

use std::rc::Rc;

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::page::{Page, page};
use crate::route::Service;
use crate::service::Call;
use crate::world::{Inner, ProjectData};
use filter::Filter;

/// Rows of a page at most, also when none are asked for.
const MAX_RESULTS: usize = 500;

/// What links in answers begin with.
const BASE: &str = "https://www.googleapis.com/compute/v1";

/// Something that can be listed.
#[derive(Clone)]
struct Item<'a> {
    /// `zones/us-central1-a`, `regions/us-central1`.
    scope: String,
    name: String,
    /// Renders it: only what is on a page is worth that.
    render: Rc<dyn Fn() -> Value + 'a>,
}

impl<'a> Item<'a> {
    fn new(scope: String, name: &str, render: impl Fn() -> Value + 'a) -> Self {
        Self {
            scope,
            name: name.to_owned(),
            render: Rc::new(render),
        }
    }
}

/// One row of a page.
#[derive(Debug, Clone)]
struct Row {
    scope: String,
    value: Value,
}

/// A listing before it is cut into pages.
struct Listing<'a> {
    /// The field of a scope that holds its rows (`instances`).
    field: &'static str,
    /// `compute#instance`.
    kind: &'static str,
    /// Ordered by scope and name.
    items: Vec<Item<'a>>,
    /// Fields that hold words which may become unknown.
    words: &'static [&'static str],
}

/// Answers a call to Compute Engine.
pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    let route = call.route;
    let (resource, method) = route.operation.split_once('.').unwrap_or_default();
    call.with_project(|inner, project| match method {
        "get" => Ok(project_of(project)),
        "aggregatedList" => aggregated(call, inner, project, &listing(inner, project, resource)),
        _ => plain(call, inner, project, listing(inner, project, resource)),
    })
}

fn listing<'a>(inner: &'a Inner, project: &'a ProjectData, resource: &str) -> Listing<'a> {
    match resource {
        "instances" => instances::listing(inner, project),
        "machineTypes" => types::machine_types(inner, project),
        "acceleratorTypes" => types::accelerator_types(inner, project),
        "reservations" => capacity::reservations(inner, project),
        "futureReservations" => capacity::future_reservations(inner, project),
        "regionCommitments" => capacity::commitments(inner, project),
        "regions" => places::regions(inner, project),
        _ => places::zones(inner, project),
    }
}

fn project_of(project: &ProjectData) -> Value {
    json!({
        "kind": "compute#project",
        "id": project.number,
        "name": project.id,
        "defaultServiceAccount": format!("{}-compute@developer.gserviceaccount.com", project.number),
        "selfLink": format!("{BASE}/projects/{}", project.id),
    })
}

/// A list over all zones or regions of a project.
fn aggregated(call: &Call<'_>, inner: &Inner, project: &ProjectData, listing: &Listing<'_>) -> Result<Value, ApiError> {
    let down: Vec<String> = inner.zones_down.iter().map(|zone| format!("zones/{zone}")).collect();
    let zonal = listing.field != "commitments";
    if zonal && inner.outages_fail && !down.is_empty() {
        return Err(ApiError::unavailable());
    }
    let reachable = listing.items.iter().filter(|item| !down.contains(&item.scope));
    let mut page = cut(call, inner, reachable.cloned().collect())?;
    let mut lost: Vec<String> = if zonal { down } else { Vec::new() };
    if call.alteration == Some(FaultKind::PartialResult)
        && let Some(first) = page.rows.first().map(|row| row.scope.clone())
    {
        page.rows.retain(|row| row.scope != first);
        lost.push(first);
    }
    alter(&mut page.rows, listing, call.alteration);
    let mut items = Map::new();
    for row in page.rows {
        let scoped = items.entry(row.scope).or_insert_with(|| json!({}));
        push(scoped, listing.field, row.value);
    }
    for scope in scopes(inner, zonal) {
        let warning = if lost.contains(&scope) {
            json!({
                "code": "UNREACHABLE",
                "message": format!("The scope '{scope}' is temporarily unreachable."),
                "data": [{ "key": "scope", "value": scope }],
            })
        } else {
            json!({
                "code": "NO_RESULTS_ON_PAGE",
                "message": format!("There are no results for scope '{scope}' on this page."),
                "data": [{ "key": "scope", "value": scope }],
            })
        };
        items.entry(scope).or_insert_with(|| json!({ "warning": warning }));
    }
    let kind = format!("{}AggregatedList", listing.kind);
    let mut answer = json!({
        "kind": kind,
        "id": format!("projects/{}/aggregated/{}", project.id, listing.field),
        "items": items,
        "selfLink": format!("{BASE}/projects/{}/aggregated/{}", project.id, listing.field),
    });
    set(&mut answer, "nextPageToken", page.next);
    if !lost.is_empty() {
        let names: Vec<String> = lost
            .iter()
            .map(|scope| format!("projects/{}/{scope}", project.id))
            .collect();
        set(&mut answer, "unreachables", Some(names));
    }
    Ok(answer)
}

/// A list of one place, or of the places themselves.
fn plain(call: &Call<'_>, inner: &Inner, project: &ProjectData, mut listing: Listing<'_>) -> Result<Value, ApiError> {
    let place = call.route.place.as_str();
    if !place.is_empty() {
        let is_region = listing.field == "commitments";
        let (known, what) = if is_region {
            (inner.regions.iter().any(|region| region.name == place), "regions")
        } else {
            (inner.has_zone(place), "zones")
        };
        if !known {
            let name = format!("projects/{}/{what}/{place}", project.id);
            let message = format!(
                "Invalid value for field '{}': '{place}'. Unknown {what} '{name}'.",
                &what
            );
            return Err(ApiError::new(400, "", "invalid", message));
        }
        if inner.zones_down.contains(place) {
            return Err(ApiError::unavailable());
        }
        let scope = format!("{what}/{place}");
        listing.items.retain(|item| item.scope == scope);
    }
    let mut page = cut(call, inner, std::mem::take(&mut listing.items))?;
    alter(&mut page.rows, &listing, call.alteration);
    let mut answer = json!({
        "kind": format!("{}List", listing.kind),
        "id": format!("projects/{}/{}", project.id, listing.field),
        "selfLink": format!("{BASE}/projects/{}/{}", project.id, listing.field),
    });
    let mut rows: Vec<Value> = page.rows.into_iter().map(|row| row.value).collect();
    // A list of one place has no other way to be incomplete; its page then
    // lacks a row and says so.
    if call.alteration == Some(FaultKind::PartialResult) && rows.pop().is_some() {
        let warning = json!({
            "code": "PARTIAL_SUCCESS",
            "message": "Some of the requested resources could not be read.",
        });
        set(&mut answer, "warning", Some(warning));
    }
    // The real service leaves an empty list out.
    set(&mut answer, "items", (!rows.is_empty()).then_some(rows));
    set(&mut answer, "nextPageToken", page.next);
    Ok(answer)
}

/// The page that the call asks for.
fn cut(call: &Call<'_>, inner: &Inner, items: Vec<Item<'_>>) -> Result<Page<Row>, ApiError> {
    let asked = call.params.number("maxResults")?.unwrap_or(MAX_RESULTS);
    if asked > MAX_RESULTS {
        let message = format!(
            "Invalid value for field 'maxResults': '{asked}'. Values must be within the range: [0, {MAX_RESULTS}]"
        );
        return Err(ApiError::new(400, "", "invalid", message));
    }
    let cut = inner.cut(if asked == 0 { MAX_RESULTS } else { asked });
    let filter = call.params.get("filter").map(Filter::parse).transpose()?;
    let kept = items
        .into_iter()
        .filter(|item| filter.as_ref().is_none_or(|filter| filter.accepts(&(item.render)())));
    let keyed = kept.map(|item| (format!("{}\n{}", item.scope, item.name), item));
    let token = call.params.get("pageToken");
    let page = page(keyed, cut, token, &call.token_scope(), call.alteration)
        .map_err(|_| ApiError::bad_page_token(Service::Compute))?;
    let rows = page.rows.iter().map(|item| Row {
        scope: item.scope.clone(),
        value: (item.render)(),
    });
    Ok(Page {
        rows: rows.collect(),
        next: page.next,
    })
}

/// The alterations that know what a row is.
fn alter(rows: &mut Vec<Row>, listing: &Listing<'_>, alteration: Option<FaultKind>) {
    match alteration {
        Some(FaultKind::UnknownEnum) => {
            for row in rows.iter_mut().take(2) {
                for path in listing.words {
                    replace(&mut row.value, path);
                }
            }
        }
        Some(FaultKind::MalformedRecord) => {
            if let Some(mut broken) = rows.first().cloned() {
                for field in ["id", "name", "selfLink"] {
                    broken.value.as_object_mut().map(|fields| fields.remove(field));
                }
                rows.push(broken);
            }
        }
        _ => {}
    }
}

/// Puts a word that no client knows in place of one that is there.
fn replace(value: &mut Value, path: &str) {
    let target = path
        .split('.')
        .try_fold(value, |value, name| value.as_object_mut()?.get_mut(name));
    if let Some(target) = target {
        *target = Value::from("BRAND_NEW");
    }
}

/// Every place that an aggregated list speaks of.
fn scopes(inner: &Inner, zonal: bool) -> Vec<String> {
    if zonal {
        return inner.zones().map(|zone| format!("zones/{zone}")).collect();
    }
    let regions = inner.regions.iter();
    regions.map(|region| format!("regions/{}", region.name)).collect()
}

fn push(scoped: &mut Value, field: &str, row: Value) {
    let list = scoped
        .as_object_mut()
        .map(|fields| fields.entry(field).or_insert_with(|| json!([])));
    if let Some(Value::Array(list)) = list {
        list.push(row);
    }
}

/// Sets a field, or leaves it out.
fn set<T: Into<Value>>(target: &mut Value, field: &str, value: Option<T>) {
    if let (Some(fields), Some(value)) = (target.as_object_mut(), value) {
        fields.insert(field.to_owned(), value.into());
    }
}

/// Links to things of a project.
fn link(project: &str, rest: &str) -> String {
    format!("{BASE}/projects/{project}/{rest}")
}

/// A stable id for something that only has a name.
fn id_of(text: &str) -> String {
    (gpuwatch_fakecloud_core::random::fnv1a(text.as_bytes()) >> 1).to_string()
}

/// A time as Compute Engine writes it: in California, winter and summer alike
/// here, with the zone's offset.
fn time(at: jiff::Timestamp) -> String {
    let zoned = at.to_zoned_datetime(jiff::tz::TimeZone::fixed(jiff::tz::offset(-8)));
    zoned.strftime("%Y-%m-%dT%H:%M:%S.%3f%:z").to_string()
}
