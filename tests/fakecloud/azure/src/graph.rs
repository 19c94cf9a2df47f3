//! Resource Graph: the small part of its query language that a sensible
//! client of machines needs. What is not understood is refused, not ignored.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::page::page;
use crate::rows::{self, View};
use crate::world::Inner;

/// Most rows of a page.
const MAX_PAGE: u64 = 1000;

/// Answers a query.
pub(crate) fn resources(inner: &Inner, body: &Value, alteration: Option<FaultKind>) -> Result<Value, ArmError> {
    let query = body["query"]
        .as_str()
        .ok_or_else(|| ArmError::bad_request("Query is required."))?;
    let scope: Vec<&str> = body["subscriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if scope.is_empty() {
        return Err(ArmError::bad_request("At least one subscription is required."));
    }
    let options = &body["options"];
    let top = options["$top"].as_u64().unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&top) {
        return Err(ArmError::bad_request("$top must be from 1 to 1000."));
    }
    let mut steps = query.split('|').map(str::trim);
    let table = steps.next().unwrap_or_default();
    let mut found = rows_of(inner, table, &scope)?;
    let mut ordered = false;
    for step in steps {
        found = match step.split_once(' ') {
            Some(("where", condition)) => {
                let condition = Condition::parse(condition)?;
                found.into_iter().filter(|row| condition.holds(row)).collect()
            }
            Some(("project", columns)) => {
                let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
                if columns.iter().any(|column| !column.chars().all(char::is_alphanumeric)) {
                    return Err(unknown(step));
                }
                found.iter().map(|row| project(row, &columns)).collect()
            }
            Some(("order", "by id asc")) => {
                ordered = true;
                found.sort_by_key(|row| row["id"].as_str().unwrap_or_default().to_lowercase());
                found
            }
            _ => return Err(unknown(step)),
        };
    }
    let token = options["$skipToken"].as_str();
    let limit = usize::try_from(top).unwrap_or(usize::MAX);
    let page = page(found, limit, token, alteration).ok_or_else(|| ArmError::bad_request("Invalid skip token."))?;
    let cut = page.next.is_some();
    let mut answer = json!({
        "totalRecords": page.total,
        "count": page.rows.len(),
        "resultTruncated": if cut && !ordered { "true" } else { "false" },
        "data": page.rows,
        "facets": [],
    });
    // Without an order there is no place to go on from.
    if let (Some(next), true) = (page.next, ordered) {
        answer["$skipToken"] = json!(next);
    }
    Ok(answer)
}

fn unknown(step: &str) -> ArmError {
    ArmError::new(
        400,
        "InvalidQuery",
        format!("Query is invalid: '{step}' is not understood."),
    )
}

fn project(row: &Value, columns: &[&str]) -> Value {
    let kept = columns
        .iter()
        .filter_map(|column| Some(((*column).to_owned(), row.get(*column)?.clone())));
    kept.collect::<serde_json::Map<_, _>>().into()
}

/// The rows that the caller may see: subscriptions it has no role in are
/// silently not there.
fn rows_of(inner: &Inner, table: &str, scope: &[&str]) -> Result<Vec<Value>, ArmError> {
    let visible = inner.subscriptions.values().filter(|subscription| {
        scope.iter().any(|id| id.eq_ignore_ascii_case(&subscription.id))
            && !subscription.denied.contains("Microsoft.Compute/virtualMachines/read")
    });
    let mut found = Vec::new();
    for subscription in visible {
        match table {
            "Resources" => {
                let machines = subscription.machines.iter();
                found.extend(machines.map(|machine| rows::machine(&subscription.id, machine, View::Graph)));
                found.extend(subscription.sets.iter().map(|set| rows::scale_set(subscription, set)));
            }
            "ComputeResources" => {
                let uniform = subscription.sets.iter().filter(|set| !set.flexible);
                found.extend(uniform.flat_map(|set| rows::members(subscription, set, View::Graph)));
            }
            _ => return Err(unknown(table)),
        }
    }
    Ok(found)
}

/// One comparison of a column, or a path below one, with a text.
struct Condition<'q> {
    path: Vec<&'q str>,
    operator: &'q str,
    value: &'q str,
}

impl<'q> Condition<'q> {
    fn parse(text: &'q str) -> Result<Self, ArmError> {
        let mut parts = text.splitn(3, ' ');
        let (Some(path), Some(operator), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unknown(text));
        };
        let value = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let Some(value) = value.filter(|_| matches!(operator, "=~" | "startswith" | "contains")) else {
            return Err(unknown(text));
        };
        Ok(Self {
            path: path.split('.').collect(),
            operator,
            value,
        })
    }

    /// The comparisons of this language ignore case.
    fn holds(&self, row: &Value) -> bool {
        let found = self.path.iter().try_fold(row, |value, key| value.get(key));
        let Some(found) = found.and_then(Value::as_str).map(str::to_lowercase) else {
            return false;
        };
        let value = self.value.to_lowercase();
        match self.operator {
            "=~" => found == value,
            "startswith" => found.starts_with(&value),
            _ => found.contains(&value),
        }
    }
}
