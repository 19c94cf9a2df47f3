//! `DescribeInstances`.

use std::ops::Bound;

use super::super::error::AwsError;
use super::super::params::{Filter, Params};
use super::super::service::Call;
use super::super::types;
use super::super::world::{Instance, Lifecycle, Platform, zone_id};
use super::super::xml::Xml;
use super::{Spoilt, any_match, check_filters, document, paging, spoilt, tag_set, time_text};
use gpuwatch_fakecloud_core::random::fnv1a;

/// Room for one instance in an answer, so that a page is one allocation.
const BYTES_PER_INSTANCE: usize = 4096;

/// The filters besides `tag:<key>`.
const FILTERS: &[&str] = &[
    "instance-type",
    "instance-state-name",
    "instance-state-code",
    "instance-lifecycle",
    "instance-id",
    "availability-zone",
    "owner-id",
    "tenancy",
    "tag-key",
    "private-ip-address",
    "capacity-reservation-id",
];

pub(super) fn describe(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let paged = params.get("MaxResults").is_some();
    let request = paging(call, &mut params, 5, 1000)?;
    let include_managed = params.take_bool("IncludeManagedResources")?;
    let ids = params.take_list("InstanceId");
    let filters = params.take_filters()?;
    params.finish()?;
    let named: Vec<Filter> = filters
        .iter()
        .filter(|filter| !filter.name.starts_with("tag:"))
        .cloned()
        .collect();
    check_filters(&named, FILTERS)?;
    if paged && !ids.is_empty() {
        let message = "The parameter instancesSet cannot be used with the parameter maxResults";
        return Err(AwsError::new("InvalidParameterCombination", 400, message));
    }
    check_ids(call, &ids)?;

    let inner = call.world.read();
    let here = inner.region(&call.caller.account, call.region);
    // What earlier pages had is left out before any filter runs.
    let start = request.after().map_or(Bound::Unbounded, Bound::Excluded);
    let rows = here
        .into_iter()
        .flat_map(|region| region.instances.range::<str, _>((start, Bound::Unbounded)))
        .filter(|(_, instance)| {
            let visible = include_managed || instance.spec.managed_by.is_none();
            let named = ids.is_empty() || ids.contains(&instance.id);
            visible && named && filters.iter().all(|filter| passes(instance, filter))
        });
    let page = request.page(rows.map(|(key, instance)| (key.as_str(), instance)), call.alteration);
    Ok(document(call, 512 + page.rows.len() * BYTES_PER_INSTANCE, |xml| {
        reservation_set(xml, call, &page.rows);
        xml.optional("nextToken", page.next.as_deref());
    }))
}

fn check_ids(call: &Call<'_>, ids: &[String]) -> Result<(), AwsError> {
    for id in ids {
        let digits = id.strip_prefix("i-").unwrap_or_default();
        if digits.len() < 8 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            let message = format!("Invalid id: \"{id}\"");
            return Err(AwsError::new("InvalidInstanceID.Malformed", 400, message));
        }
        let own = |instance: &Instance| instance.account == call.caller.account && instance.region == call.region;
        if !call.world.instance(id).is_some_and(|instance| own(&instance)) {
            let message = format!("The instance ID '{id}' does not exist");
            return Err(AwsError::new("InvalidInstanceID.NotFound", 400, message));
        }
    }
    Ok(())
}

