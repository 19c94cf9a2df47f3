//! Faults that the simulated clouds show on demand.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cloud::CallKey;

/// A way in which a call goes wrong.
///
/// The kinds about rows, words and tokens change nothing in an answer that has
/// none, such as the pages of an operation without pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Refused for calling too fast, in the cloud's own words, optionally with
    /// a `Retry-After` header in seconds.
    Throttled {
        /// Seconds the header asks to wait.
        retry_after: Option<u32>,
    },
    /// Status 500 with the cloud's own error body.
    InternalError,
    /// Status 500 with an HTML page, as a load balancer sends it.
    HtmlError,
    /// Status 200 with an HTML page, as a captive proxy sends it.
    HtmlSuccess,
    /// No answer until the fake stops or the client gives up.
    Hang,
    /// Announces the full length, sends half of it and closes the connection.
    TruncatedBody,
    /// Half of the document, in a well-formed HTTP answer.
    CutOffDocument,
    /// Closes the connection without a byte.
    DropConnection,
    /// The session or signature is too old.
    ExpiredToken,
    /// The caller lacks the permission.
    AccessDenied,
    /// The keys are not accepted, as in a region that is not enabled.
    AuthFailure,
    /// The account has not opted in to the service or region.
    OptInRequired,
    /// The first two rows of the page carry words no client knows.
    UnknownEnum,
    /// Every page, also an empty one, has a new next token.
    EndlessToken,
    /// Every page has the same next token.
    RepeatedToken,
    /// An empty page with a token comes before the first page.
    EmptyPage,
    /// The rows of a page come in reverse order.
    ReorderedRows,
    /// Every row comes twice.
    DuplicateRows,
    /// One more row than there is, without an id.
    MalformedRecord,
    /// A part of the listing is missing, and the answer says so in the cloud's
    /// own way (an unreachable zone). Complete where a cloud has no such way.
    PartialResult,
}

