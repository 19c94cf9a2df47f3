//! What is asked: selectors, windows, and the parts that a question too big
//! for one answer is divided into.

use std::time::Duration;

use crate::family::Family;

/// Samples are kept for as long as they take to arrive: a scrape, a remote
/// write, and a round that comes a little late.
const SLACK: Duration = Duration::from_mins(2);

/// The window of samples that one round reads.
#[must_use]
pub fn window(interval: Duration) -> Duration {
    interval + SLACK
}

/// A selector of a metric with matchers; empty matchers do not count.
#[must_use]
pub fn selector<'a>(name: &str, matchers: impl IntoIterator<Item = &'a str>) -> String {
    let matchers: Vec<&str> = matchers.into_iter().filter(|matcher| !matcher.is_empty()).collect();
    if matchers.is_empty() {
        name.to_owned()
    } else {
        format!("{name}{{{}}}", matchers.join(","))
    }
}

/// A part of a family's series, by the first digits of the cards' random ids.
/// The parts of a part have nothing in common and together are all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shard {
    /// Everything.
    All,
    /// A quarter: four first digits.
    Quarter(usize),
    /// Ids that start with this digit.
    Digit(usize),
    /// Ids that start with these two.
    Pair(usize, usize),
    /// Ids that do not start with a digit.
    Rest,
    /// Ids of this one digit.
    RestOf(usize),
}

/// Both cases of each hexadecimal digit.
const DIGITS: [&str; 16] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[aA]", "[bB]", "[cC]", "[dD]", "[eE]", "[fF]",
];

impl Shard {
    /// The parts to ask for when so many series are known to be there.
    #[must_use]
    pub fn for_series(series: usize, per_query: usize) -> Vec<Self> {
        let mut shards = vec![Self::All];
        for parts in [1, 4, 16] {
            if series.div_ceil(parts) <= per_query.max(1) {
                break;
            }
            shards = shards.into_iter().flat_map(Self::divided_or_whole).collect();
        }
        shards
    }

    /// Its parts; none when it cannot be divided.
    #[must_use]
    pub fn parts(self) -> Vec<Self> {
        match self {
            Self::All => (0..4).map(Self::Quarter).chain([Self::Rest]).collect(),
            Self::Quarter(quarter) => (quarter * 4..quarter * 4 + 4).map(Self::Digit).collect(),
            Self::Digit(digit) => {
                let pairs = (0..16).map(|second| Self::Pair(digit, second));
                pairs.chain([Self::RestOf(digit)]).collect()
            }
            Self::Pair(..) | Self::Rest | Self::RestOf(_) => Vec::new(),
        }
    }

    /// A number of series for which [`Shard::for_series`] gives smaller parts
    /// than this one.
    #[must_use]
    pub fn series_beyond(self, per_query: usize) -> usize {
        let parts = match self {
            Self::All => 1,
            Self::Quarter(_) => 4,
            _ => 16,
        };
        per_query.max(1).saturating_mul(parts).saturating_add(1)
    }

    fn divided_or_whole(self) -> Vec<Self> {
        let parts = self.parts();
        if parts.is_empty() { vec![self] } else { parts }
    }

    /// The matcher that selects it; empty for everything.
    #[must_use]
    pub fn matcher(self, family: &Family) -> String {
        let label = family.shard_label();
        let digit = |number: usize| DIGITS.get(number).copied().unwrap_or_default();
        let starts = match self {
            Self::All => return String::new(),
            Self::Rest => return format!("{label}!~\"(?:GPU-)?[0-9a-fA-F].*\""),
            Self::RestOf(first) => format!("{}(?:[^0-9a-fA-F].*)?", digit(first)),
            Self::Quarter(quarter) => {
                let digits: Vec<&str> = (quarter * 4..quarter * 4 + 4).map(digit).collect();
                format!("(?:{}).*", digits.join("|"))
            }
            Self::Digit(first) => format!("{}.*", digit(first)),
            Self::Pair(first, second) => format!("{}{}.*", digit(first), digit(second)),
        };
        format!("{label}=~\"(?:GPU-)?{starts}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::FAMILIES;

    #[test]
    fn selectors_have_braces_only_when_they_need_them() {
        assert_eq!(selector("up", ["", ""]), "up");
        assert_eq!(selector("up", ["a=\"b\"", "", "c!=\"\""]), "up{a=\"b\",c!=\"\"}");
    }

    #[test]
    fn the_more_series_the_more_parts() {
        let counts =
            [0, 10_000, 10_001, 40_001, 160_001, usize::MAX].map(|series| Shard::for_series(series, 10_000).len());
        assert_eq!(counts, [1, 1, 5, 17, 273, 273]);
        assert_eq!(
            Shard::for_series(1, 0),
            [Shard::All],
            "a limit of nothing is one of one"
        );
    }

    /// What the matcher of a shard selects, without a regular expression.
    fn selects(shard: Shard, id: &str) -> bool {
        let digit = |at: usize| id.chars().nth(at).and_then(|c| c.to_digit(16)).map(|d| d as usize);
        match shard {
            Shard::All => true,
            Shard::Rest => digit(0).is_none(),
            Shard::Quarter(quarter) => digit(0).is_some_and(|first| first / 4 == quarter),
            Shard::Digit(first) => digit(0) == Some(first),
            Shard::Pair(first, second) => digit(0) == Some(first) && digit(1) == Some(second),
            Shard::RestOf(first) => digit(0) == Some(first) && digit(1).is_none(),
        }
    }

    #[test]
    fn every_id_is_in_exactly_one_part_and_its_matcher_says_so() {
        for series in [1, 20_000, 100_000, 1_000_000] {
            let shards = Shard::for_series(series, 10_000);
            for id in ["", "0", "7", "f", "0a", "Bf00", "9z", "cafe-1", "x1", "48C3"] {
                let with: Vec<_> = shards.iter().filter(|shard| selects(**shard, id)).collect();
                assert_eq!(with.len(), 1, "{id:?} of {series}");
                for shard in &shards {
                    let matcher = shard.matcher(&FAMILIES[0]);
                    let Some((_, pattern)) = matcher.split_once('"') else {
                        continue;
                    };
                    let regex = regex::Regex::new(&format!("^(?:{})$", pattern.trim_end_matches('"'))).expect("valid");
                    let is_negative = matcher.starts_with("UUID!~");
                    for id in [id.to_owned(), format!("GPU-{id}")] {
                        assert_eq!(
                            regex.is_match(&id) != is_negative,
                            selects(*shard, id.trim_start_matches("GPU-")),
                            "{matcher} {id}"
                        );
                    }
                }
            }
        }
    }
}
