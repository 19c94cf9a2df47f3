//! The reader against simulated exporters of every kind, through the query API
//! that another test holds to a real Prometheus.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may fail"
)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_core::Reason;
use gpuwatch_collector_rest::SecretSource;
use gpuwatch_collector_telemetry::{Authentication, Reader, Round, TelemetryOptions, join::Refusal};
use gpuwatch_fakecloud_core::workload::{Observer, Shape, Workload};
use gpuwatch_fakecloud_telemetry::{Exporter, Host, Options, Storage, TelemetryServer, Tie, expected};
use gpuwatch_inventory::{Accelerators, GpuCount, Instance, InstanceUsage, Provider};

const EXPORTERS: [Exporter; 7] = [
    Exporter::Dcgm,
    Exporter::DcgmNew,
    Exporter::NvidiaSmi,
    Exporter::Amd,
    Exporter::Ascend,
    Exporter::Gaudi,
    Exporter::Neuron,
];

/// A machine of every exporter, shape and tie, on five clouds.
fn hosts() -> Vec<Host> {
    let mut hosts = Vec::new();
    let ties = [Tie::Node, Tie::Address, Tie::Labels];
    for exporter in EXPORTERS {
        for shape in Shape::ALL {
            // Slices and sharing are NVIDIA's.
            let is_nvidia = matches!(exporter, Exporter::Dcgm | Exporter::DcgmNew);
            if !is_nvidia && matches!(shape, Shape::MigShared | Shape::TimeSliced) {
                continue;
            }
            let number = hosts.len();
            let provider = Provider::ALL[number % 5];
            let id = match provider {
                Provider::Azure => {
                    format!("/subscriptions/s/resourcegroups/g/providers/microsoft.compute/virtualmachines/vm{number}")
                }
                Provider::Gcp => format!("{}", 1000 + number),
                _ => format!("i-{number:04}"),
            };
            let workload = Workload::new(shape, Observer::Exporter, number as u64);
            let mut host = Host::new(provider.as_str(), &id, exporter, ties[number % 3], 4, workload);
            "account".clone_into(&mut host.account);
            "region-1".clone_into(&mut host.region);
            "region-1a".clone_into(&mut host.zone);
            host.name = format!("vm{number}");
            host.address = format!("10.0.{}.{}", number / 200, number % 200 + 1);
            "type".clone_into(&mut host.instance_type);
            hosts.push(host);
        }
    }
    hosts
}

fn instance(host: &Host) -> Arc<Instance> {
    let provider = host.provider.parse().unwrap();
    Arc::new(Instance {
        name: host.name.as_str().into(),
        zone: host.zone.as_str().into(),
        accelerators: Accelerators {
            count: Some(GpuCount::from(host.cards)),
            ..Accelerators::default()
        },
        private_address: host.address.as_str().into(),
        ..Instance::bare(provider, &host.account, &host.region, &host.id)
    })
}

async fn serve(options: Options) -> TelemetryServer {
    TelemetryServer::start(Storage::new(hosts()), options).await.unwrap()
}

fn options(server: &TelemetryServer) -> TelemetryOptions {
    TelemetryOptions::new("main", &server.url())
}

async fn read(options: TelemetryOptions, instances: &[Arc<Instance>]) -> Round {
    Reader::new(options).unwrap().round(instances).await
}

fn by_id(round: &Round) -> BTreeMap<&str, &InstanceUsage> {
    round.usage.iter().map(|usage| (&*usage.id, usage)).collect()
}

