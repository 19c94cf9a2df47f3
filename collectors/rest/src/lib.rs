//! The HTTP layer of the clouds that are spoken to over plain REST: one client
//! for all, bounded answers, secrets that stay with the host they are for.
//!
//! A call goes: [`gpuwatch_collector_core::Context::call`] (limits, retry,
//! deadline, accounting) around a closure that builds and signs a
//! [`Request`] anew for every attempt and gives it to [`Http::send`]. The
//! cloud's crate classifies error answers; what went wrong below that is
//! classified here.

mod answer;
mod http;
mod origin;
mod renewing;
mod rows;
mod secret;

pub use answer::Answer;
pub use http::{Http, Request, causes, what_went_wrong};
pub use origin::Origin;
pub use renewing::{Expires, Renewing};
pub use rows::Rows;
pub use secret::SecretSource;

pub use secrecy::{ExposeSecret, SecretString};
