//! Seeded randomness: the same seed gives the same fleet on every machine.

use std::fmt::Write as _;

/// A small deterministic generator (`SplitMix64`). Not for secrets: the fake
/// hands out keys that open nothing.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A stream from this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An independent stream for `label`, so that drawing more numbers for one
    /// part of a fleet does not reshuffle every other part.
    pub fn stream(seed: u64, label: &str) -> Self {
        let mut random = Self::new(seed ^ fnv1a(label.as_bytes()));
        random.next();
        random
    }

    /// The next 64 bits.
    #[allow(
        clippy::should_implement_trait,
        reason = "not an iterator: it never ends and is drawn from by name"
    )]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`, which must not be empty.
    #[allow(
        clippy::indexing_slicing,
        reason = "the index is below the length; the tables are this crate's own"
    )]
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.below(items.len() as u64);
        &items[usize::try_from(index).unwrap_or(0)]
    }

    /// One of `items` by weight; there must be one, and not all weights 0.
    #[allow(
        clippy::indexing_slicing,
        reason = "the tables are this crate's own and have entries"
    )]
    pub fn pick_weighted<'a, T>(&mut self, items: &'a [(u64, T)]) -> &'a T {
        let total = items.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        for (weight, item) in items {
            if left < *weight {
                return item;
            }
            left -= weight;
        }
        &items[0].1
    }

    /// `digits` lower-case hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:016x}", self.next());
        }
        text.truncate(digits);
        text
    }
}

/// FNV-1a, for labels and checksums: stable across releases, unlike the
/// standard library's hasher.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_and_label_give_the_same_stream() {
        let mut a = Random::stream(7, "ec2");
        let mut b = Random::stream(7, "ec2");
        let mut other = Random::stream(7, "sts");
        let first: Vec<u64> = (0..8).map(|_| a.next()).collect();
        assert_eq!(first, (0..8).map(|_| b.next()).collect::<Vec<_>>());
        assert_ne!(first, (0..8).map(|_| other.next()).collect::<Vec<_>>());
    }

    #[test]
    fn weights_decide_how_often_an_item_comes() {
        let mut random = Random::new(1);
        let hits = (0..10_000)
            .filter(|_| *random.pick_weighted(&[(9, true), (1, false)]))
            .count();
        assert!((8_800..9_200).contains(&hits), "{hits} of 10000");
    }

    #[test]
    fn hex_has_the_length_asked_for() {
        assert_eq!(Random::new(3).hex(17).len(), 17);
        assert_eq!(Random::new(3).hex(40).len(), 40);
    }
}