/// Every card of every machine shows what it does.
fn assert_true(round: &Round) {
    let usage = by_id(round);
    for host in hosts() {
        let found = usage
            .get(host.id.as_str())
            .unwrap_or_else(|| panic!("{} {:?}", host.id, host.workload.shape));
        if host.workload.shape == Shape::DeadAgent {
            assert!(found.gpus.is_empty(), "nothing for two hours: {found:?}");
            continue;
        }
        let all = expected(&host, found.gpus[0].at);
        assert_eq!(found.gpus.len(), all.len(), "{} {:?}", host.id, host.exporter);
        for (gpu, expected) in found.gpus.iter().zip(all) {
            let what = format!(
                "{} {:?} {:?} {gpu:?} {expected:?}",
                host.id, host.exporter, host.workload.shape
            );
            let (signal, ratio) = gpu.activity.strongest().unwrap_or_else(|| panic!("{what}"));
            assert_eq!(
                (&*gpu.gpu, signal.as_str()),
                (expected.gpu.as_str(), expected.signal),
                "{what}"
            );
            assert!((ratio - expected.ratio).abs() < 1e-9, "{what}");
            if let Some(memory) = expected.memory {
                assert!(
                    gpu.memory_used.is_some_and(|used| (used - memory).abs() < 1e-3),
                    "{what}"
                );
            }
        }
    }
}

