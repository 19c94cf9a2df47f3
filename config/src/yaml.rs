//! From YAML text to typed values, with the place of every value and without
//! stopping at the first problem.
//!
//! Three steps: [`tree`] turns the parser's events into nodes that know where
//! they stand and expands `${VAR}` in their texts; [`decode`] lets serde fill
//! typed sections from the nodes; [`spot`] gives checks that span several keys
//! the places to point at.

pub(crate) mod decode;
pub(crate) mod expand;
pub(crate) mod spot;
pub(crate) mod tree;

pub(crate) use decode::decode;
pub(crate) use spot::{Checks, Spot, error_words};
pub(crate) use tree::{Node, Scalar, Value, read};
