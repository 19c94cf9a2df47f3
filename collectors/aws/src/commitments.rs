//! Reserved instances, capacity reservations and capacity blocks of a region.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Display,
};

use aws_sdk_ec2::types::{self as ec2, CapacityReservation, Filter, ReservedInstances};
use gpuwatch_collector_core::{Call, CollectError, Context, Scope, read_rows};
use gpuwatch_inventory::{Commitment, CommitmentKind, CommitmentScope, Currency, GpuCount, Money, Provider, Text};
use rust_decimal::Decimal;

use crate::{
    Partition,
    calls::AccountAccess,
    facts::{Accelerated, TypeFacts, may_have_accelerators},
    platform,
    text::timestamp,
};

const DESCRIBE_RESERVED_INSTANCES: Call =
    Call::new("ec2", "DescribeReservedInstances", "ec2:DescribeReservedInstances");
const DESCRIBE_CAPACITY_RESERVATIONS: Call = Call::new(
    "ec2",
    "DescribeCapacityReservations",
    "ec2:DescribeCapacityReservations",
);

/// Largest page `DescribeCapacityReservations` gives.
const PAGE_SIZE: i32 = 1000;

/// Active reserved instances of accelerator types. The answer is one list
/// without pages.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn reserved_instances(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
    facts: &TypeFacts,
) -> Result<Vec<Commitment>, CollectError> {
    let active = Filter::builder().name("state").values("active").build();
    let region = &*scope.region;
    let answer = access
        .call(cx, DESCRIBE_RESERVED_INSTANCES, region, |session| {
            session
                .ec2(region)
                .describe_reserved_instances()
                .filters(active.clone())
                .send()
        })
        .await?;
    let partition = access.session(cx).await?.identity.partition;
    let rows = answer.reserved_instances().iter();
    // The filter says the same; endpoints that ignore filters exist.
    let rows = rows.filter(|row| row.state().is_none_or(|state| state.as_str() == "active"));
    let listed = rows.filter_map(|row| match reserved_instance(row, scope, partition) {
        Ok(commitment) => commitment,
        Err(reason) => {
            cx.skip(reason, 1);
            None
        }
    });
    let commitments = unique(cx, listed.collect());
    Ok(with_accelerators(cx, access, scope, facts, partition, commitments).await)
}

/// Active capacity reservations and capacity blocks that this account owns.
/// Accounts that a reservation is shared with see it too; it is counted where
/// it is owned.
///
/// # Errors
/// When the listing is not complete.
pub(crate) async fn capacity_reservations(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
    facts: &TypeFacts,
) -> Result<Vec<Commitment>, CollectError> {
    let active = Filter::builder().name("state").values("active").build();
    let active = &active;
    let region = &*scope.region;
    let fetch = |token: Option<String>| async move {
        let page = access
            .call(cx, DESCRIBE_CAPACITY_RESERVATIONS, region, |session| {
                session
                    .ec2(region)
                    .describe_capacity_reservations()
                    .filters(active.clone())
                    .max_results(PAGE_SIZE)
                    .set_next_token(token.clone())
                    .send()
            })
            .await?;
        Ok((page.capacity_reservations.unwrap_or_default(), page.next_token))
    };
    let rows: Vec<CapacityReservation> = read_rows(DESCRIBE_CAPACITY_RESERVATIONS, fetch).await?;
    let partition = access.session(cx).await?.identity.partition;
    let owned = rows.iter().filter(|row| {
        row.state().is_none_or(|state| state.as_str() == "active")
            && row.owner_id().is_none_or(|owner| owner == &*scope.account.id)
    });
    let listed = owned.filter_map(|row| match capacity_reservation(row, scope) {
        Ok(commitment) => commitment,
        Err(reason) => {
            cx.skip(reason, 1);
            None
        }
    });
    let commitments = merge_blocks(unique(cx, listed.collect()));
    Ok(with_accelerators(cx, access, scope, facts, partition, commitments).await)
}

/// One commitment per capacity block: what was bought is the block, which can
/// hold several reservations. The block's id becomes the commitment's, and its
/// detail the ids of the reservations.
fn merge_blocks(commitments: Vec<Commitment>) -> Vec<Commitment> {
    let mut merged: Vec<Commitment> = Vec::with_capacity(commitments.len());
    let mut blocks: HashMap<Text, usize> = HashMap::new();
    for mut commitment in commitments {
        if commitment.kind == CommitmentKind::CapacityBlock && !commitment.detail.is_empty() {
            let reservation = std::mem::replace(&mut commitment.id, commitment.detail);
            commitment.detail = reservation;
            let first = blocks.get(&commitment.id).copied().and_then(|at| merged.get_mut(at));
            if let Some(block) = first.filter(|block| block.instance_type == commitment.instance_type) {
                block.detail = format!("{} {}", block.detail, commitment.detail).into();
                block.units = block.units.zip(commitment.units).map(|(a, b)| a.saturating_add(b));
                block.used_units = block
                    .used_units
                    .zip(commitment.used_units)
                    .map(|(a, b)| a.saturating_add(b));
                block.starts = block.starts.min(commitment.starts);
                block.expires = block.expires.max(commitment.expires);
                continue;
            }
            blocks.entry(commitment.id.clone()).or_insert(merged.len());
        }
        merged.push(commitment);
    }
    merged
}

