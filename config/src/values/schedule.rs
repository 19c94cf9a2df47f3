//! A moment of every week.

use std::{fmt, str::FromStr};

use jiff::civil::{Time, Weekday};

use crate::error::Invalid;

const DAYS: [(&str, &str, Weekday); 7] = [
    ("Mon", "Monday", Weekday::Monday),
    ("Tue", "Tuesday", Weekday::Tuesday),
    ("Wed", "Wednesday", Weekday::Wednesday),
    ("Thu", "Thursday", Weekday::Thursday),
    ("Fri", "Friday", Weekday::Friday),
    ("Sat", "Saturday", Weekday::Saturday),
    ("Sun", "Sunday", Weekday::Sunday),
];

/// A weekday and a time of day, such as `Mon 09:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    weekday: Weekday,
    time: Time,
}

impl Schedule {
    /// The day.
    #[must_use]
    pub const fn weekday(self) -> Weekday {
        self.weekday
    }

    /// The time of that day, in whole minutes.
    #[must_use]
    pub const fn time(self) -> Time {
        self.time
    }
}

impl Default for Schedule {
    /// Monday morning, when the week behind is complete.
    fn default() -> Self {
        Self {
            weekday: Weekday::Monday,
            time: Time::constant(9, 0, 0, 0),
        }
    }
}

impl FromStr for Schedule {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad = |message: &str| Invalid::new(message, "write a weekday and a time of 24 hours: \"Mon 09:00\"");
        let mut words = text.split_whitespace();
        let (Some(day), Some(time), None) = (words.next(), words.next(), words.next()) else {
            return Err(bad("not a weekly schedule"));
        };
        let weekday = DAYS
            .iter()
            .find(|(short, long, _)| day.eq_ignore_ascii_case(short) || day.eq_ignore_ascii_case(long))
            .map(|(_, _, weekday)| *weekday)
            .ok_or_else(|| bad("not a weekday"))?;
        let time = parse_time(time).ok_or_else(|| bad("not a time of day"))?;
        Ok(Self { weekday, time })
    }
}

fn parse_time(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !two_digits(minute) || !(two_digits(hour) || hour.len() == 1) {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = DAYS
            .iter()
            .find(|(_, _, weekday)| *weekday == self.weekday)
            .map_or("", |(short, ..)| short);
        write!(f, "{day} {:02}:{:02}", self.time.hour(), self.time.minute())
    }
}

super::scalar_type!(
    Schedule,
    pattern: r"^\s*[A-Za-z]{3,9}\s+[0-9]{1,2}:[0-9]{2}\s*$",
    about: "A weekday and a time of 24 hours, such as Mon 09:00.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekday_and_time_are_read_and_shown() {
        for (text, shown) in [
            ("Mon 09:00", "Mon 09:00"),
            ("friday  7:30", "Fri 07:30"),
            ("SUN 23:59", "Sun 23:59"),
        ] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), shown);
        }
        assert_eq!(Schedule::default().to_string(), "Mon 09:00");
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in [
            "",
            "Mon",
            "09:00",
            "Mon 9",
            "Mon 24:00",
            "Mon 09:60",
            "Mon 9:0",
            "Mon 09:00 UTC",
            "Mo 09:00",
            "Mon +9:00",
            "0 9 * * 1",
        ] {
            assert!(bad.parse::<Schedule>().is_err(), "{bad}");
        }
    }
}
