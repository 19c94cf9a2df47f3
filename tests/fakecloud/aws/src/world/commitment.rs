//! Commitments: reserved instances, capacity reservations and blocks,
//! savings plans.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::World;
use super::instance::Platform;

/// Where reserved instances apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ReservationScope {
    /// The whole region.
    Region,
    /// One zone, by its letter.
    Zone(char),
}

/// What reserved instances are bought with.
#[derive(Debug, Clone, Serialize)]
pub struct ReservedInstancesSpec {
    /// Instance type.
    pub instance_type: String,
    /// Instances.
    pub count: u32,
    /// Region or zone.
    pub scope: ReservationScope,
    /// Billing platform.
    pub platform: Platform,
    /// `default` or `dedicated`.
    pub tenancy: String,
    /// `standard` or `convertible`.
    pub offering_class: String,
    /// `No Upfront`, `Partial Upfront`, `All Upfront`.
    pub offering_type: String,
    /// Paid at the start, per instance, as a decimal.
    pub fixed_price: String,
    /// Hourly price of use, per instance, as a decimal.
    pub usage_price: String,
    /// Recurring charge per instance and hour, as a decimal.
    pub hourly: String,
    /// `active`, `retired`, `queued` …
    pub state: String,
    /// Start of the term; 90 days before the world's creation unless given.
    pub start: Option<Timestamp>,
    /// Length of the term in days.
    pub days: u32,
    /// Id; a fresh one unless given.
    pub id: Option<String>,
}

impl Default for ReservedInstancesSpec {
    fn default() -> Self {
        Self {
            instance_type: "g5.xlarge".to_owned(),
            count: 1,
            scope: ReservationScope::Region,
            platform: Platform::Linux,
            tenancy: "default".to_owned(),
            offering_class: "standard".to_owned(),
            offering_type: "No Upfront".to_owned(),
            fixed_price: "0.0".to_owned(),
            usage_price: "0.0".to_owned(),
            hourly: "0.634".to_owned(),
            state: "active".to_owned(),
            start: None,
            days: 365,
            id: None,
        }
    }
}

/// Reserved instances that exist.
#[derive(Debug, Clone, Serialize)]
pub struct ReservedInstances {
    /// Id (a UUID).
    pub id: String,
    /// Start of the term.
    pub start: Timestamp,
    /// End of the term.
    pub end: Timestamp,
    /// What was bought.
    pub spec: ReservedInstancesSpec,
}

/// What a capacity reservation is created with.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityReservationSpec {
    /// Instance type.
    pub instance_type: String,
    /// Slots.
    pub total: u32,
    /// Letter of the availability zone.
    pub zone: char,
    /// Billing platform.
    pub platform: Platform,
    /// `default` or `dedicated`.
    pub tenancy: String,
    /// `active`, `scheduled`, `pending` …
    pub state: String,
    /// `open` or `targeted`.
    pub match_criteria: String,
    /// The capacity block that it belongs to; makes it one of type
    /// `capacity-block`.
    pub capacity_block: Option<String>,
    /// Whether its slots can be taken back.
    pub interruptible: bool,
    /// Accounts that see and use it besides the owner.
    pub shared_with: Vec<String>,
    /// The account that pays for unused slots, if not the owner.
    pub unused_billing_owner: Option<String>,
    /// End; none means unlimited.
    pub end: Option<Timestamp>,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// Id; a fresh one unless given.
    pub id: Option<String>,
}

impl Default for CapacityReservationSpec {
    fn default() -> Self {
        Self {
            instance_type: "g5.xlarge".to_owned(),
            total: 1,
            zone: 'a',
            platform: Platform::Linux,
            tenancy: "default".to_owned(),
            state: "active".to_owned(),
            match_criteria: "open".to_owned(),
            capacity_block: None,
            interruptible: false,
            shared_with: Vec::new(),
            unused_billing_owner: None,
            end: None,
            tags: Vec::new(),
            id: None,
        }
    }
}

/// A capacity reservation that exists. How many slots are free follows from
/// the instances that run in it.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityReservation {
    /// `cr-…`.
    pub id: String,
    /// Owning account.
    pub owner: String,
    /// Region.
    pub region: String,
    /// When it was created.
    pub start: Timestamp,
    /// What it was created with.
    pub spec: CapacityReservationSpec,
}

/// What a capacity block is bought with.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityBlockSpec {
    /// Instance type.
    pub instance_type: String,
    /// Instances.
    pub total: u32,
    /// Letter of the availability zone.
    pub zone: char,
    /// `active`, `scheduled`, `expired` …
    pub state: String,
    /// Start; two days before the world's creation unless given.
    pub start: Option<Timestamp>,
    /// Length in days.
    pub days: u32,
    /// `UltraServer` type, for the sizes that are sold so.
    pub ultraserver_type: Option<String>,
    /// Id; a fresh one unless given.
    pub id: Option<String>,
}

