//! Made-up fleets of any size, the same for the same arguments.
#![allow(dead_code, reason = "no test uses all of it")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use gpuwatch_collector_core::{CoverageEstimate, Dataset, Reason, SkippedCount, Snapshot, TaskStatus, TelemetryStatus};
use gpuwatch_inventory::{
    Accelerators, Activity, Billing, BillingMode, Commitment, CommitmentKind, CommitmentScope, GpuCount, GpuError,
    GpuUsage, HostUsage, Instance, InstanceUsage, Kind, Provider, Signal, State, Text, Vendor,
};
use jiff::Timestamp;

/// 2026-07-29T08:00:00Z.
pub const NOON: i64 = 1_785_312_000;

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

/// An instance with every fact known.
pub fn instance(provider: Provider, account: &str, region: &str, id: &str) -> Instance {
    Instance {
        provider,
        account: account.into(),
        account_name: "prod".into(),
        region: region.into(),
        id: id.into(),
        name: "trainer".into(),
        zone: format!("{region}a").into(),
        instance_type: "p5.48xlarge".into(),
        kind: Kind::Vm,
        state: State::Running,
        billing: Billing::exact(BillingMode::OnDemand, ""),
        accelerators: Accelerators {
            vendor: Some(Vendor::new("nvidia")),
            model: "H100 80GB SXM".into(),
            architecture: "Hopper".into(),
            count: GpuCount::new(8.0),
            memory_mib: Some(8 * 80 * 1024),
            in_catalog: true,
            slices_per_card: None,
        },
        launched: Some(at(NOON - 86_400)),
        expires: None,
        auto_renew: None,
        stopped: None,
        owner: "search".into(),
        cluster: "blue".into(),
        pool: "".into(),
        platform: "Linux/UNIX".into(),
        tenancy: "default".into(),
        reservation_id: "".into(),
        private_address: "10.0.0.1".into(),
        private_host: "".into(),
        tags: Vec::new(),
    }
}

pub fn commitment(id: &str, kind: CommitmentKind) -> Commitment {
    Commitment {
        provider: Provider::Aws,
        account: "111122223333".into(),
        account_name: "prod".into(),
        region: "us-east-1".into(),
        id: id.into(),
        kind,
        instance_type: "p5.48xlarge".into(),
        scope: CommitmentScope::Region,
        platform: "".into(),
        tenancy: "".into(),
        units: Some(4),
        used_units: Some(3),
        gpus_per_unit: GpuCount::new(8.0),
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: Some(at(NOON + 86_400)),
        detail: "".into(),
    }
}

pub fn task(provider: Provider, account: &str, region: &str, dataset: Dataset) -> TaskStatus {
    TaskStatus {
        provider,
        account: account.into(),
        region: region.into(),
        dataset,
        up: Some(true),
        last_success: Some(at(NOON - 30)),
        last_duration: Some(Duration::from_millis(1250)),
        errors: BTreeMap::new(),
        last_error: None,
        expired: false,
    }
}

/// One of everything, with the awkward cases.
pub fn showcase() -> Snapshot {
    let plain = instance(Provider::Aws, "111122223333", "us-east-1", "i-0aa");
    let fraction = Instance {
        name: "搜索 \"A\\B\"\nline".into(),
        owner: "算法团队".into(),
        instance_type: "g6f.xlarge".into(),
        billing: Billing::exact(BillingMode::Spot, ""),
        accelerators: Accelerators {
            count: GpuCount::new(0.125),
            memory_mib: Some(2861),
            model: "L4".into(),
            architecture: "Ada Lovelace".into(),
            ..plain.accelerators.clone()
        },
        ..instance(Provider::Aws, "111122223333", "us-east-1", "i-0bb")
    };
    let unknown = Instance {
        account_name: "".into(),
        name: "".into(),
        zone: "".into(),
        instance_type: "p9.96xlarge".into(),
        state: State::Unknown,
        billing: Billing::exact(BillingMode::Unknown, "lunar"),
        accelerators: Accelerators::default(),
        launched: None,
        owner: "".into(),
        cluster: "".into(),
        ..instance(Provider::Aws, "111122223333", "us-west-2", "i-0cc")
    };
    let prepaid = Instance {
        state: State::StoppedBilled,
        billing: Billing::exact(BillingMode::Reserved, "subscription"),
        expires: Some(at(NOON + 30 * 86_400)),
        auto_renew: Some(false),
        accelerators: Accelerators {
            count: GpuCount::new(0.041_667),
            memory_mib: None,
            ..plain.accelerators.clone()
        },
        ..instance(Provider::Aliyun, "1000", "cn-hangzhou", "i-bp1")
    };
    let failing = TaskStatus {
        up: Some(false),
        errors: BTreeMap::from([(Reason::Throttled, 3), (Reason::Permission, 1)]),
        last_error: Some("access denied".to_owned()),
        ..task(Provider::Aws, "111122223333", "us-west-2", Dataset::Inventory)
    };
    let fresh = TaskStatus {
        up: None,
        last_success: None,
        last_duration: None,
        ..task(Provider::Aws, "111122223333", "eu-west-1", Dataset::Commitments)
    };
    Snapshot {
        generation: 1,
        at: at(NOON),
        instances: [plain, fraction, unknown, prepaid].map(Arc::new).to_vec(),
        commitments: vec![
            Arc::new(commitment("cr-0aa", CommitmentKind::CapacityReservation)),
            Arc::new(Commitment {
                region: "global".into(),
                instance_type: "".into(),
                units: None,
                used_units: None,
                gpus_per_unit: None,
                expires: None,
                ..commitment("sp-0bb", CommitmentKind::SavingsPlan)
            }),
        ],
        coverage: vec![CoverageEstimate {
            provider: Provider::Aws,
            account: "111122223333".into(),
            ratio: 0.375,
        }],
        tasks: vec![
            fresh,
            task(Provider::Aws, "111122223333", "us-east-1", Dataset::Inventory),
            failing,
            task(Provider::Aliyun, "1000", "cn-hangzhou", Dataset::Inventory),
        ],
        skipped: vec![SkippedCount {
            provider: Provider::Aws,
            account: "111122223333".into(),
            region: "us-east-1".into(),
            reason: "no_id",
            count: 2,
        }],
        usage: vec![Arc::new(usage())],
        telemetry: vec![telemetry()],
    }
}

