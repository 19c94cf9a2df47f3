//! What accelerators an instance type has: `DescribeInstanceTypes` first, the
//! catalogue second, the type's name never.
//!
//! Facts are kept for a day per partition and region. Fetching them is bounded
//! in time and never costs a listing: without them the catalogue answers.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, LazyLock, Mutex as PlainMutex},
};

use aws_sdk_ec2::types::{self as ec2, Filter, InstanceTypeInfo};
use gpuwatch_collector_core::{Call, CollectError, Context, Progress, Reason, lock, read_all};
use gpuwatch_inventory::{
    Accelerators, GpuCount, Provider, Text,
    catalog::{self, AcceleratorFacts},
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::{Partition, TypeFilter, calls::AccountAccess, errors::is_bad_parameter};

const DESCRIBE_INSTANCE_TYPES: Call = Call::new("ec2", "DescribeInstanceTypes", "ec2:DescribeInstanceTypes");

/// Families with accelerators. No CPU family begins like this, and a size
/// released tomorrow is found too; FPGA families (`f1`, `f2`) are left out.
pub(crate) const FAMILY_PATTERNS: [&str; 6] = ["p*", "g*", "inf*", "trn*", "dl*", "vt*"];

/// Most values in one filter: EC2 accepts 200 per request, other filters of
/// the same request included.
pub(crate) const FILTER_VALUES: usize = 190;

/// Largest page `DescribeInstanceTypes` gives.
const PAGE_SIZE: i32 = 100;

/// How long facts, and the fact that there are none, are kept.
const KEEP: SignedDuration = SignedDuration::from_hours(24);

/// Part of the time left that fetching facts may take: 1 / 3.
const SHARE_OF_TIME: u32 = 3;

/// The families of the catalogue's types (`p5` of `p5.48xlarge`).
static KNOWN_FAMILIES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| catalog_types().filter_map(|name| name.split('.').next()).collect());

/// The catalogue's AWS types.
pub(crate) fn catalog_types() -> impl Iterator<Item = &'static str> {
    catalog::builtin()
        .shapes()
        .iter()
        .filter(|shape| shape.provider == Provider::Aws)
        .map(|shape| &*shape.instance_type)
}

/// Whether a type may have accelerators at all. The listing's filter says the
/// same; this guards against endpoints that ignore filters.
pub(crate) fn may_have_accelerators(instance_type: &str) -> bool {
    FAMILY_PATTERNS
        .iter()
        .any(|pattern| instance_type.starts_with(pattern.trim_end_matches('*')))
        || catalog::builtin().shape(Provider::Aws, instance_type).is_some()
}

/// What the type API says about a type.
#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Accelerated(Accelerators),
    Plain,
}

/// Facts of one partition and region.
#[derive(Debug, Default)]
struct RegionFacts {
    /// Held while facts are fetched, so that they are fetched once.
    fetching: Mutex<()>,
    known: PlainMutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When all accelerator types were last listed.
    listed: Option<Timestamp>,
    types: HashMap<Text, Answer>,
    /// Types the API did not know when asked, and when that was.
    absent: HashMap<Text, Timestamp>,
}

/// Type facts of all partitions and regions.
#[derive(Debug)]
pub(crate) struct TypeFacts {
    filter: TypeFilter,
    regions: PlainMutex<HashMap<(Partition, Text), Arc<RegionFacts>>>,
}

/// The accelerators of the types that were asked about; a type without any is
/// not in it.
#[derive(Debug, Default)]
pub(crate) struct Accelerated(HashMap<Text, Accelerators>);

impl Accelerated {
    /// The accelerators of a type, `None` when it has none.
    pub(crate) fn of(&self, instance_type: &str) -> Option<&Accelerators> {
        self.0.get(instance_type)
    }
}

impl TypeFacts {
    pub(crate) fn new(filter: TypeFilter) -> Self {
        Self {
            filter,
            regions: PlainMutex::default(),
        }
    }

