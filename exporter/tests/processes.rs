//! `list`, `serve` and `demo` as processes, against simulated clouds.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::{collections::BTreeMap, net::TcpListener, path::PathBuf, time::Duration};

use gpuwatch_fakecloud::{FakeCloud, FaultKind, FaultRule, Options};
use support::{
    eventually, exposition,
    program::{Server, configuration, gpuwatch, truth, watched},
};
use tempfile::TempDir;

async fn clouds(instances: usize) -> FakeCloud {
    FakeCloud::start(Options {
        instances,
        ..Options::default()
    })
    .await
    .expect("started")
}

fn write(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("gpuwatch.yaml");
    std::fs::write(&path, text).expect("written");
    path
}

async fn list(configuration: String, arguments: &'static [&'static str]) -> (Option<i32>, String, String) {
    command("list", configuration, arguments).await
}

/// Runs a command away from the threads that the simulated clouds run on.
async fn command(
    command: &'static str,
    configuration: String,
    arguments: &'static [&'static str],
) -> (Option<i32>, String, String) {
    tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(&folder, &configuration);
        let output = gpuwatch()
            .arg(command)
            .arg("--config")
            .arg(path)
            .args(arguments)
            .output()
            .expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    })
    .await
    .expect("joined")
}

async fn page(server: &Server) -> Option<exposition::Families> {
    let response = reqwest::get(server.url("/metrics")).await.ok()?;
    Some(exposition::parse(&response.text().await.ok()?))
}

