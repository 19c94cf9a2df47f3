//! Checks after decoding: places for values, files, and the list of problems.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    Node, Value,
    tree::{item_path, key_path},
};
use crate::{
    Secret,
    error::{Place, Problems},
};

/// The longest secret that is read from a file, in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// What a check needs besides the section it looks at.
pub(crate) struct Checks<'a> {
    pub(crate) problems: &'a Problems,
    pub(crate) warnings: &'a Problems,
    /// The folder that relative paths start from.
    pub(crate) base_dir: &'a Path,
}

/// A value's place in the file, whether or not it is written there.
#[derive(Clone)]
pub(crate) struct Spot<'a> {
    /// The node itself, if the value is written.
    node: Option<&'a Node>,
    /// Its place, or that of the nearest map or list around it.
    place: Place,
    path: String,
}

impl<'a> Spot<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node: Some(node),
            place: node.place,
            path: node.path.clone(),
        }
    }

    /// The value of a key of this map.
    pub(crate) fn key(&self, key: &str) -> Self {
        let entry = match self.node.map(|node| &node.value) {
            Some(Value::Map(entries)) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        };
        let node = entry.map(|entry| &entry.value);
        Self {
            node,
            place: node.map_or(self.place, |node| node.place),
            path: key_path(&self.path, key),
        }
    }

    /// The decoded item of this list with that index: refused ones do not count.
    pub(crate) fn item(&self, index: usize) -> Self {
        let node = match self.node.map(|node| &node.value) {
            Some(Value::List(items)) => items.iter().filter(|item| !item.is_refused()).nth(index),
            _ => None,
        };
        match node {
            Some(node) => Self::root(node),
            None => Self {
                node: None,
                place: self.place,
                path: item_path(&self.path, index),
            },
        }
    }

    /// Whether the file has a value here, be it one that was refused.
    pub(crate) fn is_given(&self) -> bool {
        self.node.is_some_and(|node| !node.is_null())
    }

    /// Whether this is written as a list without items.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.node.map(|node| &node.value), Some(Value::List(items)) if items.is_empty())
    }

    /// The value as written, ready to begin a message. Never for secrets.
    fn quoted(&self) -> String {
        match self.node.map(|node| &node.value) {
            Some(Value::Scalar(scalar)) => scalar.quoted(),
            _ => String::new(),
        }
    }
}

