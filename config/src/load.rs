//! From a file or a text to a valid configuration.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use crate::{
    Config, ConfigErrors, Problem,
    check::Check,
    error::{Place, Problems},
    yaml::{Checks, Spot, decode, error_words, read},
};

/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// A valid configuration and what came with it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration: defaults filled in, paths resolved, secrets read.
    pub config: Config,
    /// Where it came from, as it was named.
    pub origin: PathBuf,
    /// What is doubtful but does not stop the program.
    pub warnings: Vec<Problem>,
}

/// Reads a file. References are looked up in the process's environment;
/// relative paths start from the file's folder.
///
/// # Errors
/// Every problem of the file, or the reason that it cannot be read.
pub fn load(path: impl AsRef<Path>) -> Result<Loaded, ConfigErrors> {
    let path = path.as_ref();
    let unreadable = |message: String, fix: &str| ConfigErrors::unreadable(path, message, fix);
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            unreadable(
                format!("cannot be read: {}", error_words(&error)),
                "check the path and its permissions",
            )
        })?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8 text".to_owned(), "save it as UTF-8"))?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    parse(&text, path, &|name| std::env::var(name).ok(), base_dir)
}

/// Reads a text. `origin` names it in messages, `env` looks variables up, and
/// relative paths start from `base_dir`. An empty text is a valid
/// configuration of nothing but defaults.
///
/// # Errors
/// Every problem of the text.
pub fn parse(
    text: &str,
    origin: impl AsRef<Path>,
    env: &dyn Fn(&str) -> Option<String>,
    base_dir: impl AsRef<Path>,
) -> Result<Loaded, ConfigErrors> {
    let origin = origin.as_ref();
    let problems = Problems::new(origin);
    let warnings = Problems::new(origin);
    let mut config = Config::default();
    if text.len() as u64 > MAX_FILE {
        problems.report(
            Place::START,
            "",
            "the file is larger than 8 MiB",
            Some("shorten it".to_owned()),
        );
    } else if let Some(root) = read(text, env, &problems) {
        config = decode(&root, &problems);
        let checks = Checks {
            problems: &problems,
            warnings: &warnings,
            base_dir: base_dir.as_ref(),
        };
        config.check(&Spot::root(&root), &checks);
    }
    let problems = problems.into_sorted();
    if problems.is_empty() {
        Ok(Loaded {
            config,
            origin: origin.to_path_buf(),
            warnings: warnings.into_sorted(),
        })
    } else {
        Err(ConfigErrors::new(problems))
    }
}
