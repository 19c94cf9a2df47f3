//! Instance types as the simulated `DescribeInstanceTypes` knows them.

use std::sync::LazyLock;

use super::wildcard;

/// The families in which AWS sells accelerators, as filter patterns.
const ACCELERATED_FAMILIES: &[&str] = &["p*", "g*", "inf*", "trn*", "dl*", "vt*"];

static TYPES: LazyLock<Vec<InstanceTypeFacts>> =
    LazyLock::new(|| include_str!("types.tsv").lines().filter_map(parse).collect());

/// What the type API says about one instance type.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct InstanceTypeFacts {
    /// Name, e.g. `g5.xlarge`.
    pub name: String,
    /// Whether it is still sold; if not, only `IncludeUnsupportedInRegion`
    /// shows it.
    pub current: bool,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// `on-demand`, `spot`, `capacity-block`.
    pub usage_classes: Vec<&'static str>,
    /// Which sections of the answer describe the device: `gpu`, `neuron`,
    /// `inference`, `media`, `fpga`.
    pub sections: Vec<String>,
    /// The device; `None` where the API shows none.
    pub device: Option<DeviceFacts>,
}

/// The accelerators of an instance type as the API spells them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DeviceFacts {
    /// Model, e.g. `A10G`.
    pub name: String,
    /// Maker; `None` where the API does not say.
    pub manufacturer: Option<String>,
    /// `Count`: 0 for a fraction of a card.
    pub count: u32,
    /// `GpuPartitionSize`: 1.0 for whole cards.
    pub partition: f64,
    /// Memory of one device or partition in MiB.
    pub memory_mib: u64,
    /// Cores of one Neuron device and their version.
    pub cores: Option<(u32, u32)>,
}

impl DeviceFacts {
    /// `LogicalGpuCount`: 1 for a fraction.
    pub(crate) fn logical_count(&self) -> u32 {
        self.count.max(1)
    }

    /// The sum that the API states for the instance.
    pub(crate) fn total_memory_mib(&self) -> u64 {
        self.memory_mib * u64::from(self.logical_count())
    }
}

impl InstanceTypeFacts {
    fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section == name)
    }
}

/// The type API's facts; `None` for a type that it does not know.
#[must_use]
pub fn instance_type(name: &str) -> Option<&'static InstanceTypeFacts> {
    TYPES.iter().find(|facts| facts.name == name)
}

pub(crate) fn all() -> &'static [InstanceTypeFacts] {
    &TYPES
}

/// Whether gpuwatch must list instances of this type: accelerators that are
/// not FPGAs, and every size of an accelerated family, known or not.
pub(crate) fn is_accelerated(name: &str) -> bool {
    match instance_type(name) {
        Some(facts) if facts.device.is_some() => !facts.has_section("fpga"),
        _ => ACCELERATED_FAMILIES
            .iter()
            .any(|pattern| wildcard::matches(pattern, name)),
    }
}

/// Accelerators that the type really has; `None` when nobody knows.
pub(crate) fn true_count(name: &str) -> Option<f64> {
    // The API has no NeuronInfo for this type; AWS documents 16 Trainium2.
    if name == "trn2u.48xlarge" {
        return Some(16.0);
    }
    let device = instance_type(name)?.device.as_ref()?;
    Some(f64::from(device.logical_count()) * device.partition)
}

fn parse(line: &str) -> Option<InstanceTypeFacts> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (name, offer, vcpus, memory) = (next()?, next()?, next()?, next()?);
    let (architecture, classes, sections) = (next()?, next()?, next()?);
    let (device, manufacturer, count, partition) = (next()?, next()?, next()?, next()?);
    let (device_memory, cores) = (next()?, next()?);
    let given = |text: &str| (text != "-").then(|| text.to_owned());
    let usage_classes = [('b', "capacity-block"), ('o', "on-demand"), ('s', "spot")];
    let device = match given(device) {
        Some(name) => Some(DeviceFacts {
            name,
            manufacturer: given(manufacturer),
            count: count.parse().ok()?,
            partition: partition.parse().ok()?,
            memory_mib: device_memory.parse().ok()?,
            cores: cores
                .split_once('v')
                .and_then(|(count, version)| Some((count.parse().ok()?, version.parse().ok()?))),
        }),
        None => None,
    };
    Some(InstanceTypeFacts {
        name: name.to_owned(),
        current: offer == "current",
        vcpus: vcpus.parse().ok()?,
        memory_mib: memory.parse().ok()?,
        architecture: architecture.to_owned(),
        usage_classes: usage_classes
            .iter()
            .filter(|(key, _)| classes.contains(*key))
            .map(|(_, class)| *class)
            .collect(),
        sections: given(sections)
            .map(|names| names.split('+').map(str::to_owned).collect())
            .unwrap_or_default(),
        device,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("types.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert_eq!(all().len(), lines);
        assert!(lines > 100);
        assert!(
            all()
                .iter()
                .all(|facts| facts.sections.is_empty() == facts.device.is_none())
        );
    }

    #[test]
    fn oddities_of_the_type_api_are_kept() {
        let fraction = instance_type("g6f.large").unwrap().device.as_ref().unwrap();
        assert_eq!(
            (fraction.count, fraction.logical_count(), fraction.memory_mib),
            (0, 1, 2861)
        );
        assert_eq!(true_count("g6f.large"), Some(0.125));
        assert_eq!(
            instance_type("trn2.48xlarge")
                .unwrap()
                .device
                .as_ref()
                .unwrap()
                .memory_mib,
            524_288
        );
        assert_eq!(instance_type("trn2u.48xlarge").unwrap().device, None);
        assert_eq!(true_count("trn2u.48xlarge"), Some(16.0));
        assert!(!instance_type("p3.2xlarge").unwrap().current);
    }

    #[test]
    fn cpu_and_fpga_types_are_not_accelerated() {
        for (name, expected) in [
            ("m5.large", false),
            ("c7g.xlarge", false),
            ("f2.6xlarge", false),
            ("g5.xlarge", true),
            ("trn2u.48xlarge", true),
            ("p9.48xlarge", true),
            ("g99.metal", true),
            ("m99.large", false),
        ] {
            assert_eq!(is_accelerated(name), expected, "{name}");
        }
    }
}
