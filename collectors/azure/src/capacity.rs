//! On-demand capacity reservations: places that are paid for whether used or
//! not, at the price of the size.

use std::{collections::HashMap, sync::Arc};

use gpuwatch_collector_core::{Call, Coalesced, CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Text};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    arm::{Arm, Listing, path_of},
    benefits::{blank, unique},
    errors, sizes,
    vm::{day_or_time, region_of, time},
};

/// Blocks came with 2025-04-01, the use of open reservations with 2026-04-01.
const VERSIONS: &[&str] = &["2026-04-01", "2025-04-01", "2022-11-01"];

const GROUPS: Listing = Listing {
    call: Call::new(
        "compute",
        "capacityReservationGroups.list",
        "Microsoft.Compute/capacityReservationGroups/read",
    ),
    versions: VERSIONS,
};
const GROUP: Listing = Listing {
    call: Call::new(
        "compute",
        "capacityReservationGroups.get",
        "Microsoft.Compute/capacityReservationGroups/read",
    ),
    versions: VERSIONS,
};
const MEMBERS: Listing = Listing {
    call: Call::new(
        "compute",
        "capacityReservations.list",
        "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
    ),
    versions: VERSIONS,
};

/// Groups asked about at the same time.
const AT_ONCE: usize = 4;

#[derive(Deserialize)]
struct Group {
    id: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    properties: Option<GroupProperties>,
}

