//! Credentials that end, fetched anew before they do.

use std::{future::Future, sync::Arc, time::Duration};

use gpuwatch_collector_core::CollectError;
use jiff::Timestamp;
use tokio::sync::Mutex;

/// Something with an end.
pub trait Expires {
    /// When it ends; `None` for never.
    fn expires(&self) -> Option<Timestamp>;
}

/// Renewed this long before its end: longer than any run lasts.
const EARLY: Duration = Duration::from_mins(5);

/// The current credentials of one kind. Concurrent callers wait for one
/// renewal.
#[derive(Debug)]
pub struct Renewing<T> {
    slot: Mutex<Option<Arc<T>>>,
}

impl<T> Default for Renewing<T> {
    fn default() -> Self {
        Self { slot: Mutex::default() }
    }
}

impl<T: Expires + Send + Sync> Renewing<T> {
    /// What there is while it lasts, else what `fetch` gives. When the renewal
    /// fails and the old one has not ended yet, the old one has to do.
    ///
    /// # Errors
    /// Those of `fetch`.
    pub async fn get<F, Fut>(&self, now: Timestamp, fetch: F) -> Result<Arc<T>, CollectError>
    where
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = Result<T, CollectError>> + Send,
    {
        let lasts = |current: &Arc<T>, margin: Duration| {
            current
                .expires()
                .is_none_or(|end| now.checked_add(margin).is_ok_and(|then| then < end))
        };
        let mut slot = self.slot.lock().await;
        if let Some(current) = slot.as_ref().filter(|current| lasts(current, EARLY)) {
            return Ok(Arc::clone(current));
        }
        match fetch().await {
            Ok(new) => {
                let new = Arc::new(new);
                *slot = Some(Arc::clone(&new));
                Ok(new)
            }
            Err(error) => match slot.as_ref().filter(|current| lasts(current, Duration::ZERO)) {
                Some(current) => Ok(Arc::clone(current)),
                None => Err(error),
            },
        }
    }

    /// Forgets credentials that are no longer accepted, unless somebody else
    /// has already renewed them.
    pub async fn forget(&self, old: &Arc<T>) {
        let mut slot = self.slot.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, old)) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use gpuwatch_collector_core::Reason;
    use jiff::ToSpan as _;

    use super::*;

    struct Token(Timestamp);

    impl Expires for Token {
        fn expires(&self) -> Option<Timestamp> {
            Some(self.0)
        }
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + minutes.minutes()
    }

    #[tokio::test]
    async fn concurrent_callers_cause_one_renewal() {
        let (tokens, fetched) = (Renewing::default(), AtomicU32::new(0));
        let get = || {
            tokens.get(at(0), || async {
                fetched.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Ok(Token(at(60)))
            })
        };
        futures::future::join_all((0..20).map(|_| get())).await;
        assert_eq!(fetched.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn renewed_before_the_end_and_kept_while_renewal_fails() {
        let tokens = Renewing::default();
        let failing = || async { Err::<Token, _>(CollectError::new(Reason::Network, "down")) };
        tokens.get(at(0), || async { Ok(Token(at(60))) }).await.unwrap();
        assert_eq!(tokens.get(at(54), failing).await.unwrap().0, at(60), "not yet asked");
        assert_eq!(tokens.get(at(58), failing).await.unwrap().0, at(60), "still alive");
        assert!(tokens.get(at(61), failing).await.is_err());
        let new = tokens.get(at(58), || async { Ok(Token(at(120))) }).await.unwrap();
        assert_eq!(new.0, at(120));
    }

    #[tokio::test]
    async fn only_the_refused_credentials_are_forgotten() {
        let tokens = Renewing::default();
        let old = tokens.get(at(0), || async { Ok(Token(at(60))) }).await.unwrap();
        tokens.forget(&old).await;
        let new = tokens.get(at(0), || async { Ok(Token(at(90))) }).await.unwrap();
        tokens.forget(&old).await;
        let kept = tokens.get(at(0), || async { Ok(Token(at(99))) }).await.unwrap();
        assert!(Arc::ptr_eq(&new, &kept));
    }
}
