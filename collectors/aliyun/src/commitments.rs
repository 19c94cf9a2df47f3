//! What was bought ahead in a region: reserved instances, and private pools
//! of capacity (elasticity assurances and capacity reservations).

use std::collections::HashSet;

use gpuwatch_collector_core::{CollectError, Context, Interner, Progress, Scope, read_all};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, GpuCount, Provider, Text};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    account::Account,
    client::{Action, parameters},
    hosts::Product,
    loose, numbered,
    shapes::{self, Shapes, Stated},
};

const DESCRIBE_RESERVED_INSTANCES: Action = Action::new(
    Product::Ecs,
    "DescribeReservedInstances",
    "ecs:DescribeReservedInstances",
);
const DESCRIBE_ELASTICITY_ASSURANCES: Action = Action::new(
    Product::Ecs,
    "DescribeElasticityAssurances",
    "ecs:DescribeElasticityAssurances",
);
const DESCRIBE_CAPACITY_RESERVATIONS: Action = Action::new(
    Product::Ecs,
    "DescribeCapacityReservations",
    "ecs:DescribeCapacityReservations",
);

const PAGE_SIZE: &str = "100";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReservedPage {
    #[serde(default, deserialize_with = "loose::number")]
    total_count: Option<f64>,
    #[serde(default)]
    reserved_instances: Option<ReservedList>,
}

