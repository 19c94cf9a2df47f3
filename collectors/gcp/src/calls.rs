//! Every call there is, with the permission it needs.

use gpuwatch_collector_core::Call;

pub(crate) const INSTANCES: Call = Call::new("compute", "instances.aggregatedList", "compute.instances.list");
pub(crate) const INSTANCES_OF_ZONE: Call = Call::new("compute", "instances.list", "compute.instances.list");
pub(crate) const MACHINE_TYPES: Call = Call::new("compute", "machineTypes.aggregatedList", "compute.machineTypes.list");
pub(crate) const REGIONS: Call = Call::new("compute", "regions.list", "compute.regions.list");
pub(crate) const ZONES: Call = Call::new("compute", "zones.list", "compute.zones.list");
pub(crate) const RESERVATIONS: Call = Call::new("compute", "reservations.aggregatedList", "compute.reservations.list");
pub(crate) const FUTURE_RESERVATIONS: Call = Call::new(
    "compute",
    "futureReservations.aggregatedList",
    "compute.futureReservations.list",
);
pub(crate) const COMMITMENTS: Call = Call::new(
    "compute",
    "regionCommitments.aggregatedList",
    "compute.commitments.list",
);
pub(crate) const PROJECT: Call = Call::new("compute", "projects.get", "compute.projects.get");
pub(crate) const TPU_NODES: Call = Call::new("tpu", "nodes.list", "tpu.nodes.list");
pub(crate) const LIST_PROJECTS: Call = Call::new("resourcemanager", "projects.list", "resourcemanager.projects.list");
pub(crate) const SEARCH_PROJECTS: Call =
    Call::new("resourcemanager", "projects.search", "resourcemanager.projects.get");
pub(crate) const LIST_FOLDERS: Call = Call::new("resourcemanager", "folders.list", "resourcemanager.folders.list");
pub(crate) const GENERATE_ACCESS_TOKEN: Call = Call::new(
    "iamcredentials",
    "generateAccessToken",
    "iam.serviceAccounts.getAccessToken",
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ROLE: &str = include_str!("../../../deploy/iam/gcp-role.yaml");
    const GUIDE: &str = include_str!("../../../docs/providers/gcp.md");

    const CALLS: [Call; 14] = [
        INSTANCES,
        INSTANCES_OF_ZONE,
        MACHINE_TYPES,
        REGIONS,
        ZONES,
        RESERVATIONS,
        FUTURE_RESERVATIONS,
        COMMITMENTS,
        PROJECT,
        TPU_NODES,
        LIST_PROJECTS,
        SEARCH_PROJECTS,
        LIST_FOLDERS,
        GENERATE_ACCESS_TOKEN,
    ];

    #[test]
    fn the_role_has_every_permission_and_no_other() {
        let granted: BTreeSet<&str> = ROLE.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
        // A token is asked for with a role on the account that it is for.
        let calls = CALLS.iter().filter(|call| call.service != "iamcredentials");
        let needed: BTreeSet<&str> = calls.map(|call| call.permission).collect();
        assert_eq!(granted, needed);
    }

    #[test]
    fn the_guide_names_every_call_and_its_permission() {
        for call in CALLS {
            assert!(GUIDE.contains(&format!("`{}`", call.operation)), "{}", call.operation);
            assert!(GUIDE.contains(&format!("`{}`", call.permission)), "{}", call.permission);
        }
    }
}
