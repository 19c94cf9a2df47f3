//! The query language of Resource Graph: tables, `where`, `extend`, `project`,
//! `order by` and `take`. What is not understood is refused, not ignored.

mod parse;
mod token;

use std::cmp::Ordering;

use regex::Regex;
use serde_json::{Map, Value};

pub(crate) use parse::parse;

/// Why a query cannot be answered, as the service tells it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// From 1.
    pub(crate) line: usize,
    /// From 0, in characters.
    pub(crate) position: usize,
    pub(crate) token: String,
}

impl Failure {
    /// At a position in bytes, with the text that is not understood there.
    fn at(query: &str, at: usize, token: &str) -> Self {
        let before = query.get(..at).unwrap_or(query);
        Self {
            line: before.matches('\n').count() + 1,
            position: before.rsplit('\n').next().unwrap_or_default().chars().count(),
            token: token.chars().take(40).collect(),
        }
    }
}

/// A query that was understood.
#[derive(Debug)]
pub(crate) struct Query {
    /// Table, as it is spelled.
    pub(crate) table: String,
    steps: Vec<Step>,
    /// Whether the rows have a fixed order and ids, which paging needs.
    pub(crate) can_page: bool,
}

#[derive(Debug)]
enum Step {
    Where(Predicate),
    /// Adds columns.
    Extend(Vec<Column>),
    /// Keeps these columns only.
    Project(Vec<Column>),
    /// By each in turn; the flag is for descending order.
    Order(Vec<(Expression, bool)>),
    Take(u64),
}

#[derive(Debug)]
struct Column {
    name: String,
    value: Expression,
}

#[derive(Debug)]
enum Expression {
    /// A column, and the way below it.
    Path(Vec<String>),
    Text(String),
    Number(u64),
    ToText(Box<Expression>),
    ToLower(Box<Expression>),
}

