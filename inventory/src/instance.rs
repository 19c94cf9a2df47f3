//! One rented machine, endpoint, job or pool that holds accelerators.

use jiff::Timestamp;

use crate::{Accelerators, Billing, BillingMode, Provider, Text};

crate::words! {
    /// What sort of resource holds the accelerators.
    Kind, "kind" {
        /// A virtual or bare-metal machine.
        Vm = "vm",
        /// A managed notebook or development environment.
        Notebook = "notebook",
        /// A managed inference endpoint.
        Endpoint = "endpoint",
        /// A managed training or batch job.
        Job = "job",
        /// A managed resource pool.
        Pool = "pool",
    }
}

crate::words! {
    /// Life-cycle state, told apart by whether compute is charged.
    State, "state" {
        /// Running, charged.
        Running = "running",
        /// Being provisioned or booted.
        Starting = "starting",
        /// On its way down.
        Stopping = "stopping",
        /// Stopped, no compute charge (disks may still cost).
        Stopped = "stopped",
        /// Stopped, but compute is still charged.
        StoppedBilled = "stopped_billed",
        /// The cloud named a state that gpuwatch does not know.
        Unknown = "unknown",
    }
}

/// A tag or label kept on an instance: only the configured owner and exempt
/// keys and the well-known ownership keys are kept, never all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Key as the cloud spells it (case-sensitive).
    pub key: Text,
    /// Value; untrusted text.
    pub value: Text,
}

/// An instance with everything that the inventory datasets say about it.
///
/// The identity is (`provider`, `account`, `region`, `id`). All text comes
/// from outside and is untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The cloud.
    pub provider: Provider,
    /// AWS account id, GCP project id, Azure subscription id (lower case),
    /// Aliyun account uid, Tencent owner uin.
    pub account: Text,
    /// The configured name, or the account's own name where discovered.
    pub account_name: Text,
    /// The provider's own region name, lower case without blanks.
    pub region: Text,
    /// The id the cloud's own APIs join on.
    pub id: Text,
    /// Name tag or resource name; empty when there is none.
    pub name: Text,
    /// Zone within the region; empty when unknown.
    pub zone: Text,
    /// The cloud's instance type; empty for kinds without one.
    pub instance_type: Text,
    /// Resource kind.
    pub kind: Kind,
    /// Life-cycle state.
    pub state: State,
    /// Purchase option.
    pub billing: Billing,
    /// What accelerators it has.
    pub accelerators: Accelerators,
    /// AWS: latest start; GCP: last start or creation; others: creation.
    pub launched: Option<Timestamp>,
    /// End of a prepaid or reserved term.
    pub expires: Option<Timestamp>,
    /// Whether a prepaid term is renewed at its end without anybody doing
    /// anything; `None` when the cloud does not say or nothing is prepaid.
    pub auto_renew: Option<bool>,
    /// When it was stopped, if it is stopped and the cloud says.
    pub stopped: Option<Timestamp>,
    /// First configured owner tag with a value; empty when none.
    pub owner: Text,
    /// Kubernetes or other cluster it belongs to; empty when none.
    pub cluster: Text,
    /// Node pool, scaling group or queue it belongs to; empty when none.
    pub pool: Text,
    /// Billing platform as the cloud spells it (`Linux/UNIX`, `Windows` ...);
    /// empty when unknown. Commitments and prices match on it.
    pub platform: Text,
    /// `default`, `dedicated`, `host` or the cloud's own word; empty when unknown.
    pub tenancy: Text,
    /// Id of the capacity reservation or block it runs in; empty when none.
    pub reservation_id: Text,
    /// Private IPv4 address; empty when none. Joins telemetry.
    pub private_address: Text,
    /// Private host name; empty when none. Joins telemetry.
    pub private_host: Text,
    /// The tags that were asked for.
    pub tags: Vec<Tag>,
}

impl Instance {
    /// A running machine of which nothing but its identity is known.
    #[must_use]
    pub fn bare(provider: Provider, account: &str, region: &str, id: &str) -> Self {
        let none = Text::default;
        Self {
            provider,
            account: account.into(),
            account_name: none(),
            region: region.into(),
            id: id.into(),
            name: none(),
            zone: none(),
            instance_type: none(),
            kind: Kind::Vm,
            state: State::Running,
            billing: Billing::exact(BillingMode::Unknown, ""),
            accelerators: Accelerators::default(),
            launched: None,
            expires: None,
            auto_renew: None,
            stopped: None,
            owner: none(),
            cluster: none(),
            pool: none(),
            platform: none(),
            tenancy: none(),
            reservation_id: none(),
            private_address: none(),
            private_host: none(),
            tags: Vec::new(),
        }
    }

    /// The identity within the fleet.
    #[must_use]
    pub fn key(&self) -> (Provider, &str, &str, &str) {
        (self.provider, &self.account, &self.region, &self.id)
    }

    /// Whether compute is being charged in this state, as far as is known.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        matches!(self.state, State::Running | State::Starting | State::StoppedBilled)
    }
}
