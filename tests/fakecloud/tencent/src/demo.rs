//! The demo fleet: a company with everything that Tencent Cloud can bill.

use std::collections::BTreeMap;

use gpuwatch_fakecloud_core::fleet::{HOSTILE_TEXTS, Purchase, TEAMS, machine_name};
use gpuwatch_fakecloud_core::random::Random;
use jiff::{SignedDuration, Timestamp};

use crate::world::{ContainerSpec, CouponSpec, HostSpec, MachineSpec, NodeSpec, OWNER, PlanSpec, Site, World};

/// The second account of the demo company.
const SECOND: &str = "100000000002";

const REGIONS: [&str; 4] = ["ap-guangzhou", "ap-shanghai", "ap-beijing", "ap-singapore"];

/// Types by how often they come.
const TYPES: [(u64, &str); 8] = [
    (20, "GN7.2XLARGE32"),
    (15, "GN7.LARGE20"),
    (10, "GN7.2XLARGE40"),
    (15, "GN10X.2XLARGE40"),
    (10, "GN10Xp.20XLARGE320"),
    (15, "PNV4.7XLARGE116"),
    (10, "GT4.41XLARGE948"),
    (5, "GN8.7XLARGE224"),
];

impl World {
    /// The demo fleet of about this many accelerator machines, in two
    /// accounts.
    #[must_use]
    pub fn demo(seed: u64, instances: usize) -> Self {
        Self::company(&mut Random::stream(seed, "tencent demo"), instances)
    }

    /// Exactly this many accelerator machines, for comparisons with other
    /// clients, and CPU machines between them.
    #[must_use]
    pub fn fleet(seed: u64, instances: usize) -> Self {
        Self::company(&mut Random::stream(seed, "tencent fleet"), instances)
    }

    fn company(random: &mut Random, instances: usize) -> Self {
        let world = Self::empty(Site::China);
        world.add_account(SECOND);
        world.showcase();
        world.in_clusters();
        let shown = world.truth().len();
        world.fill(random, instances.saturating_sub(shown));
        for owner in [OWNER, SECOND] {
            world.add_plan(
                owner,
                PlanSpec {
                    id: format!("sp-{owner}"),
                    status: 1,
                    // Near the begin of the longest term there is.
                    starts: world.hours_ago(24 * 800),
                    expires: world.hours_ago(-24 * 200),
                },
            );
        }
        world.bought_ahead();
        world
    }

    /// Dedicated hosts, a plan that has ended, and what pays for pods.
    fn bought_ahead(&self) {
        let expires = self.hours_ago(-24 * 200);
        self.add_plan(
            OWNER,
            PlanSpec {
                id: "sp-ended".to_owned(),
                status: 2,
                starts: self.hours_ago(24 * 400),
                expires: self.hours_ago(24 * 35),
            },
        );
        for (id, state, free) in [("host-0a1b2c3d", "RUNNING", 3), ("host-0f0f0f0f", "EXPIRED", 8)] {
            self.add_host(
                OWNER,
                HostSpec {
                    id: id.to_owned(),
                    region: "ap-shanghai".to_owned(),
                    zone: "ap-shanghai-2".to_owned(),
                    host_type: "HG7".to_owned(),
                    state: state.to_owned(),
                    gpus: 8,
                    free,
                    expires,
                },
            );
        }
        for (id, gpus, status, is_used) in [
            ("eksri-0a1b2c3d", "1", "Active", true),
            ("eksri-1a1b2c3d", "0.25", "Active", false),
            ("eksri-2a1b2c3d", "1", "Expired", false),
        ] {
            self.add_coupon(
                OWNER,
                CouponSpec {
                    id: id.to_owned(),
                    region: "ap-guangzhou".to_owned(),
                    resource_type: "t4".to_owned(),
                    gpus: gpus.to_owned(),
                    status: status.to_owned(),
                    is_used,
                    expires,
                },
            );
        }
    }

