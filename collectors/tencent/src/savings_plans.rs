//! Savings plans of an account, and which instances they paid for on the last
//! complete day. China only.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_collector_core::{Call, CollectError, Context, Scope, lock};
use gpuwatch_inventory::{Billing, BillingMode, Commitment, CommitmentKind, CommitmentScope, Instance, State, Text};
use jiff::{Span, ToSpan as _, civil::Date};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    access::AccountAccess,
    api::Action,
    billing::{COVERED_FROM, SAVINGS_PLAN},
    commitments, loose,
    pages::{self, Query, page},
    time,
};

const VERSION: &str = "2024-01-25";
const DESCRIBE_OVERVIEW: Action = Action::new(
    Call::new("svp", "DescribeSavingPlanOverview", "svp:DescribeSavingPlanOverview"),
    VERSION,
);
const DESCRIBE_COVERAGE: Action = Action::new(
    Call::new("svp", "DescribeSavingPlanCoverage", "svp:DescribeSavingPlanCoverage"),
    VERSION,
);

/// Largest page of both calls.
const PAGE_SIZE: u64 = 200;

/// Days between the first and the last in one request: half a year at most.
const WINDOW_DAYS: i32 = 180;

/// Windows that are asked for: which date a plan is found by is not
/// documented, and the longest term is three years.
const WINDOWS: i32 = 7;

/// How long coverage is believed. It changes once a day.
const KEEP: Duration = Duration::from_hours(6);

/// How long after a failure the inventory does not ask itself.
const QUIET: Duration = Duration::from_hours(1);

/// Part of the time left that the inventory waits for coverage: 1 / 4.
const SHARE_OF_TIME: u32 = 4;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Overview {
    #[serde(deserialize_with = "loose::text")]
    sp_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    sp_type: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    status: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    start_time: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    end_time: Option<String>,
}

page!(OverviewPage, "Overviews": Overview, "Total", sp_id);

/// One billed item of a resource on one day; a resource has several.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CoverageRow {
    #[serde(deserialize_with = "loose::text")]
    resource_id: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    start_date: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    sub_product_code: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    sub_billing_item_name: Option<String>,
    #[serde(deserialize_with = "loose::text")]
    billing_item_name: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    sp_coverage: Option<f64>,
    /// What makes the row one of its own.
    #[serde(skip)]
    key: Option<String>,
}

#[derive(Deserialize)]
struct CoveragePage {
    #[serde(rename = "DetailSet", default)]
    rows: Option<gpuwatch_collector_rest::Rows<CoverageRow>>,
    #[serde(rename = "TotalCount", default, deserialize_with = "loose::number")]
    total: Option<f64>,
}

impl pages::Page for CoveragePage {
    type Row = CoverageRow;

    fn split(mut self) -> (Option<gpuwatch_collector_rest::Rows<CoverageRow>>, Option<f64>) {
        for row in self.rows.iter_mut().flat_map(|rows| &mut rows.good) {
            row.key = row.resource_id.as_ref().map(|id| {
                let part = |text: &Option<String>| text.clone().unwrap_or_default();
                [
                    id.clone(),
                    part(&row.start_date),
                    part(&row.sub_product_code),
                    part(&row.billing_item_name),
                    part(&row.sub_billing_item_name),
                    format!("{:?}", row.sp_coverage),
                ]
                .join("\n")
            });
        }
        (self.rows, self.total)
    }

    fn id(row: &CoverageRow) -> Option<&str> {
        row.key.as_deref()
    }
}

/// Active plans of an account.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn plans(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
) -> Result<Vec<Commitment>, CollectError> {
    let region: Text = access.site().home_region().into();
    let ask = async {
        let mut ids = HashSet::new();
        let mut plans = Vec::new();
        let today = time::billing_date(cx.now());
        for (from, to) in windows(today) {
            let parameters = [("StartDate", date(from)), ("EndDate", date(to))];
            let query = Query {
                access,
                action: DESCRIBE_OVERVIEW,
                region: &region,
                limit: PAGE_SIZE,
                parameters: &parameters,
            };
            for plan in pages::list::<OverviewPage>(cx, query).await? {
                if plan.sp_id.clone().is_some_and(|id| ids.insert(id)) {
                    plans.push(plan);
                }
            }
        }
        Ok(plans)
    };
    let plans: Vec<Overview> = access.if_present(cx, DESCRIBE_OVERVIEW, &region, ask).await?;
    Ok(plans.iter().filter_map(|plan| plan.commitment(scope)).collect())
}