/// `instances` instances over 20 accounts and 10 regions of five clouds, all
/// of whose owners and accelerator counts tell the generation.
pub fn of_generation(generation: u64, instances: usize) -> Snapshot {
    let texts = |prefix: &str, n: usize| -> Vec<Text> { (0..n).map(|i| format!("{prefix}{i:02}").into()).collect() };
    let (accounts, regions, types) = (
        texts("1111222233", 20),
        texts("us-region-", 10),
        texts("p5.48xlarge-", 50),
    );
    let owner: Text = format!("generation-{generation}").into();
    let mut snapshot = Snapshot {
        generation,
        ..Snapshot::empty(at(NOON))
    };
    let model = instance(Provider::Aws, "", "", "");
    for index in 0..instances {
        let provider = Provider::ALL[index % Provider::ALL.len()];
        snapshot.instances.push(Arc::new(Instance {
            provider,
            account: Text::clone(&accounts[index / 7 % accounts.len()]),
            region: Text::clone(&regions[index / 3 % regions.len()]),
            id: format!("i-{index:017x}").into(),
            name: format!("trainer-{index}").into(),
            instance_type: Text::clone(&types[index % types.len()]),
            owner: Text::clone(&owner),
            accelerators: Accelerators {
                count: GpuCount::new(f64::from(u32::try_from(generation).expect("small"))),
                ..model.accelerators.clone()
            },
            ..model.clone()
        }));
    }
    snapshot.instances.sort_by(|a, b| a.key().cmp(&b.key()));
    let scopes: BTreeSet<_> = snapshot
        .instances
        .iter()
        .map(|i| (i.provider, Text::clone(&i.account), Text::clone(&i.region)))
        .collect();
    snapshot.tasks = scopes
        .iter()
        .map(|(provider, account, region)| task(*provider, account, region, Dataset::Inventory))
        .collect();
    snapshot
}

/// Two cards and their machine, in full and with hardly anything.
fn usage() -> InstanceUsage {
    let mut activity = Activity::of(Signal::SmActive, 0.25);
    activity.set(Signal::GpuUtil, 1.0);
    let full = GpuUsage {
        activity,
        memory_used: Some(0.5),
        tensor_active: Some(0.125),
        dram_active: Some(0.375),
        video_active: Some(0.0),
        power_watts: Some(312.5),
        errors: vec![
            GpuError {
                code: 31,
                count: 7,
                recent: 0,
                last: at(NOON - 7200),
            },
            GpuError {
                code: 79,
                count: 2,
                recent: 1,
                last: at(NOON - 60),
            },
        ],
        ..GpuUsage::new("0".into(), at(NOON - 30))
    };
    InstanceUsage {
        provider: Provider::Aws,
        account: "111122223333".into(),
        region: "us-east-1".into(),
        id: "i-0aa".into(),
        gpus: vec![full, GpuUsage::new("1".into(), at(NOON - 60))],
        host: HostUsage {
            at: Some(at(NOON - 30)),
            cpu: Some(0.75),
            memory_used: Some(0.25),
            network_bytes_per_second: Some(1e6),
        },
        lag: Duration::ZERO,
    }
}

fn telemetry() -> TelemetryStatus {
    TelemetryStatus {
        name: "main".into(),
        up: Some(false),
        last_success: Some(at(NOON - 300)),
        last_duration: Some(Duration::from_millis(1500)),
        errors: BTreeMap::from([(Reason::Timeout, 2)]),
        last_error: Some("a round took longer than 60 s".to_owned()),
        joined: BTreeMap::from([("provider_id", 2)]),
        unjoined: BTreeMap::from([("ambiguous", 1), ("no_instance", 3)]),
        unjoined_examples: Vec::new(),
        bad_values: 4,
        families: vec!["dcgm"],
    }
}
