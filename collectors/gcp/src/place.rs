//! Zones, regions and links, as Compute Engine and the TPU API write them.

use std::collections::BTreeMap;

use gpuwatch_inventory::Text;

/// Where a part of a listing lies: `zones/us-central1-a`, `regions/us-central1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub region: &'a str,
    /// Empty for what belongs to a whole region.
    pub zone: &'a str,
}

impl<'a> Place<'a> {
    /// Reads a scope, a resource's path or a link; `None` when it names
    /// neither a zone nor a region.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('/');
        while let Some(part) = parts.next() {
            let name = match part {
                "zones" | "regions" | "locations" => parts.next().filter(|name| !name.is_empty())?,
                _ => continue,
            };
            let zone_region = region_of_zone(name);
            return Some(match part {
                "zones" => Self {
                    region: zone_region?,
                    zone: name,
                },
                "regions" => Self { region: name, zone: "" },
                _ => zone_region.map_or(Self { region: name, zone: "" }, |region| Self { region, zone: name }),
            });
        }
        None
    }
}

/// `us-central1` of `us-central1-a`. A region's name has one hyphen before its
/// number, so a name without a further part is no zone.
pub(crate) fn region_of_zone(zone: &str) -> Option<&str> {
    let (region, last) = zone.rsplit_once('-')?;
    let is_region = region.ends_with(|c: char| c.is_ascii_digit()) && region.contains('-');
    (is_region && !last.is_empty()).then_some(region)
}

/// The last part of a link: the name of what it leads to.
pub(crate) fn last(link: &str) -> &str {
    link.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A link without its host and API version, so that full links, paths and
/// resource names of one thing are equal: `projects/p/zones/z/reservations/r`.
pub(crate) fn path_of(link: &str) -> &str {
    link.find("projects/").and_then(|at| link.get(at..)).unwrap_or(link)
}

/// Regions that a listing does not have completely, and why.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    regions: BTreeMap<Text, String>,
    everywhere: Option<String>,
}

impl Missing {
    /// Notes what could not be reached; what names no place may be anywhere.
    pub(crate) fn note(&mut self, place: &str, why: &str) {
        let text = format!("{} ({why})", last(place));
        match Place::parse(place) {
            Some(place) => {
                self.regions.entry(place.region.into()).or_insert(text);
            }
            None => self.everywhere = Some(text),
        }
    }

    /// Notes that something is missing somewhere, unless it is known where.
    pub(crate) fn note_somewhere(&mut self, why: &str) {
        if self.regions.is_empty() {
            self.everywhere = Some(format!("a part ({why})"));
        }
    }

    /// What is missing of a region.
    pub(crate) fn of(&self, region: &str) -> Option<&str> {
        self.regions
            .get(region)
            .or(self.everywhere.as_ref())
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_paths_and_links_name_their_region() {
        for (text, region, zone) in [
            ("zones/us-central1-a", "us-central1", "us-central1-a"),
            ("projects/p/zones/us-central1-ai1a", "us-central1", "us-central1-ai1a"),
            ("regions/europe-west4", "europe-west4", ""),
            (
                "https://www.googleapis.com/compute/v1/projects/p/zones/asia-east1-b/instances/x",
                "asia-east1",
                "asia-east1-b",
            ),
            ("projects/p/locations/us-east5-b/nodes/n", "us-east5", "us-east5-b"),
            ("projects/p/locations/us-east5", "us-east5", ""),
        ] {
            assert_eq!(Place::parse(text), Some(Place { region, zone }), "{text}");
        }
        for text in ["", "global", "zones/", "zones/nowhere", "projects/p"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_missing_somewhere_is_missing_everywhere_unless_named() {
        let mut missing = Missing::default();
        missing.note("zones/us-central1-a", "UNREACHABLE");
        missing.note_somewhere("PARTIAL_SUCCESS");
        assert_eq!(missing.of("us-central1"), Some("us-central1-a (UNREACHABLE)"));
        assert_eq!(missing.of("europe-west4"), None);
        let mut missing = Missing::default();
        missing.note_somewhere("PARTIAL_SUCCESS");
        assert!(missing.of("europe-west4").is_some());
    }

    #[test]
    fn links_and_names_of_one_thing_are_equal() {
        let path = "projects/p/zones/z/reservations/r";
        for link in [
            path,
            "https://www.googleapis.com/compute/v1/projects/p/zones/z/reservations/r",
        ] {
            assert_eq!(path_of(link), path);
        }
        assert_eq!(last("a/b/"), "b");
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_asked_for_its_place(text in ".{0,60}") {
            let _ = (Place::parse(&text), region_of_zone(&text), last(&text), path_of(&text));
        }
    }
}
