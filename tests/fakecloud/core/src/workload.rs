//! What runs on simulated accelerators: the truth behind exporters, telemetry
//! servers and the clouds' own monitoring.
//!
//! Every figure is a pure function of instance, card and time, and stays the
//! same within a slot of five minutes of UTC: nothing has to be stored to show
//! two weeks of it, and two observers that look at different seconds of one
//! slot see the same.

use jiff::{Timestamp, ToSpan as _, tz::Offset};

use crate::random::Random;

/// Seconds for which figures stand still.
pub const SLOT_SECONDS: i64 = 300;

/// What an accelerator is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// Busy around the clock, with short pauses for checkpoints.
    Training,
    /// A model that answers few requests.
    LightInference,
    /// A model in memory that nobody asks anything.
    MemoryResidentIdle,
    /// Busy from 02:00 to 05:00 UTC, else empty.
    NightlyBatch,
    /// Busy from 09:00 to 18:00 China time on working days, else empty.
    WorkingHours,
    /// Waits for its input most of the time: busy processors, idle GPU.
    DataStarved,
    /// Video engines busy, compute idle.
    Video,
    /// Cut into hardware slices (MIG), some in use, some not.
    MigShared,
    /// Cards shared by several pods (time-slicing).
    TimeSliced,
    /// Work goes on, but nothing measures it any more since two hours.
    DeadAgent,
    /// Training on a card that reports errors now and then.
    XidErrors,
    /// Nothing runs at all.
    Empty,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 12] = [
        Self::Training,
        Self::LightInference,
        Self::MemoryResidentIdle,
        Self::NightlyBatch,
        Self::WorkingHours,
        Self::DataStarved,
        Self::Video,
        Self::MigShared,
        Self::TimeSliced,
        Self::DeadAgent,
        Self::XidErrors,
        Self::Empty,
    ];
}

/// Who measures an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observer {
    /// An exporter, read by a Prometheus-compatible server.
    Exporter,
    /// The cloud's monitoring agent in the guest.
    CloudAgent,
    /// Nobody looks at its accelerators.
    Nobody,
}

/// True figures of one card, each 0 to 1 unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CardTruth {
    /// Share of time a kernel ran.
    pub gpu_util: f64,
    /// Share of time the engine was active.
    pub engine_active: f64,
    /// Share of time the multiprocessors had work.
    pub sm_active: f64,
    /// Share of time the matrix units were busy.
    pub tensor_active: f64,
    /// Share of time the memory interface was busy.
    pub dram_active: f64,
    /// Encoder.
    pub encoder: f64,
    /// Decoder.
    pub decoder: f64,
    /// Occupied share of memory.
    pub memory_used: f64,
    /// Share of the power limit.
    pub power: f64,
    /// Traffic over PCI Express, bytes per second.
    pub pcie_bytes_per_second: f64,
    /// Errors (Xid 31) since 2026-01-01.
    pub xids: u64,
}

/// True figures of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostTruth {
    /// Share of all cores in use.
    pub cpu: f64,
    /// Share of main memory in use.
    pub memory_used: f64,
    /// Bytes per second received.
    pub received: f64,
    /// Bytes per second sent.
    pub sent: f64,
}

/// What runs on one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// What it does.
    pub shape: Shape,
    /// Who measures it.
    pub observer: Observer,
    seed: u64,
}

impl Workload {
    /// A workload of this shape; the seed tells two of a shape apart.
    #[must_use]
    pub fn new(shape: Shape, observer: Observer, seed: u64) -> Self {
        Self { shape, observer, seed }
    }

    /// The workload that an instance of a demo fleet has, by its id. Two
    /// thirds have an exporter, a quarter only the cloud's agent.
    #[must_use]
    pub fn of_instance(id: &str) -> Self {
        let mut random = Random::stream(1, id);
        let shape = *random.pick_weighted(&[
            (24, Shape::Training),
            (14, Shape::LightInference),
            (8, Shape::MemoryResidentIdle),
            (8, Shape::NightlyBatch),
            (14, Shape::WorkingHours),
            (7, Shape::DataStarved),
            (5, Shape::Video),
            (6, Shape::MigShared),
            (4, Shape::TimeSliced),
            (3, Shape::DeadAgent),
            (3, Shape::XidErrors),
            (4, Shape::Empty),
        ]);
        let observer = match shape {
            // Only an exporter shows slices, sharing pods and errors.
            Shape::MigShared | Shape::TimeSliced | Shape::XidErrors => Observer::Exporter,
            _ => *random.pick_weighted(&[
                (66, Observer::Exporter),
                (25, Observer::CloudAgent),
                (9, Observer::Nobody),
            ]),
        };
        Self::new(shape, observer, random.next())
    }

