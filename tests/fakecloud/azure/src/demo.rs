//! The demo fleet: a company with everything that Azure can bill.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::fleet::{HOSTILE_TEXTS, Purchase, TEAMS, machine_name};
use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

use crate::sizes::{FUTURE_SIZE, SILENT_SIZE};
use crate::spec::{CapacitySpec, MachineSpec, ReservationSpec, SavingsPlanSpec, ScaleSetSpec, ScaleSetVariety};
use crate::world::World;

const RESEARCH: &str = "1a2b3c4d-0000-4000-8000-00000000000A";
const PRODUCT: &str = "1a2b3c4d-0000-4000-8000-00000000000b";
const CLOSED: &str = "1a2b3c4d-0000-4000-8000-00000000000c";

/// The resource group that has a reservation for itself, and its size.
const HELD_GROUP: &str = "rg-held";
const HELD_SIZE: &str = "Standard_NC16as_T4_v3";

/// The capacity reservation.
const PLACES: &str = "crg-h100";

const REGIONS: [&str; 4] = ["eastus", "westeurope", "southeastasia", "westus3"];

/// Sizes by how often they come.
const SIZES: [(u64, &str); 8] = [
    (25, "Standard_NC4as_T4_v3"),
    (15, "Standard_NC24ads_A100_v4"),
    (10, "Standard_NC48ads_A100_v4"),
    (15, "Standard_ND96isr_H100_v5"),
    (5, "Standard_ND96isr_H200_v5"),
    (15, "Standard_NV6ads_A10_v5"),
    (10, "Standard_NV18ads_A10_v5"),
    (5, "Standard_ND96isr_MI300X_v5"),
];

impl World {
    /// The demo fleet of about this many accelerator machines.
    #[must_use]
    pub fn demo(seed: u64, instances: usize) -> Self {
        let world = Self::empty();
        world.add_subscription(RESEARCH, "Research");
        world.add_subscription(PRODUCT, "产品线");
        world.add_subscription(CLOSED, "Closed");
        world.add_machine(CLOSED, MachineSpec::default());
        world.set_state(CLOSED, "Disabled");
        world.showcase();
        let shown = world.truth().len();
        let mut random = Random::stream(seed, "azure demo");
        world.fill(&mut random, instances.saturating_sub(shown));
        world.buy();
        world
    }

    /// Exactly this many accelerator machines, for comparisons with other
    /// clients, and CPU machines between them.
    #[must_use]
    pub fn fleet(seed: u64, instances: usize) -> Self {
        let world = Self::empty();
        world.add_subscription(RESEARCH, "Research");
        world.add_subscription(PRODUCT, "产品线");
        world.showcase();
        let shown = world.truth().len();
        let mut random = Random::stream(seed, "azure fleet");
        world.fill(&mut random, instances.saturating_sub(shown));
        world.buy();
        world
    }

