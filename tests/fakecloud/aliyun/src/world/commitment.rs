//! What accounts have bought ahead.

use jiff::Timestamp;

use super::World;
use super::change::to_the_minute;

/// What reserved instances are created with.
#[derive(Debug, Clone)]
pub struct ReservedInstanceSpec {
    /// Instance type.
    pub instance_type: String,
    /// Instances it pays for.
    pub amount: u32,
    /// The zone's letter for a zonal one; `None` for the whole region.
    pub zone: Option<char>,
    /// `Active`, `Expired`, `Creating`.
    pub status: String,
    /// `No Upfront`, `Partial Upfront`, `All Upfront`.
    pub offering_type: String,
    /// `Linux` or `Windows`.
    pub platform: String,
    /// Name for people.
    pub name: String,
}

impl Default for ReservedInstanceSpec {
    fn default() -> Self {
        Self {
            instance_type: "ecs.gn7i-c8g1.2xlarge".to_owned(),
            amount: 1,
            zone: None,
            status: "Active".to_owned(),
            offering_type: "All Upfront".to_owned(),
            platform: "Linux".to_owned(),
            name: String::new(),
        }
    }
}

/// Reserved instances that were bought.
#[derive(Debug, Clone)]
pub struct ReservedInstance {
    /// Id.
    pub id: String,
    /// Begin of the term.
    pub start: Timestamp,
    /// End of the term.
    pub end: Timestamp,
    /// Everything else.
    pub spec: ReservedInstanceSpec,
}

/// Which product a private pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PoolKind {
    /// Elasticity assurance: capacity that is paid for, used or not.
    #[default]
    ElasticityAssurance,
    /// Capacity reservation that takes effect at once.
    CapacityReservation,
}

/// What a private pool is created with.
#[derive(Debug, Clone)]
pub struct PoolSpec {
    /// Which product.
    pub kind: PoolKind,
    /// Instance type.
    pub instance_type: String,
    /// Instances it has room for.
    pub total: u32,
    /// Letter of the zone.
    pub zone: char,
    /// `Preparing`, `Active`, `Released`.
    pub status: String,
    /// `Open` or `Target`.
    pub match_criteria: String,
    /// Name for people.
    pub name: String,
}

impl Default for PoolSpec {
    fn default() -> Self {
        Self {
            kind: PoolKind::ElasticityAssurance,
            instance_type: "ecs.gn7i-c8g1.2xlarge".to_owned(),
            total: 1,
            zone: 'h',
            status: "Active".to_owned(),
            match_criteria: "Open".to_owned(),
            name: String::new(),
        }
    }
}

/// A private pool that was bought. The instances whose `private_pool` names
/// it, and which hold machines, use it.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Id (`PrivatePoolOptionsId`).
    pub id: String,
    /// Begin of the term.
    pub start: Timestamp,
    /// End of the term.
    pub end: Timestamp,
    /// Everything else.
    pub spec: PoolSpec,
}

/// What a savings plan is created with.
#[derive(Debug, Clone)]
pub struct SavingsPlanSpec {
    /// `ecs` or `universal`.
    pub savings_type: String,
    /// Family of an `ecs` plan; empty for others.
    pub instance_family: String,
    /// Region of an `ecs` plan; empty for others.
    pub region: String,
    /// Committed money per cycle, as a decimal text.
    pub pool_value: String,
    /// `NORMAL`, `LIMIT`, `RELEASE`.
    pub status: String,
    /// `total`, `half`, `zero`.
    pub pay_mode: String,
}

impl Default for SavingsPlanSpec {
    fn default() -> Self {
        Self {
            savings_type: "universal".to_owned(),
            instance_family: String::new(),
            region: String::new(),
            pool_value: "12.5".to_owned(),
            status: "NORMAL".to_owned(),
            pay_mode: "total".to_owned(),
        }
    }
}

/// A savings plan that was bought.
#[derive(Debug, Clone)]
pub struct SavingsPlan {
    /// Id.
    pub id: String,
    /// Begin of the term.
    pub start: Timestamp,
    /// End of the term.
    pub end: Timestamp,
    /// Everything else.
    pub spec: SavingsPlanSpec,
}

/// Terms began 30 days before the world and last a year.
const TERM_HOURS: (i64, i64) = (-24 * 30, 24 * 335);

impl World {
    /// Buys reserved instances; returns their id. `None` when there is no
    /// such account.
    pub fn add_reserved_instance(&self, account: &str, region: &str, spec: ReservedInstanceSpec) -> Option<String> {
        let mut inner = self.write();
        let id = inner.fresh_id("ecsri");
        let (start, end) = (inner.after_creation(TERM_HOURS.0), inner.after_creation(TERM_HOURS.1));
        let bought = ReservedInstance {
            id: id.clone(),
            start: to_the_minute(start),
            end: to_the_minute(end),
            spec,
        };
        inner.region_mut(account, region)?.reserved.push(bought);
        Some(id)
    }

    /// Buys a private pool; returns its id. `None` when there is no such
    /// account.
    pub fn add_pool(&self, account: &str, region: &str, spec: PoolSpec) -> Option<String> {
        let mut inner = self.write();
        let id = inner.fresh_id(match spec.kind {
            PoolKind::ElasticityAssurance => "eap",
            PoolKind::CapacityReservation => "crp",
        });
        let (start, end) = (inner.after_creation(TERM_HOURS.0), inner.after_creation(TERM_HOURS.1));
        let bought = Pool {
            id: id.clone(),
            start: to_the_minute(start),
            end: to_the_minute(end),
            spec,
        };
        inner.region_mut(account, region)?.pools.push(bought);
        Some(id)
    }

    /// Buys a savings plan; returns its id. `None` when there is no such
    /// account.
    pub fn add_savings_plan(&self, account: &str, spec: SavingsPlanSpec) -> Option<String> {
        let mut inner = self.write();
        let id = inner.fresh_id("spn");
        let (start, end) = (inner.after_creation(TERM_HOURS.0), inner.after_creation(TERM_HOURS.1));
        let plan = SavingsPlan {
            id: id.clone(),
            start: to_the_minute(start),
            end: to_the_minute(end),
            spec,
        };
        inner.add_savings_plan(account, plan).then_some(id)
    }
}
