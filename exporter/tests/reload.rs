//! The wired program: polling, page, reload and stop, with scripted
//! collectors.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a test may fail, and its numbers are exact"
)]

mod support;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use futures::FutureExt as _;
use gpuwatch::serve::{self, Load, Plan, Refused, Running};
use gpuwatch_collector_core::{Clock, Collector, Dataset, DatasetOptions, ManualClock, Options, Reason};
use gpuwatch_inventory::Provider;
use support::{collector::Scripted, eventually, exposition, fleet};

type Section = Arc<Scripted>;

/// A "file" that a test edits: sections, or problems.
#[derive(Clone)]
struct File {
    content: Arc<Mutex<Result<Vec<Section>, Refused>>>,
    read: Arc<AtomicUsize>,
}

impl File {
    fn new(sections: Vec<Section>) -> Self {
        Self {
            content: Arc::new(Mutex::new(Ok(sections))),
            read: Arc::default(),
        }
    }

    fn write(&self, content: Result<Vec<Section>, Refused>) {
        *self.content.lock().expect("not poisoned") = content;
    }

    fn loader(&self) -> Load {
        let file = self.clone();
        Arc::new(move || {
            file.read.fetch_add(1, Ordering::Relaxed);
            let content = file.content.lock().expect("not poisoned").clone();
            let plan = content.map(|sections| Plan {
                listen: "127.0.0.1:0".to_owned(),
                collectors: sections
                    .into_iter()
                    .map(|section| section as Arc<dyn Collector>)
                    .collect(),
                telemetry: Vec::new(),
                options: Options {
                    datasets: [(Dataset::Inventory, DatasetOptions::every(Duration::from_mins(1)))].into(),
                    ..Options::default()
                },
            });
            async move { plan }.boxed()
        })
    }
}

fn section(account: &str, instances: usize) -> Section {
    let of = |index: usize| fleet::instance(Provider::Aws, account, "us-east-1", &format!("i-{account}-{index}"));
    Scripted::new(account, (0..instances).map(of).collect())
}

async fn text(running: &Running, path: &str) -> (u16, String) {
    let response = reqwest::get(format!("http://{}{path}", running.address()))
        .await
        .expect("answered");
    (response.status().as_u16(), response.text().await.expect("text"))
}

async fn reload(running: &Running) -> (u16, String) {
    let url = format!("http://{}/-/reload", running.address());
    let response = reqwest::Client::new().post(url).send().await.expect("answered");
    (response.status().as_u16(), response.text().await.expect("text"))
}

async fn page(running: &Running) -> exposition::Families {
    exposition::parse(&text(running, "/metrics").await.1)
}

/// Accounts on the page with their number of instances.
async fn accounts(running: &Running) -> Vec<(String, usize)> {
    let families = page(running).await;
    let Some(info) = families.get("gpuwatch_instance_info") else {
        return Vec::new();
    };
    exposition::label_values(info, "account")
        .into_iter()
        .map(|account| {
            let count = info
                .samples
                .keys()
                .filter(|(_, labels)| labels["account"] == account)
                .count();
            (account, count)
        })
        .collect()
}

async fn start(file: &File, clock: Clock) -> Running {
    serve::start(file.loader(), None, clock).await.expect("started")
}

fn expect(account: &str, count: usize) -> Vec<(String, usize)> {
    vec![(account.to_owned(), count)]
}

#[tokio::test]
async fn a_valid_new_configuration_is_polled_and_the_fleet_is_never_empty_in_between() {
    let file = File::new(vec![section("old", 3)]);
    let running = start(&file, Clock::System).await;
    eventually("the first fleet", || async {
        (accounts(&running).await == expect("old", 3)).then_some(())
    })
    .await;
    assert_eq!(text(&running, "/-/ready").await.0, 200);

    file.write(Ok(vec![section("new", 2)]));
    assert_eq!(reload(&running).await, (200, "configuration reloaded\n".to_owned()));
    eventually("the new fleet", || async {
        let shown = accounts(&running).await;
        assert!(shown == expect("old", 3) || shown == expect("new", 2), "{shown:?}");
        assert_eq!(text(&running, "/-/ready").await.0, 200);
        (shown == expect("new", 2)).then_some(())
    })
    .await;
    assert_eq!(
        page(&running).await["gpuwatch_config_last_reload_successful"]
            .samples
            .values()
            .sum::<f64>(),
        1.0
    );
    running.stop().await;
}

