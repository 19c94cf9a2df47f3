//! Bounds on how hard clouds are called.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use gpuwatch_inventory::{Provider, Text};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Options, Scope};

/// Call rate per provider, account, region and service, and calls in flight
/// per provider.
#[derive(Debug)]
pub struct Limits {
    rate: DefaultKeyedRateLimiter<(Provider, Text, Text, &'static str)>,
    in_flight: BTreeMap<Provider, Arc<Semaphore>>,
}

impl Limits {
    /// Limits by these options; a zero means one.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let at_least_one = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        let quota =
            Quota::per_second(at_least_one(options.calls_per_second)).allow_burst(at_least_one(options.call_burst));
        let in_flight = Provider::ALL
            .iter()
            .map(|p| (*p, Arc::new(Semaphore::new(options.max_in_flight.max(1)))))
            .collect();
        Self {
            rate: RateLimiter::keyed(quota),
            in_flight,
        }
    }

    /// Waits for a turn; the call may run while the permit is held.
    pub(crate) async fn turn(&self, scope: &Scope, service: &'static str) -> Option<OwnedSemaphorePermit> {
        let key = (scope.provider, scope.account.id.clone(), scope.region.clone(), service);
        self.rate.until_key_ready(&key).await;
        // Neither a missing provider nor a closed semaphore can happen; going
        // ahead without a permit is better than never calling again.
        Arc::clone(self.in_flight.get(&scope.provider)?)
            .acquire_owned()
            .await
            .ok()
    }

    /// Forgets scopes that have not called for a while.
    pub(crate) fn tidy(&self) {
        self.rate.retain_recent();
    }
}
