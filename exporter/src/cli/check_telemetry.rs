//! The part of `check` that is about telemetry servers: what they have, and
//! which of it belongs to no instance.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use gpuwatch_collector_core::TelemetryStatus;
use gpuwatch_collector_telemetry::Reader;
use gpuwatch_inventory::Instance;
use serde::Serialize;

/// What one reading of a server gave.
#[derive(Debug, Serialize)]
pub(super) struct TelemetryCheck {
    /// The configured name.
    #[serde(rename = "telemetry")]
    name: String,
    status: &'static str,
    exporters: Vec<&'static str>,
    /// Cards by the method that joined them.
    joined_gpus: BTreeMap<&'static str, u64>,
    /// Cards by the reason why they were not.
    unmatched_gpus: BTreeMap<&'static str, u64>,
    /// The machines that those are on, the first few.
    unmatched: Vec<String>,
    errors: Vec<String>,
}

/// Reads every server once.
pub(super) async fn run(readers: Vec<Reader>, instances: &[Arc<Instance>]) -> Vec<TelemetryCheck> {
    let mut checks = Vec::with_capacity(readers.len());
    for mut reader in readers {
        let round = reader.round(instances).await;
        let errors: BTreeSet<String> = round.failures.iter().map(ToString::to_string).collect();
        checks.push(TelemetryCheck {
            name: reader.options().name.to_string(),
            status: match (errors.is_empty(), round.families.is_empty()) {
                (true, false) => "ok",
                (true, true) => "empty",
                (false, true) => "failed",
                (false, false) => "partly",
            },
            exporters: round.families,
            joined_gpus: round.joined,
            unmatched_gpus: round
                .unjoined
                .iter()
                .map(|(refusal, count)| (refusal.as_str(), *count))
                .collect(),
            unmatched: round.examples.into_iter().take(TelemetryStatus::EXAMPLES).collect(),
            errors: errors.into_iter().collect(),
        });
    }
    checks
}

impl TelemetryCheck {
    pub(super) fn is_failed(&self) -> bool {
        !self.errors.is_empty()
    }

    /// As a row of the CSV form of `check`.
    pub(super) fn as_row(&self) -> Vec<Cow<'_, str>> {
        vec![
            Cow::Borrowed("telemetry"),
            Cow::Borrowed(&self.name),
            Cow::Borrowed("query"),
            Cow::Borrowed(self.status),
            Cow::Owned(self.exporters.join(" ")),
            Cow::Borrowed(""),
            Cow::Borrowed(""),
            Cow::Owned(self.errors.join("; ")),
        ]
    }

    /// For people.
    pub(super) fn as_text(&self) -> String {
        let mut text = format!("\ntelemetry {}: {}", self.name, self.status);
        // Writing into a `String` cannot fail.
        if !self.exporters.is_empty() {
            let _ = write!(text, ", exporters {}", self.exporters.join(", "));
        } else if self.errors.is_empty() {
            let _ = write!(text, ", no exporter of GPU counters was found");
        }
        text.push('\n');
        for (method, count) in &self.joined_gpus {
            let _ = writeln!(
                text,
                "  {count} GPUs joined to their instance by {}",
                method.replace('_', " ")
            );
        }
        for (reason, count) in &self.unmatched_gpus {
            let why = match *reason {
                "ambiguous" => "could belong to several instances",
                "too_many_cards" => "are more than the instance has",
                _ => "belong to no instance of the inventory",
            };
            let _ = writeln!(text, "  {count} GPUs {why}");
        }
        for machine in &self.unmatched {
            let _ = writeln!(text, "    {}", machine.replace(char::is_control, " "));
        }
        for error in &self.errors {
            let _ = writeln!(text, "  {error}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> TelemetryCheck {
        TelemetryCheck {
            name: "main".to_owned(),
            status: "ok",
            exporters: vec!["dcgm"],
            joined_gpus: BTreeMap::from([("provider_id", 8)]),
            unmatched_gpus: BTreeMap::from([("ambiguous", 2)]),
            unmatched: vec!["node\u{1b}-1 (10.0.0.1:9400)".to_owned()],
            errors: Vec::new(),
        }
    }

    #[test]
    fn people_are_told_what_was_joined_and_where_the_rest_is() {
        let text = check().as_text();
        for part in [
            "telemetry main: ok, exporters dcgm",
            "8 GPUs joined to their instance by provider id",
            "2 GPUs could belong to several instances",
            "node -1 (10.0.0.1:9400)",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_server_that_fails_is_not_called_empty() {
        let failed = TelemetryCheck {
            status: "failed",
            exporters: Vec::new(),
            errors: vec!["connection refused".to_owned()],
            ..check()
        };
        let text = failed.as_text();
        assert!(
            failed.is_failed() && text.contains("connection refused") && !text.contains("no exporter"),
            "{text}"
        );
        assert_eq!(failed.as_row().len(), 8, "as many as the columns of the others");
    }
}
