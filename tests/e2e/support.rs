//! Starting programs, finding tools, waiting.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use gpuwatch_inventory::Provider;
use serde_json::Value;

use crate::exposition::Page;

/// Whether the program was built with a cloud; a note where it was not, as
/// the test that asks cannot run then.
pub fn is_built_in(provider: Provider) -> bool {
    let there = gpuwatch::registry::is_built_in(provider);
    if !there {
        eprintln!("built without {provider}: not tested");
    }
    there
}

/// A child process that ends with the test.
pub struct Running {
    pub child: Child,
    pub lines: mpsc::Receiver<String>,
}

impl Running {
    /// Starts a program whose lines (standard output, or error if `errors`)
    /// are to be read; the other stream goes to the test's own.
    pub fn start(command: &mut Command, errors: bool) -> Self {
        command.stdin(Stdio::piped());
        let command = if errors {
            command.stderr(Stdio::piped())
        } else {
            command.stdout(Stdio::piped())
        };
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stream: Box<dyn Read + Send> = if errors {
            Box::new(child.stderr.take().expect("piped"))
        } else {
            Box::new(child.stdout.take().expect("piped"))
        };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // Keep reading when nobody listens any more: a full pipe
                // would stop the program.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits for a line that `pick` accepts.
    pub fn line<T>(&self, what: &str, limit: Duration, pick: impl Fn(&str) -> Option<T>) -> T {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(limit) {
                Ok(line) => match pick(&line) {
                    Some(found) => return found,
                    None => seen.push(line),
                },
                Err(error) => panic!("no {what} ({error}); output was:\n{}", seen.join("\n")),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn gpuwatch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuwatch"));
    // Nothing of the developer's own cloud may leak into a test.
    for (name, _) in env::vars() {
        let of_cloud = [
            "AWS_",
            "GOOGLE_",
            "GCE_",
            "AZURE_",
            "ALIBABA_CLOUD_",
            "TENCENTCLOUD_",
            "TKE_",
            "GPUWATCH_",
        ];
        if of_cloud.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

/// The address that `serve` logs when it listens.
pub fn served_address(serve: &Running) -> String {
    serve.line("address", Duration::from_secs(30), |line| {
        let log: Value = serde_json::from_str(line).ok()?;
        log["fields"]["address"]
            .as_str()
            .or_else(|| log["address"].as_str())
            .map(str::to_owned)
    })
}

/// Whether a missing tool fails the test.
fn tools_required() -> bool {
    env::var("GPUWATCH_REQUIRE_TOOLS").is_ok_and(|value| value == "1")
}

/// A program on the path, or nothing with a note.
pub fn tool(name: &str) -> Option<PathBuf> {
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        missing(name);
    }
    found
}

fn missing(what: &str) {
    assert!(!tools_required(), "{what} is required and missing");
    eprintln!("skipped: {what} is not here");
}

/// Fetches a page; `None` while nobody answers or the answer is not 200.
pub async fn get(url: &str) -> Option<String> {
    let answer = reqwest::get(url).await.ok()?;
    if answer.status() != 200 {
        return None;
    }
    answer.text().await.ok()
}

/// Fetches `/metrics` until it fits.
pub async fn metrics_when(url: &str, what: &str, fits: impl Fn(&Page) -> bool) -> (String, Page) {
    let mut last = String::new();
    for _ in 0..600 {
        if let Some(text) = get(url).await {
            let page = Page::parse(&text);
            if fits(&page) {
                return (text, page);
            }
            last = text;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let end: String = last.chars().take(4000).collect();
    panic!("never: {what}; last page began:\n{end}");
}

/// Runs a program with this input and gives its output.
pub fn filter(command: &mut Command, input: &str) -> (bool, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawned");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes())
        .expect("written");
    let output = child.wait_with_output().expect("ended");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}