/// Windows that together reach back over the longest term, newest first.
fn windows(today: Date) -> impl Iterator<Item = (Date, Date)> {
    (0..WINDOWS).map(move |window| {
        let back = |days: i32| today.saturating_sub(Span::new().days(days));
        (back((window + 1) * WINDOW_DAYS), back(window * WINDOW_DAYS))
    })
}

fn date(date: Date) -> Value {
    date.to_string().into()
}

impl Overview {
    fn commitment(&self, scope: &Scope) -> Option<Commitment> {
        if self.status != Some(1.0) {
            return None;
        }
        Some(Commitment {
            scope: CommitmentScope::Global,
            starts: self.start_time.as_deref().and_then(time::parse),
            expires: self.end_time.as_deref().and_then(time::parse),
            detail: self.sp_type.as_deref().unwrap_or_default().into(),
            // PromiseAmount does not say per what, so there is no hourly price.
            ..commitments::commitment(scope, CommitmentKind::SavingsPlan, self.sp_id.as_deref()?, "")
        })
    }
}

/// Ids of the instances that savings plans paid at least half of.
type Covered = HashSet<String>;

/// What was covered, by account.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    accounts: Mutex<HashMap<Text, Arc<Slot>>>,
}

/// Held while fetching, so that the others wait.
type Slot = tokio::sync::Mutex<Noted>;

#[derive(Debug, Default)]
struct Noted {
    covered: Option<(Duration, Arc<Covered>)>,
    failed: Option<Duration>,
}

impl Coverage {
    fn slot(&self, account: &Text) -> Arc<Slot> {
        Arc::clone(lock(&self.accounts).entry(account.clone()).or_default())
    }

    /// Plans with their coverage fetched anew; what fails there costs the
    /// instances' labels and not the plans.
    ///
    /// # Errors
    /// When the listing of plans is not complete.
    pub(crate) async fn plans(
        &self,
        cx: &Context,
        access: &AccountAccess,
        scope: &Scope,
    ) -> Result<Vec<Commitment>, CollectError> {
        let plans = plans(cx, access, scope).await?;
        let slot = self.slot(&scope.account.id);
        let mut noted = slot.lock().await;
        if plans.is_empty() {
            noted.covered = Some((cx.monotonic(), Arc::default()));
            return Ok(plans);
        }
        match covered(cx, access).await {
            Ok(covered) => noted.covered = Some((cx.monotonic(), Arc::new(covered))),
            Err(error) => cx.degraded(&error),
        }
        Ok(plans)
    }

    /// Labels the running pay-as-you-go instances that a plan pays for. The
    /// inventory asks itself only as long as nothing is known; what fails is
    /// reported by the task of the plans.
    pub(crate) async fn apply(&self, cx: &Context, access: &AccountAccess, scope: &Scope, instances: &mut [Instance]) {
        if !access.site().has_savings_plans() || !instances.iter().any(is_coverable) {
            return;
        }
        let known = cx
            .timeout(cx.remaining() / SHARE_OF_TIME, self.known(cx, access, scope))
            .await;
        let Some(Some(covered)) = known else { return };
        let detail: Text = SAVINGS_PLAN.into();
        for instance in instances.iter_mut().filter(|instance| is_coverable(instance)) {
            if covered.contains(&*instance.id) {
                instance.billing = Billing::estimated(BillingMode::Reserved, &detail);
            }
        }
    }

    async fn known(&self, cx: &Context, access: &AccountAccess, scope: &Scope) -> Option<Arc<Covered>> {
        let slot = self.slot(&scope.account.id);
        let mut noted = slot.lock().await;
        let age = |since: Duration| cx.monotonic().saturating_sub(since);
        if let Some((at, covered)) = &noted.covered
            && age(*at) < KEEP
        {
            return Some(Arc::clone(covered));
        }
        if noted.failed.is_some_and(|at| age(at) < QUIET) {
            return None;
        }
        // Also when this is cut off: one slow service must not cost every
        // region its share of time again and again.
        noted.failed = Some(cx.monotonic());
        let fetched = async {
            if plans(cx, access, scope).await?.is_empty() {
                return Ok(Covered::default());
            }
            covered(cx, access).await
        };
        let covered = Arc::new(Result::<_, CollectError>::ok(fetched.await)?);
        *noted = Noted {
            covered: Some((cx.monotonic(), Arc::clone(&covered))),
            failed: None,
        };
        Some(covered)
    }
}

