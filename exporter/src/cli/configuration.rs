//! Finds and loads the configuration file for the commands that need one.

use std::path::{Path, PathBuf};

use gpuwatch_config::Loaded;

use super::error::CliError;
use crate::{
    registry,
    serve::{Plan, Refused},
};

/// Where the file is looked for when the command line does not name it.
const PLACES: [&str; 2] = ["gpuwatch.yaml", "/etc/gpuwatch/gpuwatch.yaml"];

/// The file to read: the named one, or the first that exists.
pub(super) fn locate(named: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    PLACES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .ok_or_else(|| {
            CliError::Usage(format!(
                "no configuration file: neither ./{} nor {} exists\n\
             write one with `gpuwatch config example > gpuwatch.yaml`, name one with --config FILE, or try \
             `gpuwatch demo`",
                PLACES[0], PLACES[1]
            ))
        })
}

/// Loads a file, telling the doubtful points of it to the log.
pub(super) fn load(path: &Path) -> Result<Loaded, Refused> {
    let loaded = gpuwatch_config::load(path)
        .map_err(|errors| Refused::new(errors.problems().iter().map(ToString::to_string).collect()))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    for section in registry::without_effect(&loaded.config) {
        tracing::warn!(
            section,
            "this section of the configuration has no effect in this version"
        );
    }
    Ok(loaded)
}

/// Loads the file and makes collectors of it.
pub(super) fn load_plan(path: &Path) -> Result<Plan, Refused> {
    let loaded = load(path)?;
    registry::plan(&loaded.config, None).map_err(|refused| {
        let place = |problem: &String| format!("{}: {problem}", path.display());
        Refused::new(refused.problems().iter().map(place).collect())
    })
}

/// As a failure of the command line: wrong configuration.
pub(super) fn refuse(refused: &Refused) -> CliError {
    let count = refused.problems().len();
    let problems = if count == 1 { "a problem" } else { "problems" };
    CliError::Usage(format!("the configuration has {problems}:\n{refused}"))
}

/// The plan of the named or found file.
pub(super) fn plan(named: Option<&Path>) -> Result<Plan, CliError> {
    load_plan(&locate(named)?).map_err(|refused| refuse(&refused))
}
