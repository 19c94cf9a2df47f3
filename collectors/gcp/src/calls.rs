//! Every call there is, with the permission it needs.

use gpuwatch_collector_core::Call;

pub(crate) const INSTANCES: Call = Call::new("compute", "instances.aggregatedList", "compute.instances.list");
pub(crate) const INSTANCES_OF_ZONE: Call = Call::new("compute", "instances.list", "compute.instances.list");
pub(crate) const MACHINE_TYPES: Call = Call::new("compute", "machineTypes.aggregatedList", "compute.machineTypes.list");
pub(crate) const REGIONS: Call = Call::new("compute", "regions.list", "compute.regions.list");
pub(crate) const ZONES: Call = Call::new("compute", "zones.list", "compute.zones.list");
pub(crate) const RESERVATIONS: Call = Call::new("compute", "reservations.aggregatedList", "compute.reservations.list");
pub(crate) const COMMITMENTS: Call = Call::new(
    "compute",
    "regionCommitments.aggregatedList",
    "compute.commitments.list",
);
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