impl Group {
    /// `Targeted`, `Open` or `Block`; empty where the answer does not say.
    fn kind(&self) -> &str {
        let properties = self.properties.as_ref();
        properties
            .and_then(|p| p.reservation_type.as_deref())
            .unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupView {
    #[serde(default)]
    properties: Option<GroupProperties>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GroupProperties {
    reservation_type: Option<String>,
    instance_view: Option<GroupInstanceView>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GroupInstanceView {
    capacity_reservations: Option<Vec<MemberView>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MemberView {
    name: String,
    utilization_info: Option<Utilization>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Utilization {
    current_capacity: Option<u32>,
    virtual_machines_allocated: Option<Vec<serde::de::IgnoredAny>>,
    /// Of open reservations, which list no machines.
    used_reserved_count_by_subscription: Option<HashMap<String, u32>>,
}

impl Utilization {
    /// Places in use. Not those associated: a machine that is stopped holds no
    /// place.
    fn used(&self, kind: &str) -> Option<u32> {
        if let Some(counts) = &self.used_reserved_count_by_subscription {
            return Some(counts.values().fold(0, |sum: u32, count| sum.saturating_add(*count)));
        }
        let machines = self.virtual_machines_allocated.as_ref().filter(|_| !is(kind, OPEN))?;
        Some(u32::try_from(machines.len()).unwrap_or(u32::MAX))
    }
}

#[derive(Deserialize)]
struct Member {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    zones: Option<Vec<String>>,
    #[serde(default)]
    sku: Option<Sku>,
    #[serde(default)]
    properties: Option<MemberProperties>,
}

#[derive(Deserialize)]
struct Sku {
    #[serde(default)]
    name: String,
    #[serde(default)]
    capacity: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MemberProperties {
    provisioning_state: Option<String>,
    time_created: Option<String>,
    schedule_profile: Option<Schedule>,
}

/// Of blocks and of reservations that begin later: days, or times.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Schedule {
    start: Option<String>,
    end: Option<String>,
}

/// Reservations by region, and the regions of which not all are known.
#[derive(Default)]
struct ByRegion {
    found: HashMap<String, Vec<Commitment>>,
    failed: HashMap<String, CollectError>,
}

/// Lists capacity reservations, once for all regions of a subscription.
#[derive(Default)]
pub(crate) struct Capacity {
    found: Coalesced<ByRegion>,
}

impl Capacity {
    /// Those of a region, for accelerator sizes.
    ///
    /// # Errors
    /// When the listing of the subscription is not complete.
    pub(crate) async fn list(&self, cx: &Context, arm: &Arm, scope: &Scope) -> Result<Vec<Commitment>, CollectError> {
        let found: Arc<ByRegion> = self
            .found
            .get(&scope.account.id, cx, || subscription(cx, arm, scope))
            .await?;
        if let Some(error) = found.failed.get(&*scope.region) {
            return Err(error.clone());
        }
        Ok(found.found.get(&*scope.region).cloned().unwrap_or_default())
    }
}

/// A group that cannot be read spoils its own region only.
async fn subscription(cx: &Context, arm: &Arm, scope: &Scope) -> Result<ByRegion, CollectError> {
    let path = format!(
        "/subscriptions/{}/providers/Microsoft.Compute/capacityReservationGroups",
        scope.account.id
    );
    let mut groups: Vec<Group> = match arm.list(cx, GROUPS, &path).await {
        Err(error) if errors::is_unused(&error) => return Ok(ByRegion::default()),
        result => result?,
    };
    // Pages may repeat rows.
    groups.sort_by_key(|group| group.id.to_lowercase());
    groups.dedup_by_key(|group| group.id.to_lowercase());
    let mut by_region = ByRegion::default();
    for some in groups.chunks(AT_ONCE) {
        let mut asked = Vec::with_capacity(some.len());
        for group in some {
            asked.push(of_group(cx, arm, scope, group));
        }
        let answers = futures::future::join_all(asked).await;
        for (group, answer) in some.iter().zip(answers) {
            let region = region_of(&group.location);
            match answer {
                Ok(commitments) => by_region.found.entry(region).or_default().extend(commitments),
                // Deleted since it was listed.
                Err(error) if errors::is_gone(&error) => {}
                Err(error) => {
                    by_region.failed.insert(region, error);
                }
            }
        }
    }
    Ok(by_region)
}

async fn of_group(cx: &Context, arm: &Arm, scope: &Scope, group: &Group) -> Result<Vec<Commitment>, CollectError> {
    let path = path_of(&group.id);
    let members: Vec<Member> = arm.list(cx, MEMBERS, &format!("{path}/capacityReservations")).await?;
    let members: Vec<Member> = members
        .into_iter()
        .filter(|member| {
            member
                .sku
                .as_ref()
                .is_some_and(|sku| sizes::has_accelerators(&sku.name))
        })
        .collect();
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let view: GroupView = arm.get(cx, GROUP, &format!("{path}?$expand=instanceView")).await?;
    let views = view
        .properties
        .and_then(|properties| properties.instance_view?.capacity_reservations)
        .unwrap_or_default();
    let use_of = |name: &str| {
        let view = views.iter().find(|view| view.name.eq_ignore_ascii_case(name));
        view.and_then(|view| view.utilization_info.as_ref())
    };
    let active = members.iter().filter(|member| member.is_active(cx.now()));
    let commitments = active.map(|member| commitment(group, member, use_of(&member.name), scope));
    Ok(unique(commitments.collect()))
}

impl Member {
    fn schedule(&self) -> Option<&Schedule> {
        self.properties.as_ref()?.schedule_profile.as_ref()
    }

    fn starts(&self) -> Option<Timestamp> {
        match self.schedule() {
            Some(schedule) => schedule.start.as_deref().and_then(day_or_time),
            None => time(self.properties.as_ref()?.time_created.as_deref()?),
        }
    }

    fn ends(&self) -> Option<Timestamp> {
        day_or_time(self.schedule()?.end.as_deref()?)
    }

    /// Whether its places are held, and paid for, now.
    fn is_active(&self, now: Timestamp) -> bool {
        let state = self.properties.as_ref().and_then(|p| p.provisioning_state.as_deref());
        !matches!(state, Some("Failed" | "Deleting" | "Canceled"))
            && self.starts().is_none_or(|start| start <= now)
            && self.ends().is_none_or(|end| end > now)
    }
}

const OPEN: &str = "Open";
const BLOCK: &str = "Block";

fn is(kind: &str, other: &str) -> bool {
    kind.eq_ignore_ascii_case(other)
}

fn commitment(group: &Group, member: &Member, used: Option<&Utilization>, scope: &Scope) -> Commitment {
    let size = member.sku.as_ref().map_or("", |sku| sku.name.as_str());
    let bought = used.and_then(|used| used.current_capacity);
    let zone = member.zones.iter().flatten().next();
    Commitment {
        kind: if is(group.kind(), BLOCK) {
            CommitmentKind::CapacityBlock
        } else {
            CommitmentKind::CapacityReservation
        },
        region: region_of(&group.location).as_str().into(),
        instance_type: size.into(),
        scope: zone.map_or(CommitmentScope::Region, |zone| {
            CommitmentScope::Zone(zone.as_str().into())
        }),
        units: bought.or_else(|| member.sku.as_ref()?.capacity),
        used_units: used.and_then(|used| used.used(group.kind())),
        gpus_per_unit: sizes::accelerators(size, None).count,
        starts: member.starts(),
        expires: member.ends(),
        detail: if is(group.kind(), BLOCK) {
            Text::default()
        } else {
            group.kind().into()
        },
        ..blank(scope, &member.id.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::Provider;
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Azure,
            account: Account {
                id: "s".into(),
                name: "corp".into(),
            },
            region: "eastus".into(),
        }
    }

    fn group(kind: &str) -> Group {
        let json = json!({"id": "/A", "location": "East US", "properties": {"reservationType": kind}});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn unused_places_show() {
        let member: Member = serde_json::from_value(json!({
            "id": "/A/B", "name": "B", "zones": ["1"], "sku": {"name": "Standard_ND96isr_H100_v5", "capacity": 4}
        }))
        .unwrap();
        let used: Utilization = serde_json::from_value(json!({
            "currentCapacity": 4, "virtualMachinesAllocated": [{"id": "/x"}]
        }))
        .unwrap();
        let found = commitment(&group("Targeted"), &member, Some(&used), &scope());
        assert_eq!((found.units, found.used_units), (Some(4), Some(1)));
        assert_eq!(found.gpus().map(|gpus| gpus.to_string()).as_deref(), Some("32"));
        assert_eq!((&*found.id, &*found.region), ("/a/b", "eastus"));
        // Of an open one the machines are no measure.
        let open = commitment(&group("Open"), &member, Some(&used), &scope());
        assert_eq!((open.used_units, &*open.detail), (None, "Open"));
        let counted: Utilization = serde_json::from_value(json!({
            "currentCapacity": 4, "usedReservedCountBySubscription": {"s1": 1, "s2": 2}
        }))
        .unwrap();
        assert_eq!(counted.used("Open"), Some(3));
    }

    #[test]
    fn a_block_lasts_from_its_first_day_to_its_last() {
        let member: Member = serde_json::from_value(json!({
            "id": "/A/B", "sku": {"name": "Standard_ND96isr_H100_v5", "capacity": 4},
            "properties": {"timeCreated": "2026-01-01T00:00:00Z",
                           "scheduleProfile": {"start": "2026-06-27", "end": "2026-07-01"}}
        }))
        .unwrap();
        let at = |text: &str| member.is_active(text.parse().unwrap());
        assert!(!at("2026-06-26T23:59:59Z") && at("2026-06-27T00:00:00Z"));
        assert!(at("2026-06-30T23:59:59Z") && !at("2026-07-01T00:00:00Z"));
        let found = commitment(&group("Block"), &member, None, &scope());
        assert_eq!((found.kind, found.used_units), (CommitmentKind::CapacityBlock, None));
        assert!(found.starts < found.expires);
    }
}