    /// One of everything.
    fn showcase(&self) {
        let day = |days: i64| self.days_ago(days);
        let machine = |name: &str, size: &str| MachineSpec {
            name: name.to_owned(),
            size: size.to_owned(),
            created: day(30),
            ..MachineSpec::default()
        };
        let add = |spec: MachineSpec| self.add_machine(RESEARCH, spec);
        for (power, number) in [
            ("starting", 1),
            ("stopped", 2),
            ("deallocating", 3),
            ("deallocated", 4),
            ("", 5),
        ] {
            add(MachineSpec {
                power: power.to_owned(),
                ..machine(&format!("state-{number}"), "Standard_NC64as_T4_v3")
            });
        }
        for (priority, number) in [("Spot", 1), ("Low", 2), ("SpotPlus", 3), ("Barter", 4), ("", 5)] {
            add(MachineSpec {
                priority: priority.to_owned(),
                ..machine(&format!("priority-{number}"), "Standard_NV6ads_A10_v5")
            });
        }
        add(machine("future", FUTURE_SIZE.0));
        add(machine("silent", SILENT_SIZE));
        add(MachineSpec {
            on_host: true,
            ..machine("hosted", "Standard_NC4as_T4_v3")
        });
        add(MachineSpec {
            hibernated: true,
            ..machine("asleep", "Standard_NC4as_T4_v3")
        });
        add(MachineSpec {
            group: HELD_GROUP.to_owned(),
            // All the digits that this cloud has.
            created: day(20)
                .checked_add(SignedDuration::from_nanos(123_456_700))
                .unwrap_or_default(),
            ..machine("held", HELD_SIZE)
        });
        add(MachineSpec {
            capacity: PLACES.to_owned(),
            ..machine("placed", "Standard_ND96isr_H100_v5")
        });
        for name in ["cpu-1", "cpu-2"] {
            add(machine(name, "Standard_D4s_v5"));
        }
        add(machine("fpga", "Standard_NP10s"));
        for (number, text) in HOSTILE_TEXTS.iter().enumerate() {
            let tags = BTreeMap::from([("OWNER".to_owned(), (*text).to_owned())]);
            add(MachineSpec {
                tags,
                ..machine(&format!("odd-{number}"), "Standard_NC4as_T4_v3")
            });
        }
        self.clusters();
    }

    /// Node pools of AKS and a flexible set.
    fn clusters(&self) {
        let tags = BTreeMap::from([
            ("aks-managed-poolName".to_owned(), "gpu".to_owned()),
            ("aks-managed-cluster-name".to_owned(), "train".to_owned()),
            ("team".to_owned(), "自动驾驶感知".to_owned()),
        ]);
        let members = |powers: &[&str]| -> Vec<(String, Timestamp)> {
            let member = |(number, power): (i64, &&str)| ((*power).to_owned(), self.days_ago(10 + number));
            (0..).zip(powers).map(member).collect()
        };
        let pool = ScaleSetSpec {
            name: "aks-gpu-12345678-vmss".to_owned(),
            group: "MC_ml_train_westeurope".to_owned(),
            location: "westeurope".to_owned(),
            size: "Standard_NC24ads_A100_v4".to_owned(),
            priority: "Spot".to_owned(),
            tags: tags.clone(),
            members: members(&["running", "running", "deallocated"]),
            ..ScaleSetSpec::default()
        };
        // Another cluster's pool may have the same name.
        self.add_scale_set(
            PRODUCT,
            ScaleSetSpec {
                group: "MC_ml_serve_westeurope".to_owned(),
                size: "Standard_NC4as_T4_v3".to_owned(),
                priority: "Regular".to_owned(),
                members: members(&["running"]),
                ..pool.clone()
            },
        );
        self.add_varied_scale_set(
            PRODUCT,
            pool,
            ScaleSetVariety {
                zones: ["1", "2"].map(str::to_owned).to_vec(),
                ..ScaleSetVariety::default()
            },
        );
        self.add_varied_scale_set(
            PRODUCT,
            ScaleSetSpec {
                name: "assorted".to_owned(),
                location: "westeurope".to_owned(),
                priority: "Spot".to_owned(),
                members: members(&["running", "starting", "running"]),
                ..ScaleSetSpec::default()
            },
            ScaleSetVariety {
                mixed_sizes: ["Standard_NC4as_T4_v3", "Standard_NV6ads_A10_v5"]
                    .map(str::to_owned)
                    .to_vec(),
                ..ScaleSetVariety::default()
            },
        );
        self.add_varied_scale_set(
            PRODUCT,
            ScaleSetSpec {
                name: "flex".to_owned(),
                flexible: true,
                priority: "Spot".to_owned(),
                ..ScaleSetSpec::default()
            },
            ScaleSetVariety {
                priority_mix: Some((1, 0)),
                ..ScaleSetVariety::default()
            },
        );
        for (name, priority) in [("flex_0a1b", "Regular"), ("flex_0a1c", "Spot")] {
            self.add_machine(
                PRODUCT,
                MachineSpec {
                    name: name.to_owned(),
                    priority: priority.to_owned(),
                    set: "flex".to_owned(),
                    created: self.days_ago(3),
                    tags: tags.clone(),
                    ..MachineSpec::default()
                },
            );
        }
    }

