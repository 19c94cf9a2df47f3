//! How a command fails.

/// Exit code of a runtime failure.
pub(super) const FAILURE: u8 = 1;
/// Exit code of wrong usage or configuration.
pub(super) const USAGE: u8 = 2;

/// A failure with its exit code. The text says what happened, where, and what
/// to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// Wrong usage or configuration.
    #[error("{0}")]
    Usage(String),
    /// Anything that went wrong at run time.
    #[error("{0}")]
    Failure(String),
}

impl CliError {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Failure(_) => FAILURE,
        }
    }

    /// A runtime failure with a cause.
    pub(super) fn failure(what: &str, cause: impl std::fmt::Display) -> Self {
        Self::Failure(format!("{what}: {cause}"))
    }
}
