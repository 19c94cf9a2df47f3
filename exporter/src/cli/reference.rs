//! `completions` and `man`.

use clap_complete::Shell;

use super::{command, error::CliError, output};

pub(super) fn completions(shell: Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "gpuwatch", &mut script);
    output::print(&script)
}

pub(super) fn manual() -> Result<(), CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command())
        .render(&mut page)
        .map_err(|error| CliError::failure("writing the manual page failed", error))?;
    output::print(&page)
}