    fn fill(&self, random: &mut Random, count: usize) {
        for number in 0..count {
            let team = random.pick(TEAMS);
            let spot = Purchase::draw(random) == Purchase::Spot;
            let name = format!("{}-{number:05}", machine_name(random, team));
            let power = random.pick_weighted(&[(88, "running"), (6, "deallocated"), (4, "stopped"), (2, "starting")]);
            let zone = random.pick(&["", "1", "2", "3"]);
            let spec = MachineSpec {
                computer_name: name.clone(),
                name,
                group: format!("rg-{}", random.below(5)),
                location: (*random.pick(&REGIONS)).to_owned(),
                zone: (*zone).to_owned(),
                size: (*random.pick_weighted(&SIZES)).to_owned(),
                priority: if spot { "Spot" } else { "Regular" }.to_owned(),
                power: (*power).to_owned(),
                created: self.hours_ago(1 + i64::try_from(random.below(8000)).unwrap_or_default()),
                tags: BTreeMap::from([
                    ("team".to_owned(), team.name.to_owned()),
                    ("owner".to_owned(), team.owner.to_owned()),
                ]),
                ..MachineSpec::default()
            };
            let subscription = if random.chance(60) { RESEARCH } else { PRODUCT };
            self.add_machine(subscription, spec);
            if number % 10 == 0 {
                self.add_machine(
                    subscription,
                    MachineSpec {
                        name: format!("web-{number:05}"),
                        size: "Standard_D4s_v5".to_owned(),
                        ..MachineSpec::default()
                    },
                );
            }
        }
    }

    /// What was bought ahead; some of it is not used.
    fn buy(&self) {
        let expires = self.hours_ago(-24 * 200);
        let reservation = |size: &str, quantity: u32, applies_to: &str| ReservationSpec {
            location: "eastus".to_owned(),
            size: size.to_owned(),
            quantity,
            applies_to: applies_to.to_owned(),
            billed_to: RESEARCH.to_owned(),
            state: "Succeeded".to_owned(),
            expires,
        };
        self.add_reservation(reservation("Standard_ND96isr_H100_v5", 2, ""));
        self.add_reservation(reservation(
            "Standard_NC24ads_A100_v4",
            3,
            &format!("/subscriptions/{PRODUCT}"),
        ));
        self.add_reservation(reservation(
            HELD_SIZE,
            2,
            &format!("/subscriptions/{RESEARCH}/resourceGroups/{HELD_GROUP}"),
        ));
        self.add_reservation(ReservationSpec {
            location: "westus3".to_owned(),
            ..reservation("Standard_ND96isr_MI300X_v5", 4, "")
        });
        self.add_reservation(ReservationSpec {
            state: "Expired".to_owned(),
            ..reservation("Standard_NC4as_T4_v3", 9, "")
        });
        self.add_reservation(reservation("Standard_D4s_v5", 5, ""));
        self.add_savings_plan(SavingsPlanSpec {
            hourly: "12.5".to_owned(),
            billed_to: RESEARCH.to_owned(),
            expires,
        });
        self.add_capacity(
            RESEARCH,
            CapacitySpec {
                name: PLACES.to_owned(),
                group: "rg-ml".to_owned(),
                location: "eastus".to_owned(),
                size: "Standard_ND96isr_H100_v5".to_owned(),
                capacity: 4,
                allocated: 1,
            },
        );
    }

    fn days_ago(&self, days: i64) -> Timestamp {
        self.hours_ago(days * 24)
    }

    fn hours_ago(&self, hours: i64) -> Timestamp {
        let created = self.created();
        // Whole seconds, as every service states them.
        let then = created
            .checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(created);
        Timestamp::from_second(then.as_second()).unwrap_or(then)
    }
}
