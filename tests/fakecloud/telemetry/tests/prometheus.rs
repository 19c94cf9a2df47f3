//! The query API against a real Prometheus that holds the same samples.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test may fail"
)]

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use gpuwatch_fakecloud_core::workload::{Observer, Shape, Workload};
use gpuwatch_fakecloud_telemetry::{Exporter, Host, Options, Storage, TelemetryServer, Tie, page};
use jiff::{Timestamp, ToSpan as _};
use promql_parser::label::{MatchOp, Matcher};
use serde_json::Value;

fn hosts() -> Vec<Host> {
    let host = |id: &str, exporter, tie, cards, shape| {
        let mut host = Host::new(
            "aws",
            id,
            exporter,
            tie,
            cards,
            Workload::new(shape, Observer::Exporter, 7),
        );
        host.cores = 2;
        host.address = id.replace("i-", "10.0.0.");
        host
    };
    vec![
        host("i-1", Exporter::Dcgm, Tie::Node, 2, Shape::TimeSliced),
        host("i-2", Exporter::DcgmNew, Tie::Node, 1, Shape::MigShared),
        host("i-3", Exporter::NvidiaSmi, Tie::Address, 1, Shape::Training),
        host("i-4", Exporter::Amd, Tie::Labels, 1, Shape::Video),
        host("i-5", Exporter::Ascend, Tie::Labels, 1, Shape::LightInference),
        host("i-6", Exporter::Dcgm, Tie::Address, 1, Shape::XidErrors),
    ]
}

fn tool(name: &str) -> Option<PathBuf> {
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    let required = env::var("GPUWATCH_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(found.is_some() || !required, "{name} is required and missing");
    if found.is_none() {
        eprintln!("skipped: {name} is not here");
    }
    found
}

struct Prometheus {
    child: Child,
    url: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Prometheus with these samples and nothing to scrape.
fn prometheus(folder: &tempfile::TempDir, samples: &str) -> Option<Prometheus> {
    let (program, promtool) = (tool("prometheus")?, tool("promtool")?);
    let (text, data) = (folder.path().join("samples"), folder.path().join("data"));
    let config = folder.path().join("prometheus.yml");
    std::fs::write(&text, samples).unwrap();
    std::fs::write(&config, "{}\n").unwrap();
    let made = Command::new(promtool)
        .args(["tsdb", "create-blocks-from", "openmetrics"])
        .args([&text, &data])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut child = Command::new(program)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.display()))
        .args(["--web.listen-address=127.0.0.1:0", "--storage.tsdb.retention.time=10y"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let url = lines.find_map(|line| {
        let (_, after) = line.split_once("Listening on")?;
        let (_, address) = after.split_once("address=")?;
        Some(format!(
            "http://{}",
            address.trim_matches('"').split_whitespace().next()?
        ))
    });
    // A full pipe would stop the program.
    std::thread::spawn(move || lines.for_each(drop));
    Some(Prometheus {
        child,
        url: url.expect("an address"),
    })
}

/// Every sample of the last hours, as OpenMetrics.
fn samples(storage: &Storage, from: Timestamp, now: Timestamp) -> String {
    let everything = [Matcher::new(MatchOp::NotEqual, "__name__", "")];
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    for series in storage.select(&everything, from.as_millisecond(), now.as_millisecond(), now) {
        let mut labels = series.labels.clone();
        let name = labels.remove("__name__").unwrap();
        let text = page::series_text(&name, &labels);
        let lines = families.entry(name).or_default();
        for (at, value) in series.samples {
            let _ = writeln!(lines, "{text} {value} {}.{:03}", at / 1000, at % 1000);
        }
    }
    let families = families
        .into_iter()
        .map(|(name, lines)| format!("# TYPE {name} unknown\n{lines}"));
    families.collect::<String>() + "# EOF\n"
}

async fn ask(url: &str, what: &str, parameters: &[(&str, String)]) -> (u16, Value) {
    let answer = reqwest::Client::new()
        .post(format!("{url}/api/v1/{what}"))
        .form(parameters)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Series by their labels, values as numbers.
fn by_labels(answer: &Value) -> BTreeMap<String, Vec<(f64, f64)>> {
    let point = |sample: &Value| {
        (
            sample[0].as_f64().unwrap(),
            sample[1].as_str().unwrap().parse().unwrap(),
        )
    };
    let result = answer["data"]["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let rows = result.iter().map(|series| {
        let samples = match series["values"].as_array() {
            Some(values) => values.iter().map(point).collect(),
            None => vec![point(&series["value"])],
        };
        (series["metric"].to_string(), samples)
    });
    rows.collect()
}

fn assert_same(query: &str, ours: &Value, theirs: &Value) {
    let (ours, theirs) = (by_labels(ours), by_labels(theirs));
    let keys = |rows: &BTreeMap<String, Vec<(f64, f64)>>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&theirs), "{query}");
    for (labels, theirs) in &theirs {
        let ours = &ours[labels];
        assert_eq!(ours.len(), theirs.len(), "{query} {labels}");
        for (a, b) in ours.iter().zip(theirs) {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9) || (a.is_nan() && b.is_nan());
            assert!(
                close(a.0, b.0) && close(a.1, b.1),
                "{query} {labels}: {a:?}, Prometheus says {b:?}"
            );
        }
    }
}

