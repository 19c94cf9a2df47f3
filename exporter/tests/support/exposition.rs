//! A strict reader of the text exposition format, independent of the writer.

use std::collections::{BTreeMap, BTreeSet};

pub type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Family {
    pub help: String,
    pub kind: String,
    /// By sample name and labels.
    pub samples: BTreeMap<(String, Labels), f64>,
}

pub type Families = BTreeMap<String, Family>;

/// Reads a page and insists on what the format demands: a header before the
/// samples, families in one piece, no series twice, no label twice.
pub fn parse(text: &str) -> Families {
    let mut families = Families::new();
    let mut current = String::new();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line must end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("help text");
            assert!(!families.contains_key(name), "{name} comes in two pieces");
            families.insert(
                name.to_owned(),
                Family {
                    help: unescape(help, false),
                    ..Family::default()
                },
            );
            name.clone_into(&mut current);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("type");
            assert_eq!(name, current, "type without help");
            kind.clone_into(&mut families.get_mut(name).expect("help").kind);
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).expect("a header before the samples");
            let own = [
                &*current,
                &format!("{current}_bucket"),
                &format!("{current}_sum"),
                &format!("{current}_count"),
            ]
            .contains(&&*name);
            assert!(own, "{name} within {current}");
            let before = family.samples.insert((name, labels), value);
            assert!(before.is_none(), "series twice: {line}");
        }
    }
    families
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().expect("a number"),
    };
    let Some((name, rest)) = series.split_once('{') else {
        return (series.to_owned(), Labels::new(), value);
    };
    let mut rest = rest.strip_suffix('}').expect("closing brace");
    let mut labels = Labels::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label");
        assert!(
            label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
            "label name {label:?}"
        );
        let end = end_of_value(after);
        let before = labels.insert(label.to_owned(), unescape(&after[..end], true));
        assert!(before.is_none(), "label twice: {line}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), labels, value)
}

fn end_of_value(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    panic!("value without end: {text}");
}

fn unescape(text: &str, quotes: bool) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quotes) {
            ('\\', _) => match chars.next().expect("an escaped character") {
                'n' => out.push('\n'),
                '\\' => out.push('\\'),
                '"' if quotes => out.push('"'),
                other => panic!("unknown escape {other:?}"),
            },
            ('"', true) => panic!("bare quote"),
            _ => out.push(c),
        }
    }
    out
}

/// The values of one label over all series of a family.
pub fn label_values(family: &Family, label: &str) -> BTreeSet<String> {
    family
        .samples
        .keys()
        .filter_map(|(_, labels)| labels.get(label).cloned())
        .collect()
}
