//! Which instances the bill says reserved instances and savings plans paid
//! for, on the last day that it is complete for.
//!
//! It is asked only for accounts that have bought any. What cannot be had
//! costs labels, and neither instances nor commitments.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_collector_core::{CollectError, Context, Progress, Scope, lock, read_all};
use gpuwatch_inventory::{CommitmentKind, Text};
use jiff::{Timestamp, ToSpan as _, civil::DateTime, tz::Offset};
use serde::Deserialize;

use crate::{
    account::Account,
    bss::{Bss, Page},
    client::{Action, detail, parameters},
    errors,
    hosts::Product,
    loose,
};

const RESERVED: Action = Action::new(
    Product::Bss,
    "DescribeResourceCoverageDetail",
    "bssapi:DescribeResourceCoverageDetail",
);
const PLANS: Action = Action::new(
    Product::Bss,
    "DescribeSavingsPlansCoverageDetail",
    "bssapi:DescribeSavingsPlansCoverageDetail",
);

const PAGE_SIZE: &str = "300";

/// Days until a day is complete in the bill.
const COMPLETE_AFTER_DAYS: i64 = 2;

/// Part of an instance's use that must have been paid for in this way.
const COVERED_FROM: f64 = 0.5;

/// It changes once a day; a failure is tried again sooner.
const KEEP: Duration = Duration::from_hours(6);
const QUIET: Duration = Duration::from_hours(1);

/// How long the last answer is believed while there is no other.
const BELIEVED: Duration = Duration::from_hours(48);

/// What paid for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Payer {
    ReservedInstances,
    SavingsPlans,
}

impl Payer {
    /// The commitments of this kind.
    pub(crate) const fn kind(self) -> CommitmentKind {
        match self {
            Self::ReservedInstances => CommitmentKind::ReservedInstance,
            Self::SavingsPlans => CommitmentKind::SavingsPlan,
        }
    }

    const fn action(self) -> Action {
        match self {
            Self::ReservedInstances => RESERVED,
            Self::SavingsPlans => PLANS,
        }
    }

    /// The parameter that takes the token of a page.
    const fn token(self) -> &'static str {
        match self {
            Self::ReservedInstances => "NextToken",
            Self::SavingsPlans => "Token",
        }
    }
}

/// What the bill says about one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Day {
    /// Its begin.
    pub starts: Timestamp,
    /// Instances of which at least half was paid for, with their types.
    pub covered: HashMap<Text, Text>,
    /// Instances of which less was paid for.
    pub uncovered: HashSet<Text>,
}

/// What the bill says, by account.
#[derive(Default)]
pub(crate) struct Coverage {
    known: Mutex<HashMap<(Text, Payer), Known>>,
    slots: Mutex<HashMap<(Text, Payer), Arc<Slot>>>,
}

/// A day, with the monotonic time at which it was asked for.
type Known = (Duration, Arc<Day>);

/// When to ask next; held while asking, so that the other regions wait.
type Slot = tokio::sync::Mutex<Option<Duration>>;

impl Coverage {
    /// The last day that is known about an account.
    pub(crate) fn day(&self, account: &Text, payer: Payer) -> Option<Arc<Day>> {
        let known = lock(&self.known);
        known.get(&(account.clone(), payer)).map(|(_, day)| Arc::clone(day))
    }

