//! `check`: what works, what is missing, and which permission to add.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use gpuwatch_collector_core::{Accounting, Call, CallStatus, Clock, Dataset, Reason, Scheduler, Snapshot, TaskStatus};
use gpuwatch_inventory::{Provider, Text};
use serde::Serialize;

use super::{
    args::{CheckArgs, OutputArgs, OutputFormat},
    check_telemetry::{self, TelemetryCheck},
    configuration, csv_text,
    error::CliError,
    output, runtime, table,
};

pub(super) fn run(args: &CheckArgs) -> Result<(), CliError> {
    let mut plan = configuration::plan(args.file.config.as_deref())?;
    plan.options
        .datasets
        .retain(|dataset, _| matches!(dataset, Dataset::Inventory | Dataset::Commitments));
    if plan.collectors.is_empty() {
        output::warn("no cloud to check: the configuration has no section under providers");
    }
    let telemetry = plan.telemetry;
    let (snapshot, calls, servers) = runtime()?.block_on(async {
        let accounting = Accounting::detached().map_err(|error| CliError::failure("setting up failed", error))?;
        let polling = Scheduler::new(plan.collectors, plan.options, Clock::System, accounting).start();
        let snapshot = polling.first_round().await;
        let calls = polling.calls();
        polling.stop().await;
        let servers = check_telemetry::run(telemetry, &snapshot.instances).await;
        Ok::<_, CliError>((snapshot, calls, servers))
    })?;
    let checks = checks(&calls, &snapshot.tasks);
    output::print(&render(&checks, &servers, &snapshot, &args.output)?)?;
    let failed = checks.iter().filter(|check| !check.failures.is_empty()).count()
        + servers.iter().filter(|server| server.is_failed()).count();
    if failed == 0 {
        return Ok(());
    }
    let problem = if failed == 1 { "check" } else { "checks" };
    Err(CliError::Failure(format!("{failed} {problem} failed")))
}

/// One API of one account: where it works and where it does not.
#[derive(Debug, PartialEq, Serialize)]
struct Check {
    provider: Provider,
    /// The account; before it is known, the configured section's name.
    account: Text,
    account_name: Text,
    /// Service and operation, or the dataset where no call says what is wrong.
    api: String,
    /// The permission it needs; empty when none is known.
    permission: &'static str,
    /// Regions where it works.
    works_in: Vec<Text>,
    failures: Vec<Failure>,
    /// What an answer leaves open that can mean two things.
    #[serde(skip_serializing_if = "Option::is_none")]
    unclear: Option<&'static str>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Failure {
    region: Text,
    reason: Option<Reason>,
    error: String,
}

impl Check {
    const fn status(&self) -> &'static str {
        match (self.failures.is_empty(), self.works_in.is_empty()) {
            (true, _) if self.unclear.is_some() => "unclear",
            (true, _) => "ok",
            (false, true) => "failed",
            (false, false) => "partly",
        }
    }

    /// Different errors, each with the regions that it came from.
    fn errors(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut errors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for failure in &self.failures {
            errors.entry(&failure.error).or_default().push(&failure.region);
        }
        errors
    }
}

/// Puts the calls of one account and operation together, over its regions and
/// datasets, and adds the tasks that failed without a failed call.
fn checks(calls: &[CallStatus], tasks: &[TaskStatus]) -> Vec<Check> {
    let mut checks: BTreeMap<(Provider, Text, Call), Check> = BTreeMap::new();
    for status in calls {
        let account = &status.scope.account;
        let key = (status.scope.provider, account.id.clone(), status.call);
        let check = checks.entry(key).or_insert_with(|| Check {
            provider: status.scope.provider,
            account: account.id.clone(),
            account_name: account.name.clone(),
            api: status.call.title(),
            permission: status.call.permission,
            works_in: Vec::new(),
            failures: Vec::new(),
            unclear: None,
        });
        check.unclear = check.unclear.or(status.unclear);
        let region = status.scope.region.clone();
        match &status.error {
            None => check.works_in.push(region),
            Some(error) => check.failures.push(Failure {
                region,
                reason: Some(error.reason),
                error: error.to_string(),
            }),
        }
    }
    let mut checks: Vec<Check> = checks.into_values().collect();
    for check in &mut checks {
        check.works_in.dedup();
    }
    let unexplained: Vec<&TaskStatus> = tasks
        .iter()
        .filter(|task| task.up == Some(false))
        .filter(|task| !explains(&checks, task))
        .collect();
    for task in unexplained {
        let error = task.last_error.clone().unwrap_or_else(|| "failed".to_owned());
        let failure = Failure {
            region: task.region.clone(),
            reason: None,
            error,
        };
        let of_task = |check: &&mut Check| {
            check.provider == task.provider && check.account == task.account && check.api == task.dataset.as_str()
        };
        if let Some(known) = checks.iter_mut().find(of_task) {
            known.failures.push(failure);
            continue;
        }
        checks.push(Check {
            provider: task.provider,
            account: task.account.clone(),
            account_name: Text::default(),
            api: task.dataset.as_str().to_owned(),
            permission: "",
            works_in: Vec::new(),
            failures: vec![failure],
            unclear: None,
        });
    }
    checks.sort_by(|a, b| (a.provider, &a.account, &a.api).cmp(&(b.provider, &b.account, &b.api)));
    checks
}

