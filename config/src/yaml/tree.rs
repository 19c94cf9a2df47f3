//! A YAML document as nodes that know their place and their path.

use std::{cell::Cell, collections::HashMap};

use granit_parser::{Event, Parser, ScalarStyle, Span, options};

use super::expand::{Expanded, Lookup, expand};
use crate::error::{Place, Problems};

/// Nodes of one document, copies made by aliases included. Five times what a
/// file with ten thousand accounts needs.
const MAX_NODES: usize = 200_000;
/// Nested lists and maps; the deepest key of the schema has a quarter of it.
const MAX_DEPTH: usize = 32;

/// One value with its place. No `Debug`: the text may be a secret.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    /// Path of the key, e.g. `providers.aws[0].regions`.
    pub(crate) path: String,
    pub(crate) value: Value,
    /// Set once the value has been reported; it is then passed over.
    refused: Cell<bool>,
}

#[derive(Clone)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone)]
pub(crate) struct Scalar {
    /// The text with references replaced.
    pub(crate) text: String,
    /// The text as it stands in the file. The only form that may be printed.
    pub(crate) written: String,
    /// Neither quoted nor a block.
    plain: bool,
    expanded: bool,
}

/// A key of a map with its value.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    fn new(place: Place, path: String, value: Value) -> Self {
        Self {
            place,
            path,
            value,
            refused: Cell::new(false),
        }
    }

    /// Marks the value as reported.
    pub(crate) fn refuse(&self) {
        self.refused.set(true);
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused.get()
    }

    /// Whether there is no value: an empty place, `null` or `~`, or a reference
    /// that expanded to nothing. A variable whose value reads `null` is a text.
    pub(crate) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) if scalar.plain && scalar.expanded => scalar.text.is_empty(),
            Value::Scalar(scalar) if scalar.plain => {
                matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// What the value is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    fn size(&self) -> usize {
        1 + match &self.value {
            Value::Scalar(_) => 0,
            Value::List(items) => items.iter().map(Self::size).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    fn depth(&self) -> usize {
        let children = match &self.value {
            Value::Scalar(_) => return 0,
            Value::List(items) => items.iter().map(Self::depth).max(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.depth()).max(),
        };
        1 + children.unwrap_or(0)
    }

    /// Gives a copy made by an alias the path it has now.
    fn rename(&mut self, path: String) {
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    item.rename(item_path(&path, index));
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    entry.value.rename(key_path(&path, &entry.key));
                }
            }
        }
        self.path = path;
    }
}

/// Path of a key inside the map at `parent`.
pub(crate) fn key_path(parent: &str, key: &str) -> String {
    let simple = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let key = if simple { key.to_owned() } else { format!("{key:?}") };
    if parent.is_empty() {
        key
    } else {
        format!("{parent}.{key}")
    }
}

/// Path of an item inside the list at `parent`, counted from 0.
pub(crate) fn item_path(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// Reads a document. An empty one is an empty map. Problems are reported; what
/// could be read is returned, and `None` when the text is no YAML.
pub(crate) fn read(text: &str, env: Lookup<'_>, problems: &Problems) -> Option<Node> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        env,
        problems,
        anchors: HashMap::new(),
        nodes: 0,
    };
    reader.document().ok()
}

/// Reading stopped; the reason is among the problems.
struct Stopped;

struct Reader<'a> {
    text: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    env: Lookup<'a>,
    problems: &'a Problems,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

