//! The built binary as a child process.
#![allow(dead_code, reason = "no test uses all of it")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use gpuwatch_fakecloud::{FakeCloud, aws};
use gpuwatch_fakecloud_core::InstanceTruth;
use gpuwatch_inventory::Provider;

/// The binary with an environment of its own: no configuration, credentials
/// or log level of whoever runs the tests.
pub fn gpuwatch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuwatch"));
    command
        .env_clear()
        .env("AWS_ACCESS_KEY_ID", aws::ACCESS_KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", aws::SECRET_ACCESS_KEY)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

/// The cloud that these tests watch: the first that the program was built with.
pub fn watched() -> Provider {
    let built_in = |provider: &&Provider| gpuwatch::registry::is_built_in(**provider);
    *Provider::ALL.iter().find(built_in).expect("a build with a cloud")
}

/// What is to be seen of it.
pub fn truth(clouds: &FakeCloud) -> Vec<InstanceTruth> {
    match watched() {
        Provider::Aws => clouds.aws().truth(),
        Provider::Gcp => clouds.gcp().truth(),
        Provider::Azure => clouds.azure().truth(),
        Provider::Aliyun => clouds.aliyun().truth(),
        Provider::Tencent => clouds.tencent().truth(),
    }
}

/// A configuration that points at it.
pub fn configuration(clouds: &FakeCloud) -> String {
    format!(
        "listen: 127.0.0.1:0\nproviders:\n{}intervals: {{inventory: 2s, commitments: 4s}}\n",
        gpuwatch::demo::section(watched(), clouds)
    )
}

/// A running server process, killed when dropped.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Server {
    /// Starts `serve`; the address is found in the log.
    pub fn serve(configuration: &Path) -> Self {
        let mut command = gpuwatch();
        command.arg("serve").arg("--config").arg(configuration);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut log = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(
                log.read_line(&mut line).expect("log") > 0,
                "it ended before it listened"
            );
            let event: serde_json::Value = serde_json::from_str(&line).expect("one JSON object per line");
            if event["message"] == "listening" {
                break event["address"]
                    .as_str()
                    .expect("an address")
                    .parse()
                    .expect("an address");
            }
        };
        // Somebody must keep reading, or the log would block the process.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, stdout, address }
    }

    /// Starts `demo` and returns the lines it prints.
    pub fn demo(arguments: &[&str]) -> (Self, Vec<String>) {
        let mut command = gpuwatch();
        command
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .arg("demo")
            .args(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut lines = Vec::new();
        for _ in 0..3 {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("a line");
            lines.push(line.trim_end().to_owned());
        }
        let url = lines[1].split_whitespace().last().expect("a URL");
        let address = url
            .trim_start_matches("http://")
            .trim_end_matches("/metrics")
            .parse()
            .expect("an address");
        (Self { child, stdout, address }, lines)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.expect("kill").success());
    }

    /// Waits for the end; gives the exit code, the time it took, and what was
    /// left on standard output.
    pub fn wait(mut self) -> (Option<i32>, Duration, String) {
        #[allow(clippy::disallowed_methods, reason = "measures the process under test")]
        let started = Instant::now();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("output");
        let status = self.child.wait().expect("ended");
        (status.code(), started.elapsed(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
