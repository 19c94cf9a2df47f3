//! What holds for every text: no panic, no secret shown, and what is shown can
//! be loaded again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::fs;

use gpuwatch_config::{DATASETS, EXAMPLE, Loaded, parse, show};
use proptest::prelude::*;

fn no_env(_: &str) -> Option<String> {
    None
}

/// A configuration that uses every secret in one of its two forms. `SECRET`
/// stands for the secret, and the environment and the files hold it as well.
const SECRETS: &str = r#"
providers:
  azure:
    - {name: a, tenant_id: example.com, client_id: 00000000-0000-0000-0000-000000000000, client_secret: "SECRET"}
    - {name: b, endpoint_url: "http://127.0.0.1:1", access_token: "SECRET"}
    - {name: c, endpoint_url: "http://127.0.0.1:1", access_token_file: secret}
    - {name: d, tenant_id: t, client_id: c, endpoint_url: "http://127.0.0.1:1", client_secret_file: secret}
  aliyun:
    - {name: a, access_key_id: "SECRET", access_key_secret: "${SECRET}"}
    - {name: b, access_key_id_file: secret, access_key_secret_file: secret}
  tencent:
    - {name: a, secret_id: "SECRET", secret_key: "SECRET"}
    - {name: b, secret_id_file: secret, secret_key_file: secret}
telemetry:
  - {name: a, prometheus_url: "http://p", basic_auth: {username: u, password: "SECRET"}, headers: {X-Key: "SECRET"}}
  - {name: b, prometheus_url: "http://p", basic_auth: {username: u, password_file: secret}, header_files: {X-Key: secret}}
  - {name: c, prometheus_url: "http://p", bearer_token: "${SECRET}"}
  - {name: d, prometheus_url: "http://p", bearer_token_file: secret}
history: {prometheus_url: "http://p", basic_auth: {username: u, password: "SECRET"}, headers: {X-Key: "SECRET"}}
report:
  smtp: {host: h, username: u, password: "SECRET"}
"#;

/// Letters that cannot be confused with anything else in a message.
fn secret() -> impl Strategy<Value = String> {
    "[Q-Z]{8}[0-9]{4}"
}

fn load_with(text: &str, secret: &str) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("secret"), secret).unwrap();
    let env = |name: &str| (name == "SECRET").then(|| secret.to_owned());
    parse(text, "f", &env, dir.path()).map_err(|errors| format!("{errors}\n{errors:?}"))
}

#[test]
fn datasets_have_the_documented_intervals() {
    let config = parse("", "f", &no_env, "").unwrap().config;
    let minutes = DATASETS.map(|dataset| config.intervals.get(dataset).unwrap().as_secs() / 60);
    assert_eq!(minutes, [5, 5, 60, 720, 360, 10]);
    assert!(DATASETS.iter().all(|dataset| config.deadlines.get(dataset).is_none()));
    assert_eq!(config.intervals.get("nonsense"), None);
}

