//! `DescribeReservedInstances`, which has no pages.

use super::super::error::AwsError;
use super::super::page::altered;
use super::super::params::{Filter, Params};
use super::super::service::Call;
use super::super::world::{ReservationScope, ReservedInstances, zone_id};
use super::super::xml::Xml;
use super::{Spoilt, any_match, check_filters, document, spoilt, time};

const FILTERS: &[&str] = &[
    "state",
    "instance-type",
    "scope",
    "product-description",
    "reserved-instances-id",
];

pub(super) fn describe(call: &Call<'_>, mut params: Params) -> Result<String, AwsError> {
    let ids = params.take_list("ReservedInstancesId");
    let class = params.take("OfferingClass");
    let offering = params.take("OfferingType");
    let filters = params.take_filters()?;
    params.finish()?;
    check_filters(&filters, FILTERS)?;

    let wanted = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
    let mut rows = call.world.reserved_instances(&call.caller.account, call.region);
    rows.retain(|reserved| {
        (ids.is_empty() || ids.contains(&reserved.id))
            && wanted(&class, &reserved.spec.offering_class)
            && wanted(&offering, &reserved.spec.offering_type)
            && filters.iter().all(|filter| passes(reserved, filter))
    });
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    let rows = altered(rows, call.alteration);
    Ok(document(call, 512 + rows.len() * 1024, |xml| {
        xml.tag("reservedInstancesSet", |xml| {
            for (reserved, spoilt) in spoilt(&rows, call.alteration) {
                xml.tag("item", |xml| item(xml, call, &reserved, spoilt));
            }
        });
    }))
}

fn passes(reserved: &ReservedInstances, filter: &Filter) -> bool {
    let spec = &reserved.spec;
    match filter.name.as_str() {
        "state" => any_match(filter, &[&spec.state]),
        "instance-type" => any_match(filter, &[&spec.instance_type]),
        "scope" => any_match(filter, &[scope_word(spec.scope)]),
        "product-description" => any_match(filter, &[spec.platform.details()]),
        "reserved-instances-id" => any_match(filter, &[&reserved.id]),
        _ => false,
    }
}

const fn scope_word(scope: ReservationScope) -> &'static str {
    match scope {
        ReservationScope::Region => "Region",
        ReservationScope::Zone(_) => "Availability Zone",
    }
}

fn item(xml: &mut Xml, call: &Call<'_>, reserved: &ReservedInstances, spoilt: Spoilt) {
    let spec = &reserved.spec;
    if spoilt != Spoilt::NoId {
        xml.text("reservedInstancesId", &reserved.id);
    }
    xml.text("instanceType", &spec.instance_type);
    if let ReservationScope::Zone(zone) = spec.scope {
        xml.text("availabilityZone", &format!("{}{zone}", call.region));
        xml.text("availabilityZoneId", &zone_id(call.region, zone));
    }
    time(xml, "start", reserved.start);
    time(xml, "end", reserved.end);
    xml.value("duration", reserved.end.duration_since(reserved.start).as_secs());
    xml.text("fixedPrice", &spec.fixed_price);
    xml.text("usagePrice", &spec.usage_price);
    xml.value("instanceCount", spec.count);
    xml.text("productDescription", spec.platform.details());
    xml.text("state", if spoilt == Spoilt::State { "bar" } else { &spec.state });
    xml.text("instanceTenancy", &spec.tenancy);
    // The API's enumeration has this one word, in China too.
    xml.text("currencyCode", "USD");
    xml.text(
        "offeringClass",
        if spoilt == Spoilt::Kind {
            "bar"
        } else {
            &spec.offering_class
        },
    );
    xml.text(
        "offeringType",
        if spoilt == Spoilt::Kind {
            "foo"
        } else {
            &spec.offering_type
        },
    );
    xml.text("scope", scope_word(spec.scope));
    xml.tag("recurringCharges", |xml| {
        xml.tag("item", |xml| {
            xml.text("frequency", "Hourly");
            xml.text("amount", &spec.hourly);
        });
    });
}
