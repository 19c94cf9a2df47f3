//! Listings of a whole project, told apart by region: what each has, what was
//! skipped there, and what could not be reached.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::Text;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    api::{Api, Page, Resource, Service, project},
    place::{Missing, Place},
};

/// Largest page that Compute Engine gives.
const PAGE_SIZE: &str = "500";

/// Page for projects whose machines have so much metadata that a page of the
/// largest size is not read.
const SMALL_PAGE_SIZE: &str = "50";

/// Asks for what there is when a zone cannot be reached.
const PARTIAL_SUCCESS: &str = "returnPartialSuccess";

/// Warnings that say that something is not there though it may exist. Others,
/// such as `NO_RESULTS_ON_PAGE`, are noise.
const INCOMPLETE: [&str; 4] = [
    "UNREACHABLE",
    "PARTIAL_SUCCESS",
    "LIST_OVERHEAD_QUOTA_EXCEED",
    "QUOTA_INFO_UNAVAILABLE",
];

/// A page of an `aggregatedList`: a zone or region may come on several pages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
struct AggregatedPage<T> {
    items: Option<BTreeMap<String, Scoped<T>>>,
    next_page_token: Option<String>,
    unreachables: Option<Vec<String>>,
    warning: Option<Warning>,
}

impl<T: DeserializeOwned + Send> Page for AggregatedPage<T> {
    fn take_next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

/// What one zone or region has on a page.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Scoped<T> {
    #[serde(
        default,
        alias = "instances",
        alias = "machineTypes",
        alias = "reservations",
        alias = "futureReservations",
        alias = "commitments"
    )]
    rows: Rows<T>,
    warning: Option<Warning>,
}

/// A page of a plain list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
pub(crate) struct PlainPage<T> {
    #[serde(default)]
    pub items: Rows<T>,
    next_page_token: Option<String>,
    warning: Option<Warning>,
}

impl<T: DeserializeOwned + Send> Page for PlainPage<T> {
    fn take_next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

impl<T> PlainPage<T> {
    /// Why rows are missing, when the page says that some are.
    pub(crate) fn incomplete(&self) -> Option<&str> {
        self.warning.as_ref().and_then(Warning::incomplete)
    }
}

#[derive(Deserialize)]
struct Warning {
    code: Option<String>,
    #[serde(default)]
    data: Rows<WarningDatum>,
}

#[derive(Deserialize)]
struct WarningDatum {
    value: Option<String>,
}

impl Warning {
    /// The code, when it says that rows are missing.
    fn incomplete(&self) -> Option<&str> {
        self.code.as_deref().filter(|code| INCOMPLETE.contains(code))
    }
}

/// What became of a record.
pub(crate) enum Taken<R> {
    /// It is wanted. The text is its id within its place.
    Row(Text, R),
    /// It is of no interest: no accelerators. The text is its id.
    Other(Text),
    /// It cannot be used, by the word it is counted under.
    Bad(&'static str),
}

/// What a listing has of one region.
#[derive(Debug)]
struct Piece<R> {
    rows: Vec<R>,
    skipped: BTreeMap<&'static str, u64>,
}

impl<R> Default for Piece<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }
}

/// A listing by region.
#[derive(Debug)]
pub(crate) struct ByRegion<R> {
    call: Call,
    pieces: HashMap<Text, Piece<R>>,
    missing: Missing,
    /// Records in what is neither a zone nor a region.
    unplaced: usize,
    /// Hashes of place and id: a hundred thousand ids are not worth keeping.
    seen: HashSet<u64>,
}

impl<R> ByRegion<R> {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call,
            pieces: HashMap::new(),
            missing: Missing::default(),
            unplaced: 0,
            seen: HashSet::new(),
        }
    }

    pub(crate) fn missing(&mut self) -> &mut Missing {
        &mut self.missing
    }

    /// Adds the records of one place.
    pub(crate) fn take<T>(
        &mut self,
        place: Place<'_>,
        records: Rows<T>,
        mut read: impl FnMut(Place<'_>, T) -> Taken<R>,
    ) -> Progress {
        let mut progress = Progress {
            records: records.total(),
            new: 0,
        };
        if progress.records == 0 {
            return progress;
        }
        let piece = self.pieces.entry(place.region.into()).or_default();
        let mut skip = |reason, count: u64| {
            if count > 0 {
                let skipped: &mut u64 = piece.skipped.entry(reason).or_default();
                *skipped = skipped.saturating_add(count);
            }
        };
        skip("malformed", records.bad);
        let mut rows = Vec::new();
        for record in records.good {
            let (id, row) = match read(place, record) {
                Taken::Row(id, row) => (id, Some(row)),
                Taken::Other(id) => (id, None),
                Taken::Bad(reason) => {
                    skip(reason, 1);
                    continue;
                }
            };
            let is_new = self.seen.insert(hash(place, &id));
            progress.new += usize::from(is_new);
            match row {
                Some(row) if is_new => rows.push(row),
                Some(_) => skip("duplicate", 1),
                None => {}
            }
        }
        piece.rows.append(&mut rows);
        progress
    }

    /// The rows of a region, when the listing has all of them; what was
    /// skipped there is counted for the asking task.
    ///
    /// # Errors
    /// When a part of the region could not be reached.
    pub(crate) fn of(&self, cx: &Context, region: &str) -> Result<&[R], CollectError> {
        if let Some(what) = self.missing.of(region) {
            return Err(unreachable(self.call, what));
        }
        let Some(piece) = self.pieces.get(region) else {
            return Ok(&[]);
        };
        for (reason, count) in &piece.skipped {
            cx.skip(reason, *count);
        }
        Ok(&piece.rows)
    }
}