/// Whether a failed call already tells why a task failed.
fn explains(checks: &[Check], task: &TaskStatus) -> bool {
    let error = task.last_error.as_deref().unwrap_or_default();
    checks
        .iter()
        .filter(|check| check.provider == task.provider)
        .flat_map(|check| &check.failures)
        .any(|failure| failure.error == error)
}

/// What `check` says, as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Api(&'a Check),
    Telemetry(&'a TelemetryCheck),
}

fn render(
    checks: &[Check],
    servers: &[TelemetryCheck],
    snapshot: &Snapshot,
    output: &OutputArgs,
) -> Result<Vec<u8>, CliError> {
    match output.output {
        OutputFormat::Table => {
            let mut text = as_text(checks, snapshot, output.bold(), table::width());
            text.extend(servers.iter().map(TelemetryCheck::as_text));
            Ok(text.into_bytes())
        }
        OutputFormat::Json => {
            let servers = servers.iter().map(Entry::Telemetry);
            let entries: Vec<Entry<'_>> = checks.iter().map(Entry::Api).chain(servers).collect();
            let mut text =
                serde_json::to_vec_pretty(&entries).map_err(|error| CliError::failure("writing JSON failed", error))?;
            text.push(b'\n');
            Ok(text)
        }
        OutputFormat::Csv => {
            let header = [
                "provider",
                "account",
                "api",
                "status",
                "works_in",
                "fails_in",
                "permission",
                "error",
            ];
            let servers = servers.iter().map(TelemetryCheck::as_row);
            csv_text::render(&header, checks.iter().flat_map(as_rows).chain(servers))
        }
    }
}

/// One row, or one per different error.
fn as_rows(check: &Check) -> Vec<Vec<Cow<'_, str>>> {
    let row = |fails_in: String, error: &str| {
        let works_in: Vec<&str> = check.works_in.iter().map(|region| &**region).collect();
        vec![
            Cow::Borrowed(check.provider.as_str()),
            Cow::Owned(check.account.to_string()),
            Cow::Owned(check.api.clone()),
            Cow::Borrowed(check.status()),
            Cow::Owned(works_in.join(" ")),
            Cow::Owned(fails_in),
            Cow::Borrowed(check.permission),
            Cow::Owned(error.to_owned()),
        ]
    };
    let errors = check.errors();
    if errors.is_empty() {
        return vec![row(String::new(), check.unclear.unwrap_or_default())];
    }
    errors
        .into_iter()
        .map(|(error, regions)| row(regions.join(" "), error))
        .collect()
}

const COLUMNS: [table::Column; 6] = [
    table::text("CLOUD", 7),
    table::text("ACCOUNT", 12),
    table::whole("API"),
    table::text("STATUS", 6),
    table::text("REGIONS", 7),
    table::whole("PERMISSION"),
];

fn as_text(checks: &[Check], snapshot: &Snapshot, bold: bool, width: usize) -> String {
    if checks.is_empty() {
        return "nothing was checked\n".to_owned();
    }
    let rows: Vec<Vec<String>> = checks
        .iter()
        .map(|check| {
            let all = check.works_in.len() + check.failures.len();
            vec![
                check.provider.to_string(),
                check.account.to_string(),
                check.api.clone(),
                check.status().to_owned(),
                format!("{}/{all}", check.works_in.len()),
                check.permission.to_owned(),
            ]
        })
        .collect();
    let mut text = table::render(&COLUMNS, &rows, width, bold);
    text.push('\n');
    for (provider, account, name, regions, instances) in accounts(snapshot) {
        let name = if name.is_empty() || name == account {
            String::new()
        } else {
            format!(" ({name})")
        };
        // Writing into a `String` cannot fail.
        let _ = writeln!(
            text,
            "{provider} {account}{name}: {instances} GPU instances in {regions} regions"
        );
    }
    for check in checks {
        if let Some(unclear) = check.unclear {
            let _ = writeln!(
                text,
                "\n{} {} {}:\n  {unclear}",
                check.provider, check.account, check.api
            );
        }
        for (error, regions) in check.errors() {
            let _ = writeln!(
                text,
                "\n{} {} {} in {}:\n  {error}",
                check.provider,
                check.account,
                check.api,
                shortened(&regions)
            );
            if !check.permission.is_empty() && !error.contains(check.permission) {
                let _ = writeln!(text, "  needs the permission {}", check.permission);
            }
        }
    }
    text
}

