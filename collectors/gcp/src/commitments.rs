//! Committed use discounts on accelerators.
//!
//! Only resource-based commitments have accelerators. Spend-based ones are not
//! in this API, and cover no GPUs.

use gpuwatch_collector_core::{Coalesced, CollectError, Context, Scope};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, GpuCount, Provider, Text};
use serde::Deserialize;

use crate::{
    api::Api,
    calls::COMMITMENTS,
    listing::{ByRegion, Taken, aggregated},
    place::{Place, last, path_of},
    value::{Time, Whole},
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    id: Whole,
    name: Option<String>,
    self_link: Option<String>,
    status: Option<String>,
    resources: Option<Vec<Resource>>,
    start_timestamp: Time,
    end_timestamp: Time,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    #[serde(rename = "type")]
    kind: Option<String>,
    amount: Whole,
    accelerator_type: Option<String>,
}

/// Lists commitments.
#[derive(Debug, Default)]
pub(crate) struct CommitmentLister {
    listings: Coalesced<ByRegion<Vec<Commitment>>>,
}

impl CommitmentLister {
    /// The active commitments of a scope that have accelerators: one record
    /// for each accelerator type.
    ///
    /// # Errors
    /// When the region could not be reached.
    pub(crate) async fn list(&self, cx: &Context, api: &Api, scope: &Scope) -> Result<Vec<Commitment>, CollectError> {
        let fetch = || {
            aggregated(cx, api, COMMITMENTS, "commitments", None, |place, record| {
                read(scope, place, &record)
            })
        };
        let listing = self.listings.get(&scope.account.id, cx, fetch).await?;
        Ok(listing.of(cx, &scope.region)?.iter().flatten().cloned().collect())
    }

    /// Forgets projects that are no longer polled.
    pub(crate) fn retain(&self, keep: impl Fn(&Text) -> bool) {
        self.listings.retain(keep);
    }
}

fn read(scope: &Scope, place: Place<'_>, record: &Record) -> Taken<Vec<Commitment>> {
    let Some(id) = record.id.0 else {
        return Taken::Bad("no_id");
    };
    let id = Text::from(id.to_string());
    if record.status.as_deref() != Some("ACTIVE") {
        return Taken::Other(id);
    }
    let mut found: Vec<Commitment> = Vec::new();
    for resource in record.resources.iter().flatten() {
        if resource.kind.as_deref() != Some("ACCELERATOR") {
            continue;
        }
        let kind = last(resource.accelerator_type.as_deref().unwrap_or_default());
        match found.iter_mut().find(|other| &*other.instance_type == kind) {
            Some(same) => {
                same.units = same
                    .units
                    .zip(resource.amount.count())
                    .map(|(a, b)| a.saturating_add(b));
            }
            None => found.push(commitment(scope, place, record, &id, kind, resource.amount.count())),
        }
    }
    if found.is_empty() {
        return Taken::Other(id);
    }
    Taken::Row(id, found)
}

fn commitment(
    scope: &Scope,
    place: Place<'_>,
    record: &Record,
    id: &Text,
    accelerator_type: &str,
    accelerators: Option<u32>,
) -> Commitment {
    let name = record.name.as_deref().unwrap_or_default();
    let path = record.self_link.as_deref().map_or_else(
        || {
            format!(
                "projects/{}/regions/{}/commitments/{name}",
                scope.account.id, place.region
            )
        },
        |link| path_of(link).to_owned(),
    );
    Commitment {
        provider: Provider::Gcp,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: place.region.into(),
        id: id.clone(),
        kind: CommitmentKind::CommittedUse,
        instance_type: accelerator_type.into(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: accelerators,
        // Filled in by `allocate`.
        used_units: None,
        gpus_per_unit: Some(GpuCount::from(1)),
        hourly: None,
        rates: Vec::new(),
        starts: record.start_timestamp.0,
        expires: record.end_timestamp.0,
        detail: path.into(),
    }
}

#[cfg(test)]
mod tests {
    use gpuwatch_collector_core::Account;

    use super::*;

    fn taken(json: &str) -> Taken<Vec<Commitment>> {
        let scope = Scope {
            provider: Provider::Gcp,
            account: Account {
                id: "p".into(),
                name: "P".into(),
            },
            region: "us-central1".into(),
        };
        let place = Place {
            region: "us-central1",
            zone: "",
        };
        read(&scope, place, &serde_json::from_str(json).unwrap())
    }

    #[test]
    fn accelerators_are_what_counts() {
        let Taken::Row(_, found) = taken(
            r#"{"id": "7", "name": "c", "status": "ACTIVE", "endTimestamp": "2027-01-01T00:00:00.000-08:00",
            "resources": [{"type": "VCPU", "amount": "208"}, {"type": "MEMORY", "amount": "1916928"},
            {"type": "ACCELERATOR", "amount": "8", "acceleratorType": "zones/z/acceleratorTypes/nvidia-h100-80gb"},
            {"type": "ACCELERATOR", "amount": "8", "acceleratorType": "nvidia-h100-80gb"},
            {"type": "ACCELERATOR", "amount": "2", "acceleratorType": "nvidia-l4"}]}"#,
        ) else {
            panic!("not listed")
        };
        let units: Vec<_> = found.iter().map(|c| (&*c.instance_type, c.units)).collect();
        assert_eq!(units, [("nvidia-h100-80gb", Some(16)), ("nvidia-l4", Some(2))]);
        assert!(
            found
                .iter()
                .all(|c| &*c.detail == "projects/p/regions/us-central1/commitments/c")
        );
    }

    #[test]
    fn plain_and_ended_commitments_are_left_out() {
        let plain = r#"{"id": "7", "status": "ACTIVE", "resources": [{"type": "VCPU", "amount": "8"}]}"#;
        assert!(matches!(taken(plain), Taken::Other(_)));
        for status in ["NOT_YET_ACTIVE", "EXPIRED", "CANCELLED", "CREATING", "BRAND_NEW"] {
            let json = format!(
                r#"{{"id": "7", "status": "{status}", "resources": [{{"type": "ACCELERATOR", "amount": "8"}}]}}"#
            );
            assert!(matches!(taken(&json), Taken::Other(_)), "{status}");
        }
        assert!(matches!(taken("{}"), Taken::Bad("no_id")));
    }

    proptest::proptest! {
        #[test]
        fn any_record_is_read_or_refused(record in crate::samples::any_json()) {
            let _ = serde_json::from_value::<Record>(record.clone()).map(|_| taken(&record.to_string()));
        }
    }
}
