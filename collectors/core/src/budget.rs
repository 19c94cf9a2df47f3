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
        }
    }

    /// Goes on with the windows of earlier budgets: a change of the
    /// configuration does not fill them up.
    pub(crate) fn adopt(&self, earlier: &Self) {
        let used = earlier.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
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
