//! Resource Graph: queries over the rows of all subscriptions.

use gpuwatch_fakecloud_core::FaultKind;
use gpuwatch_fakecloud_core::random::fnv1a;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::error::ArmError;
use crate::kql;
use crate::page::{self, Listing, page};
use crate::rows::{self, View};
use crate::world::{Inner, Subscription};

/// Most rows of a page.
const MAX_PAGE: u64 = 1000;

/// The action that a role must allow.
pub(crate) const ACTION: &str = "Microsoft.ResourceGraph/resources/read";

/// Queries that a caller may make in a time span.
#[derive(Debug)]
pub(crate) struct Quota {
    pub(crate) queries: u32,
    pub(crate) window: SignedDuration,
    used: u32,
    resets: Timestamp,
}

/// What is left of a quota, as the headers of an answer tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) queries: u32,
    /// Until it is whole again.
    pub(crate) seconds: i64,
}

impl Quota {
    pub(crate) const fn new(queries: u32, window: SignedDuration) -> Self {
        Self {
            queries,
            window,
            used: 0,
            resets: Timestamp::UNIX_EPOCH,
        }
    }

    /// Counts a query; `Err` where there is none left.
    pub(crate) fn take(&mut self, now: Timestamp) -> Result<Left, Left> {
        if self.resets <= now {
            self.used = 0;
            self.resets = now.checked_add(self.window).unwrap_or(Timestamp::MAX);
        }
        let fits = self.used < self.queries;
        self.used += u32::from(fits);
        let left = Left {
            queries: self.queries - self.used,
            // The part of a second that has begun counts.
            seconds: (self.resets.as_millisecond() - now.as_millisecond() + 999) / 1000,
        };
        if fits { Ok(left) } else { Err(left) }
    }
}

impl Left {
    /// `x-ms-user-quota-remaining` and `x-ms-user-quota-resets-after`.
    pub(crate) fn headers(self) -> [(&'static str, String); 2] {
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        [
            ("x-ms-user-quota-remaining", self.queries.to_string()),
            (
                "x-ms-user-quota-resets-after",
                format!("{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60),
            ),
        ]
    }
}

/// Answers a query.
pub(crate) fn resources(inner: &Inner, body: &Value, alteration: Option<FaultKind>) -> Result<Value, ArmError> {
    let text = body["query"]
        .as_str()
        .ok_or_else(|| ArmError::graph("InvalidQuery", "A query is required."))?;
    let scope: Vec<&str> = body["subscriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if scope.is_empty() {
        return Err(ArmError::graph(
            "NoValidSubscriptionsInQueryRequest",
            "At least one subscription is required.",
        ));
    }
    let named = || {
        let all = inner.subscriptions.values();
        all.filter(|subscription| scope.iter().any(|id| id.eq_ignore_ascii_case(&subscription.id)))
    };
    if named().next().is_some() && named().all(|subscription| !subscription.allows(ACTION)) {
        return Err(ArmError::graph_denied());
    }
    let options = &body["options"];
    if options["resultFormat"]
        .as_str()
        .is_some_and(|format| format != "objectArray")
    {
        return Err(ArmError::graph("InvalidOptions", "Only rows as objects are simulated."));
    }
    let top = options["$top"].as_u64().unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&top) {
        return Err(ArmError::graph("InvalidOptions", "$top must be from 1 to 1000."));
    }
    let query = kql::parse(text).map_err(|failure| ArmError::query(&failure))?;
    // Subscriptions without a role are silently not there, and neither are
    // those that are disabled.
    let visible = named().filter(|s| s.is_polled() && s.allows(ACTION));
    let rows = query.run(table(visible, &query.table)?);
    let listing = Listing {
        asked: fnv1a(format!("{text}\n{}", scope.join("\n").to_lowercase()).as_bytes()),
        limit: usize::try_from(top).unwrap_or(usize::MAX),
        token: options["$skipToken"].as_str(),
    };
    let rows = page::rows(rows, Value::clone);
    let page = page(&rows, &listing, alteration)
        .ok_or_else(|| ArmError::graph("InvalidSkipToken", "The skip token is not one of this query."))?;
    let mut rows = page.rows;
    let mut next = page.next;
    let mut is_cut = false;
    if alteration == Some(FaultKind::PartialResult) {
        // Half of the rows, and no way to the others.
        rows.truncate(rows.len() / 2);
        (next, is_cut) = (None, true);
    } else if !query.can_page && next.is_some() {
        (next, is_cut) = (None, true);
    }
    let mut answer = json!({
        "totalRecords": page.total,
        "count": rows.len(),
        "resultTruncated": if is_cut { "true" } else { "false" },
        "data": rows,
        "facets": [],
    });
    if let Some(next) = next {
        answer["$skipToken"] = json!(next);
    }
    Ok(answer)
}

/// The rows of a table that the caller may see.
fn table<'a>(visible: impl Iterator<Item = &'a Subscription>, name: &str) -> Result<Vec<Value>, ArmError> {
    let mut found = Vec::new();
    for subscription in visible {
        match name.to_lowercase().as_str() {
            "resources" => {
                let machines = subscription.machines.iter();
                let machines = machines.filter(|_| subscription.allows("Microsoft.Compute/virtualMachines/read"));
                found.extend(machines.map(|machine| rows::machine(&subscription.id, machine, View::Graph)));
                let sets = subscription.sets.iter();
                let sets = sets.filter(|_| subscription.allows("Microsoft.Compute/virtualMachineScaleSets/read"));
                found.extend(sets.map(|set| rows::scale_set(subscription, set)));
            }
            "computeresources" => {
                let sets = subscription.sets.iter().filter(|set| !set.spec.flexible);
                let sets = sets
                    .filter(|_| subscription.allows("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read"));
                for set in sets {
                    let members = 0..set.spec.members.len();
                    found.extend(members.map(|number| rows::member(subscription, set, number, View::Graph)));
                }
            }
            _ => {
                return Err(ArmError::query(&kql::Failure {
                    line: 1,
                    position: 0,
                    token: name.to_owned(),
                }));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_used_up_and_whole_again_after_its_time() {
        let mut quota = Quota::new(2, SignedDuration::from_secs(5));
        let at = |millis: i64| Timestamp::from_millisecond(1_000_000 + millis).expect("a time");
        let left = |queries, seconds| Left { queries, seconds };
        assert_eq!(quota.take(at(0)), Ok(left(1, 5)));
        assert_eq!(quota.take(at(3500)), Ok(left(0, 2)));
        assert_eq!(quota.take(at(4000)), Err(left(0, 1)));
        assert_eq!(quota.take(at(5000)), Ok(left(1, 5)));
        assert_eq!(left(0, 3_725).headers()[1].1, "01:02:05");
    }
}
