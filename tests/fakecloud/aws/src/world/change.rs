//! Changes to the fleet while it is served.

use jiff::{SignedDuration, Timestamp};

use super::instance::{Instance, InstanceSpec, InstanceState};
use super::{Inner, World};

impl World {
    /// Launches an instance; returns its id. `None` when there is no such
    /// account.
    pub fn add_instance(&self, account: &str, region: &str, spec: InstanceSpec) -> Option<String> {
        let mut inner = self.write();
        let id = spec.id.clone().unwrap_or_else(|| inner.fresh_id("i"));
        let launch_reservation = spec.launch_reservation.clone().unwrap_or_else(|| inner.fresh_id("r"));
        let private_ip = match spec.state {
            InstanceState::Terminated => String::new(),
            _ => spec.private_ip.clone().unwrap_or_else(|| inner.fresh_address()),
        };
        let hour_ago = inner
            .created
            .checked_sub(SignedDuration::from_hours(1))
            .unwrap_or(inner.created);
        let instance = Instance {
            id: id.clone(),
            account: account.to_owned(),
            region: region.to_owned(),
            launch_reservation: launch_reservation.clone(),
            private_ip,
            launched: spec.launched.unwrap_or(hour_ago),
            spec,
        };
        let instances = &mut inner.region_mut(account, region)?.instances;
        instances.insert(format!("{launch_reservation}/{id}"), instance);
        Some(id)
    }

    /// Launches a number of equal instances, in one launch reservation.
    pub fn add_instances(&self, account: &str, region: &str, count: usize, spec: &InstanceSpec) -> Vec<String> {
        let launch = spec.launch_reservation.clone().unwrap_or_else(|| self.fresh_launch());
        let spec = InstanceSpec {
            launch_reservation: Some(launch),
            ..spec.clone()
        };
        (0..count)
            .filter_map(|_| self.add_instance(account, region, spec.clone()))
            .collect()
    }

    /// The id of a launch that several instances share.
    pub(crate) fn fresh_launch(&self) -> String {
        self.write().fresh_id("r")
    }

    /// Changes an instance in any way; false when there is none of that id.
    pub fn update(&self, id: &str, change: impl FnOnce(&mut Instance)) -> bool {
        let mut inner = self.write();
        let found = inner
            .accounts
            .values_mut()
            .flat_map(|data| data.regions.values_mut())
            .find_map(|data| data.instances.values_mut().find(|instance| instance.id == id));
        match found {
            Some(instance) => {
                change(instance);
                true
            }
            None => false,
        }
    }

    /// Stops an instance, at `now`.
    pub fn stop(&self, id: &str, now: Timestamp) -> bool {
        self.update(id, |instance| end(&mut instance.spec, InstanceState::Stopped, now))
    }

    /// Starts a stopped instance: its launch time becomes `now`.
    pub fn start(&self, id: &str, now: Timestamp) -> bool {
        self.update(id, |instance| {
            instance.launched = now;
            instance.spec.state = InstanceState::Running;
            instance.spec.transition_reason = None;
            instance.spec.state_reason = None;
        })
    }

    /// Terminates an instance; it stays listed as terminated until it is
    /// [forgotten](Self::forget).
    pub fn terminate(&self, id: &str, now: Timestamp) -> bool {
        self.update(id, |instance| {
            end(&mut instance.spec, InstanceState::Terminated, now);
            instance.private_ip.clear();
            instance.spec.public_ip = None;
        })
    }

    /// Removes an instance from all answers.
    pub fn forget(&self, id: &str) -> bool {
        let mut inner = self.write();
        let mut found = false;
        for data in inner.accounts.values_mut().flat_map(|data| data.regions.values_mut()) {
            data.instances.retain(|_, instance| {
                found |= instance.id == id;
                instance.id != id
            });
        }
        found
    }

    /// Sets a tag, or changes it.
    pub fn retag(&self, id: &str, key: &str, value: &str) -> bool {
        self.update(id, |instance| {
            let tags = &mut instance.spec.tags;
            match tags.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => value.clone_into(old),
                None => tags.push((key.to_owned(), value.to_owned())),
            }
        })
    }

    /// All instances that exist, terminated and CPU-only ones among them.
    pub fn instances(&self) -> Vec<Instance> {
        let inner = self.read();
        let regions = inner.accounts.values().flat_map(|data| data.regions.values());
        regions.flat_map(|data| data.instances.values().cloned()).collect()
    }

    /// One instance.
    pub fn instance(&self, id: &str) -> Option<Instance> {
        let inner = self.read();
        let mut regions = inner.accounts.values().flat_map(|data| data.regions.values());
        regions.find_map(|data| data.instances.values().find(|instance| instance.id == id).cloned())
    }
}

impl Inner {
    /// A private address that no other instance has.
    fn fresh_address(&mut self) -> String {
        self.addresses += 1;
        let number = self.addresses;
        format!(
            "10.{}.{}.{}",
            (number / 62_500) % 250,
            (number / 250) % 250,
            number % 250 + 4
        )
    }
}

impl InstanceSpec {
    /// Stopped by its owner at `when`.
    #[must_use]
    pub fn stopped_at(mut self, when: Timestamp) -> Self {
        end(&mut self, InstanceState::Stopped, when);
        self
    }
}

fn end(spec: &mut InstanceSpec, state: InstanceState, when: Timestamp) {
    let code = "Client.UserInitiatedShutdown";
    spec.state = state;
    spec.transition_reason = Some(format!("User initiated ({} GMT)", when.strftime("%Y-%m-%d %H:%M:%S")));
    spec.state_reason = Some((code.to_owned(), format!("{code}: User initiated shutdown")));
}
