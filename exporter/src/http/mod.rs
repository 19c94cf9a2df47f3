//! The HTTP server: routes ([`routes`]), connections ([`listen`]).

pub mod listen;
pub mod negotiate;
pub mod routes;
mod write_deadline;

mod sd;
pub use routes::{App, router};
