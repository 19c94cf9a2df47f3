//! Puts the samples of one card together.

use std::collections::{BTreeMap, BTreeSet};

use gpuwatch_inventory::{Activity, Bucket, GpuUsage, Holder, Hour, Measure, Signal, as_ratio};
use jiff::Timestamp;

use crate::{
    answer::{Labels, Sample, Series},
    device::Slice,
    family::Quantity,
};

/// A value and its time in milliseconds.
type Point = (i64, f64);

/// What one round read of a card.
#[derive(Debug, Default)]
pub struct Card {
    /// The maker's id.
    pub uuid: String,
    /// The index within the machine.
    pub index: String,
    /// Series about errors, to be read in the order of time.
    pub errors: Vec<(Quantity, Series)>,
    newest: BTreeMap<Quantity, Point>,
    slices: BTreeSet<String>,
    is_sliced: bool,
    holders: BTreeMap<(String, String), Holder>,
    buckets: BTreeMap<(Measure, Hour), Bucket>,
}

/// Samples of one quantity of one card out of one answer: several series when
/// the card is shared or sliced.
#[derive(Debug, Default)]
pub struct Readings {
    whole: Vec<Point>,
    slices: BTreeMap<Slice, Vec<Point>>,
}

impl Readings {
    /// Adds a series; values that are no numbers are left out.
    pub fn add(&mut self, slice: Option<Slice>, samples: impl Iterator<Item = Sample>, scale: f64) {
        let points = samples
            .filter(|sample| sample.value.is_finite())
            .map(|s| (s.at, s.value * scale));
        match slice {
            None => self.whole.extend(points),
            Some(slice) => self.slices.entry(slice).or_default().extend(points),
        }
    }

    /// One value per time. Pods that share a card repeat its figure: the
    /// highest counts, they are never added up. Slices are added up: ratios by
    /// their share of the card's compute, so that what nobody uses is idle.
    fn combined(self, quantity: Quantity) -> Vec<Point> {
        if self.slices.is_empty() {
            return highest_per_time(self.whole);
        }
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for (slice, points) in self.slices {
            let weight = if is_ratio(quantity) {
                f64::from(slice.size) / f64::from(slice.of.max(1))
            } else {
                1.0
            };
            for (at, value) in highest_per_time(points) {
                *sums.entry(at).or_default() += value * weight;
            }
        }
        sums.into_iter().collect()
    }
}

fn highest_per_time(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    points.dedup_by_key(|point| point.0);
    points
}

const fn is_ratio(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::Signal(_)
            | Quantity::MemoryRatio
            | Quantity::Tensor
            | Quantity::Fp64
            | Quantity::Dram
            | Quantity::Encoder
            | Quantity::Decoder
    )
}

/// The measure whose every sample goes into the history; of the others only
/// the newest of a round does.
const fn measure(quantity: Quantity) -> Option<Measure> {
    match quantity {
        Quantity::Signal(signal) => Some(Measure::of(signal)),
        Quantity::Tensor => Some(Measure::TensorActive),
        Quantity::Fp64 => Some(Measure::Fp64Active),
        Quantity::Dram => Some(Measure::DramActive),
        Quantity::Power => Some(Measure::PowerWatts),
        _ => None,
    }
}

impl Card {
    /// Takes a quantity's readings. Samples up to `folded` are in the history
    /// already. Says how many values were out of range.
    pub fn take(&mut self, quantity: Quantity, readings: Readings, folded: i64) -> u64 {
        if !readings.slices.is_empty() {
            self.is_sliced = true;
            self.slices.extend(readings.slices.keys().map(|slice| slice.id.clone()));
        }
        let mut bad = 0;
        for (at, value) in readings.combined(quantity) {
            let value = if is_ratio(quantity) {
                as_ratio(value)
            } else {
                (value >= 0.0).then_some(value)
            };
            let Some(value) = value else {
                bad += 1;
                continue;
            };
            let newest = self.newest.entry(quantity).or_insert((at, value));
            if at >= newest.0 {
                *newest = (at, value);
            }
            if at > folded
                && let Some(measure) = measure(quantity)
            {
                self.fold(measure, at, value);
            }
        }
        bad
    }

