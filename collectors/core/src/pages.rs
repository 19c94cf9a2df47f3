//! Following page tokens to the end, and no further.

use std::{collections::HashSet, future::Future};

use crate::{Call, CollectError, Reason};

/// Pages after which a listing is taken for endless: 5,000 pages of 1,000.
const MAX_PAGES: usize = 5_000;

/// Pages in a row without a record. A filtered listing of a large region can
/// have many: one per thousand instances that do not match.
const MAX_EMPTY_PAGES: usize = 200;

/// Pages in a row that have records, all of which came before.
const MAX_REPEATED_PAGES: usize = 3;

/// What a page added to the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Records on the page, usable or not.
    pub records: usize,
    /// Records not seen on an earlier page.
    pub new: usize,
}

impl Progress {
    /// For listings whose records have no id to tell repeats by.
    pub const fn all_new(records: usize) -> Self {
        Self { records, new: records }
    }
}

/// Reads every page of a listing: `fetch` gets the token of the page wanted
/// (`None` for the first) and gives the page with the next token; `take` adds
/// the page to `listing`. A token that has become too old begins the listing
/// anew, once ([`CollectError::stale_token`]). Clouds that page by number give
/// the number as the token.
///
/// # Errors
/// The error of a page, or [`Reason::Decode`] for tokens without an end.
pub async fn read_all<L, P, F, Fut>(
    call: Call,
    begin: impl Fn() -> L,
    mut fetch: F,
    mut take: impl FnMut(&mut L, P) -> Progress,
) -> Result<L, CollectError>
where
    F: FnMut(Option<String>) -> Fut,
    Fut: Future<Output = Result<(P, Option<String>), CollectError>>,
{
    let mut restarted = false;
    loop {
        match read_once(call, begin(), &mut fetch, &mut take).await {
            Err(error) if error.stale_token && !restarted => restarted = true,
            result => return result,
        }
    }
}

/// Reads every row of a listing whose rows are judged afterwards.
///
/// # Errors
/// As [`read_all`].
pub async fn read_rows<T, F, Fut>(call: Call, fetch: F) -> Result<Vec<T>, CollectError>
where
    F: FnMut(Option<String>) -> Fut,
    Fut: Future<Output = Result<(Vec<T>, Option<String>), CollectError>>,
{
    read_all(call, Vec::new, fetch, |rows, page| {
        let records = page.len();
        rows.extend(page);
        Progress::all_new(records)
    })
    .await
}

async fn read_once<L, P, F, Fut>(
    call: Call,
    mut listing: L,
    fetch: &mut F,
    take: &mut impl FnMut(&mut L, P) -> Progress,
) -> Result<L, CollectError>
where
    F: FnMut(Option<String>) -> Fut,
    Fut: Future<Output = Result<(P, Option<String>), CollectError>>,
{
    let mut seen = HashSet::new();
    let (mut empty, mut repeated) = (0, 0);
    let mut token: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let (page, next) = fetch(token.take()).await?;
        let progress = take(&mut listing, page);
        // An empty token ends a listing as an absent one does.
        let Some(next) = next.filter(|token| !token.is_empty()) else {
            return Ok(listing);
        };
        empty = if progress.records == 0 { empty + 1 } else { 0 };
        repeated = if progress.records > 0 && progress.new == 0 {
            repeated + 1
        } else {
            0
        };
        if !seen.insert(next.clone()) || empty >= MAX_EMPTY_PAGES || repeated >= MAX_REPEATED_PAGES {
            break;
        }
        token = Some(next);
    }
    Err(CollectError::new(
        Reason::Decode,
        format!("{}: endless token: the pages do not come to an end", call.title()),
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const CALL: Call = Call::new("ec2", "DescribeInstances", "ec2:DescribeInstances");

    fn add(listing: &mut Vec<u32>, page: Vec<u32>) -> Progress {
        let (records, before) = (page.len(), listing.len());
        for id in page {
            if !listing.contains(&id) {
                listing.push(id);
            }
        }
        Progress {
            records,
            new: listing.len() - before,
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    /// Reads pages from a function of the page number.
    fn read(
        mut page: impl FnMut(usize) -> Result<(Vec<u32>, Option<String>), CollectError>,
    ) -> (Result<Vec<u32>, CollectError>, usize) {
        let calls = Cell::new(0);
        let fetch = |_token| {
            let number = calls.get();
            calls.set(number + 1);
            std::future::ready(page(number))
        };
        let result = block_on(read_all(CALL, Vec::new, fetch, add));
        (result, calls.get())
    }

    // P53
    #[test]
    fn tokens_are_followed_over_empty_pages_until_absent() {
        let (result, calls) = read(|n| {
            let page = if n == 3 {
                vec![]
            } else {
                vec![u32::try_from(n).unwrap()]
            };
            Ok((page, (n < 9).then(|| format!("t{n}"))))
        });
        assert_eq!((result.unwrap().len(), calls), (9, 10));
    }

    #[test]
    fn an_empty_token_is_the_end() {
        let (result, calls) = read(|_| Ok((vec![1], Some(String::new()))));
        assert_eq!((result.unwrap().len(), calls), (1, 1));
    }

    // P53
    #[test]
    fn endless_tokens_are_refused() {
        let (same, calls) = read(|n| Ok((vec![u32::try_from(n).unwrap()], Some("same".into()))));
        assert_eq!((same.unwrap_err().reason, calls), (Reason::Decode, 2));
        let (fresh, calls) = read(|n| Ok((vec![7], Some(format!("t{n}")))));
        assert_eq!(fresh.unwrap_err().reason, Reason::Decode);
        assert!(calls <= 5, "{calls}");
        let (empty, calls) = read(|n| Ok((vec![], Some(format!("t{n}")))));
        assert_eq!(empty.unwrap_err().reason, Reason::Decode);
        assert!(calls <= MAX_EMPTY_PAGES, "{calls}");
    }

    #[test]
    fn a_stale_token_begins_the_listing_anew_once() {
        let stale = || CollectError::new(Reason::Other, "too old").stale_token();
        let (result, calls) = read(|n| match n {
            0 => Ok((vec![1], Some("a".into()))),
            1 => Err(stale()),
            2 => Ok((vec![2], Some("a".into()))),
            _ => Ok((vec![3], None)),
        });
        assert_eq!((result.unwrap(), calls), (vec![2, 3], 4));
        let (result, calls) = read(|_| Err(stale()));
        assert_eq!((result.is_err(), calls), (true, 2));
    }
}
