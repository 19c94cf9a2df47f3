//! Listings by offset, over sets that change while they are read.
//!
//! A record that is removed moves all later ones forward, over the boundary of
//! pages, and one of them is missed. So a listing whose total changed, or that
//! found fewer records than were counted, is read once more, and what either
//! reading found counts.

use std::collections::HashMap;

use gpuwatch_collector_core::{CollectError, Context, Progress, read_all};
use gpuwatch_collector_rest::Rows;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{access::AccountAccess, api::Action, errors};

/// Largest page that most calls give.
pub(crate) const PAGE_SIZE: u64 = 100;

/// A page of a listing.
pub(crate) trait Page: DeserializeOwned + Send {
    /// What is listed.
    type Row: Send;

    /// The records, and how many there are on all pages. An answer that has
    /// neither is no page of anything.
    fn split(self) -> (Option<Rows<Self::Row>>, Option<f64>);

    /// The id of a record, by which repeats are told.
    fn id(row: &Self::Row) -> Option<&str>;
}

/// What to list.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub access: &'a AccountAccess,
    pub action: Action,
    pub region: &'a str,
    /// Records per page.
    pub limit: u64,
    /// Parameters besides the page.
    pub parameters: &'a [(&'a str, Value)],
}

/// One reading of all pages.
struct Reading<T> {
    rows: Vec<T>,
    positions: HashMap<String, usize>,
    malformed: u64,
    no_id: u64,
    duplicate: u64,
    /// Least, greatest and last total that pages stated.
    totals: Option<(u64, u64, u64)>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            positions: HashMap::new(),
            malformed: 0,
            no_id: 0,
            duplicate: 0,
            totals: None,
        }
    }
}

/// Lists everything; records that cannot be used are skipped and counted.
///
/// # Errors
/// When a page is missing, or when there are fewer records than even the
/// lowest total says.
pub(crate) async fn list<P: Page>(cx: &Context, query: Query<'_>) -> Result<Vec<P::Row>, CollectError> {
    let mut reading = read::<P>(cx, query).await?;
    if !reading.is_settled() {
        let earlier = reading;
        reading = read::<P>(cx, query).await?;
        reading.complete_with::<P>(earlier);
    }
    if reading.found() < reading.totals.map_or(0, |(least, ..)| least) {
        let counted = reading.totals.map_or(0, |(_, _, last)| last);
        let what = format!("{} of {counted} records on all pages", reading.found());
        return Err(errors::decode(query.action.call, &what));
    }
    cx.skip("malformed", reading.malformed);
    cx.skip("no_id", reading.no_id);
    cx.skip("duplicate", reading.duplicate);
    Ok(reading.rows)
}

