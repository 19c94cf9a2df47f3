//! STS: who is calling, and sessions in other accounts.

use jiff::{SignedDuration, Timestamp};

use super::error::AwsError;
use super::params::Params;
use super::service::Call;
use super::world::AssumeRole;
use super::xml::Xml;

/// API version; it also tells STS calls from EC2 calls.
pub(crate) const VERSION: &str = "2011-06-15";

pub(crate) const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// Role chaining caps a session at one hour.
const MAX_CHAINED_SECONDS: usize = 3600;

pub(crate) fn answer(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    params.take("Action");
    params.take("Version");
    match call.operation {
        "GetCallerIdentity" => {
            params.finish()?;
            Ok(caller_identity(call))
        }
        "AssumeRole" => assume_role(call, params),
        other => {
            let message = format!("Could not find operation {other} for version {VERSION}");
            Err(AwsError::new("InvalidAction", 400, message))
        }
    }
}

fn caller_identity(call: &Call<'_>) -> String {
    document(call, |xml| {
        xml.text("Arn", &call.caller.arn);
        xml.text("UserId", &call.caller.user_id);
        xml.text("Account", &call.caller.account);
    })
}

fn assume_role(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let role_arn = text(&mut params, "RoleArn", "roleArn", 20..=2048, |_| true)?.ok_or_else(|| missing("roleArn"))?;
    let session_name = text(&mut params, "RoleSessionName", "roleSessionName", 2..=64, |c| {
        is_word(c, "+=,.@-")
    })?
    .ok_or_else(|| missing("roleSessionName"))?;
    let external_id = text(&mut params, "ExternalId", "externalId", 2..=1224, |c| {
        is_word(c, "+=,.@:/-")
    })?;
    let seconds = params
        .take_number("DurationSeconds", 900, 43_200)
        .map_err(|_| violation("durationSeconds", "Member must have value between 900 and 43200"))?;
    // Session policies and tags change nothing that is simulated.
    params.take("Policy");
    params.take_list("PolicyArns.member");
    params.take_list("Tags.member");
    params.take_list("TransitiveTagKeys.member");
    params.take("SourceIdentity");
    params.finish()?;

    if call.caller.is_session && seconds.is_some_and(|seconds| seconds > MAX_CHAINED_SECONDS) {
        let message =
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.";
        return Err(AwsError::new("ValidationError", 400, message));
    }
    let seconds = i64::try_from(seconds.unwrap_or(MAX_CHAINED_SECONDS)).unwrap_or(i64::MAX);
    let session = call
        .world
        .assume_role(&AssumeRole {
            role_arn: &role_arn,
            session_name: &session_name,
            external_id: external_id.as_deref(),
            lifetime: SignedDuration::from_secs(seconds),
            now: Timestamp::now(),
        })
        .ok_or_else(|| {
            let message = format!(
                "User: {} is not authorized to perform: sts:AssumeRole on resource: {role_arn}",
                call.caller.arn
            );
            AwsError::new("AccessDenied", 403, message)
        })?;
    Ok(document(call, |xml| {
        xml.tag("Credentials", |xml| {
            xml.text("AccessKeyId", &session.keys.access_key_id);
            xml.text("SecretAccessKey", &session.keys.secret_access_key);
            xml.optional("SessionToken", session.keys.session_token.as_deref());
            xml.value("Expiration", session.expires.strftime("%Y-%m-%dT%H:%M:%SZ"));
        });
        xml.tag("AssumedRoleUser", |xml| {
            xml.text("AssumedRoleId", &session.caller.user_id);
            xml.text("Arn", &session.caller.arn);
        });
    }))
}

fn document(call: &Call<'_>, result: impl FnOnce(&mut Xml)) -> String {
    let mut xml = Xml::with_capacity(1024);
    xml.root(&format!("{}Response", call.operation), NAMESPACE, |xml| {
        xml.tag(&format!("{}Result", call.operation), result);
        xml.tag("ResponseMetadata", |xml| xml.text("RequestId", call.request_id));
    });
    xml.finish()
}

/// A parameter within the length and the characters that STS allows.
fn text(
    params: &mut Params,
    name: &str,
    member: &str,
    length: std::ops::RangeInclusive<usize>,
    allowed: impl Fn(char) -> bool,
) -> Result<Option<String>, AwsError> {
    let Some(value) = params.take(name) else {
        return Ok(None);
    };
    if !length.contains(&value.chars().count()) {
        let limits = format!(
            "Member must have length between {} and {}",
            length.start(),
            length.end()
        );
        return Err(violation(member, &limits));
    }
    if !value.chars().all(allowed) {
        return Err(violation(member, "Member must satisfy regular expression pattern"));
    }
    Ok(Some(value))
}

fn is_word(character: char, others: &str) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || others.contains(character)
}

fn missing(member: &str) -> AwsError {
    violation(member, "Member must not be null")
}

fn violation(member: &str, constraint: &str) -> AwsError {
    let message =
        format!("1 validation error detected: Value at '{member}' failed to satisfy constraint: {constraint}");
    AwsError::new("ValidationError", 400, message)
}