impl Default for CapacityBlockSpec {
    fn default() -> Self {
        Self {
            instance_type: "p5.48xlarge".to_owned(),
            total: 1,
            zone: 'a',
            state: "active".to_owned(),
            start: None,
            days: 14,
            ultraserver_type: None,
            id: None,
        }
    }
}

/// A capacity block that exists, with the capacity reservation of its slots.
#[derive(Debug, Clone, Serialize)]
pub struct CapacityBlock {
    /// `cb-…`.
    pub id: String,
    /// Its capacity reservation, `cr-…`.
    pub reservation: String,
    /// Start.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
    /// What was bought.
    pub spec: CapacityBlockSpec,
}

/// What a savings plan is bought with.
#[derive(Debug, Clone, Serialize)]
pub struct SavingsPlanSpec {
    /// `Compute`, `EC2Instance`, `SageMaker`, `Database`.
    pub plan_type: String,
    /// Region and family of an `EC2Instance` plan.
    pub family: Option<(String, String)>,
    /// Committed money per hour, a decimal.
    pub commitment: String,
    /// `USD`, `CNY`, `EUR`.
    pub currency: String,
    /// `No Upfront`, `Partial Upfront`, `All Upfront`.
    pub payment_option: String,
    /// Paid at the start, a decimal.
    pub upfront: String,
    /// Paid per hour, a decimal.
    pub recurring: String,
    /// `active`, `queued`, `retired` …
    pub state: String,
    /// Start; 30 days before the world's creation unless given.
    pub start: Option<Timestamp>,
    /// Length of the term in days.
    pub days: u32,
    /// Rates under the plan.
    pub rates: Vec<SavingsPlanRate>,
    /// Id; a fresh one unless given.
    pub id: Option<String>,
}

impl Default for SavingsPlanSpec {
    fn default() -> Self {
        Self {
            plan_type: "Compute".to_owned(),
            family: None,
            commitment: "10.0".to_owned(),
            currency: "USD".to_owned(),
            payment_option: "No Upfront".to_owned(),
            upfront: "0.0".to_owned(),
            recurring: "10.0".to_owned(),
            state: "active".to_owned(),
            start: None,
            days: 365,
            rates: Vec::new(),
            id: None,
        }
    }
}

impl SavingsPlanSpec {
    pub(crate) fn description(&self) -> String {
        let years = self.days / 365;
        format!("{years} year {} {} Savings Plan", self.payment_option, self.plan_type)
    }

    /// The products that the plan's type applies to.
    pub(crate) fn product_types(&self) -> &'static [&'static str] {
        match self.plan_type.as_str() {
            "Compute" => &["EC2", "Fargate", "Lambda"],
            "EC2Instance" => &["EC2"],
            "SageMaker" => &["SageMaker"],
            _ => &["RDS"],
        }
    }
}

/// The rate of one instance type under a savings plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SavingsPlanRate {
    /// Region.
    pub region: String,
    /// Instance type.
    pub instance_type: String,
    /// Billing platform, `Linux/UNIX`.
    pub product_description: String,
    /// Price per hour, a decimal.
    pub rate: String,
}

/// A savings plan that exists.
#[derive(Debug, Clone, Serialize)]
pub struct SavingsPlan {
    /// Id (a UUID).
    pub id: String,
    /// ARN.
    pub arn: String,
    /// The offering that was bought.
    pub offering_id: String,
    /// Start.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
    /// What was bought.
    pub spec: SavingsPlanSpec,
}

impl World {
    /// Buys reserved instances; returns their id, or nothing when there is no
    /// such account.
    pub fn add_reserved_instances(&self, account: &str, region: &str, spec: ReservedInstancesSpec) -> Option<String> {
        let mut inner = self.write();
        let id = spec.id.clone().unwrap_or_else(|| uuid(&mut inner.ids));
        let start = spec.start.unwrap_or_else(|| earlier(inner.created, 90));
        let reserved = ReservedInstances {
            id: id.clone(),
            start,
            end: later(start, spec.days),
            spec,
        };
        inner.region_mut(account, region)?.reserved.push(reserved);
        Some(id)
    }

    /// Creates a capacity reservation; returns its id.
    pub fn add_capacity_reservation(
        &self,
        account: &str,
        region: &str,
        spec: CapacityReservationSpec,
    ) -> Option<String> {
        let mut inner = self.write();
        let id = spec.id.clone().unwrap_or_else(|| inner.fresh_id("cr"));
        let start = earlier(inner.created, 20);
        let (owner, region_name) = (account.to_owned(), region.to_owned());
        let reservation = CapacityReservation {
            id: id.clone(),
            owner,
            region: region_name,
            start,
            spec,
        };
        inner.region_mut(account, region)?.capacity.push(reservation);
        Some(id)
    }

