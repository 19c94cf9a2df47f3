//! What the demo company has bought ahead, each partly unused.

use super::{Demo, OVERSEAS, PLATFORM, TRAINING};
use crate::world::{InstanceSpec, PoolKind, PoolSpec, ReservedInstanceSpec, SavingsPlanSpec};

impl Demo {
    pub(super) fn commitments(&mut self) {
        self.reserved_instances();
        self.pools();
        self.savings_plans();
    }

    /// Zonal and regional, used in part; one whose type nobody runs; one that
    /// is over; one for machines without GPUs.
    fn reserved_instances(&mut self) {
        for zone in ['a', 'b', 'b'] {
            let spec = InstanceSpec {
                zone,
                ..InstanceSpec::of("ecs.gn8is-2x.8xlarge")
            };
            self.create(OVERSEAS, "ap-southeast-1", spec.tag("team", "search-ranking"));
        }
        let bought = |instance_type: &str, amount, zone| ReservedInstanceSpec {
            instance_type: instance_type.to_owned(),
            amount,
            zone,
            ..ReservedInstanceSpec::default()
        };
        let expired = ReservedInstanceSpec {
            status: "Expired".to_owned(),
            ..bought("ecs.gn8is-2x.8xlarge", 9, None)
        };
        for spec in [
            bought("ecs.gn8is-2x.8xlarge", 1, Some('a')),
            bought("ecs.gn8is-2x.8xlarge", 1, None),
            bought("ecs.gn8is-4x.16xlarge", 2, None),
            bought("ecs.g7.8xlarge", 4, None),
            expired,
        ] {
            self.world.add_reserved_instance(OVERSEAS, "ap-southeast-1", spec);
        }
    }

    /// An assurance and a reservation, each with room left, and those that
    /// are not yet or no longer in force.
    fn pools(&mut self) {
        for (kind, total, used) in [
            (PoolKind::ElasticityAssurance, 4, 3),
            (PoolKind::CapacityReservation, 2, 1),
        ] {
            let spec = PoolSpec {
                kind,
                instance_type: "ecs.ebmgn8v.48xlarge".to_owned(),
                total,
                zone: 'c',
                name: "训练资源池".to_owned(),
                ..PoolSpec::default()
            };
            let Some(pool) = self.world.add_pool(TRAINING, "cn-wulanchabu", spec.clone()) else {
                continue;
            };
            for _ in 0..used {
                let machine = InstanceSpec {
                    zone: 'c',
                    private_pool: Some(pool.clone()),
                    ..InstanceSpec::of("ecs.ebmgn8v.48xlarge")
                };
                self.create(TRAINING, "cn-wulanchabu", machine.tag("team", "llm-pretraining"));
            }
            for status in ["Preparing", "Released"] {
                let other = PoolSpec {
                    status: status.to_owned(),
                    ..spec.clone()
                };
                self.world.add_pool(TRAINING, "cn-wulanchabu", other);
            }
        }
    }

    /// One for a family, which the bill shows at work; one that is over; one
    /// for anything.
    fn savings_plans(&mut self) {
        for share in [0.9, 0.2] {
            let spec = InstanceSpec {
                created: Some(self.ago(24 * 20)),
                ..InstanceSpec::of("ecs.gn7i-c16g1.4xlarge")
            };
            let id = self.create(PLATFORM, "cn-hangzhou", spec.tag("team", "search-ranking"));
            self.world.set_paid_by_savings_plans(PLATFORM, &id, share);
        }
        let family = SavingsPlanSpec {
            savings_type: "ecs".to_owned(),
            instance_family: "ecs.gn7i".to_owned(),
            region: "cn-hangzhou".to_owned(),
            pool_value: "88.5".to_owned(),
            ..SavingsPlanSpec::default()
        };
        let ended = SavingsPlanSpec {
            status: "RELEASE".to_owned(),
            ..family.clone()
        };
        self.world.add_savings_plan(PLATFORM, family);
        self.world.add_savings_plan(PLATFORM, ended);
        self.world.add_savings_plan(OVERSEAS, SavingsPlanSpec::default());
    }
}
