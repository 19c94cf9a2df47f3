//! `DescribeInstanceTypes`.

use super::super::error::AwsError;
use super::super::params::{Filter, Params};
use super::super::service::Call;
use super::super::types::{self, DeviceFacts, InstanceTypeFacts};
use super::super::xml::Xml;
use super::{Spoilt, any_match, check_filters, document, paging, spoilt};

/// Most names in one call.
const MAX_NAMES: usize = 100;

const FILTERS: &[&str] = &[
    "instance-type",
    "supported-usage-class",
    "processor-info.supported-architecture",
    "current-generation",
    "bare-metal",
];

pub(super) fn describe(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let paged = params.get("MaxResults").is_some();
    let request = paging(call, &mut params, 5, 100)?;
    let include_unsupported = params.take_bool("IncludeUnsupportedInRegion")?;
    let names = params.take_list("InstanceType");
    let filters = params.take_filters()?;
    params.finish()?;
    check_filters(&filters, FILTERS)?;
    if paged && !names.is_empty() {
        let message = "The parameter InstanceTypes cannot be used with the parameter MaxResults";
        return Err(AwsError::new("InvalidParameterCombination", 400, message));
    }
    if names.len() > MAX_NAMES {
        let message = format!("The maximum number of instance types is {MAX_NAMES}");
        return Err(AwsError::new("InvalidParameterValue", 400, message));
    }
    let offered = |facts: &&InstanceTypeFacts| include_unsupported || facts.current;
    let unknown: Vec<&str> = names
        .iter()
        .filter(|name| !types::instance_type(name).is_some_and(|facts| offered(&facts)))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        let message = format!(
            "The following supplied instance types do not exist: [{}]",
            unknown.join(", ")
        );
        return Err(AwsError::new("InvalidInstanceType", 400, message));
    }

    let wanted = |facts: &InstanceTypeFacts| {
        let asked_for = names.is_empty() || names.contains(&facts.name);
        asked_for && filters.iter().all(|filter| passes(facts, filter))
    };
    let rows = types::all().iter().filter(offered).filter(|facts| wanted(facts));
    let mut rows: Vec<(&str, &InstanceTypeFacts)> = rows.map(|facts| (facts.name.as_str(), facts)).collect();
    rows.sort_by_key(|(name, _)| *name);
    let page = request.page(rows.into_iter(), call.alteration);
    Ok(document(call, 512 + page.rows.len() * 2048, |xml| {
        xml.tag("instanceTypeSet", |xml| {
            for (facts, spoilt) in spoilt(&page.rows, call.alteration) {
                xml.tag("item", |xml| item(xml, facts, spoilt));
            }
        });
        xml.optional("nextToken", page.next.as_deref());
    }))
}

fn passes(facts: &InstanceTypeFacts, filter: &Filter) -> bool {
    let word = |fact: bool| if fact { "true" } else { "false" };
    match filter.name.as_str() {
        "instance-type" => any_match(filter, &[&facts.name]),
        "supported-usage-class" => any_match(filter, &facts.usage_classes),
        "processor-info.supported-architecture" => any_match(filter, &[&facts.architecture]),
        "current-generation" => any_match(filter, &[word(facts.current)]),
        "bare-metal" => any_match(filter, &[word(is_metal(facts))]),
        _ => false,
    }
}

fn is_metal(facts: &InstanceTypeFacts) -> bool {
    facts.name.contains(".metal")
}

fn item(xml: &mut Xml, facts: &InstanceTypeFacts, spoilt: Spoilt) {
    if spoilt != Spoilt::NoId {
        xml.text("instanceType", &facts.name);
    }
    xml.value("currentGeneration", facts.current);
    xml.value("freeTierEligible", false);
    let unknown_class = (spoilt == Spoilt::Kind).then_some("foo");
    xml.words(
        "supportedUsageClasses",
        facts.usage_classes.iter().copied().chain(unknown_class),
    );
    xml.words("supportedRootDeviceTypes", ["ebs"]);
    xml.words("supportedVirtualizationTypes", ["hvm"]);
    xml.value("bareMetal", is_metal(facts));
    xml.text("hypervisor", if spoilt == Spoilt::State { "bar" } else { "nitro" });
    xml.tag("processorInfo", |xml| {
        xml.words("supportedArchitectures", [facts.architecture.as_str()]);
    });
    xml.tag("vCpuInfo", |xml| xml.value("defaultVCpus", facts.vcpus));
    xml.tag("memoryInfo", |xml| xml.value("sizeInMiB", facts.memory_mib));
    xml.value("instanceStorageSupported", false);
    if let Some(device) = &facts.device {
        for section in &facts.sections {
            match section.as_str() {
                "gpu" => gpu_info(xml, device),
                "neuron" => neuron_info(xml, device),
                "inference" => {
                    devices(
                        xml,
                        device,
                        "inferenceAcceleratorInfo",
                        "accelerators",
                        "totalInferenceMemoryInMiB",
                    );
                }
                "media" => devices(
                    xml,
                    device,
                    "mediaAcceleratorInfo",
                    "accelerators",
                    "totalMediaMemoryInMiB",
                ),
                "fpga" => devices(xml, device, "fpgaInfo", "fpgas", "totalFpgaMemoryInMiB"),
                _ => {}
            }
        }
    }
    xml.value("hibernationSupported", false);
    xml.value("burstablePerformanceSupported", false);
    xml.value("dedicatedHostsSupported", false);
    xml.value("autoRecoverySupported", false);
    xml.value("supportedInRegion", facts.current);
}

fn gpu_info(xml: &mut Xml, device: &DeviceFacts) {
    xml.tag("gpuInfo", |xml| {
        xml.tag("gpus", |xml| {
            xml.tag("item", |xml| {
                named(xml, device);
                xml.value("count", device.count);
                xml.value("logicalGpuCount", device.logical_count());
                xml.value("gpuPartitionSize", device.partition);
                xml.words("workloadSet", ["ml-ai"]);
                xml.tag("memoryInfo", |xml| xml.value("sizeInMiB", device.memory_mib));
            });
        });
        xml.value("totalGpuMemoryInMiB", device.total_memory_mib());
    });
}

fn neuron_info(xml: &mut Xml, device: &DeviceFacts) {
    xml.tag("neuronInfo", |xml| {
        xml.tag("neuronDevices", |xml| {
            xml.tag("item", |xml| {
                xml.value("count", device.count);
                xml.text("name", &device.name);
                if let Some((count, version)) = device.cores {
                    xml.tag("coreInfo", |xml| {
                        xml.value("count", count);
                        xml.value("version", version);
                    });
                }
                xml.tag("memoryInfo", |xml| xml.value("sizeInMiB", device.memory_mib));
            });
        });
        xml.value("totalNeuronDeviceMemoryInMiB", device.total_memory_mib());
    });
}

/// The sections that differ in their element names only.
fn devices(xml: &mut Xml, device: &DeviceFacts, section: &str, list: &str, total: &str) {
    xml.tag(section, |xml| {
        xml.tag(list, |xml| {
            xml.tag("item", |xml| {
                xml.value("count", device.count);
                named(xml, device);
                xml.tag("memoryInfo", |xml| xml.value("sizeInMiB", device.memory_mib));
            });
        });
        xml.value(total, device.total_memory_mib());
    });
}

fn named(xml: &mut Xml, device: &DeviceFacts) {
    xml.text("name", &device.name);
    xml.optional("manufacturer", device.manufacturer.as_deref());
}
