//! The demo fleet: a small company with everything that AWS can bill.

mod commitments;
mod showcase;

use jiff::{SignedDuration, Timestamp};

use super::world::{
    AccountSpec, AccountState, InstanceSpec, Lifecycle, OptIn, Partition, Region, SavingsPlanSpec, World,
};
use gpuwatch_fakecloud_core::fleet::{Purchase, TEAMS, Team, machine_name};
use gpuwatch_fakecloud_core::random::Random;

/// Account ids are those that AWS's documentation uses in examples.
const PLATFORM: &str = "111122223333";
const RESEARCH: &str = "444455556666";
const INFERENCE: &str = "777788889999";
const CLOSED: &str = "123456789012";

const REGIONS: &[(&str, OptIn)] = &[
    ("us-east-1", OptIn::NotRequired),
    ("us-east-2", OptIn::NotRequired),
    ("us-west-2", OptIn::NotRequired),
    ("eu-central-1", OptIn::NotRequired),
    ("ap-northeast-1", OptIn::NotRequired),
    ("ap-southeast-1", OptIn::NotRequired),
    ("ap-east-1", OptIn::Required),
    ("me-central-1", OptIn::Required),
];

/// Where the bulk of the fleet runs, by weight: one region is large enough to
/// need many pages.
const PLACES: &[(u64, (&str, &str))] = &[
    (34, (RESEARCH, "us-east-1")),
    (14, (RESEARCH, "us-west-2")),
    (12, (INFERENCE, "ap-southeast-1")),
    (10, (INFERENCE, "eu-central-1")),
    (10, (INFERENCE, "ap-northeast-1")),
    (8, (PLATFORM, "us-east-1")),
    (7, (PLATFORM, "us-east-2")),
    (5, (INFERENCE, "ap-east-1")),
];

/// What the bulk consists of, by weight.
const TYPES: &[(u64, &str)] = &[
    (20, "g5.xlarge"),
    (10, "g5.2xlarge"),
    (8, "g5.12xlarge"),
    (14, "g6.xlarge"),
    (8, "g6.12xlarge"),
    (8, "g6e.2xlarge"),
    (6, "g6e.12xlarge"),
    (8, "g4dn.xlarge"),
    (3, "g4dn.12xlarge"),
    (6, "p4d.24xlarge"),
    (5, "p5.48xlarge"),
    (2, "p5en.48xlarge"),
    (1, "p6-b200.48xlarge"),
    (1, "inf2.xlarge"),
];

impl World {
    /// The demo fleet: about `instances` accelerator instances in three
    /// accounts and eight regions, the same for the same seed but for the
    /// launch times, which are relative to now.
    pub fn demo(seed: u64, instances: usize) -> Self {
        Self::demo_at(seed, instances, Timestamp::now())
    }

    /// As [`World::demo`], with launch times relative to `now`.
    pub fn demo_at(seed: u64, instances: usize, now: Timestamp) -> Self {
        let regions = REGIONS
            .iter()
            .map(|(name, opt_in)| Region::new(name, *opt_in))
            .collect();
        let world = Self::seeded(Partition::Aws, regions, seed, now);
        let mut demo = Demo {
            world,
            random: Random::stream(seed, "aws demo"),
            now,
        };
        demo.accounts();
        demo.showcase();
        demo.commitments();
        demo.cpu_fleet(instances / 10 + 4);
        let special = demo.world.truth().len();
        demo.bulk(instances.saturating_sub(special));
        demo.world
    }

    /// A small fleet in the China partition, with prices in CNY.
    pub fn demo_china(seed: u64) -> Self {
        let world = Self::seeded(
            Partition::AwsCn,
            super::world::regions_of(Partition::AwsCn),
            seed,
            Timestamp::now(),
        );
        let account = "555566667777";
        world.add_account(
            account,
            AccountSpec {
                name: "中国区生产".to_owned(),
                ..AccountSpec::default()
            },
        );
        for (region, count) in [("cn-north-1", 3), ("cn-northwest-1", 2)] {
            let spec = InstanceSpec::of("g4dn.xlarge")
                .tag("Name", "推荐训练")
                .tag("team", "推荐算法");
            world.add_instances(account, region, count, &spec);
        }
        let spot = InstanceSpec {
            lifecycle: Lifecycle::Spot,
            ..InstanceSpec::of("g5.xlarge")
        };
        world.add_instance(account, "cn-north-1", spot);
        let plan = SavingsPlanSpec {
            currency: "CNY".to_owned(),
            ..SavingsPlanSpec::default()
        };
        world.add_savings_plan(account, plan);
        world
    }
}

struct Demo {
    world: World,
    random: Random,
    now: Timestamp,
}

impl Demo {
    fn accounts(&self) {
        let spec = |name: &str| AccountSpec {
            name: name.to_owned(),
            ..AccountSpec::default()
        };
        self.world.add_account(PLATFORM, spec("platform"));
        self.world.add_account(RESEARCH, spec("ml-research"));
        let opted_in = vec!["ap-east-1".to_owned()];
        self.world.add_account(
            INFERENCE,
            AccountSpec {
                opted_in,
                ..spec("推理服务")
            },
        );
        self.world.add_account(
            CLOSED,
            AccountSpec {
                state: AccountState::Suspended,
                ..spec("retired-poc")
            },
        );
    }

    /// Machines without accelerators, which must never show.
    fn cpu_fleet(&mut self, count: usize) {
        for _ in 0..count {
            let (account, region) = *self.random.pick_weighted(PLACES);
            let name = *self
                .random
                .pick(&["m5.large", "m5.4xlarge", "c7i.4xlarge", "c7g.xlarge", "f2.6xlarge"]);
            self.launch(account, region, InstanceSpec::of(name).tag("team", "platform"));
        }
    }

