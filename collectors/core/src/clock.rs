//! The only source of time, so that tests can move it.

use std::{sync::LazyLock, time::Duration};

use jiff::Timestamp;
use tokio::sync::watch;

/// Start of the process's monotonic time.
#[allow(clippy::disallowed_methods, reason = "this is the clock")]
static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Wall time for what people and metrics see, monotonic time for ages and
/// deadlines (a jump of the wall clock must not expire data).
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that stands still until moved.
    Manual(ManualClock),
}

impl Clock {
    /// Wall time.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Manual(manual) => manual.now(),
        }
    }

    /// Time since an arbitrary fixed moment; never goes back.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        match self {
            Self::System => ORIGIN.elapsed(),
            Self::Manual(manual) => *manual.elapsed.borrow(),
        }
    }

    /// Sleeps by this clock.
    pub async fn sleep(&self, duration: Duration) {
        match self {
            Self::System => tokio::time::sleep(duration).await,
            Self::Manual(manual) => manual.sleep(duration).await,
        }
    }

    /// Runs a future for at most `limit`; `None` when the time is up, in
    /// which case the future has been dropped.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep(limit) => None,
        }
    }
}

/// A clock for tests: moves only when told.
#[derive(Debug, Clone)]
pub struct ManualClock {
    start: Timestamp,
    elapsed: watch::Sender<Duration>,
}

impl ManualClock {
    /// A clock standing at `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            elapsed: watch::Sender::new(Duration::ZERO),
        }
    }

    /// Moves the clock forward and wakes every sleeper whose time has come.
    pub fn advance(&self, by: Duration) {
        self.elapsed.send_modify(|elapsed| *elapsed += by);
    }

    fn now(&self) -> Timestamp {
        self.start
            .saturating_add(*self.elapsed.borrow())
            .unwrap_or(Timestamp::MAX)
    }

    async fn sleep(&self, duration: Duration) {
        let mut elapsed = self.elapsed.subscribe();
        let until = elapsed.borrow().saturating_add(duration);
        // The sender lives in `self`, so waiting cannot fail; if it could, a
        // clock that never moves again is the honest answer.
        if elapsed.wait_for(|now| *now >= until).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_in_order_and_only_when_moved() {
        let manual = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = Clock::Manual(manual.clone());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(10)).await }
        });
        tokio::task::yield_now().await;
        manual.advance(Duration::from_secs(9));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        manual.advance(Duration::from_secs(1));
        sleeper.await.expect("woken");
        assert_eq!(clock.now().as_second(), 10);
    }

    #[tokio::test]
    async fn timeout_drops_the_future() {
        let manual = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = Clock::Manual(manual.clone());
        let waiting = tokio::spawn(async move {
            clock
                .timeout(Duration::from_secs(1), std::future::pending::<()>())
                .await
        });
        tokio::task::yield_now().await;
        manual.advance(Duration::from_secs(2));
        assert_eq!(waiting.await.expect("joined"), None);
    }
}
