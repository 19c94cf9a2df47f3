//! The only place that writes to standard output and, apart from the logs,
//! to standard error.

use std::io::{self, Write as _};

use super::error::CliError;

/// Writes data to standard output. A reader that has seen enough (`| head`)
/// is no failure.
pub(super) fn print(data: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failure("writing to standard output failed", error))
        }
        _ => Ok(()),
    }
}

/// Says on standard error what is wrong.
pub(super) fn complain(message: &str) {
    // When standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "error: {message}");
}

/// Says on standard error what is doubtful.
pub(super) fn warn(message: &str) {
    let _ = writeln!(io::stderr().lock(), "warning: {message}");
}
