//! The scheduler with a scripted collector: what stays, what goes, what is
//! counted when calls fail, hang, panic or come back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gpuwatch_collector_core::{
    Account, Accounting, Call, Clock, CollectError, Collected, Collector, Context, Covers, Dataset, DatasetOptions,
    Discovery, DiscoveryFailure, Fleet, ManualClock, Options, Part, Polling, Reason, Scheduler, Scope, Snapshot,
    Target, TaskStatus,
};
use gpuwatch_inventory::{Billing, BillingMode, Instance, Provider};
use jiff::Timestamp;

const LIST: Call = Call::new("fake", "List", "fake:List");

/// What one call does.
#[derive(Debug, Clone)]
enum Answer {
    Ids(Vec<&'static str>),
    Fail(CollectError),
    Hang,
    Panic,
}

/// Answers by region; the last one repeats.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<BTreeMap<&'static str, Vec<Answer>>>,
    regions: Mutex<Vec<&'static str>>,
    discovery_failure: Mutex<Option<(Covers, CollectError)>>,
    calls: AtomicU32,
    panic_in_allocate: bool,
}

impl Script {
    fn regions(names: &[&'static str]) -> Arc<Self> {
        let script = Self::default();
        *script.regions.lock().unwrap() = names.to_vec();
        for name in names {
            script
                .answers
                .lock()
                .unwrap()
                .insert(name, vec![Answer::Ids(vec!["i-1"])]);
        }
        Arc::new(script)
    }

    fn answer(&self, region: &'static str, answers: Vec<Answer>) {
        self.answers.lock().unwrap().insert(region, answers);
    }

    fn next(&self, region: &str) -> Answer {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let queue = answers.get_mut(region).expect("scripted region");
        if queue.len() > 1 {
            queue.remove(0)
        } else {
            queue[0].clone()
        }
    }
}

struct Scripted(Arc<Script>);

fn account() -> Account {
    Account {
        id: "111".into(),
        name: "prod".into(),
    }
}

fn scope(region: &str) -> Scope {
    Scope {
        provider: Provider::Aws,
        account: account(),
        region: region.into(),
    }
}

fn instance(region: &str, id: &str) -> Instance {
    Instance {
        account_name: "prod".into(),
        instance_type: "p5.48xlarge".into(),
        billing: Billing::exact(BillingMode::OnDemand, ""),
        ..Instance::bare(Provider::Aws, "111", region, id)
    }
}

#[async_trait]
impl Collector for Scripted {
    fn provider(&self) -> Provider {
        Provider::Aws
    }

    fn name(&self) -> &'static str {
        "prod"
    }

    async fn discover(&self, _cx: &Context) -> Discovery {
        let regions = self.0.regions.lock().unwrap().clone();
        let datasets = vec![Dataset::Inventory];
        let targets = regions
            .iter()
            .map(|region| Target {
                scope: scope(region),
                datasets: datasets.clone(),
            })
            .collect();
        match self.0.discovery_failure.lock().unwrap().clone() {
            None => Discovery {
                targets,
                failures: Vec::new(),
            },
            Some((covers, error)) => {
                let failure = DiscoveryFailure {
                    account: account(),
                    covers,
                    error,
                };
                Discovery {
                    targets: Vec::new(),
                    failures: vec![failure],
                }
            }
        }
    }

    fn parts(&self, _scope: &Scope, _dataset: Dataset) -> Vec<Part> {
        vec!["list"]
    }

    async fn collect(&self, scope: &Scope, _: Dataset, _: Part, cx: &Context) -> Result<Collected, CollectError> {
        let ids = cx
            .call(LIST, || async {
                match self.0.next(&scope.region) {
                    Answer::Ids(ids) => Ok(ids),
                    Answer::Fail(error) => Err(error),
                    Answer::Hang => std::future::pending().await,
                    Answer::Panic => panic!("scripted panic"),
                }
            })
            .await?;
        Ok(Collected::Instances(
            ids.into_iter().map(|id| instance(&scope.region, id)).collect(),
        ))
    }

    fn allocate(&self, _fleet: &mut Fleet) {
        assert!(!self.0.panic_in_allocate, "scripted panic");
    }
}

const INTERVAL: Duration = Duration::from_mins(1);

