//! Pages, and what faults make of them.

use gpuwatch_fakecloud_core::FaultKind;
use serde_json::{Value, json};

/// A row of a listing, made when a page has it.
pub(crate) type Row<'a> = Box<dyn Fn() -> Value + 'a>;

/// Rows that are made of these items when a page has them.
pub(crate) fn rows<'a, T: 'a>(
    items: impl IntoIterator<Item = T>,
    show: impl Fn(&T) -> Value + Clone + 'a,
) -> Vec<Row<'a>> {
    let row = |item: T| -> Row<'a> {
        let show = show.clone();
        Box::new(move || show(&item))
    };
    items.into_iter().map(row).collect()
}

/// Rows of one answer.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Value>,
    /// Token of the next page.
    pub(crate) next: Option<String>,
    /// All rows of the listing.
    pub(crate) total: usize,
}

/// A listing, of which a token remembers the place: what was asked for, as a
/// number. A token of another listing has no page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) asked: u64,
    pub(crate) limit: usize,
    pub(crate) token: Option<&'a str>,
}

impl Listing<'_> {
    /// Position of the page's first row, and the number of pages before it, by
    /// which endless tokens differ.
    fn place(&self) -> Option<(usize, u64)> {
        let Some(token) = self.token else {
            return Some((0, 0));
        };
        let (asked, place) = token.split_once('-')?;
        let (from, turn) = place.split_once('-')?;
        let is_own = u64::from_str_radix(asked, 16) == Ok(self.asked);
        is_own.then_some((from.parse().ok()?, turn.parse().ok()?))
    }

    fn token_at(&self, from: usize, turn: u64) -> String {
        format!("{:016x}-{from}-{turn}", self.asked)
    }
}

/// What a listing shows of a row beyond its model, when it is asked for.
const EXPANSIONS: [&str; 2] = ["instanceView", "utilization"];

/// A page of a listing; `None` for a token that was not given out for it.
pub(crate) fn page(all: &[Row<'_>], listing: &Listing<'_>, alteration: Option<FaultKind>) -> Option<Page> {
    let total = all.len();
    let (from, turn) = listing.place()?;
    if from > total {
        return None;
    }
    if alteration == Some(FaultKind::EmptyPage) && turn == 0 {
        return Some(Page {
            rows: Vec::new(),
            next: Some(listing.token_at(0, 1)),
            total,
        });
    }
    let mut rows: Vec<Value> = all.iter().skip(from).take(listing.limit).map(|row| row()).collect();
    let end = from + rows.len();
    let next = match alteration {
        Some(FaultKind::EndlessToken) => Some(listing.token_at(end, turn + 1)),
        Some(FaultKind::RepeatedToken) => Some(listing.token_at(0, 1)),
        _ => (end < total).then(|| listing.token_at(end, turn + 1)),
    };
    alter(&mut rows, alteration);
    Some(Page { rows, next, total })
}

fn alter(rows: &mut Vec<Value>, alteration: Option<FaultKind>) {
    match alteration {
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => *rows = rows.drain(..).flat_map(|row| [row.clone(), row]).collect(),
        Some(FaultKind::MalformedRecord) => rows.push(json!({"name": 7, "properties": "none"})),
        Some(FaultKind::UnknownEnum) => {
            for row in rows.iter_mut().take(2) {
                with_unknown_words(row);
            }
        }
        // A listing of this cloud has all rows or fails. What may be missing
        // is what was to be expanded.
        Some(FaultKind::PartialResult) => rows.iter_mut().step_by(2).for_each(without_expansions),
        _ => {}
    }
}

/// Puts a word that no client knows wherever a row has one of a closed list,
/// and a property that no client knows.
fn with_unknown_words(row: &mut Value) {
    let word = json!("Contemplating");
    if let Some(properties) = row.get_mut("properties").and_then(Value::as_object_mut) {
        if let Some(priority) = properties.get_mut("priority") {
            *priority = word.clone();
        }
        properties.insert("provisioningState".into(), word.clone());
        properties.insert("newProperty".into(), json!({"of": ["the", "future"]}));
    }
    if let Some(state) = row.get_mut("state") {
        *state = word.clone();
    }
    if let Some(metadata) = row.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("category".into(), word.clone());
    }
    if let Some(restrictions) = row.get_mut("restrictions") {
        *restrictions = json!([{"type": word, "values": [], "reasonCode": word}]);
    }
}

/// Takes away what a row shows beyond its model.
pub(crate) fn without_expansions(row: &mut Value) {
    if let Some(properties) = row.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|key, _| !EXPANSIONS.contains(&key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(asked: u64) -> Listing<'static> {
        Listing {
            asked,
            limit: 3,
            token: None,
        }
    }

    fn walk(alteration: Option<FaultKind>) -> (usize, usize) {
        let all = rows(0..7, |n| json!({ "id": n }));
        let (mut token, mut rows, mut pages) = (None::<String>, 0, 0);
        loop {
            let listing = Listing {
                token: token.as_deref(),
                ..first(5)
            };
            let page = page(&all, &listing, alteration).expect("a page");
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
        assert_eq!(walk(Some(FaultKind::RepeatedToken)).1, 11);
    }

    #[test]
    fn tokens_are_good_for_their_own_listing() {
        let all = rows(0..7, |_| json!({}));
        let token = page(&all, &first(5), None).expect("a page").next.expect("more");
        for (asked, text, there) in [
            (5, token.as_str(), true),
            (6, token.as_str(), false),
            (5, "x", false),
            (5, "0000000000000005-9-1", false),
            (5, "0000000000000005-1", false),
        ] {
            let listing = Listing {
                token: Some(text),
                ..first(asked)
            };
            assert_eq!(page(&all, &listing, None).is_some(), there, "{asked} {text}");
        }
    }

    #[test]
    fn what_was_to_be_expanded_can_be_missing() {
        let mut rows = vec![json!({"properties": {"instanceView": {}, "utilization": {}, "vmId": "1"}}); 2];
        alter(&mut rows, Some(FaultKind::PartialResult));
        assert_eq!(rows[0], json!({"properties": {"vmId": "1"}}));
        assert!(rows[1]["properties"]["instanceView"].is_object());
    }
}