    /// The accelerators of these types. Facts that are missing are fetched,
    /// for at most a third of the time left; when that fails the run is
    /// degraded and the catalogue answers.
    pub(crate) async fn accelerated(
        &self,
        cx: &Context,
        access: &AccountAccess,
        partition: Partition,
        region: &str,
        types: &BTreeSet<Text>,
    ) -> Accelerated {
        let facts = Arc::clone(lock(&self.regions).entry((partition, region.into())).or_default());
        if !types.is_empty() {
            let limit = cx.remaining() / SHARE_OF_TIME;
            let outcome = cx
                .timeout(limit, self.complete(cx, access, region, &facts, types))
                .await;
            let failure = match outcome {
                Some(Ok(())) => None,
                Some(Err(error)) => Some(error),
                None => Some(CollectError::new(
                    Reason::Timeout,
                    "instance type facts take too long; the catalogue's are used",
                )),
            };
            if let Some(error) = failure {
                cx.degraded(&error);
            }
        }
        let known = lock(&facts.known);
        let decided = types
            .iter()
            .filter_map(|name| Some((name.clone(), decide(name, known.types.get(name))?)));
        Accelerated(decided.collect())
    }

    /// Fetches what is missing or too old.
    async fn complete(
        &self,
        cx: &Context,
        access: &AccountAccess,
        region: &str,
        facts: &RegionFacts,
        types: &BTreeSet<Text>,
    ) -> Result<(), CollectError> {
        let _one_at_a_time = facts.fetching.lock().await;
        let is_recent = |then: Timestamp| cx.now().duration_since(then) < KEEP;
        let listed_lately = lock(&facts.known).listed.is_some_and(is_recent);
        if self.filter == TypeFilter::Wildcard && !listed_lately {
            let patterns = FAMILY_PATTERNS.map(str::to_owned).to_vec();
            let listed = list(cx, access, region, patterns, false).await?;
            let mut known = lock(&facts.known);
            known.types.extend(listed);
            known.listed = Some(cx.now());
        }
        // A type can run on after it is no longer sold in the region, or be
        // hidden from this listing; and an exact filter lists nothing at first.
        let missing: Vec<String> = {
            let known = lock(&facts.known);
            let is_missing = |name: &&Text| {
                !known.types.contains_key(*name) && !known.absent.get(*name).copied().is_some_and(is_recent)
            };
            types.iter().filter(is_missing).map(ToString::to_string).collect()
        };
        for names in missing.chunks(FILTER_VALUES) {
            let found = match list(cx, access, region, names.to_vec(), true).await {
                Err(error) if is_bad_parameter(&error) => list(cx, access, region, names.to_vec(), false).await?,
                result => result?,
            };
            let mut known = lock(&facts.known);
            for name in names.iter().filter(|name| !found.contains_key(name.as_str())) {
                tracing::info!(
                    region,
                    instance_type = name,
                    "no instance type facts; the catalogue's are used if there are any"
                );
                known.absent.insert(name.as_str().into(), cx.now());
            }
            known.types.extend(found);
        }
        Ok(())
    }
}

/// Lists types by a filter on their names.
async fn list(
    cx: &Context,
    access: &AccountAccess,
    region: &str,
    names: Vec<String>,
    include_unsupported: bool,
) -> Result<HashMap<Text, Answer>, CollectError> {
    let filter = Filter::builder().name("instance-type").set_values(Some(names)).build();
    let fetch = |token: Option<String>| {
        let filter = filter.clone();
        async move {
            let page = access
                .call(cx, DESCRIBE_INSTANCE_TYPES, region, |session| {
                    session
                        .ec2(region)
                        .describe_instance_types()
                        .filters(filter.clone())
                        .max_results(PAGE_SIZE)
                        .set_include_unsupported_in_region(include_unsupported.then_some(true))
                        .set_next_token(token.clone())
                        .send()
                })
                .await?;
            let next = page.next_token().map(str::to_owned);
            Ok((page, next))
        }
    };
    read_all(DESCRIBE_INSTANCE_TYPES, HashMap::new, fetch, |types, page| {
        let before = types.len();
        let records = page.instance_types();
        types.extend(records.iter().filter_map(read));
        Progress {
            records: records.len(),
            new: types.len() - before,
        }
    })
    .await
}

/// What counts in the end, from the API's answer and the catalogue.
fn decide(name: &str, answer: Option<&Answer>) -> Option<Accelerators> {
    match answer {
        Some(Answer::Accelerated(accelerators)) => Some(accelerators.clone()),
        // The API leaves the accelerators of some types out (trn2u). A size of
        // a GPU family that neither describes is listed as unknown; a family
        // that merely has such a name is not.
        Some(Answer::Plain) => {
            let family = name.split('.').next().unwrap_or_default();
            from_catalog(name).or_else(|| KNOWN_FAMILIES.contains(family).then(Accelerators::default))
        }
        None => Some(from_catalog(name).unwrap_or_default()),
    }
}

fn from_catalog(name: &str) -> Option<Accelerators> {
    let catalog = catalog::builtin();
    catalog
        .shape(Provider::Aws, name)
        .map(|shape| catalog.shape_accelerators(shape))
}

