//! Errors that cards report, counted out of three kinds of sources.

use std::collections::{BTreeMap, HashMap, VecDeque};

use gpuwatch_inventory::GpuError;
use jiff::Timestamp;

/// How long an error counts as recent.
const RECENT_MILLIS: i64 = 3600 * 1000;

/// What a card reported so far.
#[derive(Debug, Default)]
pub struct CardErrors {
    codes: BTreeMap<u32, Code>,
    /// The last value of each series, by the series' kind and code.
    before: HashMap<(Kind, u32), f64>,
}

#[derive(Debug, Default)]
struct Code {
    count: u64,
    last: i64,
    recent: VecDeque<(i64, u64)>,
}

/// What a source's value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The last code, for ever: only a change shows an error, and the same
    /// error again does not.
    Last,
    /// Errors within a window that moves: it also goes down.
    Window,
    /// Errors since the driver was loaded.
    Total,
}

impl CardErrors {
    /// Takes the next value of a series; `code` is 0 for [`Kind::Last`], whose
    /// value is the code. `card_is_known` says that the card was read before,
    /// so that a series which is new is about a new error.
    pub fn read(&mut self, kind: Kind, code: u32, at: i64, value: f64, card_is_known: bool) {
        if !(0.0..1e9).contains(&value) {
            return;
        }
        let before = self.before.insert((kind, code), value);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 1e9, checked above"
        )]
        let whole = |value: f64| value as u32;
        match (kind, before) {
            (Kind::Last, Some(before)) => {
                if whole(value) != whole(before) && whole(value) != 0 {
                    self.note(whole(value), at, 1);
                }
            }
            // It may be from long ago.
            (Kind::Last, None) => {}
            (Kind::Window, before) => {
                let before = before.unwrap_or(0.0);
                if value > before {
                    self.note(code, at, u64::from(whole(value) - whole(before)));
                }
            }
            (Kind::Total, Some(before)) => {
                // A counter that went down began anew.
                let new = if value >= before {
                    whole(value) - whole(before)
                } else {
                    whole(value)
                };
                self.note(code, at, u64::from(new));
            }
            (Kind::Total, None) => {
                if card_is_known {
                    self.note(code, at, u64::from(whole(value)));
                }
            }
        }
    }

    fn note(&mut self, code: u32, at: i64, count: u64) {
        if count == 0 {
            return;
        }
        let entry = self.codes.entry(code).or_default();
        entry.count = entry.count.saturating_add(count);
        entry.last = entry.last.max(at);
        entry.recent.push_back((at, count));
    }

    /// What there is to say at a time.
    pub fn at(&mut self, now: i64) -> Vec<GpuError> {
        let mut errors = Vec::new();
        for (code, entry) in &mut self.codes {
            while entry
                .recent
                .front()
                .is_some_and(|(at, _)| now.saturating_sub(*at) >= RECENT_MILLIS)
            {
                entry.recent.pop_front();
            }
            if let Ok(last) = Timestamp::from_millisecond(entry.last) {
                errors.push(GpuError {
                    code: *code,
                    count: entry.count,
                    recent: entry.recent.iter().map(|(_, count)| count).sum(),
                    last,
                });
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(errors: &mut CardErrors, now: i64) -> Vec<(u32, u64, u64, i64)> {
        let all = errors.at(now).into_iter();
        all.map(|error| (error.code, error.count, error.recent, error.last.as_millisecond()))
            .collect()
    }

    // P57
    #[test]
    fn the_same_error_twice_counts_twice_and_is_recent_for_an_hour() {
        let mut errors = CardErrors::default();
        for (at, value) in [
            (0, 0.0),
            (1000, 1.0),
            (2000, 1.0),
            (3000, 2.0),
            (4000, 1.0),
            (5000, 0.0),
        ] {
            errors.read(Kind::Window, 79, at, value, true);
        }
        assert_eq!(counts(&mut errors, 5000), [(79, 2, 2, 3000)]);
        assert_eq!(counts(&mut errors, RECENT_MILLIS + 1000), [(79, 2, 1, 3000)]);
        assert_eq!(counts(&mut errors, RECENT_MILLIS + 3000), [(79, 2, 0, 3000)]);
    }

    #[test]
    fn a_last_code_counts_when_it_changes_and_not_because_it_stays() {
        let mut errors = CardErrors::default();
        for (at, value) in [(0, 31.0), (1, 31.0), (2, 31.0)] {
            errors.read(Kind::Last, 0, at, value, true);
        }
        assert!(counts(&mut errors, 2).is_empty(), "it may be from long ago");
        for (at, value) in [(3, 79.0), (4, 79.0), (5, 0.0), (6, f64::NAN), (7, 1e12)] {
            errors.read(Kind::Last, 0, at, value, true);
        }
        assert_eq!(counts(&mut errors, 7), [(79, 1, 1, 3)]);
    }

    #[test]
    fn a_counter_that_begins_anew_is_no_loss() {
        let mut errors = CardErrors::default();
        for (at, value) in [(0, 5.0), (1, 7.0), (2, 1.0)] {
            errors.read(Kind::Total, 48, at, value, false);
        }
        errors.read(Kind::Total, 63, 3, 1.0, true);
        assert_eq!(counts(&mut errors, 3), [(48, 3, 3, 2), (63, 1, 1, 3)]);
    }
}
