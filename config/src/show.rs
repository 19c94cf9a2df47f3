//! A configuration as YAML.

use crate::Config;

/// The effective configuration as YAML: defaults filled in, paths resolved,
/// every secret as `<redacted>`. A secret that came from a file is shown as
/// the path of that file only. Dollars are doubled, so that loading the text
/// gives the same values again.
#[must_use]
pub fn show(config: &Config) -> String {
    // Sections are maps, lists and texts: there is nothing the writer could
    // refuse. Should that change, a comment is still valid YAML.
    match serde_saphyr::to_string(config) {
        Ok(text) => text.replace('$', "$$"),
        Err(error) => format!("# cannot be shown: {error}\n"),
    }
}
