//! Pages: by token, and by number.
//!
//! A token names the last row sent, not an offset, so a fleet that changes
//! between two pages neither loses nor repeats rows. It is bound to its
//! action, account, region and parameters, as the real ones are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::random::fnv1a;

use crate::error::ApiError;
use crate::params::Params;

/// Total that a listing without end states.
const NO_END: usize = 1_000_000;

/// Rows of one answer and the token of the next.
#[derive(Debug)]
pub(crate) struct TokenPage<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) next: Option<String>,
}

/// The page that `token` asks for out of `rows`, which must come in the order
/// of their keys. `scope` is everything that must stay the same from page to
/// page.
pub(crate) fn by_token<'a, T: Clone>(
    rows: impl Iterator<Item = (&'a str, T)>,
    limit: usize,
    token: Option<&str>,
    scope: &str,
    alteration: Option<FaultKind>,
) -> Result<TokenPage<T>, ApiError> {
    let scope = fnv1a(scope.as_bytes());
    let (turn, after) = match token {
        None => (0, None),
        Some(token) => decode(token, scope).ok_or_else(|| ApiError::invalid("NextToken"))?,
    };
    let after = after.as_deref();
    if alteration == Some(FaultKind::EmptyPage) && turn == 0 {
        return Ok(TokenPage {
            rows: Vec::new(),
            next: Some(encode(scope, 1, None)),
        });
    }
    let mut rows = rows.skip_while(|(key, _)| after.is_some_and(|after| *key <= after));
    let mut kept = Vec::new();
    let mut last = after;
    for (key, row) in rows.by_ref().take(limit) {
        kept.push(row);
        last = Some(key);
    }
    let more = rows.next().is_some();
    let next = match alteration {
        Some(FaultKind::EndlessToken) => Some(encode(scope, turn + 1, last)),
        Some(FaultKind::RepeatedToken) => Some(encode(scope, 1, None)),
        _ => more.then(|| encode(scope, turn + 1, last)),
    };
    Ok(TokenPage {
        rows: altered(kept, alteration),
        next,
    })
}

/// A numbered page.
#[derive(Debug)]
pub(crate) struct NumberedPage<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) number: usize,
    pub(crate) size: usize,
    pub(crate) total: usize,
}

/// The page that `number_name` and `size_name` ask for.
///
/// Where there are no tokens, an endless listing is one whose total is always
/// ahead, and a repeated one gives the first page whatever is asked for.
pub(crate) fn by_number<T: Clone>(
    rows: Vec<T>,
    params: &Params,
    (number_name, size_name): (&str, &str),
    (default_size, most): (usize, usize),
    alteration: Option<FaultKind>,
) -> Result<NumberedPage<T>, ApiError> {
    let number = params.number(number_name, usize::MAX)?.unwrap_or(1);
    let size = params.number(size_name, most)?.unwrap_or(default_size);
    let total = rows.len();
    let endless = matches!(alteration, Some(FaultKind::EndlessToken | FaultKind::RepeatedToken));
    let first = if endless { 0 } else { (number - 1).saturating_mul(size) };
    let kept: Vec<T> = rows.into_iter().skip(first).take(size).collect();
    Ok(NumberedPage {
        rows: altered(kept, alteration),
        number,
        size,
        total: match alteration {
            Some(FaultKind::EndlessToken) => number.saturating_mul(size).saturating_add(1),
            Some(FaultKind::RepeatedToken) => NO_END,
            _ => total,
        },
    })
}

/// The alterations of rows that need no knowledge of what a row is.
fn altered<T: Clone>(mut rows: Vec<T>, alteration: Option<FaultKind>) -> Vec<T> {
    match alteration {
        Some(FaultKind::ReorderedRows) => rows.reverse(),
        Some(FaultKind::DuplicateRows) => rows = rows.into_iter().flat_map(|row| [row.clone(), row]).collect(),
        _ => {}
    }
    rows
}

/// Base64 with its reserved characters, which a client must encode.
fn encode(scope: u64, turn: u64, after: Option<&str>) -> String {
    let mut plain = scope.to_be_bytes().to_vec();
    plain.extend(turn.to_be_bytes());
    plain.push(u8::from(after.is_some()));
    plain.extend(after.unwrap_or_default().as_bytes());
    plain.extend(fnv1a(&plain).to_be_bytes());
    STANDARD.encode(plain)
}

fn decode(token: &str, scope: u64) -> Option<(u64, Option<String>)> {
    let bytes = STANDARD.decode(token).ok()?;
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
    use std::collections::BTreeSet;

    use super::*;

    const ROWS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

    fn walk(alteration: Option<FaultKind>, pages: usize) -> (Vec<&'static str>, Vec<Option<String>>) {
        let (mut rows, mut tokens) = (Vec::new(), Vec::new());
        let mut token: Option<String> = None;
        for _ in 0..pages {
            let all = ROWS.iter().map(|row| (*row, *row));
            let page = by_token(all, 3, token.as_deref(), "scope", alteration).unwrap();
            rows.extend(page.rows);
            tokens.push(page.next.clone());
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        (rows, tokens)
    }

    #[test]
    fn pages_hold_every_row_once_and_the_last_has_no_token() {
        let (rows, tokens) = walk(None, 10);
        assert_eq!((rows.as_slice(), tokens.len()), (ROWS.as_slice(), 3));
        assert_eq!(walk(Some(FaultKind::EmptyPage), 10).0, ROWS);
    }

    #[test]
    fn endless_tokens_differ_and_repeated_ones_do_not() {
        for (kind, distinct) in [(FaultKind::EndlessToken, 12), (FaultKind::RepeatedToken, 1)] {
            let (_, tokens) = walk(Some(kind), 12);
            let seen: BTreeSet<_> = tokens.iter().flatten().collect();
            assert_eq!((tokens.len(), seen.len()), (12, distinct), "{kind}");
        }
    }

    #[test]
    fn foreign_or_damaged_token_is_refused() {
        let token = walk(None, 1).1[0].clone().unwrap();
        let ask = |token: &str, scope| by_token(ROWS.iter().map(|row| (*row, *row)), 3, Some(token), scope, None);
        assert!(ask(&token, "scope").is_ok());
        assert!(ask(&token, "other").is_err());
        assert!(ask(&token[4..], "scope").is_err());
        assert!(ask("not base64!", "scope").is_err());
    }

    #[test]
    fn numbered_pages_hold_every_row_once() {
        let page = |query: &str, kind| {
            let params = Params::parse(query, b"");
            by_number(ROWS.to_vec(), &params, ("PageNumber", "PageSize"), (2, 5), kind)
        };
        assert_eq!(page("", None).unwrap().rows, ["a", "b"]);
        let last = page("PageNumber=2&PageSize=5", None).unwrap();
        assert_eq!((last.rows.as_slice(), last.total), (["f", "g"].as_slice(), 7));
        assert!(page("PageSize=6", None).is_err());
        assert!(page("PageNumber=0", None).is_err());
        let endless = page("PageNumber=9&PageSize=5", Some(FaultKind::EndlessToken)).unwrap();
        assert_eq!((endless.rows.len(), endless.total), (5, 46));
    }
}
