//! Allocation over small fleets, whatever their order.

use gpuwatch_inventory::{Accelerators, CommitmentRate, Currency, Kind, Money};
use proptest::prelude::*;

use super::*;

/// A running on-demand Linux instance.
fn instance(id: &str, instance_type: &str, launched: i64) -> Instance {
    Instance {
        provider: Provider::Aws,
        account: "111122223333".into(),
        account_name: "prod".into(),
        region: "us-east-1".into(),
        id: id.into(),
        name: Text::default(),
        zone: "us-east-1a".into(),
        instance_type: instance_type.into(),
        kind: Kind::Vm,
        state: State::Running,
        billing: Billing::estimated(BillingMode::OnDemand, ""),
        accelerators: Accelerators::default(),
        launched: Timestamp::from_second(launched).ok(),
        expires: None,
        auto_renew: None,
        stopped: None,
        owner: Text::default(),
        cluster: Text::default(),
        pool: Text::default(),
        platform: "Linux/UNIX".into(),
        tenancy: "default".into(),
        reservation_id: Text::default(),
        private_address: Text::default(),
        private_host: Text::default(),
        tags: Vec::new(),
    }
}

fn commitment(id: &str, kind: CommitmentKind, instance_type: &str, units: u32) -> Commitment {
    Commitment {
        provider: Provider::Aws,
        account: "111122223333".into(),
        account_name: "prod".into(),
        region: "us-east-1".into(),
        id: id.into(),
        kind,
        instance_type: instance_type.into(),
        scope: CommitmentScope::Region,
        platform: "Linux/UNIX".into(),
        tenancy: "default".into(),
        units: Some(units),
        used_units: None,
        gpus_per_unit: None,
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: Timestamp::from_second(2_000_000_000).ok(),
        detail: Text::default(),
    }
}

fn reserved(id: &str, instance_type: &str, units: u32) -> Commitment {
    commitment(id, CommitmentKind::ReservedInstance, instance_type, units)
}

fn zonal(id: &str, zone: &str, units: u32) -> Commitment {
    Commitment {
        scope: CommitmentScope::Zone(zone.into()),
        ..reserved(id, "g6.xlarge", units)
    }
}

fn plan(id: &str, kind: &str, hourly: &str, rates: &[(&str, &str)]) -> Commitment {
    let usd = |amount: &str| Money::parse(amount, Currency::usd()).expect("amount");
    let rates = rates.iter().map(|(instance_type, rate)| CommitmentRate {
        region: "us-east-1".into(),
        instance_type: (*instance_type).into(),
        platform: "Linux/UNIX".into(),
        hourly: usd(rate),
    });
    Commitment {
        units: None,
        hourly: Some(usd(hourly)),
        rates: rates.collect(),
        detail: kind.into(),
        ..commitment(
            id,
            CommitmentKind::SavingsPlan,
            if kind == "EC2Instance" { "p5" } else { "" },
            0,
        )
    }
}

fn allocated(instances: Vec<Instance>, commitments: Vec<Commitment>) -> Fleet {
    let mut fleet = Fleet {
        instances: instances.into_iter().map(Arc::new).collect(),
        commitments,
        coverage: Vec::new(),
    };
    allocate(&mut fleet);
    fleet
}

fn reserved_ids(fleet: &Fleet) -> Vec<&str> {
    let reserved = fleet
        .instances
        .iter()
        .filter(|i| i.billing.mode == BillingMode::Reserved);
    reserved.map(|instance| &*instance.id).collect()
}

fn used(fleet: &Fleet, id: &str) -> Option<u32> {
    fleet
        .commitments
        .iter()
        .find(|c| &*c.id == id)
        .and_then(|c| c.used_units)
}

#[test]
fn the_oldest_matching_instances_are_paid_for_and_the_rest_is_unused() {
    let instances = vec![
        instance("i-new", "g6.xlarge", 300),
        instance("i-old", "g6.xlarge", 100),
        instance("i-mid", "g6.xlarge", 200),
        instance("i-other", "g6.2xlarge", 50),
    ];
    let fleet = allocated(
        instances,
        vec![reserved("ri-1", "g6.xlarge", 2), reserved("ri-2", "g5.xlarge", 3)],
    );
    assert_eq!(reserved_ids(&fleet), ["i-old", "i-mid"]);
    assert_eq!((used(&fleet, "ri-1"), used(&fleet, "ri-2")), (Some(2), Some(0)));
    let paid = fleet.instances.iter().find(|i| &*i.id == "i-old").expect("there");
    assert_eq!(
        paid.billing,
        Billing::estimated(BillingMode::Reserved, "reserved_instance")
    );
    assert_eq!(paid.expires, Timestamp::from_second(2_000_000_000).ok());
}

