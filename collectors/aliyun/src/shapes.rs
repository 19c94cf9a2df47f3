//! Which instance types have accelerators, and which.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
    time::Duration,
};

use gpuwatch_collector_core::{CollectError, Context, Interner, Progress, lock, read_all};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{
    Accelerators, GpuCount, Provider, Text,
    catalog::{self, AcceleratorFacts},
};
use serde::Deserialize;

use crate::{
    account::Account,
    client::{Action, Parameters, detail, parameters},
    hosts::Product,
    loose,
};

const DESCRIBE_INSTANCE_TYPES: Action = Action::new(Product::Ecs, "DescribeInstanceTypes", "ecs:DescribeInstanceTypes");

/// Types named in one call, at most.
const TYPES_PER_CALL: usize = 10;
/// Facts are asked for anew after this time.
const KEPT: Duration = Duration::from_hours(24);
/// Megabytes in a gigabyte, both of 1,024.
const MIB: f64 = 1024.0;

/// Whether a type's family is one with accelerators: `ecs.gn7i`, `ecs.ebmgn7e`,
/// `ecs.sccgn7ex`, `ecs.vgn6i-vws`, `ecs.sgn8ia`. `ecs.g7` is a CPU family.
pub(crate) fn is_accelerated_family(instance_type: &str) -> bool {
    let Some(family) = instance_type.strip_prefix("ecs.") else {
        return false;
    };
    let family = ["ebm", "scc"]
        .iter()
        .find_map(|prefix| family.strip_prefix(prefix))
        .unwrap_or(family);
    let family = family.strip_prefix(['v', 's']).unwrap_or(family);
    family
        .strip_prefix("gn")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether the catalogue has the type, with accelerators.
fn is_in_catalog(instance_type: &str) -> bool {
    catalog::builtin()
        .shape(Provider::Aliyun, instance_type)
        .is_some_and(|shape| shape.count.is_none_or(|count| count.get() > 0.0))
}

/// What is stated about an instance's accelerators by the instance itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stated {
    pub amount: Option<f64>,
    pub model: String,
}

/// What the type API says about a type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TypeFacts {
    amount: Option<f64>,
    model: String,
    /// Of one card, in GiB.
    memory_gib: Option<f64>,
}

/// Whether an instance has accelerators at all.
pub(crate) fn has_accelerators(instance_type: &str, stated: &Stated) -> bool {
    stated.amount.is_some_and(|amount| amount > 0.0)
        || is_in_catalog(instance_type)
        || is_accelerated_family(instance_type)
}

/// The accelerators of an instance: from what it states, then the type API,
/// then the catalogue, which also corrects slices that APIs count as a card.
pub(crate) fn accelerators(
    instance_type: &str,
    stated: &Stated,
    facts: Option<&TypeFacts>,
    interner: &mut Interner,
) -> Accelerators {
    let positive = |amount: Option<f64>| amount.filter(|amount| *amount > 0.0);
    let amount = positive(stated.amount).or_else(|| positive(facts.and_then(|facts| facts.amount)));
    let named = [stated.model.as_str(), facts.map_or("", |facts| facts.model.as_str())];
    let model = named.into_iter().find(|model| !model.is_empty()).unwrap_or_default();
    let per_card = facts.and_then(|facts| facts.memory_gib).filter(|gib| *gib > 0.0);
    let catalog = catalog::builtin();
    // A name that no model has, on a type that the catalogue knows: the type
    // tells more than a marketing text does.
    let known_type = catalog.shape(Provider::Aliyun, instance_type).is_some();
    let model = if known_type && catalog.model(model, per_card).is_none() {
        ""
    } else {
        model
    };
    let mut accelerators = catalog.accelerators(&AcceleratorFacts {
        provider: Provider::Aliyun,
        instance_type,
        vendor: None,
        model,
        count: amount.and_then(GpuCount::new),
        memory_mib: amount.zip(per_card).and_then(|(amount, gib)| whole(amount * gib * MIB)),
    });
    accelerators.model = interner.text(&accelerators.model);
    accelerators
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range just before"
)]
fn whole(mib: f64) -> Option<u64> {
    (mib.is_finite() && (0.0..1e12).contains(&mib)).then(|| mib.round() as u64)
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "NextToken", default)]
    next_token: Option<String>,
    #[serde(rename = "InstanceTypes", default)]
    types: TypeList,
}

#[derive(Deserialize, Default)]
struct TypeList {
    #[serde(rename = "InstanceType", default)]
    rows: Rows<TypeRow>,
}

#[derive(Deserialize)]
struct TypeRow {
    #[serde(rename = "InstanceTypeId")]
    id: String,
    #[serde(rename = "GPUAmount", default, deserialize_with = "loose::number")]
    amount: Option<f64>,
    #[serde(rename = "GPUSpec", default, deserialize_with = "loose::text")]
    model: String,
    #[serde(rename = "GPUMemorySize", default, deserialize_with = "loose::number")]
    memory_gib: Option<f64>,
}

/// Facts by account and type; `None` for a type that the API does not know.
type Kept = HashMap<(Text, Text), (Duration, Option<TypeFacts>)>;

/// Facts of types that the catalogue lacks, from the type API.
#[derive(Default)]
pub(crate) struct Shapes {
    kept: Mutex<Kept>,
}

