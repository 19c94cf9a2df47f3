//! A real Prometheus.

use std::{path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::support::{Running, get};

pub struct Prometheus {
    _server: Running,
    _folder: tempfile::TempDir,
    address: String,
}

impl Prometheus {
    /// One that scrapes one target every second.
    pub fn scraping(program: &Path, target: &str) -> Self {
        let groups = serde_json::json!([{"targets": [target], "labels": {}}]);
        Self::scraping_every(program, "1s", &groups)
    }

    /// One that scrapes target groups in the form of service discovery.
    pub fn scraping_every(program: &Path, interval: &str, groups: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (config, targets) = (folder.path().join("prometheus.yml"), folder.path().join("targets.json"));
        let text = format!(
            "global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\n\
             scrape_configs: [{{job_name: all, file_sd_configs: [{{files: ['{}']}}]}}]\n",
            targets.display()
        );
        std::fs::write(&config, text).unwrap();
        std::fs::write(&targets, groups.to_string()).unwrap();
        let server = Running::start(
            Command::new(program)
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
                .arg("--web.listen-address=127.0.0.1:0"),
            true,
        );
        let address = server.line("Prometheus address", Duration::from_secs(30), |line| {
            let (_, after) = line.split_once("Listening on")?;
            let (_, address) = after.split_once("address=")?;
            Some(address.trim_matches('"').split_whitespace().next()?.to_owned())
        });
        Self {
            _server: server,
            _folder: folder,
            address,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks until there is an answer.
    pub async fn result(&self, query: &str) -> Vec<Value> {
        let client = reqwest::Client::new();
        let url = format!("http://{}/api/v1", self.address);
        for _ in 0..300 {
            let answer = client
                .get(format!("{url}/query"))
                .query(&[("query", query)])
                .send()
                .await;
            if let Ok(answer) = answer {
                let body: Value = serde_json::from_str(&answer.text().await.unwrap_or_default()).unwrap_or_default();
                let rows = body["data"]["result"].as_array().cloned().unwrap_or_default();
                if !rows.is_empty() {
                    return rows;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!(
            "no answer to {query}; targets: {:?}",
            get(&format!("{url}/targets")).await
        );
    }
}
