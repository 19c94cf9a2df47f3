//! AWS Neuron: cores are shown only while a process has loaded them, so that a
//! machine with nothing on its cores has no core series at all. Where the
//! exporter is there, absence is a measured 0.

use std::collections::{BTreeMap, HashMap};

use gpuwatch_inventory::{Activity, GpuUsage, Signal, as_ratio};
use jiff::Timestamp;

use crate::answer::Series;

/// The family's word.
pub const WORD: &str = "neuron";

const CORES: &str = "neuroncore_utilization_ratio";
const HARDWARE: &str = "neuron_hardware_info";
const EXPORTER: &str = "instance_info";

/// Metrics that are read.
pub const NAMES: &[&str] = &[CORES, HARDWARE, EXPORTER];

/// What tells the exporter's metrics from others' of the same name.
#[must_use]
pub fn matchers(name: &str) -> &'static [&'static str] {
    if name == EXPORTER {
        &["instance_type!=\"\""]
    } else {
        &[]
    }
}

#[derive(Debug, Default)]
struct Machine {
    /// Newest time and value by core.
    cores: BTreeMap<String, (i64, f64)>,
    total: Option<f64>,
    seen: Option<i64>,
}

/// What was read, by instance.
#[derive(Debug, Default)]
pub struct Found(HashMap<usize, Machine>);

impl Found {
    /// Takes a series of an instance.
    pub fn add(&mut self, instance: usize, name: &str, series: &Series) {
        let Some(newest) = series.samples().last() else { return };
        let machine = self.0.entry(instance).or_default();
        match name {
            CORES => {
                let core = series.labels.first(&["neuroncore", "neuron_core"]).to_owned();
                let entry = machine.cores.entry(core).or_insert((newest.at, newest.value));
                // Two processes on one core: its use is the sum of theirs only
                // at one time; the newest and higher one is what is certain.
                if newest.at > entry.0 || (newest.at == entry.0 && newest.value > entry.1) {
                    *entry = (newest.at, newest.value);
                }
            }
            HARDWARE => {
                let number = |label: &str| series.labels.get(label).parse::<u32>().ok();
                let devices = number("neuron_device_count");
                let cores = number("neuroncore_per_device_count");
                machine.total = devices
                    .zip(cores)
                    .map(|(devices, cores)| f64::from(devices) * f64::from(cores));
                machine.seen = machine.seen.max(Some(newest.at));
            }
            _ => machine.seen = machine.seen.max(Some(newest.at)),
        }
    }

    /// The average over all cores of each machine, loaded or not.
    pub fn usage(self) -> impl Iterator<Item = (usize, GpuUsage)> {
        self.0
            .into_iter()
            .filter_map(|(instance, machine)| Some((instance, machine.usage()?)))
    }
}

impl Machine {
    fn usage(&self) -> Option<GpuUsage> {
        let newest_core = self.cores.values().map(|(at, _)| *at).max();
        let at = newest_core.max(self.seen)?;
        let ratio = if self.cores.is_empty() {
            0.0
        } else {
            // Cores that nobody loaded are idle and count; without their number
            // the average is not known.
            let values = self.cores.values().filter_map(|(_, value)| as_ratio(*value));
            values.sum::<f64>() / self.total.filter(|total| *total > 0.0)?
        };
        let at = Timestamp::from_millisecond(at).ok()?;
        let activity = Activity::of(Signal::Vendor, ratio);
        (!activity.is_empty()).then(|| GpuUsage {
            activity,
            ..GpuUsage::new(GpuUsage::ALL_CARDS.into(), at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(labels: &str, value: f64) -> Series {
        let text = format!(r#"{{"metric":{labels},"values":[[100,"{value}"]]}}"#);
        serde_json::from_str(&text).expect("valid")
    }

    fn ratio(found: Found) -> Option<f64> {
        let mut usage = found.usage();
        usage.next().and_then(|(_, usage)| usage.activity.get(Signal::Vendor))
    }

    #[test]
    fn a_machine_without_core_series_is_idle_when_its_exporter_is_there() {
        let mut found = Found::default();
        found.add(0, EXPORTER, &series(r#"{"instance_type":"trn1.2xlarge"}"#, 1.0));
        assert_eq!(ratio(found), Some(0.0));
        assert_eq!(ratio(Found::default()), None);
    }

    #[test]
    fn cores_that_nobody_loaded_count_as_idle() {
        let hardware = r#"{"neuron_device_count":"2","neuroncore_per_device_count":"2"}"#;
        let mut found = Found::default();
        found.add(0, CORES, &series(r#"{"neuroncore":"0"}"#, 0.8));
        found.add(0, CORES, &series(r#"{"neuroncore":"1"}"#, 0.4));
        found.add(0, HARDWARE, &series(hardware, 1.0));
        assert!(ratio(found).is_some_and(|ratio| (ratio - 0.3).abs() < 1e-12));
        let mut unknown = Found::default();
        unknown.add(0, CORES, &series(r#"{"neuroncore":"0"}"#, 0.8));
        assert_eq!(ratio(unknown), None, "of how many is not known");
    }
}
