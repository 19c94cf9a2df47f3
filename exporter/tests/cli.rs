//! What the command line says: help, errors, exit codes, reference output.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::process::{Command, Output};

use gpuwatch_inventory::Provider;
use support::program::gpuwatch;

fn run(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

/// Exit code, standard output and standard error in one text.
fn transcript(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(gpuwatch().current_dir(folder.path()).args(arguments));
    format!(
        "exit code: {}\n----- stdout -----\n{}----- stderr -----\n{}",
        output.status.code().expect("a code"),
        String::from_utf8(output.stdout).expect("UTF-8"),
        String::from_utf8(output.stderr).expect("UTF-8"),
    )
}

/// Runs with a configuration file; the folder's name is cut out.
fn with_configuration(text: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("gpuwatch.yaml"), text).expect("written");
    let output = run(gpuwatch().current_dir(folder.path()).args(arguments));
    let clean = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), clean(output.stdout), clean(output.stderr))
}

#[test]
fn help_and_mistakes_are_worded_as_promised() {
    insta::assert_snapshot!("help", transcript(&["--help"]));
    insta::assert_snapshot!("help_serve", transcript(&["serve", "-h"]));
    insta::assert_snapshot!("help_demo", transcript(&["demo", "-h"]));
    insta::assert_snapshot!("help_check", transcript(&["check", "-h"]));
    insta::assert_snapshot!("help_list", transcript(&["list", "-h"]));
    insta::assert_snapshot!("help_catalog", transcript(&["catalog", "-h"]));
    insta::assert_snapshot!("help_config", transcript(&["config", "-h"]));
    insta::assert_snapshot!("no_command", transcript(&[]));
    insta::assert_snapshot!("unknown_command", transcript(&["serv"]));
    insta::assert_snapshot!(
        "unknown_filter_word",
        transcript(&["list", "--billing-mode", "preemptible"])
    );
    insta::assert_snapshot!("bad_listen", transcript(&["serve", "--listen", "9836"]));
    insta::assert_snapshot!("no_configuration", transcript(&["serve"]));
    insta::assert_snapshot!(
        "named_configuration_missing",
        transcript(&["list", "--config", "nowhere.yaml"])
    );
    insta::assert_snapshot!("bad_log_level", transcript(&["catalog", "--log-level", "a=b=c"]));
}

#[test]
fn commands_that_do_not_exist_yet_are_not_in_the_help() {
    let help = transcript(&["--help"]);
    for later in ["findings", "report", "dashboards"] {
        assert!(!help.contains(&format!("\n  {later} ")), "{later}");
    }
}

#[test]
fn every_problem_of_a_configuration_is_told_and_the_exit_code_is_2() {
    let text = "listn: 127.0.0.1:0\nintervals: {inventory: soon}\n";
    for command in ["serve", "list"] {
        let (code, out, err) = with_configuration(text, &[command]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        assert!(err.contains("gpuwatch.yaml:1:1") && err.contains("listen"), "{err}");
        assert!(err.contains("gpuwatch.yaml:2:"), "{err}");
    }
    let (code, _, err) = with_configuration(text, &["config", "show"]);
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn what_this_version_cannot_do_is_refused_and_not_ignored() {
    let left_out = Provider::ALL
        .iter()
        .filter(|provider| !gpuwatch::registry::is_built_in(**provider))
        .map(|provider| {
            (
                format!("providers: {{{provider}: [{{name: x}}]}}\n"),
                format!("providers.{provider}: this gpuwatch was built without it"),
            )
        });
    let web = (
        "web_config_file: web.yml\n".to_owned(),
        "web_config_file: TLS and basic authentication are not available".to_owned(),
    );
    for (text, expected) in left_out.chain([web]) {
        for command in ["serve", "list"] {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("gpuwatch.yaml"), &text).expect("written");
            std::fs::write(folder.path().join("web.yml"), "").expect("written");
            let output = run(gpuwatch().current_dir(folder.path()).arg(command));
            let err = String::from_utf8(output.stderr).expect("UTF-8");
            assert_eq!(output.status.code(), Some(2), "{err}");
            assert!(err.contains(&expected), "{err}");
        }
    }
}

#[test]
fn the_example_is_a_valid_configuration_and_show_repeats_it() {
    let example = run(gpuwatch().args(["config", "example"]));
    assert!(example.status.success());
    let example = String::from_utf8(example.stdout).expect("UTF-8");
    let (code, shown, err) = with_configuration(&example, &["config", "show"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, again, err) = with_configuration(&shown, &["config", "show"]);
    assert_eq!((code, again), (Some(0), shown), "{err}");
}

#[test]
fn show_hides_secrets() {
    let text = "providers: {aliyun: [{name: cn, access_key_id: LTAIexample, access_key_secret: hush-hush}]}\n";
    let (code, shown, err) = with_configuration(text, &["config", "show"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!shown.contains("hush-hush") && !err.contains("hush-hush"));
    assert!(shown.contains("redacted"), "{shown}");
}

#[test]
fn the_schema_is_a_json_schema() {
    let schema = run(gpuwatch().args(["config", "schema"]));
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("JSON");
    assert!(schema["properties"]["providers"].is_object(), "{schema}");
}

#[test]
fn completions_and_the_manual_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(gpuwatch().args(["completions", shell]));
        let script = String::from_utf8(script.stdout).expect("UTF-8");
        assert!(script.contains("gpuwatch") && script.contains("demo"), "{shell}");
    }
    let manual = String::from_utf8(run(gpuwatch().arg("man")).stdout).expect("UTF-8");
    assert!(
        manual.contains(".TH gpuwatch") && manual.contains("catalog"),
        "{manual}"
    );
}

#[test]
fn the_catalogue_is_shown_as_table_json_and_csv() {
    let filters = ["--provider", "aws", "--gpu-model", "H100"];
    let show = |output: &str| -> String {
        let shown = run(gpuwatch().arg("catalog").args(filters).args(["-o", output]));
        assert_eq!(shown.status.code(), Some(0));
        String::from_utf8(shown.stdout).expect("UTF-8")
    };
    let rows: Vec<serde_json::Value> = serde_json::from_str(&show("json")).expect("a list");
    let big = rows
        .iter()
        .find(|row| row["instance_type"] == "p5.48xlarge")
        .expect("known");
    assert_eq!((&big["provider"], &big["gpus"]), (&"aws".into(), &8.0.into()));
    assert!(
        rows.iter()
            .all(|row| row["gpu_model"].as_str().is_some_and(|model| model.starts_with("H100")))
    );
    assert_eq!(show("csv").lines().count(), rows.len() + 1);
    assert!(show("table").lines().all(|line| line.chars().count() <= 120));

    let models = run(gpuwatch().args(["catalog", "--models", "-o", "json", "--gpu-model", "H100"]));
    let models: Vec<serde_json::Value> = serde_json::from_slice(&models.stdout).expect("a list");
    assert!(
        models.iter().any(|model| model["architecture"] == "Hopper"),
        "{models:?}"
    );
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    use std::{io::Read as _, process::Stdio};
    let mut child = gpuwatch()
        .arg("catalog")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut pipe = child.stdout.take().expect("piped");
    pipe.read_exact(&mut [0; 10]).expect("some output");
    drop(pipe);
    assert_eq!(child.wait().expect("ended").code(), Some(0));
}
