//! Projects, folders and organizations.

use gpuwatch_fakecloud_core::FaultKind;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::page::page;
use crate::route::Service;
use crate::service::Call;
use crate::world::{Inner, ProjectData, ProjectState};

/// Rows of a page at most, also when none are asked for.
const MAX_PAGE: usize = 300;

/// Answers a call to the resource manager.
pub(crate) fn answer(call: &Call<'_>) -> Result<Value, ApiError> {
    let inner = call.world.read();
    let inner = &*inner;
    match call.route.operation {
        "projects.get" => get_project(call, inner),
        "projects.list" => {
            call.params.only(&["parent", "pageSize", "pageToken", "showDeleted"])?;
            let parent = parent(call, inner)?;
            let deleted = call.params.get("showDeleted") == Some("true");
            let rows = inner.projects.values().filter(|project| {
                let here = project.spec.parent.as_deref() == Some(parent);
                here && (deleted || project.spec.state == ProjectState::Active)
            });
            list(call, inner, "projects", rows.map(keyed))
        }
        "projects.search" => {
            call.params.only(&["query", "pageSize", "pageToken"])?;
            let query = Query::parse(call)?;
            let rows = inner.projects.values().filter(|project| {
                // Without the permission a project is as if it were not there.
                let visible = !inner.identity.denies(&project.id, call.route.permission);
                visible && query.accepts_project(project)
            });
            list(call, inner, "projects", rows.map(keyed))
        }
        "folders.list" => {
            call.params.only(&["parent", "pageSize", "pageToken", "showDeleted"])?;
            let parent = parent(call, inner)?;
            list(call, inner, "folders", folders(inner, Some(parent)))
        }
        "folders.search" => {
            call.params.only(&["query", "pageSize", "pageToken"])?;
            list(call, inner, "folders", folders(inner, None))
        }
        _ => {
            call.params.only(&["query", "pageSize", "pageToken"])?;
            let visible = inner.organizations.iter().filter(|(number, _)| {
                let resource = format!("organizations/{number}");
                !inner.identity.denies(&resource, call.route.permission)
            });
            let rows = visible.map(|(number, name)| {
                let value = json!({
                    "name": format!("organizations/{number}"),
                    "displayName": name,
                    "state": "ACTIVE",
                    "directoryCustomerId": "C00000000",
                    "etag": "W/\"0\"",
                });
                (number.clone(), value)
            });
            list(call, inner, "organizations", rows)
        }
    }
}

fn get_project(call: &Call<'_>, inner: &Inner) -> Result<Value, ApiError> {
    let name = &call.route.subject;
    let permission = call.route.permission;
    let found = inner.project(name);
    // One that does not exist cannot be told from one that may not be seen.
    let visible = found.filter(|project| !inner.identity.denies(&project.id, permission));
    let project =
        visible.ok_or_else(|| ApiError::denied(Service::ResourceManager, &format!("projects/{name}"), permission))?;
    Ok(project_row(project))
}

/// The folder or organization whose children are asked for.
fn parent<'a>(call: &'a Call<'_>, inner: &Inner) -> Result<&'a str, ApiError> {
    let parent = call.params.get("parent").unwrap_or_default();
    let permission = call.route.permission;
    let known = match parent.split_once('/') {
        Some(("folders", number)) => inner.folders.contains_key(number),
        Some(("organizations", number)) => inner.organizations.contains_key(number),
        _ => {
            let message = format!("Request contains an invalid argument: parent '{parent}'.");
            return Err(ApiError::invalid(message));
        }
    };
    if !known || inner.identity.denies(parent, permission) {
        return Err(ApiError::denied(Service::ResourceManager, parent, permission));
    }
    Ok(parent)
}

