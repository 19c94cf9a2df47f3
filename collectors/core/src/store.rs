//! The last good answer of every part, and the state of every task.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gpuwatch_inventory::{Commitment, Instance, InstanceUsage, Provider, Text};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{Call, CollectError, Collected, Dataset, Part, Reason, Scope, SkippedCount, TaskStatus};

/// Identity of a poll task; its order is the order of the metrics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskKey {
    pub provider: Provider,
    pub account: Text,
    pub region: Text,
    pub dataset: Dataset,
}

impl TaskKey {
    pub fn new(scope: &Scope, dataset: Dataset) -> Self {
        Self {
            provider: scope.provider,
            account: scope.account.id.clone(),
            region: scope.region.clone(),
            dataset,
        }
    }
}

/// A part's last complete answer.
#[derive(Debug, Clone)]
pub(crate) struct Good {
    pub data: Stored,
    /// Monotonic time at which it was obtained.
    pub at: Duration,
}

/// Shared records, so that a snapshot costs no copies.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    Instances(Arc<[Arc<Instance>]>),
    Commitments(Arc<[Arc<Commitment>]>),
    Usage(Arc<[Arc<InstanceUsage>]>),
}

/// Outcome of one run of a task.
#[derive(Debug)]
pub(crate) struct Run {
    /// No error at all.
    pub up: bool,
    /// Every part delivered.
    pub complete: bool,
    pub duration: Duration,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Default)]
struct TaskState {
    time_to_live: Duration,
    parts: BTreeMap<Part, Good>,
    up: Option<bool>,
    last_success: Option<Timestamp>,
    last_duration: Option<Duration>,
    errors: BTreeMap<Reason, u64>,
    last_error: Option<String>,
}

