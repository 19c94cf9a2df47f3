//! `list`: the fleet, once.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _, io::IsTerminal as _};

use gpuwatch_collector_core::{Accounting, Clock, Dataset, Scheduler, Snapshot};
use gpuwatch_inventory::{BillingMode, GpuCount, Instance, Provider};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{
    args::{ListArgs, OutputArgs, OutputFormat},
    configuration, csv_text,
    error::CliError,
    output, runtime, table,
};
use crate::encode::{fleet, table::INSTANCE_INFO};

/// What `list` shows beyond the labels of the information series.
const FURTHER: [&str; 5] = ["gpus", "gpu_memory_bytes", "launched", "expires", "auto_renew"];

pub(super) fn run(args: &ListArgs) -> Result<(), CliError> {
    let mut plan = configuration::plan(args.file.config.as_deref())?;
    plan.options
        .datasets
        .retain(|dataset, _| matches!(dataset, Dataset::Inventory | Dataset::Commitments));
    let wanted = &args.filters.provider;
    plan.collectors
        .retain(|collector| wanted.is_empty() || wanted.contains(&collector.provider()));
    let mut providers: Vec<Provider> = plan.collectors.iter().map(|collector| collector.provider()).collect();
    providers.sort_unstable();
    providers.dedup();
    if providers.is_empty() {
        output::warn("no cloud to ask: the configuration has no section for it under providers");
    }

    let snapshot = runtime()?.block_on(async {
        let accounting = Accounting::detached().map_err(|error| CliError::failure("setting up failed", error))?;
        let polling = Scheduler::new(plan.collectors, plan.options, Clock::System, accounting).start();
        let snapshot = polling.first_round().await;
        polling.stop().await;
        Ok::<_, CliError>(snapshot)
    })?;

    let shown: Vec<&Instance> = snapshot
        .instances
        .iter()
        .map(|instance| &**instance)
        .filter(|i| args.filters.matches(i))
        .collect();
    output::print(&render(&shown, &args.output)?)?;
    report_failures(&snapshot, &providers)
}

/// Tells what the list may lack. A cloud from which nothing came is a failure.
fn report_failures(snapshot: &Snapshot, providers: &[Provider]) -> Result<(), CliError> {
    let failed = snapshot.tasks.iter().filter(|task| task.up == Some(false));
    for task in failed {
        let error = task.last_error.as_deref().unwrap_or("failed");
        output::warn(&format!(
            "{} {} {} {}: {error}",
            task.provider, task.account, task.region, task.dataset
        ));
    }
    let silent: Vec<&str> = providers
        .iter()
        .filter(|provider| {
            let mut inventories = snapshot
                .tasks
                .iter()
                .filter(|task| task.provider == **provider && task.dataset == Dataset::Inventory);
            !inventories.any(|task| task.last_success.is_some())
        })
        .map(|provider| provider.as_str())
        .collect();
    if silent.is_empty() {
        return Ok(());
    }
    Err(CliError::Failure(format!(
        "no inventory could be read from {}; the warnings above say why, check credentials, permissions and endpoint",
        silent.join(", ")
    )))
}

fn render(instances: &[&Instance], output: &OutputArgs) -> Result<Vec<u8>, CliError> {
    match output.output {
        OutputFormat::Table => Ok(as_table(instances, output.bold(), table::width()).into_bytes()),
        OutputFormat::Csv => {
            let header: Vec<&str> = INSTANCE_INFO.labels.iter().copied().chain(FURTHER).collect();
            csv_text::render(&header, instances.iter().map(|instance| as_cells(instance)))
        }
        OutputFormat::Json => {
            let rows: Vec<Row<'_>> = instances.iter().map(|instance| Row(instance)).collect();
            let mut text =
                serde_json::to_vec_pretty(&rows).map_err(|error| CliError::failure("writing JSON failed", error))?;
            text.push(b'\n');
            Ok(text)
        }
    }
}

impl OutputArgs {
    /// Whether headings may be bold.
    pub(super) fn bold(&self) -> bool {
        !self.no_color
            && std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}

/// An instance as one JSON object; what is unknown is null or an empty text.
struct Row<'a>(&'a Instance);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let instance = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in INSTANCE_INFO.labels.iter().zip(fleet::info_values(instance)) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("gpus", &instance.accelerators.count.map(GpuCount::get))?;
        map.serialize_entry("gpu_memory_bytes", &fleet::gpu_memory_bytes(instance))?;
        map.serialize_entry("launched", &instance.launched)?;
        map.serialize_entry("expires", &instance.expires)?;
        map.serialize_entry("auto_renew", &instance.auto_renew)?;
        map.end()
    }
}

fn as_cells(instance: &Instance) -> Vec<Cow<'_, str>> {
    let further = [
        instance.accelerators.count.map(|count| count.to_string()),
        fleet::gpu_memory_bytes(instance).map(|bytes| bytes.to_string()),
        instance.launched.map(|time| time.to_string()),
        instance.expires.map(|time| time.to_string()),
        instance.auto_renew.map(|renewed| renewed.to_string()),
    ];
    let labels = fleet::info_values(instance).into_iter().map(Cow::Borrowed);
    labels
        .chain(further.into_iter().map(|cell| Cow::Owned(cell.unwrap_or_default())))
        .collect()
}

