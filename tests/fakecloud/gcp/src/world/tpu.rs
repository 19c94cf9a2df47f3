//! Nodes of the Cloud TPU API.

use jiff::Timestamp;

/// What a TPU node is created with; the rest is made up.
#[derive(Debug, Clone)]
pub struct TpuSpec {
    /// `acceleratorType` (`v5litepod-8`).
    pub accelerator_type: String,
    /// `acceleratorConfig.type` and `topology` (`V5LITE_POD`, `2x4`), where
    /// the API shows them.
    pub config: Option<(String, String)>,
    /// `state`.
    pub state: String,
    /// `schedulingConfig.preemptible`.
    pub preemptible: bool,
    /// `schedulingConfig.spot`.
    pub spot: bool,
    /// `schedulingConfig.reserved`.
    pub reserved: bool,
    /// Name; made up unless given.
    pub name: String,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Creation; a day before the world's creation unless given.
    pub created: Option<Timestamp>,
    /// Number of hosts, each with an address.
    pub hosts: u32,
    /// Ids of machines of Compute Engine that are its hosts: it then has their
    /// addresses, and is no rented thing of its own.
    pub machines: Vec<String>,
    /// The record comes without a name.
    pub without_name: bool,
}

impl Default for TpuSpec {
    fn default() -> Self {
        Self {
            accelerator_type: "v5litepod-8".to_owned(),
            config: None,
            state: "READY".to_owned(),
            preemptible: false,
            spot: false,
            reserved: false,
            name: String::new(),
            labels: Vec::new(),
            created: None,
            hosts: 1,
            machines: Vec::new(),
            without_name: false,
        }
    }
}

impl TpuSpec {
    /// A ready on-demand node of a type.
    pub fn of(accelerator_type: &str) -> Self {
        Self {
            accelerator_type: accelerator_type.to_owned(),
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

    /// With a generation and a topology (`V5LITE_POD`, `2x4`).
    #[must_use]
    pub fn shaped(mut self, generation: &str, topology: &str) -> Self {
        self.config = Some((generation.to_owned(), topology.to_owned()));
        self
    }
}

/// A TPU node that exists.
#[derive(Debug, Clone)]
pub struct TpuNode {
    /// Numeric id.
    pub id: String,
    /// Owning project.
    pub project: String,
    /// Zone.
    pub zone: String,
    /// Name, unique in its project and zone.
    pub name: String,
    /// Private address of each host.
    pub addresses: Vec<String>,
    /// Creation.
    pub created: Timestamp,
    /// What it was created with, and what has changed since.
    pub spec: TpuSpec,
}
