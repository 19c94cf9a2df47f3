//! What several tests share.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod collector;
pub mod exposition;
pub mod fleet;
pub mod oracle;
pub mod program;

use std::{future::Future, time::Duration};

/// Waits until `check` gives something, for at most half a minute.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut check: impl FnMut() -> F) -> T {
    for _ in 0..3000 {
        if let Some(found) = check().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("in vain: {what}");
}