/// How the newest call of one operation in one scope ended.
#[derive(Debug, Clone)]
pub struct CallStatus {
    /// On whose behalf; during discovery the section's name in region `global`.
    pub scope: Scope,
    /// For what.
    pub dataset: Dataset,
    /// Which call.
    pub call: Call,
    /// The error, if it failed.
    pub error: Option<CollectError>,
    /// What its answer leaves open, where it was one that can mean two things.
    pub unclear: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Outcome {
    error: Option<CollectError>,
    unclear: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Inner {
    calls: BTreeMap<(Scope, Dataset, Call), Outcome>,
    tasks: BTreeMap<TaskKey, TaskState>,
    inherited: BTreeMap<TaskKey, TaskState>,
    skipped: BTreeMap<(Provider, Text, Text, &'static str), u64>,
}

/// Everything the scheduler remembers. Locks are short and never held across
/// a wait.
#[derive(Debug, Default)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    /// Wakes the publisher.
    pub changed: Notify,
}

/// What a snapshot is made from.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub live: Vec<(Provider, Stored)>,
    pub tasks: Vec<TaskStatus>,
    pub skipped: Vec<SkippedCount>,
    /// Monotonic time at which the next piece will have outlived its time.
    pub next_expiry: Option<Duration>,
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held cannot leave a half-made state that
        // matters: every mutation below is a single assignment per field.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a task known before its first run.
    pub fn register(&self, key: &TaskKey, time_to_live: Duration) {
        let mut inner = self.lock();
        let known = inner.inherited.remove(key).map(|known| TaskState {
            // For the first run to say.
            up: None,
            last_error: None,
            ..known
        });
        let task = inner.tasks.entry(key.clone()).or_default();
        if let Some(known) = known {
            *task = known;
        }
        task.time_to_live = time_to_live;
        drop(inner);
        self.changed.notify_one();
    }

    /// Takes over what an earlier store knows, for the tasks that will be
    /// registered: a change of the configuration is no reason to forget the
    /// last good answers.
    pub fn inherit(&self, earlier: &Self) {
        let (tasks, skipped) = {
            let earlier = earlier.lock();
            // What it inherited itself and has not come to yet goes along.
            let mut tasks = earlier.inherited.clone();
            tasks.extend(earlier.tasks.iter().map(|(key, task)| (key.clone(), task.clone())));
            (tasks, earlier.skipped.clone())
        };
        let mut inner = self.lock();
        inner.inherited = tasks;
        inner.skipped = skipped;
    }

    /// Lets go of what was inherited for tasks that no longer exist.
    pub fn forget_inherited(&self) {
        self.lock().inherited = BTreeMap::new();
    }

    /// Forgets a task and its data: its scope is gone.
    pub fn remove(&self, key: &TaskKey) {
        let mut inner = self.lock();
        inner.tasks.remove(key);
        inner
            .calls
            .retain(|(scope, dataset, _), _| TaskKey::new(scope, *dataset) != *key);
        drop(inner);
        self.changed.notify_one();
    }

    /// Replaces a part's last good answer.
    pub fn put(&self, key: &TaskKey, part: Part, collected: Collected, now: Duration) {
        let previous = self
            .lock()
            .tasks
            .get(key)
            .and_then(|task| task.parts.get(part))
            .map(|good| good.data.clone());
        let data = Stored::new(collected, previous.as_ref());
        if let Some(task) = self.lock().tasks.get_mut(key) {
            task.parts.insert(part, Good { data, at: now });
        }
    }

    /// Notes how a run ended and wakes the publisher.
    pub fn finish(&self, key: &TaskKey, run: &Run) {
        if let Some(task) = self.lock().tasks.get_mut(key) {
            task.up = Some(run.up);
            task.last_duration = Some(run.duration);
            if run.complete {
                task.last_success = Some(run.at);
            }
            if run.up {
                task.last_error = None;
            }
        }
        self.changed.notify_one();
    }

    /// Counts a failure; a discovery failure may name a task not yet known.
    pub fn count_error(&self, key: &TaskKey, reason: Reason) {
        let mut inner = self.lock();
        let task = inner.tasks.entry(key.clone()).or_default();
        *task.errors.entry(reason).or_default() += 1;
        drop(inner);
        // Shown now and not when the run ends: a run can take minutes.
        self.changed.notify_one();
    }

    /// Remembers the text of the last error.
    pub fn note_error(&self, key: &TaskKey, text: &str) {
        self.lock().tasks.entry(key.clone()).or_default().last_error = Some(text.to_owned());
    }

    /// Marks whether a discovery works; `None` takes its series away.
    pub fn set_up(&self, key: &TaskKey, up: Option<bool>) {
        self.lock().tasks.entry(key.clone()).or_default().up = up;
        self.changed.notify_one();
    }

    /// Notes how a call ended.
    pub fn note_call(&self, scope: &Scope, dataset: Dataset, call: Call, error: Option<&CollectError>) {
        let outcome = Outcome {
            error: error.cloned(),
            unclear: None,
        };
        self.lock().calls.insert((scope.clone(), dataset, call), outcome);
    }

    /// Notes what the newest answer of a call leaves open.
    pub fn note_unclear(&self, scope: &Scope, dataset: Dataset, call: Call, what: &'static str) {
        let mut inner = self.lock();
        inner.calls.entry((scope.clone(), dataset, call)).or_default().unclear = Some(what);
    }

    /// How the newest call of every operation ended.
    pub fn calls(&self) -> Vec<CallStatus> {
        let inner = self.lock();
        let status = |((scope, dataset, call), outcome): (&(Scope, Dataset, Call), &Outcome)| CallStatus {
            scope: scope.clone(),
            dataset: *dataset,
            call: *call,
            error: outcome.error.clone(),
            unclear: outcome.unclear,
        };
        inner.calls.iter().map(status).collect()
    }

    pub fn skip(&self, scope: &Scope, reason: &'static str, count: u64) {
        let key = (scope.provider, scope.account.id.clone(), scope.region.clone(), reason);
        *self.lock().skipped.entry(key).or_default() += count;
    }

    pub fn skipped(&self, scope: &Scope, reason: &str) -> u64 {
        let is_it = |(p, a, r, word): &(Provider, Text, Text, &'static str)| {
            *p == scope.provider && *a == scope.account.id && *r == scope.region && *word == reason
        };
        self.lock()
            .skipped
            .iter()
            .filter(|(key, _)| is_it(key))
            .map(|(_, count)| count)
            .sum()
    }

    pub fn errors(&self, key: &TaskKey, reason: Reason) -> u64 {
        self.lock()
            .tasks
            .get(key)
            .and_then(|task| task.errors.get(&reason))
            .copied()
            .unwrap_or_default()
    }

    /// Whether every one of these tasks has run at least once.
    pub fn all_have_run<'a>(&self, mut keys: impl Iterator<Item = &'a TaskKey>) -> bool {
        let inner = self.lock();
        keys.all(|key| inner.tasks.get(key).is_some_and(|task| task.up.is_some()))
    }

