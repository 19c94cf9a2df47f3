//! Why a call or a task failed.

use std::time::Duration;

gpuwatch_inventory::words! {
    /// The `reason` label of `gpuwatch_task_errors_total`.
    Reason, "reason" {
        /// The cloud asked to slow down, or a configured budget is used up.
        Throttled = "throttled",
        /// No, wrong or expired credentials.
        Credentials = "credentials",
        /// The identity may not do this.
        Permission = "permission",
        /// No complete answer in time.
        Timeout = "timeout",
        /// No connection: DNS, TCP, TLS, proxy.
        Network = "network",
        /// An answer that could not be understood: HTML, truncated, wrong shape.
        Decode = "decode",
        /// The region or service is not enabled for the account.
        NotEnabled = "not_enabled",
        /// Anything else, server errors included.
        Other = "other",
    }
}

/// A failure of a cloud call or of a whole task.
///
/// The message is for people and logs; collectors must keep secrets and
/// encoded authorisation messages out of it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{message}", self.code.as_deref().map(|c| format!("{c}: ")).unwrap_or_default())]
pub struct CollectError {
    /// Class, as counted.
    pub reason: Reason,
    /// The cloud's own error code, if it gave one.
    pub code: Option<String>,
    /// What happened, lower-case, one line.
    pub message: String,
    /// Whether the same call may succeed if repeated soon.
    pub retryable: bool,
    /// The cloud's own hint when to come back.
    pub retry_after: Option<Duration>,
    /// Whether a page token was too old or not accepted, so that the listing
    /// can be begun anew.
    pub stale_token: bool,
    /// Set once the error has been counted (as a failed attempt), so that the
    /// task does not count it again.
    pub(crate) counted: bool,
}

impl CollectError {
    /// An error of this class. Throttling, timeouts and network failures are
    /// retryable unless changed with [`Self::retryable`].
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            code: None,
            message: message.into(),
            retryable: matches!(reason, Reason::Throttled | Reason::Timeout | Reason::Network),
            retry_after: None,
            stale_token: false,
            counted: false,
        }
    }

    /// Adds the cloud's error code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Says whether a repeat may help.
    #[must_use]
    pub fn retryable(mut self, yes: bool) -> Self {
        self.retryable = yes;
        self
    }

    /// Adds the cloud's hint when to come back.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The same error for another task, which has not counted it yet.
    #[must_use]
    pub(crate) fn uncounted(mut self) -> Self {
        self.counted = false;
        self
    }

    /// Says that the listing can be begun anew.
    #[must_use]
    pub fn stale_token(mut self) -> Self {
        self.stale_token = true;
        self
    }
}
