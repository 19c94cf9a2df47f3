//! Secrets that are given as text or as a file.

use std::{fmt, path::PathBuf};

use gpuwatch_collector_core::{CollectError, Reason};
use secrecy::{ExposeSecret as _, SecretString};

/// Largest file that is taken for a secret.
const MAX_FILE: u64 = 64 << 10;

/// Where a secret comes from. A file is read each time, so that a rotated key
/// is used without a restart.
#[derive(Clone)]
pub enum SecretSource {
    /// The secret itself.
    Value(SecretString),
    /// A file that holds it; white space around it does not count.
    File(PathBuf),
}

impl SecretSource {
    /// A secret that is known already.
    #[must_use]
    pub fn value(text: &str) -> Self {
        Self::Value(SecretString::from(text))
    }

    /// The secret.
    ///
    /// # Errors
    /// When the file cannot be read, is empty, or is no text of a few lines.
    pub async fn read(&self) -> Result<SecretString, CollectError> {
        let path = match self {
            Self::Value(secret) => return Ok(secret.clone()),
            Self::File(path) => path,
        };
        let failed = |what: &dyn fmt::Display| {
            let message = format!("the secret file {} cannot be used: {what}", path.display());
            CollectError::new(Reason::Credentials, message)
        };
        let size = tokio::fs::metadata(path).await.map_err(|error| failed(&error))?.len();
        if size > MAX_FILE {
            return Err(failed(&"it is too large"));
        }
        let text = tokio::fs::read_to_string(path).await.map_err(|error| failed(&error))?;
        let secret = SecretString::from(text.trim());
        if secret.expose_secret().is_empty() {
            return Err(failed(&"it is empty"));
        }
        Ok(secret)
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value([redacted])"),
            Self::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let source = SecretSource::File(path.clone());
        assert!(source.read().await.is_err(), "no file yet");
        for (text, secret) in [("one\n", "one"), (" two \r\n", "two")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(source.read().await.unwrap().expose_secret(), secret);
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(source.read().await.is_err(), "empty");
    }

    #[test]
    fn debug_output_does_not_show_it() {
        let shown = format!("{:?}", SecretSource::value("s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