    /// Whether its observer delivers figures at a time; `now` is the time at
    /// which somebody asks.
    #[must_use]
    pub fn is_observed(&self, at: Timestamp, now: Timestamp) -> bool {
        self.observer != Observer::Nobody
            && (self.shape != Shape::DeadAgent || now.checked_sub(2.hours()).is_ok_and(|died| at < died))
    }

    /// The figures of a card.
    #[must_use]
    pub fn card(&self, card: u32, at: Timestamp) -> CardTruth {
        let mut random = self.random(u64::from(card) + 1, at);
        let work = self.work(card, at, &mut random);
        let resident = match self.shape {
            Shape::Empty => 0.0,
            Shape::MemoryResidentIdle => 0.87,
            Shape::LightInference => 0.62,
            Shape::NightlyBatch | Shape::WorkingHours if work < 0.02 => 0.003,
            Shape::DataStarved => 0.35,
            Shape::Video => 0.12,
            _ => 0.55 + 0.3 * work,
        };
        let video = if self.shape == Shape::Video { 0.7 } else { 0.0 };
        let xids = if self.shape == Shape::XidErrors && card == 0 {
            // One every three hours.
            u64::try_from((at.as_second() - 1_767_225_600).div_euclid(3 * 3600)).unwrap_or(0)
        } else {
            0
        };
        CardTruth {
            // A kernel runs most of the time, however little it does.
            gpu_util: hundredths((work * 1.6).min(1.0)),
            engine_active: thousandths(work),
            sm_active: thousandths(work * 0.8),
            tensor_active: thousandths(if self.is_matrix_work() { work * 0.45 } else { 0.0 }),
            dram_active: thousandths(work * 0.5),
            encoder: hundredths(video),
            decoder: hundredths(video * 0.8),
            memory_used: thousandths(resident),
            power: thousandths(0.1 + 0.8 * work),
            pcie_bytes_per_second: (work * 2e9).round(),
            xids,
        }
    }

    /// The figures of the machine.
    #[must_use]
    pub fn host(&self, at: Timestamp) -> HostTruth {
        let mut random = self.random(0, at);
        let work = self.work(0, at, &mut random);
        let cpu = match self.shape {
            Shape::DataStarved => 0.9,
            Shape::Video => 0.4,
            Shape::Empty | Shape::MemoryResidentIdle => 0.01,
            _ => 0.02 + 0.25 * work,
        };
        HostTruth {
            cpu: thousandths(cpu),
            memory_used: thousandths(0.1 + 0.4 * cpu),
            received: (5e3 + work * 3e8).round(),
            sent: (4e3 + work * 1e8).round(),
        }
    }

