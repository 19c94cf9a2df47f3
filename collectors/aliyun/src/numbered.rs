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
    /// What the last page said.
    total: Option<u64>,
}

impl<T> Listing<T> {
    fn is_short(&self) -> bool {
        let records = (self.rows.len() as u64).saturating_add(self.malformed);
        self.total.is_some_and(|total| records < total)
    }
}

/// Reads every page: `fetch` gets the number of a page, from 1, and gives its
/// rows and the total that the answer states. Each row is kept once, by `id`.
///
/// Rows move between numbered pages when one is removed meanwhile, and a
/// service may send fewer rows than it was asked for: a listing that has fewer
/// rows than its total is read again, once.
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
    let mut listing = read_once(call, &id, &fetch).await?;
    if listing.is_short() {
        listing = read_once(call, &id, &fetch).await?;
    }
    if listing.is_short() {
        let message = format!("{}: the listing ends, and rows are still missing", call.title());
        return Err(CollectError::new(Reason::Decode, message));
    }
    cx.skip("malformed", listing.malformed);
    Ok(listing.rows)
}

async fn read_once<T, F, Fut>(call: Call, id: &impl Fn(&T) -> &str, fetch: &F) -> Result<Listing<T>, CollectError>
where
    F: Fn(u64) -> Fut,
    Fut: Future<Output = Result<(Rows<T>, Option<u64>), CollectError>>,
{
    let page = |token: Option<String>| async move {
        let number: u64 = token.as_deref().and_then(|token| token.parse().ok()).unwrap_or(1);
        let (rows, total) = fetch(number).await?;
        let more = match total {
            Some(total) => rows.total() > 0 && number.saturating_mul(PAGE_SIZE) < total,
            // Without a total, a full page may have another behind it.
            None => rows.total() as u64 >= PAGE_SIZE,
        };
        Ok(((rows, total), more.then(|| (number + 1).to_string())))
    };
    let begin = || Listing {
        rows: Vec::new(),
        seen: HashSet::new(),
        malformed: 0,
        total: None,
    };
    read_all(
        call,
        begin,
        page,
        |listing: &mut Listing<T>, (rows, total): (Rows<T>, _)| {
            let (records, before) = (rows.total(), listing.rows.len());
            listing.malformed += rows.bad;
            listing.total = total;
            for row in rows.good {
                if listing.seen.insert(id(&row).to_owned()) {
                    listing.rows.push(row);
                }
            }
            Progress {
                records,
                new: listing.rows.len() - before,
            }
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;
    use crate::testing::context;

    const CALL: Call = Call::new("ecs", "DescribeReservedInstances", "ecs:DescribeReservedInstances");

    fn rows(ids: std::ops::Range<u64>) -> Rows<String> {
        Rows {
            good: ids.map(|id| format!("ecsri-{id}")).collect(),
            bad: 0,
        }
    }

    /// Reads pages from a function of the page's number; with the number of
    /// pages asked for.
    async fn listed(
        page: impl Fn(u64, u64) -> (Rows<String>, Option<u64>),
    ) -> (Result<usize, CollectError>, u64, Context) {
        let (cx, calls) = (context(), Cell::new(0));
        let fetch = |number| {
            calls.set(calls.get() + 1);
            ready(Ok(page(number, calls.get())))
        };
        let read = read(&cx, CALL, String::as_str, fetch).await;
        (read.map(|rows| rows.len()), calls.get(), cx)
    }

    // P53
    #[tokio::test]
    async fn pages_are_asked_for_until_the_total_is_reached() {
        for (total, pages) in [(0, 1), (1, 1), (100, 1), (101, 2), (2_345, 24)] {
            let page = |number: u64, _| (rows((number - 1) * 100..(number * 100).min(total)), Some(total));
            let (found, calls, _) = listed(page).await;
            assert_eq!((found.unwrap() as u64, calls), (total, pages));
            // Without a total, the last page is one that is not full.
            let page = |number: u64, _| (rows(((number - 1) * 100).min(total)..(number * 100).min(total)), None);
            assert_eq!(listed(page).await.0.unwrap() as u64, total);
        }
    }

    #[tokio::test]
    async fn fewer_rows_than_the_total_are_no_complete_listing() {
        // A service that gives half of what it is asked for.
        let (found, _, _) = listed(|number: u64, _| (rows((number - 1) * 50..number * 50), Some(80))).await;
        assert_eq!(found.unwrap_err().reason, Reason::Decode);
        let (found, _, _) = listed(|_, _| (Rows::default(), Some(3))).await;
        assert_eq!(found.unwrap_err().reason, Reason::Decode);
        let endless = |number: u64, _| (rows((number - 1) * 100..number * 100), Some(number * 100 + 1));
        assert_eq!(listed(endless).await.0.unwrap_err().reason, Reason::Decode);
    }

    #[tokio::test]
    async fn a_listing_that_moves_while_it_is_read_is_read_again() {
        // The first row goes away behind the first page: the second lacks one.
        let page = |number: u64, calls: u64| match (number, calls) {
            (1, 1) => (rows(0..100), Some(150)),
            (2, 2) => (rows(101..150), Some(150)),
            (number, _) => (rows(1 + (number - 1) * 100..(1 + number * 100).min(150)), Some(149)),
        };
        let (found, calls, _) = listed(page).await;
        assert_eq!((found.unwrap(), calls), (149, 4));
    }

    // P48
    #[tokio::test]
    async fn malformed_and_repeated_rows_count_once() {
        let page = |_, _| {
            let mut page = rows(0..3);
            page.good.push("ecsri-1".to_owned());
            page.bad = 2;
            (page, Some(5))
        };
        let (found, _, cx) = listed(page).await;
        assert_eq!((found.unwrap(), cx.skipped("malformed")), (3, 2));
    }
}
