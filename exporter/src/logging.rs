//! Logs: to standard error, as text for people or JSON for machines.

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text on a terminal, JSON otherwise
    Auto,
    /// One line of text per event
    Text,
    /// One JSON object per event
    Json,
}

/// The levels that mean "gpuwatch itself at this level".
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The log filter was not understood.
#[derive(Debug, thiserror::Error)]
#[error("{given:?} is neither a log level ({}) nor a list of target=level: {source}", LEVELS.join(", "))]
pub struct BadFilter {
    given: String,
    source: tracing_subscriber::filter::ParseError,
}

/// A plain level is meant for gpuwatch's own crates: what its libraries say
/// below a warning is noise, and at trace level includes whole requests.
fn directives(level: &str) -> String {
    let level = level.trim().to_ascii_lowercase();
    match level.as_str() {
        "off" | "error" => level,
        word if LEVELS.contains(&word) => format!("warn,gpuwatch={word}"),
        _ => level,
    }
}

/// Starts logging. Later calls have no effect.
///
/// # Errors
/// When `level` is not understood.
pub fn init(level: &str, format: Format) -> Result<(), BadFilter> {
    let filter = EnvFilter::try_new(directives(level)).map_err(|source| BadFilter {
        given: level.to_owned(),
        source,
    })?;
    let terminal = io::stderr().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let text = match format {
        Format::Auto => terminal,
        Format::Text => true,
        Format::Json => false,
    };
    // A second start in one process (tests) keeps the first.
    let _ = if text {
        builder.with_ansi(colour).try_init()
    } else {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init()
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_level_is_for_gpuwatch_itself() {
        assert_eq!(directives("debug"), "warn,gpuwatch=debug");
        assert_eq!(directives("ERROR"), "error");
        assert_eq!(directives("info,hyper=trace"), "info,hyper=trace");
    }

    #[test]
    fn a_level_that_does_not_exist_is_refused() {
        assert!(init("loud,=", Format::Text).is_err());
    }
}
