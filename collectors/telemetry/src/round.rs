//! What one round of reading a server gives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gpuwatch_collector_core::CollectError;
use gpuwatch_inventory::{Bucket, Hour, Instance, InstanceUsage, Measure, Provider, Text};

use crate::join::Refusal;

/// Identity of an instance in maps.
pub type InstanceKey = (Provider, Text, Text, Text);

/// Usage of one card, or of a machine (`gpu` is empty), in one hour, to be
/// added to the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The instance.
    pub instance: Arc<Instance>,
    /// The card, as in [`GpuUsage::gpu`].
    pub gpu: Text,
    /// What was measured.
    pub measure: Measure,
    /// When.
    pub hour: Hour,
    /// How much: readings that were in no earlier round.
    pub bucket: Bucket,
}

/// What a round found.
#[derive(Debug, Default)]
pub struct Round {
    /// One per joined instance.
    pub usage: Vec<InstanceUsage>,
    /// For the history.
    pub folded: Vec<Folded>,
    /// What failed; the rest is there all the same.
    pub failures: Vec<CollectError>,
    /// Cards joined, by method.
    pub joined: BTreeMap<&'static str, u64>,
    /// Cards not joined, by reason.
    pub unjoined: BTreeMap<Refusal, u64>,
    /// Instances whose telemetry cannot be theirs.
    pub refused: Vec<InstanceKey>,
    /// Which machines the cards without an instance are on.
    pub examples: BTreeSet<String>,
    /// Exporters found.
    pub families: Vec<&'static str>,
    /// Readings that were out of range.
    pub bad_values: u64,
}
