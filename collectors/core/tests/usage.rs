//! Telemetry and the clouds' own metrics through the scheduler: who is asked
//! about what, and what a snapshot shows.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use gpuwatch_collector_core::{
    Account, Accounting, Clock, CollectError, Collected, Collector, Context, Dataset, DatasetOptions, Discovery,
    ManualClock, Options, Part, Polling, Scheduler, Scope, Snapshot, Target, Telemetry,
};
use gpuwatch_inventory::{Activity, GpuUsage, HostUsage, Instance, InstanceUsage, Provider, Signal, State};
use jiff::Timestamp;
use tokio::sync::watch;

/// Lists three machines, one of them stopped, and measures whatever it is
/// asked about.
#[derive(Default)]
struct Cloud {
    asked: Mutex<Vec<Vec<String>>>,
}

struct Section(Arc<Cloud>);

fn scope() -> Scope {
    Scope {
        provider: Provider::Aws,
        account: Account {
            id: "111".into(),
            name: "prod".into(),
        },
        region: "r".into(),
    }
}

fn usage(id: &str, at: Timestamp, signal: Signal, ratio: f64) -> InstanceUsage {
    InstanceUsage {
        provider: Provider::Aws,
        account: "111".into(),
        region: "r".into(),
        id: id.into(),
        gpus: vec![GpuUsage {
            activity: Activity::of(signal, ratio),
            ..GpuUsage::new("0".into(), at)
        }],
        host: HostUsage::default(),
        lag: Duration::ZERO,
    }
}

#[async_trait]
impl Collector for Section {
    fn provider(&self) -> Provider {
        Provider::Aws
    }

    fn name(&self) -> &'static str {
        "prod"
    }

    async fn discover(&self, _: &Context) -> Discovery {
        Discovery {
            targets: vec![Target {
                scope: scope(),
                datasets: vec![Dataset::Usage, Dataset::Inventory],
            }],
            failures: Vec::new(),
        }
    }

    fn parts(&self, _: &Scope, _: Dataset) -> Vec<Part> {
        vec!["all"]
    }

    async fn collect(&self, _: &Scope, dataset: Dataset, _: Part, cx: &Context) -> Result<Collected, CollectError> {
        if dataset == Dataset::Inventory {
            let listed = |id: &str, state| Instance {
                state,
                ..Instance::bare(Provider::Aws, "111", "r", id)
            };
            return Ok(Collected::Instances(vec![
                listed("i-1", State::Running),
                listed("i-2", State::Running),
                listed("i-3", State::Stopped),
            ]));
        }
        let unmeasured = cx.unmeasured();
        let ids: Vec<String> = unmeasured.iter().map(|instance| instance.id.to_string()).collect();
        let measured = ids
            .iter()
            .map(|id| usage(id, cx.now(), Signal::Provider, 0.9))
            .collect();
        self.0.asked.lock().unwrap().push(ids);
        Ok(Collected::Usage(measured))
    }
}

struct Rig {
    cloud: Arc<Cloud>,
    clock: ManualClock,
    polling: Polling,
}

impl Rig {
    fn start(telemetry: watch::Receiver<Arc<Telemetry>>) -> Self {
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let timing = DatasetOptions::every(Duration::from_mins(5));
        let options = Options {
            datasets: BTreeMap::from([(Dataset::Inventory, timing), (Dataset::Usage, timing)]),
            ..Options::default()
        };
        let cloud = Arc::new(Cloud::default());
        let collectors: Vec<Arc<dyn Collector>> = vec![Arc::new(Section(Arc::clone(&cloud)))];
        let accounting = Accounting::detached().unwrap();
        let scheduler = Scheduler::new(collectors, options, Clock::Manual(clock.clone()), accounting);
        Self {
            cloud,
            clock,
            polling: scheduler.with_telemetry(telemetry).start(),
        }
    }

    async fn until(&self, what: &str, fits: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        for _ in 0..4000 {
            let snapshot = self.polling.snapshots().borrow().clone();
            if fits(&snapshot) {
                return snapshot;
            }
            self.clock.advance(Duration::from_millis(500));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("never: {what}");
    }
}

fn shown(snapshot: &Snapshot) -> Vec<(String, Signal)> {
    let usage = snapshot.usage.iter();
    usage
        .map(|usage| (usage.id.to_string(), usage.gpus[0].activity.strongest().unwrap().0))
        .collect()
}

fn both() -> Vec<(String, Signal)> {
    vec![
        ("i-1".to_owned(), Signal::SmActive),
        ("i-2".to_owned(), Signal::Provider),
    ]
}

// P04
#[tokio::test]
async fn a_cloud_is_asked_only_about_what_nobody_measures() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let (sender, receiver) = watch::channel(Arc::new(Telemetry::default()));
    let rig = Rig::start(receiver);
    rig.until("the fleet", |snapshot| snapshot.instances.len() == 3).await;
    assert!(
        rig.cloud.asked.lock().unwrap().is_empty(),
        "telemetry has not been read"
    );
    // Of a machine that is not in the inventory, and of a stopped one, nothing
    // is shown.
    let telemetry = ["i-1", "i-3", "i-9"].map(|id| Arc::new(usage(id, now, Signal::SmActive, 0.2)));
    sender.send_replace(Arc::new(Telemetry {
        usage: telemetry.to_vec(),
        servers: Vec::new(),
        settled: true,
    }));
    let snapshot = rig.until("both sources", |snapshot| snapshot.usage.len() == 2).await;
    assert_eq!(shown(&snapshot), both());
    assert_eq!(rig.cloud.asked.lock().unwrap()[0], ["i-2"]);
    // Telemetry falls silent: the cloud takes over.
    let snapshot = rig
        .until("the cloud alone", |snapshot| {
            shown(snapshot)
                .iter()
                .filter(|(_, signal)| *signal == Signal::Provider)
                .count()
                == 2
        })
        .await;
    assert_eq!(snapshot.usage.len(), 2);
    assert_eq!(rig.cloud.asked.lock().unwrap().last().unwrap(), &["i-1", "i-2"]);
}

#[tokio::test]
async fn without_telemetry_the_cloud_is_asked_as_soon_as_the_fleet_is_known() {
    let (_sender, receiver) = watch::channel(Arc::new(Telemetry::none()));
    let rig = Rig::start(receiver);
    let snapshot = rig.until("readings", |snapshot| !snapshot.usage.is_empty()).await;
    assert_eq!(snapshot.usage.len(), 2);
    assert!(
        snapshot.at < "2026-01-01T00:05:00Z".parse().unwrap(),
        "not an interval later"
    );
}
