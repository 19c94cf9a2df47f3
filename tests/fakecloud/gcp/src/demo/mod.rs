//! The demo fleet: a small company with everything that Google Cloud can bill.

mod capacity;
mod showcase;

use gpuwatch_fakecloud_core::fleet::{Purchase, TEAMS, Team, machine_name};
use gpuwatch_fakecloud_core::random::{Random, fnv1a};
use jiff::{SignedDuration, Timestamp};

use crate::world::{InstanceSpec, ProjectSpec, ProjectState, Provisioning, Status, TpuSpec, World, usual_regions};

const PLATFORM: &str = "acme-platform";
const RESEARCH: &str = "acme-ml-research";
const INFERENCE: &str = "acme-inference-apac";
const CLOSED: &str = "acme-retired-poc";

/// The organization of the demo company.
const ORGANIZATION: &str = "400000000001";

/// Where the bulk of the fleet runs, by weight: one project is large enough to
/// need several pages.
const PLACES: &[(u64, (&str, &str))] = &[
    (34, (RESEARCH, "us-central1-a")),
    (12, (RESEARCH, "us-central1-c")),
    (12, (RESEARCH, "europe-west4-b")),
    (12, (INFERENCE, "asia-southeast1-b")),
    (10, (INFERENCE, "asia-northeast1-a")),
    (8, (INFERENCE, "asia-east1-c")),
    (7, (PLATFORM, "us-east4-a")),
    (5, (PLATFORM, "us-west1-b")),
];

/// A machine type and the accelerators attached to it.
type Shape = (&'static str, Option<(&'static str, u32)>);

/// What the bulk consists of, by weight.
const SHAPES: &[(u64, Shape)] = &[
    (20, ("g2-standard-8", None)),
    (10, ("g2-standard-24", None)),
    (6, ("g2-standard-96", None)),
    (8, ("g4-standard-48", None)),
    (4, ("g4-standard-12", None)),
    (12, ("n1-standard-8", Some(("nvidia-tesla-t4", 1)))),
    (4, ("n1-standard-32", Some(("nvidia-tesla-t4", 4)))),
    (4, ("n1-standard-16", Some(("nvidia-tesla-v100", 2)))),
    (8, ("a2-highgpu-1g", None)),
    (5, ("a2-highgpu-8g", None)),
    (4, ("a2-ultragpu-4g", None)),
    (7, ("a3-highgpu-8g", None)),
    (3, ("a3-megagpu-8g", None)),
    (2, ("a3-ultragpu-8g", None)),
    (2, ("a4-highgpu-8g", None)),
    (1, ("ct5lp-hightpu-4t", None)),
];

/// Types of TPU nodes, with their generation and topology.
const NODES: &[(&str, Option<(&str, &str)>)] = &[
    ("v5litepod-8", Some(("V5LITE_POD", "2x4"))),
    ("v5litepod-4", None),
    ("v6e-8", Some(("V6E", "2x4"))),
    ("v4-8", None),
];

impl World {
    /// The demo fleet: about `instances` accelerator machines in three
    /// projects and seven regions, the same for the same seed but for times,
    /// which are relative to now.
    pub fn demo(seed: u64, instances: usize) -> Self {
        Self::demo_at(seed, instances, Timestamp::now())
    }

    /// As [`World::demo`], with times relative to `now`.
    pub fn demo_at(seed: u64, instances: usize, now: Timestamp) -> Self {
        let mut demo = Demo::new(seed, now);
        demo.showcase();
        demo.capacity();
        demo.hostile();
        demo.cpu_fleet(instances / 10 + 4);
        let special = demo.world.truth().len();
        demo.bulk(instances.saturating_sub(special), true);
        demo.world
    }

    /// A fleet for comparing clients: exactly `instances` machines of Compute
    /// Engine with accelerators, in every billing mode and state, besides
    /// machines without any. Only texts that Google allows, and no TPU nodes,
    /// which Google's own client for Python cannot read over HTTP.
    pub fn fleet(seed: u64, instances: usize) -> Self {
        let mut demo = Demo::new(seed, Timestamp::now());
        demo.states();
        demo.purchases();
        demo.odd_types();
        demo.owned_by_programs();
        demo.capacity();
        demo.cpu_fleet(instances / 20 + 4);
        let special = demo.world.truth().len();
        demo.bulk(instances.saturating_sub(special), false);
        demo.world
    }
}