/// One device entry of any of the four sections.
struct Device<'a> {
    vendor: Option<&'a str>,
    model: &'a str,
    /// Devices the instance sees: partitions of a card where it is cut.
    visible: Option<i32>,
    /// Share of a card that one visible device is.
    share: f64,
    /// Memory of one visible device.
    memory_mib: Option<i32>,
}

/// Reads a type's record; `None` without a name.
fn read(info: &InstanceTypeInfo) -> Option<(Text, Answer)> {
    let name = info.instance_type()?.as_str();
    let answer = match devices(info) {
        Some((devices, total_mib)) => {
            let stated = AcceleratorFacts {
                provider: Provider::Aws,
                instance_type: name,
                vendor: devices.iter().find_map(|device| device.vendor),
                model: devices
                    .iter()
                    .map(|device| device.model)
                    .find(|model| !model.is_empty())
                    .unwrap_or_default(),
                count: count(&devices),
                memory_mib: memory_mib(&devices, total_mib),
            };
            Answer::Accelerated(catalog::builtin().accelerators(&stated))
        }
        None => Answer::Plain,
    };
    Some((name.into(), answer))
}

/// The devices of the first section that is there, with the section's total
/// memory. Inferentia is in two sections, which are one and the same chips.
fn devices(info: &InstanceTypeInfo) -> Option<(Vec<Device<'_>>, Option<i32>)> {
    if let Some(gpus) = info.gpu_info() {
        let devices = gpus.gpus().iter().map(|gpu| Device {
            vendor: gpu.manufacturer(),
            model: gpu.name().unwrap_or_default(),
            visible: gpu.logical_gpu_count().filter(|count| *count > 0).or(gpu.count()),
            share: gpu.gpu_partition_size().filter(|size| *size > 0.0).unwrap_or(1.0),
            memory_mib: gpu.memory_info().and_then(ec2::GpuDeviceMemoryInfo::size_in_mib),
        });
        return Some((devices.collect(), gpus.total_gpu_memory_in_mib()));
    }
    if let Some(neuron) = info.neuron_info() {
        let devices = neuron.neuron_devices().iter().map(|device| Device {
            vendor: Some("aws"),
            model: device.name().unwrap_or_default(),
            visible: device.count(),
            share: 1.0,
            memory_mib: device.memory_info().and_then(ec2::NeuronDeviceMemoryInfo::size_in_mib),
        });
        return Some((devices.collect(), neuron.total_neuron_device_memory_in_mib()));
    }
    if let Some(inference) = info.inference_accelerator_info() {
        let devices = inference.accelerators().iter().map(|device| Device {
            vendor: device.manufacturer(),
            model: device.name().unwrap_or_default(),
            visible: device.count(),
            share: 1.0,
            memory_mib: device
                .memory_info()
                .and_then(ec2::InferenceDeviceMemoryInfo::size_in_mib),
        });
        return Some((devices.collect(), inference.total_inference_memory_in_mib()));
    }
    let media = info.media_accelerator_info()?;
    let devices = media.accelerators().iter().map(|device| Device {
        vendor: device.manufacturer(),
        model: device.name().unwrap_or_default(),
        visible: device.count(),
        share: 1.0,
        memory_mib: device.memory_info().and_then(ec2::MediaDeviceMemoryInfo::size_in_mib),
    });
    Some((devices.collect(), media.total_media_memory_in_mib()))
}

/// Cards, as a fraction where a card is cut; `None` where the API says nothing
/// or 0, which it does for every type with a part of a card.
fn count(devices: &[Device<'_>]) -> Option<GpuCount> {
    let cards: f64 = devices
        .iter()
        .filter_map(|device| Some(f64::from(device.visible?) * device.share))
        .sum();
    GpuCount::new(cards).filter(|count| count.get() > 0.0)
}

/// Memory of all devices: the section's total, or the sum over its devices.
fn memory_mib(devices: &[Device<'_>], total: Option<i32>) -> Option<u64> {
    let positive = |mib: i64| u64::try_from(mib).ok().filter(|mib| *mib > 0);
    let sum = || {
        let parts = devices
            .iter()
            .map(|device| Some(i64::from(device.visible?) * i64::from(device.memory_mib?)));
        parts.sum::<Option<i64>>()
    };
    total
        .map(i64::from)
        .and_then(positive)
        .or_else(|| sum().and_then(positive))
}

#[cfg(test)]
mod tests;