#[derive(Deserialize, Default)]
struct ReservedList {
    #[serde(rename = "ReservedInstance", default)]
    rows: Rows<Reserved>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Reserved {
    #[serde(rename = "ReservedInstanceId")]
    id: String,
    instance_type: String,
    #[serde(default, deserialize_with = "loose::number")]
    instance_amount: Option<f64>,
    #[serde(default, deserialize_with = "loose::text")]
    scope: String,
    #[serde(default, deserialize_with = "loose::text")]
    zone_id: String,
    #[serde(default, deserialize_with = "loose::text")]
    platform: String,
    #[serde(default, deserialize_with = "loose::text")]
    offering_type: String,
    #[serde(default, deserialize_with = "loose::text")]
    start_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    expired_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    status: String,
}

impl Reserved {
    fn commitment(&self, scope: &Scope, gpus_per_unit: Option<GpuCount>) -> Commitment {
        let zonal = self.scope.eq_ignore_ascii_case("zone") && !self.zone_id.is_empty();
        Commitment {
            kind: CommitmentKind::ReservedInstance,
            instance_type: self.instance_type.as_str().into(),
            scope: if zonal {
                CommitmentScope::Zone(self.zone_id.as_str().into())
            } else {
                CommitmentScope::Region
            },
            units: loose::units(self.instance_amount),
            gpus_per_unit,
            starts: loose::utc(&self.start_time),
            expires: loose::utc(&self.expired_time),
            platform: self.platform.to_lowercase().as_str().into(),
            detail: self.offering_type.as_str().into(),
            ..blank(scope, &self.id)
        }
    }
}

/// Active reserved instances for accelerator types.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn reserved_instances(
    cx: &Context,
    account: &Account,
    scope: &Scope,
    shapes: &Shapes,
) -> Result<Vec<Commitment>, CollectError> {
    let region: &str = &scope.region;
    let fetch = |number: u64| async move {
        let mut asked = parameters(&[("RegionId", region), ("PageSize", PAGE_SIZE), ("Status.1", "Active")]);
        asked.insert("PageNumber".into(), number.to_string());
        let page: ReservedPage = account.call(cx, DESCRIBE_RESERVED_INSTANCES, region, &asked).await?;
        let total = loose::units(page.total_count).map(u64::from);
        Ok((page.reserved_instances.unwrap_or_default().rows, total))
    };
    let rows = numbered::read(cx, DESCRIBE_RESERVED_INSTANCES.call, |row: &Reserved| &row.id, fetch).await?;
    let rows: Vec<Reserved> = rows
        .into_iter()
        .filter(|row| matches!(row.status.as_str(), "Active" | ""))
        .filter(|row| is_accelerated(&row.instance_type))
        .collect();
    let types = rows.iter().map(|row| row.instance_type.as_str().into()).collect();
    let gpus = gpus_of(cx, account, shapes, scope, types).await;
    let listed = rows.iter().map(|row| row.commitment(scope, gpus(&row.instance_type)));
    Ok(unique(listed))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pool {
    private_pool_options_id: String,
    #[serde(default, deserialize_with = "loose::text")]
    status: String,
    #[serde(default, deserialize_with = "loose::text")]
    start_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    end_time: String,
    #[serde(default, deserialize_with = "loose::text")]
    private_pool_options_match_criteria: String,
    #[serde(default)]
    allocated_resources: Option<Resources>,
}

#[derive(Deserialize, Default)]
struct Resources {
    #[serde(rename = "AllocatedResource", default)]
    rows: Rows<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    instance_type: String,
    #[serde(default, deserialize_with = "loose::number")]
    total_amount: Option<f64>,
    #[serde(default, deserialize_with = "loose::number")]
    used_amount: Option<f64>,
    // The only field of these answers that begins in lower case.
    #[serde(rename = "zoneId", alias = "ZoneId", default, deserialize_with = "loose::text")]
    zone_id: String,
}

/// Private pools that have been read, each once.
#[derive(Default)]
struct Pools {
    read: Vec<Pool>,
    seen: HashSet<String>,
    malformed: u64,
}

impl Pools {
    fn take(&mut self, rows: Rows<Pool>) -> Progress {
        let (records, before) = (rows.total(), self.read.len());
        self.malformed += rows.bad;
        for pool in rows.good {
            if self.seen.insert(pool.private_pool_options_id.clone()) {
                self.read.push(pool);
            }
        }
        Progress {
            records,
            new: self.read.len() - before,
        }
    }
}

impl Pool {
    /// What it holds for accelerator types. `word` is its detail, if that is
    /// not the way in which instances get into it.
    fn commitments(&self, scope: &Scope, word: &str) -> Vec<Commitment> {
        let resources = self.allocated_resources.iter().flat_map(|list| &list.rows.good);
        let accelerated: Vec<&Resource> = resources.filter(|r| is_accelerated(&r.instance_type)).collect();
        let several = accelerated.len() > 1;
        let detail = if word.is_empty() {
            self.private_pool_options_match_criteria.to_lowercase()
        } else {
            word.to_owned()
        };
        let commitments = accelerated.iter().map(|resource| {
            // One commitment has one type and one zone: a pool of several is
            // several, and only then has an id of more than the pool's.
            let id = if several {
                format!(
                    "{}/{}/{}",
                    self.private_pool_options_id, resource.zone_id, resource.instance_type
                )
            } else {
                self.private_pool_options_id.clone()
            };
            Commitment {
                kind: CommitmentKind::CapacityReservation,
                instance_type: resource.instance_type.as_str().into(),
                scope: if resource.zone_id.is_empty() {
                    CommitmentScope::Region
                } else {
                    CommitmentScope::Zone(resource.zone_id.as_str().into())
                },
                units: loose::units(resource.total_amount),
                used_units: loose::units(resource.used_amount),
                starts: loose::utc(&self.start_time),
                expires: loose::utc(&self.end_time),
                detail: detail.as_str().into(),
                ..blank(scope, &id)
            }
        });
        commitments.collect()
    }
}

/// A page of private pools.
trait PoolPage: DeserializeOwned + Send {
    fn take(self) -> (Rows<Pool>, Option<String>);
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssurancePage {
    #[serde(default)]
    next_token: Option<String>,
    #[serde(default)]
    elasticity_assurance_set: Option<AssuranceList>,
}

#[derive(Deserialize, Default)]
struct AssuranceList {
    #[serde(rename = "ElasticityAssuranceItem", default)]
    rows: Rows<Pool>,
}

impl PoolPage for AssurancePage {
    fn take(self) -> (Rows<Pool>, Option<String>) {
        (self.elasticity_assurance_set.unwrap_or_default().rows, self.next_token)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReservationPage {
    #[serde(default)]
    next_token: Option<String>,
    #[serde(default)]
    capacity_reservation_set: Option<ReservationList>,
}

#[derive(Deserialize, Default)]
struct ReservationList {
    #[serde(rename = "CapacityReservationItem", default)]
    rows: Rows<Pool>,
}

impl PoolPage for ReservationPage {
    fn take(self) -> (Rows<Pool>, Option<String>) {
        (self.capacity_reservation_set.unwrap_or_default().rows, self.next_token)
    }
}

/// Active elasticity assurances for accelerator types.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn elasticity_assurances(
    cx: &Context,
    account: &Account,
    scope: &Scope,
    shapes: &Shapes,
) -> Result<Vec<Commitment>, CollectError> {
    pools::<AssurancePage>(
        cx,
        account,
        scope,
        shapes,
        DESCRIBE_ELASTICITY_ASSURANCES,
        "elasticity_assurance",
    )
    .await
}

/// Active capacity reservations for accelerator types.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn capacity_reservations(
    cx: &Context,
    account: &Account,
    scope: &Scope,
    shapes: &Shapes,
) -> Result<Vec<Commitment>, CollectError> {
    pools::<ReservationPage>(cx, account, scope, shapes, DESCRIBE_CAPACITY_RESERVATIONS, "").await
}

async fn pools<P: PoolPage>(
    cx: &Context,
    account: &Account,
    scope: &Scope,
    shapes: &Shapes,
    action: Action,
    word: &str,
) -> Result<Vec<Commitment>, CollectError> {
    let region: &str = &scope.region;
    let fetch = |token: Option<String>| async move {
        let mut asked = parameters(&[("RegionId", region), ("MaxResults", PAGE_SIZE)]);
        asked.extend(token.map(|token| ("NextToken".to_owned(), token)));
        let page: P = account.call(cx, action, region, &asked).await?;
        Ok(page.take())
    };
    let listing = read_all(action.call, Pools::default, fetch, Pools::take).await?;
    let mut malformed = listing.malformed;
    let mut found = Vec::new();
    for pool in listing.read {
        if !matches!(pool.status.as_str(), "Active" | "") {
            continue;
        }
        malformed += pool.allocated_resources.as_ref().map_or(0, |list| list.rows.bad);
        found.extend(pool.commitments(scope, word));
    }
    cx.skip("malformed", malformed);
    let types = found.iter().map(|c| c.instance_type.clone()).collect();
    let gpus = gpus_of(cx, account, shapes, scope, types).await;
    for commitment in &mut found {
        commitment.gpus_per_unit = gpus(&commitment.instance_type);
    }
    Ok(unique(found))
}

fn is_accelerated(instance_type: &str) -> bool {
    shapes::has_accelerators(instance_type, &Stated::default())
}

/// Looks up the accelerators of one unit of these types.
async fn gpus_of(
    cx: &Context,
    account: &Account,
    shapes: &Shapes,
    scope: &Scope,
    types: Vec<Text>,
) -> impl Fn(&str) -> Option<GpuCount> + use<> {
    let facts = shapes.of(cx, account, &scope.region, &types).await;
    move |instance_type| {
        let facts = facts.get(instance_type);
        shapes::accelerators(instance_type, &Stated::default(), facts, &mut Interner::default()).count
    }
}

/// A commitment of a scope of which nothing is known yet.
pub(crate) fn blank(scope: &Scope, id: &str) -> Commitment {
    Commitment {
        provider: Provider::Aliyun,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: scope.region.clone(),
        id: id.into(),
        kind: CommitmentKind::CapacityReservation,
        instance_type: Text::default(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: None,
        used_units: None,
        gpus_per_unit: None,
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: None,
        detail: Text::default(),
    }
}

/// Each commitment once, by id: pages may repeat rows.
pub(crate) fn unique(commitments: impl IntoIterator<Item = Commitment>) -> Vec<Commitment> {
    let mut unique: Vec<Commitment> = commitments.into_iter().collect();
    unique.sort_by(|a, b| a.id.cmp(&b.id));
    unique.dedup_by(|a, b| a.id == b.id);
    unique
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{self, scope};

    #[test]
    fn a_pool_of_several_types_is_several_commitments() {
        let json = r#"{"PrivatePoolOptionsId": "eap-1", "Status": "Active", "EndTime": "2027-01-01T00:00Z",
            "AllocatedResources": {"AllocatedResource": [
                {"InstanceType": "ecs.gn7i-c8g1.2xlarge", "zoneId": "cn-hangzhou-h", "TotalAmount": 4, "UsedAmount": 1},
                {"InstanceType": "ecs.gn8v-8x.48xlarge", "zoneId": "cn-hangzhou-i", "TotalAmount": "2", "UsedAmount": "0"},
                {"InstanceType": "ecs.g7.xlarge", "zoneId": "cn-hangzhou-i", "TotalAmount": 2, "UsedAmount": 0},
                {"zoneId": "cn-hangzhou-i"}]}}"#;
        let pool: Pool = serde_json::from_str(json).unwrap();
        let found = pool.commitments(&scope("cn-hangzhou"), "elasticity_assurance");
        let facts: Vec<_> = found.iter().map(|c| (&*c.id, c.units, c.used_units)).collect();
        assert_eq!(
            facts,
            [
                ("eap-1/cn-hangzhou-h/ecs.gn7i-c8g1.2xlarge", Some(4), Some(1)),
                ("eap-1/cn-hangzhou-i/ecs.gn8v-8x.48xlarge", Some(2), Some(0)),
            ]
        );
        assert_eq!(pool.allocated_resources.unwrap().rows.bad, 1);
    }

    #[test]
    fn amounts_that_are_not_told_are_unknown() {
        let row = r#"{"ReservedInstanceId": "ecsri-1", "InstanceType": "ecs.gn7i-c8g1.2xlarge", "Scope": "Zone"}"#;
        let reserved: Reserved = serde_json::from_str(row).unwrap();
        let found = reserved.commitment(&scope("cn-hangzhou"), None);
        assert_eq!((found.units, found.used_units, found.expires), (None, None, None));
        assert_eq!(found.scope, CommitmentScope::Region, "zonal, without a zone");
        let row = r#"{"PrivatePoolOptionsId": "crp-1", "PrivatePoolOptionsMatchCriteria": "Target",
            "AllocatedResources": {"AllocatedResource": [{"InstanceType": "ecs.gn7i-c8g1.2xlarge"}]}}"#;
        let pool: Pool = serde_json::from_str(row).unwrap();
        let found = pool.commitments(&scope("cn-hangzhou"), "").remove(0);
        assert_eq!(
            (&*found.id, &*found.detail, found.units, found.used_units),
            ("crp-1", "target", None, None)
        );
    }

    proptest! {
        #[test]
        fn no_reserved_instance_can_make_it_panic(text in testing::record(&[
            "ReservedInstanceId", "InstanceType", "InstanceAmount", "Scope", "ZoneId", "Platform", "OfferingType",
            "StartTime", "ExpiredTime", "Status",
        ])) {
            let page = format!(r#"{{"TotalCount": 1, "ReservedInstances": {{"ReservedInstance": [{text}]}}}}"#);
            let page: ReservedPage = serde_json::from_str(&page).unwrap();
            let rows = page.reserved_instances.unwrap().rows;
            prop_assert_eq!(rows.total(), 1);
            for row in rows.good {
                let _ = row.commitment(&scope("cn-hangzhou"), None);
            }
        }

        #[test]
        fn no_pool_can_make_it_panic(text in testing::record(&[
            "PrivatePoolOptionsId", "Status", "StartTime", "EndTime", "PrivatePoolOptionsMatchCriteria",
            "AllocatedResources", "AllocatedResource", "InstanceType", "TotalAmount", "UsedAmount", "zoneId",
        ])) {
            let page = format!(r#"{{"CapacityReservationSet": {{"CapacityReservationItem": [{text}]}}}}"#);
            let page: ReservationPage = serde_json::from_str(&page).unwrap();
            let (rows, token) = page.take();
            prop_assert_eq!((rows.total(), token), (1, None));
            for pool in rows.good {
                let _ = pool.commitments(&scope("cn-hangzhou"), "");
            }
        }

        #[test]
        fn no_page_can_make_it_panic(text in testing::document(&[
            "TotalCount", "NextToken", "ReservedInstances", "ReservedInstance", "ElasticityAssuranceSet",
            "ElasticityAssuranceItem", "CapacityReservationSet", "CapacityReservationItem",
        ])) {
            let _ = serde_json::from_str::<ReservedPage>(&text);
            let _ = serde_json::from_str::<AssurancePage>(&text).map(PoolPage::take);
            let _ = serde_json::from_str::<ReservationPage>(&text).map(PoolPage::take);
        }
    }
}
