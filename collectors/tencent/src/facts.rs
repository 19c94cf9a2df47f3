//! What accelerators an instance type has: what the record itself states, then
//! the type APIs, then the catalogue, and a type's name only to say that there
//! is an accelerator nobody knows.
//!
//! Type facts are kept for a day per region. Fetching them is bounded in time
//! and never costs a listing: without them the catalogue answers.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex as PlainMutex},
};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason, lock};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::{
    Accelerators, GpuCount, Provider, Text,
    catalog::{self, AcceleratorFacts},
};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::{access::AccountAccess, api::Action, loose, record::Stated};

const DESCRIBE_ZONE_INSTANCE_CONFIG_INFOS: Action = Action::new(
    Call::new(
        "cvm",
        "DescribeZoneInstanceConfigInfos",
        "cvm:DescribeZoneInstanceConfigInfos",
    ),
    "2017-03-12",
);
const DESCRIBE_INSTANCE_TYPE_CONFIGS: Action = Action::new(
    Call::new("cvm", "DescribeInstanceTypeConfigs", "cvm:DescribeInstanceTypeConfigs"),
    "2017-03-12",
);

/// Most values in one filter of `DescribeZoneInstanceConfigInfos`.
const FILTER_VALUES: usize = 100;

/// How long facts, and the fact that there are none, are kept.
const KEEP: SignedDuration = SignedDuration::from_hours(24);

/// Part of the time left that fetching facts may take: 1 / 3.
const SHARE_OF_TIME: u32 = 3;

/// Families with accelerators. Not all of HCC: `HCCIC5` has none.
const FAMILIES: [&str; 9] = ["GN", "GI", "PNV", "GT", "GC", "BMG", "PTX", "HCCG", "HCCPNV"];

/// A family with accelerators whose name begins like no other.
const TRAINING_FAMILY: &str = "HCCTG";

/// Whether a type's name alone says that it has accelerators.
pub(crate) fn is_gpu_family(instance_type: &str) -> bool {
    let family = instance_type.strip_prefix("TI.").unwrap_or(instance_type);
    FAMILIES
        .iter()
        .chain([&TRAINING_FAMILY])
        .any(|prefix| family.starts_with(prefix))
}

/// Sub-instances of a dedicated host have types that no table lists.
fn is_in_tables(instance_type: &str) -> bool {
    !instance_type.is_empty() && !instance_type.starts_with("CDH_")
}

/// What `DescribeZoneInstanceConfigInfos` says about a type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ZoneConfig {
    #[serde(deserialize_with = "loose::text")]
    instance_type: Option<String>,
    #[serde(deserialize_with = "loose::number")]
    gpu: Option<f64>,
    #[serde(deserialize_with = "loose::number")]
    gpu_count: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    remark: Option<String>,
}

/// What `DescribeInstanceTypeConfigs` says about a type.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TypeConfig {
    #[serde(deserialize_with = "loose::text")]
    instance_type: Option<String>,
    #[serde(rename = "GPU", deserialize_with = "loose::number")]
    gpu: Option<f64>,
    #[serde(deserialize_with = "loose::number")]
    gpu_count: Option<f64>,
    #[serde(deserialize_with = "loose::text")]
    gpu_type: Option<String>,
    /// GiB of one card.
    #[serde(deserialize_with = "loose::number")]
    gpu_memory: Option<f64>,
}

#[derive(Deserialize)]
struct ZoneConfigs {
    #[serde(rename = "InstanceTypeQuotaSet", default)]
    rows: Rows<ZoneConfig>,
}

#[derive(Deserialize)]
struct TypeConfigs {
    #[serde(rename = "InstanceTypeConfigSet", default)]
    rows: Rows<TypeConfig>,
}

/// What one of the tables says about one type.
#[derive(Debug, Clone, Default, PartialEq)]
struct TypeFact {
    count: Option<GpuCount>,
    model: String,
    /// GiB of one card.
    card_gib: Option<f64>,
}

/// One table of a region.
#[derive(Debug, Default)]
struct TableOfTypes {
    facts: HashMap<Text, TypeFact>,
    /// When a type was last asked for, found or not.
    asked: HashMap<Text, Timestamp>,
}

#[derive(Debug, Default)]
struct Known {
    zones: TableOfTypes,
    configs: TableOfTypes,
}

/// Facts of one region.
#[derive(Debug, Default)]
struct RegionFacts {
    /// Held while facts are fetched, so that they are fetched once.
    fetching: Mutex<()>,
    known: PlainMutex<Known>,
}

