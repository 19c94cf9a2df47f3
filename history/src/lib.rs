//! Hourly and daily roll-ups of usage, kept in an embedded database.