    /// Native nodes and container instances, which no listing of CVM has.
    fn in_clusters(&self) {
        let created = self.hours_ago(24 * 12);
        for (name, state, charge_type) in [
            ("native-subscribed", "running", "PREPAID"),
            ("native-on-demand", "running", "POSTPAID_BY_HOUR"),
            ("native-starting", "initializing", "POSTPAID_BY_HOUR"),
            ("native-failed", "failed", "POSTPAID_BY_HOUR"),
        ] {
            self.add_node(
                OWNER,
                NodeSpec {
                    id: format!("eks-{name}"),
                    name: name.to_owned(),
                    region: "ap-guangzhou".to_owned(),
                    zone: "ap-guangzhou-6".to_owned(),
                    instance_type: "PNV4.7XLARGE116".to_owned(),
                    state: state.to_owned(),
                    charge_type: charge_type.to_owned(),
                    renew_flag: if charge_type == "PREPAID" {
                        "NOTIFY_AND_AUTO_RENEW".to_owned()
                    } else {
                        String::new()
                    },
                    created,
                    expires: (charge_type == "PREPAID").then(|| self.hours_ago(-24 * 60)),
                    cluster: "cls-0a1b2c3d".to_owned(),
                    pool: "np-native".to_owned(),
                },
            );
        }
        for (name, gpu_type, gpu_count, gpus, status) in [
            ("推理-a", "1/4*T4", 1, 0.25, "Running"),
            ("推理-b", "V100", 2, 2.0, "Pending"),
            ("batch-done", "V100", 1, 1.0, "Succeeded"),
            ("sidecar", "", 0, 0.0, "Running"),
        ] {
            self.add_container(
                OWNER,
                ContainerSpec {
                    id: format!("eksci-{name}"),
                    name: name.to_owned(),
                    region: "ap-shanghai".to_owned(),
                    gpu_type: gpu_type.to_owned(),
                    gpu_count,
                    gpus,
                    status: status.to_owned(),
                    created,
                },
            );
        }
    }

    /// One of everything.
    fn showcase(&self) {
        let machine = |name: &str| MachineSpec {
            name: name.to_owned(),
            created: self.hours_ago(24 * 30),
            ..MachineSpec::default()
        };
        let add = |spec: MachineSpec| self.add_machine(OWNER, spec);
        for (state, mode) in [
            ("PENDING", "NOT_APPLICABLE"),
            ("STARTING", "NOT_APPLICABLE"),
            ("REBOOTING", "NOT_APPLICABLE"),
            ("STOPPING", "NOT_APPLICABLE"),
            ("STOPPED", "STOP_CHARGING"),
            ("STOPPED", "KEEP_CHARGING"),
            ("SHUTDOWN", "NOT_APPLICABLE"),
            ("TERMINATING", "NOT_APPLICABLE"),
            ("LAUNCH_FAILED", "NOT_APPLICABLE"),
            ("MEDITATING", "NOT_APPLICABLE"),
        ] {
            add(MachineSpec {
                state: state.to_owned(),
                stop_mode: mode.to_owned(),
                ..machine(&format!("state-{}-{}", state.to_lowercase(), mode.to_lowercase()))
            });
        }
        for charge_type in ["SPOTPAID", "UNDERWRITE", "CDCPAID", "BARTER", ""] {
            add(MachineSpec {
                charge_type: charge_type.to_owned(),
                ..machine(&format!("charge-{}", charge_type.to_lowercase()))
            });
        }
        add(MachineSpec {
            charge_type: "CDHPAID".to_owned(),
            region: "ap-shanghai".to_owned(),
            zone: "ap-shanghai-2".to_owned(),
            host: "host-0a1b2c3d".to_owned(),
            ..machine("charge-cdhpaid")
        });
        for flag in [
            "NOTIFY_AND_AUTO_RENEW",
            "NOTIFY_AND_MANUAL_RENEW",
            "DISABLE_NOTIFY_AND_MANUAL_RENEW",
        ] {
            add(MachineSpec {
                charge_type: "PREPAID".to_owned(),
                renew_flag: flag.to_owned(),
                expires: Some(self.hours_ago(-24 * 90)),
                ..machine(&format!("包年包月-{}", flag.to_lowercase()))
            });
        }
        for (name, percent) in [("covered", 100.0), ("half-covered", 50.0), ("hardly-covered", 49.0)] {
            add(MachineSpec {
                plan_coverage: Some(percent),
                ..machine(name)
            });
        }
        add(MachineSpec {
            instance_type: "GN99.48XLARGE960".to_owned(),
            ..machine("future")
        });
        for (name, states_gpus) in [("silent-slice", false), ("silent-type", false), ("cpu", true)] {
            let instance_type = match name {
                "silent-slice" => "GN7.LARGE20",
                "silent-type" => "GN99.48XLARGE960",
                _ => "S5.LARGE8",
            };
            add(MachineSpec {
                instance_type: instance_type.to_owned(),
                states_gpus,
                ..machine(name)
            });
        }
        for (number, text) in HOSTILE_TEXTS.iter().enumerate() {
            add(MachineSpec {
                tags: BTreeMap::from([("owner".to_owned(), (*text).to_owned())]),
                ..machine(&format!("{text}{number}"))
            });
        }
        for number in 0..3 {
            add(MachineSpec {
                cluster: "cls-0a1b2c3d".to_owned(),
                pool: "np-gpu".to_owned(),
                instance_type: "GN10X.2XLARGE40".to_owned(),
                ..machine(&format!("tke-node-{number}"))
            });
        }
    }

