//! The command line: one module per command.

mod args;
mod catalog;
mod check;
mod check_telemetry;
mod config;
mod configuration;
mod csv_text;
mod demo;
mod error;
mod list;
mod output;
mod reference;
mod serve;
mod table;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, Parser as _};

use args::{Cli, Command};
use error::CliError;

/// Runs the program with these arguments, the first being its name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, mistakes to standard error; when
            // neither can be written to there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(error::USAGE));
        }
    };
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// The command line as clap knows it, for completions, the manual and tests.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

fn dispatch(cli: Cli) -> Result<(), CliError> {
    let level = cli
        .logging
        .log_level
        .as_deref()
        .unwrap_or(cli.command.default_log_level());
    crate::logging::init(level, cli.logging.log_format)
        .map_err(|error| CliError::Usage(format!("--log-level: {error}")))?;
    // Before anything opens a connection: one TLS provider for all. When a
    // library was faster, it chose the same one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::List(args) => list::run(&args),
        Command::Catalog(args) => catalog::run(&args),
        Command::Config(command) => config::run(command),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man => reference::manual(),
    }
}

/// The threads that everything runs on.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure("starting threads failed", error))
}