/// The error of a listing that says that it is not complete.
pub(crate) fn unreachable(call: Call, what: &str) -> CollectError {
    let message = format!(
        "{}: {what} could not be reached; the last complete listing stays",
        call.title()
    );
    CollectError::new(Reason::Other, message).code("UNREACHABLE")
}

fn hash(place: Place<'_>, id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (place.region, place.zone, id).hash(&mut hasher);
    hasher.finish()
}

/// Reads `aggregated/<collection>` of a project.
///
/// # Errors
/// When a page is missing. A zone that could not be reached is no error of
/// the listing: it is noted.
pub(crate) async fn aggregated<T, R>(
    cx: &Context,
    api: &Api,
    call: Call,
    collection: &str,
    filter: Option<&str>,
    mut read: impl FnMut(Place<'_>, T) -> Taken<R> + Send,
) -> Result<ByRegion<R>, CollectError>
where
    T: DeserializeOwned + Send,
    R: Send,
{
    let project = project(&cx.scope().account.id)?;
    let path = format!("/compute/v1/projects/{project}/aggregated/{collection}");
    let mut take = |listing: &mut ByRegion<R>, page: AggregatedPage<T>| take_page(listing, page, &mut read);
    let mut listed = Err(CollectError::new(Reason::Other, "not asked"));
    // Each try but the last learns one thing about the endpoint or project.
    for _ in 0..3 {
        let has_small_pages = api.has_small_pages(project);
        let mut query = vec![("maxResults", if has_small_pages { SMALL_PAGE_SIZE } else { PAGE_SIZE })];
        query.extend(filter.map(|filter| ("filter", filter)));
        if api.takes_partial_success() {
            query.push((PARTIAL_SUCCESS, "true"));
        }
        let resource = Resource {
            service: Service::Compute,
            call,
            path: &path,
            query: &query,
            about: None,
        };
        listed = api.pages(cx, resource, || ByRegion::new(call), &mut take).await;
        match &listed {
            Err(error) if is_refused_parameter(error) && api.takes_partial_success() => api.without_partial_success(),
            Err(error) if is_too_large(error) && !has_small_pages => api.with_small_pages(project),
            _ => break,
        }
    }
    let mut listing = listed?;
    listing.seen = HashSet::new();
    cx.skip("no_zone", u64::try_from(listing.unplaced).unwrap_or(u64::MAX));
    Ok(listing)
}

/// Newer versions of the API do not have the parameter, and may refuse it.
fn is_refused_parameter(error: &CollectError) -> bool {
    error.reason == Reason::Other && !error.retryable && error.message.contains(PARTIAL_SUCCESS)
}

/// Whether a page was larger than what is read at once. Machines can have
/// half a megabyte of metadata each, of which no list can be asked without.
fn is_too_large(error: &CollectError) -> bool {
    error.reason == Reason::Decode && !error.retryable && error.message.contains("an answer of more than")
}

fn take_page<T, R>(
    listing: &mut ByRegion<R>,
    page: AggregatedPage<T>,
    mut read: impl FnMut(Place<'_>, T) -> Taken<R>,
) -> Progress {
    let mut progress = Progress { records: 0, new: 0 };
    for (scope, scoped) in page.items.unwrap_or_default() {
        if let Some(code) = scoped.warning.as_ref().and_then(Warning::incomplete) {
            listing.missing.note(&scope, code);
        }
        let Some(place) = Place::parse(&scope) else {
            let unplaced = scoped.rows.total();
            listing.unplaced += unplaced;
            progress.records += unplaced;
            progress.new += unplaced;
            continue;
        };
        let added = listing.take(place, scoped.rows, &mut read);
        progress.records += added.records;
        progress.new += added.new;
    }
    for place in page.unreachables.unwrap_or_default() {
        listing.missing.note(&place, "UNREACHABLE");
    }
    if let Some(warning) = page.warning
        && let Some(code) = warning.incomplete()
    {
        for place in warning.data.good.iter().filter_map(|datum| datum.value.as_deref()) {
            if Place::parse(place).is_some() {
                listing.missing.note(place, code);
            }
        }
        listing.missing.note_somewhere(code);
    }
    progress
}

/// Reads a list of one zone, completely or not at all.
///
/// # Errors
/// When a page is missing, or the answer says that it is not complete.
pub(crate) async fn zonal<T, R>(
    cx: &Context,
    api: &Api,
    call: Call,
    zone: &str,
    collection: &str,
    mut read: impl FnMut(Place<'_>, T) -> Taken<R> + Send,
) -> Result<ByRegion<R>, CollectError>
where
    T: DeserializeOwned + Send,
    R: Send,
{
    let project = project(&cx.scope().account.id)?;
    let scope = format!("zones/{zone}");
    let path = format!("/compute/v1/projects/{project}/{scope}/{collection}");
    let resource = Resource {
        service: Service::Compute,
        call,
        path: &path,
        query: &[("maxResults", PAGE_SIZE)],
        about: None,
    };
    let Some(place) = Place::parse(&scope) else {
        return Err(CollectError::new(Reason::Decode, format!("{zone:?} is not a zone")));
    };
    api.pages(
        cx,
        resource,
        || ByRegion::new(call),
        |listing, page: PlainPage<T>| {
            if let Some(code) = page.incomplete() {
                listing.missing.note(&scope, code);
            }
            listing.take(place, page.items, &mut read)
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::{Account, Scope};
    use gpuwatch_inventory::Provider;

    use super::*;

    const CALL: Call = Call::new("compute", "instances.aggregatedList", "compute.instances.list");

    #[derive(Deserialize)]
    struct Record {
        id: String,
    }

    fn listing(pages: &[&str]) -> ByRegion<String> {
        let mut listing = ByRegion::new(CALL);
        for page in pages {
            let page: AggregatedPage<Record> = serde_json::from_str(page).unwrap();
            take_page(&mut listing, page, |_, record: Record| match record.id.as_str() {
                "" => Taken::Bad("no_id"),
                id => Taken::Row(id.into(), id.to_owned()),
            });
        }
        listing
    }

    fn context() -> Context {
        let account = Account {
            id: "p".into(),
            name: "p".into(),
        };
        let scope = Scope {
            provider: Provider::Gcp,
            account,
            region: "us-central1".into(),
        };
        Context::detached(scope, std::time::Duration::from_secs(9))
    }

    // P53
    #[test]
    fn a_zone_that_comes_on_two_pages_is_appended() {
        let listing = listing(&[
            r#"{"items": {"zones/us-central1-a": {"instances": [{"id": "1"}, {"id": "2"}]}}, "nextPageToken": "x"}"#,
            r#"{"items": {"zones/us-central1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}, "nextPageToken": "y"}"#,
            r#"{"items": {"zones/us-central1-a": {"instances": [{"id": "3"}]}, "zones/us-central1-b": {"instances": [{"id": "1"}]}}}"#,
        ]);
        assert_eq!(listing.of(&context(), "us-central1").unwrap(), ["1", "2", "3", "1"]);
        assert!(listing.of(&context(), "europe-west4").unwrap().is_empty());
    }

    // P48
    #[test]
    fn bad_and_double_records_are_counted_where_they_are() {
        let listing = listing(&[
            r#"{"items": {"zones/us-central1-a": {"instances": [{"id": "1"}, {"id": "1"}, {}, 7, {"id": ""}]}}}"#,
        ]);
        let cx = context();
        assert_eq!(listing.of(&cx, "us-central1").unwrap().len(), 1);
        assert_eq!(
            (cx.skipped("duplicate"), cx.skipped("malformed"), cx.skipped("no_id")),
            (1, 2, 1)
        );
    }

    #[test]
    fn a_zone_out_of_reach_fails_its_region_and_no_other() {
        let scoped = r#"{"items": {"zones/us-central1-a": {"warning": {"code": "UNREACHABLE"}},
            "zones/europe-west4-a": {"instances": [{"id": "1"}]}}}"#;
        let named = r#"{"items": {"zones/europe-west4-a": {"instances": [{"id": "1"}]}},
            "unreachables": ["projects/p/zones/us-central1-a"], "warning": {"code": "PARTIAL_SUCCESS"}}"#;
        let data = r#"{"items": {"zones/europe-west4-a": {"instances": [{"id": "1"}]}},
            "warning": {"code": "UNREACHABLE", "data": [{"key": "scope", "value": "zones/us-central1-a"}]}}"#;
        for page in [scoped, named, data] {
            let listing = listing(&[page]);
            let error = listing.of(&context(), "us-central1").unwrap_err();
            assert!(error.to_string().contains("us-central1-a"), "{error}");
            assert_eq!(listing.of(&context(), "europe-west4").unwrap(), ["1"]);
        }
        let nameless = listing(&[r#"{"warning": {"code": "UNREACHABLE"}}"#]);
        assert!(nameless.of(&context(), "europe-west4").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_page_is_read_or_refused(page in crate::samples::any_json()) {
            if let Ok(page) = serde_json::from_value::<AggregatedPage<Record>>(page) {
                let mut listing = ByRegion::<String>::new(CALL);
                let progress = take_page(&mut listing, page, |_, record: Record| {
                    Taken::Row(record.id.as_str().into(), record.id)
                });
                proptest::prop_assert!(progress.new <= progress.records);
            }
        }
    }
}