    /// Compute slices of a card of seven that have work, for [`Shape::MigShared`]:
    /// (profile, compute slices, busy share). What is not listed is not cut.
    #[must_use]
    pub fn slices(&self, card: u32, at: Timestamp) -> [(&'static str, u32, f64); 3] {
        let mut random = self.random(u64::from(card) + 1, at);
        let first = 0.6 + 0.2 * fraction(&mut random);
        let second = 0.2 * fraction(&mut random);
        [
            ("3g.40gb", 3, thousandths(first)),
            ("2g.20gb", 2, thousandths(second)),
            ("1g.10gb", 1, 0.0),
        ]
    }

    fn is_matrix_work(&self) -> bool {
        !matches!(
            self.shape,
            Shape::Video | Shape::DataStarved | Shape::Empty | Shape::MemoryResidentIdle
        )
    }

    /// Share of time in which the engine of a card has work.
    fn work(&self, card: u32, at: Timestamp, random: &mut Random) -> f64 {
        let noise = fraction(random);
        let busy = 0.82 + 0.15 * noise;
        match self.shape {
            // Saving a checkpoint takes one slot in four hours.
            Shape::Training | Shape::DeadAgent | Shape::XidErrors => {
                if at.as_second().div_euclid(SLOT_SECONDS).rem_euclid(48) == 7 {
                    0.05
                } else {
                    busy
                }
            }
            Shape::LightInference => 0.03 + 0.09 * noise,
            Shape::MemoryResidentIdle | Shape::Empty => 0.0,
            Shape::NightlyBatch => when((2..5).contains(&hour_of_day(at, 0)), busy),
            Shape::WorkingHours => {
                let working = (9..18).contains(&hour_of_day(at, 8)) && is_working_day(at, 8);
                when(working, 0.35 + 0.4 * noise)
            }
            Shape::DataStarved => 0.08 + 0.12 * noise,
            Shape::Video => 0.006,
            Shape::MigShared => {
                let slices = self.slices(card, at);
                let busy = slices.iter().map(|(_, slices, busy)| f64::from(*slices) * busy);
                busy.sum::<f64>() / 7.0
            }
            Shape::TimeSliced => 0.3 + 0.3 * noise,
        }
    }

    fn random(&self, stream: u64, at: Timestamp) -> Random {
        let slot = at.as_second().div_euclid(SLOT_SECONDS);
        let mut random =
            Random::new(self.seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ slot.cast_unsigned().rotate_left(17));
        random.next();
        random
    }
}

fn when(is_so: bool, value: f64) -> f64 {
    if is_so { value } else { 0.0 }
}

/// 0 to 1.
fn fraction(random: &mut Random) -> f64 {
    f64::from(u32::try_from(random.below(1000)).unwrap_or(0)) / 999.0
}

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn hour_of_day(at: Timestamp, offset: i8) -> i8 {
    Offset::constant(offset).to_datetime(at).hour()
}

fn is_working_day(at: Timestamp, offset: i8) -> bool {
    Offset::constant(offset)
        .to_datetime(at)
        .weekday()
        .to_monday_one_offset()
        <= 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn figures_stand_still_within_a_slot_and_move_between_slots() {
        let workload = Workload::new(Shape::Training, Observer::Exporter, 5);
        let figures = |text| workload.card(0, at(text));
        assert_eq!(figures("2026-12-01T10:00:00Z"), figures("2026-12-01T10:04:59Z"));
        assert_ne!(figures("2026-12-01T10:00:00Z"), figures("2026-12-01T10:05:00Z"));
        assert_ne!(
            workload.card(1, at("2026-12-01T10:00:00Z")),
            figures("2026-12-01T10:00:00Z")
        );
    }

    #[test]
    fn working_hours_are_those_of_china_on_working_days() {
        let workload = Workload::new(Shape::WorkingHours, Observer::Exporter, 5);
        let works = |text| workload.card(0, at(text)).engine_active > 0.3;
        assert!(works("2026-12-01T01:00:00Z") && works("2026-12-01T09:55:00Z"));
        assert!(!works("2026-12-01T10:00:00Z") && !works("2026-11-30T22:00:00Z"));
        assert!(!works("2026-11-28T04:00:00Z"), "a Saturday");
    }

    #[test]
    fn all_figures_are_in_range_whatever_the_shape_and_time() {
        for (number, shape) in Shape::ALL.into_iter().enumerate() {
            let workload = Workload::new(shape, Observer::Exporter, number as u64);
            for slot in 0..2016 {
                let time = Timestamp::from_second(1_767_225_600 + slot * SLOT_SECONDS).expect("in range");
                for card in 0..2 {
                    let c = workload.card(card, time);
                    let ratios = [
                        c.gpu_util,
                        c.engine_active,
                        c.sm_active,
                        c.tensor_active,
                        c.dram_active,
                        c.encoder,
                        c.decoder,
                        c.memory_used,
                        c.power,
                    ];
                    assert!(ratios.iter().all(|r| (0.0..=1.0).contains(r)), "{shape:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn every_shape_and_every_observer_occurs_in_a_demo_fleet() {
        let all: Vec<Workload> = (0..600).map(|n| Workload::of_instance(&format!("i-{n}"))).collect();
        for shape in Shape::ALL {
            assert!(all.iter().any(|w| w.shape == shape), "{shape:?}");
        }
        for observer in [Observer::Exporter, Observer::CloudAgent, Observer::Nobody] {
            assert!(all.iter().any(|w| w.observer == observer), "{observer:?}");
        }
    }

    #[test]
    fn a_dead_agent_has_shown_nothing_for_two_hours() {
        let workload = Workload::new(Shape::DeadAgent, Observer::Exporter, 1);
        let now = at("2026-12-01T12:00:00Z");
        assert!(workload.is_observed(at("2026-12-01T09:59:00Z"), now));
        assert!(!workload.is_observed(at("2026-12-01T10:00:00Z"), now));
    }
}
