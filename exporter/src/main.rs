//! The `gpuwatch` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpuwatch::cli::run(std::env::args_os())
}
