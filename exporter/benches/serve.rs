//! Serving the page of 100,000 instances while snapshots are swapped: time to
//! the first byte and to the last, plain and gzip, and the server's memory.
//!
//! The bench starts itself once more as the server, so that the memory is the
//! server's alone. `GPUWATCH_BENCH_INSTANCES` takes another size.
#![allow(missing_docs, reason = "a bench")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench measures real time and prints it"
)]

#[path = "../tests/support/fleet.rs"]
mod fleet;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use gpuwatch::{
    http::{self, App},
    metrics::OwnMetrics,
    publisher::{Publisher, Source},
    serve::Reloader,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const SERVER: &str = "GPUWATCH_BENCH_SERVER";
const INSTANCES: &str = "GPUWATCH_BENCH_INSTANCES";
/// Time between snapshots: some sixty times as often as by default.
const SWAP: Duration = Duration::from_secs(5);
const REQUESTS: usize = 300;

fn main() {
    let instances = std::env::var(INSTANCES)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000);
    if std::env::var_os(SERVER).is_some() {
        serve(instances);
    } else if std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches` only wants to see that it builds.
        measure(instances);
    }
}

#[tokio::main]
async fn serve(instances: usize) {
    let (snapshots, receiver) = watch::channel(Arc::new(fleet::of_generation(1, instances)));
    let (_sources, sources) = watch::channel(Source {
        snapshots: receiver,
        sections: 1,
    });
    let metrics = OwnMetrics::new().expect("metrics");
    let publisher = Publisher::new(metrics.clone(), sources).expect("first page");
    let app = App {
        published: publisher.published(),
        metrics,
        reloader: Reloader::refusing(),
    };
    let stop = CancellationToken::new();
    tokio::spawn(publisher.run(stop.clone()));
    let listener = http::listen::bind("127.0.0.1:0").await.expect("a free port");
    println!("{}", listener.local_addr().expect("bound"));
    tokio::spawn(http::listen::serve(listener, http::router(app), stop));
    for generation in 2.. {
        tokio::time::sleep(SWAP).await;
        let snapshot = tokio::task::spawn_blocking(move || fleet::of_generation(generation, instances)).await;
        snapshots.send_replace(Arc::new(snapshot.expect("made")));
    }
}

fn measure(instances: usize) {
    let mut server = Command::new(std::env::current_exe().expect("this bench"))
        .env(SERVER, "1")
        .env(INSTANCES, instances.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut address = String::new();
    BufReader::new(server.stdout.take().expect("piped"))
        .read_line(&mut address)
        .expect("an address");
    let address = address.trim().to_owned();
    println!(
        "{instances} instances, a new snapshot every {} s, {REQUESTS} requests each",
        SWAP.as_secs()
    );
    for encoding in ["identity", "gzip"] {
        let mut connection = TcpStream::connect(&address).expect("connected");
        connection.set_nodelay(true).expect("set");
        let mut first = Vec::new();
        let mut last = Vec::new();
        let mut length = 0;
        for _ in 0..REQUESTS {
            let (first_byte, last_byte, body) = scrape(&mut connection, encoding);
            first.push(first_byte);
            last.push(last_byte);
            length = body;
        }
        println!(
            "{encoding:8} {:7.2} MB  first byte p50 {} p99 {}  last byte p50 {} p99 {}  resident {} MiB",
            megabytes(length),
            quantile(&mut first, 50),
            quantile(&mut first, 99),
            quantile(&mut last, 50),
            quantile(&mut last, 99),
            memory(&server, "VmRSS:"),
        );
    }
    println!(
        "largest resident memory of the server: {} MiB",
        memory(&server, "VmHWM:")
    );
    server.kill().expect("killed");
    server.wait().expect("ended");
}

/// One request on a kept connection: time to the first and last byte of the
/// answer, and the length of its body.
fn scrape(connection: &mut TcpStream, encoding: &str) -> (Duration, Duration, usize) {
    let request = format!("GET /metrics HTTP/1.1\r\nhost: bench\r\naccept-encoding: {encoding}\r\n\r\n");
    let started = Instant::now();
    connection.write_all(request.as_bytes()).expect("sent");
    let mut buffer = vec![0; 1 << 20];
    let mut filled = connection.read(&mut buffer).expect("an answer");
    let first = started.elapsed();
    let header = loop {
        if let Some(end) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        filled += connection.read(&mut buffer[filled..]).expect("the header");
    };
    let text = std::str::from_utf8(&buffer[..header]).expect("ASCII");
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .expect("a length");
    let length: usize = length.parse().expect("a number");
    let mut received = filled - header;
    while received < length {
        let read = connection.read(&mut buffer).expect("the body");
        assert!(read > 0, "the answer ended early");
        received += read;
    }
    (first, started.elapsed(), length)
}

fn quantile(times: &mut [Duration], percent: usize) -> String {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len() - 1);
    format!("{:9.3} ms", times[at].as_secs_f64() * 1000.0)
}

#[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// A line of the server's status, in MiB.
fn memory(server: &Child, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("Linux");
    let value = status.lines().find_map(|l| l.strip_prefix(line)).expect("the line");
    value.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}
