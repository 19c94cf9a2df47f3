//! Capacity reservations and capacity blocks.

use super::super::error::AwsError;
use super::super::params::{Filter, Params};
use super::super::service::Call;
use super::super::world::{CapacityBlock, CapacityReservation, zone_id};
use super::super::xml::Xml;
use super::{Spoilt, any_match, check_filters, document, paging, spoilt, tag_set, time};

/// There is none on the reservation type: the real API has none either.
const RESERVATION_FILTERS: &[&str] = &[
    "state",
    "instance-type",
    "owner-id",
    "availability-zone",
    "instance-match-criteria",
    "tenancy",
];

const BLOCK_FILTERS: &[&str] = &["state", "capacity-block-id", "availability-zone"];

pub(super) fn describe_reservations(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let request = paging(call, &mut params, 1, 1000)?;
    let ids = params.take_list("CapacityReservationId");
    let filters = params.take_filters()?;
    params.finish()?;
    check_filters(&filters, RESERVATION_FILTERS)?;

    let inner = call.world.read();
    let visible = inner.visible_capacity(&call.caller.account, call.region);
    if let Some(unknown) = ids
        .iter()
        .find(|id| !visible.iter().any(|reservation| reservation.id == **id))
    {
        let message = format!("The capacity reservation ID '{unknown}' does not exist");
        return Err(AwsError::new("InvalidCapacityReservationId.NotFound", 400, message));
    }
    let wanted = |reservation: &CapacityReservation| {
        let named = ids.is_empty() || ids.contains(&reservation.id);
        named && filters.iter().all(|filter| reservation_passes(reservation, filter))
    };
    let rows = visible.iter().filter(|reservation| wanted(reservation));
    let rows = rows.map(|reservation| (reservation.id.as_str(), *reservation));
    let page = request.page(rows, call.alteration);
    Ok(document(call, 512 + page.rows.len() * 1536, |xml| {
        xml.tag("capacityReservationSet", |xml| {
            for (reservation, spoilt) in spoilt(&page.rows, call.alteration) {
                let used = inner.used_slots(reservation);
                xml.tag("item", |xml| reservation_item(xml, call, reservation, used, spoilt));
            }
        });
        xml.optional("nextToken", page.next.as_deref());
    }))
}

fn reservation_passes(reservation: &CapacityReservation, filter: &Filter) -> bool {
    let spec = &reservation.spec;
    match filter.name.as_str() {
        "state" => any_match(filter, &[&spec.state]),
        "instance-type" => any_match(filter, &[&spec.instance_type]),
        "owner-id" => any_match(filter, &[&reservation.owner]),
        "availability-zone" => any_match(filter, &[&format!("{}{}", reservation.region, spec.zone)]),
        "instance-match-criteria" => any_match(filter, &[&spec.match_criteria]),
        "tenancy" => any_match(filter, &[&spec.tenancy]),
        _ => false,
    }
}

fn reservation_item(xml: &mut Xml, call: &Call<'_>, reservation: &CapacityReservation, used: u32, spoilt: Spoilt) {
    let spec = &reservation.spec;
    let partition = call.world.partition().as_str();
    let (owner, region) = (&reservation.owner, &reservation.region);
    if spoilt != Spoilt::NoId {
        xml.text("capacityReservationId", &reservation.id);
        let arn = format!(
            "arn:{partition}:ec2:{region}:{owner}:capacity-reservation/{}",
            reservation.id
        );
        xml.text("capacityReservationArn", &arn);
    }
    xml.text("ownerId", owner);
    xml.text("availabilityZoneId", &zone_id(region, spec.zone));
    xml.text("instanceType", &spec.instance_type);
    xml.text("instancePlatform", spec.platform.details());
    xml.text("availabilityZone", &format!("{region}{}", spec.zone));
    xml.text("tenancy", &spec.tenancy);
    xml.value("totalInstanceCount", spec.total);
    xml.value(
        "availableInstanceCount",
        if spec.state == "active" {
            spec.total.saturating_sub(used)
        } else {
            0
        },
    );
    xml.value("ebsOptimized", false);
    xml.value("ephemeralStorage", false);
    xml.text("state", if spoilt == Spoilt::State { "bar" } else { &spec.state });
    time(xml, "startDate", reservation.start);
    if let Some(end) = spec.end {
        time(xml, "endDate", end);
    }
    xml.text("endDateType", if spec.end.is_some() { "limited" } else { "unlimited" });
    xml.text("instanceMatchCriteria", &spec.match_criteria);
    time(xml, "createDate", reservation.start);
    tag_set(xml, &spec.tags);
    let kind = if spec.capacity_block.is_some() {
        "capacity-block"
    } else {
        "default"
    };
    xml.text("reservationType", if spoilt == Spoilt::Kind { "foo" } else { kind });
    xml.optional("capacityBlockId", spec.capacity_block.as_deref());
    xml.optional("unusedReservationBillingOwnerId", spec.unused_billing_owner.as_deref());
    xml.value("interruptible", spec.interruptible);
}

