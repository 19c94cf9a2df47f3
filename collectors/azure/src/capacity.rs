//! On-demand capacity reservations: places that are paid for whether used or
//! not, at the price of the size.

use std::{collections::HashMap, sync::Arc};

use gpuwatch_collector_core::{Call, Coalesced, CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Text};
use serde::Deserialize;

use crate::{
    arm::{Arm, Listing, path_of},
    benefits::{blank, unique},
    errors, sizes,
    vm::{region_of, time},
};

const VERSIONS: &[&str] = &["2024-07-01", "2022-11-01"];

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
    reservation_type: Option<String>,
}

/// Reservations by region.
type ByRegion = HashMap<String, Vec<Commitment>>;

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
        Ok(found.get(&*scope.region).cloned().unwrap_or_default())
    }
}

async fn subscription(cx: &Context, arm: &Arm, scope: &Scope) -> Result<ByRegion, CollectError> {
    let path = format!(
        "/subscriptions/{}/providers/Microsoft.Compute/capacityReservationGroups",
        scope.account.id
    );
    let mut groups: Vec<Group> = match arm.list(cx, GROUPS, &path).await {
        Err(error) if errors::is_unused(&error) => return Ok(ByRegion::new()),
        result => result?,
    };
    // Pages may repeat rows.
    groups.sort_by_key(|group| group.id.to_lowercase());
    groups.dedup_by_key(|group| group.id.to_lowercase());
    let mut found = ByRegion::new();
    for some in groups.chunks(AT_ONCE) {
        let mut asked = Vec::with_capacity(some.len());
        for group in some {
            asked.push(of_group(cx, arm, scope, group));
        }
        let answers = futures::future::join_all(asked).await;
        for (group, commitments) in some.iter().zip(answers) {
            found
                .entry(region_of(&group.location))
                .or_default()
                .extend(commitments?);
        }
    }
    Ok(found)
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
    let region = region_of(&group.location);
    let active = members.iter().filter(|member| is_active(member));
    let commitments = active.map(|member| commitment(member, use_of(&member.name), scope, &region));
    Ok(unique(commitments.collect()))
}

fn is_active(member: &Member) -> bool {
    let state = member.properties.as_ref().and_then(|p| p.provisioning_state.as_deref());
    !matches!(state, Some("Failed" | "Deleting" | "Canceled"))
}

fn commitment(member: &Member, used: Option<&Utilization>, scope: &Scope, region: &str) -> Commitment {
    let properties = member.properties.as_ref();
    let size = member.sku.as_ref().map_or("", |sku| sku.name.as_str());
    let bought = used.and_then(|used| used.current_capacity);
    // Not those associated: a machine that is stopped holds no place.
    let allocated = used.and_then(|used| used.virtual_machines_allocated.as_ref());
    let zone = member.zones.iter().flatten().next();
    Commitment {
        kind: CommitmentKind::CapacityReservation,
        region: region.into(),
        instance_type: size.into(),
        scope: zone.map_or(CommitmentScope::Region, |zone| {
            CommitmentScope::Zone(zone.as_str().into())
        }),
        units: bought.or_else(|| member.sku.as_ref()?.capacity),
        used_units: allocated.map(|machines| u32::try_from(machines.len()).unwrap_or(u32::MAX)),
        gpus_per_unit: sizes::accelerators(size, None).count,
        starts: properties.and_then(|p| time(p.time_created.as_deref()?)),
        detail: properties
            .and_then(|p| p.reservation_type.as_deref())
            .map_or_else(Text::default, Text::from),
        ..blank(scope, &member.id.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::Provider;
    use serde_json::json;

    use super::*;

    #[test]
    fn unused_places_show() {
        let scope = Scope {
            provider: Provider::Azure,
            account: Account {
                id: "s".into(),
                name: "corp".into(),
            },
            region: "eastus".into(),
        };
        let member: Member = serde_json::from_value(json!({
            "id": "/A/B", "name": "B", "zones": ["1"], "sku": {"name": "Standard_ND96isr_H100_v5", "capacity": 4}
        }))
        .unwrap();
        let used: Utilization = serde_json::from_value(json!({
            "currentCapacity": 4, "virtualMachinesAllocated": [{"id": "/x"}]
        }))
        .unwrap();
        let commitment = commitment(&member, Some(&used), &scope, "eastus");
        assert_eq!((commitment.units, commitment.used_units), (Some(4), Some(1)));
        assert_eq!(commitment.gpus().unwrap().get(), 32.0);
        assert_eq!(&*commitment.id, "/a/b");
    }
}