fn is_coverable(instance: &Instance) -> bool {
    instance.billing.mode == BillingMode::OnDemand && instance.state == State::Running
}

/// What was covered on the last day that has data, of the last two complete
/// ones: figures come late.
async fn covered(cx: &Context, access: &AccountAccess) -> Result<Covered, CollectError> {
    let region: Text = access.site().home_region().into();
    let today = time::billing_date(cx.now());
    let parameters = [
        ("StartDate", date(today.saturating_sub(2.days()))),
        ("EndDate", date(today.saturating_sub(1.day()))),
        ("PeriodType", 1.into()),
    ];
    let query = Query {
        access,
        action: DESCRIBE_COVERAGE,
        region: &region,
        limit: PAGE_SIZE,
        parameters: &parameters,
    };
    let ask = pages::list::<CoveragePage>(cx, query);
    let rows: Vec<CoverageRow> = access.if_present(cx, DESCRIBE_COVERAGE, &region, ask).await?;
    Ok(covered_by(&rows))
}

/// Resources one item of which was covered by half or more on their last day.
fn covered_by(rows: &[CoverageRow]) -> Covered {
    let mut last: HashMap<&str, (&str, f64)> = HashMap::new();
    for row in rows {
        let (Some(id), Some(ratio)) = (row.resource_id.as_deref(), row.sp_coverage) else {
            continue;
        };
        // Dates in this form sort by time.
        let day = row.start_date.as_deref().unwrap_or_default();
        let known = last.entry(id).or_insert((day, ratio));
        if day > known.0 {
            *known = (day, ratio);
        } else if day == known.0 {
            known.1 = known.1.max(ratio);
        }
    }
    let covered = last.into_iter().filter(|(_, (_, ratio))| *ratio >= COVERED_FROM);
    covered.map(|(id, _)| id.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_reach_back_over_the_longest_term_without_gaps() {
        let today: Date = "2026-12-01".parse().unwrap();
        let windows: Vec<_> = windows(today).collect();
        assert_eq!(windows[0].1, today);
        assert!(windows.windows(2).all(|pair| pair[0].0 == pair[1].1));
        assert!(windows.last().unwrap().0 < "2023-12-01".parse().unwrap());
    }

    #[test]
    fn the_last_day_with_data_decides_and_one_covered_item_is_enough() {
        let row = |id: &str, day: &str, ratio: f64| CoverageRow {
            resource_id: Some(id.to_owned()),
            start_date: Some(day.to_owned()),
            sp_coverage: Some(ratio),
            ..CoverageRow::default()
        };
        let covered = covered_by(&[
            row("ins-1", "2026-11-30", 100.0),
            row("ins-1", "2026-11-30", 0.0),
            row("ins-2", "2026-11-30", 49.9),
            row("ins-2", "2026-11-29", 100.0),
            row("ins-3", "2026-11-29", 50.0),
            CoverageRow::default(),
        ]);
        assert_eq!(covered, HashSet::from(["ins-1".to_owned(), "ins-3".to_owned()]));
    }

    #[test]
    fn only_plans_in_force_are_commitments() {
        let scope = Scope {
            provider: gpuwatch_inventory::Provider::Tencent,
            account: gpuwatch_collector_core::Account {
                id: "1".into(),
                name: "cn".into(),
            },
            region: Scope::GLOBAL.into(),
        };
        let plan = |status: u8| {
            let text = format!(
                r#"{{"SpId":"sp-1","SpType":"all","Status":{status},"PromiseAmount":"10",
                     "StartTime":"2026-01-01 00:00:00","EndTime":"2027-01-01 00:00:00"}}"#
            );
            serde_json::from_str::<Overview>(&text).unwrap().commitment(&scope)
        };
        let active = plan(1).unwrap();
        assert_eq!((&*active.region, active.units, active.hourly), ("global", None, None));
        assert_eq!(
            active.starts.unwrap().to_string(),
            "2025-12-31T16:00:00Z",
            "Beijing time"
        );
        assert!(plan(2).is_none() && plan(3).is_none());
    }
}
