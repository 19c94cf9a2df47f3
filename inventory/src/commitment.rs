//! Commitments: what was bought ahead, and how much of it is used.

use jiff::Timestamp;

use crate::{GpuCount, Money, Provider, Text};

crate::words! {
    /// The `kind` label of the commitment metrics.
    CommitmentKind, "commitment kind" {
        /// AWS or Aliyun reserved instance.
        ReservedInstance = "reserved_instance",
        /// A commitment of money per hour.
        SavingsPlan = "savings_plan",
        /// Capacity held at the on-demand rate.
        CapacityReservation = "capacity_reservation",
        /// Capacity paid up front for fixed dates.
        CapacityBlock = "capacity_block",
        /// GCP committed use discount.
        CommittedUse = "committed_use",
        /// GCP or Azure reservation.
        Reservation = "reservation",
    }
}

/// Where a commitment applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitmentScope {
    /// One zone.
    Zone(Text),
    /// The whole region.
    Region,
    /// Every region of the account.
    Global,
}

/// The rate of one instance type under a commitment of money.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitmentRate {
    /// Region of the rate.
    pub region: Text,
    /// Instance type.
    pub instance_type: Text,
    /// Billing platform (`Linux/UNIX`).
    pub platform: Text,
    /// Per instance and hour.
    pub hourly: Money,
}

/// One active commitment, in the account that owns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Commitment {
    /// The cloud.
    pub provider: Provider,
    /// Owning account.
    pub account: Text,
    /// Configured or discovered account name.
    pub account_name: Text,
    /// Region it applies to; `global` when it is not bound to one.
    pub region: Text,
    /// The cloud's id.
    pub id: Text,
    /// What was bought.
    pub kind: CommitmentKind,
    /// The instance type it covers; a family (`p5`) for a family-wide plan,
    /// empty when any type is covered.
    pub instance_type: Text,
    /// Where it applies.
    pub scope: CommitmentScope,
    /// Billing platform it covers (`Linux/UNIX`); empty when any.
    pub platform: Text,
    /// Tenancy it covers; empty when any.
    pub tenancy: Text,
    /// Units (instances) bought; `None` for commitments of money.
    pub units: Option<u32>,
    /// Units in use: stated by the cloud, or allocated by gpuwatch.
    pub used_units: Option<u32>,
    /// Accelerators in one unit; `None` when unknown or of money.
    pub gpus_per_unit: Option<GpuCount>,
    /// Committed or effective price per hour, for all units together.
    pub hourly: Option<Money>,
    /// What one covered unit of an instance type costs per hour under this
    /// commitment, where the cloud publishes it; for commitments of money.
    pub rates: Vec<CommitmentRate>,
    /// Start of the term.
    pub starts: Option<Timestamp>,
    /// End of the term.
    pub expires: Option<Timestamp>,
    /// `open` or `targeted` for capacity reservations, offering class for
    /// reserved instances; the cloud's own word, empty when none.
    pub detail: Text,
}

impl Commitment {
    /// Accelerators bought: units × accelerators per unit.
    #[must_use]
    pub fn gpus(&self) -> Option<GpuCount> {
        Some(self.gpus_per_unit?.times(self.units?))
    }

    /// Accelerators in use.
    #[must_use]
    pub fn used_gpus(&self) -> Option<GpuCount> {
        Some(self.gpus_per_unit?.times(self.used_units?))
    }
}
