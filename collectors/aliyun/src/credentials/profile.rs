//! Files of the vendor's command line and SDKs. Read at every renewal.

use std::{collections::BTreeMap, io, path::PathBuf};

use gpuwatch_collector_core::{CollectError, Reason};
use gpuwatch_collector_rest::SecretString;
use serde::Deserialize;

use super::{Environment, is_role, oidc};
use crate::sign::Keys;

/// What a profile says: keys or a way to them, and roles to assume.
#[derive(Debug)]
pub(crate) struct Profile {
    pub base: Base,
    /// One after the other, each with the keys of the one before.
    pub roles: Vec<RoleToAssume>,
}

#[derive(Debug)]
pub(crate) enum Base {
    Keys(Keys),
    Oidc(oidc::Role),
    /// The machine's role, by name if it has one.
    Metadata(Option<String>),
}

#[derive(Debug)]
pub(crate) struct RoleToAssume {
    pub arn: String,
    pub session_name: Option<String>,
    pub external_id: Option<String>,
    /// A policy that narrows the session.
    pub policy: Option<String>,
}

/// `~/.aliyun/config.json`.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    current: String,
    #[serde(default)]
    profiles: Vec<Entry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    name: String,
    mode: String,
    access_key_id: String,
    access_key_secret: String,
    sts_token: String,
    ram_role_arn: String,
    ram_session_name: String,
    role_session_name: String,
    external_id: String,
    policy: String,
    ram_role_name: String,
    oidc_provider_arn: String,
    oidc_token_file: String,
    source_profile: String,
}

/// Profiles that follow one another, at most.
const MAX_CHAIN: usize = 4;

/// The CLI's current profile; `None` when the CLI was never set up.
///
/// # Errors
/// When the file or the profile cannot be used.
pub(crate) async fn from_cli(environment: &Environment) -> Result<Option<Profile>, CollectError> {
    if environment.is_true("ALIBABA_CLOUD_CLI_PROFILE_DISABLED") {
        return Ok(None);
    }
    let Some(path) = environment.home().map(|home| home.join(".aliyun/config.json")) else {
        return Ok(None);
    };
    let Some(text) = read(&path).await? else {
        return Ok(None);
    };
    let unusable = |what: String| CollectError::new(Reason::Credentials, format!("{}: {what}", path.display()));
    let file: File = serde_json::from_str(&text).map_err(|error| {
        unusable(format!(
            "not understood (line {}, column {})",
            error.line(),
            error.column()
        ))
    })?;
    let name = environment.get("ALIBABA_CLOUD_PROFILE").unwrap_or(&file.current);
    if name.is_empty() {
        return Ok(None);
    }
    read_profile(&file, name, MAX_CHAIN).map(Some).map_err(unusable)
}

fn read_profile(file: &File, name: &str, depth: usize) -> Result<Profile, String> {
    let entry = file
        .profiles
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| format!("there is no profile {name}"))?;
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let keys = || {
        let (Some(id), Some(secret)) = (some(&entry.access_key_id), some(&entry.access_key_secret)) else {
            return Err(format!("profile {name} lacks access_key_id or access_key_secret"));
        };
        Ok(Keys {
            id,
            secret: SecretString::from(secret),
            token: some(&entry.sts_token).map(SecretString::from),
        })
    };
    let role = || {
        if !is_role(&entry.ram_role_arn) {
            return Err(format!("profile {name} has no valid ram_role_arn"));
        }
        Ok(RoleToAssume {
            arn: entry.ram_role_arn.clone(),
            session_name: some(&entry.ram_session_name),
            external_id: some(&entry.external_id),
            policy: some(&entry.policy),
        })
    };
    let plain = |base| Profile {
        base,
        roles: Vec::new(),
    };
    match entry.mode.as_str() {
        "AK" | "StsToken" | "" => Ok(plain(Base::Keys(keys()?))),
        "RamRoleArn" => Ok(Profile {
            base: Base::Keys(keys()?),
            roles: vec![role()?],
        }),
        "EcsRamRole" => Ok(plain(Base::Metadata(some(&entry.ram_role_name)))),
        "OIDC" => Ok(plain(Base::Oidc(oidc::Role {
            arn: role()?.arn,
            provider: entry.oidc_provider_arn.clone(),
            token_file: PathBuf::from(&entry.oidc_token_file),
            session_name: some(&entry.role_session_name).unwrap_or_else(|| "gpuwatch".to_owned()),
        }))),
        "ChainableRamRoleArn" => {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(format!("profile {name}: the source profiles do not come to an end"));
            };
            let mut source = read_profile(file, &entry.source_profile, depth)?;
            source.roles.push(role()?);
            Ok(source)
        }
        other => Err(format!(
            "profile {name} is of mode {other}, which is not supported; use AK, StsToken, RamRoleArn, EcsRamRole, OIDC \
             or ChainableRamRoleArn"
        )),
    }
}