fn timing() -> DatasetOptions {
    DatasetOptions {
        interval: INTERVAL,
        deadline: Duration::from_secs(30),
        time_to_live: Duration::from_secs(200),
    }
}

struct Bench {
    script: Arc<Script>,
    clock: ManualClock,
    accounting: Accounting,
    polling: Polling,
}

impl Bench {
    fn start(script: Arc<Script>) -> Self {
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let accounting = Accounting::detached().unwrap();
        let options = Options {
            datasets: BTreeMap::from([(Dataset::Inventory, timing())]),
            discovery_interval: Duration::from_mins(10),
            ..Options::default()
        };
        let collectors: Vec<Arc<dyn Collector>> = vec![Arc::new(Scripted(Arc::clone(&script)))];
        let scheduler = Scheduler::new(collectors, options, Clock::Manual(clock.clone()), accounting.clone());
        Self {
            script,
            clock,
            accounting,
            polling: scheduler.start(),
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.polling.snapshots().borrow().clone()
    }

    /// Moves the clock in small steps until the newest snapshot fits.
    async fn until(&self, what: &str, fits: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        for _ in 0..4000 {
            let snapshot = self.snapshot();
            if fits(&snapshot) {
                return snapshot;
            }
            self.clock.advance(Duration::from_millis(500));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("never: {what}; last: {:#?}", self.snapshot());
    }
}

fn ids(snapshot: &Snapshot, region: &str) -> Vec<String> {
    snapshot
        .instances
        .iter()
        .filter(|i| &*i.region == region)
        .map(|i| i.id.to_string())
        .collect()
}

fn task<'a>(snapshot: &'a Snapshot, region: &str) -> &'a TaskStatus {
    snapshot.tasks.iter().find(|t| &*t.region == region).expect("task")
}

fn errors(snapshot: &Snapshot, region: &str, reason: Reason) -> u64 {
    snapshot
        .tasks
        .iter()
        .filter(|t| &*t.region == region)
        .filter_map(|t| t.errors.get(&reason))
        .sum()
}

// P01
#[tokio::test(flavor = "multi_thread")]
async fn throttled_three_times_then_the_data_appear_and_three_errors_are_counted() {
    let script = Script::regions(&["r1"]);
    let throttled = || Answer::Fail(CollectError::new(Reason::Throttled, "slow down"));
    script.answer(
        "r1",
        vec![throttled(), throttled(), throttled(), Answer::Ids(vec!["i-1", "i-2"])],
    );
    let bench = Bench::start(script);
    let snapshot = bench.until("data", |s| !s.instances.is_empty()).await;
    assert_eq!(ids(&snapshot, "r1"), ["i-1", "i-2"]);
    let snapshot = bench.until("up", |s| task(s, "r1").up == Some(true)).await;
    assert_eq!(errors(&snapshot, "r1", Reason::Throttled), 3);
    assert_eq!(bench.accounting.requests_made(Provider::Aws, LIST, "throttled"), 3);
    assert_eq!(bench.accounting.requests_made(Provider::Aws, LIST, "ok"), 1);
}

