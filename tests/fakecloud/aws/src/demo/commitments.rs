//! What the demo company has bought ahead, each partly unused.

use super::{Demo, INFERENCE, PLATFORM, RESEARCH};
use crate::world::{
    CapacityBlockSpec, CapacityReservationSpec, InstanceSpec, Lifecycle, Platform, ReservationScope,
    ReservedInstancesSpec, SavingsPlanRate, SavingsPlanSpec,
};

impl Demo {
    pub(super) fn commitments(&mut self) {
        self.capacity_block();
        self.capacity_reservations();
        self.reserved_instances();
        self.savings_plans();
    }

    /// Four machines paid up front, three of them in use.
    fn capacity_block(&mut self) {
        let spec = CapacityBlockSpec {
            total: 4,
            zone: 'b',
            ..CapacityBlockSpec::default()
        };
        let Some((block, reservation)) = self.world.add_capacity_block(RESEARCH, "us-east-2", spec) else {
            return;
        };
        for _ in 0..3 {
            let spec = InstanceSpec {
                lifecycle: Lifecycle::CapacityBlock,
                zone: 'b',
                capacity_block: Some(block.clone()),
                capacity_reservation: Some(reservation.clone()),
                ..InstanceSpec::of("p5.48xlarge")
            };
            self.launch(RESEARCH, "us-east-2", spec.tag("team", "llm-pretraining"));
        }
        let next = CapacityBlockSpec {
            state: "scheduled".to_owned(),
            start: Some(self.later(24 * 6)),
            ..spec_block()
        };
        self.world.add_capacity_block(RESEARCH, "us-east-2", next);
    }

    /// An open one with unused slots, one shared with another account, and a
    /// part of one that can be taken back.
    fn capacity_reservations(&mut self) {
        let open = CapacityReservationSpec {
            instance_type: "p4d.24xlarge".to_owned(),
            total: 4,
            ..CapacityReservationSpec::default()
        };
        self.reserve_and_use(RESEARCH, "us-east-1", open, RESEARCH, Lifecycle::Normal, 2);
        let shared = CapacityReservationSpec {
            instance_type: "g6e.12xlarge".to_owned(),
            total: 3,
            match_criteria: "targeted".to_owned(),
            shared_with: vec![INFERENCE.to_owned()],
            unused_billing_owner: Some(INFERENCE.to_owned()),
            ..CapacityReservationSpec::default()
        };
        self.reserve_and_use(PLATFORM, "eu-central-1", shared, INFERENCE, Lifecycle::Normal, 1);
        let interruptible = CapacityReservationSpec {
            instance_type: "p5.48xlarge".to_owned(),
            total: 2,
            interruptible: true,
            match_criteria: "targeted".to_owned(),
            ..CapacityReservationSpec::default()
        };
        let lifecycle = Lifecycle::InterruptibleCapacityReservation;
        self.reserve_and_use(PLATFORM, "us-east-1", interruptible, PLATFORM, lifecycle, 1);
        let cancelled = CapacityReservationSpec {
            state: "cancelled".to_owned(),
            ..CapacityReservationSpec::default()
        };
        self.world.add_capacity_reservation(RESEARCH, "us-east-1", cancelled);
    }

    fn reserve_and_use(
        &mut self,
        owner: &str,
        region: &str,
        spec: CapacityReservationSpec,
        user: &str,
        lifecycle: Lifecycle,
        count: usize,
    ) {
        let instance_type = spec.instance_type.clone();
        let Some(reservation) = self.world.add_capacity_reservation(owner, region, spec) else {
            return;
        };
        for _ in 0..count {
            let spec = InstanceSpec {
                lifecycle,
                capacity_reservation: Some(reservation.clone()),
                ..InstanceSpec::of(&instance_type)
            };
            self.launch(user, region, spec.tag("team", "search-ranking"));
        }
    }

    /// Zonal and regional, used in part; and one whose type nobody runs.
    fn reserved_instances(&mut self) {
        for (zone, count) in [('a', 2), ('b', 2)] {
            for _ in 0..count {
                let spec = InstanceSpec {
                    zone,
                    ..InstanceSpec::of("g5.24xlarge")
                };
                self.launch(INFERENCE, "ap-northeast-1", spec.tag("team", "推荐算法"));
            }
        }
        let bought = |instance_type: &str, count, scope, hourly: &str| ReservedInstancesSpec {
            instance_type: instance_type.to_owned(),
            count,
            scope,
            hourly: hourly.to_owned(),
            ..ReservedInstancesSpec::default()
        };
        let region = ReservationScope::Region;
        for (place, spec) in [
            (
                "ap-northeast-1",
                bought("g5.24xlarge", 1, ReservationScope::Zone('a'), "6.96"),
            ),
            ("ap-northeast-1", bought("g5.24xlarge", 1, region, "6.96")),
            ("ap-southeast-1", bought("g5.48xlarge", 2, region, "12.41")),
            (
                "eu-central-1",
                ReservedInstancesSpec {
                    platform: Platform::Windows,
                    offering_type: "Partial Upfront".to_owned(),
                    fixed_price: "8500.0".to_owned(),
                    ..bought("g5.4xlarge", 1, region, "0.97")
                },
            ),
            (
                "eu-central-1",
                ReservedInstancesSpec {
                    state: "retired".to_owned(),
                    ..bought("g4dn.xlarge", 5, region, "0.3")
                },
            ),
        ] {
            self.world.add_reserved_instances(INFERENCE, place, spec);
        }
    }

    fn savings_plans(&self) {
        let rate = |region: &str, instance_type: &str, rate: &str| SavingsPlanRate {
            region: region.to_owned(),
            instance_type: instance_type.to_owned(),
            product_description: "Linux/UNIX".to_owned(),
            rate: rate.to_owned(),
        };
        let family = SavingsPlanSpec {
            plan_type: "EC2Instance".to_owned(),
            family: Some(("us-east-1".to_owned(), "p5".to_owned())),
            commitment: "62.5".to_owned(),
            recurring: "62.5".to_owned(),
            rates: vec![
                rate("us-east-1", "p5.48xlarge", "31.464"),
                rate("us-east-1", "p5.4xlarge", "3.933"),
            ],
            ..SavingsPlanSpec::default()
        };
        let compute = SavingsPlanSpec {
            commitment: "18.0".to_owned(),
            recurring: "18.0".to_owned(),
            days: 3 * 365,
            rates: vec![
                rate("us-east-1", "g5.xlarge", "0.7244"),
                rate("us-west-2", "g5.xlarge", "0.7244"),
                rate("us-east-1", "g6.xlarge", "0.5795"),
            ],
            ..SavingsPlanSpec::default()
        };
        let ended = SavingsPlanSpec {
            state: "retired".to_owned(),
            start: Some(self.ago(24 * 400)),
            ..compute.clone()
        };
        self.world.add_savings_plan(RESEARCH, family);
        self.world.add_savings_plan(PLATFORM, compute);
        self.world.add_savings_plan(PLATFORM, ended);
        let other = SavingsPlanSpec {
            plan_type: "SageMaker".to_owned(),
            ..SavingsPlanSpec::default()
        };
        self.world.add_savings_plan(INFERENCE, other);
    }
}

/// The block that is bought for next week.
fn spec_block() -> CapacityBlockSpec {
    CapacityBlockSpec {
        total: 2,
        days: 7,
        ..CapacityBlockSpec::default()
    }
}
