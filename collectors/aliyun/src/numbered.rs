//! Listings that are paged by number.

use std::{collections::HashSet, future::Future};

use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason, read_all};
use gpuwatch_collector_rest::Rows;

/// Largest page of these listings.
pub(crate) const PAGE_SIZE: u64 = 100;

/// What has been read of a listing.
struct Listing<T> {
    rows: Vec<T>,
    seen: HashSet<String>,
    malformed: u64,
}

/// Reads every page: `fetch` gets the number of a page, from 1, and gives its
/// rows and the total that the answer states. Each row is kept once, by `id`.
///
/// # Errors
/// Those of a page, and [`Reason::Decode`] for a listing that ends before its
/// total or does not end.
pub(crate) async fn read<T, F, Fut>(
    cx: &Context,
    call: Call,
    id: impl Fn(&T) -> &str,
    fetch: F,
) -> Result<Vec<T>, CollectError>
where
    F: Fn(u64) -> Fut,
    Fut: Future<Output = Result<(Rows<T>, Option<u64>), CollectError>>,
{
    let fetch = &fetch;
    let page = |token: Option<String>| async move {
        let number: u64 = token.as_deref().and_then(|token| token.parse().ok()).unwrap_or(1);
        let (rows, total) = fetch(number).await?;
        let (before, after) = ((number - 1) * PAGE_SIZE, number * PAGE_SIZE);
        let is_empty = rows.total() == 0;
        if is_empty && total.is_some_and(|total| before < total) {
            let message = format!("{}: page {number} is empty, and rows are still missing", call.title());
            return Err(CollectError::new(Reason::Decode, message).retryable(true));
        }
        let more = match total {
            Some(total) => after < total,
            // Without a total, a full page may have another behind it.
            None => !is_empty && rows.total() as u64 >= PAGE_SIZE,
        };
        Ok((rows, more.then(|| (number + 1).to_string())))
    };
    let begin = || Listing {
        rows: Vec::new(),
        seen: HashSet::new(),
        malformed: 0,
    };
    let listing = read_all(call, begin, page, |listing: &mut Listing<T>, rows: Rows<T>| {
        let (records, before) = (rows.total(), listing.rows.len());
        listing.malformed += rows.bad;
        for row in rows.good {
            if listing.seen.insert(id(&row).to_owned()) {
                listing.rows.push(row);
            }
        }
        Progress {
            records,
            new: listing.rows.len() - before,
        }
    })
    .await?;
    cx.skip("malformed", listing.malformed);
    Ok(listing.rows)
}