    /// Buys a capacity block; returns the ids of the block and of its
    /// capacity reservation.
    pub fn add_capacity_block(&self, account: &str, region: &str, spec: CapacityBlockSpec) -> Option<(String, String)> {
        let (id, start) = {
            let mut inner = self.write();
            let id = spec.id.clone().unwrap_or_else(|| inner.fresh_id("cb"));
            (id, spec.start.unwrap_or_else(|| earlier(inner.created, 2)))
        };
        let end = later(start, spec.days);
        let slots = CapacityReservationSpec {
            instance_type: spec.instance_type.clone(),
            total: spec.total,
            zone: spec.zone,
            state: spec.state.clone(),
            match_criteria: "targeted".to_owned(),
            capacity_block: Some(id.clone()),
            end: Some(end),
            ..CapacityReservationSpec::default()
        };
        let reservation = self.add_capacity_reservation(account, region, slots)?;
        let block = CapacityBlock {
            id: id.clone(),
            reservation: reservation.clone(),
            start,
            end,
            spec,
        };
        self.write().region_mut(account, region)?.blocks.push(block);
        Some((id, reservation))
    }

    /// Buys a savings plan; returns its id.
    pub fn add_savings_plan(&self, account: &str, spec: SavingsPlanSpec) -> Option<String> {
        let mut inner = self.write();
        let id = spec.id.clone().unwrap_or_else(|| uuid(&mut inner.ids));
        let offering_id = uuid(&mut inner.ids);
        let start = spec.start.unwrap_or_else(|| earlier(inner.created, 30));
        let arn = format!("arn:{}:savingsplans::{account}:savingsplan/{id}", inner.partition);
        let plan = SavingsPlan {
            id: id.clone(),
            arn,
            offering_id,
            start,
            end: later(start, spec.days),
            spec,
        };
        inner.accounts.get_mut(account)?.savings_plans.push(plan);
        Some(id)
    }

    /// An account's savings plans, by id.
    pub fn savings_plans(&self, account: &str) -> Vec<SavingsPlan> {
        let mut plans = self
            .read()
            .accounts
            .get(account)
            .map(|data| data.savings_plans.clone())
            .unwrap_or_default();
        plans.sort_by(|a, b| a.id.cmp(&b.id));
        plans
    }

    /// An account's reserved instances in a region.
    pub fn reserved_instances(&self, account: &str, region: &str) -> Vec<ReservedInstances> {
        self.read()
            .region(account, region)
            .map(|data| data.reserved.clone())
            .unwrap_or_default()
    }

    /// An account's own capacity reservations in a region, those of capacity
    /// blocks among them.
    pub fn capacity_reservations(&self, account: &str, region: &str) -> Vec<CapacityReservation> {
        self.read()
            .region(account, region)
            .map(|data| data.capacity.clone())
            .unwrap_or_default()
    }

    /// An account's capacity blocks in a region.
    pub fn capacity_blocks(&self, account: &str, region: &str) -> Vec<CapacityBlock> {
        self.read()
            .region(account, region)
            .map(|data| data.blocks.clone())
            .unwrap_or_default()
    }
}

impl super::Inner {
    /// Slots of a capacity reservation that instances occupy.
    pub(crate) fn used_slots(&self, reservation: &CapacityReservation) -> u32 {
        let users = std::iter::once(&reservation.owner).chain(&reservation.spec.shared_with);
        let occupied = users
            .filter_map(|account| self.region(account, &reservation.region))
            .flat_map(|data| data.instances.values())
            .filter(|instance| instance.spec.capacity_reservation.as_ref() == Some(&reservation.id))
            .filter(|instance| instance.occupies_capacity())
            .count();
        u32::try_from(occupied).unwrap_or(u32::MAX).min(reservation.spec.total)
    }

    /// The capacity reservations that an account sees in a region: its own and
    /// those shared with it, by id.
    pub(crate) fn visible_capacity(&self, account: &str, region: &str) -> Vec<&CapacityReservation> {
        let everywhere = self.accounts.values().filter_map(|data| data.regions.get(region));
        let mut visible: Vec<&CapacityReservation> = everywhere
            .flat_map(|data| &data.capacity)
            .filter(|reservation| {
                reservation.owner == account || reservation.spec.shared_with.iter().any(|user| user == account)
            })
            .collect();
        visible.sort_by(|a, b| a.id.cmp(&b.id));
        visible
    }
}

fn uuid(random: &mut gpuwatch_fakecloud_core::random::Random) -> String {
    let mut part = |digits| random.hex(digits);
    format!("{}-{}-4{}-8{}-{}", part(8), part(4), part(3), part(3), part(12))
}

fn earlier(moment: Timestamp, days: i64) -> Timestamp {
    moment
        .checked_sub(SignedDuration::from_hours(24 * days))
        .unwrap_or(moment)
}

fn later(moment: Timestamp, days: u32) -> Timestamp {
    moment
        .checked_add(SignedDuration::from_hours(24 * i64::from(days)))
        .unwrap_or(moment)
}
