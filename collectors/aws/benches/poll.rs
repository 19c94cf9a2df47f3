//! A full poll of 10,000 instances, from start to the snapshot that has them
//! all, with 20 ms per call, as a ratio to the longest chain of sequential
//! pages (the calls of one region, as long as the simulated cloud took for
//! them). Both run in this process and share its cores.
//!
//! `cargo bench -p gpuwatch-collector-aws --bench poll`
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints its results"
)]
#![allow(clippy::disallowed_methods, reason = "a bench reads the real clock")]

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use gpuwatch_collector_aws::{AwsCollector, AwsOptions};
use gpuwatch_collector_core::{Accounting, Clock, Collector, Dataset, DatasetOptions, Options, Scheduler};
use gpuwatch_fakecloud::{
    FakeCloud,
    aws::{ACCESS_KEY_ID, AccountSpec, InstanceSpec, OptIn, Partition, SECRET_ACCESS_KEY, World},
};

const ACCOUNT: &str = "111122223333";
const INSTANCES: usize = 10_000;
const LATENCY: Duration = Duration::from_millis(20);
const ROUNDS: usize = 7;

fn world(regions: usize) -> World {
    let names: Vec<String> = (0..regions).map(|n| format!("us-east-{}", n + 1)).collect();
    let opt_in: Vec<(&str, OptIn)> = names.iter().map(|name| (name.as_str(), OptIn::NotRequired)).collect();
    let world = World::with_regions(Partition::Aws, &opt_in);
    world.add_account(ACCOUNT, AccountSpec::default());
    for name in &names {
        let spec = InstanceSpec::of("p5.48xlarge")
            .tag("Name", "node")
            .tag("team", "research")
            .tag("eks:cluster-name", "train");
        world.add_instances(ACCOUNT, name, INSTANCES / regions, &spec);
    }
    world
}

/// What one poll took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct Poll {
    all: f64,
    /// The simulated cloud's time for the pages of the slowest region.
    chain: f64,
    pages: usize,
    /// Identity, regions.
    before_first_page: f64,
    /// From the arrival of the first page's call to the end of the last one.
    listing: f64,
}

async fn poll(world: World) -> Poll {
    let options = gpuwatch_fakecloud::Options {
        aws: Some(world),
        latency: LATENCY,
        ..Default::default()
    };
    let fake = FakeCloud::start(options).await.unwrap();
    let mut section = AwsOptions::named("bench");
    section.endpoint_url = Some(fake.url());
    section.owner_tags = vec!["team".to_owned()];
    let collector = AwsCollector::with_fixed_credentials(section, ACCESS_KEY_ID, SECRET_ACCESS_KEY);
    let inventory = DatasetOptions::every(Duration::from_mins(5));
    let options = Options {
        datasets: BTreeMap::from([(Dataset::Inventory, inventory)]),
        ..Options::default()
    };
    let collectors: Vec<Arc<dyn Collector>> = vec![Arc::new(collector)];
    let scheduler = Scheduler::new(collectors, options, Clock::System, Accounting::detached().unwrap());

    let (started, wall) = (Instant::now(), jiff::Timestamp::now());
    let polling = scheduler.start();
    polling
        .snapshots()
        .wait_for(|snapshot| snapshot.instances.len() == INSTANCES)
        .await
        .unwrap();
    let took = started.elapsed();

    let since = |at: jiff::Timestamp| at.duration_since(wall).as_secs_f64() * 1000.0;
    let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let mut chains: BTreeMap<String, (Duration, usize)> = BTreeMap::new();
    let (mut first, mut last) = (f64::MAX, 0.0_f64);
    for call in fake.calls().iter().filter(|call| call.operation == "DescribeInstances") {
        let spent = call.duration.unwrap_or_default();
        let chain = chains.entry(call.region.clone()).or_default();
        chain.0 += spent;
        chain.1 += 1;
        first = first.min(since(call.at));
        last = last.max(since(call.at) + millis(spent));
    }
    polling.stop().await;
    fake.stop().await;
    let (chain, pages) = chains.into_values().max().unwrap_or_default();
    Poll {
        all: millis(took),
        chain: millis(chain),
        pages,
        before_first_page: first,
        listing: last - first,
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for regions in [1, 4, 10] {
        let mut runs: Vec<Poll> = (0..ROUNDS).map(|_| runtime.block_on(poll(world(regions)))).collect();
        runs.sort_by(|a, b| a.all.total_cmp(&b.all));
        let run = runs[ROUNDS / 2];
        println!(
            "{INSTANCES} instances in {regions} regions: poll {:.0} ms, longest chain {} pages {:.0} ms, ratio {:.2}; \
             {:.0} ms before the first page, {:.0} ms for the pages, {:.0} ms after them",
            run.all,
            run.pages,
            run.chain,
            run.all / run.chain,
            run.before_first_page,
            run.listing,
            run.all - run.before_first_page - run.listing
        );
    }
}
