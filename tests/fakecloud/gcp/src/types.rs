//! Machine types, accelerator types and TPU types, as Google documents them.
//!
//! Written down apart from gpuwatch's catalogue, so that the two can disagree.

/// A machine type as the type API shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineType {
    /// Name.
    pub name: &'static str,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Accelerator type and number of accelerators, as the API says.
    pub accelerator: Option<(&'static str, u32)>,
    /// Part of each accelerator that the machine has: the API counts a virtual
    /// accelerator as one.
    pub share: f64,
    /// Bundled local SSDs.
    pub local_ssds: u32,
}

const fn shape(
    name: &'static str,
    cpus: u32,
    memory_gib: u32,
    accelerator: &'static str,
    count: u32,
    local_ssds: u32,
) -> MachineType {
    MachineType {
        name,
        cpus,
        memory_mb: memory_gib * 1024,
        accelerator: Some((accelerator, count)),
        share: 1.0,
        local_ssds,
    }
}

const fn share(name: &'static str, cpus: u32, memory_gib: u32, share: f64) -> MachineType {
    MachineType {
        share,
        ..shape(name, cpus, memory_gib, "nvidia-rtx-pro-6000", 1, 0)
    }
}

const fn plain(name: &'static str, cpus: u32, memory_mb: u32) -> MachineType {
    MachineType {
        name,
        cpus,
        memory_mb,
        accelerator: None,
        share: 1.0,
        local_ssds: 0,
    }
}

