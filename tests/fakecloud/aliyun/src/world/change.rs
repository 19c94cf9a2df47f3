//! Changes to the fleet while it is served.

use jiff::{SignedDuration, Timestamp};

use super::instance::{Instance, InstanceSpec, Status, StoppedMode};
use super::{Inner, World};

impl World {
    /// Creates an instance; returns its id. `None` when there is no such
    /// account.
    pub fn add_instance(&self, account: &str, region: &str, spec: InstanceSpec) -> Option<String> {
        let mut inner = self.write();
        let id = spec.id.clone().unwrap_or_else(|| inner.fresh_id("i"));
        let private_ip = spec.private_ip.clone().unwrap_or_else(|| inner.fresh_address());
        let created = spec.created.unwrap_or_else(|| inner.after_creation(-1));
        let instance = Instance {
            id: id.clone(),
            account: account.to_owned(),
            region: region.to_owned(),
            created: to_the_minute(created),
            expires: to_the_minute(spec.expires.unwrap_or_else(|| inner.after_creation(24 * 300))),
            private_ip,
            spec,
        };
        inner
            .region_mut(account, region)?
            .instances
            .insert(id.clone(), instance);
        Some(id)
    }

    /// Creates a number of equal instances.
    pub fn add_instances(&self, account: &str, region: &str, count: usize, spec: &InstanceSpec) -> Vec<String> {
        (0..count)
            .filter_map(|_| self.add_instance(account, region, spec.clone()))
            .collect()
    }

    /// Changes an instance in any way; false when there is none of that id.
    pub fn update(&self, id: &str, change: impl FnOnce(&mut Instance)) -> bool {
        let mut inner = self.write();
        let mut regions = inner.accounts.values_mut().flat_map(|data| data.regions.values_mut());
        let found = regions.find_map(|data| data.instances.get_mut(id));
        found.map(change).is_some()
    }

    /// Stops an instance, in a mode.
    pub fn stop(&self, id: &str, mode: StoppedMode) -> bool {
        self.update(id, |instance| {
            instance.spec.status = Status::Stopped;
            instance.spec.stopped_mode = mode;
        })
    }

    /// Starts a stopped instance.
    pub fn start(&self, id: &str) -> bool {
        self.update(id, |instance| instance.spec.status = Status::Running)
    }

    /// Releases an instance: no answer has it any more.
    pub fn remove(&self, id: &str) -> bool {
        let mut inner = self.write();
        let mut regions = inner.accounts.values_mut().flat_map(|data| data.regions.values_mut());
        regions.any(|data| data.instances.remove(id).is_some())
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

    /// All instances that exist, CPU-only ones among them.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        let inner = self.read();
        let regions = inner.accounts.values().flat_map(|data| data.regions.values());
        regions.flat_map(|data| data.instances.values().cloned()).collect()
    }

    /// One instance.
    #[must_use]
    pub fn instance(&self, id: &str) -> Option<Instance> {
        let inner = self.read();
        let mut regions = inner.accounts.values().flat_map(|data| data.regions.values());
        regions.find_map(|data| data.instances.get(id).cloned())
    }
}

impl Inner {
    /// A private address that no other instance has.
    fn fresh_address(&mut self) -> String {
        self.addresses += 1;
        let number = self.addresses;
        format!(
            "172.{}.{}.{}",
            16 + number / 62_500 % 16,
            number / 250 % 250,
            number % 250 + 4
        )
    }

    /// So many hours after the world was made.
    pub(crate) fn after_creation(&self, hours: i64) -> Timestamp {
        self.created
            .checked_add(SignedDuration::from_hours(hours))
            .unwrap_or(self.created)
    }
}

/// The times of ECS have no seconds.
pub(crate) fn to_the_minute(time: Timestamp) -> Timestamp {
    let seconds = time.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(60)).unwrap_or(time)
}
