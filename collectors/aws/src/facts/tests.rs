//! What comes out of type records and the catalogue together.

use aws_sdk_ec2::types::{
    FpgaInfo, GpuDeviceInfo, GpuDeviceMemoryInfo, GpuInfo, InferenceAcceleratorInfo, InferenceDeviceInfo, InstanceType,
    MediaAcceleratorInfo, MediaDeviceInfo, NeuronDeviceInfo, NeuronInfo, builders::InstanceTypeInfoBuilder,
};

use super::*;

fn info(name: &str) -> InstanceTypeInfoBuilder {
    InstanceTypeInfo::builder().instance_type(InstanceType::from(name))
}

fn gpu(name: &str, count: i32, memory: i32) -> ec2::builders::GpuDeviceInfoBuilder {
    GpuDeviceInfo::builder()
        .name(name)
        .manufacturer("NVIDIA")
        .count(count)
        .memory_info(GpuDeviceMemoryInfo::builder().size_in_mib(memory).build())
}

fn gpus(device: GpuDeviceInfo, total: i32) -> GpuInfo {
    GpuInfo::builder().gpus(device).total_gpu_memory_in_mib(total).build()
}

fn decided(builder: InstanceTypeInfoBuilder) -> Option<Accelerators> {
    let (name, answer) = read(&builder.build()).expect("named");
    decide(&name, Some(&answer))
}

fn gpu_count(accelerators: &Accelerators) -> Option<f64> {
    accelerators.count.map(GpuCount::get)
}

#[test]
fn a_fraction_of_a_card_is_counted_as_such() {
    let device = gpu("L4", 0, 2861)
        .logical_gpu_count(1)
        .gpu_partition_size(0.125)
        .build();
    let found = decided(info("g6f.large").gpu_info(gpus(device, 2861))).expect("accelerators");
    assert_eq!(gpu_count(&found), Some(0.125));
    assert_eq!(found.memory_mib, Some(3072));
}

// P38
#[test]
fn the_memory_of_an_l4_is_24_gib() {
    let found = decided(info("g6.12xlarge").gpu_info(gpus(gpu("L4", 4, 22888).build(), 91552))).expect("accelerators");
    assert_eq!(
        (&*found.model, gpu_count(&found), found.memory_mib),
        ("L4", Some(4.0), Some(4 * 24 * 1024))
    );
}

// P34
#[test]
fn a_size_nobody_has_heard_of_is_counted_by_the_api() {
    let found =
        decided(info("p9.96xlarge").gpu_info(gpus(gpu("R300", 16, 300_000).build(), 4_800_000))).expect("accelerators");
    assert_eq!(
        (&*found.model, gpu_count(&found), found.in_catalog),
        ("R300", Some(16.0), false)
    );
}

#[test]
fn neuron_chips_are_not_counted_twice() {
    let neuron = NeuronInfo::builder()
        .neuron_devices(NeuronDeviceInfo::builder().name("Inferentia2").count(12).build())
        .build();
    let inference = InferenceAcceleratorInfo::builder()
        .accelerators(
            InferenceDeviceInfo::builder()
                .name("Inferentia2")
                .manufacturer("AWS")
                .count(12)
                .build(),
        )
        .build();
    let found = decided(
        info("inf2.48xlarge")
            .neuron_info(neuron)
            .inference_accelerator_info(inference),
    )
    .expect("accelerators");
    assert_eq!(gpu_count(&found), Some(12.0));
    assert_eq!(
        found
            .vendor
            .as_ref()
            .map(|vendor| vendor.as_str().to_owned())
            .as_deref(),
        Some("aws")
    );
}

#[test]
fn inference_and_media_sections_count_too() {
    let inference = InferenceAcceleratorInfo::builder()
        .accelerators(
            InferenceDeviceInfo::builder()
                .name("Qualcomm AI100")
                .manufacturer("Qualcomm")
                .count(8)
                .build(),
        )
        .build();
    let found = decided(info("dl2q.24xlarge").inference_accelerator_info(inference)).expect("accelerators");
    assert_eq!(gpu_count(&found), Some(8.0));
    let media = MediaAcceleratorInfo::builder()
        .accelerators(
            MediaDeviceInfo::builder()
                .name("U30")
                .manufacturer("Xilinx")
                .count(2)
                .build(),
        )
        .build();
    let found = decided(info("vt1.6xlarge").media_accelerator_info(media)).expect("accelerators");
    assert_eq!(gpu_count(&found), Some(2.0));
}

// P37
#[test]
fn a_record_without_a_block_falls_back_to_the_catalogue() {
    let known = decided(info("trn2u.48xlarge")).expect("in the catalogue");
    assert_eq!(gpu_count(&known), Some(16.0));
    let size = decided(info("g6.112xlarge")).expect("a GPU family");
    assert_eq!((gpu_count(&size), size.in_catalog), (None, false));
    let empty = decided(info("p5.48xlarge").gpu_info(GpuInfo::builder().build())).expect("accelerators");
    assert_eq!(gpu_count(&empty), Some(8.0));
}

// P32
#[test]
fn types_without_accelerators_are_not_listed() {
    assert_eq!(decided(info("gx1.large")), None);
    assert_eq!(
        decided(info("pfpga.large").fpga_info(FpgaInfo::builder().build())),
        None
    );
    assert!(!may_have_accelerators("m5.large"));
    assert!(!may_have_accelerators("f2.6xlarge"));
    assert!(may_have_accelerators("p9.96xlarge"));
}

#[test]
fn a_type_the_api_does_not_know_is_listed_with_what_the_catalogue_has() {
    assert_eq!(decide("p2.xlarge", None).as_ref().and_then(gpu_count), Some(1.0));
    assert_eq!(decide("p9.96xlarge", None), Some(Accelerators::default()));
}