/// Keeps the first of several rows with one id.
fn unique(cx: &Context, mut commitments: Vec<Commitment>) -> Vec<Commitment> {
    let mut ids = HashSet::new();
    let before = commitments.len();
    commitments.retain(|commitment| ids.insert(commitment.id.clone()));
    let duplicates = before - commitments.len();
    cx.skip("duplicate", u64::try_from(duplicates).unwrap_or(u64::MAX));
    commitments
}

/// Fills in accelerators per unit and drops types that have none.
async fn with_accelerators(
    cx: &Context,
    access: &AccountAccess,
    scope: &Scope,
    facts: &TypeFacts,
    partition: Partition,
    mut commitments: Vec<Commitment>,
) -> Vec<Commitment> {
    let types: BTreeSet<Text> = commitments
        .iter()
        .map(|commitment| commitment.instance_type.clone())
        .collect();
    let accelerated: Accelerated = facts.accelerated(cx, access, partition, &scope.region, &types).await;
    commitments.retain_mut(|commitment| match accelerated.of(&commitment.instance_type) {
        Some(accelerators) => {
            commitment.gpus_per_unit = accelerators.count;
            true
        }
        None => false,
    });
    commitments
}

/// What every kind of commitment in a region has.
fn commitment(scope: &Scope, kind: CommitmentKind, id: &str, instance_type: &str) -> Commitment {
    Commitment {
        provider: Provider::Aws,
        account: scope.account.id.clone(),
        account_name: scope.account.name.clone(),
        region: scope.region.clone(),
        id: id.into(),
        kind,
        instance_type: instance_type.into(),
        scope: CommitmentScope::Region,
        platform: Text::default(),
        tenancy: Text::default(),
        units: None,
        used_units: None,
        gpus_per_unit: None::<GpuCount>,
        hourly: None,
        rates: Vec::new(),
        starts: None,
        expires: None,
        detail: Text::default(),
    }
}

/// Reads one row; `Ok(None)` for a type without accelerators, an error with
/// the word a row that cannot be used is counted under.
fn reserved_instance(
    row: &ReservedInstances,
    scope: &Scope,
    partition: Partition,
) -> Result<Option<Commitment>, &'static str> {
    let id = row.reserved_instances_id().filter(|id| !id.is_empty()).ok_or("no_id")?;
    let instance_type = row
        .instance_type()
        .map(ec2::InstanceType::as_str)
        .filter(|name| !name.is_empty())
        .ok_or("no_type")?;
    if !may_have_accelerators(instance_type) {
        return Ok(None);
    }
    let zone = row.availability_zone().filter(|zone| !zone.is_empty());
    let platform = row
        .product_description()
        .map(ec2::RiProductDescription::as_str)
        .unwrap_or_default();
    let tenancy = row.instance_tenancy().map(ec2::Tenancy::as_str).unwrap_or_default();
    let units = row.instance_count().and_then(|count| u32::try_from(count).ok());
    Ok(Some(Commitment {
        scope: match (row.scope().map(ec2::Scope::as_str), zone) {
            (Some("Region"), _) | (_, None) => CommitmentScope::Region,
            (_, Some(zone)) => CommitmentScope::Zone(zone.into()),
        },
        platform: platform::billed_as(platform).into(),
        tenancy: platform::tenancy(tenancy).into(),
        units,
        hourly: units.and_then(|units| hourly_price(row, units, partition)),
        starts: row.start().and_then(timestamp),
        expires: row.end().and_then(timestamp),
        detail: row
            .offering_class()
            .map(ec2::OfferingClassType::as_str)
            .unwrap_or_default()
            .into(),
        ..commitment(scope, CommitmentKind::ReservedInstance, id, instance_type)
    }))
}

