//! What can be done with numbers.

/// A function of the samples of a range and its limits, in milliseconds.
pub type OverRange = fn(&[(i64, f64)], i64, i64) -> Option<f64>;

fn values(samples: &[(i64, f64)]) -> impl Iterator<Item = f64> + '_ {
    samples.iter().map(|(_, value)| *value)
}

#[allow(clippy::cast_precision_loss, reason = "counts and milliseconds fit")]
fn number(count: impl TryInto<i64>) -> f64 {
    count.try_into().unwrap_or(i64::MAX) as f64
}

/// The function of this name.
#[must_use]
pub fn over_range(name: &str) -> Option<OverRange> {
    Some(match name {
        "sum_over_time" => |samples, _, _| Some(values(samples).sum()),
        "count_over_time" => |samples, _, _| Some(number(samples.len())),
        "avg_over_time" => |samples, _, _| Some(values(samples).sum::<f64>() / number(samples.len())),
        "max_over_time" => |samples, _, _| values(samples).reduce(f64::max),
        "min_over_time" => |samples, _, _| values(samples).reduce(f64::min),
        "last_over_time" => |samples, _, _| samples.last().map(|(_, value)| *value),
        "rate" => |samples, from, to| increase(samples, from, to).map(|total| total / (number(to - from) / 1000.0)),
        "increase" => increase,
        _ => return None,
    })
}

/// What a counter gained, extrapolated to the limits of the range as
/// Prometheus does it.
fn increase(samples: &[(i64, f64)], from: i64, to: i64) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    if samples.len() < 2 {
        return None;
    }
    let mut gained = last.1 - first.1;
    let mut before = first.1;
    for (_, value) in samples {
        if *value < before {
            gained += before;
        }
        before = *value;
    }
    let seconds = |millis: i64| number(millis) / 1000.0;
    let mut to_start = seconds(first.0 - from);
    let to_end = seconds(to - last.0);
    let spanned = seconds(last.0 - first.0);
    let between = spanned / number(samples.len() - 1);
    if gained > 0.0 && first.1 >= 0.0 {
        // A counter was not below zero before.
        to_start = to_start.min(spanned * (first.1 / gained));
    }
    let threshold = between * 1.1;
    let mut covered = spanned;
    covered += if to_start < threshold { to_start } else { between / 2.0 };
    covered += if to_end < threshold { to_end } else { between / 2.0 };
    Some(gained * covered / spanned)
}

/// The aggregation of this name.
#[must_use]
pub fn aggregation(name: &str) -> Option<fn(&[f64]) -> f64> {
    Some(match name {
        "sum" => |values| values.iter().sum(),
        "avg" => |values| values.iter().sum::<f64>() / number(values.len()),
        "min" => |values| values.iter().copied().fold(f64::NAN, f64::min),
        "max" => |values| values.iter().copied().fold(f64::NAN, f64::max),
        "count" => |values| number(values.len()),
        "group" => |_| 1.0,
        _ => return None,
    })
}

/// Whether an operator compares.
#[must_use]
pub fn is_comparison(name: &str) -> bool {
    matches!(name, "==" | "!=" | ">" | "<" | ">=" | "<=")
}

/// The operator of this name; a comparison gives 1 or 0.
#[must_use]
#[allow(clippy::float_cmp, reason = "PromQL compares exactly")]
pub fn operator(name: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match name {
        "+" => |a, b| a + b,
        "-" => |a, b| a - b,
        "*" => |a, b| a * b,
        "/" => |a, b| a / b,
        "%" => |a, b| a % b,
        "==" => |a, b| f64::from(u8::from(a == b)),
        "!=" => |a, b| f64::from(u8::from(a != b)),
        ">" => |a, b| f64::from(u8::from(a > b)),
        "<" => |a, b| f64::from(u8::from(a < b)),
        ">=" => |a, b| f64::from(u8::from(a >= b)),
        "<=" => |a, b| f64::from(u8::from(a <= b)),
        _ => return None,
    })
}
