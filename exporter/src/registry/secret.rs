//! Secrets from the configuration for collectors that read files themselves.

use std::path::Path;

use gpuwatch_collector_rest::SecretSource;
use gpuwatch_config::Secret;

/// The file where there is one, so that a rotated secret is read anew; else
/// the text.
pub(super) fn source(secret: Option<&Secret>, file: Option<&Path>) -> Option<SecretSource> {
    match file {
        Some(file) => Some(SecretSource::File(file.to_owned())),
        None => secret.map(|secret| SecretSource::value(secret.expose())),
    }
}