// P46, P47
#[tokio::test(flavor = "multi_thread")]
async fn one_hanging_region_is_down_and_the_others_stay_fresh() {
    let script = Script::regions(&["r1", "r2", "r3"]);
    script.answer("r2", vec![Answer::Hang]);
    let bench = Bench::start(script);
    let snapshot = bench
        .until("r2 down", |s| s.tasks.iter().any(|t| t.up == Some(false)))
        .await;
    assert_eq!(task(&snapshot, "r2").up, Some(false));
    assert!(errors(&snapshot, "r2", Reason::Timeout) >= 1);
    for region in ["r1", "r3"] {
        assert_eq!(task(&snapshot, region).up, Some(true), "{region}");
        assert_eq!(ids(&snapshot, region), ["i-1"], "{region}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_an_error_of_its_task_alone_and_is_survived() {
    let script = Script::regions(&["r1", "r2"]);
    script.answer("r1", vec![Answer::Panic, Answer::Ids(vec!["i-9"])]);
    let bench = Bench::start(script);
    let snapshot = bench
        .until("both ran", |s| {
            s.tasks.len() == 2 && s.tasks.iter().all(|t| t.up.is_some())
        })
        .await;
    assert_eq!(errors(&snapshot, "r1", Reason::Other), 1);
    assert_eq!(task(&snapshot, "r2").up, Some(true));
    let snapshot = bench.until("recovered", |s| task(s, "r1").up == Some(true)).await;
    assert_eq!(ids(&snapshot, "r1"), ["i-9"]);
    assert!(task(&snapshot, "r1").last_error.is_none());
}

// P19
#[tokio::test(flavor = "multi_thread")]
async fn the_last_good_answer_stays_until_its_time_to_live_and_then_leaves() {
    let script = Script::regions(&["r1"]);
    let denied = CollectError::new(Reason::Permission, "no");
    script.answer("r1", vec![Answer::Ids(vec!["i-1"]), Answer::Fail(denied)]);
    let bench = Bench::start(script);
    bench.until("data", |s| !s.instances.is_empty()).await;
    let snapshot = bench.until("down", |s| task(s, "r1").up == Some(false)).await;
    let success = task(&snapshot, "r1").last_success.expect("succeeded once");
    assert_eq!(ids(&snapshot, "r1"), ["i-1"], "kept although the poll failed");
    let snapshot = bench.until("expired", |s| task(s, "r1").expired).await;
    assert_eq!(ids(&snapshot, "r1"), Vec::<String>::new());
    assert_eq!(
        task(&snapshot, "r1").last_success,
        Some(success),
        "says how old the last data were"
    );
    let age = snapshot.at.duration_since(success);
    assert!(age.as_secs() >= 199, "left after {age:?}, too early");
}

// P16
#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_the_cloud_shows_within_two_intervals() {
    let script = Script::regions(&["r1"]);
    let bench = Bench::start(script);
    let before = bench.until("first", |s| ids(s, "r1") == ["i-1"]).await;
    bench.script.answer("r1", vec![Answer::Ids(vec!["i-1", "i-2"])]);
    let after = bench.until("change", |s| ids(s, "r1") == ["i-1", "i-2"]).await;
    assert!(after.at.duration_since(before.at).as_secs() <= 120);
    bench.script.answer("r1", vec![Answer::Ids(vec!["i-2"])]);
    bench
        .until("a complete listing without it removes it", |s| ids(s, "r1") == ["i-2"])
        .await;
}

// P21
#[tokio::test(flavor = "multi_thread")]
async fn discovery_that_fails_at_start_is_retried_until_it_works() {
    let script = Script::regions(&["r1"]);
    let failure = CollectError::new(Reason::Credentials, "no credentials");
    *script.discovery_failure.lock().unwrap() = Some((Covers::Everything, failure));
    let bench = Bench::start(script);
    let snapshot = bench
        .until("shown as down", |s| s.tasks.iter().any(|t| t.up == Some(false)))
        .await;
    assert_eq!(&*task(&snapshot, "global").account, "111");
    assert!(errors(&snapshot, "global", Reason::Credentials) >= 1);
    *bench.script.discovery_failure.lock().unwrap() = None;
    let snapshot = bench.until("recovered", |s| ids(s, "r1") == ["i-1"]).await;
    assert!(
        snapshot
            .tasks
            .iter()
            .filter(|t| &*t.region == "global")
            .all(|t| t.up.is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_leaves_only_when_a_complete_discovery_no_longer_has_it() {
    let script = Script::regions(&["r1", "r2"]);
    let bench = Bench::start(script);
    bench.until("both", |s| s.instances.len() == 2).await;
    *bench.script.discovery_failure.lock().unwrap() =
        Some((Covers::Account, CollectError::new(Reason::Throttled, "slow down")));
    bench
        .until("discovery fails", |s| errors(s, "global", Reason::Throttled) >= 2)
        .await;
    assert_eq!(
        bench.snapshot().instances.len(),
        2,
        "a failed discovery removes nothing"
    );
    *bench.script.regions.lock().unwrap() = vec!["r1"];
    *bench.script.discovery_failure.lock().unwrap() = None;
    let snapshot = bench.until("gone", |s| s.instances.len() == 1).await;
    assert!(
        snapshot.tasks.iter().all(|t| &*t.region != "r2"),
        "its task series end with it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_allocation_leaves_the_instances_as_their_cloud_states_them() {
    let script = Script {
        panic_in_allocate: true,
        ..Script::default()
    };
    *script.regions.lock().unwrap() = vec!["r1"];
    script.answer("r1", vec![Answer::Ids(vec!["i-1"])]);
    let bench = Bench::start(Arc::new(script));
    let snapshot = bench.until("data", |s| !s.instances.is_empty()).await;
    assert_eq!(snapshot.instances[0].billing.mode, BillingMode::OnDemand);
}

// P50: unchanged records are shared between generations, not copied.
#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_instance_is_the_same_allocation_in_the_next_generation() {
    let script = Script::regions(&["r1"]);
    let bench = Bench::start(script);
    let first = bench.until("first", |s| !s.instances.is_empty()).await;
    let polled = bench.script.calls.load(Ordering::SeqCst);
    let later = bench
        .until("polled again", |s| {
            s.generation > first.generation && bench.script.calls.load(Ordering::SeqCst) >= polled + 2
        })
        .await;
    assert!(Arc::ptr_eq(&first.instances[0], &later.instances[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_honour_the_clouds_hint_and_never_outlive_the_deadline() {
    let script = Script::regions(&["r1"]);
    let hint = CollectError::new(Reason::Throttled, "slow down").retry_after(Duration::from_hours(1));
    script.answer("r1", vec![Answer::Fail(hint), Answer::Ids(vec!["i-1"])]);
    let bench = Bench::start(script);
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let snapshot = bench
        .until("first run over", |s| s.tasks.iter().any(|t| t.up == Some(false)))
        .await;
    assert!(
        snapshot.at.duration_since(start).as_secs() < 30,
        "no use waiting for a hint beyond the deadline"
    );
    assert_eq!(errors(&snapshot, "r1", Reason::Throttled), 1);
    assert_eq!(
        errors(&snapshot, "r1", Reason::Timeout),
        0,
        "the reason is not hidden by a timeout"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_errors_are_not_retried_within_a_run() {
    let script = Script::regions(&["r1"]);
    script.answer("r1", vec![Answer::Fail(CollectError::new(Reason::Permission, "no"))]);
    let bench = Bench::start(script);
    bench
        .until("down", |s| s.tasks.iter().any(|t| t.up == Some(false)))
        .await;
    assert_eq!(bench.script.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_round_ends_when_everything_has_run_once_even_if_it_failed() {
    let script = Script::regions(&["r1", "r2"]);
    script.answer("r2", vec![Answer::Fail(CollectError::new(Reason::Permission, "no"))]);
    let bench = Bench::start(script);
    let snapshot = tokio::time::timeout(Duration::from_secs(20), bench.polling.first_round())
        .await
        .expect("ends");
    assert_eq!(ids(&snapshot, "r1"), ["i-1"]);
    assert_eq!(task(&snapshot, "r2").up, Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_drops_calls_in_flight() {
    let script = Script::regions(&["r1"]);
    script.answer("r1", vec![Answer::Hang]);
    let bench = Bench::start(script);
    while bench.script.calls.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::timeout(Duration::from_secs(10), bench.polling.stop())
        .await
        .expect("stops although a call hangs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_scheduler_shows_the_last_good_answer_while_its_own_polls_fail() {
    let script = Script::regions(&["r1", "r2"]);
    let bench = Bench::start(script);
    bench.until("both", |s| s.instances.len() == 2).await;
    let denied = CollectError::new(Reason::Permission, "no");
    bench.script.answer("r2", vec![Answer::Fail(denied)]);
    let collectors: Vec<Arc<dyn Collector>> = vec![Arc::new(Scripted(Arc::clone(&bench.script)))];
    let options = Options {
        datasets: BTreeMap::from([(Dataset::Inventory, timing())]),
        ..Options::default()
    };
    let clock = Clock::Manual(bench.clock.clone());
    let second = Scheduler::new(collectors, options, clock, Accounting::detached().unwrap())
        .resume(&bench.polling)
        .start();
    let snapshot = tokio::time::timeout(Duration::from_secs(20), second.first_round())
        .await
        .expect("ends");
    assert_eq!(task(&snapshot, "r2").up, Some(false));
    assert_eq!(ids(&snapshot, "r2"), ["i-1"], "kept over the change of configuration");
    assert!(task(&snapshot, "r2").last_success.is_some());
}
