//! Problems in a configuration file, each with its place and its cure.

use std::{
    cell::RefCell,
    fmt,
    path::{Path, PathBuf},
};

/// Problems listed before the rest is cut off: a file this broken is not read
/// to its end by anybody.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// One thing that is wrong (or, among warnings, doubtful) in a file.
///
/// Shown as `file:line:column: key: message; fix` on one line. Never contains
/// the value of a secret or of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named to the loader.
    pub origin: PathBuf,
    /// Line, counted from 1. `None` when the file could not be read at all.
    pub line: Option<usize>,
    /// Column in characters, counted from 1.
    pub column: Option<usize>,
    /// Path of the key, e.g. `providers.aws[0].regions`. Empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it, where that can be said.
    pub fix: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a file, in the order of the file. Prints one
/// problem a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    problems: Vec<Problem>,
}

impl ConfigErrors {
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// A file that cannot be read at all.
    pub(crate) fn unreadable(origin: &Path, message: String, fix: &str) -> Self {
        Self::new(vec![Problem {
            origin: origin.to_path_buf(),
            line: None,
            column: None,
            key: String::new(),
            message,
            fix: Some(fix.to_owned()),
        }])
    }

    /// The problems, at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// A place in the file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// The growing list of problems of one file. Shared by the passes over it,
/// hence the cell.
pub(crate) struct Problems {
    origin: PathBuf,
    list: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(crate) fn new(origin: &Path) -> Self {
        Self {
            origin: origin.to_path_buf(),
            list: RefCell::new(Vec::new()),
        }
    }

    pub(crate) fn report(&self, place: Place, key: &str, message: impl Into<String>, fix: Option<String>) {
        let problem = Problem {
            origin: self.origin.clone(),
            line: Some(place.line),
            column: Some(place.column),
            key: key.to_owned(),
            message: message.into(),
            fix,
        };
        let mut list = self.list.borrow_mut();
        if !list.contains(&problem) {
            list.push(problem);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.borrow().len() >= MAX_PROBLEMS
    }

    /// The problems in the order of the file, cut off with a note.
    pub(crate) fn into_sorted(self) -> Vec<Problem> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|problem| (problem.line, problem.column));
        let left_out = list.split_off(MAX_PROBLEMS.min(list.len()));
        if let Some(first) = left_out.first() {
            list.push(Problem {
                origin: self.origin,
                line: first.line,
                column: first.column,
                key: String::new(),
                message: format!("{} further problems from here on are not shown", left_out.len()),
                fix: None,
            });
        }
        list
    }
}

/// Why a value was refused: what is wrong, and how to write it. The parsers of
/// single values speak in this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n{fix}")]
pub struct Invalid {
    message: String,
    fix: String,
}

impl Invalid {
    pub(crate) fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// What is wrong, without the value itself.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to write it.
    #[must_use]
    pub fn fix(&self) -> &str {
        &self.fix
    }
}

/// The candidate that somebody who wrote `word` most likely meant: at most a
/// third of its letters differ, case aside.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_close_or_absent() {
        let words = ["regions", "exclude_regions", "profile"];
        assert_eq!(nearest("region", words), Some("regions"));
        assert_eq!(nearest("Regoins", words), Some("regions"));
        assert_eq!(nearest("colour", words), None);
    }

    #[test]
    fn a_problem_prints_on_one_line() {
        let problem = Problem {
            origin: "gpuwatch.yaml".into(),
            line: Some(3),
            column: Some(7),
            key: "listen".into(),
            message: "no port".into(),
            fix: Some("write host:port".into()),
        };
        assert_eq!(
            problem.to_string(),
            "gpuwatch.yaml:3:7: listen: no port; write host:port"
        );
    }

    #[test]
    fn a_flood_of_problems_is_cut_off_with_a_note() {
        let problems = Problems::new(Path::new("f"));
        for line in 1..=MAX_PROBLEMS + 5 {
            problems.report(Place { line, column: 1 }, "", "bad", None);
        }
        let list = problems.into_sorted();
        assert_eq!(list.len(), MAX_PROBLEMS + 1);
        assert_eq!(
            list.last().unwrap().message,
            "5 further problems from here on are not shown"
        );
    }
}