/// Type facts of all regions of a section.
#[derive(Debug, Default)]
pub(crate) struct TypeFacts {
    regions: PlainMutex<HashMap<Text, Arc<RegionFacts>>>,
}

/// Types in use, by what their records say.
#[derive(Debug, Default)]
pub(crate) struct TypesInUse {
    /// Types of records that state accelerators.
    pub accelerated: BTreeSet<Text>,
    /// Types of records that state none.
    pub undecided: BTreeSet<Text>,
}

impl TypesInUse {
    pub(crate) fn note(&mut self, instance_type: &str, stated: Stated<'_>) {
        let set = if stated.count.is_some() {
            &mut self.accelerated
        } else {
            &mut self.undecided
        };
        if !set.contains(instance_type) {
            set.insert(instance_type.into());
        }
    }
}

/// Decides about the types of one region.
pub(crate) struct Decider(Arc<RegionFacts>);

impl TypeFacts {
    /// Fetches what is missing about these types, for at most a third of the
    /// time left; when that fails the run is degraded.
    pub(crate) async fn decider(
        &self,
        cx: &Context,
        access: &AccountAccess,
        region: &Text,
        types: &TypesInUse,
    ) -> Decider {
        let facts = Arc::clone(lock(&self.regions).entry(region.clone()).or_default());
        let limit = cx.remaining() / SHARE_OF_TIME;
        let failure = match cx.timeout(limit, complete(cx, access, region, &facts, types)).await {
            Some(result) => result.err(),
            None => Some(CollectError::new(
                Reason::Timeout,
                "instance type facts take too long; the catalogue's are used",
            )),
        };
        if let Some(error) = failure {
            cx.degraded(&error);
        }
        Decider(facts)
    }
}

async fn complete(
    cx: &Context,
    access: &AccountAccess,
    region: &Text,
    facts: &RegionFacts,
    types: &TypesInUse,
) -> Result<(), CollectError> {
    let _one_at_a_time = facts.fetching.lock().await;
    let now = cx.now();
    let missing = lock(&facts.known).zones.missing(types.undecided.iter(), now);
    for names in missing.chunks(FILTER_VALUES) {
        let found = zone_configs(cx, access, region, names).await?;
        lock(&facts.known).zones.learn(names, found, now);
    }
    if !access.site().has_type_configs() {
        return Ok(());
    }
    let missing = {
        let known = lock(&facts.known);
        let by_table = |name: &&Text| known.zones.count(name).is_some() || in_catalog(name) || is_gpu_family(name);
        let accelerated = types.accelerated.iter().chain(types.undecided.iter().filter(by_table));
        known.configs.missing(accelerated, now)
    };
    if !missing.is_empty() {
        // One call for all: its filter takes one type only.
        let ask = async {
            let answer: TypeConfigs = access
                .call(cx, DESCRIBE_INSTANCE_TYPE_CONFIGS, region, &json!({}))
                .await?;
            cx.skip("malformed", answer.rows.bad);
            Ok(answer.rows.good)
        };
        let rows = access
            .if_present(cx, DESCRIBE_INSTANCE_TYPE_CONFIGS, region, ask)
            .await?;
        let found = rows.into_iter().filter_map(TypeConfig::fact).collect();
        lock(&facts.known).configs.learn(&missing, found, now);
    }
    Ok(())
}

async fn zone_configs(
    cx: &Context,
    access: &AccountAccess,
    region: &Text,
    names: &[Text],
) -> Result<Vec<(Text, TypeFact)>, CollectError> {
    let values: Vec<&str> = names.iter().map(|name| &**name).collect();
    let body = json!({"Filters": [{"Name": "instance-type", "Values": values}]});
    let ask = async {
        let answer: ZoneConfigs = access
            .call(cx, DESCRIBE_ZONE_INSTANCE_CONFIG_INFOS, region, &body)
            .await?;
        cx.skip("malformed", answer.rows.bad);
        Ok(answer.rows.good)
    };
    let rows = access
        .if_present(cx, DESCRIBE_ZONE_INSTANCE_CONFIG_INFOS, region, ask)
        .await?;
    Ok(rows.into_iter().filter_map(ZoneConfig::fact).collect())
}