/// What all units of a reserved instance cost per hour: the upfront payment
/// spread over the term, plus recurring charges, plus the price of usage.
/// `None` when the row states no price at all or cannot be spread.
fn hourly_price(row: &ReservedInstances, units: u32, partition: Partition) -> Option<Money> {
    let recurring = row.recurring_charges();
    if row.fixed_price().is_none() && row.usage_price().is_none() && recurring.is_empty() {
        return None;
    }
    let fixed = row.fixed_price().map_or(Some(Decimal::ZERO), decimal)?;
    let spread = if fixed.is_zero() {
        Decimal::ZERO
    } else {
        let hours = Decimal::from(row.duration().filter(|seconds| *seconds > 0)?).checked_div(Decimal::from(3600))?;
        fixed.checked_div(hours)?
    };
    let usage = row.usage_price().map_or(Some(Decimal::ZERO), decimal)?;
    let hourly = recurring.iter().filter(|charge| {
        charge
            .frequency()
            .is_none_or(|frequency| frequency.as_str() == "Hourly")
    });
    let mut per_unit = spread.checked_add(usage)?;
    for charge in hourly {
        per_unit = per_unit.checked_add(decimal(charge.amount()?)?)?;
    }
    let stated = row.currency_code().and_then(|code| Currency::new(code.as_str()).ok());
    // China prints USD for amounts in yuan.
    let currency = match partition {
        Partition::AwsCn => partition.currency(),
        _ => stated.unwrap_or_else(|| partition.currency()),
    };
    Some(Money::new(per_unit.checked_mul(Decimal::from(units))?, currency))
}

/// A price as the service printed it: the shortest decimal of the float, not
/// its binary expansion.
fn decimal(price: impl Display) -> Option<Decimal> {
    price.to_string().parse().ok()
}