    fn fill(&self, random: &mut Random, count: usize) {
        for number in 0..count {
            let team = random.pick(TEAMS);
            let spot = Purchase::draw(random) == Purchase::Spot;
            let region = *random.pick(&REGIONS);
            let charge_type = if spot {
                "SPOTPAID"
            } else {
                random.pick_weighted(&[(70, "POSTPAID_BY_HOUR"), (30, "PREPAID")])
            };
            let state = random.pick_weighted(&[(92, "RUNNING"), (8, "STOPPED")]);
            let stop_mode = match *state {
                "STOPPED" => random.pick(&["STOP_CHARGING", "KEEP_CHARGING"]),
                _ => "NOT_APPLICABLE",
            };
            let prepaid_end = self.hours_ago(-24 * (1 + i64::try_from(random.below(300)).unwrap_or_default()));
            let renew_flag = match charge_type {
                "PREPAID" if random.chance(60) => "NOTIFY_AND_AUTO_RENEW",
                "PREPAID" => "NOTIFY_AND_MANUAL_RENEW",
                _ => "",
            };
            let spec = MachineSpec {
                name: format!("{}-{number:05}", machine_name(random, team)),
                region: region.to_owned(),
                zone: format!("{region}-{}", 1 + random.below(6)),
                instance_type: (*random.pick_weighted(&TYPES)).to_owned(),
                state: (*state).to_owned(),
                stop_mode: stop_mode.to_owned(),
                charge_type: charge_type.to_owned(),
                created: self.hours_ago(1 + i64::try_from(random.below(8000)).unwrap_or_default()),
                renew_flag: renew_flag.to_owned(),
                plan_coverage: (charge_type == "POSTPAID_BY_HOUR" && number % 4 == 0).then_some(100.0),
                expires: (charge_type == "PREPAID").then_some(prepaid_end),
                tags: BTreeMap::from([
                    ("team".to_owned(), team.name.to_owned()),
                    ("owner".to_owned(), team.owner.to_owned()),
                ]),
                ..MachineSpec::default()
            };
            let owner = if random.chance(60) { OWNER } else { SECOND };
            self.add_machine(owner, spec);
            if number % 10 == 0 {
                let cpu = MachineSpec {
                    name: format!("web-{number:05}"),
                    instance_type: "S5.LARGE8".to_owned(),
                    ..MachineSpec::default()
                };
                self.add_machine(owner, cpu);
            }
        }
    }

    fn hours_ago(&self, hours: i64) -> Timestamp {
        let created = self.created();
        let then = created
            .checked_sub(SignedDuration::from_hours(hours))
            .unwrap_or(created);
        // Whole seconds, as the service states them.
        Timestamp::from_second(then.as_second()).unwrap_or(then)
    }
}
