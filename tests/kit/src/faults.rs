//! The matrix of faults: what each kind must be counted as.

use gpuwatch_collector_core::Reason;
use gpuwatch_fakecloud_core::FaultKind;

/// What a fault must be counted as; `None` when a correct client is not
/// troubled by it. `pages` is whether the operation has pages.
#[must_use]
pub fn expected(kind: FaultKind, pages: bool) -> Option<Reason> {
    match kind {
        FaultKind::Throttled { .. } => Some(Reason::Throttled),
        FaultKind::InternalError | FaultKind::HtmlError => Some(Reason::Other),
        FaultKind::HtmlSuccess | FaultKind::TruncatedBody | FaultKind::CutOffDocument => Some(Reason::Decode),
        FaultKind::Hang => Some(Reason::Timeout),
        FaultKind::DropConnection => Some(Reason::Network),
        FaultKind::ExpiredToken | FaultKind::AuthFailure => Some(Reason::Credentials),
        FaultKind::AccessDenied => Some(Reason::Permission),
        FaultKind::OptInRequired => Some(Reason::NotEnabled),
        FaultKind::EndlessToken | FaultKind::RepeatedToken => pages.then_some(Reason::Decode),
        FaultKind::UnknownEnum
        | FaultKind::EmptyPage
        | FaultKind::ReorderedRows
        | FaultKind::DuplicateRows
        | FaultKind::MalformedRecord
        | FaultKind::PartialResult => None,
    }
}

/// Runs one case per kind, all at once.
pub async fn for_each_kind<F, Fut>(case: F)
where
    F: Fn(FaultKind) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let cases: Vec<_> = FaultKind::ALL
        .iter()
        .map(|kind| (kind, tokio::spawn(case(*kind))))
        .collect();
    for (kind, case) in cases {
        case.await.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}