/// Every predefined machine type that is simulated.
pub(crate) const MACHINE_TYPES: &[MachineType] = &[
    shape("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1, 0),
    shape("a2-highgpu-2g", 24, 170, "nvidia-tesla-a100", 2, 0),
    shape("a2-highgpu-4g", 48, 340, "nvidia-tesla-a100", 4, 0),
    shape("a2-highgpu-8g", 96, 680, "nvidia-tesla-a100", 8, 0),
    shape("a2-megagpu-16g", 96, 1360, "nvidia-tesla-a100", 16, 0),
    shape("a2-ultragpu-1g", 12, 170, "nvidia-a100-80gb", 1, 1),
    shape("a2-ultragpu-2g", 24, 340, "nvidia-a100-80gb", 2, 2),
    shape("a2-ultragpu-4g", 48, 680, "nvidia-a100-80gb", 4, 4),
    shape("a2-ultragpu-8g", 96, 1360, "nvidia-a100-80gb", 8, 8),
    shape("a3-highgpu-1g", 26, 234, "nvidia-h100-80gb", 1, 2),
    shape("a3-highgpu-2g", 52, 468, "nvidia-h100-80gb", 2, 4),
    shape("a3-highgpu-4g", 104, 936, "nvidia-h100-80gb", 4, 8),
    shape("a3-highgpu-8g", 208, 1872, "nvidia-h100-80gb", 8, 16),
    shape("a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8, 16),
    shape("a3-ultragpu-8g", 224, 2952, "nvidia-h200-141gb", 8, 32),
    shape("a4-highgpu-8g", 224, 3968, "nvidia-b200", 8, 32),
    shape("a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4, 4),
    shape("g2-standard-4", 4, 16, "nvidia-l4", 1, 0),
    shape("g2-standard-8", 8, 32, "nvidia-l4", 1, 0),
    shape("g2-standard-12", 12, 48, "nvidia-l4", 1, 0),
    shape("g2-standard-16", 16, 64, "nvidia-l4", 1, 0),
    shape("g2-standard-24", 24, 96, "nvidia-l4", 2, 0),
    shape("g2-standard-32", 32, 128, "nvidia-l4", 1, 0),
    shape("g2-standard-48", 48, 192, "nvidia-l4", 4, 0),
    shape("g2-standard-96", 96, 384, "nvidia-l4", 8, 0),
    share("g4-standard-6", 6, 22, 0.125),
    share("g4-standard-12", 12, 45, 0.25),
    share("g4-standard-24", 24, 90, 0.5),
    shape("g4-standard-48", 48, 180, "nvidia-rtx-pro-6000", 1, 4),
    shape("g4-standard-96", 96, 360, "nvidia-rtx-pro-6000", 2, 8),
    shape("g4-standard-192", 192, 720, "nvidia-rtx-pro-6000", 4, 16),
    shape("g4-standard-384", 384, 1440, "nvidia-rtx-pro-6000", 8, 32),
    shape("ct5lp-hightpu-1t", 24, 48, "ct5lp", 1, 0),
    shape("ct5lp-hightpu-4t", 112, 192, "ct5lp", 4, 0),
    shape("ct5lp-hightpu-8t", 224, 384, "ct5lp", 8, 0),
    shape("ct5p-hightpu-4t", 208, 448, "ct5p", 4, 0),
    shape("ct6e-standard-1t", 44, 176, "ct6e", 1, 0),
    shape("ct6e-standard-4t", 180, 720, "ct6e", 4, 0),
    shape("ct6e-standard-8t", 180, 1440, "ct6e", 8, 0),
    // Newer than any catalogue: only the type API knows it.
    shape("a9-futuregpu-8g", 256, 4096, "nvidia-future-512gb", 8, 32),
    plain("e2-micro", 2, 1_024),
    plain("e2-standard-4", 4, 16_384),
    plain("n2-standard-8", 8, 32_768),
    plain("c3-standard-22", 22, 90_112),
    plain("c4a-standard-4", 4, 16_384),
    plain("n1-standard-4", 4, 15_360),
    plain("n1-standard-8", 8, 30_720),
    plain("n1-standard-16", 16, 61_440),
    plain("n1-standard-32", 32, 122_880),
    plain("n1-highmem-8", 8, 53_248),
    plain("t2d-standard-4", 4, 16_384),
    plain("c2-standard-8", 8, 32_768),
];

/// A machine type by its name.
#[must_use]
pub fn machine_type(name: &str) -> Option<&'static MachineType> {
    MACHINE_TYPES.iter().find(|known| known.name == name)
}

/// Accelerator type, description and most cards of one machine.
pub(crate) const ACCELERATOR_TYPES: &[(&str, &str, u32)] = &[
    ("nvidia-tesla-k80", "NVIDIA Tesla K80", 8),
    ("nvidia-tesla-p100", "NVIDIA Tesla P100", 4),
    ("nvidia-tesla-p4", "NVIDIA Tesla P4", 4),
    ("nvidia-tesla-v100", "NVIDIA V100", 8),
    ("nvidia-tesla-t4", "NVIDIA T4", 4),
    ("nvidia-tesla-t4-vws", "NVIDIA T4 Virtual Workstation", 4),
    ("nvidia-tesla-a100", "NVIDIA A100 40GB", 16),
    ("nvidia-a100-80gb", "NVIDIA A100 80GB", 8),
    ("nvidia-l4", "NVIDIA L4", 8),
    ("nvidia-l4-vws", "NVIDIA L4 Virtual Workstation", 8),
    ("nvidia-h100-80gb", "NVIDIA H100 80GB", 8),
    ("nvidia-h100-mega-80gb", "NVIDIA H100 80GB Mega", 8),
    ("nvidia-h200-141gb", "NVIDIA H200 141GB", 8),
    ("nvidia-b200", "NVIDIA B200", 8),
    ("nvidia-gb200", "NVIDIA GB200", 4),
    ("nvidia-rtx-pro-6000", "NVIDIA RTX PRO 6000", 8),
    ("nvidia-future-512gb", "NVIDIA Future", 8),
    ("ct5lp", "TPU v5e", 8),
    ("ct5p", "TPU v5p", 4),
    ("ct6e", "TPU v6e", 8),
];

/// Begin of the names of machine types that have accelerators.
const FAMILIES: &[&str] = &["a2-", "a3-", "a4-", "a4x-", "a9-", "g2-", "g4-", "ct", "tpu"];

/// Whether a machine of this type has accelerators by itself.
pub(crate) fn is_accelerated(name: &str) -> bool {
    match machine_type(name) {
        Some(known) => known.accelerator.is_some(),
        None => FAMILIES.iter().any(|family| name.starts_with(family)),
    }
}

/// Chips of a TPU node: the product of its topology, else what the type's
/// number means in its generation.
pub(crate) fn tpu_chips(accelerator_type: &str, topology: Option<&str>) -> Option<f64> {
    if let Some(topology) = topology {
        return topology
            .split('x')
            .map(|side| side.parse::<u32>().ok().map(f64::from))
            .try_fold(1.0, |product, side| side.map(|side| product * side));
    }
    let (generation, number) = accelerator_type.rsplit_once('-')?;
    let number: f64 = number.parse::<u32>().ok()?.into();
    match generation {
        // Numbered by cores, two to a chip.
        "v2" | "v3" | "v4" | "v5p" => Some(number / 2.0),
        "v5litepod" | "v6e" => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn every_accelerator_of_a_machine_type_is_an_accelerator_type() {
        for machine in MACHINE_TYPES {
            let Some((accelerator, count)) = machine.accelerator else {
                continue;
            };
            let row = ACCELERATOR_TYPES.iter().find(|(name, ..)| *name == accelerator);
            assert!(row.unwrap().2 >= count, "{}", machine.name);
        }
    }

    #[test]
    fn chips_follow_the_topology_before_the_name() {
        assert_eq!(tpu_chips("v4-8", None), Some(4.0));
        assert_eq!(tpu_chips("v5litepod-16", None), Some(16.0));
        assert_eq!(tpu_chips("v6e-8", Some("2x4")), Some(8.0));
        assert_eq!(tpu_chips("v5p-32", Some("2x2x4")), Some(16.0));
        assert_eq!(tpu_chips("v99-8", None), None);
    }

    #[test]
    fn families_decide_for_types_that_no_list_has() {
        assert!(is_accelerated("a4x-maxgpu-4g-metal"));
        assert!(!is_accelerated("c2-standard-8"));
        assert!(!is_accelerated("n1-custom-8-30720"));
    }
}
