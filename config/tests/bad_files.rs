//! Bad configuration files with the messages they give. Each `tests/bad/x.yaml`
//! has its messages in `tests/bad/x.txt`; `GPUWATCH_BLESS=1 cargo test`
//! rewrites those.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::{fs, path::Path};

use gpuwatch_config::parse;

fn env(name: &str) -> Option<String> {
    match name {
        "HOME_REGION" => Some("us_east-1".to_owned()),
        "INJECTION" => Some("x\"]\nlisten: 0.0.0.0:1 # ".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn messages(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap();
    let base_dir = path.parent().unwrap();
    let errors = parse(&text, name, &env, base_dir).expect_err(&name.to_string_lossy());
    // Paths in the messages start from the folder of this test.
    format!("{errors}\n").replace(&format!("{}/", base_dir.display()), "")
}

#[test]
fn every_bad_file_gives_its_messages() {
    let folder = Path::new("tests/bad");
    let mut files = 0;
    let mut different = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        files += 1;
        let expected_path = path.with_extension("txt");
        let found = messages(&path);
        if std::env::var_os("GPUWATCH_BLESS").is_some() {
            fs::write(&expected_path, &found).unwrap();
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected {
            different.push(format!("{}\nexpected:\n{expected}\nfound:\n{found}", path.display()));
        }
    }
    assert!(files >= 25, "only {files} files");
    assert!(different.is_empty(), "{}", different.join("\n"));
}
