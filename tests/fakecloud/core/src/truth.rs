//! What a correct observer must report, worked out from a world itself.
//!
//! Worlds work it out without any code of gpuwatch, so that the two can
//! disagree.

use jiff::Timestamp;
use serde::Serialize;

/// One accelerator instance that must be reported, in the words of the metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceTruth {
    /// Owning account.
    pub account: String,
    /// Its name.
    pub account_name: String,
    /// Region.
    pub region: String,
    /// Availability zone.
    pub zone: String,
    /// The id that the `instance_id` label shows.
    pub id: String,
    /// Name; empty without one.
    pub name: String,
    /// Instance type.
    pub instance_type: String,
    /// The `state` label.
    pub state: &'static str,
    /// `on_demand`, `reserved`, `spot`, `unknown`.
    pub billing_mode: &'static str,
    /// The kind within the mode.
    pub billing_detail: &'static str,
    /// Accelerators; `None` when nobody knows.
    pub gpus: Option<f64>,
    /// The time that the launch metric shows.
    pub launched: Timestamp,
}

/// One active commitment that must be reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitmentTruth {
    /// Owning account.
    pub account: String,
    /// Region; `global` for a plan without one.
    pub region: String,
    /// The cloud's id.
    pub id: String,
    /// The `kind` label.
    pub kind: &'static str,
    /// Instance type; empty for commitments of money.
    pub instance_type: String,
    /// Units bought; `None` for commitments of money.
    pub units: Option<u32>,
    /// Units in use; `None` for commitments of money.
    pub used: Option<u32>,
}
