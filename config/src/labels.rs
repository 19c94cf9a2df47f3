//! What a cloud's tags say about an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    check::Check,
    yaml::{Checks, Spot},
};

/// Tags with a meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabelsSection {
    /// Tags that name the owner; the first with a value counts.
    pub owner_tags: Vec<String>,
}

impl Default for LabelsSection {
    fn default() -> Self {
        let owner_tags = ["owner", "team", "kubernetes.io/created-for/pvc/namespace"];
        Self {
            owner_tags: owner_tags.map(str::to_owned).to_vec(),
        }
    }
}

impl Check for LabelsSection {
    fn check(&mut self, spot: &Spot<'_>, checks: &Checks<'_>) {
        let spot = spot.key("owner_tags");
        checks.unique(&spot, &self.owner_tags);
        checks.not_blank(&spot, &self.owner_tags);
    }
}