struct Demo {
    world: World,
    random: Random,
    now: Timestamp,
}

impl Demo {
    /// The hierarchy: an organization, two folders, four projects.
    fn new(seed: u64, now: Timestamp) -> Self {
        let world = World::seeded(usual_regions(), seed, now);
        let organization = world.add_organization(ORGANIZATION, "acme.example");
        let folder = world.add_folder("400000000002", &organization, "Machine learning");
        let nested = world.add_folder("400000000003", &folder, "推理");
        world.add_project(PLATFORM, ProjectSpec::named("Platform \"core\"").below(&organization));
        world.add_project(RESEARCH, ProjectSpec::named("ML research").below(&folder));
        world.add_project(INFERENCE, ProjectSpec::named("推理服务").below(&nested));
        let closed = ProjectSpec {
            state: ProjectState::DeleteRequested,
            ..ProjectSpec::named("Retired PoC").below(&organization)
        };
        world.add_project(CLOSED, closed);
        // Nobody switches on what is not used.
        world.disable_api(PLATFORM, "tpu.googleapis.com");
        Self {
            world,
            random: Random::stream(seed, "gcp demo"),
            now,
        }
    }

    /// Machines without accelerators, which must never show.
    fn cpu_fleet(&mut self, count: usize) {
        for number in 0..count {
            let (project, zone) = *self.random.pick_weighted(PLACES);
            let machine_type = *self.random.pick(&[
                "e2-standard-4",
                "n2-standard-8",
                "c3-standard-22",
                "n1-standard-4",
                "n1-custom-8-30720",
                "c2-standard-8",
            ]);
            let spec = InstanceSpec::of(machine_type)
                .named(&format!("web-{number}"))
                .label("team", "platform");
            self.launch(project, zone, spec);
        }
    }

    /// The ordinary machines, and with `nodes` one TPU node to about 30.
    fn bulk(&mut self, count: usize, nodes: bool) {
        let node = count / 30;
        for number in 0..count {
            if nodes && number < node {
                self.node();
                continue;
            }
            let (project, zone) = *self.random.pick_weighted(PLACES);
            let (machine_type, attached) = *self.random.pick_weighted(SHAPES);
            let team = self.random.pick(TEAMS);
            let mut spec = InstanceSpec::of(machine_type);
            if let Some((accelerator, count)) = attached {
                spec = spec.attached(accelerator, count);
            }
            spec.provisioning = match Purchase::draw(&mut self.random) {
                Purchase::Spot => Provisioning::Spot,
                Purchase::OnDemand => Provisioning::Standard,
            };
            if spec.provisioning == Provisioning::Standard && self.random.chance(4) {
                spec.status = Status::Terminated;
                spec.stopped = Some(self.ago(24 * 3));
            }
            let spec = self.named(spec, team);
            self.launch(project, zone, spec);
        }
    }

    fn node(&mut self) {
        let team = self.random.pick(TEAMS);
        let (accelerator_type, config) = *self.random.pick(NODES);
        let mut spec = TpuSpec {
            spot: Purchase::draw(&mut self.random) == Purchase::Spot,
            created: Some(self.launch_time()),
            ..TpuSpec::of(accelerator_type)
        };
        if let Some((generation, topology)) = config {
            spec = spec.shaped(generation, topology);
        }
        let spec = spec.label("team", team.name).label("owner", &label(team.owner));
        self.world.add_tpu(RESEARCH, "us-central1-a", spec);
    }

    fn named(&mut self, spec: InstanceSpec, team: &Team) -> InstanceSpec {
        let name = ascii(&machine_name(&mut self.random, team));
        let spec = spec.label("team", team.name).label("owner", &label(team.owner));
        spec.named(&name)
    }

    fn launch(&mut self, project: &str, zone: &str, mut spec: InstanceSpec) -> String {
        if spec.created.is_none() {
            let created = self.launch_time();
            spec.created = Some(created);
            // Every third has been started anew since.
            if self.random.chance(33) {
                spec.started = Some(created + SignedDuration::from_mins(10));
            }
        }
        self.world.add_instance(project, zone, spec).unwrap_or_default()
    }

