//! Versions of the API that each operation has, and how others are refused.

use crate::error::ArmError;

const COMPUTE: &[&str] = &[
    "2021-11-01",
    "2022-03-01",
    "2022-08-01",
    "2022-11-01",
    "2023-03-01",
    "2023-07-01",
    "2023-09-01",
    "2024-03-01",
    "2024-07-01",
    "2024-11-01",
    "2025-04-01",
    "2026-03-01",
    "2026-04-01",
];

/// The versions of an operation, by its service and name.
pub(crate) fn of(service: &str, operation: &str) -> &'static [&'static str] {
    match (service, operation) {
        ("subscriptions", _) => &["2016-06-01", "2020-01-01", "2021-01-01", "2022-12-01"],
        ("resourcegraph", _) => &["2019-04-01", "2021-03-01", "2022-10-01", "2024-04-01"],
        ("capacity", _) => &["2021-07-01", "2022-03-01", "2022-11-01"],
        ("billingbenefits", _) => &["2022-11-01"],
        ("compute", "skus.list") => &["2017-09-01", "2019-04-01", "2021-07-01"],
        ("compute", _) => COMPUTE,
        _ => &[],
    }
}

/// Refuses a call in a version that its operation lacks. `path` tells the
/// provider and type, of which services without one have none.
pub(crate) fn check(known: &[&str], given: Option<&str>, path: &str) -> Result<(), ArmError> {
    let given = given
        .filter(|given| !given.is_empty())
        .ok_or_else(ArmError::no_version)?;
    if known.contains(&given) {
        return Ok(());
    }
    let parts: Vec<&str> = path.split('/').collect();
    let provider = parts.iter().position(|part| part.eq_ignore_ascii_case("providers"));
    // Names and kinds take turns behind the provider; the kinds are the type.
    let of_provider = provider.and_then(|at| Some((parts.get(at + 1)?, parts.get(at + 2..)?)));
    Err(match of_provider {
        Some((namespace, rest)) => {
            let kinds: Vec<&str> = rest.iter().step_by(2).copied().collect();
            ArmError::unknown_version(given, namespace, &kinds.join("/"), known)
        }
        None => ArmError::invalid_version(given, known),
    })
}
