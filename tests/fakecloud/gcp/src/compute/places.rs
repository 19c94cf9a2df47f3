//! Regions and zones.

use serde_json::{Value, json};

use super::{Item, Listing, id_of, link};
use crate::world::{Inner, ProjectData, Region, region_of};

const MADE: &str = "1969-12-31T16:00:00.000-08:00";

pub(super) fn regions<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = inner.regions.iter().map(|region| {
        let render = move || region_row(project, region);
        Item::new("global".to_owned(), &region.name, render)
    });
    listing("regions", "compute#region", items.collect())
}

fn region_row(project: &ProjectData, region: &Region) -> Value {
    let name = &region.name;
    let zones: Vec<String> = region
        .zone_names()
        .iter()
        .map(|zone| link(&project.id, &format!("zones/{zone}")))
        .collect();
    json!({
        "kind": "compute#region",
        "id": id_of(name),
        "creationTimestamp": MADE,
        "name": name,
        "description": name,
        "status": "UP",
        "zones": zones,
        "quotas": [{ "metric": "NVIDIA_L4_GPUS", "limit": 64.0, "usage": 3.0 }],
        "selfLink": link(&project.id, &format!("regions/{name}")),
        "supportsPzs": false,
    })
}

pub(super) fn zones<'a>(inner: &'a Inner, project: &'a ProjectData) -> Listing<'a> {
    let items = inner.zones().map(|zone| {
        let name = zone.clone();
        Item::new("global".to_owned(), &name, move || zone_row(inner, project, &zone))
    });
    listing("zones", "compute#zone", items.collect())
}

fn zone_row(inner: &Inner, project: &ProjectData, zone: &str) -> Value {
    let status = if inner.zones_down.contains(zone) { "DOWN" } else { "UP" };
    json!({
        "kind": "compute#zone",
        "id": id_of(zone),
        "creationTimestamp": MADE,
        "name": zone,
        "description": zone,
        "status": status,
        "region": link(&project.id, &format!("regions/{}", region_of(zone))),
        "selfLink": link(&project.id, &format!("zones/{zone}")),
        "availableCpuPlatforms": ["Intel Sapphire Rapids", "Intel Skylake"],
        "supportsPzs": false,
    })
}

fn listing<'a>(field: &'static str, kind: &'static str, mut items: Vec<Item<'a>>) -> Listing<'a> {
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Listing {
        field,
        kind,
        items,
        words: &["status"],
    }
}