impl TableOfTypes {
    fn missing<'a>(&self, types: impl Iterator<Item = &'a Text>, now: Timestamp) -> Vec<Text> {
        let is_recent = |then: &Timestamp| now.duration_since(*then) < KEEP;
        types
            .filter(|name| is_in_tables(name) && !self.asked.get(*name).is_some_and(is_recent))
            .cloned()
            .collect()
    }

    /// A type has one row per zone and charge type; the first that knows
    /// accelerators counts.
    fn learn(&mut self, asked: &[Text], found: Vec<(Text, TypeFact)>, now: Timestamp) {
        self.asked.extend(asked.iter().map(|name| (name.clone(), now)));
        for (name, fact) in found {
            let known = self.facts.entry(name).or_default();
            if known.count.is_none() || known.card_gib.is_none() {
                known.count = known.count.or(fact.count);
                known.card_gib = known.card_gib.or(fact.card_gib);
            }
            if known.model.is_empty() {
                known.model = fact.model;
            }
        }
    }

    fn count(&self, name: &str) -> Option<GpuCount> {
        self.facts.get(name)?.count
    }
}

/// The exact count, or the whole number where that is missing.
fn count(exact: Option<f64>, whole: Option<f64>) -> Option<GpuCount> {
    let positive = |number: Option<f64>| GpuCount::new(number?).filter(|count| *count > GpuCount::ZERO);
    positive(exact).or_else(|| positive(whole))
}

impl ZoneConfig {
    fn fact(self) -> Option<(Text, TypeFact)> {
        let fact = TypeFact {
            count: count(self.gpu_count, self.gpu),
            model: self
                .remark
                .as_deref()
                .and_then(model_of_remark)
                .unwrap_or_default()
                .to_owned(),
            card_gib: None,
        };
        Some((self.instance_type?.as_str().into(), fact))
    }
}

impl TypeConfig {
    fn fact(self) -> Option<(Text, TypeFact)> {
        let fact = TypeFact {
            count: count(self.gpu_count, self.gpu),
            model: self.gpu_type.unwrap_or_default(),
            card_gib: self.gpu_memory.filter(|gib| *gib > 0.0),
        };
        Some((self.instance_type?.as_str().into(), fact))
    }
}

/// The model in `8 * NVIDIA V100` or `4 颗 NVIDIA T4`: what follows a number
/// and a sign or word of counting.
fn model_of_remark(remark: &str) -> Option<&str> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '/');
    let rest = remark
        .trim_start()
        .strip_prefix(is_number)?
        .trim_start_matches(is_number);
    let rest = rest
        .trim_start()
        .strip_prefix(['*', 'x', 'X', '×', '颗', '块', '张', '片'])?;
    let end = rest.find([',', ';', '，', '；', '(', '（', '\n']).unwrap_or(rest.len());
    let model = rest.get(..end)?.trim();
    let is_model = model.starts_with(|c: char| c.is_ascii_alphabetic()) && model.len() <= 64;
    is_model.then_some(model)
}

fn in_catalog(instance_type: &str) -> bool {
    catalog::builtin().shape(Provider::Tencent, instance_type).is_some()
}

impl Decider {
    /// The accelerators of a record of this type; `None` when it has none.
    pub(crate) fn accelerators(&self, instance_type: &str, stated: Stated<'_>) -> Option<Accelerators> {
        let known = lock(&self.0.known);
        let zone = known.zones.facts.get(instance_type);
        let config = known.configs.facts.get(instance_type);
        decide(instance_type, stated, zone, config)
    }
}

fn decide(
    instance_type: &str,
    stated: Stated<'_>,
    zone: Option<&TypeFact>,
    config: Option<&TypeFact>,
) -> Option<Accelerators> {
    let count = stated
        .count
        .or(zone.and_then(|fact| fact.count))
        .or(config.and_then(|fact| fact.count));
    let is_known = in_catalog(instance_type);
    if count.is_none() && stated.model.is_empty() && !is_known && !is_gpu_family(instance_type) {
        return None;
    }
    // The type table's own name of a card may be a code, which must not hide
    // the catalogue's knowledge.
    let code = config.map(|fact| fact.model.as_str()).filter(|code| {
        let is_readable = catalog::builtin()
            .model(code, config.and_then(|fact| fact.card_gib))
            .is_some();
        is_readable || !is_known
    });
    let names = [Some(stated.model), zone.map(|fact| fact.model.as_str()), code];
    let model = names.into_iter().flatten().find(|name| !name.is_empty());
    Some(catalog::builtin().accelerators(&AcceleratorFacts {
        provider: Provider::Tencent,
        instance_type,
        vendor: None,
        model: model.unwrap_or_default(),
        count,
        memory_mib: memory_mib(count, config.and_then(|fact| fact.card_gib)),
    }))
}

/// Memory of all cards, or of the slice.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first"
)]
fn memory_mib(count: Option<GpuCount>, card_gib: Option<f64>) -> Option<u64> {
    let mib = (count?.get() * card_gib? * 1024.0).round();
    (1.0..=1e12).contains(&mib).then_some(mib as u64)
}

#[cfg(test)]
mod tests;
