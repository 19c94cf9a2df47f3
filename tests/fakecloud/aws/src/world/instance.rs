//! Instances: what a test asks for, and what then exists.

use jiff::Timestamp;
use serde::Serialize;

/// `InstanceLifecycle`: how an instance was bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifecycle {
    /// The field is absent: on-demand, perhaps covered by a commitment.
    #[default]
    Normal,
    /// Spot.
    Spot,
    /// Scheduled reserved instance (no longer sold).
    Scheduled,
    /// In a capacity block.
    CapacityBlock,
    /// In a part of another's reservation that can be taken back.
    InterruptibleCapacityReservation,
}

impl Lifecycle {
    /// The API's word; `None` where the API leaves the field out.
    pub const fn as_api(self) -> Option<&'static str> {
        match self {
            Self::Normal => None,
            Self::Spot => Some("spot"),
            Self::Scheduled => Some("scheduled"),
            Self::CapacityBlock => Some("capacity-block"),
            Self::InterruptibleCapacityReservation => Some("interruptible-capacity-reservation"),
        }
    }
}

/// State of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// Being launched.
    Pending,
    /// Running, charged.
    #[default]
    Running,
    /// On its way to termination.
    ShuttingDown,
    /// Gone, still listed for up to an hour.
    Terminated,
    /// On its way to being stopped.
    Stopping,
    /// Stopped.
    Stopped,
}

impl InstanceState {
    /// The API's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// The API's number.
    pub const fn code(self) -> u32 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }
}

/// Billing platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Platform {
    /// Linux without a licence fee.
    #[default]
    Linux,
    /// Windows with its licence.
    Windows,
    /// Red Hat Enterprise Linux.
    RedHat,
    /// SUSE Linux.
    Suse,
}

impl Platform {
    /// `PlatformDetails`, also the product description of commitments.
    pub const fn details(self) -> &'static str {
        match self {
            Self::Linux => "Linux/UNIX",
            Self::Windows => "Windows",
            Self::RedHat => "Red Hat Enterprise Linux",
            Self::Suse => "SUSE Linux",
        }
    }

    /// `UsageOperation`.
    pub const fn usage_operation(self) -> &'static str {
        match self {
            Self::Linux => "RunInstances",
            Self::Windows => "RunInstances:0002",
            Self::RedHat => "RunInstances:0010",
            Self::Suse => "RunInstances:000g",
        }
    }
}

/// What an instance is launched with; the rest is made up.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceSpec {
    /// Instance type; need not be one that the type API knows.
    pub instance_type: String,
    /// How it was bought.
    pub lifecycle: Lifecycle,
    /// State.
    pub state: InstanceState,
    /// Letter of the availability zone.
    pub zone: char,
    /// Billing platform.
    pub platform: Platform,
    /// `default`, `dedicated` or `host`.
    pub tenancy: String,
    /// Tags, in the order in which the API lists them.
    pub tags: Vec<(String, String)>,
    /// Latest start; an hour before the world's creation unless given.
    pub launched: Option<Timestamp>,
    /// `StateTransitionReason`.
    pub transition_reason: Option<String>,
    /// `StateReason` code and message.
    pub state_reason: Option<(String, String)>,
    /// The capacity reservation it runs in.
    pub capacity_reservation: Option<String>,
    /// The capacity block it runs in.
    pub capacity_block: Option<String>,
    /// The AWS service that runs it for the customer; such an instance is
    /// hidden unless managed resources are asked for.
    pub managed_by: Option<String>,
    /// Private address; a fresh one unless given. A terminated instance has none.
    pub private_ip: Option<String>,
    /// Public address.
    pub public_ip: Option<String>,
    /// One-minute monitoring.
    pub detailed_monitoring: bool,
    /// Id; a fresh one unless given.
    pub id: Option<String>,
    /// The launch reservation (`r-…`) that it shares with the instances
    /// launched by the same call; its own unless given.
    pub launch_reservation: Option<String>,
}

impl Default for InstanceSpec {
    fn default() -> Self {
        Self {
            instance_type: "g5.xlarge".to_owned(),
            lifecycle: Lifecycle::Normal,
            state: InstanceState::Running,
            zone: 'a',
            platform: Platform::Linux,
            tenancy: "default".to_owned(),
            tags: Vec::new(),
            launched: None,
            transition_reason: None,
            state_reason: None,
            capacity_reservation: None,
            capacity_block: None,
            managed_by: None,
            private_ip: None,
            public_ip: None,
            detailed_monitoring: false,
            id: None,
            launch_reservation: None,
        }
    }
}

impl InstanceSpec {
    /// A running on-demand instance of a type.
    pub fn of(instance_type: &str) -> Self {
        Self {
            instance_type: instance_type.to_owned(),
            ..Self::default()
        }
    }

    /// With one more tag.
    #[must_use]
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.tags.push((key.to_owned(), value.to_owned()));
        self
    }
}

/// An instance that exists.
#[derive(Debug, Clone, Serialize)]
pub struct Instance {
    /// `i-…`.
    pub id: String,
    /// Owning account.
    pub account: String,
    /// Region.
    pub region: String,
    /// The launch reservation, `r-…`.
    pub launch_reservation: String,
    /// Private address; empty when it has none.
    pub private_ip: String,
    /// Latest start.
    pub launched: Timestamp,
    /// What it was launched with, and what has changed since.
    pub spec: InstanceSpec,
}

impl Instance {
    /// Availability zone, e.g. `us-east-1a`.
    pub fn zone(&self) -> String {
        format!("{}{}", self.region, self.spec.zone)
    }

    /// The value of a tag.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.spec
            .tags
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Whether it occupies its slot in a capacity reservation.
    pub(crate) fn occupies_capacity(&self) -> bool {
        matches!(
            self.spec.state,
            InstanceState::Pending | InstanceState::Running | InstanceState::Stopping
        )
    }
}