impl FaultKind {
    /// Every kind once, for tests that try all of them.
    pub const ALL: &'static [Self] = &[
        Self::Throttled { retry_after: None },
        Self::InternalError,
        Self::HtmlError,
        Self::HtmlSuccess,
        Self::Hang,
        Self::TruncatedBody,
        Self::CutOffDocument,
        Self::DropConnection,
        Self::ExpiredToken,
        Self::AccessDenied,
        Self::AuthFailure,
        Self::OptInRequired,
        Self::UnknownEnum,
        Self::EndlessToken,
        Self::RepeatedToken,
        Self::EmptyPage,
        Self::ReorderedRows,
        Self::DuplicateRows,
        Self::MalformedRecord,
        Self::PartialResult,
    ];

    /// A short name for test output and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throttled { .. } => "throttled",
            Self::InternalError => "internal_error",
            Self::HtmlError => "html_error",
            Self::HtmlSuccess => "html_success",
            Self::Hang => "hang",
            Self::TruncatedBody => "truncated_body",
            Self::CutOffDocument => "cut_off_document",
            Self::DropConnection => "drop_connection",
            Self::ExpiredToken => "expired_token",
            Self::AccessDenied => "access_denied",
            Self::AuthFailure => "auth_failure",
            Self::OptInRequired => "opt_in_required",
            Self::UnknownEnum => "unknown_enum",
            Self::EndlessToken => "endless_token",
            Self::RepeatedToken => "repeated_token",
            Self::EmptyPage => "empty_page",
            Self::ReorderedRows => "reordered_rows",
            Self::DuplicateRows => "duplicate_rows",
            Self::MalformedRecord => "malformed_record",
            Self::PartialResult => "partial_result",
        }
    }

    /// Whether the call still succeeds, with an odd answer. A correct client
    /// then has all data, except behind [`EndlessToken`](Self::EndlessToken)
    /// and [`RepeatedToken`](Self::RepeatedToken), which never end.
    #[must_use]
    pub const fn alters_answer(self) -> bool {
        matches!(
            self,
            Self::UnknownEnum
                | Self::EndlessToken
                | Self::RepeatedToken
                | Self::EmptyPage
                | Self::ReorderedRows
                | Self::DuplicateRows
                | Self::MalformedRecord
                | Self::PartialResult
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which calls fail, how, and how often. A matcher left open matches anything.
///
/// ```
/// use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
/// let rule = FaultRule::new(FaultKind::Hang).service("ec2").region("us-east-1").times(3);
/// ```
#[derive(Debug, Clone)]
pub struct FaultRule {
    provider: Option<String>,
    service: Option<String>,
    operation: Option<String>,
    account: Option<String>,
    region: Option<String>,
    kind: FaultKind,
    left: Option<u32>,
}

impl FaultRule {
    /// Every call fails with `kind`, for ever.
    #[must_use]
    pub fn new(kind: FaultKind) -> Self {
        Self {
            provider: None,
            service: None,
            operation: None,
            account: None,
            region: None,
            kind,
            left: None,
        }
    }

    /// Only calls to this cloud (`aws`).
    #[must_use]
    pub fn provider(mut self, provider: &str) -> Self {
        self.provider = Some(provider.to_owned());
        self
    }

    /// Only calls to this service (`ec2`, `sts`, `organizations`, `savingsplans`).
    #[must_use]
    pub fn service(mut self, service: &str) -> Self {
        self.service = Some(service.to_owned());
        self
    }

    /// Only this operation (`DescribeInstances`).
    #[must_use]
    pub fn operation(mut self, operation: &str) -> Self {
        self.operation = Some(operation.to_owned());
        self
    }

    /// Only calls made as this account.
    #[must_use]
    pub fn account(mut self, account: &str) -> Self {
        self.account = Some(account.to_owned());
        self
    }

    /// Only calls to this region.
    #[must_use]
    pub fn region(mut self, region: &str) -> Self {
        self.region = Some(region.to_owned());
        self
    }

    /// Only the next `times` matching calls; the rule is spent afterwards.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.left = Some(times);
        self
    }

    fn matches(&self, key: &CallKey) -> bool {
        let fits = |wanted: &Option<String>, given: &str| wanted.as_deref().is_none_or(|wanted| wanted == given);
        self.left != Some(0)
            && fits(&self.provider, key.provider)
            && fits(&self.service, &key.service)
            && fits(&self.operation, &key.operation)
            && fits(&self.account, &key.account)
            && fits(&self.region, &key.region)
    }
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FaultId(u64);

#[derive(Debug)]
struct Active {
    id: FaultId,
    rule: FaultRule,
    hits: u64,
}

#[derive(Debug, Default)]
struct Rules {
    next_id: u64,
    active: Vec<Active>,
}

/// The fault rules in force; they can change while the fake runs. The first
/// matching rule decides.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Rules>>,
}

impl Faults {
    /// Adds a rule behind those that exist.
    pub fn add(&self, rule: FaultRule) -> FaultId {
        let mut rules = self.lock();
        rules.next_id += 1;
        let id = FaultId(rules.next_id);
        rules.active.push(Active { id, rule, hits: 0 });
        id
    }

    /// Removes one rule.
    pub fn remove(&self, id: FaultId) {
        self.lock().active.retain(|active| active.id != id);
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.lock().active.clear();
    }

    /// How many calls a rule has spoilt so far; 0 once it is removed.
    #[must_use]
    pub fn hits(&self, id: FaultId) -> u64 {
        self.lock()
            .active
            .iter()
            .find(|active| active.id == id)
            .map_or(0, |active| active.hits)
    }

    /// The fault for a call, counted against its rule.
    pub(crate) fn take(&self, key: &CallKey) -> Option<FaultKind> {
        let mut rules = self.lock();
        let active = rules.active.iter_mut().find(|active| active.rule.matches(key))?;
        active.hits += 1;
        if let Some(left) = &mut active.rule.left {
            *left = left.saturating_sub(1);
        }
        Some(active.rule.kind)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(service: &str, region: &str) -> CallKey {
        CallKey {
            provider: "aws",
            service: service.to_owned(),
            operation: "DescribeInstances".to_owned(),
            account: "111122223333".to_owned(),
            region: region.to_owned(),
            page_token: None,
        }
    }

    #[test]
    fn rule_spoils_matching_calls_as_often_as_it_says() {
        let faults = Faults::default();
        let id = faults.add(
            FaultRule::new(FaultKind::Hang)
                .service("ec2")
                .region("us-east-1")
                .times(2),
        );
        assert_eq!(faults.take(&call("ec2", "us-west-2")), None);
        assert_eq!(faults.take(&call("sts", "us-east-1")), None);
        assert_eq!(faults.take(&call("ec2", "us-east-1")), Some(FaultKind::Hang));
        assert_eq!(faults.take(&call("ec2", "us-east-1")), Some(FaultKind::Hang));
        assert_eq!(faults.take(&call("ec2", "us-east-1")), None);
        assert_eq!(faults.hits(id), 2);
    }

    #[test]
    fn spent_rule_lets_the_next_one_act() {
        let faults = Faults::default();
        faults.add(FaultRule::new(FaultKind::Hang).times(1));
        faults.add(FaultRule::new(FaultKind::InternalError));
        assert_eq!(faults.take(&call("ec2", "r")), Some(FaultKind::Hang));
        assert_eq!(faults.take(&call("ec2", "r")), Some(FaultKind::InternalError));
        faults.clear();
        assert_eq!(faults.take(&call("ec2", "r")), None);
    }

    #[test]
    fn all_kinds_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = FaultKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
    }
}
