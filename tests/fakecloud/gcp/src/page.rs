//! Pages and their tokens.
//!
//! A token names the last row sent, not an offset, so a fleet that changes
//! between two pages neither loses nor repeats rows. It is bound to the call
//! and its parameters, as the real ones are.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::random::fnv1a;
use serde::{Deserialize, Serialize};

/// A token that this listing did not give out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidToken;

/// What a token says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Position {
    /// Key of the last row that the client has.
    after: Option<String>,
    /// Pages sent so far, so that endless tokens differ.
    turn: u64,
    /// What the token is bound to.
    bound: u64,
    /// Guards against tokens that were made up.
    sum: u64,
}

impl Position {
    fn sum(&self) -> u64 {
        fnv1a(format!("{:?} {} {}", self.after, self.turn, self.bound).as_bytes())
    }

    fn token(mut self) -> String {
        self.sum = self.sum();
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&self).unwrap_or_default())
    }
}

/// Rows of one answer and the token of the next.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<String>,
}

/// How a listing is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Rows of a page at most.
    pub(crate) limit: usize,
    /// Whether an empty page comes between any two.
    pub(crate) pauses: bool,
}

/// The page of `rows`, each with its key and in the order of keys, that
/// `token` asks for. `scope` is everything that must stay the same from page
/// to page.
pub(crate) fn page<T: Clone>(
    rows: impl Iterator<Item = (String, T)>,
    cut: Cut,
    token: Option<&str>,
    scope: &str,
    alteration: Option<FaultKind>,
) -> Result<Page<T>, InvalidToken> {
    let bound = fnv1a(scope.as_bytes());
    let from = position(token, bound)?;
    let at = |after: Option<String>, turn| {
        let position = Position {
            after,
            turn,
            bound,
            sum: 0,
        };
        position.token()
    };
    if alteration == Some(FaultKind::EmptyPage) && from.turn == 0 {
        return Ok(Page {
            rows: Vec::new(),
            next: Some(at(None, 1)),
        });
    }
    if cut.pauses && alteration.is_none() && from.turn % 2 == 1 {
        return Ok(Page {
            rows: Vec::new(),
            next: Some(at(from.after, from.turn + 1)),
        });
    }
    let mut rows = rows.skip_while(|(key, _)| from.after.as_ref().is_some_and(|after| key <= after));
    let mut kept = Vec::new();
    let mut last = from.after.clone();
    for (key, row) in rows.by_ref().take(cut.limit) {
        kept.push(row);
        last = Some(key);
    }
    let more = rows.next().is_some();
    let next = match alteration {
        Some(FaultKind::EndlessToken) => Some(at(last, from.turn + 1)),
        Some(FaultKind::RepeatedToken) => Some(at(None, 1)),
        _ => more.then(|| at(last, from.turn + 1)),
    };
    match alteration {
        Some(FaultKind::ReorderedRows) => kept.reverse(),
        Some(FaultKind::DuplicateRows) => kept = kept.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        _ => {}
    }
    Ok(Page { rows: kept, next })
}

fn position(token: Option<&str>, bound: u64) -> Result<Position, InvalidToken> {
    // Clients send an empty token for the first page.
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return Ok(Position::default());
    };
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| InvalidToken)?;
    let position: Position = serde_json::from_slice(&bytes).map_err(|_| InvalidToken)?;
    let valid = position.bound == bound && position.sum == position.sum();
    valid.then_some(position).ok_or(InvalidToken)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;

    use super::*;

    const THREE: Cut = Cut {
        limit: 3,
        pauses: false,
    };

    const ROWS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

    fn one(token: Option<&str>, alteration: Option<FaultKind>) -> Page<&'static str> {
        let rows = ROWS.iter().map(|row| ((*row).to_owned(), *row));
        page(rows, THREE, token, "scope", alteration).unwrap()
    }

    fn walk(alteration: Option<FaultKind>) -> (Vec<&'static str>, Vec<Option<String>>) {
        let (mut rows, mut tokens) = (Vec::new(), vec![Some(String::new())]);
        while let Some(Some(token)) = tokens.last().cloned()
            && tokens.len() <= 12
        {
            let page = one(Some(&token), alteration);
            rows.extend(page.rows);
            tokens.push(page.next);
        }
        (rows, tokens)
    }

    #[test]
    fn pages_hold_every_row_once_and_the_last_has_no_token() {
        let (rows, tokens) = walk(None);
        assert_eq!(rows, ROWS);
        assert_eq!(tokens.len(), 4);
        let whole = page(
            ROWS.iter().map(|row| ((*row).to_owned(), *row)),
            Cut { limit: 7, ..THREE },
            None,
            "s",
            None,
        )
        .unwrap();
        assert_eq!(whole.next, None);
    }

    #[test]
    fn pauses_are_empty_pages_that_lose_nothing() {
        let (mut sizes, mut token) = (Vec::new(), String::new());
        while sizes.len() < 9 {
            let rows = ROWS.iter().map(|row| ((*row).to_owned(), *row));
            let cut = Cut { pauses: true, ..THREE };
            let page = page(rows, cut, Some(&token), "scope", None).unwrap();
            sizes.push(page.rows.len());
            let Some(next) = page.next else { break };
            token = next;
        }
        assert_eq!(sizes, [3, 0, 3, 0, 1]);
    }

    #[test]
    fn row_that_goes_between_pages_shifts_nothing() {
        let token = one(None, None).next.unwrap();
        let rows = ROWS.iter().skip(3).map(|row| ((*row).to_owned(), *row));
        let second = page(rows, THREE, Some(&token), "scope", None).unwrap();
        assert_eq!(second.rows, ["d", "e", "f"]);
    }

    #[test]
    fn endless_tokens_differ_and_repeated_ones_do_not() {
        let (rows, tokens) = walk(Some(FaultKind::EndlessToken));
        assert_eq!(rows, ROWS);
        assert_eq!(tokens.iter().flatten().collect::<BTreeSet<_>>().len(), 13);
        let (_, tokens) = walk(Some(FaultKind::RepeatedToken));
        assert_eq!(tokens.iter().flatten().collect::<BTreeSet<_>>().len(), 2);
    }

    #[test]
    fn empty_page_comes_first_and_loses_nothing() {
        assert!(one(None, Some(FaultKind::EmptyPage)).rows.is_empty());
        assert_eq!(walk(Some(FaultKind::EmptyPage)).0, ROWS);
    }

    #[test]
    fn order_and_duplicates_change_within_a_page() {
        assert_eq!(one(None, Some(FaultKind::ReorderedRows)).rows, ["c", "b", "a"]);
        assert_eq!(
            one(None, Some(FaultKind::DuplicateRows)).rows,
            ["a", "a", "b", "b", "c", "c"]
        );
    }

    #[test]
    fn foreign_or_damaged_token_is_refused() {
        let token = one(None, None).next.unwrap();
        let accepts =
            |token: &str, scope: &str| page(std::iter::empty::<(String, ())>(), THREE, Some(token), scope, None);
        assert!(accepts(&token, "scope").is_ok());
        assert!(accepts(&token, "other").is_err());
        assert!(accepts(&token.replace('J', "K"), "scope").is_err());
        assert!(accepts("not base64!", "scope").is_err());
    }
}