/// One page of rows, each with the key that orders them.
fn list(
    call: &Call<'_>,
    inner: &Inner,
    field: &'static str,
    rows: impl Iterator<Item = (String, Value)>,
) -> Result<Value, ApiError> {
    let asked = call.params.number("pageSize")?.filter(|size| *size > 0);
    let cut = inner.cut(asked.unwrap_or(MAX_PAGE).min(MAX_PAGE));
    let token = call.params.get("pageToken");
    let mut page = page(rows, cut, token, &call.token_scope(), call.alteration)
        .map_err(|_| ApiError::bad_page_token(Service::ResourceManager))?;
    if call.alteration == Some(FaultKind::MalformedRecord)
        && let Some(mut broken) = page.rows.first().cloned()
    {
        for field in ["name", "projectId"] {
            broken.as_object_mut().map(|fields| fields.remove(field));
        }
        page.rows.push(broken);
    }
    let mut answer = Map::new();
    if !page.rows.is_empty() {
        answer.insert(field.to_owned(), Value::Array(page.rows));
    }
    if let Some(next) = page.next {
        answer.insert("nextPageToken".to_owned(), Value::from(next));
    }
    Ok(answer.into())
}

fn keyed(project: &ProjectData) -> (String, Value) {
    (project.id.clone(), project_row(project))
}

fn project_row(project: &ProjectData) -> Value {
    let labels: Map<String, Value> = project
        .spec
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .collect();
    let ended = (project.spec.state == ProjectState::DeleteRequested)
        .then(|| (project.made + SignedDuration::from_hours(24)).to_string());
    let mut row = json!({
        "name": format!("projects/{}", project.number),
        "parent": project.spec.parent,
        "projectId": project.id,
        "state": project.spec.state.as_str(),
        "displayName": project.display_name(),
        "createTime": project.made.to_string(),
        "updateTime": project.made.to_string(),
        "etag": "W/\"0\"",
        "labels": labels,
        "deleteTime": ended,
    });
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|labels| !labels.is_empty()));
    }
    row
}

/// Folders, directly below `parent` or all of them.
fn folders<'a>(inner: &'a Inner, parent: Option<&'a str>) -> impl Iterator<Item = (String, Value)> {
    let asked = inner
        .folders
        .iter()
        .filter(move |(_, folder)| parent.is_none_or(|parent| folder.parent == parent));
    asked.map(|(number, folder)| {
        let value = json!({
            "name": format!("folders/{number}"),
            "parent": folder.parent,
            "displayName": folder.name,
            "state": "ACTIVE",
            "etag": "W/\"0\"",
        });
        (number.clone(), value)
    })
}

/// A search: several fields are alternatives, as the real service has it.
struct Query {
    terms: Vec<(String, String)>,
}

impl Query {
    fn parse(call: &Call<'_>) -> Result<Self, ApiError> {
        let text = call.params.get("query").unwrap_or_default();
        let mut terms = Vec::new();
        for term in text.split_whitespace().filter(|term| *term != "OR") {
            let (field, value) = term
                .split_once([':', '='])
                .ok_or_else(|| ApiError::invalid(format!("Invalid query: '{text}'.")))?;
            let known = ["state", "parent", "id", "projectId", "displayName", "name"];
            if !known.contains(&field) && !field.starts_with("labels.") {
                return Err(ApiError::invalid(format!("Invalid field '{field}' in the query.")));
            }
            terms.push((field.to_owned(), value.trim_matches('"').to_owned()));
        }
        Ok(Self { terms })
    }

    fn accepts_project(&self, project: &ProjectData) -> bool {
        self.terms.is_empty() || self.terms.iter().any(|(field, value)| has(project, field, value))
    }
}

fn has(project: &ProjectData, field: &str, value: &str) -> bool {
    let text = match field {
        "state" => project.spec.state.as_str(),
        "parent" => project.spec.parent.as_deref().unwrap_or_default(),
        "displayName" | "name" => project.display_name(),
        "id" | "projectId" => &project.id,
        _ => {
            let key = field.trim_start_matches("labels.");
            let label = project.spec.labels.iter().find(|(name, _)| name == key);
            return label.is_some_and(|(_, found)| value == "*" || found == value);
        }
    };
    match value.split_once('*') {
        Some((start, _)) => text.starts_with(start),
        None => text == value,
    }
}