#[test]
fn zonal_reservations_come_before_regional_ones() {
    let elsewhere = Instance {
        zone: "us-east-1b".into(),
        ..instance("i-b", "g6.xlarge", 1)
    };
    let here = instance("i-a", "g6.xlarge", 2);
    let fleet = allocated(
        vec![elsewhere, here],
        vec![reserved("a-regional", "g6.xlarge", 1), zonal("z", "us-east-1a", 1)],
    );
    assert_eq!((used(&fleet, "z"), used(&fleet, "a-regional")), (Some(1), Some(1)));
    assert_eq!(reserved_ids(&fleet).len(), 2);
}

#[test]
fn only_running_on_demand_instances_of_the_same_kind_and_account_match() {
    let base = || instance("i-1", "g6.xlarge", 1);
    let misfits = vec![
        Instance {
            state: State::Stopped,
            ..base()
        },
        Instance {
            billing: Billing::exact(BillingMode::Spot, ""),
            ..base()
        },
        Instance {
            billing: Billing::exact(BillingMode::Reserved, CAPACITY_BLOCK),
            ..base()
        },
        Instance {
            billing: Billing::exact(BillingMode::Unknown, "foo"),
            ..base()
        },
        Instance {
            platform: "Windows".into(),
            ..base()
        },
        Instance {
            tenancy: "dedicated".into(),
            ..base()
        },
        Instance {
            account: "444455556666".into(),
            ..base()
        },
        Instance {
            region: "us-west-2".into(),
            ..base()
        },
    ];
    for misfit in misfits {
        let fleet = allocated(vec![misfit.clone()], vec![reserved("ri", "g6.xlarge", 1)]);
        assert_eq!(used(&fleet, "ri"), Some(0), "{misfit:?}");
        assert_eq!(fleet.instances[0].billing, misfit.billing);
    }
    let vpc = Commitment {
        platform: "Linux/UNIX (Amazon VPC)".into(),
        ..reserved("ri", "g6.xlarge", 1)
    };
    assert_eq!(used(&allocated(vec![base()], vec![vpc]), "ri"), Some(1));
    let unstated = Instance {
        platform: Text::default(),
        ..base()
    };
    let fleet = allocated(vec![unstated], vec![reserved("ri", "g6.xlarge", 1)]);
    assert_eq!(used(&fleet, "ri"), Some(1), "not Windows, so matched as Linux");
}

#[test]
fn instances_in_a_block_end_with_it_and_fill_it() {
    let in_block = |id: &str, name: &str| Instance {
        billing: Billing::exact(BillingMode::Reserved, CAPACITY_BLOCK),
        reservation_id: name.into(),
        ..instance(id, "p5.48xlarge", 1)
    };
    let block = Commitment {
        detail: "cr-1 cr-2".into(),
        ..commitment("cb-1", CommitmentKind::CapacityBlock, "p5.48xlarge", 4)
    };
    let instances = vec![
        in_block("i-1", "cb-1"),
        in_block("i-2", "cr-2"),
        in_block("i-3", "cb-9"),
    ];
    let fleet = allocated(instances, vec![block.clone()]);
    assert_eq!(used(&fleet, "cb-1"), Some(2));
    let ends: Vec<bool> = fleet.instances.iter().map(|i| i.expires.is_some()).collect();
    assert_eq!(ends, [true, true, false]);
    let stated = Commitment {
        used_units: Some(3),
        ..block
    };
    assert_eq!(used(&allocated(vec![], vec![stated]), "cb-1"), Some(3));
}

#[test]
fn a_plan_covers_at_most_its_commitment() {
    let four = || {
        (1..=4)
            .map(|n| instance(&format!("i-{n}"), "g6.xlarge", n))
            .collect::<Vec<_>>()
    };
    let ratio = |hourly: &str| {
        let fleet = allocated(four(), vec![plan("sp", "Compute", hourly, &[("g6.xlarge", "0.5")])]);
        assert_eq!(reserved_ids(&fleet).len(), 0, "instances keep their label");
        fleet.coverage.first().map(|estimate| estimate.ratio)
    };
    assert_eq!(ratio("1.0"), Some(0.5));
    assert_eq!(ratio("9.0"), Some(1.0));
    assert_eq!(ratio("0"), Some(0.0));
    let unrated = allocated(four(), vec![plan("sp", "Compute", "1.0", &[])]);
    assert!(unrated.coverage.is_empty(), "without rates nothing is claimed");
    let idle = allocated(vec![], vec![plan("sp", "Compute", "1.0", &[("g6.xlarge", "0.5")])]);
    assert!(idle.coverage.is_empty());
}