    /// The ordinary machines, some launched in groups.
    fn bulk(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let (account, region) = *self.random.pick_weighted(PLACES);
            let instance_type = *self.random.pick_weighted(TYPES);
            let team = self.random.pick(TEAMS);
            let lifecycle = match Purchase::draw(&mut self.random) {
                Purchase::OnDemand => Lifecycle::Normal,
                Purchase::Spot => Lifecycle::Spot,
            };
            let zone = *self.random.pick(&['a', 'b', 'c']);
            let group = usize::try_from(1 + self.random.below(4)).unwrap_or(1).min(left);
            let stopped = lifecycle == Lifecycle::Normal && self.random.chance(4);
            let spec = InstanceSpec {
                lifecycle,
                zone,
                launched: Some(self.launch_time()),
                launch_reservation: Some(self.world.fresh_launch()),
                ..InstanceSpec::of(instance_type)
            };
            let spec = if stopped {
                spec.stopped_at(self.recently())
            } else {
                spec
            };
            for _ in 0..group {
                let spec = self.named(spec.clone(), team);
                self.launch(account, region, spec);
            }
            left -= group;
        }
    }

    fn named(&mut self, spec: InstanceSpec, team: &Team) -> InstanceSpec {
        let name = machine_name(&mut self.random, team);
        spec.tag("Name", &name).tag("team", team.name).tag("owner", team.owner)
    }

    fn launch(&mut self, account: &str, region: &str, mut spec: InstanceSpec) -> String {
        if spec.launched.is_none() {
            spec.launched = Some(self.launch_time());
        }
        self.world.add_instance(account, region, spec).unwrap_or_default()
    }

    /// Between a quarter of an hour and 60 days ago, by whole seconds.
    fn launch_time(&mut self) -> Timestamp {
        let seconds = i64::try_from(900 + self.random.below(60 * 86_400)).unwrap_or_default();
        self.now
            .checked_sub(SignedDuration::from_secs(seconds))
            .unwrap_or(self.now)
    }

    /// Within the last 20 days.
    fn recently(&mut self) -> Timestamp {
        let hours = i64::try_from(self.random.below(24 * 20)).unwrap_or_default();
        self.ago(hours)
    }

    fn ago(&self, hours: i64) -> Timestamp {
        self.now
            .checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(self.now)
    }

    fn later(&self, hours: i64) -> Timestamp {
        self.now
            .checked_add(SignedDuration::from_hours(hours))
            .unwrap_or(self.now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn same_seed_gives_the_same_fleet_on_any_date() {
        let later = now() + SignedDuration::from_hours(24 * 100);
        let facts = |world: &World| -> Vec<_> {
            world
                .truth()
                .into_iter()
                .map(|row| (row.id, row.instance_type, row.billing_mode, row.state, row.name))
                .collect()
        };
        assert_eq!(
            facts(&World::demo_at(7, 200, now())),
            facts(&World::demo_at(7, 200, later))
        );
        assert_ne!(
            facts(&World::demo_at(7, 200, now())),
            facts(&World::demo_at(8, 200, now()))
        );
    }

    #[test]
    fn fleet_has_the_size_asked_for_and_every_kind_of_billing() {
        for size in [200, 3_000] {
            let truth = World::demo_at(1, size, now()).truth();
            assert_eq!(truth.len(), size);
            let modes: BTreeSet<_> = truth.iter().map(|row| (row.billing_mode, row.billing_detail)).collect();
            for mode in [
                ("on_demand", ""),
                ("spot", ""),
                ("reserved", "reserved_instance"),
                ("reserved", "capacity_block"),
                ("unknown", "interruptible_capacity_reservation"),
            ] {
                assert!(modes.contains(&mode), "{mode:?}");
            }
            let states: BTreeSet<_> = truth.iter().map(|row| row.state).collect();
            assert_eq!(states, BTreeSet::from(["running", "starting", "stopped", "stopping"]));
            assert!(truth.iter().any(|row| row.gpus == Some(0.125)));
            assert!(truth.iter().any(|row| row.gpus.is_none()));
            assert!(truth.iter().all(|row| !row.instance_type.starts_with(['m', 'c', 'f'])));
            let accounts: BTreeSet<_> = truth.iter().map(|row| row.account.clone()).collect();
            let regions: BTreeSet<_> = truth.iter().map(|row| row.region.clone()).collect();
            assert!(accounts.len() >= 3 && regions.len() >= 5);
        }
    }

    #[test]
    fn commitments_have_used_and_unused_units() {
        let commitments = World::demo_at(1, 150, now()).commitments();
        for kind in ["reserved_instance", "capacity_reservation", "capacity_block"] {
            let unused = |row: &&crate::CommitmentTruth| row.used < row.units;
            let rows: Vec<_> = commitments.iter().filter(|row| row.kind == kind).collect();
            assert!(rows.iter().any(|row| row.used > Some(0)), "{kind}: {rows:?}");
            assert!(rows.iter().copied().any(|row| unused(&row)), "{kind}: {rows:?}");
        }
        assert_eq!(commitments.iter().filter(|row| row.kind == "savings_plan").count(), 3);
    }

    #[test]
    fn instances_and_addresses_are_distinct() {
        let instances = World::demo_at(1, 2_000, now()).instances();
        let ids: BTreeSet<_> = instances.iter().map(|instance| instance.id.clone()).collect();
        assert_eq!(ids.len(), instances.len());
        let running: Vec<_> = instances
            .iter()
            .filter(|instance| !instance.private_ip.is_empty())
            .collect();
        let addresses: BTreeSet<_> = running.iter().map(|instance| instance.private_ip.clone()).collect();
        assert_eq!(addresses.len(), running.len());
    }
}