    /// Between a quarter of an hour and 60 days ago, by whole seconds.
    fn launch_time(&mut self) -> Timestamp {
        let seconds = i64::try_from(900 + self.random.below(60 * 86_400)).unwrap_or_default();
        let time = self.now - SignedDuration::from_secs(seconds);
        Timestamp::from_second(time.as_second()).unwrap_or(time)
    }

    fn ago(&self, hours: i64) -> Timestamp {
        self.now - SignedDuration::from_hours(hours)
    }
}

/// Names of machines are of a few letters only: other words get a short
/// stand-in.
fn ascii(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let (workload, number) = name.rsplit_once('-').unwrap_or((name, "0"));
    let hash = format!("{:08x}", fnv1a(workload.as_bytes()) & 0xffff_ffff);
    format!("job-{hash}-{number}")
}

/// Values of labels have no dots.
fn label(text: &str) -> String {
    text.replace('.', "-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    fn words(world: &World) -> (BTreeSet<(&'static str, &'static str)>, BTreeSet<&'static str>) {
        let truth = world.truth();
        let modes = truth.iter().map(|row| (row.billing_mode, row.billing_detail)).collect();
        (modes, truth.iter().map(|row| row.state).collect())
    }

    #[test]
    fn same_seed_gives_the_same_fleet_on_any_date() {
        let later = now() + SignedDuration::from_hours(24 * 100);
        let facts = |seed, now| -> Vec<_> {
            let rows = World::demo_at(seed, 200, now).truth().into_iter();
            rows.map(|row| (row.id, row.instance_type, row.billing_mode, row.state, row.name))
                .collect()
        };
        assert_eq!(facts(7, now()), facts(7, later));
        assert_ne!(facts(7, now()), facts(8, now()));
    }

    #[test]
    fn fleets_have_the_size_asked_for_and_every_mode_and_state() {
        for world in [
            World::demo_at(1, 200, now()),
            World::demo_at(1, 3_000, now()),
            World::fleet(1, 400),
        ] {
            let (modes, states) = words(&world);
            for mode in [
                ("on_demand", ""),
                ("on_demand", "flex_start"),
                ("spot", ""),
                ("reserved", "reservation_bound"),
                ("reserved", "calendar"),
                ("reserved", "committed_use"),
                ("unknown", "BRAND_NEW_MODEL"),
            ] {
                assert!(modes.contains(&mode), "{mode:?}");
            }
            let all = ["running", "starting", "stopped", "stopped_billed", "stopping"];
            assert_eq!(states, BTreeSet::from(all));
            let truth = world.truth();
            for share in [0.125, 0.25, 0.5] {
                assert!(truth.iter().any(|row| row.gpus == Some(share)), "{share}");
            }
            assert!(truth.iter().any(|row| row.gpus.is_none()));
            assert!(world.instances().len() > truth.len());
        }
        assert_eq!(World::demo_at(1, 200, now()).truth().len(), 200);
        assert_eq!(World::demo_at(1, 3_000, now()).truth().len(), 3_000);
        assert_eq!(World::fleet(1, 400).truth().len(), 400);
    }

    #[test]
    fn commitments_have_used_and_unused_units() {
        let commitments = World::demo_at(1, 150, now()).commitments();
        let counts: Vec<_> = commitments
            .iter()
            .map(|row| (row.kind, row.instance_type.as_str(), row.units, row.used))
            .collect();
        for row in [
            ("committed_use", "nvidia-h100-80gb", Some(64), Some(48)),
            ("reservation", "a3-highgpu-8g", Some(8), Some(6)),
            ("reservation", "g2-standard-96", Some(5), Some(3)),
            ("reservation", "a4-highgpu-8g", Some(4), Some(3)),
            ("reservation", "n1-standard-8", Some(3), Some(1)),
        ] {
            assert!(counts.contains(&row), "{row:?} in {counts:?}");
        }
        assert_eq!(counts.len(), 5);
    }

    #[test]
    fn ids_addresses_and_names_are_distinct() {
        let instances = World::demo_at(1, 2_000, now()).instances();
        let distinct = |key: fn(&crate::Instance) -> String| instances.iter().map(key).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(|instance| instance.id.clone()), instances.len());
        assert_eq!(distinct(|instance| instance.private_ip.clone()), instances.len());
        let large = instances.iter().filter(|instance| instance.id.parse::<i64>().is_err());
        assert!(large.count() > 100, "ids above the largest signed number");
    }
}
