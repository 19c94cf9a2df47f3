//! Small helpers for text and time from answers.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gpuwatch_inventory::Text;
use jiff::Timestamp;

/// Shares equal texts within one listing: types, zones and owners repeat a
/// hundred thousand times.
#[derive(Debug, Default)]
pub(crate) struct Interner(HashSet<Text>);

impl Interner {
    /// The shared copy of a text.
    pub(crate) fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = Text::from(text);
        self.0.insert(new.clone());
        new
    }
}

/// A time of the SDK as a timestamp; `None` outside the years -9999 to 9999.
pub(crate) fn timestamp(time: &aws_smithy_types::DateTime) -> Option<Timestamp> {
    Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok()
}

/// Locks a mutex that guards plain data: a panic elsewhere leaves it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line of at most `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_shared() {
        let mut interner = Interner::default();
        let (a, b) = (interner.text("g6.xlarge"), interner.text("g6.xlarge"));
        assert!(std::sync::Arc::ptr_eq(&a, &b));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(one_line("a\n b", 10), "a b");
        assert_eq!(one_line("显卡显卡", 2), "显卡…");
    }
}
