//! Lengths of time such as `5m` or `1h30m`.

use std::{fmt, str::FromStr, time::Duration};

use crate::error::Invalid;

const SECOND: u64 = 1;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// Long enough for any retention, and multiples of it still fit everywhere.
const LONGEST: u64 = 3_660 * DAY;
const FIX: &str = "write a number with a unit of s, m, h, d or w, such as 90s, 5m, 1h30m or 7d";

/// A length of time in whole seconds, more than none and at most ten years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

impl Period {
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub(crate) const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes * MINUTE)
    }

    pub(crate) const fn hours(hours: u64) -> Self {
        Self::seconds(hours * HOUR)
    }

    pub(crate) const fn days(days: u64) -> Self {
        Self::seconds(days * DAY)
    }

    /// The length.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.0
    }
}

impl FromStr for Period {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = || Invalid::new("not a duration", FIX);
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad());
        }
        if rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Invalid::new("a duration without a unit", FIX));
        }
        let mut seconds: u64 = 0;
        let mut last_unit = u64::MAX;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let mut letters = tail.chars();
            let unit = match letters.next() {
                Some('s') => SECOND,
                Some('m') => MINUTE,
                Some('h') => HOUR,
                Some('d') => DAY,
                Some('w') => WEEK,
                _ => return Err(bad()),
            };
            if unit >= last_unit {
                return Err(Invalid::new(
                    "units out of order",
                    "write the larger unit first, each once: 1h30m",
                ));
            }
            last_unit = unit;
            rest = letters.as_str();
            let number: u64 = number.parse().map_err(|_| bad())?;
            seconds = number
                .checked_mul(unit)
                .and_then(|part| seconds.checked_add(part))
                .filter(|total| *total <= LONGEST)
                .ok_or_else(|| Invalid::new("too long a duration", "write at most 3660d"))?;
        }
        match seconds {
            0 => Err(Invalid::new(
                "a duration of zero",
                "write at least 1s, or remove the key for its default",
            )),
            seconds => Ok(Self::seconds(seconds)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_secs();
        for (unit, letter) in [(DAY, 'd'), (HOUR, 'h'), (MINUTE, 'm'), (SECOND, 's')] {
            if rest >= unit {
                write!(f, "{}{letter}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

super::scalar_type!(
    Period,
    pattern: r"^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
    about: "A duration with units of s, m, h, d or w, such as 90s, 5m, 1h30m or 7d.",
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_and_their_combinations_are_read() {
        for (text, seconds) in [
            ("1s", 1),
            ("5m", 300),
            ("1h30m", 5_400),
            ("2w", 1_209_600),
            ("1w2d3h4m5s", 788_645),
        ] {
            assert_eq!(text.parse(), Ok(Period::seconds(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for (text, message) in [
            ("300", "a duration without a unit"),
            ("0s", "a duration of zero"),
            ("0", "a duration without a unit"),
            ("1.5h", "not a duration"),
            ("-5m", "not a duration"),
            ("5 m", "not a duration"),
            ("5min", "not a duration"),
            ("500ms", "not a duration"),
            ("30m1h", "units out of order"),
            ("5m5m", "units out of order"),
            ("m", "not a duration"),
            ("", "not a duration"),
            ("99999d", "too long a duration"),
            ("99999999999999999999s", "not a duration"),
            ("999999999999999999w", "too long a duration"),
        ] {
            assert_eq!(text.parse::<Period>().unwrap_err().message(), message, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(seconds in 1..=LONGEST) {
            let period = Period::seconds(seconds);
            prop_assert_eq!(period.to_string().parse(), Ok(period));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Period>();
        }
    }
}
