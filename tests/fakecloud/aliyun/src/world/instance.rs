//! Instances of ECS.

use jiff::Timestamp;

use super::region::zone_id;

/// What an instance is doing, in the API's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Being created.
    Pending,
    /// Booting.
    Starting,
    /// In use.
    #[default]
    Running,
    /// Shutting down.
    Stopping,
    /// Shut down.
    Stopped,
}

impl Status {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
        }
    }
}

/// What a stopped instance costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoppedMode {
    /// As much as a running one.
    #[default]
    KeepCharging,
    /// Nothing for compute: the economical mode.
    StopCharging,
    /// The type has no economical mode: as much as a running one.
    NotApplicable,
}

impl StoppedMode {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeepCharging => "KeepCharging",
            Self::StopCharging => "StopCharging",
            Self::NotApplicable => "Not-applicable",
        }
    }
}

/// How an instance is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Charge {
    /// Pay as you go.
    #[default]
    PostPaid,
    /// A subscription, paid ahead to a date.
    PrePaid,
    /// Interruptible, up to a price limit.
    SpotWithPriceLimit,
    /// Interruptible, at the market price.
    SpotAsPriceGo,
}

impl Charge {
    /// `InstanceChargeType` of the API.
    #[must_use]
    pub const fn charge_type(self) -> &'static str {
        match self {
            Self::PrePaid => "PrePaid",
            _ => "PostPaid",
        }
    }

    /// `SpotStrategy` of the API.
    #[must_use]
    pub const fn spot_strategy(self) -> &'static str {
        match self {
            Self::PostPaid | Self::PrePaid => "NoSpot",
            Self::SpotWithPriceLimit => "SpotWithPriceLimit",
            Self::SpotAsPriceGo => "SpotAsPriceGo",
        }
    }
}

/// What happens at the end of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renewal {
    /// It is renewed by itself.
    AutoRenewal,
    /// Its owner is asked.
    #[default]
    Normal,
    /// It ends, unasked.
    NotRenewal,
}

impl Renewal {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AutoRenewal => "AutoRenewal",
            Self::Normal => "Normal",
            Self::NotRenewal => "NotRenewal",
        }
    }
}

/// What an instance is created with.
#[derive(Debug, Clone)]
pub struct InstanceSpec {
    /// Id; a fresh one when `None`.
    pub id: Option<String>,
    /// Instance type.
    pub instance_type: String,
    /// Name for people; the API allows any text.
    pub name: String,
    /// Letter of the zone.
    pub zone: char,
    /// What it is doing.
    pub status: Status,
    /// What it costs when stopped.
    pub stopped_mode: StoppedMode,
    /// How it is paid for.
    pub charge: Charge,
    /// End of the subscription; 300 days from now when `None`.
    pub expires: Option<Timestamp>,
    /// What happens at the end of the subscription.
    pub renewal: Renewal,
    /// Whether it is so new that only the listing of instances knows it.
    pub listed_only: bool,
    /// Creation, of which the API tells the minute; an hour ago when `None`.
    pub created: Option<Timestamp>,
    /// Whether the answer lacks `GPUAmount` and `GPUSpec`.
    pub hide_gpus: bool,
    /// What the API says about the GPUs of a type that no table has.
    pub stated_gpus: Option<(u32, String)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// The private pool (elasticity assurance or capacity reservation) in use.
    pub private_pool: Option<String>,
    /// The dedicated host it runs on.
    pub dedicated_host: Option<String>,
    /// Reasons for which it is locked (`financial`, `Recycling`).
    pub locks: Vec<String>,
    /// `linux` or `windows`.
    pub os_type: String,
    /// Private address; a fresh one when `None`.
    pub private_ip: Option<String>,
}

impl Default for InstanceSpec {
    fn default() -> Self {
        Self {
            id: None,
            instance_type: "ecs.gn7i-c8g1.2xlarge".to_owned(),
            name: String::new(),
            zone: 'h',
            status: Status::Running,
            stopped_mode: StoppedMode::KeepCharging,
            charge: Charge::PostPaid,
            expires: None,
            renewal: Renewal::Normal,
            listed_only: false,
            created: None,
            hide_gpus: false,
            stated_gpus: None,
            tags: Vec::new(),
            private_pool: None,
            dedicated_host: None,
            locks: Vec::new(),
            os_type: "linux".to_owned(),
            private_ip: None,
        }
    }
}

impl InstanceSpec {
    /// A running pay-as-you-go instance of a type.
    #[must_use]
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

    /// With a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Stopped, in a mode.
    #[must_use]
    pub fn stopped(mut self, mode: StoppedMode) -> Self {
        self.status = Status::Stopped;
        self.stopped_mode = mode;
        self
    }
}

/// An instance that exists.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Id.
    pub id: String,
    /// Owning account's uid.
    pub account: String,
    /// Region.
    pub region: String,
    /// Creation, to the minute.
    pub created: Timestamp,
    /// End of the subscription; of no meaning for other charges.
    pub expires: Timestamp,
    /// Private address.
    pub private_ip: String,
    /// Everything else.
    pub spec: InstanceSpec,
}

impl Instance {
    /// The zone's id.
    #[must_use]
    pub fn zone(&self) -> String {
        zone_id(&self.region, self.spec.zone)
    }
}
