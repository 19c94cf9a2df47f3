//! What a section must be able to do after decoding.

use crate::yaml::{Checks, Spot};

/// Checks that span several keys, files and folders. Also brings a section
/// into its final form: paths resolved, secrets read from their files.
pub(crate) trait Check {
    /// `spot` is the place of this section in the file.
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>);
}