fn passes(instance: &Instance, filter: &Filter) -> bool {
    let spec = &instance.spec;
    if let Some(key) = filter.name.strip_prefix("tag:") {
        return instance.tag(key).is_some_and(|value| any_match(filter, &[value]));
    }
    match filter.name.as_str() {
        "instance-type" => any_match(filter, &[&spec.instance_type]),
        "instance-state-name" => any_match(filter, &[spec.state.as_str()]),
        "instance-state-code" => any_match(filter, &[&spec.state.code().to_string()]),
        "instance-lifecycle" => spec.lifecycle.as_api().is_some_and(|word| any_match(filter, &[word])),
        "instance-id" => any_match(filter, &[&instance.id]),
        "availability-zone" => any_match(filter, &[&instance.zone()]),
        "owner-id" => any_match(filter, &[&instance.account]),
        "tenancy" => any_match(filter, &[&spec.tenancy]),
        "private-ip-address" => any_match(filter, &[&instance.private_ip]),
        "capacity-reservation-id" => spec
            .capacity_reservation
            .as_ref()
            .is_some_and(|id| any_match(filter, &[id])),
        "tag-key" => {
            let keys: Vec<&str> = spec.tags.iter().map(|(key, _)| key.as_str()).collect();
            any_match(filter, &keys)
        }
        _ => false,
    }
}

/// The page's instances, grouped by the call that launched them. Pages count
/// instances: a large launch goes on in the next page.
fn reservation_set(xml: &mut Xml, call: &Call<'_>, rows: &[&Instance]) {
    let rows = spoilt(rows, call.alteration);
    xml.tag("reservationSet", |xml| {
        for group in rows.chunk_by(|(a, _), (b, _)| a.launch_reservation == b.launch_reservation) {
            let Some((first, _)) = group.first() else { continue };
            xml.tag("item", |xml| {
                xml.text("reservationId", &first.launch_reservation);
                xml.text("ownerId", &first.account);
                xml.tag("groupSet", |_| {});
                xml.list("instancesSet", group, |xml, (instance, spoilt)| {
                    instance_item(xml, instance, *spoilt);
                });
            });
        }
    });
}

fn instance_item(xml: &mut Xml, instance: &Instance, spoilt: Spoilt) {
    let spec = &instance.spec;
    let launched = time_text(instance.launched);
    if spoilt != Spoilt::NoId {
        xml.text("instanceId", &instance.id);
    }
    xml.text("imageId", "ami-0fakecloud0000001");
    xml.tag("instanceState", |xml| {
        let unknown = spoilt == Spoilt::State;
        xml.value("code", if unknown { 99 } else { spec.state.code() });
        xml.text("name", if unknown { "bar" } else { spec.state.as_str() });
    });
    xml.text("privateDnsName", &private_dns_name(instance));
    xml.text("dnsName", "");
    xml.text("reason", spec.transition_reason.as_deref().unwrap_or_default());
    xml.value("amiLaunchIndex", 0);
    xml.tag("productCodes", |_| {});
    xml.text("instanceType", &spec.instance_type);
    xml.text("launchTime", &launched);
    xml.tag("placement", |xml| {
        xml.text("availabilityZone", &instance.zone());
        xml.text("availabilityZoneId", &zone_id(&instance.region, spec.zone));
        xml.text("groupName", "");
        xml.text("tenancy", &spec.tenancy);
    });
    if spec.platform == Platform::Windows {
        xml.text("platform", "windows");
    }
    let monitoring = if spec.detailed_monitoring {
        "enabled"
    } else {
        "disabled"
    };
    xml.tag("monitoring", |xml| xml.text("state", monitoring));
    if !instance.private_ip.is_empty() {
        network(xml, instance, &launched);
    }
    xml.optional("ipAddress", spec.public_ip.as_deref());
    if let Some((code, message)) = &spec.state_reason {
        xml.tag("stateReason", |xml| {
            xml.text("code", code);
            xml.text("message", message);
        });
    }
    xml.text(
        "architecture",
        types::instance_type(&spec.instance_type).map_or("x86_64", |facts| &facts.architecture),
    );
    xml.text("rootDeviceType", "ebs");
    xml.text("rootDeviceName", "/dev/sda1");
    xml.tag("blockDeviceMapping", |xml| root_volume(xml, instance, &launched));
    xml.text("virtualizationType", "hvm");
    if spoilt == Spoilt::Kind {
        xml.text("instanceLifecycle", "foo");
    } else {
        xml.optional("instanceLifecycle", spec.lifecycle.as_api());
    }
    if spec.lifecycle == Lifecycle::Spot {
        xml.text(
            "spotInstanceRequestId",
            &format!("sir-{}", instance.id.get(2..10).unwrap_or_default()),
        );
    }
    xml.text("clientToken", "");
    tag_set(xml, &spec.tags);
    xml.text("hypervisor", "xen");
    xml.value("ebsOptimized", true);
    xml.value("enaSupport", true);
    capacity(xml, instance);
    xml.text("platformDetails", spec.platform.details());
    xml.text("usageOperation", spec.platform.usage_operation());
    xml.text("usageOperationUpdateTime", &launched);
    if let Some(principal) = &spec.managed_by {
        xml.tag("operator", |xml| {
            xml.value("managed", true);
            xml.text("principal", principal);
            xml.value("hiddenByDefault", true);
        });
    }
}

