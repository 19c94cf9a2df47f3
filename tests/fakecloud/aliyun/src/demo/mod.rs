//! The demo fleet: a small company with everything that Alibaba Cloud can bill.

mod commitments;
mod showcase;

use jiff::{SignedDuration, Timestamp};

use gpuwatch_fakecloud_core::fleet::{TEAMS, Team, machine_name};
use gpuwatch_fakecloud_core::random::Random;

use crate::world::{AccountSpec, Charge, InstanceSpec, Region, RegionAccess, Renewal, Site, StoppedMode, World};

/// The company's accounts. The first owns the base credentials.
const PLATFORM: &str = "1234567890123456";
const TRAINING: &str = "1500000000000001";
const OVERSEAS: &str = "5600000000000002";

const REGIONS: &[(&str, RegionAccess)] = &[
    ("cn-hangzhou", RegionAccess::Open),
    ("cn-shanghai", RegionAccess::Open),
    ("cn-beijing", RegionAccess::Open),
    ("cn-wulanchabu", RegionAccess::Open),
    ("cn-hongkong", RegionAccess::Open),
    ("ap-southeast-1", RegionAccess::Open),
    ("us-west-1", RegionAccess::Open),
    ("eu-central-1", RegionAccess::Open),
    ("cn-shanghai-finance-1", RegionAccess::OnRequest),
    ("ap-south-1", RegionAccess::Closed),
];

/// Where the bulk of the fleet runs, by weight: one region is large enough to
/// need many pages.
const PLACES: &[(u64, (&str, &str))] = &[
    (34, (TRAINING, "cn-wulanchabu")),
    (16, (TRAINING, "cn-beijing")),
    (14, (PLATFORM, "cn-hangzhou")),
    (12, (PLATFORM, "cn-shanghai")),
    (8, (OVERSEAS, "ap-southeast-1")),
    (8, (OVERSEAS, "us-west-1")),
    (5, (PLATFORM, "cn-shanghai-finance-1")),
    (3, (OVERSEAS, "cn-hongkong")),
];

/// What the bulk consists of, by weight.
const TYPES: &[(u64, &str)] = &[
    (22, "ecs.gn7i-c8g1.2xlarge"),
    (10, "ecs.gn7i-c32g1.16xlarge"),
    (10, "ecs.gn6i-c4g1.xlarge"),
    (8, "ecs.gn8is.2xlarge"),
    (8, "ecs.gn8is-8x.32xlarge"),
    (8, "ecs.gn7e-c16g1.4xlarge"),
    (6, "ecs.gn8v-8x.48xlarge"),
    (6, "ecs.ebmgn7e.32xlarge"),
    (4, "ecs.ebmgn8v.48xlarge"),
    (4, "ecs.gn5-c4g1.xlarge"),
    (4, "ecs.vgn6i-m4-vws.xlarge"),
    (4, "ecs.sgn7i-vws-m2.xlarge"),
];

/// Machines without GPUs, some with names that look otherwise.
const CPU_TYPES: &[&str] = &[
    "ecs.g7.xlarge",
    "ecs.g7.8xlarge",
    "ecs.c7.2xlarge",
    "ecs.ebmg7.32xlarge",
    "ecs.hfg7.2xlarge",
    "ecs.f3-c4f1.xlarge",
];

impl World {
    /// The demo fleet: about `instances` accelerator instances in three
    /// accounts and eight regions, the same for the same seed but for the
    /// times, which are relative to now.
    #[must_use]
    pub fn demo(seed: u64, instances: usize) -> Self {
        Self::demo_at(seed, instances, Timestamp::now())
    }

    /// As [`World::demo`], with times relative to `now`.
    #[must_use]
    pub fn demo_at(seed: u64, instances: usize, now: Timestamp) -> Self {
        let mut demo = Demo::new(seed, REGIONS, now);
        demo.accounts();
        demo.showcase();
        demo.commitments();
        demo.cpu_fleet(instances / 10 + 4, PLACES);
        let special = demo.world.truth().len();
        demo.bulk(instances.saturating_sub(special), PLACES);
        demo.world
    }