#[tokio::test]
async fn an_invalid_new_configuration_is_refused_and_the_old_one_keeps_polling() {
    let old = section("old", 1);
    let file = File::new(vec![Arc::clone(&old)]);
    let manual = ManualClock::new(fleet::at(fleet::NOON));
    let running = start(&file, Clock::Manual(manual.clone())).await;
    eventually("the first fleet", || async {
        (accounts(&running).await == expect("old", 1)).then_some(())
    })
    .await;

    let problems = vec![
        "gpuwatch.yaml:3:5: no such key".to_owned(),
        "gpuwatch.yaml:9:1: bad duration".to_owned(),
    ];
    file.write(Err(Refused::new(problems)));
    let (status, answer) = reload(&running).await;
    assert_eq!(status, 500);
    assert!(
        answer.contains("3:5: no such key\n") && answer.contains("9:1: bad duration"),
        "{answer}"
    );

    // The old one still polls: what its cloud says next is shown.
    old.answer(Ok(vec![fleet::instance(Provider::Aws, "old", "us-east-1", "i-next")]));
    manual.advance(Duration::from_mins(1));
    eventually("the old configuration's next fleet, and the gauge", || async {
        let families = page(&running).await;
        let ids = exposition::label_values(&families["gpuwatch_instance_info"], "instance_id");
        let gauge: f64 = families["gpuwatch_config_last_reload_successful"]
            .samples
            .values()
            .sum();
        (ids.contains("i-next") && gauge == 0.0).then_some(())
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn accounting_goes_on_over_reloads() {
    let file = File::new(vec![section("one", 1)]);
    let running = start(&file, Clock::System).await;
    eventually("the first fleet", || async {
        (accounts(&running).await == expect("one", 1)).then_some(())
    })
    .await;
    file.write(Ok(vec![section("two", 1)]));
    reload(&running).await;
    eventually("two calls", || async {
        let families = page(&running).await;
        let calls: f64 = families.get("gpuwatch_api_requests_total")?.samples.values().sum();
        (calls >= 2.0).then_some(())
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_handle_reloads_as_a_signal_does() {
    let file = File::new(Vec::new());
    let running = start(&file, Clock::System).await;
    assert_eq!(text(&running, "/-/ready").await.0, 200, "nothing to poll");
    running.reloader().reload().await.expect("accepted");
    assert_eq!(file.read.load(Ordering::Relaxed), 2);
    running.stop().await;
}

// P18, P19
#[tokio::test]
async fn a_failing_cloud_is_shown_and_its_series_leave_after_their_time_to_live() {
    let cloud = section("prod", 2);
    let file = File::new(vec![Arc::clone(&cloud)]);
    let manual = ManualClock::new(fleet::at(fleet::NOON));
    let running = start(&file, Clock::Manual(manual.clone())).await;
    eventually("the fleet", || async {
        (accounts(&running).await == expect("prod", 2)).then_some(())
    })
    .await;

    cloud.answer(Err(Reason::Network));
    manual.advance(Duration::from_mins(1));
    eventually("the failure, counted, with the last good fleet", || async {
        let families = page(&running).await;
        let up: f64 = families["gpuwatch_task_up"].samples.values().sum();
        let errors = families["gpuwatch_task_errors_total"].samples.iter();
        let network: f64 = errors
            .filter(|((_, labels), _)| labels["reason"] == "network")
            .map(|(_, count)| count)
            .sum();
        assert_eq!(families["gpuwatch_instance_info"].samples.len(), 2);
        (up == 0.0 && network >= 1.0).then_some(())
    })
    .await;
    assert_eq!(text(&running, "/-/ready").await.0, 200);

    manual.advance(Duration::from_mins(15));
    eventually("the series are gone and it is not ready", || async {
        let gone = accounts(&running).await.is_empty();
        (gone && text(&running, "/-/ready").await.0 == 503).then_some(())
    })
    .await;
    assert_eq!(text(&running, "/-/healthy").await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_refused_configuration_at_start_is_an_error() {
    let file = File::new(Vec::new());
    file.write(Err(Refused::new(vec!["broken".to_owned()])));
    let error = serve::start(file.loader(), None, Clock::System)
        .await
        .expect_err("refused");
    assert!(matches!(error, serve::StartError::Configuration(_)), "{error}");
}