impl Shapes {
    /// The facts of these types, as far as they can be had. What fails costs
    /// detail and not the listing.
    pub(crate) async fn of(
        &self,
        cx: &Context,
        account: &Account,
        region: &str,
        types: impl IntoIterator<Item = &Text>,
    ) -> HashMap<Text, TypeFacts> {
        let id = &cx.scope().account.id;
        let wanted: BTreeSet<Text> = types.into_iter().filter(|name| !is_in_catalog(name)).cloned().collect();
        let fresh = |at: &Duration| cx.monotonic().saturating_sub(*at) < KEPT;
        let missing: Vec<Text> = {
            let kept = lock(&self.kept);
            let is_missing = |name: &&Text| {
                !kept
                    .get(&(id.clone(), (*name).clone()))
                    .is_some_and(|(at, _)| fresh(at))
            };
            wanted.iter().filter(is_missing).cloned().collect()
        };
        for batch in missing.chunks(TYPES_PER_CALL) {
            // Boxed: rare, and its future is large.
            let fetch = Box::pin(describe(cx, account, region, batch));
            match detail(cx, DESCRIBE_INSTANCE_TYPES.call, fetch).await {
                Ok(found) => {
                    let mut kept = lock(&self.kept);
                    for name in batch {
                        let entry = (cx.monotonic(), found.get(name).cloned());
                        kept.insert((id.clone(), name.clone()), entry);
                    }
                }
                Err(error) => {
                    cx.degraded(&error);
                    break;
                }
            }
        }
        let kept = lock(&self.kept);
        wanted
            .into_iter()
            .filter_map(|name| {
                let (_, facts) = kept.get(&(id.clone(), name.clone()))?;
                Some((name, facts.clone()?))
            })
            .collect()
    }
}

async fn describe(
    cx: &Context,
    account: &Account,
    region: &str,
    types: &[Text],
) -> Result<HashMap<Text, TypeFacts>, CollectError> {
    let mut asked: Parameters = parameters(&[("RegionId", region), ("MaxResults", "100")]);
    for (number, name) in (1..).zip(types) {
        asked.insert(format!("InstanceTypes.{number}"), name.to_string());
    }
    let asked = &asked;
    let fetch = |token: Option<String>| async move {
        let mut asked = asked.clone();
        asked.extend(token.map(|token| ("NextToken".to_owned(), token)));
        let page: Page = account.call(cx, DESCRIBE_INSTANCE_TYPES, region, &asked).await?;
        Ok((page.types.rows, page.next_token))
    };
    read_all(DESCRIBE_INSTANCE_TYPES.call, HashMap::new, fetch, |found, rows| {
        let (records, before) = (rows.total(), found.len());
        for row in rows.good {
            let facts = TypeFacts {
                amount: row.amount,
                model: row.model,
                memory_gib: row.memory_gib,
            };
            found.insert(Text::from(row.id.as_str()), facts);
        }
        Progress {
            records,
            new: found.len() - before,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    fn of(instance_type: &str, amount: Option<f64>, model: &str) -> Accelerators {
        let stated = Stated {
            amount,
            model: model.to_owned(),
        };
        accelerators(instance_type, &stated, None, &mut Interner::default())
    }

    #[test]
    fn families_with_accelerators() {
        for yes in [
            "ecs.gn7i-c8g1.2xlarge",
            "ecs.ebmgn7e.32xlarge",
            "ecs.sccgn7ex.32xlarge",
            "ecs.vgn6i-m4-vws.xlarge",
            "ecs.sgn7i-vws-m2.xlarge",
            "ecs.gn99-future.xlarge",
        ] {
            assert!(is_accelerated_family(yes), "{yes}");
        }
        for no in [
            "ecs.g7.xlarge",
            "ecs.gn.x",
            "ecs.ebmg7.32xlarge",
            "ecs.f3-c4f1.xlarge",
            "ecs.s6.large",
            "gn7i",
        ] {
            assert!(!is_accelerated_family(no), "{no}");
        }
    }

    // P36
    #[test]
    fn a_slice_is_the_fraction_that_it_is_whatever_the_api_counts() {
        let types: Vec<_> = catalog::builtin()
            .shapes()
            .iter()
            .filter(|shape| shape.provider == Provider::Aliyun)
            .filter(|shape| shape.count.is_some_and(|count| count.get() < 1.0))
            .collect();
        assert!(!types.is_empty());
        for shape in types {
            for amount in [None, Some(0.0), Some(1.0)] {
                let found = of(&shape.instance_type, amount, "");
                assert_eq!(found.count, shape.count, "{} {amount:?}", shape.instance_type);
            }
        }
    }

    #[test]
    fn an_unknown_type_keeps_what_is_stated() {
        let future = of("ecs.gn99-future.xlarge", Some(8.0), "NVIDIA X900");
        assert_eq!(future.count, Some(GpuCount::from(8)));
        assert!(!future.in_catalog && future.model.contains("X900"));
        assert_eq!(of("ecs.gn99-future.xlarge", None, "").count, None, "unknown is not 0");
    }

    proptest! {
        #[test]
        fn no_answer_can_make_it_panic(text in testing::record(&[
            "InstanceTypeId", "GPUAmount", "GPUSpec", "GPUMemorySize",
        ]), other in testing::document(&["NextToken", "InstanceTypes", "InstanceType"])) {
            let page: Page = serde_json::from_str(&format!(r#"{{"InstanceTypes": {{"InstanceType": [{text}]}}}}"#)).unwrap();
            prop_assert_eq!(page.types.rows.total(), 1);
            for row in page.types.rows.good {
                let facts = TypeFacts { amount: row.amount, model: row.model, memory_gib: row.memory_gib };
                let found = accelerators(&row.id, &Stated::default(), Some(&facts), &mut Interner::default());
                prop_assert!(found.count.is_none_or(|count| count.get() > 0.0));
            }
            let _ = serde_json::from_str::<Page>(&other);
        }
    }
}