/// Reads one row; `Ok(None)` for a type without accelerators, an error with
/// the word a row that cannot be used is counted under.
fn capacity_reservation(row: &CapacityReservation, scope: &Scope) -> Result<Option<Commitment>, &'static str> {
    let block = row.capacity_block_id().filter(|id| !id.is_empty());
    let id = row
        .capacity_reservation_id()
        .filter(|id| !id.is_empty())
        .or(block)
        .ok_or("no_id")?;
    let instance_type = row.instance_type().filter(|name| !name.is_empty()).ok_or("no_type")?;
    if !may_have_accelerators(instance_type) {
        return Ok(None);
    }
    let kind = match row.reservation_type().map(ec2::CapacityReservationType::as_str) {
        Some("capacity-block") => CommitmentKind::CapacityBlock,
        None | Some("default") => CommitmentKind::CapacityReservation,
        Some(_) => return Err("unknown_reservation_type"),
    };
    if let Some(payer) = row
        .unused_reservation_billing_owner_id()
        .filter(|payer| *payer != &*scope.account.id)
    {
        tracing::debug!(
            account = &*scope.account.id,
            region = &*scope.region,
            reservation = id,
            payer,
            "another account pays for the unused part of this reservation"
        );
    }
    let total = row.total_instance_count().and_then(|count| u32::try_from(count).ok());
    let available = row
        .available_instance_count()
        .and_then(|count| u32::try_from(count).ok());
    let detail = match kind {
        // Reservations of one block are put together later.
        CommitmentKind::CapacityBlock => block.unwrap_or_default(),
        _ => row
            .instance_match_criteria()
            .map(ec2::InstanceMatchCriteria::as_str)
            .unwrap_or_default(),
    };
    Ok(Some(Commitment {
        scope: match row.availability_zone().filter(|zone| !zone.is_empty()) {
            Some(zone) => CommitmentScope::Zone(zone.into()),
            None => CommitmentScope::Region,
        },
        platform: row
            .instance_platform()
            .map(|platform| platform::billed_as(platform.as_str()))
            .unwrap_or_default()
            .into(),
        tenancy: row
            .tenancy()
            .map(ec2::CapacityReservationTenancy::as_str)
            .unwrap_or_default()
            .into(),
        units: total,
        used_units: total
            .zip(available)
            .map(|(total, available)| total.saturating_sub(available)),
        starts: row.start_date().and_then(timestamp),
        expires: row.end_date().and_then(timestamp),
        detail: detail.into(),
        ..commitment(scope, kind, id, instance_type)
    }))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{
        CapacityReservationType, CurrencyCodeValues, InstanceMatchCriteria, InstanceType, RecurringCharge,
        RecurringChargeFrequency, RiProductDescription, Scope as RiScope,
    };
    use gpuwatch_collector_core::Account;

    use super::*;

    fn scope() -> Scope {
        Scope {
            provider: Provider::Aws,
            account: Account {
                id: "111122223333".into(),
                name: "prod".into(),
            },
            region: "us-east-1".into(),
        }
    }

    fn row() -> ec2::builders::ReservedInstancesBuilder {
        ReservedInstances::builder()
            .reserved_instances_id("ri-1")
            .instance_type(InstanceType::from("p4d.24xlarge"))
            .instance_count(2)
            .scope(RiScope::Regional)
            .product_description(RiProductDescription::from("Linux/UNIX (Amazon VPC)"))
            .currency_code(CurrencyCodeValues::Usd)
            .duration(31_536_000)
            .fixed_price(87600.0)
            .usage_price(0.0)
            .recurring_charges(
                RecurringCharge::builder()
                    .amount(1.1)
                    .frequency(RecurringChargeFrequency::Hourly)
                    .build(),
            )
    }

    fn read(row: &ReservedInstances, partition: Partition) -> Commitment {
        reserved_instance(row, &scope(), partition)
            .expect("usable")
            .expect("a GPU type")
    }

    #[test]
    fn the_price_of_a_reserved_instance_spreads_the_upfront_part() {
        // 87,600 over 8,760 h is 10; with 1.1 recurring, times two units.
        let read_row = read(&row().build(), Partition::Aws);
        assert_eq!(
            read_row.hourly,
            Some(Money::parse("22.2", Currency::usd()).expect("money"))
        );
        assert_eq!((&*read_row.platform, &*read_row.tenancy), ("Linux/UNIX", "default"));
        let unpriced = ReservedInstances::builder()
            .reserved_instances_id("ri-2")
            .instance_type(InstanceType::from("g6.xlarge"))
            .build();
        assert_eq!(read(&unpriced, Partition::Aws).hourly, None);
        let endless = row().duration(0).build();
        assert_eq!(read(&endless, Partition::Aws).hourly, None);
    }

    #[test]
    fn prices_in_china_are_in_yuan_whatever_the_row_says() {
        let hourly = read(&row().build(), Partition::AwsCn).hourly.expect("price");
        assert_eq!(hourly.currency, Currency::cny());
    }

    #[test]
    fn a_zonal_row_keeps_its_zone() {
        let zonal = row()
            .scope(RiScope::AvailabilityZone)
            .availability_zone("us-east-1a")
            .build();
        assert_eq!(
            read(&zonal, Partition::Aws).scope,
            CommitmentScope::Zone("us-east-1a".into())
        );
        assert_eq!(read(&row().build(), Partition::Aws).scope, CommitmentScope::Region);
    }

    #[test]
    fn rows_without_accelerators_or_id_are_left_out() {
        let cpu = row().instance_type(InstanceType::from("m5.large")).build();
        assert_eq!(reserved_instance(&cpu, &scope(), Partition::Aws), Ok(None));
        assert_eq!(
            reserved_instance(&ReservedInstances::builder().build(), &scope(), Partition::Aws),
            Err("no_id")
        );
    }

    #[test]
    fn reservations_and_blocks_are_told_apart() {
        let odcr = CapacityReservation::builder()
            .capacity_reservation_id("cr-1")
            .instance_type("g6.xlarge")
            .total_instance_count(5)
            .available_instance_count(2)
            .instance_match_criteria(InstanceMatchCriteria::Open)
            .reservation_type(CapacityReservationType::from("default"))
            .build();
        let odcr = capacity_reservation(&odcr, &scope()).expect("usable").expect("GPU");
        assert_eq!(
            (odcr.kind, odcr.units, odcr.used_units),
            (CommitmentKind::CapacityReservation, Some(5), Some(3))
        );
        assert_eq!((&*odcr.detail, odcr.expires), ("open", None));
        let block = CapacityReservation::builder()
            .capacity_reservation_id("cr-2")
            .capacity_block_id("cb-2")
            .instance_type("p5.48xlarge")
            .reservation_type(CapacityReservationType::from("capacity-block"))
            .build();
        let block = capacity_reservation(&block, &scope()).expect("usable").expect("GPU");
        assert_eq!(
            (block.kind, &*block.id, &*block.detail),
            (CommitmentKind::CapacityBlock, "cr-2", "cb-2")
        );
        assert_eq!(block.used_units, None);
    }

    #[test]
    fn the_reservations_of_one_block_are_one_commitment() {
        let row = |id: &str, total: i32, available: i32| {
            let row = CapacityReservation::builder()
                .capacity_reservation_id(id)
                .capacity_block_id("cb-1")
                .instance_type("p5.48xlarge")
                .total_instance_count(total)
                .available_instance_count(available)
                .reservation_type(CapacityReservationType::from("capacity-block"))
                .build();
            capacity_reservation(&row, &scope()).expect("usable").expect("GPU")
        };
        let merged = merge_blocks(vec![row("cr-1", 4, 1), row("cr-2", 2, 2)]);
        let [block] = merged.as_slice() else {
            panic!("{merged:?}")
        };
        assert_eq!((&*block.id, &*block.detail), ("cb-1", "cr-1 cr-2"));
        assert_eq!((block.units, block.used_units), (Some(6), Some(3)));
    }
}
