//! The metadata server of a machine.

use serde_json::json;

use crate::error::ApiError;
use crate::service::{Answer, Call};
use crate::world::Caller;

/// `GET /computeMetadata/v1/…`.
pub(crate) fn answer(call: &Call<'_>) -> Result<Answer, ApiError> {
    let path = call.route.subject.trim_matches('/');
    let path = path.strip_prefix("v1").unwrap_or(path).trim_matches('/');
    let text = |text: &str| Ok(Answer::Text(text.to_owned()));
    match path {
        "" => return text("instance/\nproject/\nuniverse/\n"),
        "universe/universe-domain" | "universe/universe_domain" => return text("googleapis.com"),
        "project/project-id" => return text(&first_project(call)?.0),
        "project/numeric-project-id" => return text(&first_project(call)?.1),
        _ => {}
    }
    let rest = path
        .strip_prefix("instance/service-accounts/")
        .ok_or_else(|| missing(path))?;
    let mut inner = call.world.write();
    let machine = inner.identity.machine.clone().ok_or_else(|| missing(path))?;
    let (account, attribute) = rest.split_once('/').unwrap_or((rest, ""));
    if account != "default" && account != machine.email {
        return Err(missing(path));
    }
    match attribute {
        "email" => text(&machine.email),
        "scopes" => text(&machine.scopes.join("\n")),
        "token" => {
            let caller = Caller {
                scopes: granted(&machine, call.params.get("scopes")),
                email: machine.email,
            };
            let (token, seconds) = inner.identity.issue(caller, call.now, None);
            Ok(Answer::Json(json!({
                "access_token": token,
                "expires_in": seconds,
                "token_type": "Bearer",
            })))
        }
        "" => Ok(Answer::Json(json!({
            "aliases": ["default"],
            "email": machine.email,
            "scopes": machine.scopes,
        }))),
        _ => Err(missing(path)),
    }
}

/// A machine's token never has more scopes than the machine was made with.
fn granted(machine: &Caller, asked: Option<&str>) -> Vec<String> {
    let Some(asked) = asked else {
        return machine.scopes.clone();
    };
    let asked: Vec<&str> = asked.split(',').collect();
    let all = machine.scopes.iter().any(|scope| scope == crate::world::CLOUD_PLATFORM);
    if all {
        return asked.iter().map(|scope| (*scope).to_owned()).collect();
    }
    machine.scopes.clone()
}

/// Id and number of the project that the machine is in.
fn first_project(call: &Call<'_>) -> Result<(String, String), ApiError> {
    let inner = call.world.read();
    let first = inner.projects.values().next();
    first
        .map(|project| (project.id.clone(), project.number.clone()))
        .ok_or_else(|| missing("project"))
}

fn missing(path: &str) -> ApiError {
    ApiError::new(
        404,
        "",
        "notFound",
        format!("The requested URL /computeMetadata/v1/{path} was not found.\n"),
    )
}