/// The first few of many regions.
fn shortened(regions: &[&str]) -> String {
    const SHOWN: usize = 5;
    let first = regions.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match regions.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What every account has: polled regions and instances.
fn accounts(snapshot: &Snapshot) -> Vec<(Provider, String, String, usize, usize)> {
    let mut accounts: BTreeMap<(Provider, &str), (&str, usize, usize)> = BTreeMap::new();
    let listed = |task: &&TaskStatus| task.dataset == Dataset::Inventory && task.last_success.is_some();
    for task in snapshot.tasks.iter().filter(listed) {
        accounts.entry((task.provider, &task.account)).or_default().1 += 1;
    }
    for instance in &snapshot.instances {
        let entry = accounts.entry((instance.provider, &instance.account)).or_default();
        entry.0 = &instance.account_name;
        entry.2 += 1;
    }
    accounts
        .into_iter()
        .map(|((provider, account), (name, regions, instances))| {
            (provider, account.to_owned(), name.to_owned(), regions, instances)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::{Account, CollectError, Scope};

    use super::*;

    const LIST: Call = Call::new("ecs", "DescribeInstances", "ecs:DescribeInstances");

    fn call(region: &str, error: Option<CollectError>) -> CallStatus {
        CallStatus {
            scope: Scope {
                provider: Provider::Aliyun,
                account: Account {
                    id: "1001".into(),
                    name: "cn".into(),
                },
                region: region.into(),
            },
            dataset: Dataset::Inventory,
            call: LIST,
            error,
            unclear: None,
        }
    }

    fn task(region: &str, error: Option<&str>) -> TaskStatus {
        TaskStatus {
            provider: Provider::Aliyun,
            account: "1001".into(),
            region: region.into(),
            dataset: Dataset::Inventory,
            up: Some(error.is_none()),
            last_success: None,
            last_duration: None,
            errors: BTreeMap::new(),
            last_error: error.map(str::to_owned),
            expired: false,
        }
    }

    fn denied() -> CollectError {
        CollectError::new(Reason::Permission, "not allowed").code("Forbidden.RAM")
    }

    #[test]
    fn regions_of_one_api_are_one_check() {
        let calls = [call("a", None), call("b", Some(denied())), call("c", Some(denied()))];
        let checks = checks(&calls, &[]);
        assert_eq!(checks.len(), 1);
        let check = &checks[0];
        assert_eq!(
            (check.status(), check.works_in.len(), check.failures.len()),
            ("partly", 1, 2)
        );
        assert_eq!(check.errors().len(), 1, "the same error once");
    }

    #[test]
    fn an_answer_that_can_mean_two_things_is_no_failure() {
        let unclear = CallStatus {
            unclear: Some("nothing there, or nothing may be seen"),
            ..call("a", None)
        };
        let checks = checks(&[unclear], &[]);
        assert_eq!((checks[0].status(), checks[0].failures.len()), ("unclear", 0));
        let text = as_text(&checks, &Snapshot::empty(jiff::Timestamp::UNIX_EPOCH), false, 120);
        assert!(text.contains("nothing may be seen"), "{text}");
        assert_eq!(as_rows(&checks[0])[0][7], "nothing there, or nothing may be seen");
    }

    #[test]
    fn what_is_there_to_be_copied_is_never_cut() {
        let text = as_text(
            &checks(&[call("a", Some(denied()))], &[]),
            &Snapshot::empty(jiff::Timestamp::UNIX_EPOCH),
            false,
            40,
        );
        let first = text.lines().nth(1).unwrap_or_default();
        assert!(first.contains("ecs DescribeInstances"), "{text}");
        assert!(first.ends_with("ecs:DescribeInstances"), "{text}");
    }

    #[test]
    fn a_task_that_failed_without_a_failed_call_is_shown_too() {
        let calls = [call("a", None), call("b", Some(denied()))];
        let tasks = [
            task("a", Some("the list is empty and the probe was refused")),
            task("b", Some(&denied().to_string())),
            task("c", None),
        ];
        let shown: Vec<(String, &str)> = checks(&calls, &tasks)
            .iter()
            .map(|check| (check.api.clone(), check.status()))
            .collect();
        assert_eq!(
            shown,
            [
                ("ecs DescribeInstances".to_owned(), "partly"),
                ("inventory".to_owned(), "failed")
            ]
        );
    }

    #[test]
    fn the_text_names_the_permission_once_and_the_regions() {
        let calls: Vec<CallStatus> = (0..7).map(|n| call(&format!("r{n}"), Some(denied()))).collect();
        let text = as_text(
            &checks(&calls, &[]),
            &Snapshot::empty(jiff::Timestamp::UNIX_EPOCH),
            false,
            120,
        );
        assert!(text.contains("in r0, r1, r2, r3, r4 and 2 more:"), "{text}");
        assert!(text.contains("needs the permission ecs:DescribeInstances"), "{text}");
        assert!(text.contains("0/7"), "{text}");
    }
}
