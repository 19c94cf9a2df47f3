//! One fetch for the tasks of several regions.
//!
//! Some clouds list a whole project or subscription at once, while gpuwatch
//! polls, ages and reports per region. The first task that needs the listing
//! fetches it; the others take their part of the same answer.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_inventory::Text;

use crate::{CollectError, Context, lock};

/// Answers by key (a project, a subscription), each fetched by one task and
/// used by all that ask within half of their interval.
#[derive(Debug)]
pub struct Coalesced<T> {
    slots: Mutex<HashMap<Text, Arc<Slot<T>>>>,
}

/// Held while fetching, so that the others wait.
type Slot<T> = tokio::sync::Mutex<Option<Fetched<T>>>;

#[derive(Debug)]
struct Fetched<T> {
    /// Monotonic time at which the fetch began: what the answer tells is at
    /// least as new.
    began: Duration,
    result: Result<Arc<T>, CollectError>,
}

impl<T> Default for Coalesced<T> {
    fn default() -> Self {
        Self {
            slots: Mutex::default(),
        }
    }
}

impl<T: Send + Sync> Coalesced<T> {
    /// The answer for a key: the one there is, unless it began longer ago than
    /// half of the asking task's interval, else a new one. A failure is shared
    /// like an answer, and counted for every task that it reaches.
    ///
    /// A task that is cut off while it fetches leaves the fetch to the next.
    ///
    /// # Errors
    /// Those of the fetch.
    pub async fn get<F, Fut>(&self, key: &Text, cx: &Context, fetch: F) -> Result<Arc<T>, CollectError>
    where
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = Result<T, CollectError>> + Send,
    {
        let slot = Arc::clone(lock(&self.slots).entry(key.clone()).or_default());
        let mut slot = slot.lock().await;
        let fresh = |fetched: &Fetched<T>| cx.monotonic().saturating_sub(fetched.began) < cx.interval() / 2;
        if let Some(fetched) = slot.as_ref().filter(|fetched| fresh(fetched)) {
            return match &fetched.result {
                Ok(answer) => Ok(Arc::clone(answer)),
                Err(error) => Err(error.clone().uncounted()),
            };
        }
        *slot = None;
        let began = cx.monotonic();
        let result = fetch().await.map(Arc::new);
        *slot = Some(Fetched {
            began,
            result: result.clone(),
        });
        result
    }

    /// Forgets keys that are no longer polled.
    pub fn retain(&self, keep: impl Fn(&Text) -> bool) {
        lock(&self.slots).retain(|key, _| keep(key));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use gpuwatch_inventory::Provider;

    use super::*;
    use crate::{Account, Reason, Scope};

    fn context(region: &str) -> Context {
        let account = Account {
            id: "p1".into(),
            name: "p1".into(),
        };
        let scope = Scope {
            provider: Provider::Gcp,
            account,
            region: region.into(),
        };
        Context::detached(scope, Duration::from_mins(1))
    }

    #[tokio::test]
    async fn concurrent_tasks_share_one_fetch() {
        let (shared, calls) = (Coalesced::default(), AtomicU32::new(0));
        let ask = |region: &'static str| {
            let (shared, calls) = (&shared, &calls);
            async move {
                let fetch = || async {
                    calls.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    Ok(7)
                };
                shared.get(&"p1".into(), &context(region), fetch).await.unwrap()
            }
        };
        let answers = futures::future::join_all(["a", "b", "c"].map(ask)).await;
        assert_eq!(answers.iter().map(|n| **n).collect::<Vec<i32>>(), [7, 7, 7]);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_failure_is_shared_and_counted_for_each_task() {
        let shared = Coalesced::<u32>::default();
        for region in ["a", "b"] {
            let cx = context(region);
            let mut error = shared
                .get(&"p1".into(), &cx, || async {
                    Err(CollectError::new(Reason::Permission, "no"))
                })
                .await
                .unwrap_err();
            cx.count(&mut error);
            assert_eq!(cx.errors(Reason::Permission), 1, "{region}");
        }
    }

    #[tokio::test]
    async fn other_keys_have_answers_of_their_own_and_can_be_forgotten() {
        let shared = Coalesced::default();
        for (key, value) in [("p1", 1), ("p2", 2)] {
            let answer = shared.get(&key.into(), &context("a"), || async { Ok(value) }).await;
            assert_eq!(*answer.unwrap(), value);
        }
        shared.retain(|key| &**key == "p2");
        let again = shared.get(&"p1".into(), &context("a"), || async { Ok(3) }).await;
        assert_eq!(*again.unwrap(), 3);
        let kept = shared.get(&"p2".into(), &context("a"), || async { Ok(4) }).await;
        assert_eq!(*kept.unwrap(), 2);
    }
}
