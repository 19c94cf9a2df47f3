//! Tests of the catalogue: its data, its reading, its matching.

mod accelerators;
mod data;
mod matching;
mod reading;
