//! Reads the text exposition format, independently of the code that writes it.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// The identity of an instance: region and id are enough within one test.
    pub fn instance(&self) -> (String, String) {
        (self.label("region").to_owned(), self.label("instance_id").to_owned())
    }
}

#[derive(Debug, Default)]
pub struct Page(pub Vec<Sample>);

impl Page {
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(
            lines
                .map(|line| sample(line).unwrap_or_else(|| panic!("not a sample: {line}")))
                .collect(),
        )
    }

    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// Values of a per-instance series by identity.
    pub fn by_instance(&self, name: &str) -> BTreeMap<(String, String), f64> {
        self.named(name)
            .map(|sample| (sample.instance(), sample.value))
            .collect()
    }
}

fn sample(line: &str) -> Option<Sample> {
    let (name, mut rest) = match line.find(['{', ' ']) {
        Some(at) => line.split_at(at),
        None => return None,
    };
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(key.trim_start_matches(',').to_owned(), value);
            rest = after;
        }
        rest = &rest[1..];
    }
    Some(Sample {
        name: name.to_owned(),
        labels,
        value: rest.trim().parse().ok()?,
    })
}

/// The text up to the closing quote, unescaped, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