impl Checks<'_> {
    /// Reports a problem without showing the value.
    pub(crate) fn problem(&self, spot: &Spot<'_>, message: impl Into<String>, fix: impl Into<String>) {
        self.problems.report(spot.place, &spot.path, message, Some(fix.into()));
    }

    /// Reports a problem and quotes the value as it is written.
    pub(crate) fn bad_value(&self, spot: &Spot<'_>, message: &str, fix: impl Into<String>) {
        self.problem(spot, format!("{}{message}", spot.quoted()), fix);
    }

    /// Notes something doubtful that does not stop the program.
    pub(crate) fn warn_of(&self, spot: &Spot<'_>, message: impl Into<String>, fix: impl Into<String>) {
        self.warnings.report(spot.place, &spot.path, message, Some(fix.into()));
    }

    /// Notes a doubtful value and quotes it.
    pub(crate) fn warn(&self, spot: &Spot<'_>, message: &str, fix: impl Into<String>) {
        self.warn_of(spot, format!("{}{message}", spot.quoted()), fix);
    }

    /// Reports the second of two keys that exclude each other.
    pub(crate) fn exclusive(&self, section: &Spot<'_>, first: &str, second: &str) {
        let spot = section.key(second);
        if section.key(first).is_given() && spot.is_given() {
            self.problem(
                &spot,
                format!("{first} and {second} are both given"),
                "keep one of the two",
            );
        }
    }

    /// Reports texts that occur twice in a list.
    pub(crate) fn unique(&self, list: &Spot<'_>, items: &[String]) {
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            if !seen.insert(item) {
                self.bad_value(&list.item(index), "listed twice", "remove one");
            }
        }
    }

    /// Reports sections of a list that have the same text under `key`.
    pub(crate) fn unique_by<'t>(&self, list: &Spot<'_>, key: &str, items: impl Iterator<Item = &'t str>) {
        let mut seen = HashSet::new();
        for (index, item) in items.enumerate() {
            if !seen.insert(item) {
                let fix = format!("give each its own {key}, or join them");
                self.bad_value(
                    &list.item(index).key(key),
                    &format!("another section has this {key}"),
                    fix,
                );
            }
        }
    }

    /// Reports empty texts in a list.
    pub(crate) fn not_blank(&self, list: &Spot<'_>, items: &[String]) {
        for (index, item) in items.iter().enumerate() {
            if item.trim().is_empty() {
                self.problem(&list.item(index), "empty", "write a value, or remove the item");
            }
        }
    }

    /// Makes a path absolute as far as the folder of the file is.
    pub(crate) fn resolve(&self, spot: &Spot<'_>, path: &mut PathBuf) {
        if path.as_os_str().is_empty() {
            self.problem(spot, "an empty path", "write the path of a file, or remove the key");
        } else if path.is_relative() {
            *path = self.base_dir.join(&*path);
        }
    }

    /// Resolves a path and reports when no file is there.
    pub(crate) fn file(&self, spot: &Spot<'_>, path: Option<&mut PathBuf>) -> bool {
        let Some(path) = path else { return false };
        self.resolve(spot, path);
        match fs::metadata(&*path) {
            _ if path.as_os_str().is_empty() => false,
            Ok(metadata) if metadata.is_file() => true,
            Ok(_) => {
                self.bad_value(spot, "not a regular file", "write the path of a file");
                false
            }
            Err(error) => {
                let message = format!("cannot be read: {}", error_words(&error));
                let fix = format!("create {} or correct the path", path.display());
                self.bad_value(spot, &message, fix);
                false
            }
        }
    }

    /// Brings a secret and its `*_file` form together: at most one of the two
    /// keys, the file readable and neither empty. The secret is filled from the
    /// file.
    pub(crate) fn secret(
        &self,
        section: &Spot<'_>,
        key: &str,
        secret: &mut Option<Secret>,
        file: &mut Option<PathBuf>,
    ) {
        let file_key = format!("{key}_file");
        self.exclusive(section, key, &file_key);
        if secret.as_ref().is_some_and(Secret::is_empty) {
            self.problem(&section.key(key), "an empty secret", "write it, or remove the key");
        }
        let spot = section.key(&file_key);
        if let Some(read) = self.secret_file(&spot, file.as_mut()) {
            *secret = Some(read);
        }
    }

    /// Reports an id of a key pair without its secret, or the reverse; each may
    /// be given directly or as a file.
    pub(crate) fn pair_of_keys(&self, section: &Spot<'_>, id: &str, secret: &str) {
        self.needs_key(section, id, secret);
        self.needs_key(section, secret, id);
    }

    /// Reports a secret that is given without another one it is of no use
    /// without; each may be given directly or as a file.
    pub(crate) fn needs_key(&self, section: &Spot<'_>, key: &str, needed: &str) {
        let given = |key: &str| {
            [key.to_owned(), format!("{key}_file")]
                .iter()
                .map(|key| section.key(key))
                .find(Spot::is_given)
        };
        if let (Some(spot), None) = (given(key), given(needed)) {
            let fix = format!("add {needed} or {needed}_file");
            self.problem(&spot, format!("given without {needed}"), fix);
        }
    }

    /// Reads a secret from a file, without the line break at its end.
    pub(crate) fn secret_file(&self, spot: &Spot<'_>, path: Option<&mut PathBuf>) -> Option<Secret> {
        let path = path?;
        if !self.file(spot, Some(&mut *path)) {
            return None;
        }
        let mut text = String::new();
        let read = fs::File::open(&*path).and_then(|file| file.take(MAX_SECRET + 1).read_to_string(&mut text));
        if let Err(error) = read {
            self.bad_value(
                spot,
                &format!("cannot be read: {}", error_words(&error)),
                "check the file's owner and mode",
            );
            return None;
        }
        if text.len() as u64 > MAX_SECRET {
            self.bad_value(
                spot,
                "the file is too large for a secret",
                "keep nothing but the secret in it",
            );
            return None;
        }
        let secret = text.strip_suffix('\n').unwrap_or(&text);
        let secret = secret.strip_suffix('\r').unwrap_or(secret);
        if secret.is_empty() {
            self.bad_value(spot, "the file is empty", "write the secret into it");
            return None;
        }
        Some(Secret::from_file(secret.to_owned()))
    }
}

/// The cause of a file error without the number of the operating system.
pub(crate) fn error_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        kind => kind.to_string(),
    }
}