#[derive(Debug)]
enum Predicate {
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    IsEmpty(Expression),
    Equals(Expression, Vec<Expression>, Case),
    Matches(Expression, Regex),
    Has(Expression, Place, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Counts,
    Ignored,
}

/// Where a part is looked for; case is ignored.
#[derive(Debug, Clone, Copy)]
enum Place {
    Anywhere,
    Begin,
    End,
}

impl Query {
    /// The rows that the query makes of a table's rows.
    pub(crate) fn run(&self, mut rows: Vec<Value>) -> Vec<Value> {
        for step in &self.steps {
            match step {
                Step::Where(predicate) => rows.retain(|row| predicate.holds(row)),
                Step::Extend(columns) => {
                    for row in &mut rows {
                        let added = values(columns, row);
                        if let Some(row) = row.as_object_mut() {
                            row.extend(added);
                        }
                    }
                }
                Step::Project(columns) => rows = rows.iter().map(|row| values(columns, row).into()).collect(),
                Step::Order(keys) => rows.sort_by(|a, b| compare(keys, a, b)),
                Step::Take(count) => rows.truncate(usize::try_from(*count).unwrap_or(usize::MAX)),
            }
        }
        rows
    }
}

fn values(columns: &[Column], row: &Value) -> Map<String, Value> {
    let value = |column: &Column| (column.name.clone(), column.value.of(row));
    columns.iter().map(value).collect()
}

fn compare(keys: &[(Expression, bool)], a: &Value, b: &Value) -> Ordering {
    let orders = keys.iter().map(|(key, descending)| {
        let order = as_text(&key.of(a))
            .to_lowercase()
            .cmp(&as_text(&key.of(b)).to_lowercase());
        if *descending { order.reverse() } else { order }
    });
    orders.fold(Ordering::Equal, Ordering::then)
}

impl Expression {
    fn of(&self, row: &Value) -> Value {
        match self {
            Self::Path(path) => {
                let found = path.iter().try_fold(row, |value, key| value.get(key));
                found.cloned().unwrap_or_default()
            }
            Self::Text(text) => text.as_str().into(),
            Self::Number(number) => (*number).into(),
            Self::ToText(inner) => as_text(&inner.of(row)).into(),
            Self::ToLower(inner) => as_text(&inner.of(row)).to_lowercase().into(),
        }
    }
}

/// What `tostring` makes of a value.
fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Predicate {
    /// A comparison with what is not there does not hold.
    fn holds(&self, row: &Value) -> bool {
        let text = |expression: &Expression| Some(expression.of(row)).filter(|v| !v.is_null()).map(|v| as_text(&v));
        match self {
            Self::And(all) => all.iter().all(|one| one.holds(row)),
            Self::Or(all) => all.iter().any(|one| one.holds(row)),
            Self::Not(inner) => !inner.holds(row),
            Self::IsEmpty(value) => text(value).is_none_or(|text| text.is_empty()),
            Self::Equals(value, others, case) => text(value).is_some_and(|value| {
                let mut others = others.iter().filter_map(text);
                others.any(|other| match case {
                    Case::Counts => value == other,
                    Case::Ignored => value.to_lowercase() == other.to_lowercase(),
                })
            }),
            Self::Matches(value, pattern) => text(value).is_some_and(|value| pattern.is_match(&value)),
            Self::Has(value, place, part) => text(value).is_some_and(|value| {
                let (value, part) = (value.to_lowercase(), part.to_lowercase());
                match place {
                    Place::Anywhere => value.contains(&part),
                    Place::Begin => value.starts_with(&part),
                    Place::End => value.ends_with(&part),
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(query: &str) -> Vec<Value> {
        let table = vec![
            json!({"id": "/b", "name": "B|x", "type": "Microsoft.Compute/virtualMachines", "tags": {"a-b": "1"},
                   "properties": {"hardwareProfile": {"vmSize": "Standard_NC4as_T4_v3"}, "count": 3}}),
            json!({"id": "/A", "name": "it's", "type": "microsoft.compute/virtualmachines",
                   "properties": {"hardwareProfile": {"vmSize": "Standard_D4s_v5"}}}),
            json!({"id": "/c", "name": "c", "type": "Microsoft.Compute/disks", "properties": {}}),
        ];
        parse(query).expect("understood").run(table)
    }

    fn names(query: &str) -> Vec<String> {
        let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
        run(query).iter().map(name).collect()
    }

    #[test]
    fn bars_and_quotes_in_texts_are_text() {
        assert_eq!(names("Resources | where name == 'B|x'"), ["B|x"]);
        assert_eq!(names("Resources | where name == \"B|x\" | project name"), ["B|x"]);
        assert_eq!(names(r"Resources | where name == 'it\'s'"), ["it's"]);
        assert_eq!(
            names("Resources | where name == @'it''s' // | where name == 'c'"),
            ["it's"]
        );
    }

    #[test]
    fn conditions_are_those_of_the_language() {
        for (condition, expected) in [
            ("type =~ 'MICROSOFT.compute/virtualmachines'", vec!["B|x", "it's"]),
            ("type == 'microsoft.compute/virtualmachines'", vec!["it's"]),
            ("type !~ 'microsoft.compute/virtualmachines'", vec!["c"]),
            ("type in~ ('microsoft.compute/DISKS', 'x')", vec!["c"]),
            ("type !in~ ('microsoft.compute/disks')", vec!["B|x", "it's"]),
            (
                "type in ('Microsoft.Compute/disks', 'microsoft.compute/virtualmachines')",
                vec!["it's", "c"],
            ),
            ("properties.hardwareProfile.vmSize startswith 'standard_n'", vec!["B|x"]),
            (
                "tostring(properties.hardwareProfile.vmSize) matches regex @'(?i)^standard_n[a-z]'",
                vec!["B|x"],
            ),
            ("properties['hardwareProfile'].vmSize endswith '_V5'", vec!["it's"]),
            ("type contains 'disk' or name =~ 'b|X'", vec!["B|x", "c"]),
            (
                "not(type contains 'disk') and (isempty(tags) or name == 'c')",
                vec!["it's"],
            ),
            ("isnotempty(properties.hardwareProfile.vmSize)", vec!["B|x", "it's"]),
            ("tolower(id) == '/a'", vec!["it's"]),
            ("tostring(properties.count) == '3'", vec!["B|x"]),
            ("properties.count == 3", vec!["B|x"]),
            ("properties.nothing =~ ''", vec![]),
            ("tostring(properties.nothing) == ''", vec!["B|x", "it's", "c"]),
            ("tags['a-b'] == '1'", vec!["B|x"]),
        ] {
            assert_eq!(
                names(&format!("Resources | where {condition}")),
                expected,
                "{condition}"
            );
        }
    }

    #[test]
    fn columns_are_added_named_and_left_out() {
        let query = "Resources\n| extend size = tostring(properties.hardwareProfile.vmSize)\n\
            | where size matches regex @'^Standard_N'\n\
            | project id, size, zones, tag = tags['a-b'], properties.count\n| order by id asc";
        assert_eq!(
            run(query),
            [json!({"id": "/b", "size": "Standard_NC4as_T4_v3", "zones": null, "tag": "1", "properties_count": 3})]
        );
    }

    #[test]
    fn rows_have_the_order_that_is_asked_for() {
        assert_eq!(names("Resources | order by id asc"), ["it's", "B|x", "c"]);
        assert_eq!(names("Resources | sort by type asc, id | take 2"), ["c", "B|x"]);
    }

    #[test]
    fn paging_needs_an_order_and_ids() {
        for (query, can_page) in [
            ("Resources", false),
            ("Resources | order by id asc", true),
            ("Resources | project id, name | order by name asc", true),
            ("Resources | order by name | project name", false),
            ("Resources | order by id asc | take 5", false),
        ] {
            assert_eq!(parse(query).expect("understood").can_page, can_page, "{query}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_at_its_place() {
        for (query, line, position, token) in [
            ("", 1, 0, ""),
            ("Resources | summarize count()", 1, 12, "summarize"),
            ("Resources\n| where type ~ 'x'", 2, 13, "~"),
            ("Resources | where type =~ 'x", 1, 26, "'x"),
            ("Resources | where name matches regex '('", 1, 37, "("),
            ("Resources | project name | order by id asc", 1, 36, "id"),
            ("Resources | where nonsense == 'x'", 1, 18, "nonsense"),
            ("Resources | project", 1, 19, ""),
            ("Resources project id", 1, 10, "project"),
            ("Resources | where type =~ 'x' 'y'", 1, 30, "y"),
        ] {
            let failure = parse(query).expect_err(query);
            assert_eq!(
                (failure.line, failure.position, failure.token.as_str()),
                (line, position, token),
                "{query}"
            );
        }
    }
}
