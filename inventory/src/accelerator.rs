//! Accelerators of an instance: vendor, model, how many, how much memory.

use std::fmt;

use serde::Serialize;

use crate::Text;

/// Maker of an accelerator, in the lower-case word of the `gpu_vendor` label.
///
/// Open-ended on purpose: a new maker passes through as the cloud spells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Vendor(Text);

impl Vendor {
    /// Normalises a maker's name: `NVIDIA Corporation`, `nvidia` → `nvidia`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let lower = name.trim().to_lowercase();
        let word = match lower.as_str() {
            "nvidia corporation" => "nvidia",
            "advanced micro devices" | "advanced micro devices, inc." | "xilinx" | "amd-xilinx" => "amd",
            "amazon" | "annapurna" | "annapurna labs" => "aws",
            "habana" | "intel-habana" | "habana labs" | "intel corporation" => "intel",
            "alphabet" => "google",
            "alibaba t-head" => "t-head",
            "moore threads" => "moore-threads",
            _ => lower.as_str(),
        };
        Self(word.into())
    }

    /// The label value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A number of accelerators, possibly a fraction of one card.
///
/// Finite and not negative by construction; fractions come from the cloud
/// (AWS `g6f` 0.125, Azure A10 sixths, Aliyun and Tencent vGPU slices).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct GpuCount(f64);

impl GpuCount {
    /// No accelerators.
    pub const ZERO: Self = Self(0.0);

    /// `None` for a negative, infinite or undefined number.
    #[must_use]
    pub fn new(count: f64) -> Option<Self> {
        // Adding 0 turns a negative zero into zero.
        (count.is_finite() && count >= 0.0).then_some(Self(count + 0.0))
    }

    /// The number of cards.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// This many accelerators in each of `units` units. Stays finite.
    #[must_use]
    pub fn times(self, units: u32) -> Self {
        Self((self.0 * f64::from(units)).min(f64::MAX))
    }
}

impl From<u32> for GpuCount {
    fn from(count: u32) -> Self {
        Self(f64::from(count))
    }
}

impl fmt::Display for GpuCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The accelerators of one instance. Everything that is not known is `None`
/// or empty: an unknown count is not 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Accelerators {
    /// Maker; `None` when unknown.
    pub vendor: Option<Vendor>,
    /// The catalogue's model name, or the provider's own spelling when the
    /// catalogue does not know it; empty when not even that is known.
    pub model: Text,
    /// Architecture by the catalogue (`Hopper`); empty when unknown.
    pub architecture: Text,
    /// Accelerators in the instance; fractional for slices of a card.
    pub count: Option<GpuCount>,
    /// Memory of all accelerators of the instance together, in MiB: nominal
    /// where the catalogue knows the model, so an L4 has 24 GiB.
    pub memory_mib: Option<u64>,
    /// Whether the catalogue has the model. False counts in
    /// `gpuwatch_unknown_accelerators`.
    pub in_catalog: bool,
    /// MIG or other hardware slices one full card is cut into, where the
    /// cloud sells or reports such slices (1 = the whole card).
    pub slices_per_card: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_have_one_word_each() {
        for (spelled, word) in [
            ("NVIDIA", "nvidia"),
            (" NVIDIA Corporation ", "nvidia"),
            ("Advanced Micro Devices, Inc.", "amd"),
            ("Xilinx", "amd"),
            ("Habana", "intel"),
            ("Annapurna Labs", "aws"),
            ("Alibaba T-Head", "t-head"),
            ("Some New Maker", "some new maker"),
        ] {
            assert_eq!(Vendor::new(spelled).as_str(), word, "{spelled}");
        }
    }

    #[test]
    fn counts_are_finite_and_not_negative() {
        for bad in [-1.0, -f64::MIN_POSITIVE, f64::NAN, f64::INFINITY] {
            assert_eq!(GpuCount::new(bad), None, "{bad}");
        }
        assert!(
            GpuCount::new(f64::MAX)
                .expect("finite")
                .times(u32::MAX)
                .get()
                .is_finite()
        );
        assert_eq!(GpuCount::new(-0.0).expect("zero").to_string(), "0");
    }

    #[test]
    fn fractions_multiply_and_print_as_they_are() {
        let eighth = GpuCount::new(0.125).expect("fraction");
        assert_eq!(eighth.to_string(), "0.125");
        assert_eq!(eighth.times(8), GpuCount::from(1));
        assert_eq!(GpuCount::from(8).to_string(), "8");
    }

    #[test]
    fn nothing_is_known_by_default() {
        let unknown = Accelerators::default();
        assert_eq!((unknown.count, unknown.memory_mib, unknown.vendor), (None, None, None));
        assert!(unknown.model.is_empty() && !unknown.in_catalog);
    }

    #[test]
    fn documents_hold_plain_words_and_numbers() {
        let json = serde_json::to_string(&(Vendor::new("NVIDIA"), GpuCount::from(8))).expect("json");
        assert_eq!(json, r#"["nvidia",8.0]"#);
    }
}
