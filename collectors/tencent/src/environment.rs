//! What the environment says about credentials.

use std::path::PathBuf;

use gpuwatch_collector_rest::SecretString;

/// The variables that matter, read once.
pub(crate) struct Environment {
    pub secret_id: Option<SecretString>,
    pub secret_key: Option<SecretString>,
    pub token: Option<SecretString>,
    /// Role to assume with the keys of the environment or the file.
    pub role_arn: Option<String>,
    pub role_session_name: Option<String>,
    pub home: Option<PathBuf>,
    pub pod: Option<Pod>,
}

/// The identity that TKE gives to a pod.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub region: String,
    pub provider_id: String,
    pub token_file: PathBuf,
    pub role_arn: String,
}

impl Environment {
    /// Reads variables through `get`.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let secret = |name: &str| value(name).map(SecretString::from);
        let pod = || {
            Some(Pod {
                region: value("TKE_REGION")?,
                provider_id: value("TKE_PROVIDER_ID")?,
                token_file: value("TKE_WEB_IDENTITY_TOKEN_FILE")?.into(),
                role_arn: value("TKE_ROLE_ARN")?,
            })
        };
        Self {
            secret_id: secret("TENCENTCLOUD_SECRET_ID"),
            secret_key: secret("TENCENTCLOUD_SECRET_KEY"),
            // The command line reads the first, Terraform the second.
            token: secret("TENCENTCLOUD_TOKEN").or_else(|| secret("TENCENTCLOUD_SECURITY_TOKEN")),
            role_arn: value("TENCENTCLOUD_ROLE_ARN"),
            role_session_name: value("TENCENTCLOUD_ROLE_SESSION_NAME"),
            home: value("HOME").map(PathBuf::from),
            pod: pod(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_rest::ExposeSecret as _;

    use super::*;

    #[test]
    fn both_names_of_the_token_are_read_and_blanks_are_nothing() {
        let environment = Environment::read(&|name| match name {
            "TENCENTCLOUD_SECRET_ID" => Some(" ".into()),
            "TENCENTCLOUD_SECURITY_TOKEN" => Some("t".into()),
            "TKE_REGION" => Some("ap-guangzhou".into()),
            _ => None,
        });
        assert!(environment.secret_id.is_none());
        assert_eq!(
            environment.token.map(|t| t.expose_secret().to_owned()).as_deref(),
            Some("t")
        );
        assert!(environment.pod.is_none(), "incomplete");
    }
}
