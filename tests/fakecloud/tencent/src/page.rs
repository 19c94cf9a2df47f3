//! Pages by offset, and what faults make of them.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

use crate::error::ApiError;

/// The rows at `Offset`, at most `Limit` of them, and the total.
pub(crate) fn page(
    rows: Vec<Value>,
    body: &Value,
    largest: u64,
    alteration: Option<FaultKind>,
) -> Result<(Vec<Value>, u64), ApiError> {
    let number = |name: &str, default: u64| match &body[name] {
        Value::Null => Ok(default),
        value => value.as_u64().ok_or_else(|| {
            ApiError::new(
                "InvalidParameter",
                format!("The value of {name} is not a valid integer."),
            )
        }),
    };
    let (offset, limit) = (number("Offset", 0)?, number("Limit", 20)?);
    if limit == 0 || limit > largest {
        let message = format!("The value of Limit must be from 1 to {largest}.");
        return Err(ApiError::new("InvalidParameterValue.Range", message));
    }
    let total = rows.len() as u64;
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let mut kept: Vec<Value> = rows
        .into_iter()
        .skip(skipped)
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .collect();
    let mut stated = total;
    match alteration {
        Some(FaultKind::ReorderedRows) => kept.reverse(),
        Some(FaultKind::DuplicateRows) => kept = kept.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        Some(FaultKind::MalformedRecord) => kept.push(json!("no record")),
        // There are no tokens: a total that is always ahead has the same effect.
        Some(FaultKind::EndlessToken | FaultKind::RepeatedToken) => stated = offset + limit + 1,
        _ => {}
    }
    Ok((kept, stated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_every_row_once_and_no_more_than_allowed() {
        let rows = || (0..7).map(|n| json!(n)).collect::<Vec<Value>>();
        let one = |offset: u64| page(rows(), &json!({"Offset": offset, "Limit": 3}), 100, None).expect("a page");
        let all: Vec<Value> = [0, 3, 6, 9].into_iter().flat_map(|offset| one(offset).0).collect();
        assert_eq!(all, rows());
        assert!(page(rows(), &json!({"Limit": 101}), 100, None).is_err());
        assert!(page(rows(), &json!({"Limit": "3"}), 100, None).is_err());
        assert_eq!(page(rows(), &json!({}), 100, None).expect("a page").0.len(), 7);
    }
}