/// Terminals from this width on also show names.
const WIDE: usize = 140;

const COLUMNS: [table::Column; 11] = [
    table::text("CLOUD", 7),
    table::text("ACCOUNT", 11),
    table::text("REGION", 13),
    table::Column {
        title: "INSTANCE",
        right: false,
        least: 22,
        keep_end: true,
    },
    table::text(NAME, 12),
    table::text("TYPE", 12),
    table::number("GPUS"),
    table::text("MODEL", 8),
    table::text("MODE", 9),
    table::text("STATE", 8),
    table::text("OWNER", 6),
];

const NAME: &str = "NAME";

fn as_table(instances: &[&Instance], bold: bool, width: usize) -> String {
    if instances.is_empty() {
        return "no GPU instances\n".to_owned();
    }
    let shown = |column: &table::Column| width >= WIDE || column.title != NAME;
    let columns: Vec<table::Column> = COLUMNS.into_iter().filter(shown).collect();
    let rows: Vec<Vec<String>> = instances
        .iter()
        .map(|instance| {
            let row = COLUMNS.iter().zip(table_row(instance));
            row.filter(|(column, _)| shown(column)).map(|(_, cell)| cell).collect()
        })
        .collect();
    format!("{}\n{}", table::render(&columns, &rows, width, bold), totals(instances))
}

/// The cells of all [`COLUMNS`].
fn table_row(instance: &Instance) -> [String; 11] {
    let model = &*instance.accelerators.model;
    [
        instance.provider.as_str(),
        &instance.account,
        &instance.region,
        &short_id(&instance.id),
        &instance.name,
        // Every size of Azure begins with it.
        instance
            .instance_type
            .strip_prefix("Standard_")
            .unwrap_or(&instance.instance_type),
        &instance.accelerators.count.map_or_else(|| "?".to_owned(), shown_count),
        if model.is_empty() { "?" } else { model },
        instance.billing.mode.as_str(),
        instance.state.as_str(),
        &instance.owner,
    ]
    .map(str::to_owned)
}

/// An ARM id as resource group and names (`group/set/0`): the rest of it is
/// the account and words that every id has. Other ids are short as they are.
fn short_id(id: &str) -> Cow<'_, str> {
    let parts: Vec<&str> = id.split('/').collect();
    match parts.as_slice() {
        [
            "",
            "subscriptions",
            _,
            "resourcegroups",
            group,
            "providers",
            _,
            rest @ ..,
        ] if !rest.is_empty() => {
            let names = rest.iter().skip(1).step_by(2);
            let path: Vec<&str> = std::iter::once(group).chain(names).copied().collect();
            path.join("/").into()
        }
        _ => id.into(),
    }
}

/// Instances and accelerators, together and by billing mode.
fn totals(instances: &[&Instance]) -> String {
    let mut modes: BTreeMap<BillingMode, f64> = BTreeMap::new();
    let mut unknown = 0_usize;
    for instance in instances {
        match instance.accelerators.count {
            Some(count) => *modes.entry(instance.billing.mode).or_default() += count.get(),
            None => unknown += 1,
        }
    }
    let gpus = |count: f64| GpuCount::new(count).map(shown_count).unwrap_or_default();
    let by_mode: Vec<String> = modes
        .iter()
        .map(|(mode, count)| format!("{} {mode}", gpus(*count)))
        .collect();
    let mut text = format!("{}, {} GPUs", counted(instances.len()), gpus(modes.values().sum()));
    if !by_mode.is_empty() {
        text.push_str(": ");
        text.push_str(&by_mode.join(", "));
    }
    text.push('\n');
    if unknown > 0 {
        // Writing into a `String` cannot fail.
        let _ = writeln!(
            text,
            "not in these sums: {} with an unknown number of GPUs",
            counted(unknown)
        );
    }
    text
}

fn counted(instances: usize) -> String {
    if instances == 1 {
        "1 instance".to_owned()
    } else {
        format!("{instances} instances")
    }
}

/// A count with the fraction it has, without the noise of binary fractions.
fn shown_count(count: GpuCount) -> String {
    let text = format!("{:.3}", count.get());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arm_ids_are_shown_without_what_every_id_has() {
        let base = "/subscriptions/s/resourcegroups/mc_train/providers/microsoft.compute";
        for (id, shown) in [
            (format!("{base}/virtualmachines/a"), "mc_train/a"),
            (
                format!("{base}/virtualmachinescalesets/pool/virtualmachines/0"),
                "mc_train/pool/0",
            ),
            (base.to_owned(), base),
            ("i-0123".to_owned(), "i-0123"),
        ] {
            assert_eq!(short_id(&id), shown);
        }
    }
}