/// Without the line that begins a long section, its keys are too many problems
/// to show; the note that says so has a place too.
#[test]
fn the_note_on_further_problems_says_where_they_begin() {
    let text = EXAMPLE.replace("\nfindings:\n", "\n\n");
    let errors = parse(&text, "f", &no_env, "").unwrap_err();
    let last = errors.problems().last().unwrap();
    assert!(
        last.message.ends_with("further problems from here on are not shown"),
        "{last}"
    );
    assert!(
        errors
            .problems()
            .iter()
            .all(|problem| problem.line.is_some_and(|line| line >= 1))
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = parse(&text, "f", &no_env, "");
    }

    #[test]
    fn no_yaml_like_text_panics(text in r#"([a-z]{1,4}|providers|aws|name|regions|report|: |- |\n|\n  |\n    |\[|\]|\{|\}|"|'|,|#|&a |\*a|!t |\||>|~|\$\{A:-b\}|\$|0|1h|\t|---\n){0,40}"#) {
        let _ = parse(&text, "f", &no_env, "");
    }

    /// A value of the wrong shape at any line of the example.
    #[test]
    fn no_damaged_example_panics(line in 0..EXAMPLE.lines().count(), damage in r#"[\[\]{}:#&*!|>'"%@` a-z0-9-]{0,12}"#, cut in 0..60usize) {
        let mut lines: Vec<String> = EXAMPLE.lines().map(str::to_owned).collect();
        let kept: String = lines[line].chars().take(cut).collect();
        lines[line] = kept + &damage;
        if let Err(errors) = parse(&lines.join("\n"), "f", &no_env, "") {
            for problem in errors.problems() {
                prop_assert!(!problem.to_string().contains('\n'), "{problem}");
                prop_assert!(problem.line.is_some_and(|line| line >= 1));
            }
        }
    }

    #[test]
    fn a_valid_configuration_never_shows_a_secret(secret in secret()) {
        let loaded = load_with(&SECRETS.replace("\"SECRET\"", &format!("{secret:?}")), &secret).map_err(TestCaseError::fail)?;
        let shown = show(&loaded.config);
        prop_assert!(!shown.contains(&secret), "{shown}");
        let debug = format!("{loaded:?}{loaded:#?}");
        prop_assert!(!debug.contains(&secret), "{debug}");
        prop_assert!(shown.matches("<redacted>").count() >= 12, "{shown}");
        let Loaded { config, .. } = &loaded;
        prop_assert_eq!(config.providers.aliyun[0].access_key_secret.as_ref().unwrap().expose(), &secret);
        prop_assert_eq!(config.providers.tencent[1].secret_key.as_ref().unwrap().expose(), &secret);
        prop_assert_eq!(config.telemetry[1].remote().headers["X-Key"].expose(), &secret);
        prop_assert_eq!(config.telemetry[3].remote().bearer_token.unwrap().expose(), &secret);
    }

    /// Keys misspelt, sections cut short, secrets as lists: whatever is
    /// reported, the secret is not in it.
    #[test]
    fn an_invalid_configuration_never_shows_a_secret(
        secret in secret(),
        form in prop::sample::select(vec!["[\"@\"]", "{a: \"@\"}", "\"@\"", "\"${SECRET}\"", "\"@\\u0001\"", "!x \"@\"", "\"@"]),
        typo in prop::sample::select(vec!["secret", "password", "token", "name", "basic_auth", "headers", "smtp", "url"]),
    ) {
        let value = form.replace('@', &secret);
        let text = SECRETS.replace("\"SECRET\"", &value).replacen(typo, "tpyo", 3);
        match load_with(&text, &secret) {
            Err(errors) => prop_assert!(!errors.contains(&secret), "{errors}"),
            Ok(loaded) => prop_assert!(!show(&loaded.config).contains(&secret)),
        }
    }

    #[test]
    fn a_password_in_a_url_is_not_shown(secret in secret(), scheme in "https?|ftp|x", host in "[a-z]{0,5}") {
        let url = format!("{scheme}://user:{secret}@{host}");
        for text in [
            format!("telemetry: [{{name: a, prometheus_url: {url:?}}}]"),
            format!("providers: {{aws: [{{name: a, endpoint_url: {url:?}}}]}}"),
        ] {
            let errors = parse(&text, "f", &no_env, "").unwrap_err();
            let printed = format!("{errors}{errors:?}");
            prop_assert!(!printed.contains(&secret), "{printed}");
        }
    }

    /// Names, users and tags with every kind of character come through.
    #[test]
    fn what_is_shown_loads_to_the_same(
        name in r"[^\p{C}\p{Z}]([^\p{C}]{0,120}[^\p{C}\p{Z}])?",
        tag in r"[\PC\n\t ]{1,200}",
        seconds in 1u64..10_000_000,
    ) {
        let env = |variable: &str| match variable {
            "NAME" => Some(name.clone()),
            "TAG" => Some(tag.clone()),
            _ => None,
        };
        let text = format!(
            "providers: {{aws: [{{name: \"${{NAME}}\", profile: \"${{NAME}}\"}}]}}\n\
             labels: {{owner_tags: [\"x${{TAG}}\"]}}\n\
             intervals: {{spend: {seconds}s}}\n"
        );
        let config = parse(&text, "f", &env, "").map_err(|errors| TestCaseError::fail(errors.to_string()))?.config;
        let shown = show(&config);
        let again = parse(&shown, "shown", &no_env, "");
        let again = again.map_err(|errors| TestCaseError::fail(format!("{errors}\n{shown}")))?.config;
        prop_assert_eq!(again, config);
    }
}
