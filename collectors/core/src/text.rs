//! Small helpers for what comes from answers.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gpuwatch_inventory::Text;

/// Shares equal texts within one listing: types, zones and owners repeat a
/// hundred thousand times.
#[derive(Debug, Default)]
pub struct Interner(HashSet<Text>);

impl Interner {
    /// The shared copy of a text.
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = Text::from(text);
        self.0.insert(new.clone());
        new
    }
}

/// Locks a mutex that guards plain data: a panic elsewhere leaves it whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line of at most `limit` characters.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
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