// P36, P56
#[tokio::test]
async fn every_exporter_says_what_its_machine_does() {
    let server = serve(Options::default()).await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let round = read(options(&server), &instances).await;
    assert!(round.failures.is_empty(), "{:?}", round.failures);
    assert_eq!((round.bad_values, &round.unjoined), (0, &BTreeMap::new()));
    assert_true(&round);
    assert_eq!(
        round.families,
        ["dcgm", "nvidia_smi", "amd", "ascend", "gaudi", "neuron"]
    );
    for method in ["provider_id", "instance_id", "address"] {
        assert!(round.joined.contains_key(method), "{:?}", round.joined);
    }
    // Weak signals.
    let usage = by_id(&round);
    for host in hosts() {
        let found = usage[host.id.as_str()].host;
        // The value of the last scrape, up to half a minute before the answer.
        let at = found.at.unwrap();
        let possible = [at, at - Duration::from_secs(30)].map(|at| host.workload.host(at).memory_used);
        let is_close = |truth: &f64| found.memory_used.is_some_and(|used| (used - truth).abs() < 1e-6);
        assert!(possible.iter().any(is_close), "{} {found:?} {possible:?}", host.id);
        assert!(
            found.cpu.is_some() && found.network_bytes_per_second.is_some(),
            "{}",
            host.id
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_big_answers_is_asked_in_parts_and_remembered() {
    let server = serve(Options {
        // Enough to count the series, too few for the samples of one metric.
        max_samples: 1500,
        ..Options::default()
    })
    .await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let mut reader = Reader::new(options(&server)).unwrap();
    for _ in 0..2 {
        let round = reader.round(&instances).await;
        // node_exporter's rates cannot be divided: weak signals may be missing.
        let usage = by_id(&round);
        for host in hosts()
            .iter()
            .filter(|host| matches!(host.exporter, Exporter::Dcgm | Exporter::DcgmNew))
        {
            if host.workload.shape == Shape::DeadAgent {
                continue;
            }
            let found = usage.get(host.id.as_str());
            let found = found.unwrap_or_else(|| {
                panic!(
                    "{} {:?} {:?} {:?}",
                    host.id, round.failures, round.joined, round.unjoined
                )
            });
            for (gpu, expected) in found.gpus.iter().zip(expected(host, found.gpus[0].at)) {
                let (_, ratio) = gpu.activity.strongest().unwrap();
                assert!((ratio - expected.ratio).abs() < 1e-9, "{} {expected:?}", host.id);
            }
        }
    }
}

#[tokio::test]
async fn what_belongs_to_nobody_or_to_two_is_counted_and_not_shown() {
    let server = serve(Options::default()).await;
    let hosts = hosts();
    // Of the machines that are joined by address, one is unknown and another's
    // address is held by a second one.
    let by_address: Vec<&Host> = hosts
        .iter()
        .filter(|host| host.tie == Tie::Address && host.exporter == Exporter::Dcgm)
        .collect();
    let (unknown, shared) = (by_address[0], by_address[1]);
    let mut instances: Vec<_> = hosts
        .iter()
        .filter(|host| host.id != unknown.id)
        .map(instance)
        .collect();
    let mut second = (*instance(shared)).clone();
    second.id = "i-second".into();
    instances.push(Arc::new(second));
    let round = read(options(&server), &instances).await;
    assert_eq!(
        round.unjoined.get(&Refusal::NoInstance),
        Some(&4),
        "{:?}",
        round.examples
    );
    assert_eq!(
        round.unjoined.get(&Refusal::Ambiguous),
        Some(&4),
        "{:?}",
        round.examples
    );
    let usage = by_id(&round);
    for id in [unknown.id.as_str(), &shared.id, "i-second"] {
        assert!(usage.get(id).is_none_or(|usage| usage.gpus.is_empty()), "{id}");
    }
}

#[tokio::test]
async fn more_cards_than_an_instance_has_are_not_its() {
    let server = serve(Options::default()).await;
    let mut instances: Vec<_> = hosts().iter().map(instance).collect();
    let smaller = Arc::make_mut(&mut instances[0]);
    smaller.accelerators.count = Some(GpuCount::from(2));
    let id = smaller.id.clone();
    let round = read(options(&server), &instances).await;
    assert_eq!(round.unjoined.get(&Refusal::TooManyCards), Some(&4));
    assert!(by_id(&round).get(&*id).is_none_or(|usage| usage.gpus.is_empty()));
}

#[tokio::test]
async fn warnings_make_a_round_incomplete_and_keep_what_it_found() {
    let server = serve(Options {
        warning: Some("a store did not answer".to_owned()),
        ..Options::default()
    })
    .await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let round = read(options(&server), &instances).await;
    assert_eq!(round.failures.len(), 1, "told once: {:?}", round.failures);
    assert!(round.failures[0].message.contains("a store did not answer"));
    assert_true(&round);
}

#[tokio::test]
async fn a_token_is_sent_and_a_missing_one_is_a_matter_of_credentials() {
    let server = serve(Options {
        authorization: Some("Bearer secret-token".to_owned()),
        ..Options::default()
    })
    .await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let with = TelemetryOptions {
        authentication: Authentication::Bearer(SecretSource::value("secret-token")),
        ..options(&server)
    };
    assert!(read(with, &instances).await.failures.is_empty());
    let without = read(options(&server), &instances).await;
    assert_eq!(without.failures[0].reason, Reason::Credentials);
    assert!(without.usage.is_empty());
}

#[tokio::test]
async fn matchers_narrow_what_is_read() {
    let server = serve(Options::default()).await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let narrow = TelemetryOptions {
        matchers: vec!["job=\"npu-exporter\"".to_owned()],
        ..options(&server)
    };
    let round = read(narrow, &instances).await;
    assert_eq!(round.families, ["ascend"]);
}

// P16
#[tokio::test]
async fn a_second_round_counts_no_reading_twice() {
    let server = serve(Options::default()).await;
    let instances: Vec<_> = hosts().iter().map(instance).collect();
    let mut reader = Reader::new(options(&server)).unwrap();
    let first = reader.round(&instances).await;
    let newest = |round: &Round| round.folded.iter().map(|folded| folded.bucket.last).max().unwrap();
    let upto = newest(&first);
    let samples: u32 = first.folded.iter().map(|folded| folded.bucket.samples).sum();
    assert!(samples > 0);
    let second = reader.round(&instances).await;
    for folded in &second.folded {
        // Only what was scraped between the two.
        assert!(
            folded.bucket.last > upto - Duration::from_secs(30) && folded.bucket.samples <= 2,
            "{folded:?}"
        );
    }
}

#[tokio::test]
async fn nobody_answers_at_that_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let round = read(TelemetryOptions::new("main", &format!("http://{address}")), &[]).await;
    assert_eq!(round.failures[0].reason, Reason::Network);
}
