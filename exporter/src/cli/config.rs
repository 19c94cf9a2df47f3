//! `config schema | example | show`.

use super::{args::ConfigCommand, configuration, error::CliError, output};

pub(super) fn run(command: ConfigCommand) -> Result<(), CliError> {
    match command {
        ConfigCommand::Schema => output::print(with_newline(gpuwatch_config::schema_json()).as_bytes()),
        ConfigCommand::Example => output::print(gpuwatch_config::EXAMPLE.as_bytes()),
        ConfigCommand::Show(file) => {
            let path = configuration::locate(file.config.as_deref())?;
            let loaded = configuration::load(&path).map_err(|refused| configuration::refuse(&refused))?;
            output::print(with_newline(gpuwatch_config::show(&loaded.config)).as_bytes())
        }
    }
}

fn with_newline(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