#[test]
fn family_plans_come_first_and_reserved_instances_before_them() {
    let instances = vec![
        instance("i-1", "p5.48xlarge", 1),
        instance("i-2", "p5.48xlarge", 2),
        instance("i-3", "g6.xlarge", 3),
    ];
    let family = plan(
        "sp-1",
        "EC2Instance",
        "30",
        &[("p5.48xlarge", "30"), ("g6.xlarge", "1")],
    );
    let compute = plan("sp-2", "Compute", "1", &[("p5.48xlarge", "40"), ("g6.xlarge", "1")]);
    // The reserved instance takes i-1, the family plan i-2, the compute plan i-3.
    let fleet = allocated(instances, vec![compute, family, reserved("ri", "p5.48xlarge", 1)]);
    let estimate = fleet.coverage.first().expect("estimate");
    assert!((estimate.ratio - 1.0).abs() < 1e-9, "{}", estimate.ratio);
}

/// A small fleet in which much can match much.
fn fleets() -> impl Strategy<Value = (Vec<Instance>, Vec<Commitment>)> {
    let types = prop::sample::select(vec!["g6.xlarge", "p5.48xlarge"]);
    let zones = prop::sample::select(vec!["us-east-1a", "us-east-1b"]);
    let one = (types.clone(), zones.clone(), 0_i64..3, prop::bool::weighted(0.8));
    let instances = prop::collection::vec(one, 0..12).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(n, (instance_type, zone, launched, running))| Instance {
                zone: zone.into(),
                state: if running { State::Running } else { State::Stopped },
                ..instance(&format!("i-{n}"), instance_type, launched)
            })
            .collect()
    });
    let row = (0_u8..4, types, zones, 0_u32..4, 1_u32..90);
    let commitments = prop::collection::vec(row, 0..6).prop_map(|rows| {
        let commitments = rows
            .into_iter()
            .enumerate()
            .map(|(n, (kind, instance_type, zone, units, hourly))| {
                let (id, hourly) = (format!("c-{n}"), hourly.to_string());
                let rates = [("p5.48xlarge", "31.3"), ("g6.xlarge", "0.7")];
                match kind {
                    0 => reserved(&id, instance_type, units),
                    1 => Commitment {
                        scope: CommitmentScope::Zone(zone.into()),
                        ..reserved(&id, instance_type, units)
                    },
                    2 => plan(&id, "Compute", &hourly, &rates),
                    _ => plan(&id, "EC2Instance", &hourly, &rates),
                }
            });
        commitments.collect()
    });
    (instances, commitments)
}

type Outcome = (
    Vec<(Text, Billing, Option<Timestamp>)>,
    Vec<(Text, Option<u32>)>,
    Vec<String>,
);

fn outcome(fleet: &Fleet) -> Outcome {
    let mut instances: Vec<_> = fleet
        .instances
        .iter()
        .map(|i| (i.id.clone(), i.billing.clone(), i.expires))
        .collect();
    instances.sort_by(|a, b| a.0.cmp(&b.0));
    let mut commitments: Vec<_> = fleet.commitments.iter().map(|c| (c.id.clone(), c.used_units)).collect();
    commitments.sort();
    (
        instances,
        commitments,
        fleet
            .coverage
            .iter()
            .map(|c| format!("{} {}", c.account, c.ratio))
            .collect(),
    )
}

proptest! {
    #[test]
    fn the_order_of_records_does_not_matter(
        (instances, commitments, shuffled_instances, shuffled_commitments) in fleets().prop_flat_map(|(i, c)| {
            (Just(i.clone()), Just(c.clone()), Just(i).prop_shuffle(), Just(c).prop_shuffle())
        })
    ) {
        let one = allocated(instances, commitments);
        let other = allocated(shuffled_instances, shuffled_commitments);
        prop_assert_eq!(outcome(&one), outcome(&other));
    }

    #[test]
    fn no_reservation_pays_for_more_than_it_has((instances, commitments) in fleets()) {
        let fleet = allocated(instances, commitments);
        let used: u32 = fleet.commitments.iter().filter_map(|c| c.used_units).sum();
        prop_assert_eq!(usize::try_from(used).unwrap(), reserved_ids(&fleet).len());
        for commitment in &fleet.commitments {
            prop_assert!(commitment.used_units.unwrap_or(0) <= commitment.units.unwrap_or(u32::MAX));
        }
        for estimate in &fleet.coverage {
            prop_assert!((0.0..=1.0).contains(&estimate.ratio));
        }
    }
}
