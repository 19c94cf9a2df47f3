//! Machines that come, go and change while the world is being served.

use jiff::{SignedDuration, Timestamp};

use super::instance::{Instance, InstanceSpec, Status};
use super::tpu::{TpuNode, TpuSpec};
use super::{Inner, World};

impl World {
    /// Adds a machine. Returns its id; `None` when there is no such project or
    /// zone.
    pub fn add_instance(&self, project: &str, zone: &str, spec: InstanceSpec) -> Option<String> {
        self.write().add_instance(project, zone, spec)
    }

    /// Adds `count` machines that differ in name, id and address only.
    pub fn add_instances(&self, project: &str, zone: &str, count: usize, spec: &InstanceSpec) -> Vec<String> {
        let mut inner = self.write();
        (0..count)
            .filter_map(|_| inner.add_instance(project, zone, spec.clone()))
            .collect()
    }

    /// Adds a TPU node. Returns its id; `None` when there is no such project
    /// or zone.
    pub fn add_tpu(&self, project: &str, zone: &str, spec: TpuSpec) -> Option<String> {
        self.write().add_tpu(project, zone, spec)
    }

    /// Removes a machine or a TPU node.
    pub fn remove(&self, id: &str) {
        for data in self.write().projects.values_mut() {
            data.instances.retain(|_, instance| instance.id != id);
            data.nodes.retain(|_, node| node.id != id);
        }
    }

    /// Changes a machine. Its name and id stay.
    pub fn change(&self, id: &str, change: impl FnOnce(&mut InstanceSpec)) {
        let mut inner = self.write();
        let mut all = inner.projects.values_mut().flat_map(|data| data.instances.values_mut());
        if let Some(found) = all.find(|instance| instance.id == id) {
            change(&mut found.spec);
        }
    }

    /// Changes a TPU node. Its name and id stay.
    pub fn change_tpu(&self, id: &str, change: impl FnOnce(&mut TpuSpec)) {
        let mut inner = self.write();
        let mut all = inner.projects.values_mut().flat_map(|data| data.nodes.values_mut());
        if let Some(found) = all.find(|node| node.id == id) {
            change(&mut found.spec);
        }
    }

    /// Changes a machine's state.
    pub fn set_status(&self, id: &str, status: Status) {
        self.change(id, |spec| spec.status = status);
    }

    /// Stops a machine at this time.
    pub fn stop(&self, id: &str, at: Timestamp) {
        self.change(id, |spec| {
            spec.status = Status::Terminated;
            spec.stopped = Some(at);
        });
    }

    /// Makes the machines of a zone impossible to list; answers say so.
    pub fn zone_down(&self, zone: &str) {
        self.write().zones_down.insert(zone.to_owned());
    }

    /// Ends an outage.
    pub fn zone_up(&self, zone: &str) {
        self.write().zones_down.remove(zone);
    }

    /// Whether lists over all zones fail as a whole from now on while a zone is
    /// down, as some versions of the API do; they leave the zone out and say
    /// so unless set.
    pub fn outages_fail_lists(&self, fail: bool) {
        self.write().outages_fail = fail;
    }

    /// Pages hold no more than this from now on, whatever a client asks for,
    /// and an empty page comes between any two, as the real service does when
    /// machines are large and many do not match.
    pub fn limit_pages(&self, rows: usize) {
        self.write().page_limit = Some(rows.max(1));
    }

    /// Every machine, by project, zone and name.
    pub fn instances(&self) -> Vec<Instance> {
        let inner = self.read();
        let all = inner.projects.values().flat_map(|data| data.instances.values());
        all.cloned().collect()
    }

    /// Every TPU node, by project, zone and name.
    pub fn tpus(&self) -> Vec<TpuNode> {
        let inner = self.read();
        let all = inner.projects.values().flat_map(|data| data.nodes.values());
        all.cloned().collect()
    }
}

impl Inner {
    fn add_instance(&mut self, project: &str, zone: &str, mut spec: InstanceSpec) -> Option<String> {
        if !self.projects.contains_key(project) || !self.has_zone(zone) {
            return None;
        }
        let id = spec.id.unwrap_or_else(|| self.fresh_id()).to_string();
        let private_ip = spec.private_ip.clone().unwrap_or_else(|| self.fresh_address());
        let created = spec
            .created
            .unwrap_or_else(|| self.created - SignedDuration::from_hours(24));
        let data = self.projects.get_mut(project)?;
        let base = if spec.name.is_empty() { "instance" } else { &spec.name };
        let taken = |name: &str| data.instances.contains_key(&(zone.to_owned(), name.to_owned()));
        let suffix = tail(&id);
        let name = if spec.name.is_empty() || taken(base) {
            format!("{base}-{suffix}")
        } else {
            base.to_owned()
        };
        spec.name.clone_from(&name);
        let instance = Instance {
            id: id.clone(),
            project: project.to_owned(),
            zone: zone.to_owned(),
            name: name.clone(),
            private_ip,
            created,
            spec,
        };
        data.instances.insert((zone.to_owned(), name), instance);
        Some(id)
    }

    fn add_tpu(&mut self, project: &str, zone: &str, mut spec: TpuSpec) -> Option<String> {
        if !self.projects.contains_key(project) || !self.has_zone(zone) {
            return None;
        }
        // The API's type for it is a signed number.
        let id = (self.fresh_id() >> 2).to_string();
        let machines = self.projects.values().flat_map(|data| data.instances.values());
        let mut addresses: Vec<String> = machines
            .filter(|instance| spec.machines.contains(&instance.id))
            .map(|instance| instance.private_ip.clone())
            .collect();
        if addresses.is_empty() {
            addresses = (0..spec.hosts).map(|_| self.fresh_address()).collect();
        }
        let created = spec
            .created
            .unwrap_or_else(|| self.created - SignedDuration::from_hours(24));
        let data = self.projects.get_mut(project)?;
        if spec.name.is_empty() {
            spec.name = format!("tpu-{}", tail(&id));
        }
        let node = TpuNode {
            id: id.clone(),
            project: project.to_owned(),
            zone: zone.to_owned(),
            name: spec.name.clone(),
            addresses,
            created,
            spec,
        };
        data.nodes.insert((zone.to_owned(), node.name.clone()), node);
        Some(id)
    }
}

/// Enough of an id to tell names apart.
fn tail(id: &str) -> &str {
    id.get(id.len().saturating_sub(9)..).unwrap_or(id)
}