/// The credentials file of the SDKs; `None` when there is none.
///
/// # Errors
/// When the file or its section cannot be used.
pub(crate) async fn from_ini(environment: &Environment) -> Result<Option<Keys>, CollectError> {
    let named = environment.get("ALIBABA_CLOUD_CREDENTIALS_FILE").map(PathBuf::from);
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| Some(environment.home()?.join(".alibabacloud/credentials"))) else {
        return Ok(None);
    };
    let unusable = |what: &str| CollectError::new(Reason::Credentials, format!("{}: {what}", path.display()));
    let Some(text) = read(&path).await? else {
        return if is_named {
            Err(unusable("no such file"))
        } else {
            Ok(None)
        };
    };
    let wanted = environment.get("ALIBABA_CLOUD_PROFILE").unwrap_or("default");
    let section = section(&text, wanted);
    let kind = section.get("type").map_or("access_key", |kind| *kind);
    if kind != "access_key" {
        return Err(unusable("only sections of type access_key are supported"));
    }
    let (Some(id), Some(secret)) = (section.get("access_key_id"), section.get("access_key_secret")) else {
        return Err(unusable("its section lacks access_key_id or access_key_secret"));
    };
    Ok(Some(Keys {
        id: (*id).to_owned(),
        secret: SecretString::from(*secret),
        token: None,
    }))
}

/// The pairs of one section of an INI text.
fn section<'t>(text: &'t str, wanted: &str) -> BTreeMap<&'t str, &'t str> {
    let mut current = "";
    let mut pairs = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            current = name.trim();
        } else if current == wanted
            && !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
        {
            pairs.insert(key.trim(), value.trim());
        }
    }
    pairs
}

async fn read(path: &PathBuf) -> Result<Option<String>, CollectError> {
    match tokio::fs::read_to_string(path).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(CollectError::new(
            Reason::Credentials,
            format!("{} cannot be read: {error}", path.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"current": "main", "profiles": [
        {"name": "main", "mode": "AK", "access_key_id": "id", "access_key_secret": "s3cret"},
        {"name": "sts", "mode": "StsToken", "access_key_id": "id", "access_key_secret": "s", "sts_token": "t"},
        {"name": "role", "mode": "RamRoleArn", "access_key_id": "id", "access_key_secret": "s",
         "ram_role_arn": "acs:ram::1:role/r", "external_id": "e", "policy": "{}"},
        {"name": "ecs", "mode": "EcsRamRole", "ram_role_name": "gpuwatch"},
        {"name": "chain", "mode": "ChainableRamRoleArn", "source_profile": "ecs", "ram_role_arn": "acs:ram::1:role/r"},
        {"name": "hops", "mode": "ChainableRamRoleArn", "source_profile": "role", "ram_role_arn": "acs:ram::2:role/s"},
        {"name": "loop", "mode": "ChainableRamRoleArn", "source_profile": "loop", "ram_role_arn": "acs:ram::1:role/r"},
        {"name": "sso", "mode": "CloudSSO"},
        {"name": "empty", "mode": "AK"}]}"#;

    fn profile(name: &str) -> Result<Profile, String> {
        read_profile(&serde_json::from_str(CONFIG).unwrap(), name, MAX_CHAIN)
    }

    #[test]
    fn profiles_of_every_mode() {
        assert!(matches!(profile("main").unwrap().base, Base::Keys(keys) if keys.token.is_none()));
        assert!(matches!(profile("sts").unwrap().base, Base::Keys(keys) if keys.token.is_some()));
        let role = profile("role").unwrap().roles.remove(0);
        assert_eq!(
            (role.external_id.as_deref(), role.policy.as_deref()),
            (Some("e"), Some("{}"))
        );
        assert!(matches!(profile("ecs").unwrap().base, Base::Metadata(Some(_))));
        assert_eq!(profile("chain").unwrap().roles.len(), 1);
        let arns: Vec<_> = profile("hops")
            .unwrap()
            .roles
            .into_iter()
            .map(|role| role.arn)
            .collect();
        assert_eq!(arns, ["acs:ram::1:role/r", "acs:ram::2:role/s"]);
        for (name, word) in [
            ("loop", "end"),
            ("sso", "CloudSSO"),
            ("empty", "lacks"),
            ("none", "no profile"),
        ] {
            assert!(profile(name).unwrap_err().contains(word), "{name}");
        }
    }

    #[tokio::test]
    async fn files_are_found_below_the_home_and_read_anew() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of(&[("HOME", home.path().to_str().unwrap())]);
        assert!(from_cli(&environment).await.unwrap().is_none());
        assert!(from_ini(&environment).await.unwrap().is_none());
        std::fs::create_dir(home.path().join(".aliyun")).unwrap();
        std::fs::write(home.path().join(".aliyun/config.json"), CONFIG).unwrap();
        assert!(from_cli(&environment).await.unwrap().is_some());
        std::fs::write(home.path().join(".aliyun/config.json"), "{\"current\": s3cret").unwrap();
        let error = from_cli(&environment).await.unwrap_err().to_string();
        assert!(error.contains("config.json") && !error.contains("s3cret"), "{error}");
        std::fs::create_dir(home.path().join(".alibabacloud")).unwrap();
        let ini = "[default]\ntype = access_key\naccess_key_id = id\naccess_key_secret = s=1\n[x]\naccess_key_id=2\n";
        std::fs::write(home.path().join(".alibabacloud/credentials"), ini).unwrap();
        assert_eq!(from_ini(&environment).await.unwrap().unwrap().id, "id");
    }
}