async fn read<P: Page>(cx: &Context, query: Query<'_>) -> Result<Reading<P::Row>, CollectError> {
    let fetch = |token: Option<String>| async move {
        let offset: u64 = token.as_deref().unwrap_or("0").parse().unwrap_or(0);
        let mut body = serde_json::Map::new();
        body.extend(
            query
                .parameters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        body.insert("Offset".to_owned(), offset.into());
        body.insert("Limit".to_owned(), query.limit.into());
        let body = Value::Object(body);
        let page: P = query.access.call(cx, query.action, query.region, &body).await?;
        let (rows, total) = page.split();
        if rows.is_none() && total.is_none() {
            return Err(errors::decode(query.action.call, "neither records nor their number"));
        }
        let (rows, total) = (rows.unwrap_or_default(), total.and_then(whole));
        let end = offset.saturating_add(query.limit);
        let is_full = u64::try_from(rows.total()).is_ok_and(|rows| rows >= query.limit);
        let has_more = total.map_or(is_full, |total| end < total);
        Ok(((rows, total), has_more.then(|| end.to_string())))
    };
    read_all(
        query.action.call,
        Reading::default,
        fetch,
        |reading: &mut Reading<P::Row>, (rows, total)| reading.take::<P>(rows, total),
    )
    .await
}

impl<T> Reading<T> {
    fn take<P: Page<Row = T>>(&mut self, page: Rows<T>, total: Option<u64>) -> Progress {
        let (records, before) = (page.total(), self.found());
        self.malformed += page.bad;
        for row in page.good {
            match P::id(&row).map(str::to_owned) {
                None => self.no_id += 1,
                Some(id) if self.positions.contains_key(&id) => self.duplicate += 1,
                Some(id) => self.add(id, row),
            }
        }
        if let Some(total) = total {
            let (least, greatest, _) = self.totals.unwrap_or((total, total, total));
            self.totals = Some((least.min(total), greatest.max(total), total));
        }
        let new = usize::try_from(self.found().saturating_sub(before)).unwrap_or(usize::MAX);
        Progress { records, new }
    }

    fn add(&mut self, id: String, row: T) {
        self.positions.insert(id, self.rows.len());
        self.rows.push(row);
    }

    /// Records seen, usable or not, each once.
    fn found(&self) -> u64 {
        u64::try_from(self.rows.len())
            .unwrap_or(u64::MAX)
            .saturating_add(self.malformed)
            .saturating_add(self.no_id)
    }

    /// Whether the set stood still while it was read.
    fn is_settled(&self) -> bool {
        self.totals
            .is_none_or(|(least, greatest, last)| least == greatest && self.found() >= last)
    }

    /// Adds what only an earlier reading found.
    fn complete_with<P: Page<Row = T>>(&mut self, earlier: Self) {
        for row in earlier.rows {
            if let Some(id) = P::id(&row).map(str::to_owned)
                && !self.positions.contains_key(&id)
            {
                self.add(id, row);
            }
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn whole(number: f64) -> Option<u64> {
    (0.0..=9_007_199_254_740_992.0)
        .contains(&number)
        .then_some(number as u64)
}

/// A page type: its list, its total, its record and the record's id.
macro_rules! page {
    ($page:ident, $rows:literal: $row:ty, $total:literal, $id:ident) => {
        #[derive(serde::Deserialize)]
        struct $page {
            #[serde(rename = $rows, default)]
            rows: Option<gpuwatch_collector_rest::Rows<$row>>,
            #[serde(rename = $total, default, deserialize_with = "crate::loose::number")]
            total: Option<f64>,
        }

        impl crate::pages::Page for $page {
            type Row = $row;

            fn split(self) -> (Option<gpuwatch_collector_rest::Rows<$row>>, Option<f64>) {
                (self.rows, self.total)
            }

            fn id(row: &$row) -> Option<&str> {
                row.$id.as_deref()
            }
        }
    };
}

pub(crate) use page;

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::loose;

    #[derive(Deserialize)]
    struct Row {
        #[serde(rename = "Id", default, deserialize_with = "loose::text")]
        id: Option<String>,
    }

    page!(Rowed, "Set": Row, "TotalCount", id);

    fn reading(pages: &[&str]) -> Reading<Row> {
        let mut reading = Reading::default();
        for page in pages {
            let (rows, total) = serde_json::from_str::<Rowed>(page).unwrap().split();
            reading.take::<Rowed>(rows.unwrap_or_default(), total.and_then(whole));
        }
        reading
    }

    #[test]
    fn records_are_counted_once_and_bad_ones_are_counted_as_there() {
        let reading = reading(&[r#"{"Set":[{"Id":"a"},{"Id":"a"},{},null,{"Id":"b"}],"TotalCount":4}"#]);
        assert_eq!(
            (reading.rows.len(), reading.no_id, reading.malformed, reading.duplicate),
            (2, 1, 1, 1)
        );
        assert!(reading.is_settled());
    }

    #[test]
    fn a_total_that_moves_or_is_not_reached_asks_for_another_reading() {
        assert!(
            !reading(&[
                r#"{"Set":[{"Id":"a"}],"TotalCount":3}"#,
                r#"{"Set":[{"Id":"b"}],"TotalCount":2}"#
            ])
            .is_settled()
        );
        assert!(!reading(&[r#"{"Set":[{"Id":"a"}],"TotalCount":2}"#]).is_settled());
        assert!(reading(&[r#"{"Set":null,"TotalCount":0}"#]).is_settled());
        assert!(
            reading(&[r#"{"Set":[{"Id":"a"}]}"#]).is_settled(),
            "no total to compare with"
        );
    }

    #[test]
    fn what_only_the_earlier_reading_found_is_kept() {
        let mut later = reading(&[r#"{"Set":[{"Id":"b"},{"Id":"c"}],"TotalCount":3}"#]);
        later.complete_with::<Rowed>(reading(&[r#"{"Set":[{"Id":"a"},{"Id":"b"}],"TotalCount":3}"#]));
        let ids: Vec<_> = later.rows.iter().filter_map(|row| row.id.as_deref()).collect();
        assert_eq!(ids, ["b", "c", "a"]);
    }
}