const INSTANT: &[&str] = &[
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_DEV_GPU_UTIL{exported_pod=\"work-0-1\"}",
    "DCGM_FI_DEV_GPU_UTIL[7m]",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID!=\"\"}[90s]",
    "DCGM_FI_DEV_FB_USED{UUID=~\"(?:GPU-)?(?:0|1|2|3|4|5|6|7).*\"}",
    "{__name__=~\"nvidia_smi_.*\"}",
    "{__name__=~\"nvidia_smi_memory_(used|total)_bytes\", job=\"nvidia-gpu-exporter\"}[2m]",
    "count by (__name__) ({__name__=~\"DCGM.*|npu_chip_info_utilization|(?:amd_)?gpu_gfx_activity\"})",
    "kube_node_info",
    "npu_chip_info_utilization offset 1h",
    "max by (UUID) (DCGM_FI_DEV_GPU_UTIL)",
    "sum without (pod, exported_pod) (DCGM_FI_DEV_POWER_USAGE)",
    "avg(DCGM_FI_DEV_GPU_UTIL)",
    "min by (job) (up or DCGM_FI_DEV_GPU_UTIL)",
    "group by (instance) (node_cpu_seconds_total)",
    "avg_over_time(DCGM_FI_PROF_DRAM_ACTIVE[1h])",
    "max_over_time(DCGM_FI_DEV_GPU_UTIL[10m])",
    "min_over_time(nvidia_smi_power_draw_watts[10m])",
    "sum_over_time(nvidia_smi_utilization_gpu_ratio[1h])",
    "count_over_time(nvidia_smi_utilization_gpu_ratio[1h])",
    "last_over_time(nvidia_smi_utilization_gpu_ratio[10m])",
    "avg_over_time((max by (UUID) (DCGM_FI_DEV_GPU_UTIL))[1h:1m])",
    "count_over_time((max by (UUID) (DCGM_FI_DEV_GPU_UTIL))[1h:5m])",
    "avg_over_time((nvidia_smi_utilization_gpu_ratio > bool 0.9)[1h:5m])",
    "rate(node_network_receive_bytes_total[5m])",
    "increase(node_cpu_seconds_total{mode=\"user\"}[10m])",
    "1 - avg without (cpu, mode) (rate(node_cpu_seconds_total{mode=\"idle\"}[5m]))",
    "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
    "sum without (device) (rate(node_network_receive_bytes_total{device!~\"lo|docker.*\"}[5m])) + sum without (device) \
     (rate(node_network_transmit_bytes_total{device!~\"lo|docker.*\"}[5m]))",
    "DCGM_FI_DEV_FB_USED / on (UUID, GPU_I_ID, exported_pod) DCGM_FI_DEV_FB_FREE",
    "nvidia_smi_utilization_gpu_ratio > 2",
    "nvidia_smi_memory_used_bytes / 1024 ^ 3",
    "DCGM_EXP_XID_ERRORS_COUNT",
    "nothing_of_this_name",
];

const RANGE: &[&str] = &[
    "DCGM_FI_PROF_SM_ACTIVE",
    "avg_over_time((max by (UUID) (DCGM_FI_DEV_GPU_UTIL))[1h:1m])",
    "max_over_time(gpu_gfx_activity[1h])",
    "count_over_time((npu_chip_info_utilization)[1h:5m])",
    "DCGM_EXP_XID_ERRORS_COUNT > 0",
    "rate(node_cpu_seconds_total{mode=\"user\"}[5m])",
];

const WRONG: &[&str] = &[
    "DCGM_FI_DEV_FB_USED / on (UUID) DCGM_FI_DEV_FB_FREE",
    "",
    "sum(",
    "{}",
    "rate(node_cpu_seconds_total)",
    "{a=\"\"}",
];

#[tokio::test]
async fn both_answer_the_same() {
    let now = Timestamp::now();
    // Some way back, so that no sample is still to come.
    let at = Timestamp::from_second(now.as_second() - 120).unwrap();
    let storage = Storage::new(hosts());
    let folder = tempfile::tempdir().unwrap();
    let text = samples(&storage, now.checked_sub(6.hours()).unwrap(), now);
    let Some(real) = prometheus(&folder, &text) else { return };
    let version = Command::new("prometheus").arg("--version").output().unwrap();
    let is_old = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).contains("version 2.");
    let options = Options {
        closed_ranges: is_old,
        ..Options::default()
    };
    let ours = TelemetryServer::start(storage, options).await.unwrap();

    let time = at.as_second().to_string();
    let mut answered = 0;
    for query in INSTANT {
        let parameters = [("query", (*query).to_owned()), ("time", time.clone())];
        let (our_status, our_answer) = ask(&ours.url(), "query", &parameters).await;
        // What this server does not know it refuses; it must not guess.
        if our_answer["error"]
            .as_str()
            .is_some_and(|error| error.contains("not supported"))
        {
            continue;
        }
        let (status, answer) = ask(&real.url, "query", &parameters).await;
        assert_eq!((our_status, status), (200, 200), "{query}: {our_answer} {answer}");
        assert_same(query, &our_answer, &answer);
        answered += 1;
    }
    assert!(answered >= INSTANT.len() - 2, "only two of the queries are beyond it");
    let start = at.checked_sub(4.hours()).unwrap().as_second().to_string();
    for query in RANGE {
        for step in ["3600", "300"] {
            let parameters = [
                ("query", (*query).to_owned()),
                ("start", start.clone()),
                ("end", time.clone()),
                ("step", step.to_owned()),
            ];
            let (_, answer) = ask(&real.url, "query_range", &parameters).await;
            let (_, our_answer) = ask(&ours.url(), "query_range", &parameters).await;
            assert_same(query, &our_answer, &answer);
        }
    }
    for query in WRONG {
        let parameters = [("query", (*query).to_owned())];
        let (status, answer) = ask(&real.url, "query", &parameters).await;
        let (our_status, our_answer) = ask(&ours.url(), "query", &parameters).await;
        assert_eq!(
            (our_status, &our_answer["errorType"]),
            (status, &answer["errorType"]),
            "{query:?}"
        );
    }
    let many = [
        ("query", "up".to_owned()),
        ("start", "0".to_owned()),
        ("end", time),
        ("step", "1".to_owned()),
    ];
    let (status, _) = ask(&real.url, "query_range", &many).await;
    assert_eq!(ask(&ours.url(), "query_range", &many).await.0, status);
}