fn capacity(xml: &mut Xml, instance: &Instance) {
    let spec = &instance.spec;
    xml.optional("capacityReservationId", spec.capacity_reservation.as_deref());
    xml.optional("capacityBlockId", spec.capacity_block.as_deref());
    xml.tag("capacityReservationSpecification", |xml| {
        if spec.lifecycle == Lifecycle::CapacityBlock {
            xml.tag("capacityReservationTarget", |xml| {
                xml.optional("capacityReservationId", spec.capacity_reservation.as_deref());
            });
        } else {
            xml.text("capacityReservationPreference", "open");
        }
    });
}

fn network(xml: &mut Xml, instance: &Instance, launched: &str) {
    let digits = format!("{:016x}", fnv1a(instance.id.as_bytes()));
    xml.text("subnetId", "subnet-0fakecloud00000001");
    xml.text("vpcId", "vpc-0fakecloud00000001");
    xml.text("privateIpAddress", &instance.private_ip);
    xml.value("sourceDestCheck", true);
    xml.tag("groupSet", |xml| {
        xml.tag("item", |xml| {
            xml.text("groupId", "sg-0fakecloud00000001");
            xml.text("groupName", "default");
        });
    });
    xml.tag("networkInterfaceSet", |xml| {
        xml.tag("item", |xml| {
            xml.text("networkInterfaceId", &format!("eni-0{digits}"));
            xml.text("subnetId", "subnet-0fakecloud00000001");
            xml.text("vpcId", "vpc-0fakecloud00000001");
            xml.text("ownerId", &instance.account);
            xml.text("status", "in-use");
            xml.text("privateIpAddress", &instance.private_ip);
            xml.text("privateDnsName", &private_dns_name(instance));
            xml.tag("attachment", |xml| {
                xml.text("attachmentId", &format!("eni-attach-0{digits}"));
                xml.value("deviceIndex", 0);
                xml.text("status", "attached");
                xml.text("attachTime", launched);
                xml.value("deleteOnTermination", true);
                xml.value("networkCardIndex", 0);
            });
            xml.text("interfaceType", "interface");
        });
    });
}

fn root_volume(xml: &mut Xml, instance: &Instance, launched: &str) {
    xml.tag("item", |xml| {
        xml.text("deviceName", "/dev/sda1");
        xml.tag("ebs", |xml| {
            xml.text("volumeId", &format!("vol-0{:016x}", fnv1a(instance.id.as_bytes())));
            xml.text("status", "attached");
            xml.text("attachTime", launched);
            xml.value("deleteOnTermination", true);
        });
    });
}

fn private_dns_name(instance: &Instance) -> String {
    if instance.private_ip.is_empty() {
        return String::new();
    }
    let host = instance.private_ip.replace('.', "-");
    if instance.region == "us-east-1" {
        return format!("ip-{host}.ec2.internal");
    }
    format!("ip-{host}.{}.compute.internal", instance.region)
}
