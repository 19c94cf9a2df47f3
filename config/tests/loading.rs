//! What a valid file becomes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::{fs, path::Path};

use gpuwatch_config::{
    AssumeRole, Config, HistoryStore, Partition, Regions, load, parse,
    providers::{RoleArn, Site},
};

fn no_env(_: &str) -> Option<String> {
    None
}

fn config(text: &str) -> Config {
    parse(text, "f", &no_env, "")
        .unwrap_or_else(|errors| panic!("{errors}"))
        .config
}

#[test]
fn an_empty_file_is_the_defaults_and_watches_nothing() {
    for text in [
        "",
        "# nothing\n",
        "---\n",
        "providers:\n",
        "providers: {aws: }\nreport: ~\n",
    ] {
        let config = config(text);
        assert_eq!(config.listen.as_str(), "127.0.0.1:9836");
        assert_eq!(config.currency.report.to_string(), "USD");
        assert_eq!(
            config.labels.owner_tags,
            ["owner", "team", "kubernetes.io/created-for/pvc/namespace"]
        );
        assert_eq!(config.budgets.aws["cost_explorer_calls_per_day"], 8);
        assert!(!config.has_targets(), "{text:?}");
    }
}

#[test]
fn an_aws_section_keeps_what_it_says() {
    let config = config(
        "providers:\n  aws:\n    - name: 生产\n      regions: [cn-north-1]\n      assume_roles: [self, 'arn:aws-cn:iam::000123456789:role/x']\n",
    );
    let [section] = config.providers.aws.as_slice() else {
        panic!("one section")
    };
    assert_eq!(section.name.as_str(), "生产");
    assert_eq!(section.regions, Regions::Listed(vec!["cn-north-1".to_owned()]));
    assert_eq!(section.known_partition(), Some(Partition::AwsCn));
    let [AssumeRole::Own, AssumeRole::Role(arn)] = section.assume_roles.as_slice() else {
        panic!("two roles")
    };
    assert_eq!(arn.account(), "000123456789");
    assert_eq!(section.session_name, "gpuwatch");
    assert!(config.has_targets());
}

#[test]
fn numbers_stay_texts_where_texts_are_wanted() {
    let config =
        config("providers:\n  gcp: [{name: 007, organization: 000123456789}]\n  aws: [{name: no, profile: 1e3}]\n");
    assert_eq!(config.providers.gcp[0].name.as_str(), "007");
    assert_eq!(config.providers.gcp[0].organization.as_deref(), Some("000123456789"));
    assert_eq!(config.providers.aws[0].name.as_str(), "no");
    assert_eq!(config.providers.aws[0].profile.as_deref(), Some("1e3"));
}

#[test]
fn references_stand_for_every_kind_of_value() {
    let env = |name: &str| match name {
        "PORT" => Some("2525".to_owned()),
        "YES" => Some("true".to_owned()),
        "ADDRESS" => Some("0.0.0.0:80".to_owned()),
        "EVIL" => Some("x\n      organization: true # ${PORT}".to_owned()),
        "NULL" => Some("null".to_owned()),
        _ => None,
    };
    let text = "listen: ${ADDRESS}\nproviders:\n  aws:\n    - name: a\n      organization: ${YES}\n      endpoint_url: ${NONE:-}\n    - name: b\n      profile: ${EVIL}\n      external_id: ${NULL}\nreport:\n  smtp: {host: h, port: '${PORT}'}\nbudgets: {aws: {x_per_day: \"${N:-7}\"}}\n";
    let config = parse(text, "f", &env, "")
        .unwrap_or_else(|errors| panic!("{errors}"))
        .config;
    assert_eq!(config.listen.as_str(), "0.0.0.0:80");
    let [a, b] = config.providers.aws.as_slice() else {
        panic!("two sections")
    };
    assert!(a.organization && a.endpoint_url.is_none());
    assert!(!b.organization);
    assert_eq!(b.profile.as_deref(), Some("x\n      organization: true # ${PORT}"));
    assert_eq!(b.external_id.as_deref(), Some("null"));
    assert_eq!(config.report.smtp.unwrap().port, Some(2525));
    assert_eq!(config.budgets.aws["x_per_day"], 7);
}

#[test]
fn budgets_add_to_their_defaults() {
    let config = config("budgets: {aws: {cost_explorer_calls_per_day: 2}, gcp: {bigquery_bytes_per_month: 0}}");
    assert_eq!(config.budgets.aws["cost_explorer_calls_per_day"], 2);
    assert_eq!(config.budgets.aws["cloudwatch_metrics_per_hour"], 20_000);
    assert_eq!(config.budgets.by_provider()["gcp"]["bigquery_bytes_per_month"], 0);
}

