//! The bundled example: valid, complete and true to the defaults.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::{fs, path::Path};

use gpuwatch_config::{Config, EXAMPLE, load, parse, schema_json, show};
use serde_json::Value;

fn no_env(_: &str) -> Option<String> {
    None
}

/// The example with every commented-out line in force, except alternatives to
/// other lines.
fn uncommented() -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines: Vec<String> = Vec::new();
    for line in EXAMPLE.lines().filter(|line| !line.contains("# instead of")) {
        let (blank, rest) = line.split_at(indent(line));
        match rest.strip_prefix('#') {
            Some(example) if !example.is_empty() && !example.starts_with(' ') => {
                lines.push(format!("{blank}{example}"));
            }
            Some(_) => {}
            None => lines.push(line.to_owned()),
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    // `key: []` with items below it becomes `key:`.
    let next_indents: Vec<usize> = lines.iter().skip(1).map(|line| indent(line)).chain([0]).collect();
    for (line, next) in lines.iter_mut().zip(next_indents) {
        if next > indent(line) {
            let key = line.trim_end_matches([' ', '[', ']', '{', '}']);
            *line = key.to_owned();
        }
    }
    lines.join("\n")
}

/// A folder with every file that the example names.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "web.yml",
        "gcp.json",
        "ca.pem",
        "client.pem",
        "client.key",
        "api-key",
        "prices.csv",
        "azure-secret",
        "prometheus-password",
        "smtp-password",
    ] {
        fs::write(dir.path().join(name), "content\n").unwrap();
    }
    dir
}

#[test]
fn as_it_stands_it_is_the_defaults() {
    let example = parse(EXAMPLE, "example", &no_env, "").expect("valid");
    let empty = parse("", "empty", &no_env, "").expect("valid");
    assert_eq!(example.config, empty.config);
    assert_eq!(example.warnings, []);
    assert!(!example.config.has_targets());
}

#[test]
fn with_its_examples_in_force_it_is_valid() {
    let dir = folder();
    let path = dir.path().join("gpuwatch.yaml");
    let text = uncommented();
    fs::write(&path, &text).unwrap();
    let env = |name: &str| Some(format!("value of {name}"));
    let loaded = parse(&text, &path, &env, dir.path()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let Config {
        providers,
        telemetry,
        report,
        ..
    } = &loaded.config;
    assert_eq!(providers.aws[0].assume_roles.len(), 2);
    assert_eq!(
        providers.aliyun[0].access_key_id.as_ref().unwrap().expose(),
        "value of ALIBABA_CLOUD_ACCESS_KEY_ID"
    );
    assert_eq!(telemetry[0].remote().headers["X-Api-Key"].expose(), "content");
    assert!(report.has_recipients());
    assert!(
        [&providers.gcp.len(), &providers.azure.len(), &providers.tencent.len()]
            .iter()
            .all(|len| **len == 1)
    );
    // What is shown is a configuration again, and the same one.
    let shown = show(&loaded.config);
    let again = parse(&shown, "shown", &no_env, "").unwrap_or_else(|errors| panic!("{errors}\n{shown}"));
    assert_eq!(show(&again.config), shown);
}

#[test]
fn a_file_is_loaded_relative_to_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gpuwatch.yaml");
    fs::write(&path, EXAMPLE).unwrap();
    let loaded = load(&path).expect("valid");
    assert_eq!(
        loaded.config.history.path.as_deref(),
        Some(dir.path().join("gpuwatch.db").as_path())
    );
}

/// The keys of a schema's object with their own schemas, references followed.
fn properties<'a>(schema: &'a Value, root: &'a Value, keys: &mut Vec<String>, visited: &mut Vec<&'a str>) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str) {
                let name = name.rsplit('/').next().unwrap();
                if !visited.contains(&name) {
                    visited.push(name);
                    properties(&root["$defs"][name], root, keys, visited);
                }
            }
            if let Some(Value::Object(own)) = object.get("properties") {
                keys.extend(own.keys().cloned());
            }
            object.values().for_each(|value| properties(value, root, keys, visited));
        }
        Value::Array(items) => items.iter().for_each(|value| properties(value, root, keys, visited)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_schema_is_in_it() {
    let schema: Value = serde_json::from_str(&schema_json()).unwrap();
    let mut keys = Vec::new();
    properties(&schema, &schema, &mut keys, &mut Vec::new());
    assert!(keys.len() > 150, "{}", keys.len());
    for key in keys {
        let written = EXAMPLE.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("#- ").trim_start_matches('#');
            line.starts_with(&format!("{key}:")) || line.contains(&format!("{{{key}:"))
        });
        assert!(written, "{key} is not in the example");
    }
}

#[test]
fn the_committed_schema_is_current() {
    let path = Path::new("gpuwatch.schema.json");
    if std::env::var_os("GPUWATCH_BLESS").is_some() {
        fs::write(path, schema_json()).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    // As values: the order of the keys depends on features of the JSON crate.
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    assert!(
        parse(&committed) == parse(&schema_json()),
        "the schema has changed: run GPUWATCH_BLESS=1 cargo test -p gpuwatch-config and commit {}",
        path.display()
    );
}
