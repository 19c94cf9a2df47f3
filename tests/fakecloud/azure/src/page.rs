//! Pages, and what faults make of them.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

/// Rows of one answer, and where the next one begins.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Value>,
    pub(crate) next: Option<String>,
    /// All rows of the listing.
    pub(crate) total: usize,
}

/// The page that `token` asks for: the position of its first row, and how many
/// pages there were before, so that endless tokens differ. `None` for a token
/// that was never given out.
pub(crate) fn page(all: Vec<Value>, limit: usize, token: Option<&str>, alteration: Option<FaultKind>) -> Option<Page> {
    let total = all.len();
    let (from, turn) = match token {
        None => (0, 0),
        Some(token) => {
            let (from, turn) = token.split_once('-')?;
            (from.parse::<usize>().ok()?, turn.parse::<usize>().ok()?)
        }
    };
    if from > total {
        return None;
    }
    if alteration == Some(FaultKind::EmptyPage) && turn == 0 {
        return Some(Page {
            rows: Vec::new(),
            next: Some("0-1".to_owned()),
            total,
        });
    }
    let mut rows: Vec<Value> = all.into_iter().skip(from).take(limit).collect();
    let end = from + rows.len();
    let next = match alteration {
        Some(FaultKind::EndlessToken) => Some(format!("{end}-{}", turn + 1)),
        Some(FaultKind::RepeatedToken) => Some("0-1".to_owned()),
        _ => (end < total).then(|| format!("{end}-{}", turn + 1)),
    };
    match alteration {
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => rows = rows.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        Some(FaultKind::MalformedRecord) => rows.push(json!({"name": 7, "properties": "none"})),
        Some(FaultKind::UnknownEnum) => {
            for row in rows.iter_mut().take(2) {
                if let Some(properties) = row.get_mut("properties").and_then(Value::as_object_mut) {
                    properties.insert("provisioningState".into(), json!("Contemplating"));
                    properties.insert("newProperty".into(), json!({"of": ["the", "future"]}));
                }
            }
        }
        _ => {}
    }
    Some(Page { rows, next, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(alteration: Option<FaultKind>) -> (usize, usize) {
        let all: Vec<Value> = (0..7).map(|n| json!({"id": n})).collect();
        let (mut token, mut rows, mut pages) = (None, 0, 0);
        loop {
            let page = page(all.clone(), 3, token.as_deref(), alteration).expect("a page");
            rows += page.rows.len();
            pages += 1;
            token = page.next;
            if token.is_none() || pages > 10 {
                return (rows, pages);
            }
        }
    }

    #[test]
    fn pages_hold_every_row_once() {
        assert_eq!(walk(None), (7, 3));
        assert_eq!(walk(Some(FaultKind::EmptyPage)), (7, 4));
        assert_eq!(walk(Some(FaultKind::DuplicateRows)), (14, 3));
        assert_eq!(walk(Some(FaultKind::EndlessToken)).1, 11);
        assert!(page(Vec::new(), 3, Some("x"), None).is_none());
        assert!(page(Vec::new(), 3, Some("9-1"), None).is_none());
    }
}
