//! Pages and their tokens.
//!
//! A token names the last row sent, not an offset, so a fleet that changes
//! between two pages neither loses nor repeats rows. It is bound to its
//! operation, account, region and parameters, as the real ones are.

use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::random::fnv1a;

/// What a request asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageRequest {
    /// Rows at most; `None` for all.
    limit: Option<usize>,
    /// Key of the last row that the client already has.
    after: Option<String>,
    /// Pages sent so far, so that endless tokens differ.
    turn: u64,
    /// What the token is bound to.
    scope: u64,
}

/// A token that this listing did not give out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidToken;

impl PageRequest {
    /// `scope` is everything that must stay the same from page to page.
    pub(crate) fn new(limit: Option<usize>, token: Option<&str>, scope: &str) -> Result<Self, InvalidToken> {
        let scope = fnv1a(scope.as_bytes());
        let first = Self {
            limit,
            after: None,
            turn: 0,
            scope,
        };
        match token {
            None | Some("") => Ok(first),
            Some(token) => {
                let (turn, after) = decode(token, scope).ok_or(InvalidToken)?;
                Ok(Self { after, turn, ..first })
            }
        }
    }

    /// Key of the last row that the client already has.
    pub(crate) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Pages sent before this one.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// A page without rows, whose token goes on from the same place.
    pub(crate) fn empty_page<T>(&self) -> Page<T> {
        Page {
            rows: Vec::new(),
            next: Some(encode(self.scope, self.turn + 1, self.after.as_deref())),
        }
    }

    /// The page out of `rows`, which must come in the order of their keys.
    pub(crate) fn page<'a, T: Clone>(
        &self,
        rows: impl Iterator<Item = (&'a str, T)>,
        alteration: Option<FaultKind>,
    ) -> Page<T> {
        if alteration == Some(FaultKind::EmptyPage) && self.turn == 0 {
            return self.empty_page();
        }
        let after = self.after.as_deref();
        let mut rows = rows.skip_while(|(key, _)| after.is_some_and(|after| *key <= after));
        let mut kept = Vec::new();
        let mut last = after;
        for (key, row) in rows.by_ref().take(self.limit.unwrap_or(usize::MAX)) {
            kept.push(row);
            last = Some(key);
        }
        let more = rows.next().is_some();
        let next = match alteration {
            Some(FaultKind::EndlessToken) => Some(encode(self.scope, self.turn + 1, last)),
            Some(FaultKind::RepeatedToken) => Some(encode(self.scope, 1, None)),
            _ => more.then(|| encode(self.scope, self.turn + 1, last)),
        };
        Page {
            rows: altered(kept, alteration),
            next,
        }
    }
}

/// Rows of one answer and the token of the next.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<String>,
}

/// The alterations of rows that need no knowledge of what a row is.
pub(crate) fn altered<T: Clone>(mut rows: Vec<T>, alteration: Option<FaultKind>) -> Vec<T> {
    match alteration {
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => rows = rows.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        _ => {}
    }
    rows
}

/// Hexadecimal: every API's pattern for tokens allows it.
fn encode(scope: u64, turn: u64, after: Option<&str>) -> String {
    let mut plain = scope.to_be_bytes().to_vec();
    plain.extend(turn.to_be_bytes());
    if let Some(after) = after {
        plain.push(1);
        plain.extend(after.as_bytes());
    } else {
        plain.push(0);
    }
    plain.extend(fnv1a(&plain).to_be_bytes());
    hex::encode(plain)
}

fn decode(token: &str, scope: u64) -> Option<(u64, Option<String>)> {
    let bytes = hex::decode(token).ok()?;
    let (plain, sum) = bytes.split_last_chunk::<8>()?;
    if u64::from_be_bytes(*sum) != fnv1a(plain) {
        return None;
    }
    let (given, rest) = plain.split_first_chunk::<8>()?;
    let (turn, rest) = rest.split_first_chunk::<8>()?;
    if u64::from_be_bytes(*given) != scope {
        return None;
    }
    let after = match rest.split_first()? {
        (1, key) => Some(String::from_utf8(key.to_vec()).ok()?),
        _ => None,
    };
    Some((u64::from_be_bytes(*turn), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

    fn page(token: Option<&str>, alteration: Option<FaultKind>) -> Page<&'static str> {
        let request = PageRequest::new(Some(3), token, "scope").unwrap();
        request.page(ROWS.iter().map(|row| (*row, *row)), alteration)
    }

    fn walk(alteration: Option<FaultKind>, pages: usize) -> (Vec<&'static str>, Vec<Option<String>>) {
        let (mut rows, mut tokens) = (Vec::new(), Vec::new());
        let mut token: Option<String> = None;
        for _ in 0..pages {
            let one = page(token.as_deref(), alteration);
            rows.extend(one.rows);
            tokens.push(one.next.clone());
            token = one.next;
            if token.is_none() {
                break;
            }
        }
        (rows, tokens)
    }

    #[test]
    fn pages_hold_every_row_once() {
        let (rows, tokens) = walk(None, 10);
        assert_eq!(rows, ROWS);
        assert_eq!(tokens.len(), 3);
    }

    #[test]
    fn last_full_page_has_no_token() {
        let request = PageRequest::new(Some(7), None, "s").unwrap();
        assert_eq!(request.page(ROWS.iter().map(|row| (*row, *row)), None).next, None);
    }

    #[test]
    fn row_that_goes_between_pages_shifts_nothing() {
        let first = page(None, None);
        let request = PageRequest::new(Some(3), first.next.as_deref(), "scope").unwrap();
        let second = request.page(ROWS[3..].iter().map(|row| (*row, *row)), None);
        assert_eq!(second.rows, ["d", "e", "f"]);
    }

    #[test]
    fn endless_tokens_all_differ() {
        let (rows, tokens) = walk(Some(FaultKind::EndlessToken), 20);
        assert_eq!(rows, ROWS);
        let distinct: std::collections::BTreeSet<_> = tokens.iter().flatten().collect();
        assert_eq!(distinct.len(), 20);
    }

    #[test]
    fn repeated_token_is_always_the_same() {
        let (_, tokens) = walk(Some(FaultKind::RepeatedToken), 5);
        let distinct: std::collections::BTreeSet<_> = tokens.iter().flatten().collect();
        assert_eq!((tokens.len(), distinct.len()), (5, 1));
    }

    #[test]
    fn empty_page_comes_first_and_loses_nothing() {
        assert!(page(None, Some(FaultKind::EmptyPage)).rows.is_empty());
        assert_eq!(walk(Some(FaultKind::EmptyPage), 10).0, ROWS);
    }

    #[test]
    fn order_and_duplicates_change_within_a_page() {
        assert_eq!(page(None, Some(FaultKind::ReorderedRows)).rows, ["c", "b", "a"]);
        assert_eq!(
            page(None, Some(FaultKind::DuplicateRows)).rows,
            ["a", "a", "b", "b", "c", "c"]
        );
    }

    #[test]
    fn foreign_or_damaged_token_is_refused() {
        let token = page(None, None).next.unwrap();
        assert!(PageRequest::new(None, Some(&token), "scope").is_ok());
        assert!(PageRequest::new(None, Some(&token), "other").is_err());
        assert!(PageRequest::new(None, Some(&token[2..]), "scope").is_err());
        assert!(PageRequest::new(None, Some("not hex"), "scope").is_err());
    }
}