    /// A fleet of exactly `instances` accelerator instances in two accounts
    /// and three regions, most of them in one, of every billing mode and
    /// state, with CPU machines between them.
    #[must_use]
    pub fn fleet(seed: u64, instances: usize) -> Self {
        let places = &[
            (80, (PLATFORM, "cn-hangzhou")),
            (12, (PLATFORM, "cn-beijing")),
            (8, (OVERSEAS, "ap-southeast-1")),
        ];
        let regions = &[
            ("cn-hangzhou", RegionAccess::Open),
            ("cn-beijing", RegionAccess::Open),
            ("ap-southeast-1", RegionAccess::Open),
        ];
        let mut demo = Demo::new(seed, regions, Timestamp::now());
        demo.account(PLATFORM, "platform", Site::China);
        demo.account(OVERSEAS, "overseas", Site::International);
        demo.bulk(instances, places);
        demo.cpu_fleet(instances / 10 + 4, places);
        demo.world
    }
}

struct Demo {
    world: World,
    random: Random,
    now: Timestamp,
}

impl Demo {
    fn new(seed: u64, regions: &[(&str, RegionAccess)], now: Timestamp) -> Self {
        let regions = regions.iter().map(|(id, access)| Region::new(id, *access)).collect();
        Self {
            world: World::seeded(regions, seed, now),
            random: Random::stream(seed, "aliyun demo"),
            now,
        }
    }

    fn accounts(&self) {
        self.account(PLATFORM, "platform", Site::China);
        self.account(TRAINING, "大模型训练", Site::China);
        self.account(OVERSEAS, "overseas", Site::International);
        self.world.set_region_enabled(PLATFORM, "cn-shanghai-finance-1", true);
    }

    fn account(&self, uid: &str, name: &str, site: Site) {
        let spec = AccountSpec {
            name: name.to_owned(),
            site,
            ..AccountSpec::default()
        };
        self.world.add_account(uid, spec);
    }

    /// Machines without accelerators, which must never show.
    fn cpu_fleet(&mut self, count: usize, places: &[(u64, (&str, &str))]) {
        for _ in 0..count {
            let (account, region) = *self.random.pick_weighted(places);
            let instance_type = *self.random.pick(CPU_TYPES);
            self.create(account, region, InstanceSpec::of(instance_type).tag("team", "platform"));
        }
    }

    /// The ordinary machines.
    fn bulk(&mut self, count: usize, places: &[(u64, (&str, &str))]) {
        for _ in 0..count {
            let (account, region) = *self.random.pick_weighted(places);
            let instance_type = *self.random.pick_weighted(TYPES);
            let team = self.random.pick(TEAMS);
            let spec = self.named(InstanceSpec::of(instance_type), team);
            let spec = self.paid_for(spec);
            self.create(account, region, spec);
        }
    }

    /// A way to pay, and for some a state that goes with it.
    fn paid_for(&mut self, mut spec: InstanceSpec) -> InstanceSpec {
        spec.zone = *self.random.pick(&['g', 'h', 'i']);
        spec.charge = *self.random.pick_weighted(&[
            (45, Charge::PostPaid),
            (30, Charge::PrePaid),
            (13, Charge::SpotWithPriceLimit),
            (12, Charge::SpotAsPriceGo),
        ]);
        if spec.charge == Charge::PrePaid {
            let renewals = [Renewal::AutoRenewal, Renewal::Normal, Renewal::NotRenewal];
            spec.renewal = *self.random.pick(&renewals);
            let days = i64::try_from(2 + self.random.below(360)).unwrap_or(30);
            spec.expires = Some(self.ago(-24 * days));
        }
        if self.random.chance(6) {
            let mode = match spec.charge {
                Charge::PrePaid => StoppedMode::NotApplicable,
                Charge::PostPaid => *self.random.pick(&[
                    StoppedMode::KeepCharging,
                    StoppedMode::StopCharging,
                    StoppedMode::NotApplicable,
                ]),
                Charge::SpotWithPriceLimit | Charge::SpotAsPriceGo => StoppedMode::StopCharging,
            };
            return spec.stopped(mode);
        }
        spec
    }

