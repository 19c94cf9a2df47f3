//! The shapes that times come in.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::{self, TimeZone},
};

/// Beijing, which times without a zone are in; it has no daylight saving.
const BEIJING: tz::Offset = tz::Offset::constant(8);

/// A time as any of the APIs prints it: ISO 8601 with `Z` or an offset,
/// `2025-12-09 23:14:50` in Beijing time, or seconds since 1970. `None` for
/// anything else, zero dates among it.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return TimeZone::fixed(BEIJING).to_timestamp(time).ok();
    }
    text.parse::<f64>().ok().and_then(from_seconds)
}

/// Seconds since 1970, if they are any time at all.
#[allow(
    clippy::cast_possible_truncation,
    reason = "saturates, and the range is checked after"
)]
pub(crate) fn from_seconds(seconds: f64) -> Option<Timestamp> {
    if !seconds.is_finite() || seconds <= 0.0 {
        return None;
    }
    Timestamp::from_second(seconds as i64).ok()
}

/// The date in Beijing, where billing days begin and end.
pub(crate) fn billing_date(at: Timestamp) -> Date {
    BEIJING.to_datetime(at).date()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_four_shapes_are_read() {
        let expected: Timestamp = "2020-09-22T00:00:00Z".parse().unwrap();
        for text in [
            "2020-09-22T00:00:00Z",
            "2020-09-22T00:00:00+00:00",
            "2020-09-22T08:00:00+08:00",
            "2020-09-22 08:00:00",
            " 2020-09-22T08:00:00 ",
            "1600732800",
            "1600732800.0",
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn no_time_is_none() {
        for text in [
            "",
            "-",
            "0",
            "0000-00-00 00:00:00",
            "null",
            "soon",
            "2020-13-01 00:00:00",
            "NaN",
            "1e300",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn billing_days_are_those_of_beijing() {
        let at: Timestamp = "2026-01-01T16:00:00Z".parse().unwrap();
        assert_eq!(billing_date(at).to_string(), "2026-01-02");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text: String) {
            let _ = parse(&text);
        }
    }
}
