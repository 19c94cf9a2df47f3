//! Budgets for calls that cost money.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use gpuwatch_inventory::Provider;

/// Limits on billable units per provider, each over a fixed window that the
/// budget's name ends in (`cost_explorer_calls_per_day`).
#[derive(Debug, Default)]
pub struct Budgets {
    limits: BTreeMap<String, BTreeMap<String, u64>>,
    used: Mutex<BTreeMap<(Provider, &'static str), Window>>,
    paces: Mutex<BTreeMap<(Provider, &'static str), Pace>>,
}

/// Units that regular work may use now: they come in evenly over the window.
#[derive(Debug, Clone, Copy)]
struct Pace {
    at: Duration,
    units: f64,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    start: Duration,
    units: u64,
}

impl Budgets {
    /// Budgets by provider word and budget name. A name without a limit is
    /// unlimited.
    #[must_use]
    pub fn new(limits: BTreeMap<String, BTreeMap<String, u64>>) -> Self {
        Self {
            limits,
            used: Mutex::default(),
            paces: Mutex::default(),
        }
    }

    /// Goes on with the windows of earlier budgets: a change of the
    /// configuration does not fill them up.
    pub(crate) fn adopt(&self, earlier: &Self) {
        let used = earlier.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
        let paces = earlier.paces.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.paces.lock().unwrap_or_else(PoisonError::into_inner) = paces;
    }

    /// Takes units out of a budget at monotonic time `now`; false, and nothing
    /// taken, when they are not left.
    pub(crate) fn take(&self, provider: Provider, name: &'static str, units: u64, now: Duration) -> bool {
        let Some(limit) = self.limits.get(provider.as_str()).and_then(|names| names.get(name)) else {
            return true;
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let window = used.entry((provider, name)).or_insert(Window { start: now, units: 0 });
        if now.saturating_sub(window.start) >= length(name) {
            *window = Window { start: now, units: 0 };
        }
        let total = window.units.saturating_add(units);
        if total > *limit {
            return false;
        }
        window.units = total;
        true
    }

    /// Whether regular work that needs so many units may go ahead now, so that
    /// the budget lasts for its whole window: work that is too big for every
    /// interval is done as often as fits. What one interval's share of the
    /// budget does not use is not saved up for later.
    pub(crate) fn paced(
        &self,
        provider: Provider,
        name: &'static str,
        units: u64,
        interval: Duration,
        now: Duration,
    ) -> bool {
        let Some(limit) = self.limits.get(provider.as_str()).and_then(|names| names.get(name)) else {
            return true;
        };
        #[allow(clippy::cast_precision_loss, reason = "a budget beyond 2^52 units needs no pacing")]
        let (limit, units) = (*limit as f64, units as f64);
        let per_second = limit / length(name).as_secs_f64();
        let share = per_second * interval.as_secs_f64();
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = paces.entry((provider, name)).or_insert(Pace { at: now, units: share });
        let earned = per_second * now.saturating_sub(pace.at).as_secs_f64();
        // Work bigger than a share saves for itself, and for no more.
        pace.units = (pace.units + earned).min(share.max(units));
        pace.at = now;
        if pace.units < units {
            return false;
        }
        pace.units -= units;
        true
    }
}

/// Length of a budget's window, by the end of its name; a day otherwise.
fn length(name: &str) -> Duration {
    const HOUR: u64 = 3600;
    Duration::from_secs(match name.rsplit('_').next() {
        Some("hour") => HOUR,
        Some("month") => 30 * 24 * HOUR,
        _ => 24 * HOUR,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of two scopes, each needing 30 units every 5 minutes, on a budget.
    fn units_of_a_day(limit: u64) -> u64 {
        let limits = BTreeMap::from([("aws".to_owned(), BTreeMap::from([("calls_per_day".to_owned(), limit)]))]);
        let budgets = Budgets::new(limits);
        let interval = Duration::from_mins(5);
        let mut used = 0;
        for run in 0..288 {
            for offset in [0, 100] {
                let now = interval * run + Duration::from_secs(offset);
                if budgets.paced(Provider::Aws, "calls_per_day", 30, interval, now) {
                    assert!(
                        budgets.take(Provider::Aws, "calls_per_day", 30, now),
                        "within the hard limit"
                    );
                    used += 30;
                }
            }
        }
        used
    }

    #[test]
    fn work_within_the_budget_is_never_held_back_and_more_is_spread() {
        assert_eq!(units_of_a_day(1_000_000), 2 * 288 * 30);
        assert_eq!(units_of_a_day(2 * 288 * 30), 2 * 288 * 30);
        let spread = units_of_a_day(8640);
        assert!((8400..=8640).contains(&spread), "{spread} of 8640");
        let scarce = units_of_a_day(300);
        assert!((270..=300).contains(&scarce), "{scarce} of 300");
    }

    #[test]
    fn a_budget_refuses_what_is_not_left_and_fills_up_after_its_window() {
        let limits = BTreeMap::from([("aws".to_owned(), BTreeMap::from([("calls_per_hour".to_owned(), 3)]))]);
        let budgets = Budgets::new(limits);
        let at = Duration::from_secs;
        assert!(budgets.take(Provider::Aws, "calls_per_hour", 2, at(0)));
        assert!(
            !budgets.take(Provider::Aws, "calls_per_hour", 2, at(1)),
            "only one is left"
        );
        assert!(
            budgets.take(Provider::Aws, "calls_per_hour", 1, at(2)),
            "the refused call took nothing"
        );
        assert!(!budgets.take(Provider::Aws, "calls_per_hour", 1, at(3599)));
        assert!(budgets.take(Provider::Aws, "calls_per_hour", 3, at(3600)));
        assert!(
            budgets.take(Provider::Gcp, "calls_per_hour", u64::MAX, at(0)),
            "no limit for this provider"
        );
    }
}
