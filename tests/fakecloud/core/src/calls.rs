//! The log of calls: what tests compare a client's own accounting with.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::FaultKind;
use crate::cloud::CallKey;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Not answered yet.
    InFlight,
    /// An HTTP answer was sent.
    Answered {
        /// HTTP status.
        status: u16,
        /// The cloud's error code; `None` for success and for answers that are
        /// no error of the cloud's own (an HTML page).
        code: Option<String>,
    },
    /// No answer: the fake dropped the connection, or the client went away.
    Abandoned,
}

/// One call, in the order of arrival.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The cloud (`aws`).
    pub provider: &'static str,
    /// Service by its signing name (`ec2`).
    pub service: String,
    /// Operation (`DescribeInstances`).
    pub operation: String,
    /// The caller's account; empty when it was not identified.
    pub account: String,
    /// The region called; empty where a service has none.
    pub region: String,
    /// The page token that was sent.
    pub page_token: Option<String>,
    /// The injected fault, if one hit the call.
    pub fault: Option<FaultKind>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it arrived.
    pub at: Timestamp,
    /// Time to the end of the call; `None` while it is in flight.
    pub duration: Option<Duration>,
}

impl CallRecord {
    /// Whether the client got a well-formed successful answer.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        let answered = matches!(
            self.outcome,
            Outcome::Answered {
                status: 200..300,
                code: None
            }
        );
        answered && self.fault.is_none_or(FaultKind::alters_answer)
    }
}

#[derive(Debug, Default)]
struct Log {
    records: VecDeque<CallRecord>,
    /// Number of the oldest record kept.
    first: u64,
    limit: usize,
    in_flight: usize,
    max_in_flight: usize,
}

/// Bounded, because `gpuwatch demo` runs for as long as somebody looks at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallLog {
    log: Arc<Mutex<Log>>,
}

impl CallLog {
    pub fn new(limit: usize) -> Self {
        let log = Log {
            limit,
            ..Log::default()
        };
        Self {
            log: Arc::new(Mutex::new(log)),
        }
    }

    /// Opens a record. The call is abandoned if the guard is dropped unused.
    pub fn open(&self, key: &CallKey) -> OpenCall {
        let mut log = self.lock();
        log.in_flight += 1;
        log.max_in_flight = log.max_in_flight.max(log.in_flight);
        if log.records.len() >= log.limit.max(1) {
            log.records.pop_front();
            log.first += 1;
        }
        let number = log.first + log.records.len() as u64;
        log.records.push_back(CallRecord {
            provider: key.provider,
            service: key.service.clone(),
            operation: key.operation.clone(),
            account: key.account.clone(),
            region: key.region.clone(),
            page_token: key.page_token.clone(),
            fault: None,
            outcome: Outcome::InFlight,
            at: Timestamp::now(),
            duration: None,
        });
        OpenCall {
            log: self.clone(),
            number,
            started: Instant::now(),
            outcome: Outcome::Abandoned,
        }
    }

    pub fn records(&self) -> Vec<CallRecord> {
        self.lock().records.iter().cloned().collect()
    }

    pub fn total(&self) -> u64 {
        let log = self.lock();
        log.first + log.records.len() as u64
    }

    pub fn max_in_flight(&self) -> usize {
        self.lock().max_in_flight
    }

    /// Forgets finished calls and starts the in-flight maximum anew.
    pub fn clear(&self) {
        let mut log = self.lock();
        log.first += log.records.len() as u64;
        log.records.clear();
        log.max_in_flight = log.in_flight;
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut CallRecord)) {
        let mut log = self.lock();
        let index = number
            .checked_sub(log.first)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(record) = index.and_then(|index| log.records.get_mut(index)) {
            change(record);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in flight; closes its record when dropped, so that a call whose
/// client went away does not stay in flight for ever.
pub(crate) struct OpenCall {
    log: CallLog,
    number: u64,
    started: Instant,
    outcome: Outcome,
}

impl OpenCall {
    pub fn fault(&self, kind: FaultKind) {
        self.log.change(self.number, |record| record.fault = Some(kind));
    }

    pub fn answered(mut self, status: u16, code: Option<String>) {
        self.outcome = Outcome::Answered { status, code };
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Abandoned);
        let duration = self.started.elapsed();
        self.log.change(self.number, |record| {
            record.outcome = outcome;
            record.duration = Some(duration);
        });
        let mut log = self.log.lock();
        log.in_flight = log.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_keeps_the_newest_records_and_counts_all() {
        let calls = CallLog::new(2);
        for operation in ["A", "B", "C"] {
            let key = CallKey {
                operation: operation.to_owned(),
                ..CallKey::default()
            };
            calls.open(&key).answered(200, None);
        }
        let kept: Vec<_> = calls.records().into_iter().map(|record| record.operation).collect();
        assert_eq!(kept, ["B", "C"]);
        assert_eq!(calls.total(), 3);
    }

    #[test]
    fn abandoned_call_is_no_longer_in_flight() {
        let calls = CallLog::new(10);
        let open = calls.open(&CallKey::default());
        let second = calls.open(&CallKey::default());
        assert_eq!(calls.max_in_flight(), 2);
        drop(open);
        drop(second);
        calls
            .open(&CallKey::default())
            .answered(503, Some("RequestLimitExceeded".to_owned()));
        assert_eq!(calls.max_in_flight(), 2);
        let records = calls.records();
        assert_eq!(records[0].outcome, Outcome::Abandoned);
        assert!(!records[2].succeeded());
        assert!(records.iter().all(|record| record.duration.is_some()));
    }
}