#[test]
fn doubtful_values_are_warnings() {
    let text = "providers:\n  aws: [{name: a, regions: [us-esat-1, pluto-nowhere-9]}]\n  aliyun: [{name: a, regions: [cn-hangzhuo]}]\nbudgets: {aws: {cost_explorer_call_per_day: 1}}\nreport: {to: [a@example.com], from: b@example.com}\n";
    let warnings: Vec<String> = parse(text, "f", &no_env, "")
        .unwrap()
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        warnings,
        [
            "f:2:29: providers.aws[0].regions[0]: \"us-esat-1\": not a region of AWS that this version knows; did you mean us-east-1?",
            "f:2:40: providers.aws[0].regions[1]: \"pluto-nowhere-9\": not a region of AWS that this version knows; check the spelling",
            "f:3:32: providers.aliyun[0].regions[0]: \"cn-hangzhuo\": not a region of Alibaba Cloud that this version knows; did you mean cn-hangzhou?",
            "f:4:45: budgets.aws.cost_explorer_call_per_day: a budget that no collector uses; did you mean cost_explorer_calls_per_day?",
            "f:5:14: report.to: the digest cannot be sent without a mail server; add smtp",
        ]
    );
}

#[test]
fn the_history_is_a_database_or_a_server() {
    let base = Path::new("/etc/gpuwatch");
    let database = parse("", "f", &no_env, base).unwrap().config;
    assert!(matches!(database.history.store(), HistoryStore::Database(path) if path == base.join("gpuwatch.db")));
    let server = config("history: {prometheus_url: 'http://p:9090/', bearer_token: t}");
    let HistoryStore::Prometheus(remote) = server.history.store() else {
        panic!("a server")
    };
    assert_eq!(remote.url.as_str(), "http://p:9090");
    assert_eq!(remote.bearer_token.unwrap().expose(), "t");
}

#[test]
fn local_endpoints_may_use_what_real_ones_may_not() {
    let config = config(
        "providers:\n  azure: [{name: a, endpoint_url: 'http://localhost:1', access_token: t, subscriptions: [SUB1]}]\n  gcp: [{name: g, endpoint_url: 'http://127.0.0.1:1', anonymous: true, projects: [p1]}]\n  tencent: [{name: t, site: international}]\n",
    );
    assert_eq!(config.providers.azure[0].subscriptions, ["sub1"]);
    assert_eq!(config.providers.tencent[0].site, Site::International);
}

#[test]
fn a_secret_file_loses_its_line_break_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s"), " pass word \r\n").unwrap();
    fs::write(
        dir.path().join("gpuwatch.yaml"),
        "report: {smtp: {host: h, username: u, password_file: s}}",
    )
    .unwrap();
    let config = load(dir.path().join("gpuwatch.yaml")).unwrap().config;
    assert_eq!(config.report.smtp.unwrap().password.unwrap().expose(), " pass word ");
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gpuwatch.yaml");
    let message = |path: &Path| {
        load(path)
            .unwrap_err()
            .to_string()
            .replace(&path.display().to_string(), "F")
    };
    assert_eq!(
        message(&path),
        "F: cannot be read: no such file; check the path and its permissions"
    );
    fs::write(&path, b"listen: \xff").unwrap();
    assert_eq!(message(&path), "F: not UTF-8 text; save it as UTF-8");
    assert!(message(dir.path()).starts_with("F: cannot be read: "));
}

#[test]
fn a_flood_of_problems_ends() {
    let text = (0..5_000).map(|n| format!("key{n}: 1")).collect::<Vec<_>>().join("\n");
    let errors = parse(&text, "f", &no_env, "").unwrap_err();
    assert_eq!(errors.problems().len(), 101);
    let text: String = "intervals:\n".to_owned() + &(0..300).map(|_| "  usage: x\n").collect::<String>();
    assert_eq!(parse(&text, "f", &no_env, "").unwrap_err().problems().len(), 101);
    let roles = (0..3_000).map(|n| format!("bad{n}")).collect::<Vec<_>>().join(", ");
    let text = format!("providers: {{aws: [{{name: a, assume_roles: [{roles}]}}]}}");
    assert!(parse(&text, "f", &no_env, "").unwrap_err().problems().len() >= 100);
}
