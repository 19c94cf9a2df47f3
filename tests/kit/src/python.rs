//! The Python that the test set-up installs the vendors' SDKs into.

use std::{env, path::PathBuf, process::Command};

/// A Python that can import these modules (`boto3, moto`): the one that
/// `GPUWATCH_TEST_PYTHON` names, else that of the project's own virtual
/// environment in the user's cache. `None`, after saying so, when there is none
/// and `GPUWATCH_REQUIRE_TOOLS` is not 1.
#[must_use]
pub fn python_with(modules: &str) -> Option<PathBuf> {
    let named = env::var_os("GPUWATCH_TEST_PYTHON").map(PathBuf::from);
    let usual = || env::home_dir().map(|home| home.join(".cache/gpuwatch/venv/bin/python"));
    let usable = named.or_else(usual).filter(|path| {
        let check = Command::new(path).args(["-c", &format!("import {modules}")]).output();
        check.is_ok_and(|output| output.status.success())
    });
    if usable.is_none() {
        let required = env::var("GPUWATCH_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "a Python with {modules} is required and missing");
        eprintln!("skipped: no Python with {modules} (GPUWATCH_TEST_PYTHON)");
    }
    usable
}
