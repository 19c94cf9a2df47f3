//! Machines of Compute Engine: what a test asks for, and what then exists.

use jiff::Timestamp;

/// `status` of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Status {
    /// Waits for capacity.
    Pending,
    /// Resources are being allocated.
    Provisioning,
    /// Being prepared for the first boot.
    Staging,
    /// Running, charged.
    #[default]
    Running,
    /// Broken, being restored by the cloud.
    Repairing,
    /// Within its graceful shutdown.
    PendingStop,
    /// Being stopped.
    Stopping,
    /// Its resources are being given back.
    Deprovisioning,
    /// Stopped; the word of newer versions.
    Stopped,
    /// Stopped; the word that the API has used so far.
    Terminated,
    /// Being suspended.
    Suspending,
    /// Suspended.
    Suspended,
    /// A word that no client knows yet.
    Other(String),
}

impl Status {
    /// The API's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "PENDING",
            Self::Provisioning => "PROVISIONING",
            Self::Staging => "STAGING",
            Self::Running => "RUNNING",
            Self::Repairing => "REPAIRING",
            Self::PendingStop => "PENDING_STOP",
            Self::Stopping => "STOPPING",
            Self::Deprovisioning => "DEPROVISIONING",
            Self::Stopped => "STOPPED",
            Self::Terminated => "TERMINATED",
            Self::Suspending => "SUSPENDING",
            Self::Suspended => "SUSPENDED",
            Self::Other(word) => word,
        }
    }

    /// Whether the machine holds its place in a reservation.
    pub(crate) fn holds_capacity(&self) -> bool {
        !matches!(self, Self::Pending | Self::Stopped | Self::Terminated | Self::Suspended)
    }
}

/// How a machine was bought: `scheduling.provisioningModel` and `preemptible`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Provisioning {
    /// `STANDARD`.
    #[default]
    Standard,
    /// No provisioning model at all, as on old machines.
    Unset,
    /// `SPOT`; the API then also says that it is preemptible.
    Spot,
    /// Preemptible from the time before Spot: `STANDARD` and `preemptible`.
    LegacyPreemptible,
    /// `FLEX_START`.
    FlexStart,
    /// `RESERVATION_BOUND`.
    ReservationBound,
    /// A word that no client knows yet.
    Other(&'static str),
}

impl Provisioning {
    /// The API's word; `None` where the API leaves the field out.
    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Unset => None,
            Self::Standard | Self::LegacyPreemptible => Some("STANDARD"),
            Self::Spot => Some("SPOT"),
            Self::FlexStart => Some("FLEX_START"),
            Self::ReservationBound => Some("RESERVATION_BOUND"),
            Self::Other(word) => Some(word),
        }
    }

    /// `scheduling.preemptible`.
    pub const fn is_preemptible(&self) -> bool {
        matches!(self, Self::Spot | Self::LegacyPreemptible)
    }
}

/// What a machine is created with; the rest is made up.
#[derive(Debug, Clone, Default)]
pub struct InstanceSpec {
    /// Machine type; need not be one that the type API knows.
    pub machine_type: String,
    /// `guestAccelerators`: accelerator type and count. `None` for what the
    /// API shows by itself, the accelerators that come with the machine type.
    pub accelerators: Option<Vec<(String, u32)>>,
    /// How it was bought.
    pub provisioning: Provisioning,
    /// State.
    pub status: Status,
    /// Name; made up unless given. A number is added to a name that is taken.
    pub name: String,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Other metadata items than the made-up ones.
    pub metadata: Vec<(String, String)>,
    /// Creation; a day before the world's creation unless given.
    pub created: Option<Timestamp>,
    /// Latest start; the creation unless given.
    pub started: Option<Timestamp>,
    /// Leaves `lastStartTimestamp` out.
    pub never_started: bool,
    /// When it was stopped or suspended.
    pub stopped: Option<Timestamp>,
    /// Id of the reservation it consumes, in any project.
    pub reservation: Option<String>,
    /// Name of the managed instance group that made it.
    pub instance_group: Option<String>,
    /// Seconds until it is ended by the cloud.
    pub max_run_seconds: Option<u64>,
    /// The sole-tenant node group it is tied to.
    pub node_group: Option<String>,
    /// Runs Windows with its licence.
    pub windows: bool,
    /// Private address; a fresh one unless given.
    pub private_ip: Option<String>,
    /// Public address.
    pub public_ip: Option<String>,
    /// Id; a fresh one unless given.
    pub id: Option<u64>,
    /// The record comes without an id, which no real one does.
    pub without_id: bool,
}

impl InstanceSpec {
    /// A running on-demand machine of a type.
    pub fn of(machine_type: &str) -> Self {
        Self {
            machine_type: machine_type.to_owned(),
            ..Self::default()
        }
    }

    /// With this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// With one more label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    /// With attached accelerators.
    #[must_use]
    pub fn attached(mut self, accelerator_type: &str, count: u32) -> Self {
        let list = self.accelerators.get_or_insert_default();
        list.push((accelerator_type.to_owned(), count));
        self
    }

    /// Bought this way.
    #[must_use]
    pub fn bought(mut self, provisioning: Provisioning) -> Self {
        self.provisioning = provisioning;
        self
    }

    /// In this state.
    #[must_use]
    pub fn in_state(mut self, status: Status) -> Self {
        self.status = status;
        self
    }
}

/// A machine that exists.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Numeric id.
    pub id: String,
    /// Owning project.
    pub project: String,
    /// Zone.
    pub zone: String,
    /// Name, unique in its project and zone.
    pub name: String,
    /// Private address.
    pub private_ip: String,
    /// Creation.
    pub created: Timestamp,
    /// What it was created with, and what has changed since.
    pub spec: InstanceSpec,
}

impl Instance {
    /// Latest start; `None` for a machine that never ran.
    pub fn started(&self) -> Option<Timestamp> {
        if self.spec.never_started {
            return None;
        }
        Some(self.spec.started.unwrap_or(self.created))
    }
}