    fn fold(&mut self, measure: Measure, at: i64, value: f64) {
        let Ok(time) = Timestamp::from_millisecond(at) else {
            return;
        };
        let Some(part) = Bucket::of(measure, time, value) else {
            return;
        };
        self.buckets
            .entry((measure, Hour::of(time)))
            .and_modify(|bucket| bucket.add(&part))
            .or_insert(part);
    }

    /// Notes that the driver says that the card is cut into slices.
    pub fn set_sliced(&mut self) {
        self.is_sliced = true;
    }

    /// Notes who holds the card by a series of it.
    pub fn held_by(&mut self, labels: &Labels) {
        let holder = Holder {
            namespace: labels
                .first(&["exported_namespace", "namespace", "pod_namespace"])
                .into(),
            pod: labels.first(&["exported_pod", "pod", "pod_name"]).into(),
            container: labels
                .first(&["exported_container", "container", "container_name"])
                .into(),
            job: labels.get("hpc_job").into(),
        };
        // Without an exported_ label the pod is that of the workload or, on a
        // card that nobody holds, the exporter's own.
        let is_exporter =
            labels.get("exported_pod").is_empty() && ["exporter", "dcgm"].iter().any(|word| holder.pod.contains(word));
        if (!holder.pod.is_empty() && !is_exporter) || !holder.job.is_empty() {
            self.holders
                .insert((holder.namespace.to_string(), holder.pod.to_string()), holder);
        }
    }

    /// Time of the newest value.
    #[must_use]
    pub fn newest(&self) -> Option<i64> {
        self.newest.values().map(|(at, _)| *at).max()
    }

    /// The reading to show; `None` when there is no value. `memory` is what a
    /// card of the instance has by the catalogue, in bytes.
    #[must_use]
    pub fn reading(&mut self, gpu: &str, memory: Option<f64>, folded: i64) -> Option<GpuUsage> {
        if self.is_sliced {
            // The driver cannot measure it then and says 0 or nothing.
            self.newest.remove(&Quantity::Signal(Signal::GpuUtil));
            self.buckets.retain(|(measure, _), _| *measure != Measure::GpuUtil);
        }
        let newest = self.newest()?;
        let at = Timestamp::from_millisecond(newest).ok()?;
        let value = |quantity| self.newest.get(&quantity).map(|(_, value)| *value);
        let mut activity = Activity::default();
        for signal in Signal::ALL {
            if let Some(ratio) = value(Quantity::Signal(*signal)) {
                activity.set(*signal, ratio);
            }
        }
        let used = value(Quantity::MemoryUsed);
        let parts = value(Quantity::MemoryFree).zip(used).map(|(free, used)| {
            let reserved = value(Quantity::MemoryReserved).unwrap_or(0.0);
            free + used + reserved
        });
        let reported = value(Quantity::MemoryTotal).or(parts);
        let total = if self.slices.is_empty() {
            reported.or(memory)
        } else {
            // Slices do not say what is outside of them.
            reported.into_iter().chain(memory).reduce(f64::max)
        };
        let ratio = used
            .zip(total)
            .filter(|(_, total)| *total > 0.0)
            .and_then(|(used, total)| as_ratio(used / total));
        let video = value(Quantity::Encoder)
            .into_iter()
            .chain(value(Quantity::Decoder))
            .reduce(f64::max);
        let pcie = value(Quantity::PcieSent)
            .zip(value(Quantity::PcieReceived))
            .map(|(sent, received)| sent + received);
        let usage = GpuUsage {
            uuid: self.uuid.as_str().into(),
            activity,
            memory_used_bytes: used,
            memory_total_bytes: total,
            memory_used: value(Quantity::MemoryRatio).or(ratio),
            tensor_active: value(Quantity::Tensor),
            fp64_active: value(Quantity::Fp64),
            dram_active: value(Quantity::Dram),
            video_active: video,
            power_watts: value(Quantity::Power),
            pcie_bytes_per_second: pcie,
            slices: (!self.slices.is_empty()).then(|| u32::try_from(self.slices.len()).unwrap_or(u32::MAX)),
            holders: self.holders.values().cloned().collect(),
            ..GpuUsage::new(gpu.into(), at)
        };
        if newest > folded {
            for (measure, value) in [
                (Measure::MemoryUsed, usage.memory_used),
                (Measure::VideoActive, usage.video_active),
                (Measure::PcieBytes, usage.pcie_bytes_per_second),
            ] {
                if let Some(value) = value {
                    self.fold(measure, newest, value);
                }
            }
        }
        Some(usage)
    }

