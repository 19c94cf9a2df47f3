//! The metrics reference, generated from the table of metrics.

use std::fmt::Write as _;

use super::table::{FLEET, Metric, PROGRAM};

const INTRODUCTION: &str = "\
<!-- Generated from exporter/src/encode/table.rs; a test compares the two.
     To write it anew: GPUWATCH_BLESS=1 cargo test -p gpuwatch --test metrics_reference -->

# Metrics

Everything that `/metrics` shows. Names and labels are a public contract: a
change of one is a breaking change and is announced in CHANGELOG.md.

A series is absent when its value is unknown; unknown is never 0. Labels that
identify an instance are `provider`, `account`, `region` and `instance_id`.
Its facts are on `gpuwatch_instance_info`; join them where they are needed:

```promql
sum by (gpu_model) (
  gpuwatch_instance_gpus
  * on (provider, account, region, instance_id) group_left (gpu_model)
  gpuwatch_instance_info
)
```
";

/// The text of `docs/metrics.md`.
#[must_use]
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    section(&mut out, "The fleet and its polling", FLEET);
    section(&mut out, "The program itself", PROGRAM);
    out.push_str(
        "\nThe `process_*` metrics are those of every Prometheus client: processor time, resident and virtual\n\
         memory, open files, threads, start time. They exist on Linux.\n",
    );
    out
}

fn section(out: &mut String, title: &str, metrics: &[&Metric]) {
    // Writing into a `String` cannot fail.
    let _ = write!(
        out,
        "\n## {title}\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
    );
    for metric in metrics {
        let labels = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect::<Vec<_>>()
            .join(" ");
        let _ = writeln!(
            out,
            "| `{}` | {} | {labels} | {} |",
            metric.name,
            metric.kind.as_str(),
            metric.help
        );
    }
}