pub(super) fn describe_blocks(call: &Call<'_>, params: Params) -> Result<String, AwsError> {
    listed_blocks(call, params, "capacityBlockSet", |xml, block, spoilt| {
        if spoilt != Spoilt::NoId {
            xml.text("capacityBlockId", &block.id);
        }
        xml.optional("ultraserverType", block.spec.ultraserver_type.as_deref());
        xml.text("availabilityZone", &format!("{}{}", call.region, block.spec.zone));
        xml.text("availabilityZoneId", &zone_id(call.region, block.spec.zone));
        xml.words("capacityReservationIdSet", [block.reservation.as_str()]);
        time(xml, "startDate", block.start);
        time(xml, "endDate", block.end);
        time(xml, "createDate", block.start);
        xml.text(
            "state",
            if spoilt == Spoilt::Kind {
                "bar"
            } else {
                &block.spec.state
            },
        );
    })
}

pub(super) fn describe_block_status(call: &Call<'_>, params: Params) -> Result<String, AwsError> {
    listed_blocks(call, params, "capacityBlockStatusSet", |xml, block, spoilt| {
        let inner = call.world.read();
        let slots = inner.visible_capacity(&call.caller.account, call.region);
        let slots = slots
            .into_iter()
            .find(|reservation| reservation.id == block.reservation);
        let used = slots.map_or(0, |reservation| inner.used_slots(reservation));
        let available = block.spec.total.saturating_sub(used);
        if spoilt != Spoilt::NoId {
            xml.text("capacityBlockId", &block.id);
        }
        xml.text("interconnectStatus", if spoilt == Spoilt::Kind { "bar" } else { "ok" });
        capacity_counts(xml, block, available);
        xml.tag("capacityReservationStatusSet", |xml| {
            xml.tag("item", |xml| {
                xml.text("capacityReservationId", &block.reservation);
                capacity_counts(xml, block, available);
            });
        });
    })
}

fn capacity_counts(xml: &mut Xml, block: &CapacityBlock, available: u32) {
    xml.value("totalCapacity", block.spec.total);
    xml.value("totalAvailableCapacity", available);
    xml.value("totalUnavailableCapacity", block.spec.total.saturating_sub(available));
}

/// The account's capacity blocks, as both operations list them.
fn listed_blocks(
    call: &Call<'_>,
    mut params: Params,
    list: &str,
    item: impl Fn(&mut Xml, &CapacityBlock, Spoilt),
) -> Result<String, AwsError> {
    let request = paging(call, &mut params, 1, 1000)?;
    let ids = params.take_list("CapacityBlockId");
    let filters = params.take_filters()?;
    params.finish()?;
    check_filters(&filters, BLOCK_FILTERS)?;

    let mut blocks = call.world.capacity_blocks(&call.caller.account, call.region);
    blocks.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(unknown) = ids.iter().find(|id| !blocks.iter().any(|block| block.id == **id)) {
        let message = format!("The capacity block ID '{unknown}' does not exist");
        return Err(AwsError::new("InvalidCapacityBlockId.NotFound", 400, message));
    }
    let wanted = |block: &CapacityBlock| {
        let named = ids.is_empty() || ids.contains(&block.id);
        named && filters.iter().all(|filter| block_passes(block, call.region, filter))
    };
    let rows = blocks
        .iter()
        .filter(|block| wanted(block))
        .map(|block| (block.id.as_str(), block));
    let page = request.page(rows, call.alteration);
    Ok(document(call, 512 + page.rows.len() * 1024, |xml| {
        xml.tag(list, |xml| {
            for (block, spoilt) in spoilt(&page.rows, call.alteration) {
                xml.tag("item", |xml| item(xml, block, spoilt));
            }
        });
        xml.optional("nextToken", page.next.as_deref());
    }))
}

fn block_passes(block: &CapacityBlock, region: &str, filter: &Filter) -> bool {
    match filter.name.as_str() {
        "state" => any_match(filter, &[&block.spec.state]),
        "capacity-block-id" => any_match(filter, &[&block.id]),
        "availability-zone" => any_match(filter, &[&format!("{region}{}", block.spec.zone)]),
        _ => false,
    }
}