async fn instances(server: &Server) -> usize {
    page(server)
        .await
        .and_then(|page| Some(page.get("gpuwatch_instance_info")?.samples.len()))
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn list_shows_what_the_clouds_have() {
    let clouds = clouds(80).await;
    let (code, out, err) = list(configuration(&clouds), &["-o", "json"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let rows: Vec<serde_json::Value> = serde_json::from_str(&out).expect("a list of objects");
    let listed: BTreeMap<String, (String, String, Option<f64>)> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("{key} of {row}")).to_owned();
            (
                text("instance_id"),
                (text("account"), text("billing_mode"), row["gpus"].as_f64()),
            )
        })
        .collect();
    let truth: BTreeMap<_, _> = truth(&clouds)
        .into_iter()
        .map(|i| (i.id, (i.account, i.billing_mode.to_owned(), i.gpus)))
        .collect();
    assert!(truth.len() > 50);
    assert_eq!(listed, truth);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_as_a_table_fits_120_columns_with_totals_below() {
    use unicode_width::UnicodeWidthStr as _;
    let clouds = clouds(80).await;
    let (code, out, _) = list(configuration(&clouds), &[]).await;
    assert_eq!(code, Some(0));
    assert!(out.lines().all(|line| line.width() <= 120), "{out}");
    let count = truth(&clouds).len();
    let (table, totals) = out.split_once("\n\n").expect("a blank line before the totals");
    assert_eq!(table.lines().count(), count + 1, "a heading and one line each");
    assert!(totals.starts_with(&format!("{count} instances, ")), "{totals}");
    let unknown = truth(&clouds).iter().any(|i| i.gpus.is_none());
    assert_eq!(totals.contains("unknown number of GPUs"), unknown, "{totals}");
    assert!(!out.contains('\u{1b}'), "no colour in a pipe");
}

#[tokio::test(flavor = "multi_thread")]
async fn list_as_csv_has_one_record_per_instance() {
    let clouds = clouds(80).await;
    let (code, out, _) = list(
        configuration(&clouds),
        &["-o", "csv", "--billing-mode", "spot,reserved"],
    )
    .await;
    assert_eq!(code, Some(0));
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    assert!(
        reader
            .headers()
            .expect("a header")
            .iter()
            .take(4)
            .eq(["provider", "account", "region", "instance_id"])
    );
    let expected = truth(&clouds)
        .iter()
        .filter(|i| matches!(i.billing_mode, "spot" | "reserved"))
        .count();
    assert_eq!(reader.records().flatten().count(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_no_failure() {
    let clouds = clouds(20).await;
    let (code, out, _) = list(configuration(&clouds), &["--owner", "nobody-at-all", "-o", "json"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "[]\n"));
    let (code, out, err) = list("providers: {}\n".to_owned(), &["-o", "json"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "[]\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_from_which_nothing_comes_is_a_failure_with_its_reasons() {
    let clouds = clouds(20).await;
    clouds.faults().add(FaultRule::new(FaultKind::AccessDenied));
    let (code, out, err) = list(configuration(&clouds), &["-o", "json"]).await;
    assert_eq!((code, out.as_str()), (Some(1), "[]\n"), "{err}");
    let cloud = watched();
    assert!(
        err.contains(&format!("error: no inventory could be read from {cloud}")),
        "{err}"
    );
    assert!(err.contains(&format!("warning: {cloud}")), "{err}");
    assert!(!err.contains(gpuwatch_fakecloud::aws::SECRET_ACCESS_KEY));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_every_api_and_that_all_is_well() {
    let clouds = clouds(20).await;
    let (code, out, err) = command("check", configuration(&clouds), &["-o", "json"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let checks: Vec<serde_json::Value> = serde_json::from_str(&out).expect("a list of objects");
    assert!(checks.len() > 3, "{out}");
    let called: Vec<&str> = checks.iter().filter_map(|check| check["api"].as_str()).collect();
    for call in clouds.calls() {
        let api = format!("{} {}", call.service, call.operation);
        assert!(called.contains(&api.as_str()), "{api} is not in {called:?}");
    }
    let (code, out, _) = command("check", configuration(&clouds), &[]).await;
    assert_eq!(code, Some(0));
    let instances: usize = out
        .lines()
        .filter_map(|line| {
            line.split_once(" GPU instances in ")?
                .0
                .rsplit(' ')
                .next()?
                .parse::<usize>()
                .ok()
        })
        .sum();
    assert_eq!(instances, truth(&clouds).len(), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_what_is_missing_and_the_permission_to_add() {
    let clouds = clouds(20).await;
    let probe = command("check", configuration(&clouds), &["-o", "json"]).await.1;
    let checks: Vec<serde_json::Value> = serde_json::from_str(&probe).expect("a list of objects");
    // Each API alone is refused; the others still work.
    for check in checks {
        let (api, permission) = (check["api"].as_str().unwrap(), check["permission"].as_str().unwrap());
        let Some((_, operation)) = api.split_once(' ').filter(|_| !permission.is_empty()) else {
            continue;
        };
        let rule = clouds
            .faults()
            .add(FaultRule::new(FaultKind::AccessDenied).operation(operation));
        let (code, out, err) = command("check", configuration(&clouds), &[]).await;
        clouds.faults().remove(rule);
        assert_eq!(code, Some(1), "{api}: {out}");
        assert!(err.contains("failed"), "{api}: {err}");
        assert!(out.contains(permission), "{api} needs {permission}: {out}");
        let line = out
            .lines()
            .find(|line| line.contains(&format!("{api} ")) && line.contains("failed"))
            .unwrap_or_else(|| panic!("{api}: {out}"));
        assert!(line.contains("0/"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_shows_the_fleet_reloads_on_hangup_and_stops_on_terminate() {
    let clouds = clouds(40).await;
    let expected = truth(&clouds).len();
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(&folder, &configuration(&clouds));
    let server = tokio::task::spawn_blocking({
        let path = path.clone();
        move || Server::serve(&path)
    })
    .await
    .expect("started");
    eventually("the fleet", || async {
        (instances(&server).await == expected).then_some(())
    })
    .await;

    // A broken file is refused and counted, and the fleet stays.
    std::fs::write(&path, "providers: [").expect("written");
    server.signal("HUP");
    let reload_gauge = |value: f64| {
        let server = &server;
        async move {
            // The gauge moves with the page that follows the next poll.
            let gauge: f64 = page(server).await?["gpuwatch_config_last_reload_successful"]
                .samples
                .values()
                .sum();
            (gauge == value).then_some(())
        }
    };
    eventually("the refusal", || reload_gauge(0.0)).await;
    assert_eq!(instances(&server).await, expected);

    // A repaired one that watches one region less is taken.
    let region = truth(&clouds)[0].region.clone();
    let fewer = configuration(&clouds).replace("name: demo", &format!("name: demo\n      exclude_regions: [{region}]"));
    std::fs::write(&path, fewer).expect("written");
    server.signal("HUP");
    let left = truth(&clouds).iter().filter(|i| i.region != region).count();
    assert!(left < expected);
    eventually("the smaller fleet", || async {
        (instances(&server).await == left).then_some(())
    })
    .await;
    eventually("the success", || reload_gauge(1.0)).await;

    server.signal("TERM");
    let (code, took, _) = tokio::task::spawn_blocking(move || server.wait())
        .await
        .expect("joined");
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_a_clear_failure() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(&folder, "providers: {}\n");
    let output = gpuwatch()
        .args(["serve", "--listen", &address, "--config"])
        .arg(path)
        .output()
        .expect("it runs");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains(&format!("cannot listen on {address}")) && err.contains("in use"),
        "{err}"
    );

    let output = gpuwatch()
        .args(["demo", "--listen", &address])
        .output()
        .expect("it runs");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), &b""[..]),
        "{err}"
    );
    assert!(err.contains("gpuwatch demo --listen 127.0.0.1:0"), "{err}");
}

/// Kinds of commitments that the demo of this build has.
fn bought_ahead() -> impl Iterator<Item = &'static str> {
    let kinds = [
        (
            "savings_plan",
            cfg!(any(feature = "aws", feature = "aliyun", feature = "tencent")),
        ),
        ("capacity_block", cfg!(feature = "aws")),
        ("committed_use", cfg!(feature = "gcp")),
        (
            "reservation",
            cfg!(any(feature = "gcp", feature = "azure", feature = "tencent")),
        ),
    ];
    kinds
        .into_iter()
        .filter_map(|(kind, is_built)| is_built.then_some(kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_prints_three_lines_and_shows_every_billing_mode() {
    let start = || Server::demo(&["--instances", "60", "--listen", "127.0.0.1:0"]);
    let (server, lines) = tokio::task::spawn_blocking(start).await.expect("started");
    assert_eq!(lines.len(), 3);
    assert!(lines[0].ends_with(&server.url("/")), "{lines:?}");
    assert!(lines[1].ends_with(&server.url("/metrics")), "{lines:?}");
    assert!(lines[2].contains("Ctrl-C"), "{lines:?}");
    let families = eventually("a fleet of every mode, with commitments", || async {
        let families = page(&server).await?;
        let modes = exposition::label_values(families.get("gpuwatch_instance_info")?, "billing_mode");
        let complete = ["on_demand", "reserved", "spot", "unknown"]
            .iter()
            .all(|mode| modes.contains(*mode));
        let kinds = exposition::label_values(families.get("gpuwatch_commitment_info")?, "kind");
        let bought = bought_ahead().all(|kind| kinds.contains(kind));
        (complete && bought).then_some(families)
    })
    .await;
    // Every family of the page is in the metrics reference.
    let reference = gpuwatch::encode::docs::markdown();
    for name in families.keys().filter(|name| !name.starts_with("process_")) {
        assert!(
            reference.contains(&format!("`{name}`")),
            "{name} is not in docs/metrics.md"
        );
    }
    server.signal("INT");
    let (code, took, rest) = tokio::task::spawn_blocking(move || server.wait())
        .await
        .expect("joined");
    assert_eq!((code, rest.as_str()), (Some(0), ""), "three lines and no more");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