    fn named(&mut self, mut spec: InstanceSpec, team: &Team) -> InstanceSpec {
        spec.name = machine_name(&mut self.random, team);
        spec.tag("team", team.name).tag("owner", team.owner)
    }

    fn create(&mut self, account: &str, region: &str, mut spec: InstanceSpec) -> String {
        if spec.created.is_none() {
            let seconds = i64::try_from(900 + self.random.below(60 * 86_400)).unwrap_or(900);
            spec.created = self.now.checked_sub(SignedDuration::from_secs(seconds)).ok();
        }
        self.world.add_instance(account, region, spec).unwrap_or_default()
    }

    fn ago(&self, hours: i64) -> Timestamp {
        self.now
            .checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(self.now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:30Z".parse().unwrap()
    }

    #[test]
    fn same_seed_gives_the_same_fleet_on_any_date() {
        let later = now() + SignedDuration::from_hours(24 * 100);
        let facts = |world: &World| -> Vec<_> {
            let rows = world.truth().into_iter();
            rows.map(|row| (row.id, row.instance_type, row.billing_mode, row.state, row.name))
                .collect()
        };
        let fleet = facts(&World::demo_at(7, 200, now()));
        assert_eq!(fleet, facts(&World::demo_at(7, 200, later)));
        assert_ne!(fleet, facts(&World::demo_at(8, 200, now())));
    }

    #[test]
    fn demo_has_the_size_asked_for_and_every_kind_of_billing() {
        let truth = World::demo_at(1, 200, now()).truth();
        assert_eq!(truth.len(), 200);
        let modes: BTreeSet<_> = truth.iter().map(|row| (row.billing_mode, row.billing_detail)).collect();
        let expected = [
            ("on_demand", ""),
            ("on_demand", "dedicated_host"),
            ("reserved", "reserved_instance"),
            ("reserved", "savings_plan"),
            ("reserved", "subscription"),
            ("spot", ""),
        ];
        assert_eq!(modes, BTreeSet::from(expected));
        let states: BTreeSet<_> = truth.iter().map(|row| row.state).collect();
        let expected = ["running", "starting", "stopped", "stopped_billed", "stopping"];
        assert_eq!(states, BTreeSet::from(expected));
        assert!(truth.iter().any(|row| row.gpus == Some(1.0 / 12.0)));
        assert!(truth.iter().any(|row| row.gpus.is_none()));
        assert!(truth.iter().all(|row| row.launched.as_second() % 60 == 0));
        let accounts: BTreeSet<_> = truth.iter().map(|row| row.account.clone()).collect();
        let regions: BTreeSet<_> = truth.iter().map(|row| row.region.clone()).collect();
        assert!(accounts.len() == 3 && regions.len() >= 7, "{regions:?}");
    }

    #[test]
    fn fleet_has_exactly_the_size_asked_for() {
        let world = World::fleet(7, 2345);
        let truth = world.truth();
        assert_eq!(truth.len(), 2345);
        assert!(world.instances().len() > 2500, "CPU machines are among them");
        let modes: BTreeSet<_> = truth.iter().map(|row| (row.billing_mode, row.state)).collect();
        assert!(modes.len() >= 6, "{modes:?}");
    }

    #[test]
    fn commitments_have_used_and_unused_units() {
        let commitments = World::demo_at(1, 150, now()).commitments();
        for kind in ["reserved_instance", "capacity_reservation"] {
            let rows: Vec<_> = commitments.iter().filter(|row| row.kind == kind).collect();
            assert!(rows.iter().any(|row| row.used > Some(0)), "{kind}: {rows:?}");
            assert!(rows.iter().any(|row| row.used < row.units), "{kind}: {rows:?}");
        }
        assert_eq!(commitments.iter().filter(|row| row.kind == "savings_plan").count(), 2);
    }
}