    /// Asks the bill, unless that was done not long ago.
    pub(crate) async fn refresh(&self, cx: &Context, bss: &Bss, account: &Account, scope: &Scope, payer: Payer) {
        let key = (scope.account.id.clone(), payer);
        let slot = Arc::clone(lock(&self.slots).entry(key.clone()).or_default());
        let mut next = slot.lock().await;
        let now = cx.monotonic();
        if next.is_some_and(|next| now < next) {
            return;
        }
        let fetch = Box::pin(bss.ask(cx, &key.0, fetch(cx, account, payer)));
        match detail(cx, payer.action().call, fetch).await {
            Ok(day) => {
                *next = Some(now.saturating_add(KEEP));
                lock(&self.known).insert(key, (now, Arc::new(day)));
            }
            Err(error) => {
                *next = Some(now.saturating_add(QUIET));
                // The listing of savings plans says the same, as its failure.
                if !errors::is_of_other_site(&error) {
                    cx.degraded(&error);
                }
                let mut known = lock(&self.known);
                if known
                    .get(&key)
                    .is_some_and(|(at, _)| now.saturating_sub(*at) > BELIEVED)
                {
                    known.remove(&key);
                }
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    instance_id: String,
    #[serde(default, deserialize_with = "loose::text")]
    instance_spec: String,
    #[serde(default, deserialize_with = "loose::text", alias = "StartPeriod")]
    start_time: String,
    #[serde(default, deserialize_with = "loose::number", alias = "DeductAmount")]
    deduct_quantity: Option<f64>,
    #[serde(default, deserialize_with = "loose::number", alias = "TotalAmount")]
    total_quantity: Option<f64>,
}

/// How much of an instance was used and paid for.
#[derive(Default)]
struct Use {
    instance_type: Text,
    deducted: f64,
    total: f64,
}

impl Use {
    fn is_covered(&self) -> bool {
        self.deducted / self.total >= COVERED_FROM
    }
}

/// What was paid for of the use of each instance.
#[derive(Default)]
struct Listing {
    seen: HashSet<(String, String, String)>,
    use_of: HashMap<Text, Use>,
    malformed: u64,
}

impl Listing {
    fn take(&mut self, rows: gpuwatch_collector_rest::Rows<Row>) -> Progress {
        let (records, before) = (rows.total(), self.seen.len());
        self.malformed += rows.bad;
        for row in rows.good {
            let id = Text::from(row.instance_id.as_str());
            let instance_type = Text::from(row.instance_spec.as_str());
            let key = (row.instance_id, row.instance_spec, row.start_time);
            let is_new = self.seen.insert(key);
            // Other products put other things there.
            if is_new && id.starts_with("i-") {
                let used = self.use_of.entry(id).or_default();
                used.instance_type = instance_type;
                used.deducted += row.deduct_quantity.unwrap_or_default();
                used.total += row.total_quantity.unwrap_or_default();
            }
        }
        Progress {
            records,
            new: self.seen.len() - before,
        }
    }

    fn day(self, starts: Timestamp) -> Day {
        let used = self.use_of.into_iter().filter(|(_, used)| used.total > 0.0);
        let (covered, uncovered): (Vec<_>, Vec<_>) = used.partition(|(_, used)| used.is_covered());
        Day {
            starts,
            covered: covered.into_iter().map(|(id, used)| (id, used.instance_type)).collect(),
            uncovered: uncovered.into_iter().map(|(id, _)| id).collect(),
        }
    }
}

async fn fetch(cx: &Context, account: &Account, payer: Payer) -> Result<Day, CollectError> {
    let action = payer.action();
    let (from, to) = last_complete_day(cx.now());
    let text = |time: DateTime| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let (begin, end) = (&text(from), &text(to));
    let page = |token: Option<String>| async move {
        let mut asked = parameters(&[
            ("PeriodType", "DAY"),
            ("StartPeriod", begin),
            ("EndPeriod", end),
            ("MaxResults", PAGE_SIZE),
        ]);
        if payer == Payer::ReservedInstances {
            asked.insert("ResourceType".into(), "RI".into());
        }
        asked.extend(token.map(|token| (payer.token().to_owned(), token)));
        let page: Page = account.call(cx, action, "", &asked).await?;
        let data = page.data.unwrap_or_default();
        Ok((data.rows(action.call)?, data.next_token))
    };
    let listing = read_all(action.call, Listing::default, page, Listing::take).await?;
    cx.skip("malformed", listing.malformed);
    let starts = Offset::constant(8).to_timestamp(from);
    Ok(listing.day(starts.unwrap_or(Timestamp::UNIX_EPOCH)))
}

/// Begin and end of the last day that the bill is complete for, in the billing
/// zone, UTC+8.
fn last_complete_day(now: Timestamp) -> (DateTime, DateTime) {
    let today = Offset::constant(8).to_datetime(now).date();
    let day = today.saturating_sub(COMPLETE_AFTER_DAYS.days());
    (
        day.to_datetime(jiff::civil::Time::midnight()),
        day.saturating_add(1.day()).to_datetime(jiff::civil::Time::midnight()),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn day(rows: &str) -> Day {
        let data: crate::bss::Data = serde_json::from_str(&format!(r#"{{"Items": [{rows}]}}"#)).unwrap();
        let mut listing = Listing::default();
        listing.take(data.rows(RESERVED.call).unwrap());
        listing.day(Timestamp::UNIX_EPOCH)
    }

    fn covered(rows: &str) -> Vec<String> {
        let mut ids: Vec<String> = day(rows).covered.keys().map(ToString::to_string).collect();
        ids.sort();
        ids
    }

    #[test]
    fn at_least_half_of_the_use_must_have_been_paid_for() {
        let rows = r#"
            {"InstanceId": "i-all", "DeductQuantity": 24, "TotalQuantity": 24},
            {"InstanceId": "i-half", "DeductAmount": "12.5", "TotalAmount": "25"},
            {"InstanceId": "i-less", "DeductQuantity": 11, "TotalQuantity": 24},
            {"InstanceId": "i-none", "DeductQuantity": 0, "TotalQuantity": 0},
            {"InstanceId": "i-untold"},
            {"InstanceId": "cn-hangzhou", "DeductQuantity": 24, "TotalQuantity": 24}"#;
        assert_eq!(covered(rows), ["i-all", "i-half"]);
        assert_eq!(
            day(rows).uncovered,
            HashSet::from(["i-less".into()]),
            "not what is not told"
        );
    }

    #[test]
    fn rows_of_one_instance_add_up_and_repeated_ones_do_not() {
        let first = r#"{"InstanceId": "i-1", "InstanceSpec": "a", "DeductQuantity": 10, "TotalQuantity": 10}"#;
        let second = r#"{"InstanceId": "i-1", "InstanceSpec": "b", "DeductQuantity": 0, "TotalQuantity": 14}"#;
        assert!(covered(&format!("{first}, {second}, {first}")).is_empty());
        assert_eq!(covered(&format!("{first}, {first}")), ["i-1"]);
    }

    #[test]
    fn the_day_is_one_of_the_billing_zone() {
        for (now, from, to) in [
            ("2026-03-01T15:59:59Z", "2026-02-27T00:00:00", "2026-02-28T00:00:00"),
            ("2026-03-01T16:00:00Z", "2026-02-28T00:00:00", "2026-03-01T00:00:00"),
        ] {
            let day = last_complete_day(now.parse().unwrap());
            assert_eq!((day.0.to_string(), day.1.to_string()), (from.to_owned(), to.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::record(&[
            "InstanceId", "InstanceSpec", "StartTime", "StartPeriod", "DeductQuantity", "TotalQuantity",
        ])) {
            let _ = covered(&text);
        }
    }
}