    /// What goes into the history.
    #[must_use]
    pub fn into_buckets(self) -> BTreeMap<(Measure, Hour), Bucket> {
        self.buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(points: &[(i64, f64)]) -> impl Iterator<Item = Sample> {
        points.iter().map(|(at, value)| Sample { at: *at, value: *value })
    }

    fn slice(id: &str, size: u32) -> Slice {
        Slice {
            id: id.to_owned(),
            size,
            of: 7,
        }
    }

    // P56
    #[test]
    fn slices_count_by_their_weight_and_the_drivers_zero_counts_not_at_all() {
        let mut card = Card::default();
        let mut engine = Readings::default();
        engine.add(Some(slice("1", 3)), samples(&[(1000, 0.7)]), 1.0);
        engine.add(Some(slice("2", 2)), samples(&[(1000, 0.5)]), 1.0);
        card.take(Quantity::Signal(Signal::GrEngineActive), engine, 0);
        let mut driver = Readings::default();
        driver.add(None, samples(&[(1000, 0.0)]), 1.0);
        card.take(Quantity::Signal(Signal::GpuUtil), driver, 0);
        let usage = card.reading("0", None, 0).expect("a reading");
        let (signal, ratio) = usage.activity.strongest().expect("active");
        assert_eq!(signal, Signal::GrEngineActive);
        assert!((ratio - (3.0 * 0.7 + 2.0 * 0.5) / 7.0).abs() < 1e-12);
        assert_eq!((usage.activity.get(Signal::GpuUtil), usage.slices), (None, Some(2)));
        assert!(
            card.into_buckets()
                .keys()
                .all(|(measure, _)| *measure == Measure::GrEngineActive)
        );
    }

    // P36
    #[test]
    fn pods_that_share_a_card_repeat_its_figure() {
        let mut card = Card::default();
        let mut shared = Readings::default();
        for value in [0.4, 0.4, 0.1] {
            shared.add(None, samples(&[(1000, value), (2000, value)]), 1.0);
        }
        card.take(Quantity::Signal(Signal::GpuUtil), shared, 0);
        let usage = card.reading("0", None, 0).expect("a reading");
        assert_eq!(usage.activity.strongest(), Some((Signal::GpuUtil, 0.4)));
        let buckets = card.into_buckets();
        let bucket = buckets.values().next().expect("one");
        assert_eq!((bucket.samples, bucket.mean), (2, 0.4));
    }

    #[test]
    fn what_is_in_the_history_is_not_folded_again_but_shown() {
        let mut card = Card::default();
        let mut readings = Readings::default();
        readings.add(None, samples(&[(1000, 0.1), (2000, 0.2)]), 1.0);
        card.take(Quantity::Signal(Signal::SmActive), readings, 2000);
        assert_eq!(
            card.reading("0", None, 2000).map(|usage| usage.at.as_millisecond()),
            Some(2000)
        );
        assert!(card.into_buckets().is_empty());
    }

    #[test]
    fn memory_is_a_share_of_all_there_is_and_garbage_is_counted() {
        let mut card = Card::default();
        let mut one = |quantity, value| {
            let mut readings = Readings::default();
            readings.add(None, samples(&[(1000, value)]), 1.0);
            card.take(quantity, readings, 0)
        };
        assert_eq!(one(Quantity::MemoryUsed, 30.0), 0);
        assert_eq!(one(Quantity::MemoryFree, 60.0), 0);
        assert_eq!(one(Quantity::MemoryReserved, 10.0), 0);
        assert_eq!(one(Quantity::Power, -1.0), 1);
        assert_eq!(one(Quantity::Signal(Signal::Vendor), 1e300), 1);
        let usage = card.reading("0", None, 0).expect("a reading");
        assert_eq!((usage.memory_used, usage.memory_total_bytes), (Some(0.3), Some(100.0)));
        assert!(usage.activity.is_empty() && usage.power_watts.is_none());
    }
}
