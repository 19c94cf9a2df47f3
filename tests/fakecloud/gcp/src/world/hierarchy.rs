//! Organizations, folders and projects, and what is allowed in them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::capacity::{Commitment, Reservation};
use super::future::FutureReservation;
use super::instance::Instance;
use super::tpu::TpuNode;
use super::{Inner, World};

/// State of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectState {
    /// In use.
    #[default]
    Active,
    /// Shut down, gone for good in 30 days; its machines cannot be listed.
    DeleteRequested,
}

impl ProjectState {
    /// The API's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::DeleteRequested => "DELETE_REQUESTED",
        }
    }
}

/// What a project is created with.
#[derive(Debug, Clone, Default)]
pub struct ProjectSpec {
    /// Display name; the project id unless given.
    pub name: Option<String>,
    /// `folders/NUMBER` or `organizations/NUMBER`; `None` for a project of its
    /// own.
    pub parent: Option<String>,
    /// State.
    pub state: ProjectState,
    /// Labels.
    pub labels: Vec<(String, String)>,
}

impl ProjectSpec {
    /// A project with this display name.
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Below this folder or organization.
    #[must_use]
    pub fn below(mut self, parent: &str) -> Self {
        self.parent = Some(parent.to_owned());
        self
    }
}

/// A folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) name: String,
    /// `folders/NUMBER` or `organizations/NUMBER`.
    pub(crate) parent: String,
}

/// A project with everything in it.
#[derive(Debug)]
pub(crate) struct ProjectData {
    pub(crate) id: String,
    pub(crate) number: String,
    pub(crate) spec: ProjectSpec,
    pub(crate) made: Timestamp,
    /// By zone and name, the order of listings.
    pub(crate) instances: BTreeMap<(String, String), Instance>,
    /// By zone and name.
    pub(crate) nodes: BTreeMap<(String, String), TpuNode>,
    /// By zone and name.
    pub(crate) reservations: BTreeMap<(String, String), Reservation>,
    /// By zone and name.
    pub(crate) future_reservations: BTreeMap<(String, String), FutureReservation>,
    /// By region and name.
    pub(crate) commitments: BTreeMap<(String, String), Commitment>,
    /// Services that are switched off (`tpu.googleapis.com`).
    pub(crate) disabled: BTreeSet<String>,
}

impl ProjectData {
    pub(crate) fn display_name(&self) -> &str {
        self.spec.name.as_deref().unwrap_or(&self.id)
    }
}

impl World {
    /// Adds an organization; `number` is its id. Returns `organizations/NUMBER`.
    pub fn add_organization(&self, number: &str, name: &str) -> String {
        self.write().organizations.insert(number.to_owned(), name.to_owned());
        format!("organizations/{number}")
    }

    /// Adds a folder below `folders/NUMBER` or `organizations/NUMBER`.
    /// Returns `folders/NUMBER`.
    pub fn add_folder(&self, number: &str, parent: &str, name: &str) -> String {
        let folder = Folder {
            name: name.to_owned(),
            parent: parent.to_owned(),
        };
        self.write().folders.insert(number.to_owned(), folder);
        format!("folders/{number}")
    }

    /// Adds a project. Returns its number.
    pub fn add_project(&self, id: &str, spec: ProjectSpec) -> String {
        let mut inner = self.write();
        let number = inner.fresh_number();
        let made = inner.created - SignedDuration::from_hours(24 * 400);
        let data = ProjectData {
            id: id.to_owned(),
            number: number.clone(),
            spec,
            made,
            instances: BTreeMap::new(),
            nodes: BTreeMap::new(),
            reservations: BTreeMap::new(),
            future_reservations: BTreeMap::new(),
            commitments: BTreeMap::new(),
            disabled: BTreeSet::new(),
        };
        inner.projects.insert(id.to_owned(), data);
        number
    }

    /// Project ids, in order, whatever their state.
    pub fn projects(&self) -> Vec<String> {
        self.read().projects.keys().cloned().collect()
    }

    /// Project ids of the projects in use.
    pub fn active_projects(&self) -> Vec<String> {
        let inner = self.read();
        let active = inner
            .projects
            .values()
            .filter(|project| project.spec.state == ProjectState::Active);
        active.map(|project| project.id.clone()).collect()
    }

    /// Changes a project's state.
    pub fn set_project_state(&self, id: &str, state: ProjectState) {
        if let Some(project) = self.write().projects.get_mut(id) {
            project.spec.state = state;
        }
    }

    /// Switches a service (`compute.googleapis.com`) off in a project.
    pub fn disable_api(&self, project: &str, service: &str) {
        if let Some(data) = self.write().projects.get_mut(project) {
            data.disabled.insert(service.to_owned());
        }
    }

    /// Switches a service on again.
    pub fn enable_api(&self, project: &str, service: &str) {
        if let Some(data) = self.write().projects.get_mut(project) {
            data.disabled.remove(service);
        }
    }

    /// Takes a permission (`compute.instances.list`) away from every caller.
    /// `resource` is a project id, `folders/NUMBER` or `organizations/NUMBER`.
    pub fn deny(&self, resource: &str, permission: &str) {
        let rule = (resource.to_owned(), permission.to_owned());
        self.write().identity.denied.insert(rule);
    }

    /// Gives a permission back.
    pub fn allow(&self, resource: &str, permission: &str) {
        let rule = (resource.to_owned(), permission.to_owned());
        self.write().identity.denied.remove(&rule);
    }
}

impl Inner {
    /// A project by its id or its number.
    pub(crate) fn project(&self, name: &str) -> Option<&ProjectData> {
        let by_number = || self.projects.values().find(|project| project.number == name);
        self.projects.get(name).or_else(by_number)
    }
}
