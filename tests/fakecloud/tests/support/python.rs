//! Running Python tools that the test set-up installs.

use std::path::PathBuf;

/// The interpreter that has boto3: the one named by `GPUWATCH_TEST_PYTHON`,
/// else the one of the project's own virtual environment in the user's cache.
/// `None`, after saying so, when there is none and tools are not required.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("GPUWATCH_TEST_PYTHON").map(PathBuf::from);
    let usual = std::env::home_dir().map(|home| home.join(".cache/gpuwatch/venv/bin/python"));
    let found = named.or_else(|| usual.filter(|path| path.exists()));
    if found.is_none() {
        let required = std::env::var("GPUWATCH_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "no Python with boto3, and GPUWATCH_REQUIRE_TOOLS=1");
        eprintln!("skipped: no Python with boto3");
    }
    found
}