fn place(span: Span) -> Place {
    Place {
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

impl<'a> Reader<'a> {
    fn stop(&self, place: Place, message: impl Into<String>, fix: &str) -> Stopped {
        self.problems.report(place, "", message, Some(fix.to_owned()));
        Stopped
    }

    /// The next event, `None` at the end of the stream.
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Stopped> {
        match self.parser.next() {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(error)) => {
                let place = Place {
                    line: error.marker().line(),
                    column: error.marker().col() + 1,
                };
                let line = self.text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
                let fix = if line.contains("${") {
                    "put \"${NAME}\" in quotation marks: inside [ ] and { } YAML reads its braces"
                } else {
                    "check indentation, quotation marks and brackets here and in the lines above"
                };
                Err(self.stop(place, format!("not valid YAML: {}", error.info()), fix))
            }
        }
    }

    fn expect(&mut self) -> Result<(Event<'a>, Span), Stopped> {
        match self.next()? {
            Some(event) => Ok(event),
            None => Err(self.stop(
                Place::START,
                "not valid YAML: the text ends too early",
                "complete the file",
            )),
        }
    }

    fn document(&mut self) -> Result<Node, Stopped> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(self.stop(
                        place(span),
                        "a second document begins here",
                        "keep one document per file",
                    ));
                }
                Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, span, String::new())?),
            }
        }
        Ok(root.unwrap_or_else(|| Node::new(Place::START, String::new(), Value::Map(Vec::new()))))
    }

    fn node(&mut self, event: Event<'a>, span: Span, path: String) -> Result<Node, Stopped> {
        let at = place(span);
        self.count(at, 1)?;
        if event.tag().is_some_and(granit_parser::Tag::is_custom) {
            return Err(self.stop(at, "tags are not supported", "remove the word that begins with !"));
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                (self.scalar(at, path, &text, plain), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let items = self.items(&path)?;
                (Node::new(at, path, Value::List(items)), anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                let entries = self.entries(&path)?;
                (Node::new(at, path, Value::Map(entries)), anchor)
            }
            Event::Alias(id) => return self.copy(id, at, path),
            _ => return Err(self.stop(at, "not valid YAML: a value was expected", "write a value")),
        };
        if anchor != 0 {
            // The copy that is kept counts as well: it takes memory too.
            self.count(at, node.size())?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn copy(&mut self, id: usize, at: Place, path: String) -> Result<Node, Stopped> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(self.stop(at, "an alias refers to itself", "write the value out"));
        };
        let (size, depth) = (anchored.size(), anchored.depth());
        if depth >= MAX_DEPTH {
            return Err(self.stop(at, "aliases are nested too deeply", "write the value out"));
        }
        self.count(at, size)?;
        let mut node = self.anchors.get(&id).cloned().ok_or(Stopped)?;
        node.rename(path);
        Ok(node)
    }

    fn count(&mut self, at: Place, nodes: usize) -> Result<(), Stopped> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(self.stop(
                at,
                "the file holds too many values",
                "shorten lists, or use fewer aliases",
            ));
        }
        Ok(())
    }

    fn scalar(&self, at: Place, path: String, written: &str, plain: bool) -> Node {
        let expanded = expand(written, self.env);
        let scalar = match &expanded {
            Ok(Expanded { text, replaced }) => Scalar {
                text: text.clone(),
                written: written.to_owned(),
                plain,
                expanded: *replaced,
            },
            // Refused below, and something rather than nothing.
            Err(_) => Scalar {
                text: String::new(),
                written: written.to_owned(),
                plain: false,
                expanded: true,
            },
        };
        let node = Node::new(at, path, Value::Scalar(scalar));
        if let Err(invalid) = expanded {
            self.problems
                .report(at, &node.path, invalid.message(), Some(invalid.fix().to_owned()));
            node.refuse();
        }
        node
    }

    fn items(&mut self, path: &str) -> Result<Vec<Node>, Stopped> {
        let mut items = Vec::new();
        loop {
            match self.expect()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, span, item_path(path, items.len()))?),
            }
        }
    }

    fn entries(&mut self, path: &str) -> Result<Vec<Entry>, Stopped> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        loop {
            let (event, span) = self.expect()?;
            let at = place(span);
            let key = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(self.stop(at, "a key must be a plain word", "write `key: value`")),
            };
            let (event, span) = self.expect()?;
            let mut value = self.node(event, span, key_path(path, &key))?;
            if value.is_null() {
                // The parser places a missing value after the line break.
                value.place = at;
            }
            if let Some(line) = seen.get(&key) {
                let message = format!("the key is given twice, first in line {line}");
                self.problems
                    .report(at, &value.path, message, Some("keep one of the two".to_owned()));
                continue;
            }
            seen.insert(key.clone(), at.line);
            entries.push(Entry { key, place: at, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read_text(text: &str) -> (Option<Node>, Vec<String>) {
        let problems = Problems::new(Path::new("f"));
        let env = |name: &str| (name == "INJECT").then(|| "x\nb: 2".to_owned());
        let node = read(text, &env, &problems);
        (node, problems.into_sorted().iter().map(ToString::to_string).collect())
    }

    fn entries(text: &str) -> Vec<Entry> {
        let (node, problems) = read_text(text);
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        match node.expect("tree").value {
            Value::Map(entries) => entries,
            _ => panic!("no map"),
        }
    }

    #[test]
    fn nodes_know_place_and_path() {
        let map = entries("a:\n  - b: [x, y]\n");
        let Value::List(items) = &map[0].value.value else {
            panic!()
        };
        let Value::Map(inner) = &items[0].value else { panic!() };
        let Value::List(xy) = &inner[0].value.value else {
            panic!()
        };
        assert_eq!(
            (xy[1].path.as_str(), xy[1].place),
            ("a[0].b[1]", Place { line: 2, column: 12 })
        );
    }

    #[test]
    fn a_variable_cannot_add_keys() {
        let map = entries("a: ${INJECT}\n");
        assert_eq!(map.len(), 1);
        let Value::Scalar(scalar) = &map[0].value.value else {
            panic!()
        };
        assert_eq!(scalar.text, "x\nb: 2");
    }

    #[test]
    fn an_alias_is_a_copy_with_its_own_path() {
        let map = entries("a: &x [1]\nb: *x\n");
        let Value::List(items) = &map[1].value.value else {
            panic!()
        };
        assert_eq!(items[0].path, "b[0]");
    }

    #[test]
    fn alias_bombs_and_deep_nesting_stop_with_an_error() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
        }
        assert!(read_text(&bomb).1[0].contains("too many values"));
        assert!(!read_text(&"[".repeat(100_000)).1.is_empty());
        assert!(!read_text(&"- ".repeat(100_000)).1.is_empty());
        assert!(read_text("a: &a [*a]").1[0].contains("refers to itself"));
    }

    #[test]
    fn repeated_keys_second_documents_and_tags_are_errors() {
        assert_eq!(
            read_text("a: 1\nb: 2\na: 3\n").1[0],
            "f:3:1: a: the key is given twice, first in line 1; keep one of the two"
        );
        assert!(read_text("a: 1\n---\nb: 2\n").1[0].contains("second document"));
        assert!(read_text("a: !include x\n").1[0].contains("tags"));
    }

    #[test]
    fn empty_and_comment_only_texts_are_empty_maps() {
        for text in ["", "\n", "# comment\n", "---\n", "\u{feff}"] {
            let (node, problems) = read_text(text);
            assert!(problems.is_empty(), "{text:?} {problems:?}");
            assert!(
                node.is_some_and(|node| node.is_null() || matches!(node.value, Value::Map(_))),
                "{text:?}"
            );
        }
    }
}
