//! Regions and zones.

/// A region and its zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Name (`us-central1`).
    pub name: String,
    /// Letters of its zones.
    pub zones: Vec<char>,
}

impl Region {
    /// A region with the zones of these letters.
    pub fn new(name: &str, zones: &str) -> Self {
        Self {
            name: name.to_owned(),
            zones: zones.chars().collect(),
        }
    }

    /// Names of its zones (`us-central1-a`).
    pub fn zone_names(&self) -> Vec<String> {
        self.zones
            .iter()
            .map(|letter| format!("{}-{letter}", self.name))
            .collect()
    }
}

/// The region of a zone's name.
pub(crate) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}

/// Regions that rent accelerators, with their real zone letters.
pub(crate) fn usual_regions() -> Vec<Region> {
    [
        ("asia-east1", "abc"),
        ("asia-northeast1", "abc"),
        ("asia-southeast1", "abc"),
        ("europe-west1", "bcd"),
        ("europe-west4", "abc"),
        ("us-central1", "abcf"),
        ("us-east4", "abc"),
        ("us-east5", "abc"),
        ("us-west1", "abc"),
    ]
    .iter()
    .map(|(name, zones)| Region::new(name, zones))
    .collect()
}
