//! Which operation a request asks for.

use gpuwatch_fakecloud_core::Incoming;

use crate::compute::Place;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Token { tenant: String },
    MachineToken,
    Graph,
    Subscriptions,
    Locations,
    Machines,
    ScaleSets,
    Members(Place),
    Skus,
    CapacityGroups,
    CapacityGroup(Place),
    CapacityMembers(Place),
    Reservations,
    SavingsPlans,
    Unknown,
}

impl Operation {
    /// Service, operation and permission.
    pub(crate) const fn words(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Token { .. } | Self::MachineToken => ("login", "token", ""),
            Self::Graph => ("resourcegraph", "resources", "Microsoft.ResourceGraph/resources/read"),
            Self::Subscriptions => ("subscriptions", "list", "Microsoft.Resources/subscriptions/read"),
            Self::Locations => (
                "subscriptions",
                "locations.list",
                "Microsoft.Resources/subscriptions/locations/read",
            ),
            Self::Machines => (
                "compute",
                "virtualMachines.listAll",
                "Microsoft.Compute/virtualMachines/read",
            ),
            Self::ScaleSets => (
                "compute",
                "virtualMachineScaleSets.listAll",
                "Microsoft.Compute/virtualMachineScaleSets/read",
            ),
            Self::Members(_) => (
                "compute",
                "virtualMachineScaleSetVMs.list",
                "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
            ),
            Self::Skus => ("compute", "skus.list", "Microsoft.Compute/skus/read"),
            Self::CapacityGroups => (
                "compute",
                "capacityReservationGroups.list",
                "Microsoft.Compute/capacityReservationGroups/read",
            ),
            Self::CapacityGroup(_) => (
                "compute",
                "capacityReservationGroups.get",
                "Microsoft.Compute/capacityReservationGroups/read",
            ),
            Self::CapacityMembers(_) => (
                "compute",
                "capacityReservations.list",
                "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
            ),
            Self::Reservations => (
                "capacity",
                "reservations.list",
                "Microsoft.Capacity/reservationOrders/reservations/read",
            ),
            Self::SavingsPlans => (
                "billingbenefits",
                "savingsPlans.list",
                "Microsoft.BillingBenefits/savingsPlans/read",
            ),
            Self::Unknown => ("arm", "unknown", ""),
        }
    }

    pub(crate) fn parse(request: &Incoming) -> (Self, String) {
        let path = request.uri.path().to_lowercase();
        let original: Vec<&str> = request.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = |at: usize| original.get(at).map(|part| (*part).to_owned()).unwrap_or_default();
        let place = || Place {
            group: name(3),
            name: name(7),
        };
        let (operation, subscription) = match parts.as_slice() {
            [tenant, "oauth2", "v2.0", "token"] => {
                let tenant = (*tenant).to_owned();
                return (Self::Token { tenant }, String::new());
            }
            ["metadata", "identity", "oauth2", "token"] => return (Self::MachineToken, String::new()),
            ["providers", "microsoft.resourcegraph", "resources"] => return (Self::Graph, String::new()),
            ["providers", "microsoft.capacity", "reservations"] => return (Self::Reservations, String::new()),
            ["providers", "microsoft.billingbenefits", "savingsplans"] => return (Self::SavingsPlans, String::new()),
            ["subscriptions"] => return (Self::Subscriptions, String::new()),
            ["subscriptions", id, "locations"] => (Self::Locations, *id),
            ["subscriptions", id, "providers", "microsoft.compute", kind] => {
                let operation = match *kind {
                    "virtualmachines" => Self::Machines,
                    "virtualmachinescalesets" => Self::ScaleSets,
                    "skus" => Self::Skus,
                    "capacityreservationgroups" => Self::CapacityGroups,
                    _ => Self::Unknown,
                };
                (operation, *id)
            }
            [
                "subscriptions",
                id,
                "resourcegroups",
                _,
                "providers",
                "microsoft.compute",
                rest @ ..,
            ] => {
                let operation = match rest {
                    ["virtualmachinescalesets", _, "virtualmachines"] => Self::Members(place()),
                    ["capacityreservationgroups", _] => Self::CapacityGroup(place()),
                    ["capacityreservationgroups", _, "capacityreservations"] => Self::CapacityMembers(place()),
                    _ => Self::Unknown,
                };
                (operation, *id)
            }
            _ => (Self::Unknown, ""),
        };
        (operation, subscription.to_owned())
    }
}
