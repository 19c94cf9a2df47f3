//! Writer of the Prometheus text exposition format, version 0.0.4.

use jiff::Timestamp;

use super::table::Metric;

/// Appends families to a page.
#[derive(Debug)]
pub struct Page<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Page<'a> {
    /// A page that grows at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Writes one family: its header, then whatever `series` adds. A family
    /// without series leaves no trace.
    pub fn family(&mut self, metric: &'static Metric, series: impl FnOnce(&mut Family<'_>)) {
        let start = self.out.len();
        for (word, text) in [("# HELP ", metric.help), ("# TYPE ", metric.kind.as_str())] {
            self.out.extend_from_slice(word.as_bytes());
            self.out.extend_from_slice(metric.name.as_bytes());
            self.out.push(b' ');
            push_help(self.out, text);
            self.out.push(b'\n');
        }
        let headed = self.out.len();
        series(&mut Family::new(self.out, metric));
        if self.out.len() == headed {
            self.out.truncate(start);
        }
    }
}

/// Adds the series of one family. What lies between the values of its labels
/// is put together once and not once per series.
#[derive(Debug)]
pub struct Family<'a> {
    out: &'a mut Vec<u8>,
    /// Metric name, with the opening brace where there are labels.
    open: Vec<u8>,
    /// Per declared label: the quote that ends the value before, a comma, the
    /// label's name, the quote that begins its value.
    between: Vec<Vec<u8>>,
}

impl<'a> Family<'a> {
    fn new(out: &'a mut Vec<u8>, metric: &'static Metric) -> Self {
        let mut open = metric.name.as_bytes().to_vec();
        if !metric.labels.is_empty() {
            open.push(b'{');
        }
        let between = metric.labels.iter().map(|label| format!("\",{label}=\"").into_bytes());
        Self {
            out,
            open,
            between: between.collect(),
        }
    }

    /// A series with one value per declared label.
    pub fn series(&mut self, values: &[&str], value: Value) {
        self.series_in(b"", values, value);
    }

    /// A series whose first labels are already written in `block` (see
    /// [`push_labels`]); `values` are those of the declared labels that follow.
    pub fn series_in(&mut self, block: &[u8], values: &[&str], value: Value) {
        let declared = self.between.len();
        debug_assert!(values.len() <= declared && (block.is_empty() == (values.len() == declared)));
        let following = self
            .between
            .get(declared.saturating_sub(values.len())..)
            .unwrap_or_default();
        self.out.extend_from_slice(&self.open);
        self.out.extend_from_slice(block);
        // A block ends its last value itself; before the first label of all
        // there is no comma either.
        let mut skip = if block.is_empty() { 2 } else { 1 };
        for (between, value) in following.iter().zip(values) {
            self.out.extend_from_slice(between.get(skip..).unwrap_or_default());
            push_label_value(self.out, value);
            skip = 0;
        }
        self.out.extend_from_slice(match (declared, values.len()) {
            (0, _) => b" ",
            (_, 0) => b"} ",
            _ => b"\"} ",
        });
        value.push(self.out);
        self.out.push(b'\n');
    }
}

/// The value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A whole number, written exactly.
    Whole(u64),
    /// Any other number.
    Float(f64),
}

impl Value {
    /// The constant of information series.
    pub const ONE: Self = Self::Whole(1);

    fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Whole(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            Self::Float(number) => push_float(out, number),
        }
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Whole(u64::from(yes))
    }
}

impl From<Timestamp> for Value {
    /// Unix time in seconds, to the millisecond.
    #[allow(
        clippy::cast_precision_loss,
        reason = "milliseconds of jiff's whole range fit 53 bits"
    )]
    fn from(time: Timestamp) -> Self {
        Self::Float(time.as_millisecond() as f64 / 1000.0)
    }
}

/// Writes `name="value"` pairs, comma-separated, without the braces.
pub fn push_labels(out: &mut Vec<u8>, names: &[&str], values: &[&str]) {
    for (index, (name, value)) in names.iter().zip(values).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"=\"");
        push_label_value(out, value);
        out.push(b'"');
    }
}

/// Escapes a label value. NUL, which ends the input for Prometheus's own
/// parser, becomes the replacement character.
fn push_label_value(out: &mut Vec<u8>, value: &str) {
    let is_special = |byte: &u8| matches!(byte, b'\\' | b'"' | b'\n' | 0);
    // Without an early end the compiler looks at many bytes at once, and
    // nearly every value is plain.
    if !value
        .as_bytes()
        .iter()
        .fold(false, |found, byte| found | is_special(byte))
    {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(is_special) {
        let (plain, from_special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((special, after)) = from_special.split_first() else {
            break;
        };
        out.extend_from_slice(match special {
            b'\\' => br"\\",
            b'"' => br#"\""#,
            b'\n' => br"\n",
            _ => "\u{fffd}".as_bytes(),
        });
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// Escapes a help text.
fn push_help(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            _ => out.push(byte),
        }
    }
}

/// Whole numbers below this have an exact float.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn push_float(out: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if number.is_infinite() {
        out.extend_from_slice(if number > 0.0 { b"+Inf" } else { b"-Inf" });
    } else if number.fract() == 0.0 && number.abs() < EXACT {
        out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    } else {
        out.extend_from_slice(ryu::Buffer::new().format_finite(number).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(number: f64) -> String {
        let mut out = Vec::new();
        push_float(&mut out, number);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn numbers_are_plain_and_exact() {
        for (number, text) in [
            (0.0, "0"),
            (8.0, "8"),
            (0.125, "0.125"),
            (0.041_667, "0.041667"),
            (-2.5, "-2.5"),
            (1_785_312_000.0, "1785312000"),
            (1_785_312_000.25, "1785312000.25"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn every_finite_number_reads_back_as_itself() {
        for number in [
            f64::MAX,
            f64::MIN_POSITIVE,
            1e16,
            1.0 / 3.0,
            -1e-300,
            EXACT,
            EXACT + 2.0,
        ] {
            let read: f64 = float(number).parse().expect("number");
            assert_eq!(read.to_bits(), number.to_bits());
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut out = Vec::new();
        push_labels(
            &mut out,
            &["a", "b", "c"],
            &["back\\slash \"quote\"", "two\nlines", "搜索 \0 团队"],
        );
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(
            text,
            "a=\"back\\\\slash \\\"quote\\\"\",b=\"two\\nlines\",c=\"搜索 \u{fffd} 团队\""
        );
    }

    #[test]
    fn a_family_without_series_leaves_no_header() {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out);
        page.family(&super::super::table::BUILD_INFO, |_| {});
        assert!(out.is_empty());
    }
}