    /// The instances of a scope as last listed, of all regions where the scope
    /// is global; `None` before the first listing.
    pub fn instances(&self, scope: &Scope) -> Option<Vec<Arc<Instance>>> {
        let is_it = |key: &TaskKey| {
            key.provider == scope.provider
                && key.account == scope.account.id
                && key.dataset == Dataset::Inventory
                && (key.region == scope.region || *scope.region == *Scope::GLOBAL)
        };
        let inner = self.lock();
        let listings = inner.tasks.iter().filter(|(key, _)| is_it(key));
        let parts = listings.flat_map(|(_, task)| task.parts.values());
        let mut found = None;
        for part in parts {
            if let Stored::Instances(instances) = &part.data {
                found.get_or_insert_with(Vec::new).extend(instances.iter().cloned());
            }
        }
        found
    }

    /// What is live at monotonic time `now`.
    pub fn view(&self, now: Duration) -> View {
        let inner = self.lock();
        let mut view = View::default();
        for (key, task) in &inner.tasks {
            let mut live = 0;
            for good in task.parts.values() {
                let expires = good.at.saturating_add(task.time_to_live);
                if expires > now {
                    live += 1;
                    view.live.push((key.provider, good.data.clone()));
                    view.next_expiry = Some(view.next_expiry.map_or(expires, |next| next.min(expires)));
                }
            }
            view.tasks.push(TaskStatus {
                provider: key.provider,
                account: key.account.clone(),
                region: key.region.clone(),
                dataset: key.dataset,
                up: task.up,
                last_success: task.last_success,
                last_duration: task.last_duration,
                errors: task.errors.clone(),
                last_error: task.last_error.clone(),
                expired: live == 0,
            });
        }
        view.skipped = inner
            .skipped
            .iter()
            .map(|((provider, account, region, reason), count)| SkippedCount {
                provider: *provider,
                account: account.clone(),
                region: region.clone(),
                reason,
                count: *count,
            })
            .collect();
        view
    }
}

impl Stored {
    /// Sorts by id and takes over the unchanged records of the previous
    /// answer, so that a fleet that does not change does not exist twice while
    /// older snapshots are still being read.
    fn new(collected: Collected, previous: Option<&Self>) -> Self {
        match collected {
            Collected::Instances(new) => {
                let old = match previous {
                    Some(Self::Instances(old)) => &**old,
                    _ => &[],
                };
                Self::Instances(share(new, old, |instance| &instance.id))
            }
            Collected::Commitments(new) => {
                let old = match previous {
                    Some(Self::Commitments(old)) => &**old,
                    _ => &[],
                };
                Self::Commitments(share(new, old, |commitment| &commitment.id))
            }
            // Hardly a reading is like the one before it.
            Collected::Usage(new) => Self::Usage(new.into_iter().map(Arc::new).collect()),
        }
    }
}

fn share<T: PartialEq>(mut new: Vec<T>, old: &[Arc<T>], id: impl Fn(&T) -> &Text) -> Arc<[Arc<T>]> {
    new.sort_by(|a, b| id(a).cmp(id(b)));
    let mut old = old.iter().peekable();
    new.into_iter()
        .map(|record| {
            while old.next_if(|before| id(before) < id(&record)).is_some() {}
            match old.peek() {
                Some(before) if ***before == record => Arc::clone(before),
                _ => Arc::new(record),
            }
        })
        .collect()
}
